"""The examples of `make run` compute what NumPy does."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def examples():
    spec = importlib.util.spec_from_file_location("ptxvm_examples", EXAMPLES / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # its dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


COMPILED_LONG = [pytest.param(name, marks=pytest.mark.long) for name in ("row_sums", "gemm_wgmma", "gemm_tcgen05")]


@pytest.mark.parametrize("name", ["saxpy", "matmul", "total", "dequantize", *COMPILED_LONG])
def test_example_agrees_with_numpy(examples, name):
    example = getattr(examples, name)(np.random.default_rng(1))
    example.run()
    assert example.difference() <= examples.TOLERANCE


@pytest.mark.parametrize("name", ["gemm_wgmma", "gemm_tcgen05"])
def test_pipelines_of_copies_and_products_agree_whenever_their_work_ends(examples, name):
    for asynchronous in ("early", "late"):
        example = getattr(examples, name)(np.random.default_rng(1))
        example.run(engine="interp", asynchronous=asynchronous)
        assert (example.result == example.expected).all()


@pytest.mark.parametrize("name", ["gemm_wgmma", "gemm_tcgen05"])
def test_pipelines_without_a_race_have_no_findings(examples, name):
    """A buffer is filled again after the commit of the product that read it, which came after the copy before."""
    example = getattr(examples, name)(np.random.default_rng(1))
    assert example.run(check=("race", "memory", "sync")) > 0
    assert example.findings == []


def test_bytes_become_halves_exactly(examples):
    """Every signed byte occurs, and none is off by a bit."""
    example = examples.dequantize(np.random.default_rng(2))
    example.run()
    assert np.unique(example.expected).size == 256
    assert example.result.tolist() == example.expected.tolist()


def test_every_kernel_has_its_example(examples):
    assert sorted(make.__name__ for make in examples.EXAMPLES) == sorted(path.stem for path in EXAMPLES.glob("*.ptx"))

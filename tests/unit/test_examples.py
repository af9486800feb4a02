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


@pytest.mark.parametrize("name", ["saxpy", "matmul", "total", "dequantize", pytest.param("row_sums", marks=pytest.mark.long)])
def test_example_agrees_with_numpy(examples, name):
    example = getattr(examples, name)(np.random.default_rng(1))
    example.run()
    assert example.difference() <= examples.TOLERANCE


def test_bytes_become_halves_exactly(examples):
    """Every signed byte occurs, and none is off by a bit."""
    example = examples.dequantize(np.random.default_rng(2))
    example.run()
    assert np.unique(example.expected).size == 256
    assert example.result.tolist() == example.expected.tolist()


def test_every_kernel_has_its_example(examples):
    assert sorted(make.__name__ for make in examples.EXAMPLES) == sorted(path.stem for path in EXAMPLES.glob("*.ptx"))

"""The JIT and the interpreter give the same bits: on random kernels, and on every conformance file."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import ptxvm
from ptxvm.campaign.fuzz.engines import compare
from ptxvm.campaign.random_kernels.kernels import REGISTERS, RandomKernel, random_kernel
from ptxvm.campaign.random_kernels.variants import instructions, variants_of

# `--hypothesis-profile=long` runs many.
KERNELS = int(os.environ.get("PTXVM_RANDOM_KERNELS", settings().max_examples // 7))
CONFORMANCE = Path(__file__).parents[1] / "conformance"
ADDRESS = re.compile(r"0x[0-9a-f]{6,}")  # of memory that each engine takes for itself
# ── random kernels ──────────────────────────────────────────────────────────────────────


@settings(max_examples=KERNELS)
@given(random=st.integers(0, 2**40).map(random_kernel))
def test_random_kernel(random: RandomKernel) -> None:
    compare(random)


def test_there_are_enough_instructions() -> None:
    """The catalog did not get lost: nearly all functions of registers that the target has are drawn from."""
    letters = frozenset(REGISTERS)
    drawn = instructions(letters, carry=True)
    assert len(drawn) >= 120
    assert len(variants_of(next(i for i in drawn if i.name == "cvt"), letters)) >= 790


def test_registers_that_a_rule_forbids_are_not_drawn() -> None:
    """What is converted from .bf16 goes to no wider register (P1705), what is converted from .f16 may."""
    letters = frozenset(REGISTERS)
    cvt = next(i for i in instructions(letters, carry=True) if i.name == "cvt")
    drawn = {case.mnemonic: case.letters("d") for case in variants_of(cvt, letters)}
    assert (drawn["cvt.rpi.s16.bf16"], drawn["cvt.rpi.s16.f16"]) == ("h", "hr")


# ── faults of the conformance files ─────────────────────────────────────────────────────


def conformance() -> Any:
    """The module that runs them."""
    spec = importlib.util.spec_from_file_location("conformance_runner", CONFORMANCE / "test_conformance.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["conformance_runner"] = module
    spec.loader.exec_module(module)
    return module


def files() -> Iterator[Any]:
    """Every conformance file in which something goes wrong."""
    for path in sorted(CONFORMANCE.rglob("*.ptx")):
        if re.search(r"//: run .* faults ", path.read_text()):
            yield pytest.param(path, id=str(path.relative_to(CONFORMANCE).with_suffix("")))


@pytest.mark.parametrize("path", list(files()))
def test_faults_are_told_alike(path: Path) -> None:
    """With the same words, of the same instruction and thread."""
    runner = conformance()
    text = path.read_text()
    target, runs, _ = runner.parse(text)
    module = ptxvm.load(text, target)
    runner.bind(module, text)
    out = np.zeros(runner.BYTES, np.uint8)
    for run in (run for run in runs if run.fault):
        kernel, said = module.kernel(run.kernel), []
        for engine in ("interp", "jit"):
            with pytest.raises(ptxvm.Fault) as caught:
                kernel.launch(grid=run.grid, block=run.block, args=[out, *runner.arguments(kernel, run.args)], engine=engine)
            said.append((caught.value.kind, ADDRESS.sub("0x…", str(caught.value)), caught.value.place))
        assert said[0] == said[1], run.text

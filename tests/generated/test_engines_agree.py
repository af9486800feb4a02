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
from engines import fenced
from hypothesis import HealthCheck, given, settings
from pure_variants import cases, instructions
from random_kernels import DOUBLES_AT, REGISTERS, SIZE, STRIDE, RandomKernel, kernels
from random_memory import INPUT

import ptxvm

# `--hypothesis-profile=long` runs many.
KERNELS = int(os.environ.get("PTXVM_RANDOM_KERNELS", settings().max_examples // 8))
CONFORMANCE = Path(__file__).parents[1] / "conformance"
ADDRESS = re.compile(r"0x[0-9a-f]{6,}")  # of memory that each engine takes for itself
STRANGE = np.array(
    [0, 1, 0x80000000, 0x7F800000, 0x7FC00000, 0xFFFFFFFF, 0x7FFFFFFF, 0x00000001, 0x80000001, 0x3F800000, 0x7F7FFFFF],
    np.uint32,
)

# ── random kernels ──────────────────────────────────────────────────────────────────────


def words(seed: int, count: int) -> np.ndarray:
    """What a kernel reads: random words, small ones, and those that break things."""
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 2**32, count, np.uint32)
    odd, small = rng.random(count) < 0.3, rng.random(count) < 0.3
    data[odd] = rng.choice(STRANGE, int(odd.sum()))
    data[small] &= 0x7F
    return data


def one_nan(rows: np.ndarray, where: slice) -> np.ndarray:
    """The results with one NaN of f64: which payload comes out of an operation on two NaNs is open."""
    doubles = np.ascontiguousarray(rows[:, where]).view(np.float64)
    doubles[np.isnan(doubles)] = np.nan
    rows[:, where] = doubles.view(np.uint8)
    return rows


def left_by(engine: str, random: RandomKernel, kernel: ptxvm.Kernel) -> tuple[dict[str, np.ndarray], int]:
    """What a kernel leaves in memory, and how many instructions its threads have run."""
    threads = random.ctas * random.threads
    inputs, work = words(random.seed, INPUT // 4), words(random.seed + 1, threads * STRIDE // 4)
    shared, out = np.zeros(17, np.uint64), np.zeros(threads * SIZE, np.uint8)
    inputs, work, shared, out = map(fenced, (inputs, work, shared, out))
    result = kernel.launch(random.grid, random.shape, [inputs, work, shared, out], shared=random.shared, engine=engine)
    rows = {
        "result": one_nan(out.reshape(-1, SIZE), DOUBLES_AT),
        "work": one_nan(work.view(np.uint8).reshape(-1, STRIDE), slice(STRIDE - 16, STRIDE - 8)),
    }
    return rows | {"shared": shared.view(np.uint8).reshape(-1, 8)}, result.thread_instructions


@settings(max_examples=KERNELS, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(random=kernels())
def test_random_kernel(random: RandomKernel) -> None:
    kernel = ptxvm.load(random.text).kernel()
    (one, counted), (other, too) = (left_by(engine, random, kernel) for engine in ("interp", "jit"))
    for name, rows in one.items():
        wrong = np.argwhere(rows != other[name])
        assert not len(wrong), f"byte {wrong[0][1]} of {name} of thread {wrong[0][0]}, and {len(wrong)} bytes in all"
    assert random.locks or counted == too


def test_there_are_enough_instructions() -> None:
    """The catalog did not get lost: nearly all functions of registers that the target has are drawn from."""
    letters = frozenset(REGISTERS)
    drawn = instructions(letters, carry=True)
    assert len(drawn) >= 120
    assert len(cases(next(i for i in drawn if i.name == "cvt"), letters)) >= 790


def test_registers_that_a_rule_forbids_are_not_drawn() -> None:
    """What is converted from .bf16 goes to no wider register (P1705), what is converted from .f16 may."""
    letters = frozenset(REGISTERS)
    cvt = next(i for i in instructions(letters, carry=True) if i.name == "cvt")
    drawn = {case.mnemonic: case.letters("d") for case in cases(cvt, letters)}
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

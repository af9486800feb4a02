"""The kernels of many kinds in `shared/kernels/wild`, in ranges of CTAs: the references in NumPy that come with them hold.

What cannot be cut runs whole, for a reason that is told, and its results are right, too.  No kernel that is cut meets a race.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from this_process import InThisProcess

import ptxvm

FOLDER = Path(__file__).parents[3] / "shared" / "kernels" / "wild"


def references():
    """Their module `cases`; none where the kernels are missing."""
    if not (FOLDER / "cases.py").is_file():
        return None
    found = importlib.util.spec_from_file_location("wild_cases", FOLDER / "cases.py")
    module = importlib.util.module_from_spec(found)
    sys.modules["wild_cases"] = module  # for its dataclasses
    written, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    errors = np.geterr()
    try:
        found.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = written
        np.seterr(**errors)
    return module


WHOLE = {"minmax_f32", "hash64", "hash32", "strsearch", "chain", "lookback", "lastblock"}
"""CTAs of these wait for each other, or see results of atomic operations; one has two operations on one array."""
CASES = references()
SMALL = [each for each in CASES.CASES if each.size == "small"] if CASES else []


def single(case):
    """What is launched once, on arrays and numbers; None for the others."""
    made = case.setup(np.random.default_rng(case.seed))
    plain = all(isinstance(each, np.ndarray | np.generic | bytes) for each in made.args)
    return made if plain and not made.steps and made.stdout is None else None


@pytest.mark.sampled(3)
@pytest.mark.skipif(not SMALL, reason=f"the kernels are missing: no {FOLDER / 'cases.py'}")
@pytest.mark.parametrize(
    "case", [pytest.param(each, id=each.name, marks=[pytest.mark.long] if n % 5 else []) for n, each in enumerate(SMALL)]
)
def test_a_kernel_in_ranges_passes_the_same_check(case, monkeypatch):
    monkeypatch.setattr("ptxvm.campaign.spread.runner", InThisProcess)
    made = single(case)
    if made is None or "sm_80" not in case.ptx:
        pytest.skip("it is launched in steps, or with textures")
    kernel = ptxvm.load(FOLDER / case.ptx["sm_80"]).kernel(case.entry)
    with np.errstate(all="ignore"):
        found = ptxvm.spread(kernel, made.grid, made.block, made.args, shared=made.shared, workers=2)
        made.check()
    assert bool(found.reason) == (case.name in WHOLE), found.reason
    assert found.reason or (len(found.ranges) > 1, found.result.findings) == (True, [])

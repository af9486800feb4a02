"""The 14 kernels of the benchmark set, on their small workloads, against the checks that come with them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from this_process import InThisProcess

import ptxvm

FOLDER = Path(__file__).parents[3] / "shared" / "kernels"
NAMES = "vadd saxpy mmnaive mmtiled reduce mandel nbody stencil hist transpose bs bitonic sha dequant".split()


@pytest.fixture(scope="module")
def workloads():
    """`workloads.py`, which finds `ref_sha` beside itself."""
    if not (FOLDER / "workloads.py").is_file():
        pytest.skip(f"the benchmark kernels are missing: no {FOLDER / 'workloads.py'}")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        patch.setattr(sys, "dont_write_bytecode", True)
        found = importlib.util.spec_from_file_location("workloads", FOLDER / "workloads.py")
        module = importlib.util.module_from_spec(found)
        found.loader.exec_module(module)
        yield module


@pytest.fixture(scope="module")
def module():
    return ptxvm.load(FOLDER / "kernels.ptx")


def test_all_kernels_have_a_workload(workloads, module):
    assert sorted(workloads.NAMES) == sorted(NAMES) == sorted(module.kernels)


@pytest.mark.parametrize("name", NAMES)
def test_kernel(name, workloads, module):
    work = workloads.work(name, small=True)
    module.kernel(name).launch(work["grid"], work["bd"], work["args"])
    assert work["chk"]()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_in_ranges_passes_the_same_check(name, workloads, module, monkeypatch):
    """No kernel of the set has a CTA that depends on another: each is cut, and no range meets a race."""
    monkeypatch.setattr("ptxvm.campaign.spread.runner", InThisProcess)
    work = workloads.work(name, small=True)
    found = ptxvm.spread(module.kernel(name), work["grid"], work["bd"], work["args"], workers=2)
    assert (found.reason, found.result.findings) == ("", [])
    assert len(found.ranges) >= 4  # more where the grid is large
    assert work["chk"]()

"""The fixtures for tests of kernels: what a project's tests see, which of them fail, and what the end of a run tells."""

from __future__ import annotations

import re

import pytest

MODULE = """
.version 6.4
.target sm_75
.address_size 64
.visible .entry in_order(.param .u64 data)
{
    .reg .b64 %d; .reg .b32 %t;
    ld.param.u64 %d, [data]; mov.u32 %t, %tid.x; mad.wide.u32 %d, %t, 4, %d; st.global.u32 [%d], %t; ret;
}
.visible .entry all_at_once(.param .u64 data)
{ .reg .b64 %d; .reg .b32 %t; ld.param.u64 %d, [data]; mov.u32 %t, %tid.x; st.global.u32 [%d], %t; ret; }
.visible .entry one_value(.param .u64 data)
{ .reg .b64 %d; ld.param.u64 %d, [data]; st.global.u32 [%d], 1; ret; }
"""
TESTS = """
import numpy as np
import pytest

def test_in_order(run_kernel):
    data = np.zeros(64, np.uint32)
    result = run_kernel("kernels.ptx", entry="in_order", block=64, args=[data])
    assert data.tolist() == list(range(64))
    assert result.block == (64, 1, 1)

def test_all_at_once(run_kernel, ptx_module):
    run_kernel(ptx_module("kernels.ptx").kernel("all_at_once"), block=64, args=[np.zeros(64, np.uint32)])

@pytest.mark.ptx_allow("race")
def test_that_is_meant(run_kernel):
    run_kernel("kernels.ptx", entry="all_at_once", block=64, args=[np.zeros(64, np.uint32)])

def test_with_a_warning(run_kernel):
    run_kernel("kernels.ptx", 1, 64, [np.zeros(64, np.uint32)], entry="one_value")

def test_of_no_kernel(ptx_module):
    text = ".version 6.4\\n.target sm_75\\n.visible .entry k() { ret; }"
    assert ptx_module(text) is ptx_module(text)
"""


def test_without_checks_each_test_runs_once_and_passes(run_pytest):
    done = run_pytest("ptxvm.pytest_kernels", TESTS, **{"kernels.ptx": MODULE})
    assert set(done.outcomes.values()) == {"PASSED"}, done.out + done.err
    assert "findings of ptxvm" not in done.out


def test_each_set_of_checks_is_a_run_of_the_test(run_pytest):
    """The race detector finds what 64 threads that write one word do; `memory` has nothing to say of it."""
    done = run_pytest(
        "ptxvm.pytest_kernels",
        TESTS,
        "--ptx-engine=interp",
        "--ptx-check=race",
        "--ptx-check=memory,init",
        "--ptx-target=sm_80",
        **{"kernels.ptx": MODULE},
    )
    found = done.outcomes
    assert [name for name, outcome in found.items() if outcome == "FAILED"] == ["test_all_at_once[interp-race]"], done.out
    assert len(found) == 9
    failed = r"\n>  +run_kernel\(ptx_module.*\nE +Failed: race in kernel all_at_once\nE +error\[race\]: WAW race"
    assert re.search(failed, done.out), done.out
    assert done.out.count("error[race]: WAW race") == 1
    summary = done.out.partition("findings of ptxvm")[2]
    assert "Failed: race in kernel" in summary
    assert "test_all_at_once[interp-race]: 1 finding\n" in summary
    assert "test_with_a_warning[interp-race]: 1 finding\n" in summary
    assert "test_that_is_meant" not in summary.partition("short test summary")[0]


def test_a_warning_stands_in_the_report_of_the_test(run_pytest, tmp_path):
    report = tmp_path / "junit.xml"
    words = "--ptx-check=race", f"--junitxml={report}", "-rA"
    done = run_pytest("ptxvm.pytest_kernels", TESTS, *words, **{"kernels.ptx": MODULE})
    assert done.out.count("warning[race-of-equal-values]") == 1
    assert "xunit2" not in done.out + done.err  # what pytest warns of, where record_property meets its usual JUnit report
    cases = re.findall(r'<testcase [^>]*name="(\w+)"[^>]*?(?:/>|>(.*?)</testcase>)', report.read_text(), re.DOTALL)
    found = {name: re.findall(r'<property name="ptxvm finding" value="([\w-]+\[[\w-]+\])', inside) for name, inside in cases}
    assert {name: findings for name, findings in found.items() if findings} == {
        "test_all_at_once": ["error[race]"],
        "test_with_a_warning": ["warning[race-of-equal-values]"],
    }


@pytest.mark.parametrize(
    ("option", "said"), [("--ptx-check=rice", "rice"), ("--ptx-target=sm_1000", "sm_1000"), ("--ptx-engine=gpu", "gpu")]
)
def test_wrong_options_are_refused_before_any_test(run_pytest, option, said):
    done = run_pytest("ptxvm.pytest_kernels", TESTS, option, **{"kernels.ptx": MODULE})
    assert done.code == 4
    assert said in done.err
    assert "Traceback" not in done.err


FAILING = """
import numpy as np

def test_fault(run_kernel):
    run_kernel("kernels.ptx", entry="in_order", block=64, args=[np.zeros(63, np.uint32)])

def test_file(ptx_module):
    ptx_module("kernel.ptx")
"""


def test_what_a_test_is_told_stands_at_its_own_line(run_pytest):
    """Frames inside ptxvm are left out, unless `--full-trace` asks for them."""
    done = run_pytest("ptxvm.pytest_kernels", FAILING, **{"kernels.ptx": MODULE})
    assert set(done.outcomes.values()) == {"FAILED"}, done.out + done.err
    assert "out-of-bounds: writing 4 bytes" in done.out
    assert "there is no such file in " in done.out
    assert "pytest_kernels.py" not in done.out
    whole = run_pytest("ptxvm.pytest_kernels", FAILING, "--full-trace", **{"kernels.ptx": MODULE})
    assert "pytest_kernels.py" in whole.out

"""The plugin of pytest: what a project's tests see, and which of them fail."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

TESTS = '''
import ctypes
import os
import subprocess
import sys
import pytest

cuda = ctypes.CDLL("libcuda.so.1")
PTX = b"""
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
.visible .entry at_no_memory(.param .u64 data)
{ .reg .b64 %d; mov.u64 %d, 16; st.global.u32 [%d], 1; ret; }
"""

@pytest.fixture(scope="session")
def module():
    context, module = ctypes.c_void_p(), ctypes.c_void_p()
    assert cuda.cuInit(0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    assert cuda.cuModuleLoadData(ctypes.byref(module), PTX) == 0
    return module

def run(module, name):
    kernel, data = ctypes.c_void_p(), ctypes.c_uint64()
    assert cuda.cuModuleGetFunction(ctypes.byref(kernel), module, name) == 0
    assert cuda.cuMemAlloc_v2(ctypes.byref(data), 4 * 64) == 0
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(data))
    assert cuda.cuLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, None, arguments, None) == 0

def test_in_order(module):
    run(module, b"in_order")

@pytest.mark.parametrize("time", [1, 2])
def test_all_at_once(module, time):
    run(module, b"all_at_once")

def test_a_program_of_a_test():
    program = "import ctypes, os; print(ctypes.CDLL('libcuda.so.1').cuInit(0), os.environ['PTXVM_DEVICE'])"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert said.stdout.split() == ["0", "sm_75"], said.stderr
'''


def test_a_test_fails_in_whose_kernel_a_check_finds_an_error(run_pytest):
    """64 threads that write one word race; each test that launches them fails, and the one beside passes."""
    done = run_pytest("ptxvm.pytest_plugin", TESTS, "--ptxvm", "--ptxvm-device=sm_75", "--ptxvm-check=race")
    assert done.outcomes == {
        "test_in_order": "PASSED",
        "test_all_at_once[1]": "FAILED",
        "test_all_at_once[2]": "FAILED",
        "test_a_program_of_a_test": "PASSED",
    }, done.out + done.err
    assert "ptxvm: in kernel all_at_once: race: WAW race" in done.out
    assert (done.code, "1 × T4 (sm_75), checks race" in done.out) == (1, True)


def test_without_checks_only_the_test_itself_decides(run_pytest):
    done = run_pytest("ptxvm.pytest_plugin", TESTS, "--ptxvm", "--ptxvm-device=sm_75")
    assert (done.code, set(done.outcomes.values())) == (0, {"PASSED"}), done.out + done.err


def test_findings_that_are_meant_fail_no_test(run_pytest, tmp_path):
    """By their codes, and by a file: the store stands on line 11 of the module."""
    known = tmp_path / "known.txt"
    for rule, outcome in (("race all_*:11", "PASSED"), ("race all_*:12", "FAILED")):
        known.write_text(rule)
        options = ("--ptxvm", "--ptxvm-device=sm_75", "--ptxvm-check=race", f"--ptxvm-suppress={known}")
        assert run_pytest("ptxvm.pytest_plugin", TESTS, *options).outcomes["test_all_at_once[1]"] == outcome
    options = ("--ptxvm", "--ptxvm-device=sm_75", "--ptxvm-check=all", "--ptxvm-allow=race")
    assert set(run_pytest("ptxvm.pytest_plugin", TESTS, *options).outcomes.values()) == {"PASSED"}


FAILING = (
    TESTS[: TESTS.index("def test_in_order")]
    + """
def test_told(module):
    run(module, b"at_no_memory")
    assert cuda.cuCtxSynchronize() == 700

def test_untold(module):
    run(module, b"at_no_memory")

def test_after_them(module):
    run(module, b"in_order")
    assert cuda.cuCtxSynchronize() == 0

@pytest.fixture
def broken(module):
    run(module, b"at_no_memory")

def test_with_a_fixture(broken):
    pass

def test_at_the_end(module):
    assert cuda.cuCtxSynchronize() == 0
"""
)


def test_a_kernel_that_fails_fails_its_own_test_and_no_later_one(run_pytest):
    """As if each test had a process of its own: on hardware all later calls of the process return the error."""
    done = run_pytest("ptxvm.pytest_plugin", FAILING, "--ptxvm")
    assert {name for name, outcome in done.outcomes.items() if outcome == "PASSED"} == {
        "test_told", "test_after_them", "test_at_the_end"
    }, done.out + done.err  # fmt: skip
    assert {"test_untold", "test_with_a_fixture"} <= done.outcomes.keys()
    assert "ptxvm: a kernel failed: null-pointer: writing 4 bytes at 0x10" in done.out


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--ptxvm-check=race"], "of --ptxvm, which is missing"),
        (["--ptxvm", "--ptxvm-check=rice"], "rice"),
        (["--ptxvm-allow=race"], "--ptxvm-allow is of --ptxvm, which is missing"),
        (["--ptxvm", "--ptxvm-allow=rice"], "rice"),
        (["--ptxvm", "--ptxvm-suppress=none.txt"], "there is no file"),
        (["--ptxvm", "--ptxvm-device=sm_20"], "there is no 'sm_20'; there are sm_75"),
    ],
)
def test_wrong_options_are_refused_before_any_test(run_pytest, options, said):
    done = run_pytest("ptxvm.pytest_plugin", TESTS, *options)
    assert done.code == 4
    assert done.err.startswith("ERROR: ")
    assert said in done.err


def test_pytest_finds_the_plugin_where_ptxvm_is_installed():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {
        "ptxvm": "ptxvm.pytest_plugin",
        "ptxvm-kernels": "ptxvm.pytest_kernels",
    }

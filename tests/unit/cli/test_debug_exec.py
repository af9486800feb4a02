"""`ptxvm debug --exec`: the launches of a program that knows nothing of ptxvm are debugged in its own process."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import ctypes, os
cuda = ctypes.CDLL("libcuda.so.1")
context, module, kernel, data = (ctypes.c_void_p() for _ in range(4))
cuda.cuInit(0)
cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
print(cuda.cuModuleLoadData(ctypes.byref(module), PTX))
cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"five")
cuda.cuMemAlloc_v2(ctypes.byref(data), ctypes.c_size_t(4))
arguments = (ctypes.c_void_p * 1)(ctypes.addressof(data))
for _ in range(2):
    print(cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, arguments, None), cuda.cuCtxSynchronize())
value = ctypes.c_uint32()
cuda.cuMemcpyDtoH_v2(ctypes.byref(value), data, ctypes.c_size_t(4))
print("stored", value.value)
raise SystemExit(3)
"""
FIVE = b"""
.version 6.4
.target sm_75
.address_size 64
.visible .entry five(.param .u64 data)
{
    .reg .b64 %rd;
    .reg .b32 %r;
    ld.param.u64 %rd, [data];
    mov.u32 %r, 5;
    st.global.u32 [%rd], %r;
    ret;
}
"""


def debugged(*options: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    """Debug the program."""
    command = [sys.executable, "-m", "ptxvm", "debug", "--exec", *options, "--", sys.executable, "-c"]
    program = PROGRAM.replace("PTX", repr(FIVE))
    return subprocess.run([*command, program], input=typed, capture_output=True, text=True, check=False, timeout=60)


def test_what_is_changed_in_a_launch_is_what_the_program_reads():
    commands = ("break opcode st.global*", "continue", "print %r", "set %r = 77")
    done = debugged("--batch", *(word for each in commands for word in ("-ex", each)))
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.count("five<<<(1,1,1),(1,1,1)>>> begins.") == 2
    assert done.stdout.count("%r = 0x00000005\n") == 2
    assert "stored 77\n" in done.stdout


def test_quit_ends_the_program():
    done = debugged(typed="print %tid.x\nquit\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("%tid.x = 0\n(ptxvm) quit\n")
    assert "stored" not in done.stdout

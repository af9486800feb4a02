"""A launch computes in the default floating-point environment, whatever its thread has, and gives back what it had.

What is expected is IEEE 754 arithmetic: subnormal numbers kept (PTX 6.4, 9.7.3: no .ftz), the rounding of the instruction.
"""

from __future__ import annotations

import ctypes
import math
import platform
import threading

import numpy as np
import pytest

import ptxvm
from ptxvm.machine.launch_options import LaunchOptions

LIBRARY = ctypes.CDLL(None)
X86 = platform.machine() in ("x86_64", "AMD64")
# Where `fenv_t` of glibc has MXCSR or FPCR; what is changed there: bits that are set, and bits that are cleared.
PLACE = 28 if X86 else 0
CHANGES = {
    "flush to zero": (0x8000, 0) if X86 else (1 << 24, 0),
    "subnormals are zeros": (0x0040, 0) if X86 else (1 << 24, 0),
    "both": (0x8040, 0) if X86 else (1 << 24, 0),
    "round up": (0x4000, 0) if X86 else (1 << 22, 0),
    "round to zero": (0x6000, 0) if X86 else (3 << 22, 0),
    "trap invalid, division by zero and overflow": (0, 0x0680) if X86 else (0x700, 0),
}
CONTROL = 0xFFC0 if X86 else 0x07FF_FF00  # not the sticky flags

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc's fenv_t is known here")


def control() -> int:
    """The control bits of this thread."""
    held = ctypes.create_string_buffer(128)
    LIBRARY.fegetenv(held)
    return int.from_bytes(held[PLACE : PLACE + 4], "little") & CONTROL


class Changed:
    """Another environment for this thread."""

    def __init__(self, change: str) -> None:
        self.set, self.cleared = CHANGES[change]

    def __enter__(self) -> int:
        self.before = ctypes.create_string_buffer(128)
        LIBRARY.fegetenv(self.before)
        other = ctypes.create_string_buffer(self.before.raw, 128)
        word = int.from_bytes(other[PLACE : PLACE + 4], "little") & ~self.cleared | self.set
        other[PLACE : PLACE + 4] = word.to_bytes(4, "little")
        LIBRARY.fesetenv(other)
        return control()

    def __exit__(self, *_: object) -> None:
        LIBRARY.fesetenv(self.before)


SOURCE = """
.version 6.5
.target sm_75
.address_size 64
.global .f64 least = 0d0000000000000001;
.global .f32 third = 0.333333333333333;
.visible .entry k(.param .u64 out, .param .f64 x, .param .f64 y, .param .f32 f, .param .f32 g)
{
    .reg .u64 %o, %z; .reg .f64 %x, %y, %d; .reg .f32 %f, %g, %h; .reg .u32 %i, %j;
    mov.u32 %i, %ctaid.x; mov.u32 %j, %ntid.x; mul.lo.u32 %i, %i, %j; mov.u32 %j, %tid.x; add.u32 %i, %i, %j;
    ld.param.u64 %o, [out]; mad.wide.u32 %o, %i, 64, %o;
    ld.param.f64 %x, [x]; ld.param.f64 %y, [y]; ld.param.f32 %f, [f]; ld.param.f32 %g, [g];
    mul.rn.f64 %d, %x, %y; st.global.f64 [%o], %d;
    add.rn.f64 %d, %x, %y; st.global.f64 [%o+8], %d;
    fma.rn.f64 %d, %x, %x, %y; st.global.f64 [%o+16], %d;
    mul.rn.f32 %h, %f, %g; st.global.f32 [%o+24], %h;
    div.rn.f32 %h, %f, 0f40400000; st.global.f32 [%o+28], %h;
    add.rn.f64 %d, 0d0000000000000003, 0d0000000000000001; st.global.f64 [%o+32], %d;
    cvt.rn.f32.f64 %h, %x; st.global.f32 [%o+40], %h;
    ld.global.f32 %h, [third]; st.global.f32 [%o+44], %h;
    div.rn.f64 %d, 0d3FF0000000000000, 0d0000000000000000; st.global.f64 [%o+48], %d;
    ld.global.f64 %d, [least]; st.global.f64 [%o+56], %d;
    ret;
}
.visible .entry bad(.param .u64 out) { .reg .u64 %o; ld.param.u64 %o, [out]; st.global.u64 [%o+1048576], %o; trap; }
"""
ARGUMENTS = [2.0**-1000, 0.1, 1e-40, 0.3]


def f32(x: float) -> np.float32:
    """The nearest f32."""
    return np.float32(x)


EXPECTED = [
    (np.float64, 0, 2.0**-1000 * 0.1), (np.float64, 8, 0.1), (np.float64, 16, 0.1),
    (np.float32, 24, f32(float(f32(1e-40)) * float(f32(0.3)))), (np.float32, 28, f32(float(f32(1e-40)) / 3)),
    (np.float64, 32, 4 * 5e-324), (np.float32, 40, f32(0)), (np.float32, 44, f32(1 / 3)),
    (np.float64, 48, math.inf), (np.float64, 56, 5e-324),
]  # fmt: skip
ROW = b"".join(held(value).tobytes() for held, _, value in EXPECTED)


def launches(engine: str, *, threads: int | None) -> list[np.ndarray]:
    """What several launches leave, of which the last are repeated ones."""
    kernel, found = ptxvm.load(SOURCE).kernel("k"), []
    for _ in range(5):
        out = np.zeros(64 * 96, np.uint8)
        kernel.launch(3, 32, [out, *ARGUMENTS], engine=engine, threads=threads)
        found.append(out)
    return found


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_launch_has_the_default_environment_and_gives_back_its_threads(change: str, engine: str, threads: int) -> None:
    with Changed(change) as before:
        found = launches(engine, threads=threads)
        after = control()
    assert after == before
    assert all(out.tobytes() == ROW * 96 for out in found)


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_fault_gives_it_back_too(change: str, engine: str) -> None:
    out = np.zeros(1, np.uint64)
    kernel = ptxvm.load(SOURCE).kernel("bad")
    with Changed(change) as before:
        with pytest.raises(ptxvm.Fault):
            kernel.launch(1, 1, [out], engine=engine)
        after = control()
    assert after == before


@pytest.mark.parametrize("change", CHANGES)
def test_code_that_was_compiled_before_runs_in_it_too(change: str) -> None:
    kernel = ptxvm.load(SOURCE).kernel("k")
    out = np.zeros(64 * 96, np.uint8)
    for _ in range(4):
        kernel.launch(3, 32, [out, *ARGUMENTS])
    out[:] = 0
    with Changed(change) as before:
        kernel.launch(3, 32, [out, *ARGUMENTS])
        after = control()
    assert after == before
    assert out.tobytes() == ROW * 96


@pytest.mark.parametrize("change", CHANGES)
def test_repeated_launches_stay_quick_in_it(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptxvm.engine.jit.run.relaunch.limit", lambda _: math.inf)  # on a busy machine they are short too
    kernel, out = ptxvm.load(SOURCE).kernel("k"), np.zeros(64 * 96, np.uint8)
    jit, options = kernel.module.jit, LaunchOptions(3, 32)
    for _ in range(4):
        kernel.launch(3, 32, [out, *ARGUMENTS])
    out[:] = 0
    with Changed(change) as before:
        repeated = jit.repeat(kernel.function, options, [out, *ARGUMENTS])
        after = control()
    assert repeated is not None
    assert after == before
    assert out.tobytes() == ROW * 96


@pytest.mark.parametrize("check", ["memory", "race"])
def test_checked_launches_have_it(check: str) -> None:
    out = np.zeros(64 * 96, np.uint8)
    kernel = ptxvm.load(SOURCE).kernel("k")
    with Changed("both") as before:
        result = kernel.launch(3, 32, [out, *ARGUMENTS], check=[check])
        after = control()
    assert after == before
    assert not result.findings
    assert out.tobytes() == ROW * 96


def test_each_thread_of_the_user_keeps_its_own() -> None:
    seen: list[tuple[int, int, bool]] = []

    def work() -> None:
        with Changed("both") as before:
            found = launches("jit", threads=2)
            seen.append((before, control(), all(out.tobytes() == ROW * 96 for out in found)))

    usual = control()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert control() == usual
    ((before, after, right),) = seen
    assert before == after != usual
    assert right

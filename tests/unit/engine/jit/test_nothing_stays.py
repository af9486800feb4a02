"""What a module took is given back with it: its windows, its program, and what LLVM needed to compile it."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

import numpy as np
import pytest

import ptxvm
from ptxvm.analysis.program import Program
from ptxvm.engine.jit.abi.specialisation import Specialisation, Tier, VersionKind
from ptxvm.engine.jit.objects import codegen
from ptxvm.engine.jit.translate.translation import Translation
from ptxvm.machine.allocation import Allocation

SOURCE = """
    .version 8.0
    .target sm_80
    .address_size 64
    .extern .shared .align 4 .b8 more[];
    .visible .entry k(.param .u64 a) {
        .reg .b64 %d;
        .reg .b32 %r<4>;
        .shared .align 4 .b8 s[49000];
        ld.param.u64 %d, [a];
        mov.u32 %r0, %tid.x;
        st.shared.u32 [s], %r0;
        st.shared.u32 [more], %r0;
        st.global.u32 [%d], %r0;
        ret;
    }
    """


def windows() -> int:
    """The live pieces of shared memory, found or hidden."""
    gc.collect()
    return sum(
        type(each) is Allocation and each.live and bool(each.owners) and each.space == "shared" for each in gc.get_objects()
    )


@pytest.mark.parametrize("check", [None, (), ("race",)], ids=["checked", "trusted", "race"])
@pytest.mark.parametrize("threads", [1, 4])
def test_shared_memory_goes_with_the_module(check: Any, threads: int) -> None:
    before, out = windows(), np.zeros(1, np.uint32)
    for n in range(3):
        kernel = ptxvm.load(SOURCE).kernel()
        for block, shared in ((1, 16), (32, 16), (32, 1024 + n)):
            kernel.launch(4, block, [out], shared=shared, check=check, threads=threads, engine="jit")
    del kernel
    assert windows() == before


def test_short_launches_leave_nothing() -> None:
    before, out = windows(), np.zeros(1, np.uint32)
    kernel = ptxvm.load(SOURCE).kernel()
    for _ in range(6):
        kernel.launch(1, 32, [out], shared=16)
    assert windows() > before
    del kernel
    assert windows() == before


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_the_program_goes_with_the_module(engine: Any) -> None:
    def programs() -> int:
        for _ in range(2):  # the module first, which held its image
            gc.collect()
        return sum(type(each) is Program for each in gc.get_objects())

    before = programs()
    for _ in range(3):
        ptxvm.load(SOURCE).kernel().launch(1, 32, [np.zeros(1, np.uint32)], shared=16, engine=engine)
    assert programs() == before


class Mallinfo(ctypes.Structure):
    """What glibc says of its heap."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
    )


@pytest.mark.parametrize("tier", [Tier.SKETCH, Tier.QUICK])
def test_compiling_leaves_nothing(tier: Tier) -> None:
    """The passes of llvmlite are not freed by themselves: 30 kB for each module that is compiled."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallinfo2"):
        pytest.skip("needs glibc 2.33")
    libc.mallinfo2.restype = Mallinfo
    module = ptxvm.load(SOURCE)
    text, _ = Translation(module.image, Specialisation(module.kernel().function, (32, 1, 1), 16)).text(VersionKind.FIRST)

    def used() -> int:
        gc.collect()
        info = libc.mallinfo2()
        return int(info.uordblks + info.hblkhd)

    for _ in range(10):
        codegen.object_code(text, tier)
    before = used()
    for _ in range(50):
        codegen.object_code(text, tier)
    assert used() - before < 50 * 500

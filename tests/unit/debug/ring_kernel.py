"""A kernel with shared memory, a barrier, divergence and a call, and what it computes."""

from __future__ import annotations

import ptxvm
from ptxvm.debug.session import Session
from ptxvm.machine.launch_options import LaunchOptions

# Each thread stores its number in shared memory; after a barrier the even threads double what the next one has left there,
# the odd ones call a function that adds 100; all store that.  Lines of `.loc` are those of a file that never was.
KERNEL = """.version 8.0
.target sm_80
.address_size 64
.file 1 "ring.cu"
.shared .u32 ring[64];
.global .u32 total;

.func (.reg .u32 %out) hundred(.reg .u32 %in)
{
    .loc 1 30 0
    add.u32 %out, %in, 100;
    .loc 1 31 0
    ret;
}

.visible .entry turn(.param .u64 turn_param_0, .param .u32 turn_param_1)
{
    .reg .pred %p;
    .reg .b32 %r<9>;
    .reg .b64 %rd<4>;
    .loc 1 10 0
    ld.param.u64 %rd1, [turn_param_0];
    ld.param.u32 %r7, [turn_param_1];
    mov.u32 %r1, %tid.x;
    .loc 1 11 0
    mul.lo.u32 %r2, %r1, 4;
    mov.u32 %r3, ring;
    add.u32 %r3, %r3, %r2;
    st.shared.u32 [%r3], %r1;
    .loc 1 12 0
    bar.sync 0;
    .loc 1 13 0
    add.u32 %r4, %r1, 1;
    rem.u32 %r4, %r4, %r7;
    mul.lo.u32 %r4, %r4, 4;
    mov.u32 %r5, ring;
    add.u32 %r5, %r5, %r4;
    ld.shared.u32 %r6, [%r5];
    .loc 1 14 0
    and.b32 %r8, %r1, 1;
    setp.eq.u32 %p, %r8, 1;
    @%p bra ODD;
    .loc 1 15 0
    mul.lo.u32 %r6, %r6, 2;
    bra.uni DONE;
ODD:
    .loc 1 16 0
    call (%r6), hundred, (%r6);
DONE:
    .loc 1 17 0
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r6;
    .loc 1 18 0
    ret;
}
"""
LINES = {text.strip(): number for number, text in enumerate(KERNEL.splitlines(), 1)}
"""The number of each line, by its text; of several equal ones the last."""


def expected() -> list[int]:
    """What the kernel stores, by its description."""
    return [(n + 1) % 64 * 2 if n % 2 == 0 else (n + 1) % 64 + 100 for n in range(64)]


def session_of(text: str, grid: int, block: int, args: list[object]) -> Session:
    """A session over the only kernel of a text."""
    kernel = ptxvm.load(text).kernel()
    return Session(kernel.module.image, kernel.function, LaunchOptions(grid, block), args)

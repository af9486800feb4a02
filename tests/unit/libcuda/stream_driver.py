"""The driver with kernels that wait, for tests of streams and graphs."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import byref, c_uint, c_uint64, c_void_p
from typing import Any

from ptxvm.driver.memory import AllocationKind
from ptxvm.libcuda.library import install
from ptxvm.libcuda.session import session

KERNELS = b"""
.version 7.8
.target sm_80
.address_size 64
.visible .entry await(.param .u64 flag, .param .u32 value)
{
    .reg .pred %p;
    .reg .b32 %r<3>;
    .reg .b64 %rd;
    ld.param.u64 %rd, [flag];
    ld.param.u32 %r1, [value];
again:
    ld.volatile.global.u32 %r2, [%rd];
    setp.ne.u32 %p, %r1, %r2;
    @%p bra again;
    ret;
}
.visible .entry serve(.param .u64 flag, .param .u32 value)
{
    .reg .pred %p;
    .reg .b32 %r<4>;
    .reg .b64 %rd;
    ld.param.u64 %rd, [flag];
    ld.param.u32 %r1, [value];
    ld.global.u32 %r3, [%rd+4];
    add.u32 %r3, %r3, 1;
    st.global.u32 [%rd+4], %r3;
again:
    ld.volatile.global.u32 %r2, [%rd];
    setp.ne.u32 %p, %r1, %r2;
    @%p bra again;
    mul.lo.u32 %r3, %r3, 10;
    st.global.u32 [%rd+4], %r3;
    ret;
}
.visible .entry put(.param .u64 cell, .param .u32 value)
{
    .reg .b32 %r;
    .reg .b64 %rd;
    ld.param.u64 %rd, [cell];
    ld.param.u32 %r, [value];
    st.volatile.global.u32 [%rd], %r;
    ret;
}
.visible .entry append(.param .u64 cell, .param .u32 digit)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd;
    ld.param.u64 %rd, [cell];
    ld.param.u32 %r1, [digit];
    ld.global.u32 %r2, [%rd];
    mad.lo.u32 %r2, %r2, 10, %r1;
    st.global.u32 [%rd], %r2;
    ret;
}
.visible .entry wild() { .reg .b64 %rd; mov.u64 %rd, 64; st.global.u32 [%rd], 1; ret; }
"""


class Driver:
    """The functions of the driver, which raise unless they succeed; two cells of managed memory, `flag` and `cell`."""

    def __init__(self) -> None:
        self.library = install().cuda.loaded
        self.cuInit(0)
        self.cuCtxSetCurrent(self.handle("cuDevicePrimaryCtxRetain", 0))
        self.module = self.handle("cuModuleLoadData", KERNELS)
        self.memory = c_uint64(session().driver.blocks.allocate(8, AllocationKind.MANAGED, 1).address)  # it outlives contexts
        self.flag, self.cell = (c_uint.from_address(self.memory.value + 4 * n) for n in range(2))
        self.flag.value = self.cell.value = 0

    def __getattr__(self, name: str) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            assert self.library[name](*arguments) == 0, name

        return call

    def handle(self, name: str, *arguments: Any) -> c_void_p:
        """What a function makes."""
        made = c_void_p()
        getattr(self, name)(byref(made), *arguments)
        return made

    def stream(self, flags: int = 0) -> c_void_p:
        """A new stream."""
        return self.handle("cuStreamCreate", c_uint(flags))

    def launch(self, stream: c_void_p | None, name: bytes, cell: c_uint | None = None, value: int = 0) -> None:
        """Put a launch on a stream."""
        kernel = self.handle("cuModuleGetFunction", self.module, name)
        arguments: list[Any] = [c_uint64(ctypes.addressof(cell)), c_uint(value)] if cell is not None else []
        pointers = (c_void_p * 2)(*map(ctypes.addressof, arguments))
        self.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, pointers, None)

"""What the driver costs a program: calls of its C functions, and launches of a small kernel, by the processor's clock.

A loop in machine code calls the functions, as a program in C does: what a client's own language adds does not count.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator
from functools import partial

import llvmlite.binding as llvm

from ptxvm.libcuda.library import install

CALLS, LAUNCHES = 5000, 500
NATIVE, THROUGH_PYTHON = 0.1e-6, 2e-6  # seconds that a call may take
LOOP = """
define void @loop(ptr %function, i64 %count, ptr %words) {{
begin:
  br label %again
again:
  %n = phi i64 [ 0, %begin ], [ %next, %again ]
{loads}
  %result = call i32 %function({arguments})
  %next = add i64 %n, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %again, label %end
end:
  ret void
}}
"""
KERNEL = b"""
.version 7.8
.target sm_80
.address_size 64
.visible .entry next(.param .u64 data, .param .u32 n)
{
    .reg .pred %p; .reg .b32 %t, %n; .reg .b64 %d;
    ld.param.u64 %d, [data]; ld.param.u32 %n, [n]; mov.u32 %t, %tid.x; setp.ge.u32 %p, %t, %n; @%p ret;
    mad.wide.u32 %d, %t, 4, %d; ld.global.u32 %t, [%d]; add.u32 %t, %t, 1; st.global.u32 [%d], %t; ret;
}
"""
Cost = tuple[str, str, float, Callable[[], float]]


class Caller:
    """Calls a function of C with the same words, again and again; `words` are its arguments, each of eight bytes."""

    def __init__(self, address: int, words: list[int]) -> None:
        loads = "\n".join(
            f"  %at{n} = getelementptr i64, ptr %words, i64 {n}\n  %word{n} = load i64, ptr %at{n}" for n in range(len(words))
        )
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        arguments = ", ".join(f"i64 %word{n}" for n in range(len(words)))
        module = llvm.parse_assembly(LOOP.format(loads=loads, arguments=arguments))
        machine = llvm.Target.from_default_triple().create_target_machine()
        self.engine = llvm.create_mcjit_compiler(module, machine)
        self.engine.finalize_object()
        prototype = ctypes.CFUNCTYPE(None, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_size_t)
        self.loop = prototype(self.engine.get_function_address("loop"))
        self.address, self.words = address, (ctypes.c_uint64 * max(len(words), 1))(*words)

    def seconds(self, count: int) -> float:
        """Seconds of the processor that one call takes."""
        begun = time.process_time()
        self.loop(self.address, count, ctypes.addressof(self.words))
        return (time.process_time() - begun) / count


def costs() -> Iterator[Cost]:
    """Each cost: what it is of, in a word and in a sentence, its goal in seconds, and a function that measures it."""
    cuda = install().cuda
    out, module, kernel, data = (ctypes.c_uint64() for _ in range(4))
    at = ctypes.addressof(out)
    library = cuda.loaded
    library.cuInit(0)
    library.cuDevicePrimaryCtxRetain(ctypes.byref(out), 0)
    library.cuCtxSetCurrent(out)
    calls: tuple[tuple[str, list[int], float], ...] = (
        ("cuCtxGetCurrent", [at], NATIVE),
        ("cuStreamQuery", [0], NATIVE),
        ("cuDeviceGetAttribute", [at, 16, 0], NATIVE),
        ("cuCtxGetFlags", [at], THROUGH_PYTHON),
    )
    for name, words, goal in calls:
        caller = Caller(cuda.address(name), words)
        yield name, f"a call from C, {'native' if goal == NATIVE else 'through Python'}", goal, partial(caller.seconds, CALLS)
    library.cuModuleLoadData(ctypes.byref(module), KERNEL)
    library.cuModuleGetFunction(ctypes.byref(kernel), module, b"next")
    library.cuMemAlloc_v2(ctypes.byref(data), ctypes.c_size_t(256))
    count = ctypes.c_uint32(64)
    pointers = (ctypes.c_void_p * 2)(ctypes.addressof(data), ctypes.addressof(count))
    launch = Caller(cuda.address("cuLaunchKernel"), [kernel.value, 1, 1, 1, 64, 1, 1, 0, 0, ctypes.addressof(pointers), 0])
    launch.seconds(10)  # what comes later is compiled
    library.cuCtxSynchronize()
    yield "cuLaunchKernel", "a block of 64 threads, from C", 60e-6, partial(launch.seconds, LAUNCHES)


__all__ = ["costs"]

"""The local memory of the threads of a CTA: lines of LLVM assembly that clear it before the CTA begins.

Where the depth of calls has no bound, the stacks are far longer than what threads use of them.  Then the launch record tells
how much was in use so far, and no more is cleared (`node.stack.check` keeps the count).
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxvm.engine.jit.abi.launch_record import offset
from ptxvm.engine.jit.ir.runtime import runtime
from ptxvm.engine.jit.node.context import KernelContext


def cleared(kernel: KernelContext, local: str) -> Iterator[str]:
    """Lines that clear the local memory that begins at an address, and its marks."""
    if not kernel.uses_local:
        return
    size = kernel.local_stride * kernel.threads
    if kernel.unbounded:
        fixed = max((frame.end for frame in kernel.graph.frames if not frame.root.shared), default=0)
        kernel.unit.declare("llvm.umax.i64", "i64", "i64", "i64")
        kernel.unit.helper("ptxvm.clear_stacks", runtime("clear_stacks", stride=kernel.local_stride, threads=kernel.threads))
        yield f"  %stack_used.pointer = getelementptr i8, ptr %ctx, i64 {offset('stack_used')}"
        yield "  %stack_used.at = load ptr, ptr %stack_used.pointer, align 8"
        yield "  %stack_used.more = load i64, ptr %stack_used.at, align 8"
        yield f"  %stack_used = call i64 @llvm.umax.i64(i64 %stack_used.more, i64 {fixed})"
    yield _zeroed(kernel, local, size)
    if kernel.marks_local:
        yield f"  %marks.pointer = getelementptr i8, ptr %ctx, i64 {offset('local_marks')}"
        yield "  %marks.distance = load i64, ptr %marks.pointer, align 8"
        yield f"  %marks = getelementptr i8, ptr {local}, i64 %marks.distance"
        yield _zeroed(kernel, "%marks", size)


def _zeroed(kernel: KernelContext, first: str, size: int) -> str:
    if kernel.unbounded:
        return f"  call void @ptxvm.clear_stacks(ptr {first}, i64 %stack_used)"
    return f"  call void @llvm.memset.p0.i64(ptr {first}, i8 0, i64 {size}, i1 false)"

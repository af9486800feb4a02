"""Non-temporal stores: whole cache lines past the caches, to large memory that a kernel only writes.

An ordinary store first reads the line that it writes, and evicts others.  A kernel that fills more memory than a cache holds
takes up to a third less time without that, and less than half if rows are far apart.  Compilation decides which stores may
be non-temporal (`outputs`); each launch decides whether they are: a bit of the launch record is 0 for each parameter that
points to large memory to which no other parameter points.
"""

from __future__ import annotations

from ptxvm.analysis.outputs import outputs, pointers
from ptxvm.analysis.program import Bound
from ptxvm.analysis.symbols import Variable
from ptxvm.engine.jit.abi.launch_record import MOST_STREAMS
from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.node.context import KernelContext
from ptxvm.engine.jit.node.node import NodeBuilder

LINE = 64  # bytes of a cache line
MOST = 1000  # instructions of a kernel that may be bound by memory; a longer one computes
FENCE = "llvm.x86.sse.sfence"


def streamable(kernel: KernelContext) -> dict[Bound, Variable]:
    """The stores of a kernel that may be non-temporal, with their parameters."""
    if not cpu.has("sse2") or len(kernel.function.instructions) > MOST:
        return {}
    return outputs(kernel.function)


def pointer_offsets(kernel: KernelContext) -> tuple[list[int], list[int]]:
    """The offsets in the bank of all pointers, and of the streamed ones."""
    layout = kernel.image.parameters(kernel.function)
    return [layout.offsets[each] for each in pointers(kernel.function)], [layout.offsets[each] for each in kernel.streamed]


def parameter_bit(at: NodeBuilder, bound: Bound, pieces: list[int]) -> int | None:
    """The bit of a store whose chunks have so many bytes; None if it cannot be non-temporal."""
    parameter = at.kernel.outputs.get(bound)
    if parameter is None or at.mask is not None or at.guard is not None or any(size % LINE for size in pieces):
        return None
    streamed = at.kernel.streamed
    if parameter not in streamed:
        if len(streamed) == MOST_STREAMS:
            return None
        streamed.append(parameter)
    return streamed.index(parameter)


def store(at: NodeBuilder, bit: int, llvm: str, parts: list[tuple[str, str, int]], align: int) -> None:
    """Store vectors (value, pointer, number of elements): non-temporal if the bit says so and all are aligned to lines."""
    code = at.code
    kept = code.emit(f"load i64, ptr {at.kernel.launch_field_pointer(code, 'cached_outputs')}, align 8", pure=False)
    low = code.emit(f"and i64 {code.emit(f'lshr i64 {kept}, {bit}', pure=False)}, 1", pure=False)
    for _, pointer, _ in parts:
        low = code.emit(f"or i64 {low}, {code.emit(f'ptrtoint ptr {pointer} to i64')}", pure=False)
    odd = code.emit(f"and i64 {low}, {LINE - 1}", pure=False)
    past, plain, onward = code.label(), code.label(), code.label()
    code.branch(code.emit(f"icmp eq i64 {odd}, 0", pure=False), past, plain)
    for label, how in ((past, f"{LINE}, !nontemporal !4"), (plain, str(align))):
        code.block(label)
        for value, pointer, total in parts:
            code.run(f"store <{total} x {llvm}> {value}, ptr {pointer}, align {how}")
        code.jump(onward)
    code.block(onward)


def fence(kernel: KernelContext) -> list[str]:
    """The fence after non-temporal stores."""
    if not kernel.outputs:
        return []
    kernel.unit.declare(FENCE, "void")
    return [f"  call void @{FENCE}()"]

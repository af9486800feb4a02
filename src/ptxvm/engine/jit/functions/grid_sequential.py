"""The grid function that runs CTAs one after the other, and the warps of each from barrier to barrier."""

from __future__ import annotations

from collections.abc import Iterator

from ptxvm.engine.jit.abi.launch_record import offset
from ptxvm.engine.jit.abi.states import STUCK
from ptxvm.engine.jit.functions import grid_whole_warps, local_memory
from ptxvm.engine.jit.functions.float_environment import BODY
from ptxvm.engine.jit.ir.runtime import runtime
from ptxvm.engine.jit.memory import barrier_epochs, streaming_stores
from ptxvm.engine.jit.node import counters
from ptxvm.engine.jit.node.context import KernelContext

FIELDS = ("shared", "local", "nctaid.x", "nctaid.y", "row", "ctaid.x", "barriers", "tick", "deadlock", "records", "states")
CTAS = 1 << 16  # the most CTAs between two checks of the clock; Python checks after each piece of the grid
ROUNDS = 1 << 16  # runs of warps from barrier to barrier, between two checks of the clock


def grid_function(kernel: KernelContext, name: str = BODY) -> str:
    """Some CTAs, one after the other (`runtime/grid_sequential.ll`); a CTA's warps in turn, until all have ended."""
    kernel.unit.declare("llvm.ctpop.i32", "i32", "i32")
    kernel.unit.declare("llvm.umin.i64", "i64", "i64", "i64")
    fields = {field.replace(".", "_"): offset(field) for field in FIELDS}
    return runtime(
        "grid_sequential",
        name=name,
        **fields,
        ctas=CTAS,
        ctas_less_1=CTAS - 1,
        clear="\n".join(_clear(kernel)),
        begins="\n".join(counters.grid_begins()),
        ends="\n".join([*counters.grid_ends(kernel), *streaming_stores.fence(kernel)]),
        cta_body=_cta_body(kernel),
    )


def _clear(kernel: KernelContext) -> Iterator[str]:
    """Lines that clear the memory of a CTA before it begins."""
    if kernel.shared_size:
        yield f"  call void @llvm.memset.p0.i64(ptr %shared, i8 0, i64 {kernel.shared_size}, i1 false)"
    yield from local_memory.cleared(kernel, "%local")
    yield barrier_epochs.cta_begins(kernel)


def _cta_body(kernel: KernelContext) -> str:
    """Run the warps of a CTA, in rounds from barrier to barrier where there are any."""
    if kernel.scalar:
        return runtime("threads", threads=kernel.threads)
    waits = any(node.waits for node in kernel.nodes)
    if kernel.straight:
        return grid_whole_warps.rounds(kernel, release_barrier(kernel) if waits else "")
    if not waits:
        return runtime("masked_warps", warps=kernel.warps)
    sizes = {"record_size": kernel.record_size, "states_size": 4 * kernel.warps}
    return runtime("masked_warps_with_barriers", warps=kernel.warps, release=release_barrier(kernel), **sizes)


def release_barrier(kernel: KernelContext) -> str:
    """Release the barrier at which all live warps wait; several barriers are a deadlock."""
    fields = {field: offset(field) for field in ("ayes", "ayes_then", "voters", "voters_then", "rounds")}
    opens = "\n".join(barrier_epochs.barrier_opens(kernel))
    return runtime("release_barrier", **fields, stuck=-STUCK, look=ROUNDS, warps=kernel.warps, opens=opens)

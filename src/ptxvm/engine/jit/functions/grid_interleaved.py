"""The grid function that interleaves resident CTAs: warps yield to each other, and wait at barriers for some threads."""

from __future__ import annotations

from collections.abc import Iterator

from ptxvm.engine.jit.abi.cta_barriers import CtaBarriers
from ptxvm.engine.jit.abi.launch_record import offset
from ptxvm.engine.jit.abi.states import RUNNABLE
from ptxvm.engine.jit.functions import grid_clusters, local_memory
from ptxvm.engine.jit.ir.runtime import runtime
from ptxvm.engine.jit.memory import barrier_epochs, streaming_stores
from ptxvm.engine.jit.node.context import KernelContext
from ptxvm.isa.special_registers import WARP

USED = (
    "shared", "local", "cta_barriers", "row", "ctaid.x", "slot", "records", "resident", "tick", "deadlock", "nctaid.x",
    "nctaid.y", "rows", "saved",
)  # fmt: skip
WARPS_PER_TICK = 1 << 12  # warps that run between two checks of the clock and of interrupts
STALL = "  %stalled = call i1 @ptxvm.clocks.pass(ptr %m)\n  br i1 %stalled, label %bad, label %lives.on"
SETTLE = """\
  %settle.pointer = getelementptr i8, ptr %ctx, i64 {}
  %settle = load ptr, ptr %settle.pointer, align 8
  call void %settle(i64 %slot)"""
MOST_PASSES = 64  # over the warps of a CTA that advances from barrier to barrier, before other CTAs run


def grid_function(kernel: KernelContext) -> str:
    """Run some CTAs side by side (`runtime/grid_interleaved.ll`)."""
    cta_barriers, warps = CtaBarriers(kernel.warps), kernel.warps
    return runtime(
        "grid_interleaved",
        **cta_barriers.offsets,
        **grid_clusters.parts(kernel),
        cta_barriers_size=cta_barriers.size,
        last_warp=warps - 1,
        last_lanes=(1 << (kernel.threads - (warps - 1) * WARP)) - 1,
        settle=SETTLE.format(offset("settle")) if kernel.deferred else "",
        clear="\n".join(cleared_windows(kernel)),
        stall=STALL if kernel.clocked else "  br label %lives.on",
        watch=barrier_epochs.cta_begins(kernel),
        fields="\n".join(f"  %{name}.pointer = getelementptr i8, ptr %ctx, i64 {offset(name)}" for name in USED),
        fence="\n".join(streaming_stores.fence(kernel)),
        cta_size=kernel.cta_size,
        record_size=kernel.record_size,
        records_size=warps * kernel.record_size,
        shared_stride=kernel.shared_stride,
        local_stride=kernel.local_stride * kernel.threads,
        saved_stride=kernel.saved_room * warps * WARP,
        runnable=RUNNABLE,
        passes=MOST_PASSES,
        passes_per_tick=max(1, WARPS_PER_TICK // warps),
    )


def cleared_windows(kernel: KernelContext) -> Iterator[str]:
    """Lines that clear the memory of the CTA that begins in a slot."""
    if kernel.shared_size:
        yield from _of_slot("shared", kernel.shared_stride)
        yield f"  call void @llvm.memset.p0.i64(ptr %shared.own, i8 0, i64 {kernel.shared_size}, i1 false)"
    if kernel.uses_local:
        yield from _of_slot("local", kernel.local_stride * kernel.threads)
        yield from local_memory.cleared(kernel, "%local.own")


def _of_slot(name: str, stride: int) -> Iterator[str]:
    yield f"  %{name}.offset = mul i64 %slot, {stride}"
    yield f"  %{name}.own = getelementptr i8, ptr %{name}, i64 %{name}.offset"

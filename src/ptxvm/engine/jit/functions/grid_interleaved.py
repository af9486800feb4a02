"""The grid function that interleaves resident CTAs: warps yield to each other, and wait at barriers for some threads."""

from __future__ import annotations

from collections.abc import Iterator

from ptxvm.engine.jit.abi.cta_barriers import CtaBarriers
from ptxvm.engine.jit.abi.launch_record import offset
from ptxvm.engine.jit.abi.states import RUNNABLE
from ptxvm.engine.jit.functions import grid_clusters
from ptxvm.engine.jit.ir.runtime import runtime
from ptxvm.engine.jit.memory import barrier_epochs, streaming_stores
from ptxvm.engine.jit.memory.shadow_tags import clear_marks
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
    windows = [("shared", kernel.shared_stride, kernel.shared_size)] if kernel.shared_size else []
    if kernel.uses_local:
        size = kernel.local_stride * kernel.threads
        windows.append(("local", size, size))
    for name, stride, size in windows:
        yield f"  %{name}.offset = mul i64 %slot, {stride}"
        yield f"  %{name}.own = getelementptr i8, ptr %{name}, i64 %{name}.offset"
        yield f"  call void @llvm.memset.p0.i64(ptr %{name}.own, i8 0, i64 {size}, i1 false)"
    if kernel.uses_local:
        yield from clear_marks(kernel, "%local.own", kernel.local_stride * kernel.threads)

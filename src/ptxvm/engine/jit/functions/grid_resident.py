"""The grid function of kernels with spin loops: a CTA runs until it waits for another, which then is resident beside it."""

from __future__ import annotations

from collections.abc import Iterator

from ptxvm.engine.jit.abi import cta_slot
from ptxvm.engine.jit.abi.launch_record import offset
from ptxvm.engine.jit.abi.states import LEFT, PARTED, RUNNABLE, STRAIGHT
from ptxvm.engine.jit.functions.float_environment import BODY
from ptxvm.engine.jit.functions.grid_interleaved import cleared_windows
from ptxvm.engine.jit.functions.grid_sequential import ROUNDS, release_barrier
from ptxvm.engine.jit.ir.runtime import runtime
from ptxvm.engine.jit.memory import barrier_epochs, streaming_stores
from ptxvm.engine.jit.node import counters
from ptxvm.engine.jit.node.context import KernelContext
from ptxvm.isa.special_registers import WARP

USED = (
    "shared", "local", "row", "ctaid.x", "slot", "records", "resident", "tick", "deadlock", "nctaid.x", "nctaid.y", "rows",
    "masked",
)  # fmt: skip
PASSES = 256  # over the warps of a CTA, of which some yield or all come to a barrier, after which other CTAs run


def grid_function(kernel: KernelContext, name: str = BODY, on_fault: str = "good") -> str:
    """Run some CTAs (`runtime/grid_resident.ll`); `on_fault` is the block that ends a CTA with a fault."""
    kernel.unit.declare("llvm.ctpop.i32", "i32", "i32")
    abreast = kernel.width // WARP if kernel.straight else 1
    return runtime(
        "grid_resident",
        name=name,
        on_fault=on_fault,
        fields="\n".join(f"  %{name}.pointer = getelementptr i8, ptr %ctx, i64 {offset(name)}" for name in USED),
        begins="\n".join(counters.grid_begins()),
        ends="\n".join([*counters.grid_ends(kernel), *streaming_stores.fence(kernel)]),
        clear="\n".join(
            [*cleared_windows(kernel), barrier_epochs.cta_begins(kernel, "%shared.own" if kernel.shared_size else "%shared")]
        ),
        restore="\n".join([*_votes(restored=True), *barrier_epochs.cta_resumes(kernel)]),
        keep="\n".join([*_votes(restored=False), *barrier_epochs.cta_waits(kernel)]),
        enter="\n".join(_enter(kernel)),
        release=release_barrier(kernel),
        abreast=abreast,
        barriers=offset("barriers"),
        last_group=kernel.threads // WARP - abreast if kernel.straight else -1,
        cta_size=kernel.cta_size,
        header_size=cta_slot.size(kernel.warps),
        record_size=kernel.record_size,
        records_size=kernel.warps * kernel.record_size,
        shared_size=kernel.shared_size,
        shared_stride=kernel.shared_stride,
        local_stride=kernel.local_stride * kernel.threads,
        left=LEFT,
        look=ROUNDS,
        opened=4 * cta_slot.OPENED,
        parted=PARTED,
        patience="\n".join(barrier_epochs.cta_goes_on(kernel, PASSES)),
        ready=RUNNABLE | PARTED,
        runnable=RUNNABLE,
        states=4 * cta_slot.STATES,
        straight=STRAIGHT if kernel.straight else -1,
        turns=offset("rounds"),
        until_fault="%cta" if kernel.shadow is None else "-1",
        warps=kernel.warps,
    )


def _votes(*, restored: bool) -> Iterator[str]:
    """Lines that copy the votes of a CTA from its slot to the launch record, or back."""
    for n, field in enumerate(cta_slot.VOTES):
        yield from cta_slot.copied(field, "i32", cta_slot.KEPT + n, restored=restored)


def _enter(kernel: KernelContext) -> Iterator[str]:
    """Lines that run a warp outside the straight version, whose code is elsewhere if there is one."""
    arguments = "ptr %ctx, ptr %sites, ptr %record, i32 %w, i32 %x, i32 %y, i32 %z, i32 %state"
    if not kernel.straight:
        yield f"  %one.r = call i32 @warp({arguments}, ptr %sums)"
        return
    yield "  %masked = load ptr, ptr %masked.pointer, align 8"
    yield f"  %one.r = call i32 %masked({arguments})"

"""The function that runs CTAs in turn, and the warps of each in turn, until all have ended or wait at a barrier."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxvm.engine.jit import counting, epochs, straight, streams
from ptxvm.engine.jit.dispatch import STUCK
from ptxvm.engine.jit.record import offset

if TYPE_CHECKING:
    from ptxvm.engine.jit.kernel import Kernel

CTAS = 1 << 16  # that run between two looks at the clock, at most; Python looks when a piece of the grid is done
ROUNDS = 1 << 16  # of warps from barrier to barrier, between two looks at the clock


def grid_function(kernel: Kernel) -> str:
    """Some CTAs, one after the other; a CTA's warps in turn, until all have ended.

    CTAs run in stretches: neighbours in a row, of which only `ctaid.x` is different.  What is written to memory for every
    CTA costs far more than what is computed for it, where kernels wait for memory: stores leave the processor in order.
    """
    kernel.unit.declare("llvm.ctpop.i32", "i32", "i32")
    kernel.unit.declare("llvm.umin.i64", "i64", "i64", "i64")
    clear = ""
    if kernel.shared_size:
        clear += f"  call void @llvm.memset.p0.i64(ptr %shared, i8 0, i64 {kernel.shared_size}, i1 false)\n"
    if kernel.uses_local:
        size = kernel.local_stride * kernel.threads
        clear += f"  call void @llvm.memset.p0.i64(ptr %local, i8 0, i64 {size}, i1 false)\n"
    clear += epochs.cta_begins(kernel)
    arguments = "ptr %ctx, ptr %sites, ptr %own, i32 %w, i32 %x, i32 %y, i32 %z"
    size, warps = kernel.record_size, kernel.warps
    begins, ends = "\n".join(counting.grid_begins()), "\n".join([*counting.grid_ends(kernel), *streams.settled(kernel)])
    head = f"""define i32 @grid(ptr %ctx, ptr %sites, ptr %records, ptr %states, i64 %first, i64 %last) #0 {{
entry:
  %shared.place = getelementptr i8, ptr %ctx, i64 {offset("shared")}
  %shared = load ptr, ptr %shared.place, align 8
  %local.place = getelementptr i8, ptr %ctx, i64 {offset("local")}
  %local = load ptr, ptr %local.place, align 8
  %gx.place = getelementptr i8, ptr %ctx, i64 {offset("nctaid.x")}
  %gx = load i32, ptr %gx.place, align 8
  %gy.place = getelementptr i8, ptr %ctx, i64 {offset("nctaid.y")}
  %gy = load i32, ptr %gy.place, align 8
  %row.place = getelementptr i8, ptr %ctx, i64 {offset("row")}
  %ctaid.x.place = getelementptr i8, ptr %ctx, i64 {offset("ctaid.x")}
  %barriers = getelementptr i8, ptr %ctx, i64 {offset("barriers")}
  %tick.place = getelementptr i8, ptr %ctx, i64 {offset("tick")}
  %tick = load ptr, ptr %tick.place, align 8
  %deadlock.place = getelementptr i8, ptr %ctx, i64 {offset("deadlock")}
  %deadlock = load ptr, ptr %deadlock.place, align 8
  %records.place = getelementptr i8, ptr %ctx, i64 {offset("records")}
  store ptr %records, ptr %records.place, align 8
  %states.place = getelementptr i8, ptr %ctx, i64 {offset("states")}
  store ptr %states, ptr %states.place, align 8
{begins}
  %gx.wide = zext i32 %gx to i64
  %gy.wide = zext i32 %gy to i64
  br label %stretch
stretch:
  %c = phi i64 [ %first, %entry ], [ %c.end, %onward ]
  %x.wide = urem i64 %c, %gx.wide
  %q = udiv i64 %c, %gx.wide
  %y.wide = urem i64 %q, %gy.wide
  %z.wide = udiv i64 %q, %gy.wide
  %x.first = trunc i64 %x.wide to i32
  %y = trunc i64 %y.wide to i32
  %z = trunc i64 %z.wide to i32
  %row = sub i64 %c, %x.wide
  store i64 %row, ptr %row.place, align 8
  %of.row = sub i64 %gx.wide, %x.wide
  %of.all = sub i64 %last, %c
  %since = and i64 %c, {CTAS - 1}
  %of.time = sub i64 {CTAS}, %since
  %fewer = call i64 @llvm.umin.i64(i64 %of.row, i64 %of.all)
  %count = call i64 @llvm.umin.i64(i64 %fewer, i64 %of.time)
  %c.end = add i64 %c, %count
  %count.low = trunc i64 %count to i32
  %x.end = add i32 %x.first, %count.low
  br label %cta
cta:
  %x = phi i32 [ %x.first, %stretch ], [ %x.next, %cta.done ]
{clear}"""
    end = f"""cta.done:
  %x.next = add i32 %x, 1
  %x.all = icmp eq i32 %x.next, %x.end
  br i1 %x.all, label %stretch.end, label %cta
stretch.end:
  %some = and i64 %c.end, {CTAS - 1}
  %looks = icmp eq i64 %some, 0
  br i1 %looks, label %look, label %onward
look:
  store i32 %x, ptr %ctaid.x.place, align 8
  %answer = call i32 %tick()
  %stop = icmp ne i32 %answer, 0
  br i1 %stop, label %bad, label %onward
onward:
  %all = icmp eq i64 %c.end, %last
  br i1 %all, label %good, label %stretch
good:
  br label %end
bad:
  br label %end
end:
  %wrong.all = phi i32 [ 0, %good ], [ 1, %bad ]
{ends}
  ret i32 %wrong.all
}}"""
    waits = any(node.waits for node in kernel.nodes)
    if kernel.straight:
        return head + straight.rounds(kernel, arguments, _release(kernel) if waits else "") + "\n" + end
    if not waits:
        return f"""{head}  br label %warps
warps:
  %w = phi i32 [ 0, %cta ], [ %w.next, %warp.done ]
  %own = getelementptr i8, ptr %records, i64 0
  %r = call i32 @warp({arguments}, i32 0, ptr %sums)
  %wrong = icmp eq i32 %r, -2
  br i1 %wrong, label %bad, label %warp.done
warp.done:
  %w.next = add i32 %w, 1
  %w.all = icmp eq i32 %w.next, {warps}
  br i1 %w.all, label %cta.done, label %warps
{end}"""
    return f"""{head}  call void @llvm.memset.p0.i64(ptr %states, i8 0, i64 {4 * warps}, i1 false)
  br label %round
round:
  store i32 0, ptr %barriers, align 8
  br label %warps
warps:
  %w = phi i32 [ 0, %round ], [ %w.next, %warp.next ]
  %alive = phi i32 [ 0, %round ], [ %alive.next, %warp.next ]
  %state.place = getelementptr i32, ptr %states, i32 %w
  %state = load i32, ptr %state.place, align 4
  %ended = icmp slt i32 %state, 0
  br i1 %ended, label %warp.next, label %warp.run
warp.run:
  %w.wide = zext i32 %w to i64
  %offset = mul i64 %w.wide, {size}
  %own = getelementptr i8, ptr %records, i64 %offset
  %r = call i32 @warp({arguments}, i32 %state, ptr %sums)
  store i32 %r, ptr %state.place, align 4
  %waits = icmp sge i32 %r, 0
  %waits.bit = zext i1 %waits to i32
  %alive.more = or i32 %alive, %waits.bit
  %wrong = icmp eq i32 %r, -2
  br i1 %wrong, label %bad, label %warp.next
warp.next:
  %alive.next = phi i32 [ %alive, %warps ], [ %alive.more, %warp.run ]
  %w.next = add i32 %w, 1
  %w.all = icmp eq i32 %w.next, {warps}
  br i1 %w.all, label %round.end, label %warps
round.end:
{_release(kernel)}
{end}"""


def _release(kernel: Kernel) -> str:
    """All warps that live wait: at one barrier they go on, at several nobody does."""
    lines = []
    for field in ("ayes", "voters"):
        lines += [
            f"  %{field}.place = getelementptr i8, ptr %ctx, i64 {offset(field)}",
            f"  %{field} = load i32, ptr %{field}.place, align 8",
            f"  %{field}.then = getelementptr i8, ptr %ctx, i64 {offset(field + '_then')}",
            f"  store i32 %{field}, ptr %{field}.then, align 8",
            f"  store i32 0, ptr %{field}.place, align 8",
        ]
    return "\n".join(
        [
            *lines,
            "  %met = load i32, ptr %barriers, align 8",
            "  %kinds = call i32 @llvm.ctpop.i32(i32 %met)",
            "  %several = icmp ugt i32 %kinds, 1",
            f"  %stuck = icmp eq i32 %met, {-STUCK}",
            "  %nobody = or i1 %several, %stuck",
            "  br i1 %nobody, label %standstill, label %released",
            "standstill:",
            "  store i32 %x, ptr %ctaid.x.place, align 8",
            "  call void %deadlock()",
            "  br label %bad",
            "released:",
            *epochs.barrier_opens(kernel),
            f"  %rounds.place = getelementptr i8, ptr %ctx, i64 {offset('rounds')}",
            "  %rounds = load i32, ptr %rounds.place, align 8",
            "  %rounds.more = add i32 %rounds, 1",
            "  store i32 %rounds.more, ptr %rounds.place, align 8",
            f"  %rounds.some = and i32 %rounds.more, {ROUNDS - 1}",
            "  %rounds.look = icmp eq i32 %rounds.some, 0",
            "  br i1 %rounds.look, label %look.round, label %again",
            "look.round:",
            "  store i32 %x, ptr %ctaid.x.place, align 8",
            "  %answer.round = call i32 %tick()",
            "  %stop.round = icmp ne i32 %answer.round, 0",
            "  br i1 %stop.round, label %bad, label %again",
            "again:",
            "  %more = icmp ne i32 %alive.next, 0",
            "  br i1 %more, label %round, label %cta.done",
        ]
    )

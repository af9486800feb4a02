"""How a CTA runs in the straight version of a kernel: whole warps abreast, and the others one by one in the masked one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxvm.engine.jit.handover import LEFT
from ptxvm.engine.jit.raw import WARP
from ptxvm.engine.jit.record import offset

if TYPE_CHECKING:
    from ptxvm.engine.jit.kernel import Kernel


def rounds(kernel: Kernel, arguments: str, release: str) -> str:
    """The part of the function of the grid that runs a CTA; `release` is what ends a round, where there are barriers."""
    return _with_barriers(kernel, arguments, release) if release else _without_barriers(kernel, arguments)


def _masked() -> str:
    return f"""  store i32 %x, ptr %ctaid.x.place, align 8
  %masked.place = getelementptr i8, ptr %ctx, i64 {offset("masked")}
  %masked = load ptr, ptr %masked.place, align 8"""


def _without_barriers(kernel: Kernel, arguments: str) -> str:
    from ptxvm.engine.jit.kernel import PARTED  # noqa: PLC0415

    abreast, size, warps = kernel.width // WARP, kernel.record_size, kernel.warps
    return f"""  br label %warps
warps:
  %w.first = phi i32 [ 0, %cta ], [ %w.next, %next ]
  %whole = icmp ule i32 %w.first, {kernel.threads // WARP - abreast}
  br i1 %whole, label %run, label %each, !prof !1
run:
  %w.abreast = add i32 %w.first, {abreast}
  %r = call i32 @warp({_of(arguments, "records", "w.first")}, i32 0, ptr %sums)
  switch i32 %r, label %next [ i32 -2, label %bad i32 {LEFT}, label %each ], !prof !3
each:
  %state = phi i32 [ 0, %warps ], [ {PARTED}, %run ]
  %last.one = phi i32 [ 0, %warps ], [ {abreast - 1}, %run ]
  br label %one
one:
  %n = phi i32 [ 0, %each ], [ %n.next, %one.done ]
  %w = add i32 %w.first, %n
  %n.wide = zext i32 %n to i64
  %offset = mul i64 %n.wide, {size}
  %own = getelementptr i8, ptr %records, i64 %offset
{_masked()}
  %one.r = call i32 %masked({arguments}, i32 %state)
  %wrong = icmp eq i32 %one.r, -2
  br i1 %wrong, label %bad, label %one.done
one.done:
  %n.next = add i32 %n, 1
  %w.apart = add i32 %w.first, %n.next
  %n.all = icmp eq i32 %n, %last.one
  br i1 %n.all, label %next, label %one
next:
  %w.next = phi i32 [ %w.abreast, %run ], [ %w.apart, %one.done ]
  %w.all = icmp uge i32 %w.next, {warps}
  br i1 %w.all, label %cta.done, label %warps"""


def _with_barriers(kernel: Kernel, arguments: str, release: str) -> str:
    from ptxvm.engine.jit.kernel import PARTED, STRAIGHT  # noqa: PLC0415

    abreast, size, warps = kernel.width // WARP, kernel.record_size, kernel.warps
    every = f"<{abreast} x i32>"
    return f"""  call void @llvm.memset.p0.i64(ptr %states, i8 0, i64 {4 * warps}, i1 false)
  br label %round
round:
  store i32 0, ptr %barriers, align 8
  br label %warps
warps:
  %w = phi i32 [ 0, %round ], [ %w, %left ], [ %w.next, %next ]
  %alive = phi i32 [ 0, %round ], [ %alive, %left ], [ %alive.next, %next ]
  %state.place = getelementptr i32, ptr %states, i32 %w
  %state = load i32, ptr %state.place, align 4
  %ended = icmp slt i32 %state, 0
  br i1 %ended, label %next, label %alive.still
alive.still:
  %w.wide = zext i32 %w to i64
  %offset = mul i64 %w.wide, {size}
  %own = getelementptr i8, ptr %records, i64 %offset
  %fresh = icmp eq i32 %state, 0
  %whole = icmp ule i32 %w, {kernel.threads // WARP - abreast}
  %begins = and i1 %fresh, %whole
  %goes.on = icmp uge i32 %state, {STRAIGHT}
  %straight = or i1 %begins, %goes.on
  br i1 %straight, label %run, label %one, !prof !1
run:
  %r = call i32 @warp({arguments}, i32 %state, ptr %sums)
  switch i32 %r, label %run.done [ i32 -2, label %bad i32 {LEFT}, label %left ], !prof !3
left:
  store {every} splat (i32 {PARTED}), ptr %state.place, align 4
  br label %warps
run.done:
  %one.of = insertelement {every} poison, i32 %r, i64 0
  %each.of = shufflevector {every} %one.of, {every} poison, {every} zeroinitializer
  store {every} %each.of, ptr %state.place, align 4
  br label %ran
one:
{_masked()}
  %one.r = call i32 %masked({arguments}, i32 %state)
  store i32 %one.r, ptr %state.place, align 4
  %wrong = icmp eq i32 %one.r, -2
  br i1 %wrong, label %bad, label %ran
ran:
  %answer.r = phi i32 [ %r, %run.done ], [ %one.r, %one ]
  %step = phi i32 [ {abreast}, %run.done ], [ 1, %one ]
  %waits = icmp sge i32 %answer.r, 0
  %waits.bit = zext i1 %waits to i32
  %alive.more = or i32 %alive, %waits.bit
  br label %next
next:
  %by = phi i32 [ 1, %warps ], [ %step, %ran ]
  %alive.next = phi i32 [ %alive, %warps ], [ %alive.more, %ran ]
  %w.next = add i32 %w, %by
  %w.all = icmp uge i32 %w.next, {warps}
  br i1 %w.all, label %round.end, label %warps
round.end:
{release}"""


def _of(arguments: str, record: str, warp: str) -> str:
    return arguments.replace("%own", f"%{record}").replace("i32 %w,", f"i32 %{warp},")

"""The second look at an access: compiled code that searches the memory which the launch knows, before it asks Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxvm.engine.jit.raw import WARP
from ptxvm.engine.jit.record import REACHED, WRITABLE, offset

if TYPE_CHECKING:
    from ptxvm.engine.jit.kernel import Kernel

NAME = "ptxvm.look"
PARAMETERS = "ptr %ctx, ptr %sites, i32 %site, ptr %addresses, i32 %mask, i32 %warp, i64 %size, i64 %span, i64 %need"


def need(space: str, *, writing: bool) -> int:
    """The flags that a row must have for an access."""
    return REACHED[space] | (WRITABLE if writing else 0)


def helper(kernel: Kernel) -> str:
    """The function of a kernel that looks; its name.

    It takes the addresses of a warp and the mask of the lanes that count.  Where one allocation holds all of them, it
    becomes the one that this place of the code met last.  A generic address, or one of a parameter of a function, may
    also be in the thread's own local memory.
    """
    check = offset("check")
    kernel.unit.declare("llvm.cttz.i64", "i64", "i64", "i1 immarg")
    own = "<" + ", ".join(f"i64 {n}" for n in range(WARP)) + ">"
    return kernel.unit.helper(
        NAME,
        f"""define internal i32 @{NAME}({PARAMETERS}) noinline #0 {{
entry:
  %a = load <{WARP} x i64>, ptr %addresses, align 8
  %rows.place = getelementptr i8, ptr %ctx, i64 {offset("rows")}
  %rows = load ptr, ptr %rows.place, align 8
  %count.place = getelementptr i8, ptr %ctx, i64 {offset("row_count")}
  %count = load i64, ptr %count.place, align 8
  %low.bits = sub i64 %size, 1
{_splat("low", "%low.bits")}
  br label %head
head:
  %r = phi i64 [ 0, %entry ], [ %r.next, %next ]
  %left = phi i32 [ %mask, %entry ], [ %left.next, %next ]
  %some = icmp ult i64 %r, %count
  br i1 %some, label %row, label %local
row:
  %start.place = getelementptr [4 x i64], ptr %rows, i64 %r
  %start = load i64, ptr %start.place, align 8
  %end.place = getelementptr i8, ptr %start.place, i64 8
  %end = load i64, ptr %end.place, align 8
  %origin.place = getelementptr i8, ptr %start.place, i64 16
  %origin = load i64, ptr %origin.place, align 8
  %flags.place = getelementptr i8, ptr %start.place, i64 24
  %flags = load i64, ptr %flags.place, align 8
  %has = and i64 %flags, %need
  %reached = icmp eq i64 %has, %need
  %room = sub i64 %end, %start
  %large = icmp uge i64 %room, %size
  %usable = and i1 %reached, %large
  br i1 %usable, label %test, label %next
test:
  %last = sub i64 %room, %size
{_splat("start.all", "%start")}
{_splat("last.all", "%last")}
{_splat("origin.all", "%origin")}
  %from = sub <{WARP} x i64> %a, %start.all
  %inside = icmp ule <{WARP} x i64> %from, %last.all
  %distance = sub <{WARP} x i64> %a, %origin.all
  %odd = and <{WARP} x i64> %distance, %low
  %aligned = icmp eq <{WARP} x i64> %odd, zeroinitializer
  %good = and <{WARP} x i1> %inside, %aligned
  %bits = bitcast <{WARP} x i1> %good to i{WARP}
  %bad = xor i32 %bits, -1
  %others = and i32 %mask, %bad
  %fewer = and i32 %left, %bad
  %whole = icmp eq i32 %others, 0
  br i1 %whole, label %remember, label %fewer.test
remember:
  %up = add i64 %start, 15
  %first = and i64 %up, -16
  %rest = sub i64 %end, %first
  %fits = icmp sge i64 %rest, %size
  %small = icmp ule i64 %size, 16
  %same = icmp eq i64 %first, %start
  %simple = or i1 %small, %same
  %keeps = and i1 %fits, %simple
  br i1 %keeps, label %write, label %fine
write:
  %log = call i64 @llvm.cttz.i64(i64 %size, i1 true)
  %room.one = sub i64 %rest, %size
  %steps.one = lshr i64 %room.one, %log
  %bound.one = add i64 %steps.one, 1
  %room.all = sub i64 %room.one, %span
  %steps.all = lshr i64 %room.all, %log
  %bound.some = add i64 %steps.all, 1
  %spans = icmp uge i64 %room.one, %span
  %bound.all = select i1 %spans, i64 %bound.some, i64 0
  %site.wide = zext i32 %site to i64
  %own = getelementptr [4 x i64], ptr %sites, i64 %site.wide
  store i64 %first, ptr %own, align 8
  %own.all = getelementptr i8, ptr %own, i64 8
  store i64 %bound.all, ptr %own.all, align 8
  %own.one = getelementptr i8, ptr %own, i64 16
  store i64 %bound.one, ptr %own.one, align 8
  br label %fine
fewer.test:
  %none = icmp eq i32 %fewer, 0
  br i1 %none, label %fine, label %next
next:
  %left.next = phi i32 [ %left, %row ], [ %fewer, %fewer.test ]
  %r.next = add i64 %r, 1
  br label %head
local:
  %local.place = getelementptr i8, ptr %ctx, i64 {offset("local")}
  %local.start = load i64, ptr %local.place, align 8
  %any = icmp ne i64 %local.start, 0
  %generic = and i64 %need, {REACHED["generic"] | REACHED["param"]}
  %asks = icmp ne i64 %generic, 0
  %stack.room = icmp ule i64 %size, {kernel.stack_size}
  %may.0 = and i1 %any, %asks
  %may = and i1 %may.0, %stack.room
  br i1 %may, label %mine, label %ask
mine:
  %warp.wide = zext i32 %warp to i64
  %warp.offset = mul i64 %warp.wide, {WARP * kernel.local_stride}
  %warp.start = add i64 %local.start, %warp.offset
{_splat("warp.all", "%warp.start")}
  %lane.offset = mul <{WARP} x i64> {own}, splat (i64 {kernel.local_stride})
  %lane.start = add <{WARP} x i64> %warp.all, %lane.offset
  %deep = sub <{WARP} x i64> %a, %lane.start
  %deepest = sub i64 {kernel.stack_size}, %size
{_splat("deepest.all", "%deepest")}
  %in.stack = icmp ule <{WARP} x i64> %deep, %deepest.all
  %odd.stack = and <{WARP} x i64> %deep, %low
  %even.stack = icmp eq <{WARP} x i64> %odd.stack, zeroinitializer
  %good.stack = and <{WARP} x i1> %in.stack, %even.stack
  %bits.stack = bitcast <{WARP} x i1> %good.stack to i{WARP}
  %bad.stack = xor i32 %bits.stack, -1
  %left.stack = and i32 %left, %bad.stack
  %stack.all = icmp eq i32 %left.stack, 0
  br i1 %stack.all, label %fine, label %ask
ask:
  %check.place = getelementptr i8, ptr %ctx, i64 {check}
  %check = load ptr, ptr %check.place, align 8
  %answer = call i32 %check(i32 %site, ptr %addresses, i32 %left, i32 %warp)
  ret i32 %answer
fine:
  ret i32 0
}}""",
    )


def _splat(name: str, scalar: str) -> str:
    one = f"  %{name}.one.lane = insertelement <{WARP} x i64> poison, i64 {scalar}, i64 0"
    zeros = f"<{WARP} x i32> zeroinitializer"
    return f"{one}\n  %{name} = shufflevector <{WARP} x i64> %{name}.one.lane, <{WARP} x i64> poison, {zeros}"

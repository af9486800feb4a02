"""Epochs of a watched kernel: the driver counts them, at the start of a CTA and at barriers where all its threads meet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxvm.algebra.types import u32
from ptxvm.engine.jit.code import Code
from ptxvm.engine.jit.raw import WARP, Lin, Raw
from ptxvm.engine.jit.record import offset
from ptxvm.engine.jit.shadow import EPOCH, GRAIN, Shadow

if TYPE_CHECKING:
    from ptxvm.engine.jit.emitter import Emitter
    from ptxvm.engine.jit.kernel import Kernel

ALL = (1 << 32) - 1  # lanes
LAST = (1 << 32) - 4 * EPOCH  # from this tag on epochs are numbered anew


def cta_begins(kernel: Kernel) -> str:
    """Nothing of this CTA is in the tags; its shared memory has none."""
    if kernel.shadow is None or not kernel.shadow.checks & {"race", "init", "sync"}:
        return ""
    kernel.unit.helper("ptxvm.epoch", _next_epoch(kernel, kernel.shadow))
    size = GRAIN * -(-kernel.shared_size // kernel.shadow.grain[True])
    return f"  call void @ptxvm.epoch(ptr %ctx, i1 true, ptr %shared, i64 {size})\n"


def barrier_opens(kernel: Kernel) -> list[str]:
    """A barrier lets the CTA go on."""
    if kernel.shadow is None or not kernel.shadow.checks & {"race", "sync"}:
        return []
    return ["  call void @ptxvm.epoch(ptr %ctx, i1 false, ptr %shared, i64 0)"]


def warp_waits(kernel: Kernel, code: Code, lanes: str | None) -> None:
    """Lanes of a warp, or of several, come to a barrier; `lanes` is a mask, None for all."""
    if kernel.shadow is None or not kernel.shadow.checks & {"race", "sync"}:
        return
    word = f"i{kernel.width}"
    count = str(kernel.width)
    if lanes is not None:
        count = code.intrinsic(word, f"llvm.ctpop.{word}", (word, lanes))
        if kernel.width != 32:
            count = code.emit(f"{'trunc' if kernel.width > 32 else 'zext'} {word} {count} to i32")
    came = kernel.field(code, "came")
    before = code.emit(f"load i32, ptr {came}, align 8", pure=False)
    code.run(f"store i32 {code.emit(f'add i32 {before}, {count}')}, ptr {came}, align 8")
    if "sync" in kernel.shadow.checks and lanes is not None:
        first = code.emit(f"mul i32 %warp, {WARP}")
        rest = code.emit(f"sub i32 {kernel.threads}, {first}")
        whole = code.intrinsic("i32", "llvm.umin.i32", ("i32", rest), ("i32", str(kernel.width)))
        good = code.label()
        code.branch(code.emit(f"icmp eq i32 {count}, {whole}"), good, "suspect", likely=True)
        code.block(good)


def warp_is_apart(kernel: Kernel, code: Code, masks: list[str]) -> None:
    """Lanes of a warp wait at several barriers of the CTA: `masks` tells who waits at each."""
    if kernel.shadow is None or "sync" not in kernel.shadow.checks or len(masks) < 2:
        return
    places = "0"
    for mask in masks:
        there = code.emit(f"icmp ne i32 {mask}, 0", pure=False)
        places = code.emit(f"add i32 {places}, {code.emit(f'zext i1 {there} to i32', pure=False)}", pure=False)
    good = code.label()
    code.branch(code.emit(f"icmp ule i32 {places}, 1", pure=False), good, "suspect", likely=True)
    code.block(good)


def lanes_meet(at: Emitter, members: Raw | None) -> None:
    """Lanes come to a collective; without `members` to one for which some may have to wait.

    Nothing is wrong where each names those who come with it, of the lanes that there are (PTX 9.7.13.2).
    """
    kernel, code = at.kernel, at.code
    if kernel.shadow is None or "sync" not in kernel.shadow.checks:
        return
    good = code.label()
    if members is None:
        code.branch("false", good, "suspect")
        code.block(good)
        return
    rest, there = kernel.threads % WARP, Lin(ALL)
    if rest:
        last = code.emit(f"icmp eq i32 %warp, {kernel.warps - 1}")
        there = Lin(code.emit(f"select i1 {last}, i32 {(1 << rest) - 1}, i32 -1"))
    named = at.alg.integer("and", u32, members, there)
    wrong = at.alg.compare("ne", u32, named, at.active_raw())
    if isinstance(wrong, Lin) and wrong.constant == 0:
        return
    bits = code.emit(f"and i32 {at.bits_of(wrong)}, {at.active_text()}")
    code.branch(code.emit(f"icmp eq i32 {bits}, 0"), good, "suspect", likely=True)
    code.block(good)


def suspect(kernel: Kernel) -> list[str]:
    """The end of a warp in which something is suspicious."""
    if kernel.shadow is None:
        return []
    code = Code(kernel.unit)
    code.block("suspect")
    code.run(f"store i32 1, ptr {kernel.field(code, 'suspicion')}, align 8")
    code.jump("fault")
    return code.lines


def _next_epoch(kernel: Kernel, shadow: Shadow) -> str:
    """The function that begins an epoch, if all threads of the CTA have met, and tells if they have not."""
    kernel.unit.declare("llvm.memset.p0.i64", "void", "ptr", "i8", "i64", "i1 immarg")
    wanted = ("epoch", "cta_epoch", "came", "suspicion", "renumber", "shadow", "reads")
    places = "\n".join(f"  %{name}.place = getelementptr i8, ptr %ctx, i64 {offset(name)}" for name in wanted)
    partly = "store i32 1, ptr %suspicion.place, align 8" if "sync" in shadow.checks else ""
    shift = (GRAIN // shadow.grain[True]).bit_length() - 1
    return f"""define internal void @ptxvm.epoch(ptr %ctx, i1 %cta, ptr %shared, i64 %cells) noinline #0 {{
entry:
{places}
  %came = load i32, ptr %came.place, align 8
  store i32 0, ptr %came.place, align 8
  %all = icmp eq i32 %came, {kernel.threads}
  %none = icmp eq i32 %came, 0
  %next = or i1 %all, %cta
  br i1 %next, label %begin, label %wait
wait:
  br i1 %none, label %end, label %partly
partly:
  {partly}
  br label %end
begin:
  %old = load i32, ptr %epoch.place, align 8
  %new = add i32 %old, {EPOCH}
  store i32 %new, ptr %epoch.place, align 8
  %full = icmp ugt i32 %new, {LAST}
  br i1 %full, label %renumber, label %numbered
renumber:
  %function = load ptr, ptr %renumber.place, align 8
  call void %function()
  br label %numbered
numbered:
  br i1 %cta, label %fresh, label %end
fresh:
  %now = load i32, ptr %epoch.place, align 8
  store i32 %now, ptr %cta_epoch.place, align 8
  %start = ptrtoint ptr %shared to i64
  %turned = shl i64 %start, {shift}
  %moved = load i64, ptr %shadow.place, align 8
  %wrote = add i64 %turned, %moved
  %wrote.place = inttoptr i64 %wrote to ptr
  %distance = load i64, ptr %reads.place, align 8
  %read.place = getelementptr i8, ptr %wrote.place, i64 %distance
  call void @llvm.memset.p0.i64(ptr %wrote.place, i8 0, i64 %cells, i1 false)
  call void @llvm.memset.p0.i64(ptr %read.place, i8 0, i64 %cells, i1 false)
  br label %end
end:
  ret void
}}"""

"""Epochs of an instrumented kernel: a new one begins with each CTA, and at each barrier of all its threads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce

from ptxvm.algebra.types import u32
from ptxvm.engine.jit.abi import cta_slot
from ptxvm.engine.jit.abi.launch_record import offset
from ptxvm.engine.jit.ir.builder import Code
from ptxvm.engine.jit.ir.lane_values import Affine, Raw
from ptxvm.engine.jit.ir.runtime import runtime
from ptxvm.engine.jit.memory import mbarrier_checks, told_order
from ptxvm.engine.jit.memory.pending_copies import header_size
from ptxvm.engine.jit.memory.tags import EPOCH, LAST, NEVER
from ptxvm.engine.jit.node.context import KernelContext
from ptxvm.engine.jit.node.instrumentation import GRAIN, Shadow
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.engine.jit.values.exchange import lane_numbers
from ptxvm.isa.special_registers import WARP

ALL = (1 << 32) - 1  # lanes
COUNT_BITS = 16  # of the threads that have arrived at barriers with one reduction: there are at most four, with none


def cta_begins(kernel: KernelContext, shared: str = "%shared") -> str:
    """Begin a CTA: its epoch is new, its shared memory has no tags, and its threads have done nothing yet.

    The CTAs of a cluster, which begin before any of them runs, have one epoch.
    """
    unset, copies = kernel.unset_registers, header_size(kernel) if kernel.logs_copies else 0
    masks = unset.size(kernel.warps_together) if unset is not None else 0
    own = "\n".join([*_masks_of_slot(kernel, "%slot"), ""])
    return own + _new_epoch(kernel, shared) + _cleared("register_masks", masks) + _cleared("copies", copies)


def cta_resumes(kernel: KernelContext) -> Iterator[str]:
    """Lines with which a CTA runs in its slot, for the first time or after others."""
    if not kernel.runs_beside:
        return
    yield from _masks_of_slot(kernel, "%s")
    yield from cta_slot.copied("arrived", "i64", cta_slot.ARRIVED, restored=True)
    yield f"  %met.slot = getelementptr i32, ptr %m, i64 {cta_slot.MET}"
    yield from told_order.resumes(kernel, "%met.slot")


def cta_goes_on(kernel: KernelContext, passes: int) -> Iterator[str]:
    """Lines that set whether a CTA goes on after a pass over its warps, or others run first."""
    if not kernel.follows_fences or not kernel.runs_beside:
        yield f"  %patient = icmp ult i32 %pass.next, {passes}"
        return
    yield f"  %few.passes = icmp ult i32 %pass.next, {passes}"
    yield f"  %tells.pointer = getelementptr i8, ptr %ctx, i64 {offset('tells')}"
    yield "  %tells = load i32, ptr %tells.pointer, align 8"
    yield "  %silent = icmp eq i32 %tells, 0"
    yield "  %patient = and i1 %few.passes, %silent"


def cta_waits(kernel: KernelContext) -> Iterator[str]:
    """Lines with which a CTA leaves its slot to itself, until others have run."""
    if kernel.runs_beside:
        yield from cta_slot.copied("arrived", "i64", cta_slot.ARRIVED, restored=False)
        yield from cta_slot.copied("met", "i32", cta_slot.MET, restored=False)


def _masks_of_slot(kernel: KernelContext, slot: str) -> Iterator[str]:
    """Lines that set where the masks of registers are of the CTA in a slot, if several CTAs have some."""
    if not kernel.runs_beside or kernel.unset_registers is None:
        return
    yield f"  %masks.first.pointer = getelementptr i8, ptr %ctx, i64 {offset('first_masks')}"
    yield "  %masks.first = load ptr, ptr %masks.first.pointer, align 8"
    yield f"  %masks.distance = mul i64 {slot}, {kernel.unset_registers.size(kernel.warps)}"
    yield "  %masks.own = getelementptr i8, ptr %masks.first, i64 %masks.distance"
    yield f"  %masks.own.pointer = getelementptr i8, ptr %ctx, i64 {offset('register_masks')}"
    yield "  store ptr %masks.own, ptr %masks.own.pointer, align 8"


def _cleared(field: str, size: int) -> str:
    """Clear memory that a field of the launch record points to: it is about the threads of one CTA."""
    if not size:
        return ""
    return (
        f"  %{field}.pointer = getelementptr i8, ptr %ctx, i64 {offset(field)}\n"
        f"  %{field} = load ptr, ptr %{field}.pointer, align 8\n"
        f"  call void @llvm.memset.p0.i64(ptr %{field}, i8 0, i64 {size}, i1 false)\n"
    )


def _new_epoch(kernel: KernelContext, shared: str) -> str:
    if kernel.shadow is None or not (kernel.clocked or kernel.shadow.checks & {"race", "init", "sync"}):
        return ""
    _define(kernel, kernel.shadow)
    if kernel.clocked:
        return "  call void @ptxvm.clocks.begin(ptr %ctx, ptr %m, ptr %shared, i64 %slot)\n" + mbarrier_checks.cta_begins(
            kernel
        )
    size = GRAIN * -(-kernel.shared_together // kernel.shadow.grain[True])
    is_first = "  %is.first = icmp eq i64 %slot, 0\n" if kernel.cluster_size > 1 else ""
    begins = "%is.first" if is_first else "true"
    return f"{is_first}  call void @ptxvm.epoch(ptr %ctx, i1 {begins}, ptr {shared}, i64 {size})\n"


def barrier_opens(kernel: KernelContext) -> list[str]:
    """Begin an epoch where a barrier opens."""
    if kernel.shadow is None or not kernel.shadow.checks & {"race", "sync"}:
        return []
    _define(kernel, kernel.shadow)
    return ["  call void @ptxvm.epoch(ptr %ctx, i1 false, ptr %shared, i64 0)"]


def warp_waits(kernel: KernelContext, code: Code, waiting: Mapping[str, str | None]) -> None:
    """Count lanes that arrive at a barrier; `waiting` has masks of lanes by the reduction of their barrier, None for all."""
    if not waiting or kernel.shadow is None or kernel.clocked or not kernel.shadow.checks & {"race", "sync"}:
        return
    arrived = kernel.launch_field_pointer(code, "arrived")
    now = code.emit(f"load i64, ptr {arrived}, align 8", pure=False)
    for operation, lanes in waiting.items():
        count = code.emit(f"zext i32 {_count(kernel, code, lanes)} to i64")
        place = COUNT_BITS * kernel.reductions.index(operation)
        now = code.emit(f"add i64 {now}, {code.emit(f'shl i64 {count}, {place}')}")
    code.run(f"store i64 {now}, ptr {arrived}, align 8")
    if "sync" in kernel.shadow.checks and None not in waiting.values():
        first = code.emit(f"mul i32 %warp, {WARP}")
        rest = code.emit(f"sub i32 {kernel.threads}, {first}")
        whole = code.intrinsic("i32", "llvm.umin.i32", ("i32", rest), ("i32", str(kernel.width)))
        counts = [code.emit(f"icmp eq i32 {_count(kernel, code, lanes)}, {whole}") for lanes in waiting.values()]
        good = code.label()
        code.branch(reduce(lambda one, other: code.emit(f"or i1 {one}, {other}"), counts), good, "suspect", likely=True)
        code.block(good)


def _count(kernel: KernelContext, code: Code, lanes: str | None) -> str:
    """The number of lanes in a mask; all lanes of the warps that run together for None."""
    if lanes is None:
        return str(kernel.width)
    word = f"i{kernel.width}"
    count = code.intrinsic(word, f"llvm.ctpop.{word}", (word, lanes))
    return count if kernel.width == 32 else code.emit(f"{'trunc' if kernel.width > 32 else 'zext'} {word} {count} to i32")


def warp_arrives(at: NodeBuilder, numbers: str, counts: str) -> None:
    """Suspect lanes that arrive at a barrier for some threads, unless they are a whole warp that comes in its turn."""
    if not at.kernel.clocked:
        return
    arguments = f"ptr %cta_barriers, i32 %warp, i32 {at.active_text()}, ptr {numbers}, ptr {counts}"
    at.suspect_where(at.code.emit(f"call i1 @ptxvm.clocks.arrive({arguments})", pure=False))


def warp_arrives_at_cluster(at: NodeBuilder, *, releases: bool) -> None:
    """Suspect lanes that arrive at the barrier of the cluster, unless they are a whole warp that comes in its turn."""
    _at_cluster(at, "arrive", f", i1 {str(releases).lower()}")


def warp_waits_for_cluster(at: NodeBuilder) -> None:
    """The same of lanes that wait there."""
    _at_cluster(at, "wait", "")


def _at_cluster(at: NodeBuilder, step: str, more: str) -> None:
    if not at.kernel.clocked:
        return
    arguments = f"ptr %cta_barriers, i32 %warp, i32 {at.active_text()}{more}"
    at.suspect_where(at.code.emit(f"call i1 @ptxvm.clocks.cluster.{step}({arguments})", pure=False))


def warp_is_apart(kernel: KernelContext, code: Code, masks: list[str]) -> None:
    """Suspect lanes of a warp that wait at several barriers; `masks` are the lanes that wait at each."""
    if kernel.shadow is None or "sync" not in kernel.shadow.checks or len(masks) < 2:
        return
    fields = "0"
    for mask in masks:
        there = code.emit(f"icmp ne i32 {mask}, 0", pure=False)
        fields = code.emit(f"add i32 {fields}, {code.emit(f'zext i1 {there} to i32', pure=False)}", pure=False)
    good = code.label()
    code.branch(code.emit(f"icmp ule i32 {fields}, 1", pure=False), good, "suspect", likely=True)
    code.block(good)


def lanes_meet(at: NodeBuilder, members: Raw | None, *, whole: bool = False) -> None:
    """Suspect lanes at a collective whose member masks differ from the lanes that arrive; without `members`, always.

    A mask must name the live lanes that arrive together (PTX 9.7.13.2), or all lanes if the warp must be `whole`.
    """
    kernel, code = at.kernel, at.code
    if kernel.shadow is None or "sync" not in kernel.shadow.checks:
        return
    if members is None:
        good = code.label()
        code.branch("false", good, "suspect")
        code.block(good)
        return
    rest, there = kernel.threads % WARP, Affine(ALL)
    if rest and not whole:
        last = code.emit(f"icmp eq i32 %warp, {kernel.warps - 1}")
        there = Affine(code.emit(f"select i1 {last}, i32 {(1 << rest) - 1}, i32 -1"))
    named, here = at.alg.integer("and", u32, members, there), at.active_raw()
    if isinstance(members, Affine) and not members.terms:
        at.suspect_if(at.alg.compare("ne", u32, named, here))
        return
    # Masks may be of parts of the warp: each names lanes that are here, the lane itself among them.
    absent = at.alg.integer("and", u32, named, at.alg.integer("xor", u32, here, Affine(ALL)))
    at.suspect_if(at.alg.compare("ne", u32, absent, Affine(0)))
    lanes_meant(at, lane_numbers(at.alg.width), members)


def lanes_meant(at: NodeBuilder, lane: Raw, members: Raw) -> None:
    """Suspect a lane of a collective that reads from a lane which its mask does not name."""
    if at.kernel.shadow is None or "sync" not in at.kernel.shadow.checks:
        return
    bit = at.alg.integer(
        "and", u32, at.alg.integer("shr", u32, members, at.alg.integer("and", u32, lane, Affine(31))), Affine(1)
    )
    at.suspect_if(at.alg.compare("eq", u32, bit, Affine(0)))


def suspect(kernel: KernelContext) -> list[str]:
    """The block that reports a suspicion and ends the warp."""
    if kernel.shadow is None:
        return []
    code = Code(kernel.unit)
    code.block("suspect")
    code.run(f"store i32 1, ptr {kernel.launch_field_pointer(code, 'suspicion')}, align 8")
    code.jump("fault")
    return code.lines


def _all_arrived(kernel: KernelContext) -> str:
    """The lines that set `%all` if all threads of the CTA have arrived at barriers with one reduction."""
    lines, found = [], "false"
    for n in range(len(kernel.reductions) or 1):
        lines.append(f"  %all.{n} = icmp eq i64 %arrived, {kernel.threads << COUNT_BITS * n}")
        lines.append(f"  %any.{n} = or i1 {found}, %all.{n}")
        found = f"%any.{n}"
    return "\n".join([*lines, f"  %all = or i1 false, {found}"])


def _define(kernel: KernelContext, shadow: Shadow) -> None:
    """Define what is called where a CTA begins, and where a barrier opens: without tags and clocks nothing is numbered."""
    made = _next_epoch(kernel, shadow) if shadow.tags or kernel.clocked else _agreement(kernel)
    kernel.unit.helper("ptxvm.epoch", made)


def _agreement(kernel: KernelContext) -> str:
    """The runtime function that reports if only some threads of the CTA have arrived."""
    return runtime("barrier_agreement", arrived=offset("arrived"), suspicion=offset("suspicion"), whole=_all_arrived(kernel))


def _next_epoch(kernel: KernelContext, shadow: Shadow) -> str:
    """The runtime function that begins an epoch if all threads of the CTA have arrived, and reports if only some have."""
    kernel.unit.declare("llvm.memset.p0.i64", "void", "ptr", "i8", "i64", "i1 immarg")
    wanted = ("epoch", "cta_epoch", "arrived", "suspicion", "renumber", "shadow", "reads", "met")
    fields = "\n".join(f"  %{name}.pointer = getelementptr i8, ptr %ctx, i64 {offset(name)}" for name in wanted)
    return runtime(
        "next_epoch",
        fields=fields,
        told=told_order.met(kernel),
        whole=_all_arrived(kernel),
        partly="store i32 1, ptr %suspicion.pointer, align 8" if "sync" in shadow.checks else "",
        epoch_step=EPOCH,
        last_epoch=LAST // 2 if kernel.clocked else LAST,  # which a CTA with clocks must not reach, once it has begun
        never=NEVER & 0xFF if shadow.init else 0,
        shift=(GRAIN // shadow.grain[True]).bit_length() - 1,
    )

"""What threads tell each other by fences and strong accesses, noted by instrumented code (PTX 8.8).

Each fence, strong access and barrier is noted with its time, in the order in which they happen.  The time is the epoch of the
tags that accesses leave: barriers and fences advance it.  Where a tag is of an access that barriers do not show to be ordered
before this one, the host is asked: it finds from the notes what this thread knows (`checks.told_order`).

A note has an address, or a mask of lanes; a time; a thread, or a warp; what happened; and when the CTA met last.  The notes
begin behind a header, and behind them is a table, by times, of what the host has found: a stamp, and the warp whose accesses
at that time a warp with this stamp knows.

Where CTAs wait for each other, a tag of reads by several CTAs has a number in place of a time, that of a set of CTAs and of the
times of their last reads.  Behind the table are words, by these numbers and then by times: the tag that takes the place of
such a tag, or of one of a CTA at that time, when the CTA that runs now reads the cell, and the time for which that holds.
"""

from __future__ import annotations

from ptxvm.algebra.memory_order import Order, Scope
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import u32
from ptxvm.analysis.program import Bound
from ptxvm.engine.jit.abi.launch_record import offset
from ptxvm.engine.jit.ir.builder import Unit
from ptxvm.engine.jit.ir.lane_values import Raw
from ptxvm.engine.jit.ir.runtime import runtime
from ptxvm.engine.jit.memory.addressing import Addressing
from ptxvm.engine.jit.memory.tags import CROWD, EPOCH, LAST, MANY
from ptxvm.engine.jit.node.context import KernelContext
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.isa.effects import Access, Verb
from ptxvm.isa.special_registers import WARP
from ptxvm.isa.summary import orders_lanes

MOST = 1 << 20  # notes
STAMPS = 64  # bytes in front of the stamps of warps
HEADER, NOTE = STAMPS + 4 * WARP, 24  # bytes
TIMES = 1 << 18  # for which there is a word that tells whose accesses are known
MOST_READERS = 1 << 16  # sets of CTAs for which there is a tag
ALL = EPOCH - 1  # in such a word: the accesses of all warps, not of one
CTA, BARRIER, LANES, FENCE = range(4)  # what happened that is no access ...
RESUMES = 1 << 30  # ... and that the CTA in a slot goes on after others, or has just begun there
READS, WRITES, RELEASES, ACQUIRES, UPDATES, SC, RANK, SIZE = 1 << 2, 1 << 3, 1 << 4, 1 << 5, 1 << 6, 1 << 7, 8, 12
"""What an access or a fence does, and the lowest bits of the rank of its scope, and of the bytes of an element."""


OBSERVING = 9  # the buffer of the lanes of a strong load that may observe a strong write
CHANGES = 1 << 16  # a bit beside the number of a warp that asks: it is about to write ...
JOINS = 1 << 17  # ... it reads, and asks for the new tags of reads; where the tag says who has read, and in place of cells


def code_of(order: Order | None, scope: Scope | None, *, verb: Verb | None = None, size: int = 0) -> int:
    """The number that says what a strong access, or a fence, does."""
    does = FENCE if verb is None else (READS if verb is not Verb.WRITE else 0) | (WRITES if verb is not Verb.READ else 0)
    order = order or Order.RELAXED
    does |= (RELEASES if order.releases else 0) | (ACQUIRES if order.acquires else 0)
    does |= SC if order is Order.SC else 0
    return does | (scope or Scope.SYS).rank << RANK | size << SIZE


def fence(at: NodeBuilder, order: Order, scope: Scope) -> None:
    """Note a fence of the active lanes."""
    if at.kernel.follows_fences:
        _step(at, at.active_text(), code_of(order, scope))


def lanes_meet(at: NodeBuilder, bound: Bound, members: Raw) -> None:
    """Note that lanes of the warp meet, where that orders their accesses and the lanes are those that each names."""
    if at.kernel.follows_fences and orders_lanes(bound.i):
        whole = at.alg.known(u32, members) == (0xFFFF_FFFF,) * at.width
        if whole:
            _step(at, at.active_text(), LANES)


def may_observe(at: NodeBuilder) -> None:
    """The lanes of a strong access may observe a strong write, unless `observes` tells otherwise."""
    if at.kernel.follows_fences:
        at.code.run(f"store i32 -1, ptr {at.buffer('i32', OBSERVING)}, align 4")


def observes(at: NodeBuilder, lanes: str, *, first: bool) -> None:
    """Some lanes of a strong load may observe a strong write in a cell; the others load what a weak store has written."""
    if not at.kernel.follows_fences:
        return
    buffer, found = at.buffer("i32", OBSERVING), at.code.mask_bits(lanes)
    if not first:
        found = at.code.emit(f"or i32 {found}, {at.code.emit(f'load i32, ptr {buffer}, align 4', pure=False)}")
    at.code.run(f"store i32 {found}, ptr {buffer}, align 4")


def accessed(at: NodeBuilder, addressing: Addressing, bound: Bound, access: Access, space: Space, raw: Raw) -> None:
    """Note a strong access of the active lanes."""
    kernel, code = at.kernel, at.code
    if not kernel.follows_fences or not access.strong or access.mbarrier is not None or space is Space.LOCAL:
        return
    _define(kernel)
    lanes = at.code.emit(f"load i32, ptr {at.buffer('i32', OBSERVING)}, align 4", pure=False)
    lanes = at.code.emit(f"and i32 {lanes}, {at.active_text()}")
    pointers = addressing.pointers(space, raw)
    addresses = code.emit(f"ptrtoint <{WARP} x ptr> {pointers} to <{WARP} x i64>")
    for n in range(access.count):
        moved = addresses
        if n:
            moved = code.emit(f"add <{WARP} x i64> {addresses}, splat (i64 {n * access.element})")
        what = code_of(access.order, access.scope, verb=access.verb, size=access.element)
        if access.verb is Verb.UPDATE:
            what = what | UPDATES if bound.i.destinations() else (what | UPDATES) & ~READS  # a reduction learns nothing
        arguments = f"ptr %ctx, <{WARP} x i64> {moved}, i32 {lanes}, i32 {kernel.warp_among}, i32 {what}"
        at.suspect_where(code.emit(f"call i1 @ptxvm.told.accessed({arguments})", pure=False))


def met(kernel: KernelContext) -> str:
    """Lines that note that a CTA begins, or that its threads meet."""
    if not kernel.follows_fences:
        return ""
    _define(kernel)
    lines = (
        "  %now.met = load i32, ptr %epoch.pointer, align 8",
        "  store i32 %now.met, ptr %met.pointer, align 8",
        "  %told.full = call i1 @ptxvm.told.met(ptr %ctx, i1 %cta)",
        "  %told.suspicion = zext i1 %told.full to i32",
        "  %told.before = load i32, ptr %suspicion.pointer, align 8",
        "  %told.both = or i32 %told.before, %told.suspicion",
        "  store i32 %told.both, ptr %suspicion.pointer, align 8",
    )
    return "\n".join(lines)


def resumes(kernel: KernelContext, kept: str) -> list[str]:
    """Lines that note that a CTA runs, for the first time or after others; its slot has what is `kept` at an address."""
    if not kernel.follows_fences:
        return []
    _define(kernel)
    return [f"  call void @ptxvm.told.resume(ptr %ctx, ptr {kept}, i64 %s)"]


def _step(at: NodeBuilder, lanes: str, what: int) -> None:
    _define(at.kernel)
    arguments = f"ptr %ctx, i32 {lanes}, i32 {at.kernel.warp_among}, i32 {what}"
    at.suspect_where(at.code.emit(f"call i1 @ptxvm.told.step({arguments})", pure=False))


def _define(kernel: KernelContext) -> None:
    unit = kernel.unit
    unit.declarations["llvm.cttz.i32"] = "declare i32 @llvm.cttz.i32(i32, i1 immarg)"
    unit.declare("llvm.ctpop.i32", "i32", "i32")
    unit.helper("ptxvm.told.note", functions())


def functions() -> str:
    """The runtime functions that note."""
    return runtime(
        "told_order",
        told=offset("told"),
        epoch=offset("epoch"),
        step=EPOCH,
        last=LAST,
        header=HEADER,
        note=NOTE,
        most=MOST,
        reads=READS,
        reads_or_writes=READS | WRITES,
        releases=RELEASES,
        met=offset("met"),
        stamps=STAMPS,
        cta=CTA,
        barrier=BARRIER,
        resumes=RESUMES,
        cta_epoch=offset("cta_epoch"),
        tells=offset("tells"),
        writes=WRITES,
        suspicion=offset("suspicion"),
    )


def asked(unit: Unit, count: int) -> str:
    """Define the function that asks the host which of so many accesses are unordered; returns its name."""
    unit.declare(f"llvm.vector.reduce.or.v{count}i8", "i8", f"<{count} x i8>")
    unit.helper(f"ptxvm.told.known.{count}", runtime("told_known", gather=_gather(unit, count, "i32"), **_places(count)))
    return unit.helper(f"ptxvm.told.ask.{count}", runtime("told_ask", **_places(count)))


def joined(unit: Unit, count: int) -> str:
    """Define the function that finds the new tags of so many reads; returns its name."""
    asked(unit, count)
    unit.declare("llvm.umax.i32", "i32", "i32", "i32")
    text = runtime("told_join", gather=_gather(unit, count, "i64"), **_places(count))
    return unit.helper(f"ptxvm.told.join.{count}", text)


def _gather(unit: Unit, count: int, one: str) -> str:
    vector, mask = f"<{count} x {one}>", f"<{count} x i1>"
    name = f"llvm.masked.gather.v{count}{one}.v{count}p0"
    unit.declarations[name] = f"declare {vector} @{name}(<{count} x ptr>, i32 immarg, {mask}, {vector})"
    return name


def _places(count: int) -> dict[str, int]:
    table = HEADER + NOTE * MOST
    return {
        "n": count, "told": offset("told"), "grid": offset("grid_epoch"), "ask": offset("ask_order"), "epoch": offset("epoch"),
        "header": STAMPS, "table": table, "times": TIMES, "shift": EPOCH.bit_length() - 1, "every": ALL, "many": MANY,
        "crowd": CROWD, "readers": table + 4 * TIMES, "most": MOST_READERS, "joined": MOST_READERS + TIMES, "joins": JOINS,
        "first": HEADER, "note": NOTE, "barrier": BARRIER, "met": offset("met"), "cta": offset("cta_epoch"),
    }  # fmt: skip

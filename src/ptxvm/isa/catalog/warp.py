"""Warp shuffles and votes, exchange between the lanes (PTX 9.7.9.5, 9.7.9.6, 9.7.13.8 to 9.7.13.14)."""

from __future__ import annotations

from collections.abc import Callable

from ptxvm.algebra.derived.floats import absolute_value, canonical_nan, is_nan, maximum, minimum
from ptxvm.algebra.ports import Peers
from ptxvm.algebra.types import s32, u32
from ptxvm.algebra.value import Value, select
from ptxvm.diagnostics import Severity
from ptxvm.isa.access import before_hopper, has, no_address
from ptxvm.isa.model import Decoded, Problem, instruction
from ptxvm.isa.special_registers import WARP


def removed_on_volta(i: Decoded) -> str | None:
    """Without .sync the instruction is gone from PTX 6.4 on for sm_70 and later."""
    if i.version >= (6, 4) and i.target.number >= 70:
        return (
            f"Instruction '{i.form.opcode}' without '.sync' is not supported on .target sm_70 and higher "
            "from PTX ISA version 6.4"
        )
    return None


def lanes_may_have_diverged(i: Decoded) -> Problem:
    """Without .sync lanes that have diverged take no part, and sm_70 and later may let lanes diverge anywhere."""
    said = f"Instruction '{i.form.opcode}' without '.sync' may produce unpredictable results on sm_70 and later architectures"
    return Problem("P2203", said, severity=Severity.WARNING, help=f"write `{i.form.opcode}.sync` and a mask of lanes")


def deprecated_without_sync(i: Decoded) -> Problem | None:
    """Without .sync the instruction is deprecated from PTX 6.0 on."""
    if i.version < (6, 0):
        return None
    said = f"Instruction '{i.form.opcode}' without '.sync' is deprecated since PTX ISA version 6.0"
    ptxas = f"{said} and will be discontinued in a future PTX ISA version"
    return Problem("P2204", said, severity=Severity.WARNING, ptxas=ptxas)


# ── shfl ────────────────────────────────────────────────────────────────────────────────


def source_lane(i: Decoded, lane: Value, b: Value, c: Value) -> tuple[Value, Value]:
    """The lane that is read, and whether it is in range; the own lane where it is not.

    `c` packs a clamp (bits 0-4) and a mask (8-12) of the bits that number the segments of the warp.
    """
    lane, b, c = lane.view(s32), b.view(s32), c.view(s32)
    offset, clamp, segment = b & 31, c & 31, c >> 8 & 31
    most = (lane & segment) | (clamp & ~segment)
    least = lane & segment
    match i.mode:
        case "up":
            source = lane - offset
            valid = source >= most
        case "down":
            source = lane + offset
            valid = source <= most
        case "bfly":
            source = lane ^ offset
            valid = source <= most
        case _:
            source = least | (offset & ~segment)
            valid = source <= most
    return select(valid, source, lane).view(u32), valid


@instruction(
    """
    shfl.mode.b32  d{|p}, a, b, c;
    .mode = { .up, .down, .bfly, .idx };
    """,
    section="9.7.9.5",
    types="d: b32 plain, p: pred plain sink, a: b32 plain passed, *: b32 plain",
    needs={"": "PTX 3.0, sm_30"},
)
def shfl(i, a, b, c, warp):
    """Read a register of another lane among those that execute this; `p` tells whether the lane was in range."""
    source, valid = source_lane(i, warp.lane, b, c)
    return warp.together(a).at(source, meant=True), valid


@has(no_address("a", "b", "c", "membermask", when=before_hopper))
@instruction(
    """
    shfl.sync.mode.b32  d{|p}, a, b, c, membermask;
    .mode = { .up, .down, .bfly, .idx };
    """,
    section="9.7.9.6",
    types="d: b32 plain, p: pred plain sink, a: b32 plain passed, *: b32 plain, membermask: u32 plain mask",
    needs={"": "PTX 6.0, sm_30"},
)
def shfl_sync(i, a, b, c, membermask, warp):
    """Wait for the lanes of the mask, and read a register of one of them; `p` tells whether the lane was in range."""
    peers = yield warp.converge(membermask, a)
    source, valid = source_lane(i, warp.lane, b, c)
    return peers.at(source, meant=True), valid


# ── vote ────────────────────────────────────────────────────────────────────────────────


def verdict(i: Decoded, peers: Peers) -> Value:
    """What the lanes have voted."""
    ballot, members = peers.ballot(), peers.members
    if i.ballot:
        return ballot
    unanimous = ballot.eq(members)
    if i.mode == "uni":
        return unanimous | ballot.eq(0)
    return unanimous if i.mode == "all" else ballot.ne(0)


@instruction(
    """
    vote.mode.pred   d, {!}a;
    vote.ballot.b32  d, {!}a;
    .mode = { .all, .any, .uni };
    """,
    section="9.7.13.8",
    types="d: type plain mask, a: pred plain",
    needs={"": "PTX 1.2, sm_12", ".ballot": "PTX 2.0, sm_20"},
)
def vote(i, a, warp):
    """Combine a predicate of the lanes that execute this: all, any, all alike, or a bit for each."""
    return verdict(i, warp.together(a))


@has(no_address("membermask", when=before_hopper))
@instruction(
    """
    vote.sync.mode.pred   d, {!}a, membermask;
    vote.sync.ballot.b32  d, {!}a, membermask;
    .mode = { .all, .any, .uni };
    """,
    section="9.7.13.9",
    types="d: type plain mask, a: pred plain, membermask: u32 plain mask",
    needs={"": "PTX 6.0, sm_30"},
)
def vote_sync(i, a, membermask, warp):
    """Wait for the lanes of the mask, and combine a predicate of them: all, any, all alike, or a bit for each."""
    return verdict(i, (yield warp.converge(membermask, a)))


for old in (shfl, vote):
    old.rule("P2201")(removed_on_volta)
    old.rule("P2203")(lanes_may_have_diverged)
    old.rule("P2204")(deprecated_without_sync)


# ── match ───────────────────────────────────────────────────────────────────────────────


def alike(a: Value, peers: Peers, lane: Value) -> Value:
    """One bit for each member that gave the same value as this lane."""
    mask = lane.lift(0)
    for n in range(WARP):
        mask = mask | select(peers.at(lane.lift(n)).eq(a), lane.lift(1 << n), 0)
    return mask & peers.members


@has(no_address("a", "membermask", when=before_hopper))
@instruction(
    """
    match.any.sync.type  d{|p}, a, membermask;
    .type = { .b32, .b64 };
    """,
    section="9.7.13.10",
    types="d: u32 plain mask, p: pred plain sink, a: type plain, membermask: u32 plain mask",
    needs={"": "PTX 6.0, sm_70"},
)
def match_any_sync(i, a, membermask, warp):
    """Wait for the lanes of the mask; a bit for each that has the same value as this one."""
    peers = yield warp.converge(membermask, a)
    mask = alike(a, peers, warp.lane)
    return mask, mask.eq(peers.members)


@match_any_sync.rule("P2202")
def predicate_of_any(i):
    """.any gives no predicate."""
    if (p := i.shape("p")) is not None and p.kind != "sink":
        return "Predicate output not allowed for instruction 'match.any'"
    return None


@has(no_address("a", "membermask", when=before_hopper))
@instruction(
    """
    match.all.sync.type  d{|p}, a, membermask;
    .type = { .b32, .b64 };
    """,
    section="9.7.13.10",
    types="d: u32 plain mask sink, p: pred plain sink, a: type plain, membermask: u32 plain mask",
    needs={"": "PTX 6.0, sm_70"},
)
def match_all_sync(i, a, membermask, warp):
    """Wait for the lanes of the mask; their mask where all have the same value, and 0 where not; `p` tells which."""
    peers = yield warp.converge(membermask, a)
    same = alike(a, peers, warp.lane).eq(peers.members)
    return select(same, peers.members, 0), same


# ── activemask, redux, elect ────────────────────────────────────────────────────────────


@instruction("activemask.b32 d;", section="9.7.13.11", types="d: b32 plain mask", needs={"": "PTX 6.2, sm_30"})
def activemask(i, warp):
    """One bit for each lane that executes this now."""
    return warp.active()


def members_reduced(a: Value, peers: Peers, lane: Value, operation: Callable[[Value, Value], Value]) -> Value:
    """Combine what the members gave by an operation that gives the same whatever the order, and twice the same."""
    total = a
    for n in range(WARP):
        total = operation(total, peers.at(lane.lift(n)))  # the own value where lane n takes no part
    return total


def members_summed(a: Value, peers: Peers, lane: Value, operation: Callable[[Value, Value], Value]) -> Value:
    """The same for operations where a value must not count twice."""
    total = a.lift(0)
    for n in range(WARP):
        takes_part = (peers.members >> n & 1).ne(0)
        total = operation(total, select(takes_part, peers.at(lane.lift(n)), 0))
    return total


@has(no_address("a", "membermask", when=before_hopper))
@instruction(
    """
    redux.sync.op.type  d, a, membermask;
    .op   = { .add, .min, .max };
    .type = { .u32, .s32 };
    """,
    section="9.7.13.12",
    types="*: type plain scalar, membermask: u32 plain mask",
    needs={"": "PTX 7.0, sm_80"},
)
def redux_sync(i, a, membermask, warp):
    """Wait for the lanes of the mask, and add their values, or find the least or greatest."""
    peers = yield warp.converge(membermask, a)
    if i.op == "add":
        return members_summed(a, peers, warp.lane, lambda x, y: x + y)
    return members_reduced(a, peers, warp.lane, Value.min if i.op == "min" else Value.max)


@has(no_address("a", "membermask", when=before_hopper))
@instruction(
    """
    redux.sync.op.b32  d, a, membermask;
    .op = { .and, .or, .xor };
    """,
    section="9.7.13.12",
    types="*: u32 plain, membermask: u32 plain mask",
    needs={"": "PTX 7.0, sm_80"},
)
def redux_sync_bits(i, a, membermask, warp):
    """Wait for the lanes of the mask, and join the bits of their values."""
    peers = yield warp.converge(membermask, a)
    if i.op == "xor":
        return members_summed(a, peers, warp.lane, Value.__xor__)
    return members_reduced(a, peers, warp.lane, Value.__and__ if i.op == "and" else Value.__or__)


@instruction(
    """
    redux.sync.op{.abs}{.NaN}.f32  d, a, membermask;
    .op = { .min, .max };
    """,
    section="9.7.13.12",
    types="*: f32 plain, membermask: u32 plain mask",
    needs={"": "PTX 8.6, sm_100f"},
)
def redux_sync_f32(i, a, membermask, warp):
    """Wait for the lanes of the mask, and find the least or greatest of their numbers.

    .abs takes their magnitudes; .NaN makes the result NaN where one of them is.
    """
    if i.abs:
        a = absolute_value(a)
    peers = yield warp.converge(membermask, a, is_nan(a))
    result = members_reduced(a, peers, warp.lane, minimum if i.op == "min" else maximum)
    if i.NaN:
        result = select(peers.ballot(1).ne(0), a.lift(float("nan")), result)
    return canonical_nan(result)


@instruction(
    "elect.sync d|p, membermask;",
    section="9.7.13.14",
    types="d: u32 plain sink, p: pred plain, membermask: u32 plain mask",
    needs={"": "PTX 8.0, sm_90"},
)
def elect_sync(i, membermask, warp):
    """Wait for the lanes of the mask, and choose one: `d` is its number, `p` is true there. Here it is the lowest."""
    peers = yield warp.converge(membermask)
    members = peers.members
    lowest = members & -members
    leader = lowest.lift(31) - lowest.clz()
    return leader, leader.eq(warp.lane)

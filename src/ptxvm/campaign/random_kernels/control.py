"""Where control goes in random kernels."""

from __future__ import annotations

import enum
from functools import lru_cache

from ptxvm.campaign.random_kernels import clusters, strategies as st
from ptxvm.campaign.random_kernels.columns import column
from ptxvm.campaign.random_kernels.compiled import counted, reduction, tile, walk
from ptxvm.campaign.random_kernels.memory import DOUBLES, WIDE, WRAPS, access, atomic, copy, row
from ptxvm.campaign.random_kernels.operand_classes import on_class
from ptxvm.campaign.random_kernels.parts import ALL, MOVES, Block, D, P, R, Shape, Statement, Strategy, filled, pure
from ptxvm.campaign.random_kernels.rows import row_walk
from ptxvm.campaign.random_kernels.shared import bulk_copy, cells, histogram, tickets
from ptxvm.campaign.random_kernels.warps import BARRIERS, NOBODY, collective, exchange, inside, meeting
from ptxvm.dataclass import dataclass

CONDITION = st.builds("@{}{}".format, st.sampled_from(["", "!"]), P)

POSITIONS = [
    "setp.lt.u32 %zc@n, %thread, {near};", "setp.ge.u32 %zc@n, %n0, {near};", "setp.eq.u32 %zc@n, %n1, {few};",
    "setp.lt.u32 %zc@n, %n5, %many;", "and.b32 %t0, %thread, {bit};\nsetp.ne.u32 %zc@n, %t0, 0;",
    "setp.lt.and.u32 %zc@n, %thread, {near}, {p};", "setp.eq.u32 %zc@n, %thread, 0;", "setp.gt.u32 %zc@n, %few, {few};",
    "mov.u32 %t0, %laneid;\nsetp.lt.u32 %zc@n, %t0, {near};", "mov.u32 %t0, %ctaid.x;\nsetp.eq.u32 %zc@n, %t0, {few};",
]  # fmt: skip
"""Conditions of where a thread is in its CTA and its grid, and of parameters: most of those that compilers write."""


@st.composite
def condition(draw: st.Draw) -> tuple[str, str]:
    """Lines that compute a condition, and its guard: a predicate of the kernel, or where a thread is."""
    if draw(st.booleans()):
        return "", draw(CONDITION)
    near, few, bit = (
        draw(st.sampled_from(each)) for each in ([1, 5, 16, 31, 32, 33, 64, 100], [0, 1, 2, 3], [1, 2, 8, 16, 32, 64])
    )
    lines = draw(st.sampled_from(POSITIONS)).format(near=near, few=few, bit=bit, p=draw(P))
    return f"{lines}\n", draw(st.sampled_from(["@%zc@n", "@!%zc@n"]))


# ── calls ───────────────────────────────────────────────────────────────────────────────

POINTERS = [
    "mov.u64 %t1, f0;\nGUARD mov.u64 %t1, f1;\nhow@n: .calltargets f0, f1;",
    "mov.u64 %t1, f1;\nGUARD mov.u64 %t1, f0;\nhow@n: .callprototype (.reg .b32 _) _ (.reg .b32 _, .reg .b32 _);",
    """and.b32 %t0, INDEX, 1;
    mov.u64 %t1, pointers;
    mad.wide.u32 %t1, %t0, 8, %t1;
    ld.global.u64 %t1, [%t1];
    how@n: .callprototype (.reg .b32 _) _ (.reg .b32 _, .reg .b32 _);""",
]
"""Where a pointer comes from, which may differ from lane to lane."""


@st.composite
def call(draw: st.Draw) -> Statement:
    """A call: by name, of a function with `.param` variables of several words, or through a pointer."""
    arguments, guard = f"({draw(R)}, {draw(R)})", draw(st.one_of(st.just(""), CONDITION))
    match draw(st.sampled_from(["name", "structure", "words", "pointer", "pointer"])):
        case "name":
            return Statement(f"{guard} call ({draw(R)}), f{draw(st.integers(0, 1))}, {arguments};")
        case "structure":
            return Statement(
                f".param .b32 back@n;\n.param .align 8 .b8 given@n[16];\nst.param.v2.b32 [given@n], {{{draw(R)}, {draw(R)}}};\n"
                f"st.param.b64 [given@n+8], {draw(D)};\ncall (back@n), f2, (given@n);\nld.param.b32 {draw(R)}, [back@n];"
            )
        case "words":
            return Statement(
                f".param .align 4 .b8 back@n[8], pair@n[8];\n.param .b32 own@n;\n.param .b64 wide@n;\n"
                f"st.param.b32 [own@n], {draw(R)};\n{guard} st.param.b32 [own@n], {draw(R)};\n"
                f"st.param.b32 [pair@n], {draw(R)};\nst.param.b32 [pair@n+4], {draw(R)};\nst.param.b64 [wide@n], {draw(D)};\n"
                f"call (back@n), f4, (own@n, pair@n, wide@n);\n"
                f"ld.param.b32 {draw(R)}, [back@n];\nld.param.b32 {draw(R)}, [back@n+4];"
            )
        case _:
            pointer = draw(st.sampled_from(POINTERS)).replace("GUARD", draw(CONDITION)).replace("INDEX", draw(R))
            return Statement(f"{pointer}\n{guard} call ({draw(R)}), %t1, {arguments}, how@n;")


# ── branches ────────────────────────────────────────────────────────────────────────────


@st.composite
def branch(draw: st.Draw, inner: Strategy[Block]) -> Statement:
    """An if, with or without an else, of lanes that part."""
    lines, guard = draw(condition())
    if draw(st.booleans()):
        return Statement(f"{lines}{guard} bra END@n;\n{{0}}\nEND@n:", [draw(inner)])
    return Statement(f"{lines}{guard} bra ELSE@n;\n{{0}}\nbra END@n;\nELSE@n:\n{{1}}\nEND@n:", [draw(inner), draw(inner)])


@st.composite
def arms(draw: st.Draw, *, rows: bool = False) -> Statement:
    """An if with an else, both short, over the same few registers: one often reads what the other overwrites."""
    lines, guard = draw(condition())
    computes = pure(draw(st.sampled_from(ARMS)))
    few = st.lists(st.one_of(computes, row()) if rows else computes, 1, 3)
    return Statement(f"{lines}{guard} bra ELSE@n;\n{{0}}\nbra END@n;\nELSE@n:\n{{1}}\nEND@n:", [draw(few), draw(few)])


ARMS = [frozenset("r"), frozenset("rp"), frozenset("f"), frozenset("d")]
"""The registers that the arms of a branch compute with."""


@st.composite
def parted(draw: st.Draw, mask: str, inner: Strategy[Block]) -> Statement:
    """An if of lanes that part and know with whom they are: a mask for one side, and its complement for the other."""
    own, condition, blocks = inside(mask), draw(P), [draw(inner)]
    lines = f"vote.sync.ballot.b32 {own}, {condition}, {mask};\n@!{condition} bra ELSE@n;\n{{0}}\n"
    if draw(st.booleans()):
        blocks.append(draw(inner))
        return Statement(f"{lines}bra END@n;\nELSE@n:\nxor.b32 {own}, {own}, {mask};\n{{1}}\nEND@n:", blocks)
    return Statement(f"{lines}ELSE@n:", blocks)


@st.composite
def switch(draw: st.Draw, inner: Strategy[Block]) -> Statement:
    """Three cases and what falls from one to the next."""
    blocks = [draw(inner) for _ in range(3)]
    leaves = [draw(st.sampled_from(["", "bra END@n;"])) for _ in range(2)]
    return Statement(
        f"rem.u32 %t0, {draw(R)}, 4;\ntable@n: .branchtargets A@n, B@n, C@n, END@n;\nbrx.idx %t0, table@n;\n"
        f"A@n:\n{{0}}\n{leaves[0]}\nB@n:\n{{1}}\n{leaves[1]}\nC@n:\n{{2}}\nEND@n:",
        blocks,
    )


@st.composite
def tangle(draw: st.Draw, level: int, inner: Strategy[Block]) -> Statement:
    """Blocks each of which may go to any other: a graph that is not reducible, with a count of its steps."""
    count, total = f"%c{level}", draw(st.integers(2, 4))
    lines = [f"mov.u32 {count}, {draw(st.integers(1, 9))};", f"{draw(CONDITION)} bra B{draw(st.integers(0, total - 1))}X@n;"]
    for n in range(total):
        lines += [f"B{n}X@n:", f"sub.u32 {count}, {count}, 1;", f"setp.le.s32 %q0, {count}, 0;", "@%q0 bra END@n;", f"{{{n}}}"]
        lines += [f"{draw(CONDITION)} bra B{draw(st.integers(0, total - 1))}X@n;" for _ in range(draw(st.integers(0, 2)))]
    lines += [f"bra B{draw(st.integers(0, total - 1))}X@n;", "END@n:"]
    return Statement("\n".join(lines), [draw(inner) for _ in range(total)], turns=2)


# ── loops ───────────────────────────────────────────────────────────────────────────────


@st.composite
def loop(draw: st.Draw, level: int, alike: Strategy[Block], apart: Strategy[Block]) -> Statement:
    """A loop that all lanes leave at once (`alike`), or every lane when it likes (`apart`); none counts another's turns."""
    count, uniform = f"%c{level}", draw(st.booleans())
    start = f"mov.u32 {count}, {draw(st.integers(1, 4))};" if uniform else f"and.b32 {count}, {draw(R)}, 3;"
    lines = f"{start}\nLOOP@n:\n{{0}}\nsub.u32 {count}, {count}, 1;\nsetp.gt.s32 %q0, {count}, 0;\n@%q0 bra LOOP@n;"
    return Statement(lines, [draw(alike if uniform else apart)], turns=4)


@st.composite
def thinning(draw: st.Draw, level: int, mask: str, inner: Strategy[Block]) -> Statement:
    """A loop that lanes leave when they like, in which those that stay know who they are."""
    count, own = f"%c{level}", inside(mask)
    return Statement(
        f"and.b32 {count}, {draw(R)}, 3;\nmov.b32 {own}, {mask};\nLOOP@n:\n{{0}}\nsub.u32 {count}, {count}, 1;\n"
        f"setp.gt.s32 %q0, {count}, 0;\nvote.sync.ballot.b32 {own}, %q0, {own};\n@%q0 bra LOOP@n;",
        [draw(inner)],
        turns=4,
    )


@st.composite
def nested(draw: st.Draw, level: int, inner: Strategy[Block]) -> Statement:
    """Two loops, and ways out of both of them and into the next turn of the outer one."""
    outer, within = f"%c{level}", f"%b{level}"
    ways = ((label, *draw(condition())) for label in ("END", "NEXT"))
    out, on = (draw(st.sampled_from([f"{lines}{guard} bra {label}@n;", ""])) for label, lines, guard in ways)
    return Statement(
        f"""and.b32 {outer}, {draw(R)}, 3;
        OUTER@n:
        {{0}}
        mov.u32 {within}, {draw(st.integers(1, 3))};
        INNER@n:
        {{1}}
        {out}
        {{2}}
        {on}
        sub.u32 {within}, {within}, 1;
        setp.gt.s32 %q0, {within}, 0;
        @%q0 bra INNER@n;
        NEXT@n:
        sub.u32 {outer}, {outer}, 1;
        setp.gt.s32 %q0, {outer}, 0;
        @%q0 bra OUTER@n;
        END@n:""",
        [draw(inner) for _ in range(3)],
        turns=9,
    )


# ── blocks ──────────────────────────────────────────────────────────────────────────────

LEAVE = st.builds(lambda when, how: Statement(f"{when[0]}{when[1]} {how};"), condition(), st.sampled_from(["ret", "exit"]))
"""Some lanes end, in a kernel in which no others wait for them."""


class Family(enum.Enum):
    """What statements do.  A kernel has those of some families: a few that meet often find what all together seldom do."""

    VALUES = enum.auto()
    MEMORY = enum.auto()
    COLUMNS = enum.auto()
    ATOMICS = enum.auto()
    ROWS = enum.auto()
    ARMS = enum.auto()
    BRANCHES = enum.auto()
    LOOPS = enum.auto()
    GRAPHS = enum.auto()
    ELEMENTS = enum.auto()
    WARPS = enum.auto()
    CTAS = enum.auto()
    CLUSTERS = enum.auto()


@dataclass(frozen=True)
class Setting:
    """What the blocks of a kernel may have: the shape of its CTAs, families, calls, lanes that end early.

    A block has at most so many statements.  In a `stray` kernel some accesses are wrong.
    """

    shape: Shape
    families: frozenset[Family]
    calls: bool
    leaves: bool
    most: int
    stray: bool = False


@lru_cache(maxsize=64)
def block(depth: int, mask: str, setting: Setting) -> Strategy[Block]:
    """Some statements; `mask` names the lanes that are sure to be here together, `ALL` all of a CTA, or is empty."""
    found = simple(setting) + together(mask, setting)
    if setting.calls:
        found.append(call())
    if setting.calls and mask:
        found.append(meeting(mask))
    if depth:
        found += nesting(depth, mask, setting)
    return st.lists(st.one_of(*(found or [pure()])), 0, setting.most)


def simple(setting: Setting) -> list[Strategy[Statement]]:
    """Statements of lanes by themselves, without blocks."""
    stray, some = setting.stray, setting.families
    families = {
        Family.VALUES: [*[pure()] * 4, *[on_class()] * 4, filled(MOVES), filled(WRAPS)],
        Family.MEMORY: [*[access(stray=stray)] * 2, row(), row(), filled(DOUBLES), copy()],
        Family.ATOMICS: [atomic(), atomic(), filled(WIDE, NOBODY)],
        Family.COLUMNS: [*[column(stray=stray)] * 2],
    }
    found = [each for family, strategies in families.items() if family in some for each in strategies]
    return [st.one_of(*found)] * 3 if found else []


def together(mask: str, setting: Setting) -> list[Strategy[Statement]]:
    """Statements that the lanes of a mask, or all threads of a CTA, run together."""
    shape, found = setting.shape, list[Strategy[Statement]]()
    if mask and Family.WARPS in setting.families:
        found += [collective(shape, mask)] * 2
    if mask == ALL and Family.CTAS in setting.families:
        found.append(st.one_of(filled(BARRIERS, NOBODY), exchange(shape), tile(shape), reduction(shape)))
        found.append(st.one_of(cells(shape, stray=setting.stray), histogram(shape), tickets(shape), bulk_copy(shape)))
    if mask == ALL and Family.CLUSTERS in setting.families and not setting.leaves:
        several = clusters.neighbour(shape), clusters.cluster_histogram(shape), clusters.sent(shape)
        found.append(st.one_of(*several, filled(clusters.POSITIONS)))
    return found


def nesting(depth: int, mask: str, setting: Setting) -> list[Strategy[Statement]]:
    """Statements that have blocks."""
    apart, alike = block(depth - 1, "", setting), block(depth - 1, mask, setting)
    stray, some = setting.stray, setting.families
    families = {
        Family.BRANCHES: [branch(apart), branch(apart)],
        Family.ARMS: [arms(), arms(rows=True)],
        Family.LOOPS: [loop(depth, alike, apart), nested(depth, apart)],
        Family.GRAPHS: [switch(apart), tangle(depth, apart)],
        Family.ELEMENTS: [*[counted(setting.shape, alike, apart)] * 3, walk(apart)],
        Family.ROWS: [row_walk(apart, stray=stray)] * (4 if stray else 2),
    }
    found = [each for family, strategies in families.items() if family in some for each in strategies]
    if setting.leaves:
        found.append(LEAVE)
    if mask and inside(mask) and Family.WARPS in some:
        own = block(depth - 1, inside(mask), setting)
        found += [parted(mask, own), parted(mask, own), thinning(depth, mask, own)]
    return found

"""Random kernels as strategies: statements in blocks, which are printed as PTX, and what is launched.

A kernel has arithmetic of every form in the catalog that is a function of registers, loads, stores and atomics of all
types through all windows, at addresses that wrap on their way; what compilers write (loops over arrays by an index or a
pointer, rows of all threads, tiles, reductions, histograms and copies in bulk in shared memory); shuffles, votes and
products of matrices of warps and of parts of warps that know who they are; branches, loops that are left from within,
graphs that are not reducible, switches, calls (by name, through pointers, of themselves), barriers and locks; or lanes
that end early, and nothing that waits for them.  Half of the kernels have a few families of statements alone, which then
meet more often.

What it leaves does not depend on the order in which threads run: each writes its own memory, or updates a word by one
operation whose order does not show; others' memory is read behind a barrier.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import count
from math import prod
from random import Random

from ptxvm.campaign.random_kernels import strategies as st
from ptxvm.campaign.random_kernels.columns import PERMUTATIONS, column_registers
from ptxvm.campaign.random_kernels.compiled import FEW, MANY
from ptxvm.campaign.random_kernels.control import Family, Setting, block
from ptxvm.campaign.random_kernels.memory import OWN, size_of
from ptxvm.campaign.random_kernels.parts import ALL, REGISTERS, Block, R, Shape, Statement, pure, written
from ptxvm.campaign.random_kernels.shared import CELL, MORE
from ptxvm.campaign.random_kernels.warps import ARRIVAL, LOCK
from ptxvm.dataclass import dataclass
from ptxvm.machine.settings import Tiering

SHAPES: list[Shape] = [
    (32,),
    (64,),
    (48,),
    (16, 4),
    (5, 3, 2),
    (128,),
    (1,),
    (8, 8),
    (32, 4),
    (64, 3),
    (16, 16),
    (32, 8),
    (33,),
    (7, 5, 3),
    (16, 8, 8),
    (1024,),
    (31, 33),
]
GRIDS: list[Shape] = [(1,), (2,), (3,), (2, 1, 2), (1, 3), (1, 2, 3)]
MANY_CTAS: list[Shape] = [(17,), (8, 5)]
SMALL, LARGE = 64, 512  # threads of a CTA up to which a grid may have many of them, and from which on one is enough
SKEWS = {False: (0, 0, 16, 32, 48), True: (0, 0, 0, 8, 4, 1)}  # by whether a kernel is stray
CROWDED = 64  # threads of a CTA of which more take long to have a lock in turn
SHORT = 30  # lines of a body that may stand four times
LONG, WORK = (
    80,
    2000,
)  # the lines of a body, and the instructions of a lane, at most: many small kernels find more than a large one
LAUNCHES = 8  # of each kernel
SIZES = [(2, 0, 6), (1, 1, 5), (2, 1, 4), (2, 1, 4), (2, 1, 6), (2, 2, 3), (1, 2, 4)]
"""How many pieces a kernel has at most, how deep its blocks are nested, and how many statements each has at most."""


class Watch(enum.Enum):
    """What is watched besides what a kernel leaves: what each line counts, or what is checked, for which more code is made."""

    NOTHING = enum.auto()
    PROFILE = enum.auto()
    CHECKS = enum.auto()
    SYNC = enum.auto()


@dataclass(frozen=True)
class Launch:
    """A grid, the seed of the data that a kernel reads, and its parameters `n` and `m`.

    The array of rows lies `skew` bytes behind a multiple of a page.
    """

    grid: Shape
    seed: int
    few: int
    many: int
    skew: int = 0

    @property
    def ctas(self) -> int:
        """CTAs of the grid."""
        return prod(self.grid)


@dataclass(repr=False)
class RandomKernel:
    """A kernel, the shape of its CTAs, and how it is launched.

    `locks` where lanes wait for a lock, `leaves` where some end early, `stray` where accesses are wrong.  `dead` are registers
    that nothing reads in the end.  Code is compiled as `tier` says.  `permutation` says which column a thread has.
    """

    body: Block
    functions: list[Block]
    shape: Shape
    launches: list[Launch]
    locks: bool = False
    leaves: bool = False
    dead: frozenset[str] = frozenset()
    watch: Watch = Watch.NOTHING
    stray: bool = False
    tier: Tiering = Tiering.AUTO
    permutation: str = PERMUTATIONS[0]

    @property
    def threads(self) -> int:
        """Threads of a CTA."""
        return prod(self.shape)

    @property
    def shared(self) -> int:
        """Bytes of dynamic shared memory of a CTA."""
        return OWN * -(-self.threads // 32) * 32

    @cached_property
    def has_rows(self) -> bool:
        """Does it read the array of rows?"""
        return "%rows" in written(self.body)

    @cached_property
    def has_columns(self) -> bool:
        """Does it access the array of columns?"""
        return "%columns" in written(self.body)

    @cached_property
    def spins(self) -> bool:
        """Do threads wait in loops, so that what they run is chance?"""
        return self.locks or "try_wait" in written(self.body)

    @cached_property
    def text(self) -> str:
        """The module."""
        body = written(self.body)
        functions = [FUNCTION.format(number=n, body=written(each)) for n, each in enumerate(self.functions)] + [OTHERS]
        calls, used = "call" in body, set(USED.findall(body))
        shared, local, counts = (bool(each.search(body)) for each in (SHARED, LOCAL, COUNTS))
        if shared or local:
            used |= {f"%r{n}" for n in range(8)}
        own = sorted({each[0] for each in OWN_REGISTERS.finditer(body)})
        return TEMPLATE.format(
            functions=FUNCTIONS.format("\n".join(functions)) if calls else "",
            registers="\n".join(f"    .reg .{type} %{letter}<{count}>;" for letter, (type, count) in REGISTERS.items()),
            own="\n".join(f"    .reg .{OWN_TYPES[each[1]]} {each};" for each in own),
            fill="\n".join(
                [
                    *filled_registers(used),
                    *filled_memory(SHARED_CELLS * shared + LOCAL_CELLS * local),
                    *cleared_counts() * counts,
                ]
            ),
            body=body,
            save="\n".join(
                [
                    *saved_registers(used - self.dead),
                    *saved_memory(shared=shared, local=local, counts=counts and not self.leaves),
                ]
            ),
            whole=-(-self.threads // 32) * 32,
            tile=CELL * self.threads + MORE,
            column="\n".join(column_registers(self.permutation)) if self.has_columns else "",
        )

    def __repr__(self) -> str:
        first = self.launches[0]
        said = (
            f"<<<{first.grid}, {self.shape}, {self.shared}>>> on data of seed {first.seed}, n = {first.few}, m = {first.many}"
        )
        return f"\n// {said}\n{self.text}"


def without(lines: Block, word: str) -> Block:
    """Statements that do not have a word, and do not stand around it."""
    kept = [each for each in lines if word not in each.lines]
    return [replace(each, blocks=[without(inner, word) for inner in each.blocks]) for each in kept]


def random_kernel(number: int) -> RandomKernel:
    """The random kernel of a number."""
    return kernels().draw(Random(f"kernel {number}"))  # noqa: S311 - no secret


def kernel_of(text: str) -> RandomKernel:
    """The kernel of a text: its number, and behind a colon the positions of the statements that it has left of its own."""
    number, _, positions = text.partition(":")
    kernel = random_kernel(int(number))
    return replace(kernel, body=some(kernel.body, {*map(int, positions.split())}, count())) if positions else kernel


def all_positions(text: str) -> str:
    """The same kernel as a text that names all statements."""
    number, _, positions = text.partition(":")
    return text if positions else f"{number}: {' '.join(map(str, range(size(random_kernel(int(number)).body))))}"


def some(lines: Block, positions: Container[int], numbers: Iterator[int]) -> Block:
    """The statements at some positions, of those in blocks such as stand in one that is left."""
    found = []
    for each in lines:
        position, blocks = next(numbers), [some(inner, positions, numbers) for inner in each.blocks]
        if position in positions:
            found.append(replace(each, blocks=blocks))
    return found


def size(lines: Block) -> int:
    """How many statements there are, with those in blocks."""
    return sum(1 + sum(map(size, each.blocks)) for each in lines)


@st.composite
def kernels(draw: st.Draw) -> RandomKernel:
    """A random kernel, and how it is launched."""
    shape, families = draw(st.sampled_from(SHAPES)), draw(some_families())
    calls, leaves = draw(st.booleans()), draw(st.sampled_from([False, False, False, True]))
    locks = not leaves and prod(shape) <= CROWDED and draw(st.sampled_from([False, False, False, True]))
    pieces, depth, most = draw(st.sampled_from(SIZES))
    stray = not leaves and not locks and draw(st.sampled_from([False] * 3 + [True]))
    whole = block(depth, "" if leaves else ALL, Setting(shape, families, calls, leaves, most, stray))
    body = draw(bodies(whole, pieces, arrivals=calls and not leaves).filter(partial(is_short, shape)))
    if prod(shape) < LARGE and len(written(body).splitlines()) <= SHORT:
        body = body * draw(st.sampled_from([1, 1, 1, 1, 1, 1, 1, 4]))
    if locks:
        body.append(Statement(LOCK.format(draw(R))))
    if "bra " in written(body):  # it is open who is together with whom after lanes have parted
        body = without(body, "activemask")
    small = st.lists(pure(frozenset("r")), 1, 4)
    early = st.sampled_from([[], [EARLY]])
    functions = [[*draw(small), *draw(early), Statement(RECURSION.format(draw(st.integers(0, 1))))] for _ in range(2)]
    names = [f"%{letter}{n}" for letter, (_, count) in REGISTERS.items() for n in range(count)]
    dead = frozenset(draw(st.samples(names, draw(st.integers(0, len(names) // 2)))))
    watch = draw(st.sampled_from([*[Watch.NOTHING] * 4, Watch.PROFILE, Watch.PROFILE, Watch.CHECKS, Watch.SYNC]))
    tier = draw(st.sampled_from([Tiering.AUTO, Tiering.QUICK, Tiering.BEST, Tiering.BEST]))
    runs = draw(launches(shape, 1 if locks else LAUNCHES, SKEWS[stray]))
    permutation = draw(st.sampled_from(PERMUTATIONS))
    return RandomKernel(body, functions, shape, runs, locks, leaves, dead, watch, stray, tier, permutation)


@st.composite
def some_families(draw: st.Draw) -> frozenset[Family]:
    """All families, or a few of them."""
    every = list(Family)
    return frozenset(every if draw(st.booleans()) else draw(st.samples(every, draw(st.integers(1, 4)))))


@st.composite
def bodies(draw: st.Draw, whole: st.Strategy[Block], pieces: int, *, arrivals: bool) -> Block:
    """Up to so many blocks of all threads, perhaps with warps between them that only arrive at a barrier."""
    body: Block = []
    for _ in range(draw(st.integers(1, pieces))):
        body += draw(whole)
        if arrivals and draw(st.sampled_from([False, False, True])):
            body.append(ARRIVAL)
    return body


def is_short(shape: Shape, body: Block) -> bool:
    """Is a body compiled and run soon, and does it have something?"""
    lines = len(written(body).splitlines())
    return 0 < lines <= LONG and sum(each.work for each in body) * (prod(shape) // 256 + 1) <= WORK


def launches(shape: Shape, count: int, skews: Sequence[int]) -> st.Strategy[list[Launch]]:
    """Some launches: other grids, unless the CTA is large, other data and other parameters."""
    grid = st.sampled_from([(1,)] if prod(shape) >= LARGE else GRIDS if prod(shape) > SMALL else [*GRIDS, *MANY_CTAS])
    few, many, seed = st.sampled_from(FEW), st.sampled_from(MANY), st.integers(0, 2**32 - 2)
    return st.lists(st.builds(Launch, grid, seed, few, many, st.sampled_from(skews)), count, count)


# ── what the body has ───────────────────────────────────────────────────────────────────

USED = re.compile(r"%[rdfghp]\d\b")
COUNTS = re.compile(r"%(?:counts|anywords)\b")
SHARED = re.compile(r"%(?:own|any|either|buffer)\b")
LOCAL = re.compile(r"%(?:stack|anystack)\b")
OWN_REGISTERS = re.compile(r"%[s-z][a-z]\d+\b")
OWN_TYPES = {"x": "b32", "y": "b64", "z": "pred", "v": "f32", "u": "b16", "w": "f64", "s": "b128"}
"""The registers that a statement declares for itself, by their first letter."""
SHARED_CELLS, LOCAL_CELLS = [("shared", "%own")], [("local", "%stack")]
VECTORS = {"r": 4, "d": 2, "f": 4, "g": 2, "h": 4}
"""How many registers fill an access, where their type is wide."""
FILLED_AT = {"r": 0, "d": 0, "f": 16, "g": 16, "h": 0}  # in a thread's memory
SAVED_AT = {"r": 0, "d": 32, "f": 80, "g": 96, "h": 120, "p": 128}  # in a thread's results
COUNTS_SIZE = 144  # bytes of shared words: of operations of all threads, and of a lock
LOCAL_AT, SHARED_AT, COUNTS_AT = 136, 200, 216
DOUBLES_AT = slice(96, 120)  # where the registers %g are
STRIDE = OWN + 16  # bytes of a thread's memory: its own, and a double
SIZE = 256  # bytes of a thread's results


def filled_registers(used: set[str]) -> Iterator[str]:
    """Load the registers that are used, and those beside them."""
    for letter, at in FILLED_AT.items():
        type, count = REGISTERS[letter]
        for first, width in vectors(letter, count):
            names = [f"%{letter}{first + n}" for n in range(width)]
            if used & {*names}:
                yield f"    ld.global{vector(type, names)}, [%mine+{at + first * size_of(type)}];"
    for n in range(REGISTERS["p"][1]):
        if f"%p{n}" in used:
            yield f"    ld.global.v2.b32 {{%t0, %t2}}, [%mine+{8 * n}];"
            yield f"    setp.lt.s32 %p{n}, %t0, %t2;"


def filled_memory(cells: list[tuple[str, str]]) -> Iterator[str]:
    """Store registers and zeros to a thread's own memory in some spaces."""
    for space, base in cells:
        for n in range(4):
            names = [f"%r{4 * n + m}" if n < 2 else "0" for m in range(4)]
            yield f"    st.{space}{vector('b32', names)}".replace(".b32 ", f".b32 [{base}+{16 * n}], ") + ";"


def cleared_counts() -> list[str]:
    """Store zeros to the words that all threads of a CTA update, before any does."""
    stores = [f"    @%q0 st.shared.v4.b32 [%counts+{16 * n}], {{0, 0, 0, 0}};" for n in range(COUNTS_SIZE // 16)]
    return ["    setp.eq.u32 %q0, %thread, 0;", *stores, "    bar.sync 0;"]


def saved_registers(used: set[str]) -> Iterator[str]:
    """Store registers."""
    for letter, at in SAVED_AT.items():
        type, count = REGISTERS[letter]
        if letter == "p":
            for n in range(count):
                if f"%p{n}" in used:
                    yield f"    selp.u32 %t0, 1, 0, %p{n};\n    st.global.u8 [%result+{at + n}], %t0;"
            continue
        for first, width in vectors(letter, count):
            names = [f"%{letter}{first + n}" for n in range(width)]
            groups = [(first, names)] if used >= {*names} else [(first + n, [name]) for n, name in enumerate(names)]
            for number, group in groups:
                if used & {*group}:
                    place = f"[%result+{at + number * size_of(type)}]"
                    yield f"    st.global{vector(type, group)};".replace(f".{type} ", f".{type} {place}, ")


def saved_memory(*, shared: bool, local: bool, counts: bool) -> Iterator[str]:
    """Store the own memory, and one of the words that all have updated."""
    for n in range(4 * local):
        yield f"    ld.local.v2.b64 {{%t1, %t3}}, [%stack+{16 * n}];"
        yield from (f"    st.global.b64 [%result+{LOCAL_AT + 16 * n + 8 * m}], %t{1 + 2 * m};" for m in range(2))
    for n in range(2 * shared):
        yield f"    ld.shared.b64 %t1, [%own+{56 * n}];\n    st.global.b64 [%result+{SHARED_AT + 8 * n}], %t1;"
    if counts:
        yield "    bar.sync 0;\n    rem.u32 %t0, %thread, 17;\n    mad.lo.u32 %t0, %t0, 8, %counts;"
        yield f"    ld.shared.b64 %t1, [%t0];\n    st.global.b64 [%result+{COUNTS_AT}], %t1;"


def vectors(letter: str, count: int) -> Iterator[tuple[int, int]]:
    """The first register and the width of each access to some registers."""
    width, first = VECTORS.get(letter, 1), 0
    while first < count:
        width = min(width, 1 << (count - first).bit_length() - 1)
        yield first, width
        first += width


def vector(type: str, names: list[str]) -> str:
    """The type and the operand of an access to registers."""
    return f".v{len(names)}.{type} {{{', '.join(names)}}}" if len(names) > 1 else f".{type} {names[0]}"


# ── the module ──────────────────────────────────────────────────────────────────────────

EARLY = Statement("mov.u32 %result, %r2;\nsetp.lt.u32 %q, %r0, %r1;\n@%q ret;")
"""Some lanes return before others call."""
RECURSION = """
    and.b32 %n, %x, 7;
    setp.gt.u32 %q, %n, 1;
    shr.u32 %n, %n, 1;
    mov.u32 %result, %r1;
    st.local.b32 [kept+4], %r3;
    @%q call (%result), f{}, (%n, %r0);
    ld.local.b32 %r2, [kept+4];
    xor.b32 %result, %result, %r2;"""
FUNCTION = """
.func (.reg .b32 %result) f{number}(.reg .b32 %x, .reg .b32 %y)
{{
    .reg .b32 %r<8>, %n;
    .reg .pred %q;
    .local .align 4 .b8 kept[8];
    mov.u32 %r0, %x; mov.u32 %r1, %y; mov.u32 %r2, 3; mov.u32 %r3, %x;
    mov.u32 %r4, 77; mov.u32 %r5, %y; mov.u32 %r6, 0; mov.u32 %r7, 9;
{body}
    ret;
}}
"""
OTHERS = """
.func (.param .b32 result) f2(.param .align 8 .b8 given[16])
{
    .reg .b32 %r<3>;
    .reg .b64 %d;
    ld.param.v2.b32 {%r0, %r1}, [given];
    ld.param.b64 %d, [given+8];
    cvt.u32.u64 %r2, %d;
    mad.lo.u32 %r0, %r0, %r1, %r2;
    st.param.b32 [result], %r0;
    ret;
}
.func (.reg .b32 %result) f3(.reg .b32 %x, .reg .b32 %mask)
{
    .reg .b32 %r<2>;
    .reg .pred %p;
    shfl.sync.bfly.b32 %r0, %x, 3, 0x1f, %mask;
    setp.lt.u32 %p, %r0, %x;
    @%p bra LESS;
    vote.sync.ballot.b32 %r1, 0, %mask;
    bra MET;
LESS:
    vote.sync.ballot.b32 %r1, 1, %mask;
MET:
    add.u32 %result, %r0, %r1;
    ret;
}
"""
FUNCTIONS = """
.func (.reg .b32 %result) f0(.reg .b32 %x, .reg .b32 %y);
.func (.reg .b32 %result) f1(.reg .b32 %x, .reg .b32 %y);
.global .align 8 .u64 pointers[2] = {{ f0, f1 }};
{}"""
TEMPLATE = """.version 9.0
.target sm_100a
.address_size 64
.const .align 16 .b32 table[32] = {{ 1, 2, 3, 4, 5, 0x80000000, 0x7f800000, 0xffffffff, 0x3f800000, 9, 10, 11, 12, 13, 14 }};
.extern .shared .align 16 .b8 buffer[];
{functions}
.visible .entry random(.param .u64 in, .param .u64 work, .param .u64 words, .param .u64 out, .param .u64 rows,
    .param .u64 columns, .param .u32 n, .param .u32 m)
{{
{registers}
{own}
    .reg .b32 %c<4>, %b<4>, %m<3>;
    .reg .pred %q<2>;
    .reg .b32 %t0, %t2, %own, %buffer, %counts, %thread, %whole, %few, %many, %total, %column, %n<6>;
    .reg .b64 %t1, %t3, %in, %rows, %columns, %words, %anywords, %any, %anystack, %either, %mine, %result, %stack;
    .shared .align 16 .b8 counts[144];
    .shared .align 16 .b8 tile[{tile}];
    .local .align 16 .b8 stack[64];
    ld.param.u64 %in, [in];
    ld.param.u64 %mine, [work];
    ld.param.u64 %words, [words];
    ld.param.u64 %result, [out];
    ld.param.u64 %rows, [rows];
    ld.param.u64 %columns, [columns];
    ld.param.u32 %few, [n];
    ld.param.u32 %many, [m];
    mov.u32 %n0, %tid.x;
    mov.u32 %n1, %tid.y;
    mov.u32 %n2, %tid.z;
    mov.u32 %n3, %ntid.x;
    mov.u32 %n4, %ntid.y;
    mad.lo.u32 %thread, %n2, %n4, %n1;
    mad.lo.u32 %thread, %thread, %n3, %n0;
    mov.u32 %whole, {whole};
    mov.u32 %buffer, buffer;
    mov.u32 %counts, counts;
    mov.u64 %stack, stack;
    mad.lo.u32 %own, %thread, 64, %buffer;
    cvt.u64.u32 %any, %own;
    cvta.shared.u64 %any, %any;
    cvt.u64.u32 %anywords, %counts;
    cvta.shared.u64 %anywords, %anywords;
    cvta.local.u64 %anystack, %stack;
    mul.lo.u32 %n4, %n4, %n3;
    mov.u32 %t0, %ntid.z;
    mul.lo.u32 %n4, %n4, %t0;
    mov.u32 %n5, %ctaid.z;
    mov.u32 %t0, %nctaid.y;
    mov.u32 %t2, %ctaid.y;
    mul.lo.u32 %total, %n4, %t0;
    mad.lo.u32 %n5, %n5, %t0, %t2;
    mov.u32 %t0, %nctaid.x;
    mov.u32 %t2, %ctaid.x;
    mul.lo.u32 %total, %total, %t0;
    mov.u32 %t0, %nctaid.z;
    mul.lo.u32 %total, %total, %t0;
    mov.u32 %t0, %nctaid.x;
    mad.lo.u32 %n5, %n5, %t0, %t2;
    mad.lo.u32 %n5, %n5, %n4, %thread;
    mad.wide.u32 %mine, %n5, 80, %mine;
    mad.wide.u32 %result, %n5, 256, %result;
    and.b32 %t0, %thread, 5;
    setp.eq.u32 %q0, %t0, 4;
    selp.b64 %either, %any, %mine, %q0;
{column}
{fill}
{body}
{save}
    ret;
}}
"""

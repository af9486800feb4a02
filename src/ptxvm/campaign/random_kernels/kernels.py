"""Random kernels as strategies: statements in blocks, which are printed as PTX, and what is launched.

A kernel has arithmetic of every form in the catalog that is a function of registers, loads, stores and atomics of all types
through all windows, at addresses that wrap on their way; what compilers write (loops over arrays by an index or a pointer, rows
of all threads, tiles, reductions, histograms and copies in bulk in shared memory, also of clusters); shuffles, votes and
products of matrices of warps and of parts of warps that know who they are; branches, loops that are left from within, graphs
that are not reducible, switches, calls (by name, through pointers, of themselves), barriers and locks; or lanes that end early,
and nothing that waits for them. Half of the kernels have a few families of statements alone, which then meet more often.

What it leaves does not depend on the order in which threads run: each writes its own memory, or updates a word by one
operation whose order does not show; others' memory is read behind a barrier.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import count, zip_longest
from math import prod
from random import Random

from ptxvm.campaign.random_kernels import clusters, strategies as st
from ptxvm.campaign.random_kernels.columns import PERMUTATIONS, column_registers
from ptxvm.campaign.random_kernels.compiled import FEW, MANY
from ptxvm.campaign.random_kernels.control import Family, Setting, block
from ptxvm.campaign.random_kernels.memory import OWN, size_of
from ptxvm.campaign.random_kernels.module_template import EARLY, FUNCTION, FUNCTIONS, OTHERS, RECURSION, TEMPLATE
from ptxvm.campaign.random_kernels.operand_classes import on_class
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
MOST_CLUSTERS = 4  # of a grid
OTHERS_IN_CLUSTERS = 8  # one of so many kernels whose CTAs have nothing to do with each other runs in clusters, too
SKEWS = {False: (0, 0, 16, 32, 48), True: (0, 0, 0, 8, 4, 1)}  # by whether a kernel is stray
CROWDED = 64  # threads of a CTA of which more take long to have a lock in turn
SHORT = 30  # lines of a body that may stand four times
LONG, WORK = 80, 2000  # the lines of a body, and the instructions of a lane, at most: small kernels find more than large ones
LAUNCHES = 8  # of each kernel
INSTRUCTIONS = 60  # of a kernel that has nothing else, at most: one more takes a tenth of the time of the first
TIERS = [Tiering.AUTO, Tiering.QUICK, Tiering.BEST, Tiering.BEST]
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
    that nothing reads in the end.  Code is compiled as `tier` says.  `permutation` says which column a thread has.  `cluster`
    is the shape of its clusters, of which grids are multiples; None where it has none.
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
    cluster: Shape | None = None

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
        clusters = f" in clusters {self.cluster}" if self.cluster else ""
        said = (
            f"<<<{first.grid}, {self.shape}, {self.shared}>>>{clusters} on data of seed {first.seed}, "
            f"n = {first.few}, m = {first.many}"
        )
        return f"\n// {said}\n{self.text}"


def without(lines: Block, word: str) -> Block:
    """Statements that do not have a word, and do not stand around it."""
    kept = [each for each in lines if word not in each.lines]
    return [replace(each, blocks=[without(inner, word) for inner in each.blocks]) for each in kept]


def random_kernel(number: int) -> RandomKernel:
    """The random kernel of a number."""
    return st.one_of(kernels(), kernels(), straight_kernels()).draw(Random(f"kernel {number}"))  # noqa: S311 - no secret


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
    tier = draw(st.sampled_from(TIERS))
    runs = draw(launches(shape, 1 if locks else LAUNCHES, SKEWS[stray]))
    permutation = draw(st.sampled_from(PERMUTATIONS))
    in_clusters = "cluster" in written(body) or draw(st.integers(1, OTHERS_IN_CLUSTERS)) == 1
    cluster = draw(st.sampled_from(clusters.SHAPES)) if in_clusters else None
    if cluster is not None:
        runs = [replace(run, grid=multiple(run.grid, cluster)) for run in runs]
    return RandomKernel(body, functions, shape, runs, locks, leaves, dead, watch, stray, tier, permutation, cluster)


@st.composite
def straight_kernels(draw: st.Draw) -> RandomKernel:
    """Instructions on operands of all classes, one after the other, on several data: soon compiled, and each result counts."""
    shape = draw(st.sampled_from([each for each in SHAPES if prod(each) <= SMALL]))
    body = draw(st.lists(on_class(), 4, INSTRUCTIONS))
    return RandomKernel(body, [], shape, draw(launches(shape, LAUNCHES, SKEWS[False])), tier=draw(st.sampled_from(TIERS)))


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


def multiple(grid: Shape, cluster: Shape) -> Shape:
    """A grid of so many clusters as it has CTAs, or of one where these are many."""
    sizes = zip_longest(grid if prod(grid) <= MOST_CLUSTERS else (1,), cluster, fillvalue=1)
    return tuple(clusters * ctas for clusters, ctas in sizes)


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

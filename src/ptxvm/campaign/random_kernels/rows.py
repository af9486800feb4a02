"""Walks along rows: loops in which each thread follows pointers of its own through an array, or through its own memory.

Loads side by side of one walk have types, widths, alignments and guards that differ; pointers step by constants, by what a
register says and by what the loop computes, forwards and backwards.  Rows begin where the data, the thread or nothing says,
some lanes' better aligned than others', and are walked again from their beginning, or on.  Half of the walks are plain, as
most that people write: long, in small steps, and not left from within.  A thread that walks through its own memory stores
to it, too.  In a `stray` kernel some of a walk lies outside of the array, or is misaligned, often in some lanes alone and
only after some iterations.
"""

from __future__ import annotations

import enum

from ptxvm.campaign.random_kernels import strategies as st
from ptxvm.campaign.random_kernels.memory import OWN, size_of
from ptxvm.campaign.random_kernels.parts import REGISTERS, Block, D, F, G, H, P, R, Statement, Strategy, register
from ptxvm.dataclass import dataclass

ROWS = 48 << 10  # bytes of the array
UNIT = 16  # bytes of the longest access
UNITS = (16, 16, 16, 8, 4)  # bytes of which the beginnings of rows are multiples, and so the longest accesses
SHORT_UNITS = (8, 8, 4)  # where there shall be longer ones
STRAYS = 96  # bytes by which a row of a stray kernel may lie outside of the array, at most
STEPS = (4, 8, 8, 8, 16, 16, 24, 32, 64, 72, 128, 1, 2, 0, -8, -16, -4)
PLAIN_STEPS = (4, 4, 8, 8, 16, 1, 2)


class Wrong(enum.Enum):
    """What is wrong with a walk: nothing, where rows begin, or single accesses, which are longer than their addresses allow."""

    NOTHING = enum.auto()
    BEGIN = enum.auto()
    LENGTH = enum.auto()


@dataclass(frozen=True)
class Area:
    """What is walked through: its address and bytes, the steps of pointers, the units where the last row may begin.

    A pointer passes at most `longest` bytes, and `beside` bytes behind it are loaded.
    """

    base: str
    size: int
    steps: tuple[int, ...]
    lasts: tuple[int, ...]
    longest: int
    beside: int


ARRAY = Area("%rows", ROWS - 64, STEPS, (7, 63, 255, 1023), 24 << 10, 128)  # which may be a little shorter
MINE = Area("%mine", OWN, (4, 8, 1, 2, 0, -4, -8), (0, 1), 24, 16)

BY_DATA = "and.b32 %t0, %thread, 255;\nmad.wide.u32 %t1, %t0, 4, %in;\nld.global.u32 %xa@n, [%t1];"
STARTS = [
    BY_DATA,
    "mul.lo.u32 %xa@n, %thread, {pitch};", "mul.lo.u32 %xa@n, %n5, {pitch};", "mul.lo.u32 %xa@n, %n0, {pitch};",
    "sub.u32 %xa@n, 200, %thread;", "mov.u32 %xa@n, {pitch};", "mov.u32 %xa@n, {r};", "shr.u32 %xa@n, %thread, 3;",
    "xor.b32 %xa@n, %thread, {pitch};", "selp.b32 %xa@n, {pitch}, %thread, {p};", "mov.u32 %xa@n, %ctaid.x;",
]  # fmt: skip
"""Which row a thread walks, in units: one of its own by the data or by its place, or one that it shares."""
PLAIN_STARTS = [*[BY_DATA] * 3, *STARTS[-2:]]
PITCHES = (1, 2, 3, 4, 5, 8, 9, 16, 40, 64)
BOUNDS = ["and.b32 %xa@n, %xa@n, {last};", "min.u32 %xa@n, %xa@n, {last};"]
SCALES = [
    "mad.wide.u32 {y}, %xa@n, {unit}, {y};", "mul.wide.u32 %t1, %xa@n, {unit};\nadd.s64 {y}, {y}, %t1;",
    "mul.lo.u32 %xa@n, %xa@n, {unit};\ncvt.u64.u32 %t1, %xa@n;\nadd.s64 {y}, {y}, %t1;",
    "mad.wide.s32 {y}, %xa@n, {unit}, {y};",
]  # fmt: skip
COUNTS = [
    "mov.u32 %xb@n, {most};", "mov.u32 %xb@n, {most};", "mov.u32 %xb@n, %many;", "mov.u32 %xb@n, %few;",
    "mov.u32 %xb@n, %ctaid.x;",
    "and.b32 %t0, %thread, 255;\nmad.wide.u32 %t1, %t0, 4, %in;\nld.global.u32 %xb@n, [%t1];", "mov.u32 %xb@n, {r};",
    "mov.u32 %xb@n, %thread;",
]  # fmt: skip
"""How long a row is: as long as those of the other threads, or not."""
ENDS = ["min.u32 %xb@n, %xb@n, {most};", "rem.u32 %xb@n, %xb@n, {more};"]
TYPES = {
    "u8": "hr", "s8": "hrd", "b8": "hr", "u16": "h", "s16": "hr", "b16": "h", "u32": "rd", "s32": "rd", "b32": "r", "f32": "f",
    "u64": "d", "b64": "d", "f64": "g",
}  # fmt: skip
"""The types of elements, and the letters of registers that hold them."""
HELD = {"r": "%x", "d": "%y", "f": "%v", "h": "%u", "g": "%w"}
"""The registers of a statement's own, by those letters."""
ZEROS = {letter: f"mov.{REGISTERS[letter][0]} {{}}, 0;" for letter in "rdh"}
ZEROS |= {"f": "mov.f32 {}, 0f00000000;", "g": "mov.f64 {}, 0d0000000000000000;"}
USES = {
    "h": [
        "xor.b16 %h0, %h0, {v};", "cvt.s32.s16 %t0, {v};\nmad.lo.s32 {r}, {r}, 31, %t0;", "add.s16 {h}, {h}, {v};",
        "setp.lt.s16 {p}, {v}, {h};", "mov.b32 {r}, {{{v}, {h}}};",
    ],
    "r": [
        "add.u32 {r}, {r}, {v};", "xor.b32 {r}, {v}, {r};", "dp4a.u32.s32 {r}, {v}, {r}, {r};",
        "prmt.b32 {r}, {v}, {r}, 0x5410;",
        "setp.gt.s32 {p}, {v}, {r};", "min.s32 {r}, {r}, {v};", "max.u16x2 {r}, {v}, {r};", "add.f16x2 {r}, {v}, {r};",
    ],
    "d": ["add.s64 {d}, {d}, {v};", "mad.lo.u64 {d}, {d}, 31, {v};", "xor.b64 {d}, {d}, {v};", "setp.lt.u64 {p}, {v}, {d};"],
    "f": ["add.f32 {f}, {f}, {v};", "fma.rn.f32 {f}, {v}, {f}, {f};", "max.f32 {f}, {f}, {v};", "setp.lt.f32 {p}, {v}, {f};"],
    "g": ["add.f64 {g}, {g}, {v};", "max.f64 {g}, {g}, {v};", "setp.lt.f64 {p}, {v}, {g};"],
}  # fmt: skip
"""What is done with an element `{v}`."""
MOVES = [
    ("add.s64 {y}, {y}, {step};", 1), ("add.s64 {y}, {y}, {step};", 1), ("sub.s64 {y}, {y}, {minus};", 1),
    ("mul.wide.s32 %t1, %xc@n, {step};\nadd.s64 {y}, {y}, %t1;", 3),
    ("and.b32 %t0, %xd@n, 3;\nmad.wide.s32 {y}, %t0, {step}, {y};", 3), ("@%zg@n add.s64 {y}, {y}, {step};", 1),
]  # fmt: skip
"""How a pointer steps on, and by how many steps at most: `%xc@n` is a thread's number below 4, `%xd@n` that of the turn."""
TURNS = (1, 2, 3, 5, 8, 17, 33, 63)
PLAIN_TURNS = (9, 17, 33, 63)
FEW_TURNS = 8  # where there is more in a loop
BREAKS = ["", "", "", "setp.eq.u32 %zb@n, {r}, %xd@n;\n@%zb@n bra OUT@n;", "@{p} bra OUT@n;", "@!{p} bra NEXT@n;"]
OTHERS = [
    *[""] * 6, "st.global.u32 [%mine+{at}], {r};", "atom.global.add.u32 {r}, [%mine+{at}], 1;",
    "st.shared.u32 [%own+{at}], {r};", "red.global.add.u32 [%words], 1;", "membar.cta;",
    "ld.volatile.global.u32 {r}, [%mine+{at}];",
]  # fmt: skip
"""What else a turn does with memory."""
LATE = ["add.u32 %t0, %few, {more};", "add.u32 %t0, %few, {more};", "and.b32 %t0, %many, 15;", "mov.u32 %t0, {more};"]
"""The turn in which an access that comes late comes first: of several launches another one each."""
TEST = ["setp.lt.u32 %zc@n, %xd@n, %xb@n;\n@%zc@n bra TURN@n;", "setp.ge.u32 %zc@n, %xd@n, %xb@n;\n@!%zc@n bra TURN@n;"]


@dataclass(frozen=True)
class Pointer:
    """A register that steps through memory, and its first value; the bytes that it passes in a turn.

    Rows begin at multiples of `unit` bytes, and the register is a multiple of `aligned` bytes then.
    """

    register: str
    first: str
    steps: str
    least: int
    most: int
    unit: int
    aligned: int

    def turns(self, most: int, area: Area) -> int:
        """So many turns, or fewer, so that it does not pass too much."""
        return min(most, area.longest // max(self.most - self.least, 1))


@st.composite
def pointer(draw: st.Draw, letter: str, first: str, area: Area, wrong: Wrong, *, plain: bool) -> Pointer:
    """A pointer that steps by a constant, by a number of its thread, or by one of the turn."""
    name, step = f"%y{letter}@n", draw(st.sampled_from(PLAIN_STEPS if plain and area is ARRAY else area.steps))
    lines, most = draw(st.sampled_from(MOVES[:3] if plain else MOVES))
    steps, unit = (
        lines.format(y=name, step=step, minus=-step),
        draw(st.sampled_from(SHORT_UNITS if wrong is Wrong.LENGTH else UNITS)),
    )
    return Pointer(name, f"%y{first}@n", steps, min(0, most * step), max(0, most * step), unit, min(step & -step or unit, unit))


@st.composite
def start(draw: st.Draw, each: Pointer, turns: int, area: Area, wrong: Wrong, *, plain: bool) -> list[str]:
    """The lines that compute where a pointer begins: all of its walk lies in the area, or nearly all of a wrong one."""
    last = draw(st.sampled_from(area.lasts))
    low, high = -turns * each.least, area.size - UNIT * last - turns * each.most - area.beside
    low += -low % UNIT
    at = low + UNIT * draw(st.integers(0, (high - low) // UNIT))
    if wrong is Wrong.BEGIN:
        at = draw(st.sampled_from([low - STRAYS, at, high + STRAYS])) + draw(st.sampled_from([0, 0, 0, 0, 8, 4, 1]))
    templates = [draw(st.sampled_from(some)) for some in (PLAIN_STARTS if plain else STARTS, BOUNDS, SCALES)]
    pitch, unit = draw(st.sampled_from(PITCHES)), each.unit
    values = {"last": last, "pitch": pitch, "unit": unit, "r": draw(R), "p": draw(P), "y": each.first}
    return [f"add.s64 {each.first}, {area.base}, {at};", *"\n".join(templates).format(**values).splitlines()]


@st.composite
def element(draw: st.Draw, where: Pointer, type: str, number: int, area: Area, *, too_long: bool) -> list[str]:
    """A load of one to four elements behind a pointer, and what is done with them; of the thread's own memory a store, too.

    One that is `too_long` for the alignment of its pointer mostly comes late, so that there has been a walk before the fault.
    """
    widest, least = (UNIT, min(2 * where.aligned, UNIT)) if too_long else (where.aligned, 1)
    size, letter = size_of(type), draw(st.sampled_from(TYPES[type]))
    counts = [n for n in (1, 1, 1, 2, 4) if least <= n * size <= widest]
    count = draw(st.sampled_from(counts or [min(4, widest // size)]))
    far = draw(st.sampled_from([0, 0, 1, 7]))  # a pointer's loads are often near each other
    at = size * count * draw(st.integers(0, min(far, area.beside // (size * count) - 1)))
    if too_long:
        at = where.aligned * draw(st.integers(0, 40 // where.aligned))
    names = [f"{HELD[letter]}{'klmnopqrstuvwxyz'[4 * number + n]}@n" for n in range(count)]
    guard = draw(st.sampled_from([*[""] * 6, "@%zg@n ", "@!%zg@n ", "@%zl@n ", f"@{draw(P)} "]))
    if too_long and draw(st.integers(0, 3)):
        guard = "@%zl@n "
    word = draw(st.sampled_from([".global", ".global", ".global", "", ".global.cg", ".global.nc" if area is ARRAY else ""]))
    group = f"{{{', '.join(names)}}}" if count > 1 else names[0]
    lines = [f"{guard}ld{word}{f'.v{count}' * (count > 1)}.{type} {group}, [{where.register}+{at}];"]
    for name in names:
        use = draw(st.sampled_from(USES[letter]))
        lines += use.format(v=name, r=draw(R), d=draw(D), f=draw(F), g=draw(G), h=draw(H), p=draw(P)).splitlines()
    if area is MINE and draw(st.booleans()):
        space = draw(st.sampled_from(["", ".global"]))
        lines.append(f"{guard}st{space}.{type} [{where.register}+{at}], {draw(register(letter))};")
    return [ZEROS[letter].format(name) for name in names if guard] + lines


@st.composite
def elements(draw: st.Draw, pointers: list[Pointer], area: Area, wrong: Wrong) -> list[list[str]]:
    """The loads of a turn, mostly behind one pointer; a later one, often of the same type, is too long in a walk wrong so."""
    count = draw(st.sampled_from([1, 1, 2, 2, 3, 4]))
    long = draw(st.integers(1, max(count - 1, 1))) if wrong is Wrong.LENGTH else count
    most = draw(st.sampled_from(pointers))
    found, before = list[list[str]](), ""
    for n in range(max(count, 2 * (wrong is Wrong.LENGTH))):
        where = draw(st.sampled_from([most, most, *pointers]))
        type = draw(st.sampled_from([t for t in TYPES if size_of(t) <= where.aligned and (area is ARRAY or t != "f64")]))
        if n == long and draw(st.booleans()):
            type = before
        found.append(draw(element(where, type, n, area, too_long=n == long)))
        before = type
    return found


@st.composite
def row_walk(draw: st.Draw, apart: Strategy[Block], *, stray: bool) -> Statement:
    """A loop along a row, perhaps in one over rows, by one to three pointers."""
    area = draw(st.sampled_from([ARRAY, ARRAY, ARRAY, MINE]))
    wrong = draw(st.sampled_from([Wrong.BEGIN, Wrong.LENGTH, Wrong.LENGTH])) if stray and area is ARRAY else Wrong.NOTHING
    plain = wrong is Wrong.LENGTH or draw(st.booleans())
    pointers = [
        draw(pointer(*each, area, wrong, plain=plain))
        for each in [("a", "d"), ("b", "e"), ("c", "f")][: draw(st.integers(1, 3))]
    ]
    rows, rewinds = draw(st.integers(1, 3)), draw(st.booleans())
    inner = draw(apart) if not plain and draw(st.integers(0, 3)) == 0 else []
    turns = min(each.turns(draw(st.sampled_from(PLAIN_TURNS if plain else TURNS)), area) for each in pointers)
    rows = rows if rewinds else min(rows, turns)
    turns = min(turns if rewinds else turns // rows, FEW_TURNS if inner else turns)
    values = {"r": draw(R), "p": draw(P), "at": 4 * draw(st.integers(0, OWN // 4 - 1)), "most": turns, "more": turns + 1}
    passed = turns if rewinds else turns * rows
    before = [line for each in pointers for line in draw(start(each, passed, area, wrong, plain=plain))]
    before += [
        draw(st.sampled_from(COUNTS[:1] if plain else COUNTS)).format(**values),
        draw(st.sampled_from(ENDS)).format(**values),
    ]
    before += [f"and.b32 %xc@n, {draw(R)}, 3;", "mov.u32 %xe@n, 0;"]
    places = [f"mov.b64 {each.register}, {each.first};" for each in pointers]
    loads = draw(elements(pointers, area, wrong))
    body = [f"and.b32 %t0, %xd@n, 3;\nsetp.lt.u32 %zg@n, %t0, {draw(st.integers(0, 4))};"]
    late = draw(st.sampled_from(LATE)).format(more=draw(st.integers(0, 8)))
    body += [f"{late}\nsetp.{draw(st.sampled_from(['eq', 'eq', 'ge']))}.u32 %zl@n, %xd@n, %t0;"]
    body += ["\n".join(load) for load in loads]
    body += [draw(st.sampled_from(each)).format(**values) for each in (OTHERS, BREAKS)] * (not plain)
    body += ["{0}"] * bool(inner)
    body += ["NEXT@n:", *[each.steps for each in pointers], "add.u32 %xd@n, %xd@n, 1;"]
    if draw(st.booleans()):  # the test stands before the loop and at its end
        loop = ["setp.eq.u32 %zc@n, %xb@n, 0;\n@%zc@n bra OUT@n;", "TURN@n:", *body, draw(st.sampled_from(TEST))]
    else:
        loop = ["TURN@n:", "setp.ge.u32 %zc@n, %xd@n, %xb@n;\n@%zc@n bra OUT@n;", *body, "bra TURN@n;"]
    outer = ["ROW@n:", *places * rewinds, "mov.u32 %xd@n, 0;", *loop, "OUT@n:"]
    outer += [f"add.u32 %xe@n, %xe@n, 1;\nsetp.lt.u32 %zr@n, %xe@n, {rows};\n@%zr@n bra ROW@n;"] * (rows > 1)
    lines = before + places * (not rewinds) + (outer if rows > 1 else outer[1:])
    return Statement("\n".join(lines), [inner] if inner else [], turns=min(turns, FEW_TURNS) * rows)


__all__ = ["ROWS", "row_walk"]

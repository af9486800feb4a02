"""Writes the conformance files named `oracle_*.ptx`, whose results come from oracles that share nothing with the catalog.

    python tools/conformance.py            write them
    python tools/conformance.py --check    say which would change

The definitions are those of `tests/oracle`: Python's integers as the manual's pseudocode has them, exact rationals rounded
once (`exact`), and for `.approx` what silicon gave (`../shared/fidelity`; without that folder those files stay as they are).
"""

from __future__ import annotations

import itertools
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from random import Random

import numpy as np

import ptxvm

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "tests" / "conformance"
FIDELITY = ROOT.parent / "shared" / "fidelity"
sys.path.insert(0, str(ROOT / "tests" / "oracle"))

import exact  # noqa: E402
import test_compare_exact  # noqa: E402
import test_convert_exact as small  # noqa: E402
import test_integer_exact  # noqa: E402
import test_logic_exact  # noqa: E402
import test_video_exact  # noqa: E402
from exact import BF16, F16, F32, F64, NAN, Format  # noqa: E402
from one_instruction import EXPONENT, Case, bits, read  # noqa: E402

OLD = ".version 6.4\n.target sm_75\n.address_size 64\n"
MEMORY = ".global .align 16 .b8 cell[32];\n.shared .align 16 .b8 scratch[32];\n"
BYTES = [(37 * n + 129) & 0xFF for n in range(32)]
TABLE = f".global .align 16 .b8 table[32] = {{ {', '.join(map(str, BYTES))} }};\n"
ALIKE = 0x2121_2121
FLAT = f".global .align 32 .b32 flat[64] = {{ {', '.join([hex(ALIKE)] * 64)} }};\n"
FUNCTIONS_OF_CALLS = """.func put(.reg .u32 x) { st.global.u32 [cell], x; ret.uni; }
.func seven_in_cell() { st.global.u32 [cell], 7; ret.uni; }
.func (.reg .u32 r) seven() { mov.u32 r, 7; ret.uni; }
.func (.reg .u32 r) twice(.reg .u32 x) { add.u32 r, x, x; ret.uni; }
"""
NEW = ".version 9.4\n.target sm_107a\n.address_size 64\n"
CHIP = ".version 9.2\n.target sm_100a\n.address_size 64\n"
HEADS = {OLD: "", NEW: "_new", CHIP: "_chip"}  # the modules, and how their files are called
ROOM = 64  # bytes of results of one kernel
TOGETHER = 8  # instructions of one kernel
ROWS = {
    "compare": 4,
    "video": 4,
    "approx": 120,
    "small": 40,
    "bits": 12,
}  # runs of one kernel, by family or file; of the others 8

FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}
ONE = {name: f.bias << f.fraction for name, f in FORMATS.items()}
PAIR = "ff32"  # two f16 in 32 bits, as a type of operands
ADDEND = "sf32"  # an f32, often subnormal or near that
SMALL = "us32"  # an f32 in and about the ranges of the small formats
RECORDED = "sfu32"  # an f32 of which silicon's results are recorded


class Unsaid(Exception):  # noqa: N818 - no error: the manual leaves the result open
    """A definition has nothing to say about these operands."""


# ── the files ───────────────────────────────────────────────────────────────────────────


def files() -> dict[Path, str]:
    """Every file with its text."""
    written = {}
    for (family, name, source), cases in families().items():
        by_head: dict[str, list[Case]] = {}
        for case in cases:
            by_head.setdefault(head_of(case), []).append(case)
        for head, chosen in by_head.items():
            path = FOLDER / family / f"oracle_{name}{HEADS[head]}.ptx"
            written[path] = text(head, source, chosen, ROWS.get(name, ROWS.get(family, 8)))
    return written


def families() -> dict[tuple[str, str, str], list[Case]]:
    """The cases of each file, and where their definitions are."""
    drawn = test_video_exact
    found = {
        ("integer", "integers", "integers by the manual's definition, PTX 9.7.1"): [
            *test_integer_exact.integer_cases(), *test_integer_exact.packed_cases(),
        ],
        ("integer", "bits", "integers by the manual's definition, PTX 9.7.1.14 to 9.7.1.24"): [*test_integer_exact.bit_cases()],
        ("extended", "chains", "integers by the manual's definition, PTX 9.7.2"): [
            *test_integer_exact.extended_cases(), *chain_cases(),
        ],
        ("logic", "logic", "integers by the manual's definition, PTX 9.7.8, 9.7.9.7"): [*test_logic_exact.logic_cases()],
        ("compare", "integers", "integers by the manual's definition, PTX 9.7.6"): [
            *test_logic_exact.compare_cases(), *integer_comparisons(),
        ],
        ("compare", "floats", "the tables 23 to 25 of PTX 9.3.1"): [*test_compare_exact.cases(), *float_comparisons()],
        ("video", "scalar", "integers by the manual's definition, PTX 9.7.18.1"): [
            *drawn.video_cases(np.random.default_rng(1)), *drawn.vmad_cases(np.random.default_rng(2)),
        ],
        ("video", "simd", "integers by the manual's definition, PTX 9.7.18.2"): [*drawn.simd_cases(np.random.default_rng(3))],
        ("float", "arithmetic", "exact rationals, PTX 9.7.3"): [*float_cases()],
        ("float", "signs", "exact rationals, PTX 9.7.3"): [*sign_cases()],
        ("half", "arithmetic", "exact rationals, PTX 9.7.4"): [*half_cases()],
        ("convert", "integers", "integers by the manual's definition, PTX 9.7.9.21"): [*integer_conversions()],
        ("convert", "floats", "exact rationals, PTX 9.7.9.21"): [*float_conversions()],
    }  # fmt: skip
    found["convert", "small", "ml_dtypes and exact rationals, PTX 9.7.9.21"] = [*small_conversions()]
    found["memory", "cells", "integers by the manual's definition, PTX 9.7.9"] = [*memory_cases()]
    found["atomic", "orders", "integers by the manual's definition, PTX 9.7.13.5, 9.7.13.7"] = [*atomic_cases()]
    found["control", "calls", "integers by the manual's definition, PTX 9.7.12"] = [*control_cases()]
    found["barrier", "warp", "integers by the manual's definition, PTX 9.7.13, all lanes alike"] = [*warp_cases()]
    found["wmma", "alike", "integers: where all lanes hold the same words, PTX 9.7.14.4"] = [*wmma_cases()]
    if FIDELITY.is_dir():
        found["float", "approx", "silicon, fidelity/sfu_random.npz, PTX 9.7.3"] = [*approximations()]
    return found


def head_of(case: Case) -> str:
    """The first of the modules that has it."""
    said = kernel("k", [case])
    for head in HEADS:
        if not any(d.severity == "error" for d in ptxvm.check(head + declarations(said) + said)):
            return head
    raise ValueError(f"no module takes {case.text}")


def declarations(said: str) -> str:
    """The variables and functions that kernels name."""
    calls = re.search(r"\b(put|seven|seven_in_cell|twice)\b", said)
    needed = [(MEMORY, calls or re.search(r"\b(cell|scratch)\b", said)), (TABLE, "table" in said), (FLAT, "flat" in said)]
    return "".join(text for text, wanted in needed if wanted) + (FUNCTIONS_OF_CALLS if calls else "")


def text(head: str, source: str, cases: list[Case], rows: int) -> str:
    """A file: kernels of some instructions with the same operands, each with its runs."""
    parts = []
    for n, group in enumerate(groups(cases)):
        runs = [f"//: run {call}  // {source}\n" for call in calls(f"k{n}", group, rows)]
        parts.append("".join(runs) + kernel(f"k{n}", group))
    said = "\n".join(parts)
    return f"// Written by tools/conformance.py from {source}.\n{head}{declarations(said)}\n{said}"


def groups(cases: Iterable[Case]) -> Iterator[list[Case]]:
    """Instructions with the same operands, some at a time."""
    by_operands: dict[str, list[Case]] = {}
    for case in cases:
        by_operands.setdefault(case.operands, []).append(case)
    for same in by_operands.values():
        group: list[Case] = []
        for case in same:
            if len(group) == TOGETHER or size([*group, case]) > ROOM:
                yield group
                group = []
            group.append(case)
        yield group


def size(group: list[Case]) -> int:
    """How many bytes the results take."""
    type, at = places(group)[-1]
    return at + bits(type) // 8


def places(group: list[Case]) -> list[tuple[str, int]]:
    """The type and the offset of every result."""
    found, at = [], 0
    for type in " ".join(case.results for case in group).split():
        width = bits(type) // 8
        at = -(-at // width) * width
        found.append((type, at))
        at += width
    return found


def kernel(name: str, group: list[Case]) -> str:
    """Load the operands, run the instructions, store the results."""
    operands = dict(zip("abcf", group[0].operands.split(), strict=False))
    registers, loads = [".reg .b64 %out;", ".reg .b16 %t;"], ["ld.param.u64 %out, [out];"]
    for n, t in operands.items():
        held = "b16" if t == "pred" else f"b{bits(t)}"
        registers.append(f".reg .{held} %{n};")
        loads.append(f"ld.param.{held} %{n}, [{n}];")
        if t == "pred":
            registers.append(f".reg .pred %q{n};")
            loads.append(f"setp.ne.s16 %q{n}, %{n}, 0;")
    body, offsets = [], iter(places(group))
    for k, case in enumerate(group):
        where = {n: f"%q{n}" if t == "pred" else f"%{n}" for n, t in operands.items()}
        stores = []
        for n, t in zip("de", case.results.split(), strict=False):
            where[n] = f"%{n}{k}"
            registers.append(f".reg .{'pred' if t == 'pred' else f'b{bits(t)}'} %{n}{k};")
            _, at = next(offsets)
            if t == "pred":
                stores.append(f"selp.b16 %t, 1, 0, %{n}{k}; st.global.u8 [%out+{at}], %t;")
            else:
                stores.append(f"st.global.b{bits(t)} [%out+{at}], %{n}{k};")
        body += [case.body.format(**where), *stores]
    parameters = [".param .u64 out", *(f".param .b{16 if t == 'pred' else bits(t)} {n}" for n, t in operands.items())]
    lines = [" ".join(registers), " ".join(loads), *body, "ret;"]
    return f".visible .entry {name}({', '.join(parameters)})\n{{\n" + "".join(f"    {line}\n" for line in lines) + "}\n"


def calls(name: str, group: list[Case], rows: int) -> Iterator[str]:
    """What runs give: `k0(1, 2) == (3, 4) : b32, b32`."""
    random = Random(zlib.crc32(" ".join(case.text for case in group).encode()))  # noqa: S311 - to be had again
    types = group[0].operands.split()
    results = [type for type, _ in places(group)]
    made, seen, hard = 0, set(), iter(edges() if types == [RECORDED] else HARD.get(group[0].operands, []))
    for attempt in range(40 * rows):
        row = next(hard, None) or tuple(draw(t, random) for t in types)
        if attempt == 4 and len(types) > 1 and types[0] == types[1]:
            row = (row[0], row[0], *row[2:])
        if row in seen:
            continue
        seen.add(row)
        try:
            values = [value for case in group for value in wanted(case, row)]
        except Unsaid:
            continue
        cut = [hex(v & (1 << bits(t)) - 1) for v, t in zip(values, results, strict=True)]
        said = ", ".join("u8" if t == "pred" else f"b{bits(t)}" for t in results)
        shape = "<<<1, 32>>>" if re.search("wmma|match|bar", group[0].text) else ""
        yield f"{name}{shape}({', '.join(map(hex, row))}) == ({', '.join(cut)}) : {said}"
        made += 1
        if made == rows:
            return


def wanted(case: Case, row: tuple[int, ...]) -> tuple[int, ...]:
    """The results by definition."""
    given = case.reference(*[read(x, t) for x, t in zip(row, case.operands.split(), strict=True)])
    values = given if isinstance(given, tuple) else (given,)
    return tuple(int(v) for v in values)


# f32 that small formats, tf32 and scale factors must tell apart: ties and their neighbours, the ends, what has no number.
TIES = [0x3F88_0000, 0x3F98_0000, 0x3F90_0000, 0x3FA0_0000, 0x3FB0_0000, 0x3F80_1000, 0x3F80_3000]
NEIGHBOURS = [x + n for x in TIES for n in (-1, 0, 1)]
ENDS = [
    0, 1, 0x3F_FFFF, 0x40_0000, 0x40_0001, 0x7F_FFFF, 0x80_0000, 0x80_0001, 0x7F00_0000, 0x7F00_0001, 0x7F7F_FFFF,
    0x7F80_0000, 0x7F80_0001, 0x7FFF_FFFF,
]  # fmt: skip
DELICATE = [*ENDS, *NEIGHBOURS]
# Operands that random ones would hardly hit, by the types of a case.
HARD: dict[str, Iterable[tuple[int, ...]]] = {
    # what a second rounding would betray: a product halfway between two f16, and a summand far below it
    "f16 f16 f16": [(0x3C01, 0x3E00, 0x8001), (0x3C01, 0x3E00, 0x0001), (0xBC01, 0x3E00, 0x0001)],
    f"{PAIR} {PAIR} {PAIR}": [(0x3C01_BC01, 0x3E00_3E00, 0x8001_0001)],
    SMALL: [(x,) for x in (*DELICATE, 0xFF80_0000, 0xBF80_1000)],
    f"{SMALL} {SMALL}": [(x | 1 << 31, y) for x, y in itertools.pairwise(DELICATE)],
    f"{SMALL} {SMALL} u32": [
        (0x3F8F_FFF0, 0x3F8F_FFF0, 0x0001_0001),
        (0xFFFE, 0x80_0000, 0x0001_0000), (0x7F_FFFF, 0x7F7F_FFFF, 0x0000_FFFF), (0x7FC0_0000, 0xFF80_0000, 0),
        (0x8000_0001, 0x3F_FFFF, 0xFFFF_FFFF), (0x3F80_0001, 0xBF87_FFFF, 0xFFFF_FFFF), (0x3380_0000, 0x3300_0000, 0xFFFF_8000),
        (0x3F88_0000, 0xBFA0_0000, 0x7FFF_8000), (0x43E0_0000, 0xC3F0_0000, 0x7FFF_8000),
    ],
    "u32 u32 s32 s32": [(0, 0, 0x7FFF_FFFF, 0x7FFF_FFFF), (0, 0, 0x8000_0000, 0x7FFF_FFFF)],  # sums out of range
    "b32 u32 s32": [  # of fns: the only bit upward and downward, too few, and the bit at the base
        *((1 << n, 0, 1) for n in (0, 1, 2, 4, 8, 16, 31)), (1, 32, 1), (0xF0, 5, 0), (0xF0, 3, 0),
        *((mask, base, (1 << 32) - n) for mask, base, n in ((1 << 31, 3, 1), (1 << 31, 31, 1), (1, 0, 1), (3, 1, 2), (3, 1, 3)))
    ],
}  # fmt: skip

# ── operands ────────────────────────────────────────────────────────────────────────────


def draw(type: str, random: Random) -> int:
    """A pattern that breaks things, a small number (they are amounts and counts too), or random bits."""
    if type == "pred":
        return random.randrange(2)
    if type == PAIR:
        return draw("f16", random) << 16 | draw("f16", random)
    if type == ADDEND:
        size = random.choice((0x80_0000 + random.getrandbits(22), random.getrandbits(23), 0x80_0000))
        return random.getrandbits(1) << 31 | size
    if type == SMALL:
        near = random.randint(100, 140) << 23 | random.getrandbits(2) << 30 & 1 << 31 | random.getrandbits(5) << 18
        return random.choice(
            (near, near | random.getrandbits(32) & 1 << 31, near ^ 1, draw("f32", random), 0x7FC0_0001, random.getrandbits(23))
        )
    if type == RECORDED:
        return random.choice(recorded_inputs()[random.choice((0, 0, 1, 2))])
    n, kind = bits(type), random.randrange(4)
    top = (1 << n) - 1
    if type in EXPONENT:
        return draw_float(FORMATS[type], kind, random)
    if kind == 0:
        return random.choice([0, 1, 2, 31, 32, 33, 63, 64, 255, 256, top, top - 1, top >> 1, (top >> 1) + 1]) & top
    if kind == 1:
        return random.randrange(70)
    return random.getrandbits(n)


def draw_float(format: Format, kind: int, random: Random) -> int:
    """An awkward number, one near 1 or near a power of two, or random bits."""
    if kind == 0:
        return random.choice(exact.interesting(format))
    if kind == 1:
        return random.getrandbits(format.bits)
    near = (format.bias << format.fraction) + random.randint(-64, 64) + (random.choice((0, 1, -1, 3, 10)) << format.fraction)
    if kind == 2:
        return near | random.choice((0, format.sign))
    whole = exact.round_fraction(Fraction(random.randint(-2000, 2000), 8), format, "rn")
    return whole ^ random.choice((0, 0, format.sign))


# ── extended precision ──────────────────────────────────────────────────────────────────


def chain_cases() -> Iterator[Case]:
    """What `test_integer_exact` lacks: carries into 16 bits, and saturation."""
    clamp = test_integer_exact.clamp
    for t in ("u16", "s16"):
        yield Case(f"sub.cc.u32 {{d}}, {{a}}, {{b}}; subc.{t} {{e}}, {{c}}, {{f}};", f"u32 {t}", f"u32 u32 {t} {t}",
                   lambda a, b, c, f: (a - b, c - f - (a < b)))  # fmt: skip
        yield Case(f"add.cc.u32 {{d}}, {{a}}, {{b}}; addc.{t} {{e}}, {{c}}, {{f}};", f"u32 {t}", f"u32 u32 {t} {t}",
                   lambda a, b, c, f: (a + b, c + f + (a + b >> 32)))  # fmt: skip
        for half, shift in (("lo", 0), ("hi", 16)):
            yield Case(f"add.cc.u32 {{d}}, {{a}}, {{b}}; madc.{half}.{t} {{e}}, {{c}}, {{f}}, {{c}};", f"u32 {t}",
                       f"u32 u32 {t} {t}",
                       lambda a, b, c, f, shift=shift: (a + b, (c * f >> shift) + c + (a + b >> 32)))  # fmt: skip
    yield Case("add.cc.u32 {d}, {a}, {b}; madc.hi.sat.s32 {e}, {c}, {f}, {c};", "u32 s32", "u32 u32 s32 s32",
               lambda a, b, c, f: (a + b, clamp((c * f >> 32) + c + (a + b >> 32), "s32")))  # fmt: skip


# ── comparisons ─────────────────────────────────────────────────────────────────────────

DTYPES = {"u32": 0xFFFF_FFFF, "s32": 0xFFFF_FFFF, "f32": ONE["f32"]}


def integer_comparisons() -> Iterator[Case]:
    """Every operator with every type and combination; `slct` and `selp` of every type."""
    joins = itertools.cycle(test_logic_exact.JOIN.items())
    dtypes = itertools.cycle(DTYPES.items())
    for t in ("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64"):
        for op in (*test_logic_exact.COMPARE, *test_logic_exact.UNSIGNED):
            if (t[0] == "b" and op not in ("eq", "ne")) or (t[0] != "u" and op in test_logic_exact.UNSIGNED):
                continue
            f = test_logic_exact.COMPARE[test_logic_exact.UNSIGNED.get(op, op)]
            (name, join), (dtype, true) = next(joins), next(dtypes)
            yield Case(f"setp.{op}.{name}.{t} {{d}}|{{e}}, {{a}}, {{b}}, {{c}};", "pred pred", f"{t} {t} pred",
                       lambda a, b, c, f=f, join=join: (join(int(f(a, b)), c), join(int(not f(a, b)), c)))  # fmt: skip
            yield Case(f"set.{op}.{name}.{dtype}.{t} {{d}}, {{a}}, {{b}}, !{{c}};", "b32", f"{t} {t} pred",
                       lambda a, b, c, f=f, join=join, true=true: true * join(int(f(a, b)), 1 - c))  # fmt: skip
            yield Case(f"set.{op}.{dtype}.{t} {{d}}, {{a}}, {{b}};", "b32", f"{t} {t}",
                       lambda a, b, f=f, true=true: true * f(a, b))  # fmt: skip
            if t[1:] != "8":
                yield Case(f"set.{op}.f16.{t} {{d}}, {{a}}, {{b}};", "b16", f"{t} {t}", lambda a, b, f=f: ONE["f16"] * f(a, b))
                yield Case(f"set.{op}.{name}.f16.{t} {{d}}, {{a}}, {{b}}, {{c}};", "b16", f"{t} {t} pred",
                           lambda a, b, c, f=f, join=join: ONE["f16"] * join(int(f(a, b)), c))  # fmt: skip
    for t in ("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64"):
        yield Case(f"selp.{t}", f"b{t[1:]}", f"b{t[1:]} b{t[1:]} pred", lambda a, b, c: a if c else b)
        yield Case(f"slct.{t}.s32", f"b{t[1:]}", f"b{t[1:]} b{t[1:]} s32", lambda a, b, c: a if c >= 0 else b)
        for ftz in ("", ".ftz"):
            yield Case(f"slct{ftz}.{t}.f32", f"b{t[1:]}", f"b{t[1:]} b{t[1:]} f32",
                       lambda a, b, c, ftz=ftz: a if test_compare_exact.number(c, "f32", ftz) >= 0 else b)  # fmt: skip


def float_comparisons() -> Iterator[Case]:
    """Every operator with a combination, for one number and for pairs; the definitions are `test_compare_exact`'s."""
    joins = itertools.cycle(test_logic_exact.JOIN.items())
    for op, type in itertools.product(test_compare_exact.OPERATORS, ("f16", "f32", "f64")):
        for ftz in ("", ".ftz") if type != "f64" else ("",):
            (name, join), f, three = next(joins), test_compare_exact.truth(op, type, ftz), f"{type} {type} pred"
            if type == "f16":
                yield Case(f"setp.{op}.{name}{ftz}.f16 {{d}}, {{a}}, {{b}}, {{c}};", "pred", three,
                           lambda a, b, c, f=f, join=join: join(int(f(a, b)), c))  # fmt: skip
                yield Case(f"setp.{op}{ftz}.f16 {{d}}, {{a}}, {{b}};", "pred", "f16 f16", lambda a, b, f=f: int(f(a, b)))
            else:
                yield Case(f"setp.{op}.{name}{ftz}.{type} {{d}}|{{e}}, {{a}}, {{b}}, {{c}};", "pred pred", three,
                           lambda a, b, c, f=f, join=join: (join(int(f(a, b)), c), join(int(not f(a, b)), c)))  # fmt: skip
                yield Case(f"setp.{op}{ftz}.{type} {{d}}|{{e}}, {{a}}, {{b}};", "pred pred", f"{type} {type}",
                           lambda a, b, f=f: (int(f(a, b)), int(not f(a, b))))  # fmt: skip
                yield Case(f"set.{op}{ftz}.f32.{type} {{d}}, {{a}}, {{b}};", "b32", f"{type} {type}",
                           lambda a, b, f=f: ONE["f32"] * f(a, b))  # fmt: skip
            yield Case(f"set.{op}.{name}{ftz}.u32.{type} {{d}}, {{a}}, {{b}}, {{c}};", "b32", three,
                       lambda a, b, c, f=f, join=join: 0xFFFF_FFFF * join(int(f(a, b)), c))  # fmt: skip
            yield Case(f"set.{op}.{name}{ftz}.f16.{type} {{d}}, {{a}}, {{b}}, {{c}};", "b16", three,
                       lambda a, b, c, f=f, join=join: ONE["f16"] * join(int(f(a, b)), c))  # fmt: skip
    for op, ftz in itertools.product(test_compare_exact.OPERATORS, ("", ".ftz")):
        name, join = next(joins)
        yield from pair_comparisons(op, ftz, name, join)


def pair_comparisons(op: str, ftz: str, name: str, join: Callable[[int, int], int]) -> Iterator[Case]:
    """Pairs of f16, each compared alone."""
    f = test_compare_exact.truth(op, "f16", ftz)

    def both(a: int, b: int) -> tuple[int, int]:
        return int(f(a & 0xFFFF, b & 0xFFFF)), int(f(a >> 16, b >> 16))

    yield Case(f"setp.{op}{ftz}.f16x2 {{d}}|{{e}}, {{a}}, {{b}};", "pred pred", f"{PAIR} {PAIR}", both)
    yield Case(f"setp.{op}.{name}{ftz}.f16x2 {{d}}|{{e}}, {{a}}, {{b}}, {{c}};", "pred pred", f"{PAIR} {PAIR} pred",
               lambda a, b, c: tuple(join(t, c) for t in both(a, b)))  # fmt: skip
    yield Case(f"set.{op}{ftz}.f16x2.f16x2 {{d}}, {{a}}, {{b}};", "b32", f"{PAIR} {PAIR}",
               lambda a, b: sum(ONE["f16"] * t << 16 * n for n, t in enumerate(both(a, b))))  # fmt: skip
    yield Case(f"set.{op}.{name}{ftz}.f16x2.f16x2 {{d}}, {{a}}, {{b}}, {{c}};", "b32", f"{PAIR} {PAIR} pred",
               lambda a, b, c: sum(ONE["f16"] * join(t, c) << 16 * n for n, t in enumerate(both(a, b))))  # fmt: skip


# ── floating point ──────────────────────────────────────────────────────────────────────

Reference = Callable[..., "int | str"]


def flush(x: int, format: Format) -> int:
    """A subnormal becomes zero of its sign."""
    return x & format.sign if x & format.infinity == 0 else x


def modified(function: Reference, format: Format, *, ftz: bool, sat: bool) -> Callable[..., int]:
    """The function with `.ftz` and `.sat`, and its NaN."""

    def apply(*row: int) -> int:
        r = function(*(flush(x, format) if ftz else x for x in row))
        if sat:
            return 0 if r == NAN or exact.negative(int(r), format) else min(int(r), format.bias << format.fraction)
        if r == NAN:
            if format is F64:
                raise Unsaid
            return format.sign - 1
        return flush(int(r), format) if ftz else int(r)

    def apply_ftz(*row: int) -> int:
        r = apply(*row)
        return flush(r, format) if ftz else r

    return apply_ftz


def rcp(a: int, format: Format, mode: str) -> int | str:
    """The reciprocal."""
    return exact.div(format.bias << format.fraction, a, format, mode)


ARITHMETIC: dict[str, tuple[int, Reference]] = {
    "add": (2, exact.add), "sub": (2, exact.sub), "mul": (2, exact.mul), "fma": (3, exact.fma), "mad": (3, exact.fma),
    "div": (2, exact.div), "rcp": (1, rcp), "sqrt": (1, exact.sqrt),
}  # fmt: skip


def float_cases() -> Iterator[Case]:
    """Every rounding with every modifier."""
    for (op, (arity, function)), mode in itertools.product(ARITHMETIC.items(), exact.MODES):
        for ftz, sat in itertools.product(("", ".ftz"), ("", ".sat")):
            if not sat or op in ("add", "sub", "mul", "fma", "mad"):
                one = modified(partial(function, format=F32, mode=mode), F32, ftz=bool(ftz), sat=bool(sat))
                yield Case(f"{op}.{mode}{ftz}{sat}.f32", "f32", " ".join(["f32"] * arity), one)
        one = modified(partial(function, format=F64, mode=mode), F64, ftz=False, sat=False)
        yield Case(f"{op}.{mode}.f64", "f64", " ".join(["f64"] * arity), one)
    yield Case("rcp.rn.ftz.f64", "f64", "f64", modified(partial(rcp, format=F64, mode="rn"), F64, ftz=False, sat=False))
    yield Case("rcp.rz.ftz.f64", "f64", "f64", modified(partial(rcp, format=F64, mode="rz"), F64, ftz=False, sat=False))
    yield Case("rcp.rm.ftz.f64", "f64", "f64", modified(partial(rcp, format=F64, mode="rm"), F64, ftz=False, sat=False))
    yield Case("rcp.rp.ftz.f64", "f64", "f64", modified(partial(rcp, format=F64, mode="rp"), F64, ftz=False, sat=False))


def extreme(a: int, b: int, format: Format, choose: Callable[..., int]) -> int | str:
    """PTX 9.7.3.11: a number beats NaN; +0 is greater than -0."""
    numbers = [x for x in (a, b) if not exact.is_nan(x, format)]
    return choose(numbers, key=lambda x: -x if x & format.sign else x + 2 * format.sign) if numbers else NAN


def sign(a: int, format: Format, op: str) -> int:
    """The sign changed: abs and neg; what they make of NaN the manual leaves open."""
    if exact.is_nan(a, format):
        raise Unsaid
    return a ^ format.sign if op == "neg" else a & format.sign - 1


PROPERTIES: dict[str, Callable[[int, Format], bool]] = {
    "finite": lambda x, f: x & f.sign - 1 < f.infinity,
    "infinite": exact.is_infinite,
    "number": lambda x, f: not exact.is_nan(x, f),
    "notanumber": exact.is_nan,
    "normal": lambda x, f: x & f.sign - 1 == 0 or 1 << f.fraction <= x & f.sign - 1 < f.infinity,
    "subnormal": lambda x, f: 0 < x & f.sign - 1 < 1 << f.fraction,
}


def sign_cases() -> Iterator[Case]:
    """testp, copysign, abs, neg, min, max."""
    for type, format in (("f32", F32), ("f64", F64)):
        for property, holds in PROPERTIES.items():
            yield Case(f"testp.{property}.{type}", "pred", type, lambda a, holds=holds, f=format: int(holds(a, f)))
        yield Case(f"copysign.{type}", type, f"{type} {type}", lambda a, b, f=format: a & f.sign | b & f.sign - 1)
        for ftz in ("", ".ftz") if type == "f32" else ("",):
            for op in ("abs", "neg"):
                one = modified(partial(sign, format=format, op=op), format, ftz=bool(ftz), sat=False)
                yield Case(f"{op}{ftz}.{type}", type, type, one)
            for op, choose in (("min", min), ("max", max)):
                one = modified(partial(extreme, format=format, choose=choose), format, ftz=bool(ftz), sat=False)
                yield Case(f"{op}{ftz}.{type}", type, f"{type} {type}", one)


def half_cases() -> Iterator[Case]:
    """One f16, and pairs."""
    for op, arity in (("add", 2), ("sub", 2), ("mul", 2), ("fma", 3)):
        for ftz, sat, rnd in itertools.product(("", ".ftz"), ("", ".sat"), ("", ".rn") if op != "fma" else (".rn",)):
            function = partial(ARITHMETIC[op][1], format=F16, mode="rn")
            one = modified(function, F16, ftz=bool(ftz), sat=bool(sat))
            yield Case(f"{op}{rnd}{ftz}{sat}.f16", "f16", " ".join(["f16"] * arity), one)
            yield Case(f"{op}{rnd}{ftz}{sat}.f16x2", "b32", " ".join([PAIR] * arity), paired(one))
    for op in ("abs", "neg"):
        for ftz in ("", ".ftz"):
            one = modified(partial(sign, format=F16, op=op), F16, ftz=bool(ftz), sat=False)
            yield Case(f"{op}{ftz}.f16", "f16", "f16", one)
            yield Case(f"{op}{ftz}.f16x2", "b32", PAIR, paired(one))


def paired(one: Callable[..., int]) -> Callable[..., int]:
    """The function of each half."""
    return lambda *row: one(*(x >> 16 for x in row)) << 16 | one(*(x & 0xFFFF for x in row))


# ── conversions ─────────────────────────────────────────────────────────────────────────

INTEGERS = [f"{kind}{size}" for kind in "us" for size in (8, 16, 32, 64)]


def register(type: str) -> str:
    """The register that a type sits in: bytes are held in 16 bits."""
    return f"{type[0]}16" if type in ("u8", "s8") else type


def range_of(type: str) -> tuple[int, int]:
    """The least and the greatest integer of the type."""
    n = int(type[1:])
    return (-(1 << n - 1), (1 << n - 1) - 1) if type[0] == "s" else (0, (1 << n) - 1)


def taken(x: int, type: str) -> int:
    """The integer that the low bits stand for."""
    return read(x & (1 << int(type[1:])) - 1, type)


def integer_conversions() -> Iterator[Case]:
    """Cut off or extended as the source is signed, limited with .sat."""
    for target, source in itertools.product(INTEGERS, repeat=2):
        (least, most), (low, high) = range_of(target), range_of(source)
        yield Case(f"cvt.{target}.{source}", register(target), register(source),
                   lambda a, s=source, t=target: taken(taken(a, s), t))  # fmt: skip
        if low < least or high > most:
            yield Case(f"cvt.sat.{target}.{source}", register(target), register(source),
                       lambda a, s=source, least=least, most=most: min(max(taken(a, s), least), most))  # fmt: skip


def float_conversions() -> Iterator[Case]:
    """Between floats, from integers, to integers, and to integral floats."""
    floats = {"f16": F16, "f32": F32, "f64": F64}
    for (t, target), (s, source) in itertools.product(floats.items(), repeat=2):
        for mode, ftz, sat in itertools.product(exact.MODES, ("", ".ftz"), ("", ".sat")):
            if target.bits < source.bits and not (ftz and "f32" not in (t, s)):
                one = converted(source, target, mode, ftz=bool(ftz), sat=bool(sat))
                yield Case(f"cvt.{mode}{ftz}{sat}.{t}.{s}", t, s, one)
        for ftz, sat in itertools.product(("", ".ftz"), ("", ".sat")):
            if target.bits > source.bits and not (ftz and "f32" not in (t, s)):
                yield Case(f"cvt{ftz}{sat}.{t}.{s}", t, s, converted(source, target, "rn", ftz=bool(ftz), sat=bool(sat)))
    for (t, target), s, mode in itertools.product(floats.items(), INTEGERS, exact.MODES):
        yield Case(f"cvt.{mode}.{t}.{s}", t, register(s),
                   lambda a, s=s, f=target, mode=mode: exact.round_fraction(Fraction(taken(a, s)), f, mode))  # fmt: skip
    yield from roundings(floats)


def roundings(floats: dict[str, Format]) -> Iterator[Case]:
    """To integers, and to integral values."""
    for (s, source), mode in itertools.product(floats.items(), exact.INTEGRAL):
        for ftz in ("", ".ftz") if s == "f32" else ("",):
            for t in INTEGERS:
                yield Case(f"cvt.{mode}{ftz}.{t}.{s}", register(t), s, to_integer(source, s, t, mode, ftz=bool(ftz)))
            for sat in ("", ".sat"):
                yield Case(f"cvt.{mode}{ftz}{sat}.{s}.{s}", s, s,
                           modified(partial(integral, format=source, mode=mode), source, ftz=bool(ftz), sat=bool(sat))
                           )  # fmt: skip


def converted(source: Format, target: Format, mode: str, *, ftz: bool, sat: bool) -> Callable[[int], int]:
    """One float to another; `.ftz` is for the side that is f32."""

    def apply(a: int) -> int:
        r = exact.convert(flush(a, F32) if ftz and source is F32 else a, source, target, mode)
        return modified(lambda: r, target, ftz=ftz and target is F32, sat=sat)()

    return apply


def to_integer(source: Format, s: str, t: str, mode: str, *, ftz: bool) -> Callable[[int], int]:
    """A float to an integer; NaN is 0, or the sign bit where one of the two has 64 bits (PTX 9.7.9.21)."""
    least, most = range_of(t)
    nan = taken(1 << int(t[1:]) - 1, t) if s == "f64" or t.endswith("64") else 0

    def apply(a: int) -> int:
        r = exact.to_integer(flush(a, source) if ftz else a, source, mode, least, most)
        return nan if r == NAN else int(r)

    return apply


def integral(a: int, format: Format, mode: str) -> int | str:
    """Rounded to an integral value."""
    if exact.is_nan(a, format) or exact.is_infinite(a, format):
        return NAN if exact.is_nan(a, format) else a
    whole = Fraction(exact.round_integral(exact.value(a, format), mode))
    return exact.round_fraction(whole, format, "rn", minus=exact.negative(a, format))


def small_conversions() -> Iterator[Case]:
    """bf16, tf32 and the formats of eight bits and fewer; f32 drawn in and about their ranges."""
    yield from pairs_of_halves()
    yield from random_conversions()
    yield from tf32_conversions()
    yield from byte_conversions()
    yield from scale_conversions()
    yield from fixed_conversions()


def random_conversions() -> Iterator[Case]:
    """To pairs of halves and to four small numbers, rounded by random bits; the definition is `test_convert_exact`'s."""
    three = f"{SMALL} {SMALL} u32"
    for half, relu, finite in itertools.product(("f16", "bf16"), ("", ".relu"), ("", ".satfinite")):

        def one(x: int, r: int, half: str = half, relu: str = relu, finite: str = finite) -> int:
            bits = r << {"f16": 3, "bf16": 0}[half] & 0xFFFF
            return small.at_random(x, half, bits, relu=bool(relu), finite=bool(finite))

        yield Case(f"cvt.rs{relu}{finite}.{half}x2.f32", "b32", three,
                   lambda a, b, r, f=one: f(a, r >> 16) << 16 | f(b, r & 0xFFFF))  # fmt: skip
    for name, relu in itertools.product(small.SMALL, ("", ".relu")):

        def four(a: int, b: int, r: int, name: str = name, relu: str = relu) -> int:
            high, low = r >> 16, r & 0xFFFF
            bits = (high, high, low, low)
            if name == "e2m1":
                bits = (high & 0xFF00, low & 0xFF00, high << 8 & 0xFF00, low << 8 & 0xFF00)
            size = 4 if name == "e2m1" else 8
            codes = [small.at_random(x, name, n, relu=bool(relu)) for x, n in zip((a, b, b, a), bits, strict=True)]
            return sum(code << size * n for n, code in enumerate(reversed(codes)))

        yield Case(f"cvt.rs{relu}.satfinite.{name}x4.f32 {{d}}, {{{{{{a}}, {{b}}, {{b}}, {{a}}}}}}, {{c}};",
                   "b16" if name == "e2m1" else "b32", three, four)  # fmt: skip


def pairs_of_halves() -> Iterator[Case]:
    """Two f32 to f16x2 and bf16x2."""
    for half, mode, relu, finite in itertools.product(("f16", "bf16"), ("rn", "rz"), ("", ".relu"), ("", ".satfinite")):

        def one(x: int, half: str = half, mode: str = mode, relu: str = relu, finite: str = finite) -> int:
            return small.limited(x, FORMATS[half], mode, relu=bool(relu), finite=bool(finite))

        yield Case(f"cvt.{mode}{relu}{finite}.{half}x2.f32", "b32", f"{SMALL} {SMALL}", lambda a, b, f=one: f(a) << 16 | f(b))


def tf32_conversions() -> Iterator[Case]:
    """An f32 with ten bits of fraction."""
    for mode, relu in itertools.product(("rn", "rz", "rna"), ("", ".relu")):
        if not (relu and mode == "rna"):

            def tf32(x: int, mode: str = mode, relu: str = relu) -> int:
                if exact.is_nan(x, F32):
                    return 0x7FFF_FFFF
                return 0 if relu and x >> 31 else small.tf32(x, mode)

            yield Case(f"cvt.{mode}{relu}.tf32.f32", "b32", SMALL, tf32)
            if not relu:
                yield Case(f"cvt.{mode}.satfinite.tf32.f32", "b32", SMALL,
                           lambda x, f=tf32: f(x) - 0x2000 if f(x) & 0x7FFF_FFFF == F32.infinity else f(x))  # fmt: skip


def byte_conversions() -> Iterator[Case]:
    """Pairs of eight, six and four bits."""
    for name, relu in itertools.product(small.SMALL, ("", ".relu")):
        size, held = (4, "b8") if name == "e2m1" else (8, "b16")

        def code(x: int, name: str = name, relu: str = relu) -> int:
            x = 0 if relu and x >> 31 and not exact.is_nan(x, F32) else x
            return int(small.codes(np.array([x], np.uint32), name)[0])

        yield Case(f"cvt.rn.satfinite{relu}.{name}x2.f32", held, f"{SMALL} {SMALL}",
                   lambda a, b, f=code, size=size: f(a) << size | f(b))  # fmt: skip

        def wide(c: int, name: str = name, relu: str = relu) -> int:
            number = np.array([c & (1 << small.WIDTH[name]) - 1], np.uint8).view(small.SMALL[name][0]).astype(np.float16)[0]
            if np.isnan(number):
                return 0x7FFF
            return 0 if relu and np.signbit(number) else int(number.view(np.uint16))

        yield Case(f"cvt.rn{relu}.f16x2.{name}x2", "b32", held,
                   lambda a, f=wide, size=size: f(a >> size) << 16 | f(a & (1 << size) - 1))  # fmt: skip


def scale_conversions() -> Iterator[Case]:
    """Powers of two."""
    for mode, finite in itertools.product(("rz", "rp"), ("", ".satfinite")):

        def scale(x: int, mode: str = mode, finite: str = finite) -> int:
            if exact.is_nan(x, F32):
                return 0xFF
            size = x & 0x7FFF_FFFF
            if size == F32.infinity:
                return 0xFE if finite else 0xFF
            if not size:
                return 0
            number = exact.value(size, F32)
            power = exact.floor_log2(number)
            power += mode == "rp" and number != Fraction(2) ** power
            return min(max(power + 127, 0), 0xFE if finite else 0xFF)

        yield Case(f"cvt.{mode}{finite}.ue8m0x2.f32", "b16", f"{SMALL} {SMALL}", lambda a, b, f=scale: f(a) << 8 | f(b))

    def factor(c: int) -> int:
        return 0x7FFF if c == 0xFF else 0x40 if c == 0 else c << 7  # a bf16

    yield Case("cvt.rn.bf16x2.ue8m0x2", "b32", "b16", lambda a: factor(a >> 8) << 16 | factor(a & 0xFF))


def fixed_conversions() -> Iterator[Case]:
    """Two bits before the point and six after it."""
    for relu in ("", ".relu"):

        def fixed(x: int, relu: str = relu) -> int:
            if exact.is_nan(x, F32):
                return 0x7F
            y = int(exact.to_integer(small_times_64(x), F32, "rni", -128, 127))
            return (max(y, 0) if relu else y) & 0xFF

        yield Case(f"cvt.rn.satfinite{relu}.s2f6x2.f32", "b16", f"{SMALL} {SMALL}", lambda a, b, f=fixed: f(a) << 8 | f(b))

        def unfixed(c: int, relu: str = relu) -> int:
            number = Fraction(read(c, "s8"), 64)
            return exact.round_fraction(max(number, Fraction(0)) if relu else number, BF16, "rn")

        yield Case(f"cvt.rn{relu}.bf16x2.s2f6x2", "b32", "b16", lambda a, f=unfixed: f(a >> 8) << 16 | f(a & 0xFF))


def small_times_64(x: int) -> int:
    """64 times an f32."""
    return int(exact.mul(x, 0x4280_0000, F32, "rn"))


# ── memory, calls, warps ────────────────────────────────────────────────────────────────


def loaded(type: str, at: int) -> int:
    """What the table holds there."""
    n = int(type[1:]) // 8
    return read(int.from_bytes(bytes(BYTES[at : at + n]), "little"), type.replace("f", "b"))


def memory_cases() -> Iterator[Case]:
    """Loads and stores of every type, cache operator, scope and order."""
    types = [f"{kind}{size}" for kind in "bus" for size in (8, 16, 32, 64)] + ["f32", "f64"]
    for type, head in itertools.product(types, ("ld.global.nc", "ldu.global", "ld.global.ca", "ld.global.ca.nc")):
        held = f"b{max(int(type[1:]), 16)}"
        yield Case(f"{head}.{type} {{d}}, [table+8];", held, "", lambda t=type: loaded(t, 8))
    for head, count in itertools.product(("ld.global.nc", "ldu.global"), (2, 4)):
        rest = ", _" * (count - 2)
        yield Case(f"{head}.v{count}.b32 {{{{{{d}}, {{e}}{rest}}}}}, [table];", "b32 b32", "",
                   lambda: (loaded("b32", 0), loaded("b32", 4)))  # fmt: skip
    for cop in ("cg", "cs", "ca"):
        yield Case(f"ld.global.{cop}.nc.u32 {{d}}, [table+4];", "b32", "", lambda: loaded("b32", 4))
    pairs = ("st.global.cg ld.global.ca", "st.global.cs ld.global.lu", "st.global.wb ld.global.cv",
             "st.relaxed.sys.global ld.acquire.sys.global", "st.release.cta.global ld.relaxed.cta.global",
             "st.volatile.global ld.volatile.global")  # fmt: skip
    for put, get in map(str.split, pairs):
        yield Case(f"{put}.u32 [cell], {{a}}; {get}.u32 {{d}}, [cell];", "b32", "b32", lambda a: a)
    yield Case("ld.cs.u32 {d}, [table+4];", "b32", "", lambda: loaded("b32", 4))
    yield Case("st.global.s16 [cell], {a}; ld.global.s16 {d}, [cell];", "b16", "b16", lambda a: a)
    yield from vectors_of_eight()
    yield Case("mov.v2.b32 {{{d}, {e}}}, {{{a}, {b}}};", "b32 b32", "b32 b32", lambda a, b: (a, b))
    yield Case("mov.v4.f32 {{{d}, _, _, {e}}}, {{{a}, {b}, {a}, {b}}};", "b32 b32", "b32 b32", lambda a, b: (a, b))
    for type in ("s16", "s32"):
        yield Case(f"mov.{type} {{d}}, {{a}};", f"b{type[1:]}", f"b{type[1:]}", lambda a: a)
    yield Case(".reg .b64 %g, %h; mov.u64 %g, cell; cvta.global.u64 %h, %g; st.u32 [%h], {a}; cvta.to.global.u64 %g, %h; "
               "ld.global.u32 {d}, [%g];", "b32", "b32", lambda a: a)  # fmt: skip
    yield Case(".local .b32 mine; st.local.u32 [mine], {a}; prefetch.local.L1 [mine]; ld.local.u32 {d}, [mine];", "b32", "b32",
               lambda a: a)  # fmt: skip


def vectors_of_eight() -> Iterator[Case]:
    """Loads of eight elements, of which one near the begin and the last are looked at, and a store."""
    for name, head, type in (("u", "ld.global", "u16"), ("v", "ld.global.nc", "s8")):
        size = int(type[1:]) // 8
        yield Case(f".reg .b16 %{name}<8>; {head}.v8.{type} {{{{{', '.join(f'%{name}{n}' for n in range(8))}}}}}, [table]; "
                   f"mov.b16 {{d}}, %{name}1; mov.b16 {{e}}, %{name}7;", "b16 b16", "",
                   lambda t=type, size=size: (loaded(t, size), loaded(t, 7 * size)))  # fmt: skip
    yield Case("st.global.v8.b16 [cell], {{{a}, {b}, {b}, {b}, {b}, {a}, {a}, {a}}}; ld.global.b32 {d}, [cell]; "
               "ld.global.b32 {e}, [cell+8];", "b32 b32", "b16 b16",
               lambda a, b: (b << 16 | a & 0xFFFF, a << 16 | b & 0xFFFF))  # fmt: skip


def atomic_cases() -> Iterator[Case]:
    """Orders, scopes and types: what was there, and what is there then."""
    operations: dict[str, Callable[[int, int], int]] = {
        "add.u32": lambda a, b: a + b, "add.s32": lambda a, b: a + b, "add.u64": lambda a, b: a + b,
        "and.b64": lambda a, b: a & b,
        "or.b64": lambda a, b: a | b, "xor.b64": lambda a, b: a ^ b, "exch.b64": lambda _, b: b, "min.s64": min, "max.s64": max,
        "min.u64": min, "max.u64": max, "min.s32": min, "max.u32": max, "inc.u32": lambda a, b: 0 if a >= b else a + 1,
        "dec.u32": lambda a, b: b if a == 0 or a > b else a - 1, "exch.b32": lambda _, b: b,
        "add.noftz.f16": partial(sum_of_numbers, format=F16), "add.noftz.f16x2": paired(partial(sum_of_numbers, format=F16)),
        "add.f64": partial(sum_of_numbers, format=F64),
    }  # fmt: skip
    orders = itertools.cycle(("", ".acq_rel", ".acquire", ".release", ".relaxed"))
    scopes = itertools.cycle((".cta", ".gpu", ".sys"))
    for (name, function), (space, where) in itertools.product(operations.items(), (("global", "cell"), ("shared", "scratch"))):
        type = PAIR if name.endswith("x2") else name.split(".")[-1]
        held, order, scope = f"b{bits(type)}", next(orders), next(scopes)
        put, get = f"st.{space}.{held} [{where}], {{a}};", f"ld.{space}.{held} {{e}}, [{where}];"
        yield Case(f"{put} atom{order}{scope}.{space}.{name} {{d}}, [{where}], {{b}}; {get}", f"{held} {held}",
                   f"{type} {type}",
                   lambda a, b, f=function: (a, f(a, b)))  # fmt: skip
        if "exch" not in name:
            order = ".relaxed" if order else ""
            yield Case(f"{put} red{order}{scope}.{space}.{name} [{where}], {{b}}; {get.replace('{e}', '{d}')}", held,
                       f"{type} {type}", function)  # fmt: skip
    for space, where in (("global", "cell"), ("shared", "scratch")):  # f32 is flushed, but not in shared memory
        yield Case(f"st.{space}.b32 [{where}], {{a}}; atom.{space}.add.f32 {{d}}, [{where}], {{b}}; "
                   f"ld.{space}.b32 {{e}}, [{where}];",
                   "b32 b32", f"{ADDEND} {ADDEND}",
                   lambda a, b, ftz=space == "global": (a, sum_of_f32(a, b, ftz=ftz)))  # fmt: skip
    for type, order, scope in (("b32", ".acq_rel", ".cta"), ("b64", ".acquire", ".gpu"), ("b32", ".relaxed", ".sys"),
                               ("b64", ".release", ".sys")):  # fmt: skip
        for space, where in (("global", "cell"), ("shared", "scratch")):
            text = (f"st.{space}.{type} [{where}], {{a}}; "
                    f"atom{order}{scope}.{space}.cas.{type} {{d}}, [{where}], {{b}}, {{c}}; "
                    f"ld.{space}.{type} {{e}}, [{where}];")  # fmt: skip
            yield Case(text, f"{type} {type}", f"{type} {type} {type}", lambda a, b, c: (a, c if a == b else a))


def sum_of_numbers(a: int, b: int, format: Format) -> int:
    """The sum in memory; which NaN it is the manual leaves open."""
    r = exact.add(a, b, format, "rn")
    if r == NAN:
        raise Unsaid
    return int(r)


def sum_of_f32(a: int, b: int, *, ftz: bool) -> int:
    """The sum, with subnormal operands and results as zeros or as they are."""
    a, b = a & 0xFFFF_FFFF, b & 0xFFFF_FFFF
    r = sum_of_numbers(*(flush(x, F32) if ftz else x for x in (a, b)), F32)
    return flush(r, F32) if ftz else r


def control_cases() -> Iterator[Case]:
    """Calls and branches that all threads take together."""
    get = "ld.global.u32 {d}, [cell];"
    yield Case("call.uni ({d}), twice, ({a});", "b32", "b32", lambda a: 2 * a)
    yield Case("call.uni put, ({a}); " + get, "b32", "b32", lambda a: a)
    yield Case("call.uni seven_in_cell; " + get, "b32", "b32", lambda _: 7)
    yield Case("call.uni ({d}), seven;", "b32", "b32", lambda _: 7)
    yield Case("one: .callprototype (.reg .u32 _) _ (.reg .u32 _); .reg .b64 %f1; mov.u64 %f1, twice; "
               "call.uni ({d}), %f1, ({a}), one;", "b32", "b32", lambda a: 2 * a)  # fmt: skip
    yield Case("none: .callprototype _ (); .reg .b64 %f2; mov.u64 %f2, seven_in_cell; call.uni %f2, none; " + get, "b32", "b32",
               lambda _: 7)  # fmt: skip
    yield Case(".reg .b32 %ix; and.b32 %ix, {a}, 1; ways: .branchtargets L0, L1; brx.idx.uni %ix, ways; "
               "L0: mov.u32 {d}, 5; bra.uni end; L1: mov.u32 {d}, 6; end:", "b32", "b32", lambda a: 5 + (a & 1))  # fmt: skip


def warp_cases() -> Iterator[Case]:
    """Barriers with a vote, and matches, where all lanes agree."""
    for op, aligned in itertools.product(("and", "or"), ("", ".aligned")):
        yield Case(f"barrier.red.{op}{aligned}.pred {{d}}, 1, {{a}}; // 0xffffffff\n", "pred", "pred", lambda a: a)
        yield Case(f"bar.red.{op}.pred {{d}}, 1, !{{a}};", "pred", "pred", lambda a: 1 - a)
    for aligned in ("", ".aligned"):
        yield Case(f"barrier.red.popc{aligned}.u32 {{d}}, 1, {{a}};", "b32", "pred", lambda a: 32 * a)
    for size in (32, 64):
        both = f"b{size}"
        yield Case(f"match.all.sync.{both} {{d}}|{{e}}, {{a}}, 0xffffffff;", "b32 pred", both, lambda _: (0xFFFF_FFFF, 1))
        yield Case(f"match.any.sync.{both} {{d}}, {{a}}, 0xffffffff;", "b32", both, lambda _: 0xFFFF_FFFF)


def wmma_cases() -> Iterator[Case]:
    """Products of rows and columns whose words are the same in all lanes: an element is four words times four words."""
    for p, sat in itertools.product("us", ("", ".satfinite")):

        def four_bits(a: int, b: int, c: int, p: str = p, sat: str = sat) -> int:
            total = read(c, "s32") + 4 * sum(nibble(a, n, p) * nibble(b, n, p) for n in range(8))
            return test_integer_exact.clamp(total, "s32") if sat else total

        yield Case(f"wmma.mma.sync.aligned.row.col.m8n8k32.s32.{p}4.{p}4.s32{sat} {{{{{{d}}, {{e}}}}}}, {{{{{{a}}}}}}, "
                   f"{{{{{{b}}}}}}, {{{{{{c}}, {{c}}}}}};", "b32 b32", "b32 b32 b32",
                   lambda a, b, c, f=four_bits: (f(a, b, c),) * 2)  # fmt: skip
    yield Case("wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 {{{d}, {e}}}, {{{a}}}, {{{b}}}, {{{c}, {c}}};",
               "b32 b32", "b32 b32 b32", lambda a, b, c: (c + 4 * (a ^ b).bit_count(),) * 2)  # fmt: skip
    for (matrix, layout), (shape, type) in itertools.product(
        (("a", "row"), ("b", "col")), (("m8n8k32", "s4"), ("m8n8k32", "u4"), ("m8n8k128", "b1"))
    ):
        yield Case(f"wmma.load.{matrix}.sync.aligned.{layout}.{shape}.global.{type} {{{{{{d}}}}}}, [flat];", "b32", "",
                   lambda: ALIKE)  # fmt: skip
    for shape in ("m8n8k32", "m8n8k128"):
        yield Case(f"wmma.store.d.sync.aligned.row.{shape}.global.s32 [flat], {{{{{{a}}, {{a}}}}}}; "
                   "bar.warp.sync 0xffffffff; ld.global.b32 {d}, [flat+4]; ld.global.b32 {e}, [flat+252];",
                   "b32 b32", "b32", lambda a: (a, a))  # fmt: skip
        yield Case(f"wmma.load.c.sync.aligned.row.{shape}.global.s32 {{{{{{d}}, {{e}}}}}}, [flat];", "b32 b32", "",
                   lambda: (ALIKE, ALIKE))  # fmt: skip


def nibble(word: int, n: int, sign: str) -> int:
    """Four bits, with their sign."""
    x = word >> 4 * n & 0xF
    return x - 16 if sign == "s" and x > 7 else x


# ── what silicon computes ───────────────────────────────────────────────────────────────

FUNCTIONS = ("rcp", "sqrt", "rsqrt", "lg2", "ex2", "sin", "cos")


@cache
def recorded(function: str) -> dict[int, int]:
    """The results of a function, by input."""
    data = np.load(FIDELITY / "sfu_random.npz")
    return dict(zip(data["x"].astype(np.uint32).tolist(), data[function].tolist(), strict=True))


@cache
def edges() -> list[tuple[int]]:
    """Recorded inputs at the ends of what the functions tell apart: zeros, one, infinities, NaN, where ex2 overflows."""
    every = recorded_inputs()[0]
    ends = [x for x in every if x & 0x7FFF_FFFF in (0, F32.infinity)]
    nans = [x for x in every if exact.is_nan(x, F32)]
    ones = [x for x in every if 0x3F7F_F000 <= x < 0x3F80_1000]
    near = [x for x in every if 0x42FA_0000 <= x & 0x7FFF_FFFF < 0x4304_0000]  # 125 to 132
    great = [x for x in every if 0x7E80_0000 <= x & 0x7FFF_FFFF < 0x7F00_0000]  # whose reciprocals are the first subnormals
    return [(x,) for x in (*ends, *ones, *nans[:2], *great[:4], *near[::4])]


@cache
def recorded_inputs() -> tuple[list[int], list[int], list[int]]:
    """The recorded inputs: all, those of sizes that matter to most functions, and the ends of the range."""
    every = list(recorded("rcp"))
    return (
        every,
        [x for x in every if 0x3C00_0000 <= x & 0x7FFF_FFFF < 0x4400_0000],
        [x for x in every if not 0x0100_0000 <= x & 0x7FFF_FFFF < 0x7F00_0000],
    )


def approximations() -> Iterator[Case]:
    """Inputs of the recorded data; with `.ftz` both sides are flushed."""
    for function, ftz in itertools.product(FUNCTIONS, ("", ".ftz")):

        def apply(x: int, function: str = function, ftz: str = ftz) -> int:
            x &= 0xFFFF_FFFF
            r = recorded(function)[flush(x, F32) if ftz else x]
            return flush(r, F32) if ftz else r

        yield Case(f"{function}.approx{ftz}.f32", "f32", RECORDED, apply)


def main() -> int:
    """Write the files, or tell what would change."""
    stale = [path for path, said in files().items() if not path.exists() or path.read_text() != said]
    if "--check" not in sys.argv:
        for path, said in files().items():
            path.write_text(said)
    for path in stale:
        print(path.relative_to(ROOT))
    return bool(stale) and "--check" in sys.argv


if __name__ == "__main__":
    sys.exit(main())

"""Writes the conformance files named `oracle_*.ptx`, whose results come from oracles that share nothing with the catalog.

    python tools/conformance.py            write them
    python tools/conformance.py --check    say which would change

The definitions are those of `tests/oracle`: Python's integers as the manual's pseudocode has them, exact rationals rounded
once (`exact`), and for `.approx` what silicon gave (`../shared/fidelity`; without that folder those files stay as they are).
"""

from __future__ import annotations

import itertools
import struct
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
import test_integer_exact  # noqa: E402
import test_logic_exact  # noqa: E402
import test_video_exact  # noqa: E402
from exact import BF16, F16, F32, F64, NAN, Format  # noqa: E402
from one_instruction import EXPONENT, Case, bits, read  # noqa: E402

OLD = ".version 6.4\n.target sm_75\n.address_size 64\n"
NEW = ".version 9.4\n.target sm_107a\n.address_size 64\n"
ROOM = 64  # bytes of results of one kernel
TOGETHER = 8  # instructions of one kernel
ROWS = {"compare": 4, "video": 4}  # runs of one kernel, by family; of the others 8

FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}
ONE = {name: f.bias << f.fraction for name, f in FORMATS.items()}
PAIR = "ff32"  # two f16 in 32 bits, as a type of operands
RECORDED = "sfu32"  # an f32 of which silicon's results are recorded


class Unsaid(Exception):  # noqa: N818 - no error: the manual leaves the result open
    """A definition has nothing to say about these operands."""


# ── the files ───────────────────────────────────────────────────────────────────────────


def files() -> dict[Path, str]:
    """Every file with its text."""
    written = {}
    for (family, name, source), cases in families().items():
        old, new = [], []
        for case in cases:
            (old if is_old(case) else new).append(case)
        for head, part, chosen in ((OLD, "", old), (NEW, "_new", new)):
            if chosen:
                written[FOLDER / family / f"oracle_{name}{part}.ptx"] = text(head, source, chosen, ROWS.get(family, 8))
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
    if FIDELITY.is_dir():
        found["float", "approx", "silicon, fidelity/sfu_random.npz, PTX 9.7.3"] = [*approximations()]
    return found


def is_old(case: Case) -> bool:
    """Does PTX 6.4 have it?"""
    return not any(d.severity == "error" for d in ptxvm.check(OLD + kernel("k", [case])))


def text(head: str, source: str, cases: list[Case], rows: int) -> str:
    """A file: kernels of some instructions with the same operands, each with its runs."""
    parts = [f"// Written by tools/conformance.py from {source}.\n{head}"]
    for n, group in enumerate(groups(cases)):
        runs = [f"//: run {call}  // {source}\n" for call in calls(f"k{n}", group, rows)]
        parts.append("".join(runs) + kernel(f"k{n}", group))
    return "\n".join(parts)


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
    random = Random(zlib.crc32(" ".join(case.text for case in group).encode()))
    types = group[0].operands.split()
    results = [type for type, _ in places(group)]
    made, seen, hard = 0, set(), iter(HARD.get(group[0].operands, []))
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
        yield f"{name}({', '.join(map(hex, row))}) == ({', '.join(cut)}) : {said}"
        made += 1
        if made == rows:
            return


def wanted(case: Case, row: tuple[int, ...]) -> tuple[int, ...]:
    """The results by definition."""
    given = case.reference(*[read(x, t) for x, t in zip(row, case.operands.split(), strict=True)])
    values = given if isinstance(given, tuple) else (given,)
    return tuple(int(v) for v in values)


# Operands that a second rounding would betray: a product halfway between two f16, and a summand far below it.
HARD = {
    "f16 f16 f16": [(0x3C01, 0x3E00, 0x8001), (0x3C01, 0x3E00, 0x0001), (0xBC01, 0x3E00, 0x0001)],
    f"{PAIR} {PAIR} {PAIR}": [(0x3C01_BC01, 0x3E00_3E00, 0x8001_0001)],
}

# ── operands ────────────────────────────────────────────────────────────────────────────


def draw(type: str, random: Random) -> int:
    """A pattern that breaks things, a small number (they are amounts and counts too), or random bits."""
    if type == "pred":
        return random.randrange(2)
    if type == PAIR:
        return draw("f16", random) << 16 | draw("f16", random)
    if type == RECORDED:
        return random.choice(list(recorded("rcp")))
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
    """abs and neg; what they make of NaN the manual leaves open."""
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
    for (s, source), mode in itertools.product(floats.items(), exact.INTEGRAL):
        for ftz in ("", ".ftz") if s == "f32" else ("",):
            for t in INTEGERS:
                yield Case(f"cvt.{mode}{ftz}.{t}.{s}", register(t), s, to_integer(source, s, t, mode, ftz=bool(ftz)))
            for sat in ("", ".sat"):
                yield Case(f"cvt.{mode}{ftz}{sat}.{s}.{s}", s, s,
                           modified(partial(integral, format=source, mode=mode), source, ftz=bool(ftz), sat=bool(sat)))  # fmt: skip


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


# ── what silicon computes ───────────────────────────────────────────────────────────────

FUNCTIONS = ("rcp", "sqrt", "rsqrt", "lg2", "ex2", "sin", "cos")


@cache
def recorded(function: str) -> dict[int, int]:
    """The results of a function, by input."""
    data = np.load(FIDELITY / "sfu_random.npz")
    return dict(zip(data["x"].astype(np.uint32).tolist(), data[function].tolist(), strict=True))


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

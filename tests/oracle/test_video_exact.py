"""Video instructions against their definitions (PTX 9.7.18), with selectors drawn by chance."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from one_instruction import COMPARE, Case, clamp, differences_of, part

WORDS = ("u32", "s32")
PARTS = ("", "b0", "b1", "b2", "b3", "h0", "h1")
OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "vadd": lambda a, b: a + b, "vsub": lambda a, b: a - b, "vabsdiff": lambda a, b: abs(a - b),
    "vmin": min, "vmax": max,
}  # fmt: skip
SECOND: dict[str, Callable[[int, int], int]] = {"add": lambda t, c: t + c, "min": min, "max": max}
SIZE = {"b": 8, "h": 16}


def dotted(selector: str) -> str:
    """`.b0`, or nothing."""
    return selector and f".{selector}"


def selected(word: int, type: str, selector: str) -> int:
    """What the manual calls partSelectSignExtend."""
    return part(word, SIZE[selector[0]], int(selector[1]), type) if selector else part(word, 32, 0, type)


def merge(t: int, c: int, selector: str) -> int:
    """What the manual calls optMerge."""
    if not selector:
        return t
    size, at = SIZE[selector[0]], int(selector[1])
    mask = (1 << size) - 1
    return (t & mask) << size * at | c & ~(mask << size * at)


def video_cases(rng: np.random.Generator) -> Iterator[Case]:
    """PTX 9.7.18.1: a sample of the types, selectors, second operations and merges."""
    for name, operation in OPERATIONS.items():
        for dt, at, bt in itertools.product(WORDS, repeat=3):
            yield from scalar_video(name, operation, f"{dt}.{at}.{bt}", dt, at, bt, rng)
    for name, mode, dt, at in itertools.product(("vshl", "vshr"), ("clamp", "wrap"), WORDS, WORDS):

        def shift(a: int, b: int, name: str = name, mode: str = mode) -> int:
            n = min(b, 32) if mode == "clamp" else b & 0x1F
            return a << n if name == "vshl" else a >> n

        yield from scalar_video(name, shift, f"{dt}.{at}.u32", dt, at, "u32", rng, f".{mode}")
    for at, bt, (op, compare) in itertools.product(WORDS, WORDS, COMPARE.items()):
        yield from scalar_video("vset", lambda a, b, f=compare: int(f(a, b)), f"{at}.{bt}.{op}", "u32", at, bt, rng, sats=("",))


def scalar_video(
    name: str, operation: Callable[[int, int], int], types: str, dt: str, at: str, bt: str, rng: np.random.Generator,
    mode: str = "", sats: tuple[str, ...] = ("", ".sat"),
) -> Iterator[Case]:  # fmt: skip
    """One scalar instruction, plain, with a second operation, and merging."""
    for sat in sats:
        p, q, d = (PARTS[n] for n in (*rng.integers(0, 7, 2), rng.integers(1, 7)))

        def first(a: int, b: int, into: str, p: str = p, q: str = q, sat: str = sat) -> int:
            t = operation(selected(a, at, p), selected(b, bt, q))
            return clamp(t, f"{dt[0]}{SIZE[into[0]] if into else 32}") if sat else t

        head, sources = f"{name}.{types}{sat}{mode}", f"{{a}}{dotted(p)}, {{b}}{dotted(q)}"
        yield Case(f"{head} {{d}}, {sources};", "b32", "b32 b32", lambda a, b, f=first: f(a, b, ""))
        yield Case(f"{head} {{d}}{dotted(d)}, {sources}, {{c}};", "b32", "b32 b32 b32",
                   lambda a, b, c, f=first, d=d: merge(f(a, b, d), c, d))  # fmt: skip
        for op, second in SECOND.items():
            if op != "add" and not sat and name in ("vadd", "vsub", "vabsdiff", "vshl"):
                continue  # the manual leaves open how an overflow compares
            yield Case(f"{head}.{op} {{d}}, {sources}, {{c}};", "b32", "b32 b32 b32",
                       lambda a, b, c, f=first, second=second: second(f(a, b, ""), part(c, 32, 0, dt)))  # fmt: skip


SIGNS = [("", "", ""), ("-", "", ""), ("", "-", ""), ("-", "-", ""), ("", "", "-"), ("-", "-", "-")]
SCALES = {"": 0, ".shr7": 7, ".shr15": 15}


def vmad_cases(rng: np.random.Generator) -> Iterator[Case]:
    """PTX 9.7.18.1.3: every type, sign, clamping and scale."""
    for dt, at, bt in itertools.product(WORDS, repeat=3):
        for signs, sat, scale in itertools.product(SIGNS, ("", ".sat"), SCALES):
            p, q = (PARTS[n] for n in rng.integers(0, 7, 2))
            yield vmad(f"vmad.{dt}.{at}.{bt}{sat}{scale}", (at, p), (bt, q), signs, sat, scale)
        yield vmad(f"vmad.{dt}.{at}.{bt}.po.sat.shr7", (at, ""), (bt, "h1"), ("", "", ""), ".sat", ".shr7", po=1)


def vmad(
    head: str,
    first: tuple[str, str],
    second: tuple[str, str],
    signs: tuple[str, str, str],
    sat: str,
    scale: str,
    po: int = 0,
) -> Case:
    """One vmad, by the manual's semantics: a negation is an inversion and one more."""
    minus, minus_c = signs[0] != signs[1], bool(signs[2])
    signed = "s32" in (first[0], second[0]) or minus or minus_c
    kind = "s32" if signed else "u32"

    def reference(a: int, b: int, c: int) -> int:
        tmp = selected(a, *first) * selected(b, *second)
        if minus:
            tmp = ~tmp
        if minus_c:
            c = ~c & 0xFFFFFFFF
        result = tmp + part(c, 32, 0, kind) + (po or minus or minus_c) >> SCALES[scale]
        return clamp(result, kind) if sat else result

    sources = f"{signs[0]}{{a}}{dotted(first[1])}, {signs[1]}{{b}}{dotted(second[1])}, {signs[2]}{{c}}"
    return Case(f"{head} {{d}}, {sources};", "b32", "b32 b32 b32", reference)


def average(a: int, b: int) -> int:
    """vavrg2 and vavrg4."""
    return a + b + 1 >> 1 if a + b >= 0 else a + b >> 1


MASKS = {2: ("", "h0", "h1", "h10"), 4: ("", "b0", "b1", "b10", "b2", "b20", "b21", "b310", "b32", "b3210")}


def simd_cases(rng: np.random.Generator) -> Iterator[Case]:
    """PTX 9.7.18.2."""
    for count in (2, 4):
        for name, operation in {**OPERATIONS, "vavrg": average}.items():
            for dt, at, bt in itertools.product(WORDS, repeat=3):
                for tail in ("", ".sat", ".add"):
                    yield simd(f"{name}{count}.{dt}.{at}.{bt}{tail}", operation, count, dt, at, bt, tail, rng)
        for at, bt, (op, compare) in itertools.product(WORDS, WORDS, COMPARE.items()):
            for tail in ("", ".add"):
                head = f"vset{count}.{at}.{bt}.{op}{tail}"
                yield simd(head, lambda a, b, f=compare: int(f(a, b)), count, "u32", at, bt, tail, rng)


def simd(
    head: str,
    operation: Callable[[int, int], int],
    count: int,
    dt: str,
    at: str,
    bt: str,
    tail: str,
    rng: np.random.Generator,
) -> Case:
    """One SIMD instruction with selectors and a mask drawn by chance."""
    size, letter = 32 // count, "h" if count == 2 else "b"
    picks = [letter + "".join(str(n) for n in rng.integers(0, 2 * count, count)) if rng.random() < 0.7 else "" for _ in "ab"]
    mask = MASKS[count][rng.integers(0, len(MASKS[count]))]
    usual = ("h10", "h32") if count == 2 else ("b3210", "b7654")

    def reference(a: int, b: int, c: int) -> int:
        pool = b << 32 | a
        va, vb = (
            [part(pool, size, int(n), type) for n in reversed((pick or default)[1:])]
            for pick, default, type in zip(picks, usual, (at, bt), strict=True)
        )
        t = [operation(x, y) for x, y in zip(va, vb, strict=True)]
        if tail == ".sat":
            t = [clamp(x, f"{dt[0]}{size}") for x in t]
        chosen = {int(n) for n in (mask[1:] or "3210"[-count:])}
        if tail == ".add":
            return c + sum(t[n] for n in chosen)
        low = (1 << size) - 1
        return sum((t[n] & low if n in chosen else c >> size * n & low) << size * n for n in range(count))

    text = f"{head} {{d}}{dotted(mask)}, {{a}}{dotted(picks[0])}, {{b}}{dotted(picks[1])}, {{c}};"
    return Case(text, "b32", "b32 b32 b32", reference)


DRAWN = {"video": video_cases, "vmad": vmad_cases, "simd": simd_cases}


@pytest.mark.parametrize("share", [pytest.param(0.15, id="some"), pytest.param(1, id="all", marks=pytest.mark.long)])
@pytest.mark.parametrize("family", DRAWN)
def test_video_definition(family: str, share: float, rng: np.random.Generator) -> None:
    """The same for video instructions, with selectors drawn by chance."""
    wrong = differences_of([case for case in DRAWN[family](rng) if rng.random() < share], rng)
    assert not wrong, "\n".join(wrong[:10])

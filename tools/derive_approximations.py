"""Finds the coefficients of the `.approx` instructions from what silicon computes.

    python tools/derive_approximations.py ../shared/fidelity > src/ptxvm/algebra/derived/coefficients.py

The hardware evaluates a piecewise quadratic in fixed point: the top bits of the significand choose a row (c0, c1, c2), the low
bits x enter as c0*2**p0 ± c1*x*2**p1 ± c2*sq(x), a constant bias is added, and the result is cut out of the sum.  So every
recorded result bounds a linear form in (c0, c1, c2) from both sides.  Least squares give the neighbourhood of c1 and c2; for
each pair there the bounds leave an interval for c0, and the row is found where it holds an integer.  One solution is left
for each row, which is checked; where more are left, the one in the middle is written and a warning is printed.
"""

from __future__ import annotations

import lzma
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Ints = np.ndarray[Any, np.dtype[np.int64]]
SPAN = 1 << 17


@dataclass(frozen=True)
class Unit:
    """One function: where x and the constants enter the sum.  `weight` is the bit of the sum that is 1.0."""

    name: str
    p0: int
    p1: int
    sign1: int
    sign2: int
    weight: int
    bias: int  # a 64-bit fraction of the place 2**(weight-23)

    @property
    def added(self) -> int:
        """The bias in units of the sum."""
        return (self.bias << (self.weight - 23)) >> 64


UNITS = {
    unit.name: unit
    for unit in (
        Unit("rcp", 30, 17, -1, +1, 56, 0x67E7_0000_0000_0000),
        Unit("sqrt", 33, 18, +1, -1, 58, 0x7FFF_8000_0000_0000),
        Unit("rsqrt", 31, 17, -1, +1, 57, 0x7FFF_8000_0000_0000),
        Unit("ex2", 32, 19, +1, +1, 57, 0x6FC4_0000_0000_0000),
        Unit("lg2", 30, 18, +1, -1, 56, 0x868B_0000_0000_0000),
        Unit("sin", 31, 19, +1, -1, 56, 0),
    )
}


def truncated_square(x: Ints) -> Ints:
    """x*x of 17 bits less the partial products below column 19."""
    square = np.zeros_like(x)
    for i in range(17):
        for j in range(i, 17):
            column = 2 * i if i == j else i + j + 1
            if column >= 19:
                square += ((x >> i) & (x >> j) & 1) << column
    return square


X = np.arange(SPAN, dtype=np.int64)
SQUARE = truncated_square(X)


def sweep(folder: Path, name: str) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """The result bits of a range of inputs."""
    data = lzma.decompress((folder / f"{name}.xz").read_bytes())
    return np.frombuffer(data, "<i8").cumsum().cumsum().astype(np.uint32)


def solutions(unit: Unit, x: Ints, square: Ints, low: Ints, high: Ints) -> Iterator[tuple[int, int, int]]:
    """All (c0, c1, c2) near the least-squares fit for which low <= sum <= high at every x."""
    low, high = low - unit.added, high - unit.added
    middle, tight = (low + high) / 2, 1 / (high - low + 1.0)
    columns = np.stack([np.full(len(x), 2.0**unit.p0), unit.sign1 * x * 2.0**unit.p1, unit.sign2 * square.astype(float)], 1)
    scale = np.array([2.0**unit.p0, 2.0 ** (unit.p1 + 17), 2.0**34])
    weights = np.sqrt(tight / tight.max())[:, None]
    fit = np.linalg.lstsq(columns / scale * weights, middle * weights[:, 0], rcond=None)[0] / scale
    for c2 in range(round(fit[2]) - 8, round(fit[2]) + 9):
        rest = middle - unit.sign2 * c2 * square
        line = np.linalg.lstsq((columns / scale)[:, :2], rest, rcond=None)[0]
        centre = round(line[1] / scale[1])
        for c1 in range(centre - 4, centre + 5):
            part = unit.sign1 * c1 * (x << unit.p1) + unit.sign2 * c2 * square
            least, most = int((low - part).max()), int((high - part).min())
            for c0 in range(-(-least >> unit.p0), (most >> unit.p0) + 1):
                yield c0, c1, c2


def row(unit: Unit, number: int, x: Ints, low: Ints, high: Ints, square: Ints | None = None) -> tuple[int, int, int]:
    """The coefficients of one row."""
    found = list(solutions(unit, x, SQUARE[x] if square is None else square, low, high))
    if not found:
        raise SystemExit(f"{unit.name}: no coefficients for row {number}")
    if len(found) > 1:
        print(f"{unit.name}: {len(found)} solutions for row {number}: {found}", file=sys.stderr)
    return found[len(found) // 2]


def significands(results: Any) -> Ints:
    """The 24 bits of each result."""
    found: Ints = (results & 0x7FFFFF).astype(np.int64) | 1 << 23
    return found


def cut(results: Ints, shift: int) -> tuple[Ints, Ints]:
    """The sums that give these significands when they are cut at a place."""
    return results << shift, ((results + 1) << shift) - 1


def floats(results: Any, finest: int = 0) -> tuple[Ints, Ints]:
    """The sums of weight 56 that give these floats when they are normalised."""
    values = results.view(np.float32).astype(np.float64)
    place = np.maximum(np.frexp(values)[1].astype(np.int64) - 24 + 56, finest)
    low = np.floor(values * 2.0**56).astype(np.int64)
    return low, low + (np.int64(1) << place) - 1


def derive(folder: Path) -> Iterator[tuple[str, list[tuple[int, int, int]]]]:
    """Every table."""
    unit = UNITS["rcp"]
    results = significands(sweep(folder, "rcp.approx.f32.3f800000-40000000")).reshape(128, -1)
    x = np.arange(1 << 16, dtype=np.int64)
    square = truncated_square(2 * x) >> 2
    first = [(n == 0) * 1 for n in range(128)]  # 1/1 is the only one that is not below 1
    yield "RCP", [row(unit, n, x[first[n] :], *cut(results[n, first[n] :], 32), square[first[n] :]) for n in range(128)]
    for name, shift in (("sqrt", 35), ("rsqrt", 33)):
        results = significands(sweep(folder, f"{name}.approx.f32.3f800000-40800000")).reshape(128, -1)
        skip = 1 if name == "rsqrt" else 0  # rsqrt(1) is 1 by a rule of its own
        yield name.upper(), [row(UNITS[name], n, X[skip:], *cut(results[n, skip:], shift)) for n in range(128)]
    results = significands(sweep(folder, "ex2.approx.f32.3f800000-40000000")).reshape(64, -1)
    yield "EX2", [row(UNITS["ex2"], n, X, *cut(results[n], 34)) for n in range(64)]
    logs = sweep(folder, "lg2.approx.f32.3f800000-40000000").reshape(64, -1)
    first = [(n == 0) * 1 for n in range(64)]  # lg2(1) is 0 by a rule of its own
    yield "LG2", [row(UNITS["lg2"], n, X[first[n] :], *floats(logs[n, first[n] :], 20)) for n in range(64)]
    yield "SIN", list(sines(folder))


def sines(folder: Path) -> Iterator[tuple[int, int, int]]:
    """The quarter wave: sin has its upper rows, cos (of the complement) its lower ones."""
    inputs = np.arange(0x3E000000, 0x3FC90FDB, dtype=np.int64)
    shift = 24 + 150 - (inputs >> 23) - 23
    fraction = ((inputs & 0x7FFFFF | 1 << 23) * 0xA2F983) >> shift  # of pi/2, in 23 bits
    places, at = np.unique(fraction, return_index=True)
    sine, cosine = (sweep(folder, f"{name}.approx.f32.3e000000-3fc90fdb")[: len(inputs)][at] for name in ("sin", "cos"))
    for n in range(64):
        where, results = (places, sine) if n >= 32 else (places ^ 0x7FFFFF, cosine)
        mine = (where >> 17 == n) & (results != 0)
        yield row(UNITS["sin"], n, where[mine] & SPAN - 1, *floats(results[mine]))


def main() -> None:
    """Print the module with the tables."""
    print('"""The coefficients of the `.approx` instructions; `tools/derive_approximations.py` wrote this file."""\n')
    print("# One row (c0, c1, c2) for each range of the significand's top bits; sqrt and rsqrt: even exponents, then odd.")
    for name, rows in derive(Path(sys.argv[1])):
        print(f"\n{name} = (")
        for each in rows:
            print(f"    {each},")
        print(")")


if __name__ == "__main__":
    main()

"""One instruction run on a column of inputs, and held against a definition in Python's integers.

Nothing here comes from the catalog: a case says how the instruction is written and what the manual defines it to be, on
unbounded integers; what the destination cannot hold is cut off, as the manual says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

import ptxvm

LANES = 256
AT_ONCE = 16  # cases in a kernel
HEADER = ".version 9.4\n.target sm_107a\n.address_size 64\n"


@dataclass
class Case:
    """One instruction: its text with places for the operands, their types, and what it computes.

    A text without `;` is a mnemonic.  Results and operands have names d, e and a, b, c, f.
    """

    text: str
    results: str
    operands: str
    reference: Callable[..., object]

    @property
    def body(self) -> str:
        """The instructions."""
        if ";" in self.text:
            return self.text
        names = [f"{{{n}}}" for n in "de"[: len(self.results.split())] + "abcf"[: len(self.operands.split())]]
        return f"{self.text} {', '.join(names)};"


def bits(type: str) -> int:
    """The size of a type; a predicate travels as a byte, and floats are their bits."""
    return 8 if type == "pred" else int(type.lstrip("bfsu"))


def read(pattern: int, type: str) -> int:
    """What the bits mean as a number of the type."""
    n = bits(type)
    if type[0] == "s" and pattern >> n - 1 & 1:
        return pattern - (1 << n)
    return pattern


def kernel(cases: Sequence[Case]) -> str:
    """One thread for each element, and for each case in turn: load the operands, run the instruction, store the results."""
    bodies = "\n".join(block(n, case) for n, case in enumerate(cases))
    parameters = ", ".join(f".param .u64 {name}{n}" for n, case in enumerate(cases) for name in kinds_of(case))
    return f"{HEADER}.visible .entry k({parameters})\n{{\n.reg .b32 %i;\nmov.u32 %i, %tid.x;\n{bodies}\nret;\n}}\n"


def kinds_of(case: Case) -> dict[str, str]:
    """The types of the operands and results, by their letters."""
    return dict(zip("abcf", case.operands.split(), strict=False)) | dict(zip("de", case.results.split(), strict=False))


def block(number: int, case: Case) -> str:
    """The lines of a case, with registers of its own."""
    kinds, loads, stores, where = kinds_of(case), [], [], {}
    registers = [".reg .b64 %p<8>, %t<8>;", ".reg .b16 %h<8>;", ".reg .pred %q<8>;"]
    for n, (name, type) in enumerate(kinds.items()):
        size = bits(type) // 8
        where[name] = f"%q{n}" if type == "pred" else f"%{name}"
        if type != "pred":
            registers.append(f".reg .b{8 * size} %{name};")
        loads.append(f"ld.param.u64 %p{n}, [{name}{number}]; mad.wide.u32 %p{n}, %i, {size}, %p{n};")
        if name in "abcf":
            if type == "pred":
                loads.append(f"ld.global.u8 %h{n}, [%p{n}]; setp.ne.u16 %q{n}, %h{n}, 0;")
            else:
                loads.append(f"ld.global.b{8 * size} %{name}, [%p{n}];")
        elif type == "pred":
            stores.append(f"selp.u16 %h{n}, 1, 0, %q{n}; st.global.u8 [%p{n}], %h{n};")
        else:
            stores.append(f"st.global.b{8 * size} [%p{n}], %{name};")
    return "\n".join(["{", *registers, *loads, case.body.format(**where), *stores, "}"])


EXPONENT = {"f16": 5, "bf16": 8, "f32": 8, "f64": 11}


def awkward_floats(type: str) -> list[int]:
    """Zeros, subnormals, ones, infinities and NaN of both signs."""
    fraction = bits(type) - 1 - EXPONENT[type]
    infinity, one = (1 << EXPONENT[type]) - 1 << fraction, (1 << EXPONENT[type] - 1) - 1 << fraction
    positive = [
        0,
        1,
        (1 << fraction) - 1,
        1 << fraction,
        one,
        infinity - 1,
        infinity,
        infinity + 1,
        infinity | 1 << fraction - 1,
    ]
    return [x | sign << bits(type) - 1 for x in positive for sign in (0, 1)]


def inputs(type: str, rng: np.random.Generator) -> list[int]:
    """Patterns that break things, small numbers (they are amounts and counts too), and random bits."""
    if type == "pred":
        return [int(x) for x in rng.integers(0, 2, LANES)]
    n = bits(type)
    top = (1 << n) - 1
    awkward = (
        awkward_floats(type)
        if type in EXPONENT
        else [
            0,
            1,
            2,
            31,
            32,
            33,
            63,
            64,
            255,
            256,
            top,
            top - 1,
            top >> 1,
            (top >> 1) + 1,
            0x80,
            0x7F,
            0x8000,
            0x7FFF,
        ]
    )
    kinds = rng.integers(0, 4, LANES)
    words = rng.integers(0, 1 << 63, LANES, dtype=np.uint64) * 2 + rng.integers(0, 2, LANES, dtype=np.uint64)
    made = []
    for kind, word in zip(kinds, words, strict=True):
        x = int(word)
        choices = (x, x, x % 70, awkward[x % len(awkward)])
        made.append(choices[kind] & top)
    return made


def run(cases: Sequence[Case], columns: Sequence[list[list[int]]]) -> list[list[np.ndarray]]:
    """What the machine makes of the inputs of each case."""
    outs = [[np.zeros(LANES, f"u{bits(type) // 8}") for type in case.results.split()] for case in cases]
    args: list[np.ndarray] = []
    for case, given, out in zip(cases, columns, outs, strict=True):
        args += [np.array(column, f"u{bits(type) // 8}") for type, column in zip(case.operands.split(), given, strict=True)]
        args += out
    ptxvm.load(kernel(cases)).kernel().launch(grid=1, block=LANES, args=args)
    return outs


# ── words of the definitions ────────────────────────────────────────────────────────────


def clamp(x: int, type: str) -> int:
    """Limited to the range of the type."""
    n = bits(type)
    return max(-(1 << n - 1), min(x, (1 << n - 1) - 1)) if type[0] == "s" else max(0, min(x, (1 << n) - 1))


def part(word: int, size: int, at: int, type: str) -> int:
    """An element of a word, sign- or zero-extended as the type of the word says."""
    return read(word >> size * at & (1 << size) - 1, f"{type[0]}{size}")


COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip

# ── the comparison ──────────────────────────────────────────────────────────────────────


def differences_of(cases: Sequence[Case], rng: np.random.Generator) -> list[str]:
    """The first lane of each case where the two differ, of those that have one; many cases are compiled as one kernel."""
    found = []
    for some in batched(cases):
        columns = [drawn(case, rng) for case in some]
        found += [difference(*each) for each in zip(some, columns, run(some, columns), strict=True)]
    return [said for said in found if said]


def batched(cases: Sequence[Case]) -> list[Sequence[Case]]:
    """The cases of each kernel."""
    return [cases[first : first + AT_ONCE] for first in range(0, len(cases), AT_ONCE)]


def drawn(case: Case, rng: np.random.Generator) -> list[list[int]]:
    """A column of inputs for each operand."""
    columns = [inputs(type, rng) for type in case.operands.split()]
    if len(columns) > 1 and case.operands.split()[0] == case.operands.split()[1]:
        columns[1][: LANES // 16] = columns[0][: LANES // 16]  # equal operands happen, and matter
    return columns


def difference(case: Case, columns: list[list[int]], got: list[np.ndarray]) -> str:
    """The first lane where results and the definition differ, or nothing."""
    kinds, results = case.operands.split(), case.results.split()
    for lane in range(LANES):
        wanted = case.reference(*[read(column[lane], type) for column, type in zip(columns, kinds, strict=True)])
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        for value, want, type in zip(got, wanted, results, strict=True):
            cut = want & (1 << bits(type)) - 1
            if int(value[lane]) != cut:
                given = [hex(column[lane]) for column in columns]
                return f"{case.body} {given}: {int(value[lane]):#x}, but by definition {cut:#x}"
    return ""

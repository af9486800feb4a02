"""Worked examples: what an instruction gives for values that a reader can check, computed when it is asked for.

An instruction that depends on its operands alone is computed by `reference.evaluation`; any other runs in a kernel of one
CTA through `ptxvm.load` and `launch`, as a user's would.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from ptxvm.api import load
from ptxvm.dataclass import dataclass
from ptxvm.isa.model import Instruction
from ptxvm.machine.texture import Surface, Texture
from ptxvm.reference.evaluation import bits_of, compute, hexadecimal, number, wanted
from ptxvm.reference.example_table import COMPUTED, RUN
from ptxvm.reference.reading import Reading, read

Rows = tuple[tuple[str, ...], ...]

VERSIONS = {"sm_60": "6.0"}  # of PTX, where a target is too old for the newest
NEWEST, TARGET = "9.0", "sm_100"
DATA = np.arange(100, 1124, dtype=np.uint32)
KINDS = {"r": ("b32", "u4"), "rd": ("b64", "u8"), "f": ("f32", "f4"), "fd": ("f64", "f8"), "p": ("pred", "?")}
"""What registers hold by their first letters: the type that they are declared with, and NumPy's."""

REGISTERS = 16
ABSENT = np.uint64(0xAAAA_AAAA_AAAA_AAAA)  # stays where a lane writes nothing


@dataclass(frozen=True)
class WorkedExample:
    """An example with its result: the text, the head of a table, and its rows."""

    text: str
    head: tuple[str, ...]
    rows: Rows


@dataclass(frozen=True)
class Computation:
    """One instruction on given values: `add.u16 d, a, b;` with a=1 and b=2."""

    text: str
    values: tuple[tuple[str, str], ...]

    @property
    def reading(self) -> Reading:
        """The instruction, understood."""
        return read(self.text)

    @property
    def bits(self) -> dict[str, int]:
        """The bits of each register that is read."""
        types = wanted(self.reading)
        return {name: bits_of(value, types[name]) for name, value in self.values}

    def work(self) -> WorkedExample:
        """The operands that went in, and those that came out."""
        result = compute(self.reading, self.bits)
        rows = [*(("in", q) for q in result.inputs), *(("out", q) for q in result.outputs)]
        return WorkedExample(
            self.text,
            ("", "operand", "type", "bits", "value"),
            tuple((way, q.text, f".{q.type.name}", hexadecimal(q), number(q)) for way, q in rows),
        )


@dataclass(frozen=True)
class ExampleRun:
    """A kernel of one CTA: its text, how many threads it has, and which of their registers are shown.

    `%r0` is the number of the thread, `%rd0` points to the words 100, 101, ... in global memory.  With `images`, `%rd1`
    is a texture of 4 by 4 numbers 0.0 to 15.0, filtered, and `%rd2` a surface of the 16 words 100 to 115.  What stands
    before a line `---` goes before the kernel.
    """

    text: str
    threads: int
    shown: int
    registers: tuple[str, ...]
    target: str = TARGET
    images: bool = False

    @property
    def module(self) -> str:
        """The module around it."""
        before, _, body = self.text.rpartition("---\n")
        declared = " ".join(f".reg .{type} %{letters}<{REGISTERS}>;" for letters, (type, _) in KINDS.items())
        return f"""
            .version {VERSIONS.get(self.target, NEWEST)}
            .target {self.target}
            .address_size 64
            {before}
            .visible .entry example (.param .u64 data, .param .u64 results, .param .u64 texture, .param .u64 surface)
            {{
                .reg .b64 %at; {declared}
                mov.u32 %r0, %tid.x; ld.param.u64 %rd0, [data];
                {"ld.param.u64 %rd1, [texture]; ld.param.u64 %rd2, [surface];" if self.images else ""}
                {body}
                mov.u32 %r15, %tid.x; ld.param.u64 %at, [results];
                mad.wide.u32 %at, %r15, {8 * len(self.registers)}, %at;
                {" ".join(self._stores())}
                ret;
            }}
            """

    def _stores(self) -> Iterator[str]:
        for n, register in enumerate(self.registers):
            type, name = KINDS[_letters(register)][0], register
            if type == "pred":
                yield f"selp.b32 %r14, 1, 0, {register};"
                type, name = "b32", "%r14"
            yield f"st.global.{type} [%at+{8 * n}], {name};"

    def work(self) -> WorkedExample:
        """The registers of the first lanes, once the kernel has ended."""
        out = np.full((self.threads, len(self.registers)), ABSENT)
        texture = Texture(np.arange(16, dtype=np.float32).reshape(4, 4), "linear", "clamp")
        surface = Surface(DATA[:16].reshape(4, 4).copy())
        arguments = [DATA.copy(), out, np.uint64(texture.handle), np.uint64(surface.handle)]
        load(self.module).kernel().launch(block=self.threads, args=arguments)
        columns = [_shown(out[: self.shown, n], register) for n, register in enumerate(self.registers)]
        head = ("register", *(f"thread {lane}" for lane in range(self.shown)))
        rows = zip(self.registers, columns, strict=True)
        return WorkedExample(self.text, head, tuple((register, *column) for register, column in rows))


Example = Computation | ExampleRun


def _letters(register: str) -> str:
    """`fd` of `%fd3`."""
    return register.strip("%0123456789")


def _shown(column: np.ndarray[tuple[int], np.dtype[np.uint64]], register: str) -> list[str]:
    """The values of one register in the lanes."""
    kind = KINDS[_letters(register)][1]
    words = np.ascontiguousarray(column)
    values = words.view(np.uint32)[::2] != 0 if kind == "?" else words.view(kind)[:: 8 // np.dtype(kind).itemsize]
    present = words != ABSENT
    return [_text(value) if there else "-" for value, there in zip(values.tolist(), present, strict=True)]


def _text(value: float | bool) -> str:  # noqa: FBT001 - it is a value, not a choice
    if isinstance(value, bool):
        return str(value).lower()
    return f"0x{value:x}" if isinstance(value, int) and value > 0xFFFF else f"{value:g}"


# ── the table ───────────────────────────────────────────────────────────────────────────


def example_of(instruction: Instruction) -> Example | None:
    """The example of a declaration; None where it has none."""
    return _table().get(f"{instruction.family}.{instruction.meaning.__name__}")


@cache
def _table() -> dict[str, Example]:
    """Every example, by family and name of the declaration."""
    found: dict[str, Example] = {}
    for line in filter(None, map(str.strip, COMPUTED.splitlines())):
        key, _, rest = line.partition(" ")
        text, _, values = rest.strip().rpartition(";")
        pairs = tuple((name, value) for name, _, value in (each.partition("=") for each in values.split()))
        found[key] = Computation(f"{text};", pairs)
    for each in RUN.split("\n== ")[1:]:
        head, _, text = each.partition("\n")
        key, lanes, registers = (part.strip() for part in head.split("|"))
        extent, _, target = lanes.partition(" ")
        threads, _, shown = extent.partition("/")
        found[key] = ExampleRun(
            text.strip(),
            int(threads),
            int(shown or threads),
            tuple(registers.split()),
            target or TARGET,
            images=key.startswith(("texture.", "surface.")),
        )
    return found

"""Instructions on operands of a class: compiled code is another for uniform, affine, varying and constant operands.

The values are those that break things.  Registers of a random kernel nearly always vary, and seldom hold two such values.
"""

from __future__ import annotations

import enum
from collections.abc import Callable

from ptxvm.campaign.random_kernels import strategies as st
from ptxvm.campaign.random_kernels.parts import Statement, instruction, register

SLOTS = 32
"""The first words of 8 bytes of what a kernel reads: each is one of `SPECIAL`, and so are its lower halves and quarters."""
WIDTH = 8  # bytes of a slot
SPECIAL = [
    0, 0, 0, 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 1 << 63, 1 << 63, (1 << 63) - 1, 1, 2, 3, 7, 31, 32, 33, 63, 64, 65, 255,
    0x80, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x100000000, 0xFFFFFFFF80000000, 0x7F800000,
    0xFF800000, 0x7FC00001, 0x7F800001, 0x3F800000, 0xBF800000, 0x4F000000, 0xCF000000, 0x00800000, 0x00000001, 0x3C00, 0x7C00,
    0x7FF0000000000000, 0xFFF0000000000000, 0x3FF0000000000000, 0x43E0000000000000, 0xC3E0000000000000, 0x0010000000000000,
    0x41E0000000000000, 0x7FEFFFFFFFFFFFFF, 0x5555555555555555, 0x0123456789ABCDEF,
]  # fmt: skip
"""Zeros, least and greatest numbers, widths and what is next to them; infinities, NaNs and numbers next to the integers."""
TYPES = {"r": ("x", "b32"), "d": ("y", "b64"), "f": ("v", "f32"), "g": ("w", "f64"), "h": ("u", "b16"), "p": ("z", "pred")}
"""What a statement declares of its own for an operand of a letter: the first letter of the register, and its type."""


JOINED = {
    "r": "xor.b32 {1}, {1}, {0};",
    "d": "xor.b64 {1}, {1}, {0};",
    "f": "mov.b32 %t0, {0};\nmov.b32 %xz@n, {1};\nxor.b32 %t0, %t0, %xz@n;\nmov.b32 {1}, %t0;",
    "g": "testp.notanumber.f64 %q1, {0};\nmov.b64 %t1, {0};\nselp.b64 %t1, -1, %t1, %q1;\nxor.b64 {1}, {1}, %t1;",
    "h": "xor.b16 {1}, {1}, {0};",
    "p": "xor.pred {1}, {1}, {0};",
}
"""How a result (0) is joined with a register (1), so that no later one hides it; which NaN of f64 it is, is open."""


class OperandClass(enum.Enum):
    """How the lanes of an operand differ."""

    UNIFORM = enum.auto()
    AFFINE = enum.auto()
    VARYING = enum.auto()
    CONSTANT = enum.auto()


@st.composite
def on_class(draw: st.Draw) -> Statement:
    """An instruction whose sources are all of one class, or each of one; its results are joined with registers of a kernel."""
    one, names = draw(st.sampled_from([*OperandClass, None])), iter("abcdefgh")
    before: list[str] = []
    behind: list[str] = []

    def source(letter: str) -> str:
        name = f"%{TYPES[letter][0]}{next(names)}@n"
        before.append(draw(_WRITTEN[one or draw(st.sampled_from(list(OperandClass)))](letter, name)))
        return name

    def result(letter: str) -> str:
        name = f"%{TYPES[letter][0]}{next(names)}@n"
        behind.append(JOINED[letter].format(name, draw(register("d" if letter == "g" else letter))))
        return name

    text = draw(instruction(source, result))
    return Statement("\n".join([*before, text, *behind]))


@st.composite
def _uniform(draw: st.Draw, letter: str, name: str) -> str:
    """Of memory that all lanes read at one address, or of a parameter."""
    if letter == "r" and draw(st.integers(0, 3)) == 0:
        return f"mov.b32 {name}, {draw(st.sampled_from(['%few', '%many']))};"
    return _loaded(letter, name, f"%in+{WIDTH * draw(st.integers(0, SLOTS - 1))}")


@st.composite
def _varying(draw: st.Draw, letter: str, name: str) -> str:
    """Of memory, from another slot in each lane."""
    slot = f"xor.b32 %t0, %thread, {draw(st.integers(0, SLOTS - 1))};\nand.b32 %t0, %t0, {SLOTS - 1};"
    return f"{slot}\nmad.wide.u32 %t1, %t0, {WIDTH}, %in;\n{_loaded(letter, name, '%t1')}"


@st.composite
def _affine(draw: st.Draw, letter: str, name: str) -> str:
    """A multiple of the number of the thread, and a constant or a uniform number; half of the floats vary in any way.

    What is converted from an integer is never a NaN or an infinity.
    """
    if letter in "fgh" and draw(st.booleans()):
        return draw(_varying(letter, name))
    scale = draw(st.sampled_from([1, 1, 4, -1, 3, 0x08000000]))
    start = draw(st.sampled_from(["%few", *(str(each & 0xFFFFFFFF) for each in SPECIAL)]))
    if letter == "r":
        return f"mad.lo.s32 {name}, %thread, {scale}, {start};"
    if letter == "d":
        wide = f"mul.wide.s32 {name}, %thread, {scale};\n"
        return f"{wide}add.s64 {name}, {name}, {draw(st.sampled_from(SPECIAL))};"
    number = f"mad.lo.s32 %t0, %thread, {scale}, {start};\n"
    converted = {"f": "cvt.rn.f32.s32 {}, %t0;", "g": "cvt.rn.f64.s32 {}, %t0;", "h": "cvt.u16.u32 {}, %t0;"}
    return number + converted.get(letter, "setp.lt.s32 {}, %t0, %n3;").format(name)


@st.composite
def _constant(draw: st.Draw, letter: str, name: str) -> str:
    """What the compiler knows."""
    value = draw(st.sampled_from(SPECIAL))
    match letter:
        case "f":
            return f"mov.f32 {name}, 0f{value & 0xFFFFFFFF:08X};"
        case "g":
            return f"mov.f64 {name}, 0d{value:016X};"
        case "p":
            return f"setp.ne.u32 {name}, {value & 1}, 0;"
        case "h":
            return f"mov.b16 {name}, {value & 0xFFFF};"
    return f"mov.b64 {name}, {value};" if letter == "d" else f"mov.b32 {name}, {value & 0xFFFFFFFF};"


def _loaded(letter: str, name: str, where: str) -> str:
    """A load of an operand."""
    if letter == "p":
        return f"ld.global.b32 %t0, [{where}];\nsetp.ne.u32 {name}, %t0, 0;"
    return f"ld.global.{TYPES[letter][1]} {name}, [{where}];"


_WRITTEN: dict[OperandClass, Callable[[str, str], st.Strategy[str]]] = {
    OperandClass.UNIFORM: _uniform,
    OperandClass.AFFINE: _affine,
    OperandClass.VARYING: _varying,
    OperandClass.CONSTANT: _constant,
}

__all__ = ["SLOTS", "SPECIAL", "WIDTH", "OperandClass", "on_class"]

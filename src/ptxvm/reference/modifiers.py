"""What each modifier says, in words (PTX 5.2, 8, 9.7).

The syntax lines know that `.rz` is a choice of `.rnd`; here stands what it means.  Most words stand in a table; shapes, counts
and the like are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ptxvm.algebra.types import Type
from ptxvm.isa.notation import ModifierSlot
from ptxvm.reference.modifier_words import WORDS

KINDS = {"u": "unsigned", "s": "signed", "b": "untyped", "f": "floating-point"}
FORMATS = {
    "pred": "a predicate: true or false",
    "b1": "a single bit",
    "bf16": "bfloat16: the upper half of an f32",
    "tf32": "TensorFloat-32: an f32 with 10 bits of fraction",
    "e4m3": "8-bit floating-point number, 4 exponent and 3 fraction bits",
    "e5m2": "8-bit floating-point number, 5 exponent and 2 fraction bits",
    "ue8m0": "8-bit power of two",
    "ue4m3": "7-bit floating-point number without a sign, 4 exponent and 3 fraction bits",
    "e2m3": "6-bit floating-point number, 2 exponent and 3 fraction bits",
    "e3m2": "6-bit floating-point number, 3 exponent and 2 fraction bits",
    "e2m1": "4-bit floating-point number, 2 exponent bits and 1 fraction bit",
    "s2f6x2": "2 × fixed-point number of 8 bits, six of them behind the point, packed in 16 bits",
    "b8x16": "16 elements of 8 bits",
    "b6x16_p32": "16 elements of 6 bits, and 32 bits of padding",
    "b4x16_p64": "16 elements of 4 bits, and 64 bits of padding",
}


ROLES = {
    "dtype": "of the destination: ", "atype": "of the source: ", "stype": "of the sources: ", "btype": "of `b`: ",
    "ctype": "of `c`: ",
}  # fmt: skip
"""Whose type a slot has; the others have that of the instruction."""


def meaning(slot: ModifierSlot, word: str, opcode: str) -> str:
    """What a word at this place of a mnemonic says; empty where it is not known."""
    for key in (f"{opcode}:{word}", f"{slot.name}.{word}", word):
        if key in WORDS:
            return WORDS[key]
    if slot.is_type:  # `.b32` of a video instruction are the bytes 2 and 3
        return ROLES.get(slot.name, "") + type_in_words(Type.named[word])
    if slot.name == "num":
        return _repeated(int(word[1:]), opcode)
    return next((said(*found.groups()) for pattern, said in READ if (found := pattern.fullmatch(word))), "")


def _repeated(times: int, opcode: str) -> str:
    """The word behind a shape: of how many matrices (PTX 9.7.14.5.15), or how often its columns (PTX 9.7.16.8.1)."""
    one = "matrix" if opcode in ("ldmatrix", "stmatrix") else "time the columns of the shape"
    several = "matrices" if one == "matrix" else "times the columns of the shape"
    return f"{times} {one if times == 1 else several}"


def _shape_of_product(rows: str, columns: str, depth: str | None) -> str:
    if depth is None:
        return f"{rows} × {columns} elements"
    return f"A has {rows} × {depth} elements, B {depth} × {columns}, and the result {rows} × {columns}"


def _collected(matrix: str, buffer: str, usage: str) -> str:
    named = matrix.upper()
    collector = f"collector buffer {buffer}" if buffer else "collector buffer"
    return {
        "fill": f"put {named} into the {collector} for later products",
        "use": f"take {named} from the {collector}",
        "lastuse": f"take {named} from the {collector} for the last time",
        "discard": f"what the {collector} has of {named} may be dropped",
    }[usage]


def _selected(kind: str, digits: str) -> str:
    """`b0` or `h10`: the bytes or halves of a word that are meant; those of `b` come after those of `a` (PTX 9.7.18.2)."""
    if len(digits) == 1:
        return f"{'byte' if kind == 'b' else 'half'} {digits}"
    nouns, beyond = ("bytes", "4") if kind == "b" else ("halves", "2")
    return f"{nouns} {', '.join(reversed(digits))}{' of {b, a}' * (max(digits) >= beyond)}"


READ: tuple[tuple[re.Pattern[str], Callable[..., str]], ...] = (
    (re.compile(r"m(\d+)n(\d+)(?:k(\d+))?"), _shape_of_product),
    (re.compile(r"(\d+)x(\d+)b"), lambda lanes, bits: f"{lanes} lanes of {bits} bits each"),
    (re.compile(r"(\d+)x(\d+)bx2"), lambda lanes, bits: f"{lanes} lanes of {bits} bits each, at two places"),
    (re.compile(r"collector::([ab])(\d?)::(\w+)"), _collected),
    (re.compile(r"([bh])([0-7]+)"), _selected),
)
"""Words that are read, and not looked up."""


def type_in_words(type: Type) -> str:
    """`unsigned 32-bit integer`, `2 × f16`."""
    if type.name in FORMATS:
        return FORMATS[type.name]
    if type.is_packed:
        element = type.name.partition("x")[0]  # that of .e2m3x2 has a byte for each, which the algebra sees
        return f"{type.lanes} × .{element}, packed in {type.bits} bits"
    noun = "bits" if type.kind == "b" else "integer" if type.is_int else "number"
    return f"{type.bits} {noun} of any kind" if type.kind == "b" else f"{type.bits}-bit {KINDS[type.kind]} {noun}"

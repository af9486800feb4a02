"""Arguments of a kernel, written as text.

`5`, `-3`, `0x10`, `2.5` and `inf` are numbers; `f32[1024]` is an array of zeros, `u8[256,4]=arange` one of arange,
random, ones or any number; `@in.npy` is an array from a file, `hex:00ff10` are bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod
from typing import TypeAlias

import ml_dtypes
import numpy as np

from ptxvm.diagnostics import did_you_mean
from ptxvm.machine.per_lane import Array

ARRAY = re.compile(r"(?P<type>[a-z]\w*)\[(?P<shape>[^\]]*)\](?:=(?P<fill>.*))?", re.DOTALL)
FLOATS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
SIZES = (8, 16, 32, 64)
DTYPES = {
    **{name: np.dtype(held) for name, held in FLOATS.items()},
    **{f"{kind}{bits}": np.dtype(f"{'i' if kind == 's' else 'u'}{bits // 8}") for kind in "sub" for bits in SIZES},
}
OTHERS = {
    **{f"{word}{bits}": f"s{bits}" for word in ("i", "int") for bits in SIZES}, **{f"uint{bits}": f"u{bits}" for bits in SIZES},
    **{f"float{bits}": f"f{bits}" for bits in SIZES[1:]}, "bfloat16": "bf16",
    "char": "s8", "short": "s16", "int": "s32", "unsigned": "u32", "long": "s64",
    "half": "f16", "float": "f32", "double": "f64",
}  # fmt: skip
"""The types that NumPy and C call by these names."""
Random = Callable[[], "np.random.Generator"]  # NumPy imports them when they are named, which takes a while
FILLS = ("arange", "random", "ones", "zeros")

Argument: TypeAlias = "int | float | bytes | Array"
Held = np.dtype[np.generic]


def parse(word: str, random: Random) -> Argument:
    """The argument that a word stands for; ValueError where it stands for none."""
    if word.startswith("@"):
        return from_file(word[1:])
    if word.startswith("hex:"):
        return from_hexadecimal(word)
    if found := ARRAY.fullmatch(word):
        return array(word, found["type"], found["shape"], found["fill"], random)
    value = number(word)
    if value is None:
        forms = "a number, TYPE[SHAPE], TYPE[SHAPE]=FILL, @FILE.npy or hex:BYTES"
        raise ValueError(f"'{word}' is no argument: give {forms}")
    return value


def number(word: str) -> int | float | None:
    """An integer in any base, or a float; None where it is neither."""
    for convert in (lambda: int(word, 0), lambda: float(word)):
        try:
            return convert()
        except ValueError:
            continue
    return None


def from_hexadecimal(word: str) -> bytes:
    """Bytes, in the order of memory."""
    try:
        return bytes.fromhex(word.removeprefix("hex:"))
    except ValueError:
        raise ValueError(f"'{word}' is no argument: hex: is followed by two hexadecimal digits a byte") from None


def from_file(path: str) -> Array:
    """The array in a file of NumPy, in the byte order of the host."""
    try:
        loaded = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise ValueError(f"no such file: '{path}'") from None
    except OSError as wrong:
        raise ValueError(f"cannot read '{path}': {wrong.strerror or wrong}") from None
    except (ValueError, EOFError):
        raise ValueError(f"'{path}' is not an .npy file that numpy.save wrote") from None
    if not isinstance(loaded, np.ndarray):
        raise ValueError(f"'{path}' holds several arrays; save each in an .npy file of its own")  # noqa: TRY004 - of a file
    return np.ascontiguousarray(loaded, loaded.dtype.newbyteorder("="))


def array(word: str, type: str, shape: str, fill: str | None, random: Random) -> Array:
    """A new array."""
    element = DTYPES.get(type)
    if element is None:
        guess = did_you_mean(OTHERS.get(type, type), DTYPES) or f"there are {' '.join(DTYPES)}"
        raise ValueError(f"'{word}': no type is called '{type}'; {guess}")
    try:
        sizes = tuple(int(size, 0) for size in shape.split(","))
    except ValueError:
        sizes = (-1,)
    if min(sizes) < 0:
        raise ValueError(f"'{word}': a shape is a number of elements, or several with commas: {type}[64,64]")
    try:
        return filled(element, sizes, fill or "zeros", random)
    except MemoryError:
        raise ValueError(f"'{word}' does not fit in memory: it has {prod(sizes) * element.itemsize:,} bytes") from None
    except (OverflowError, ValueError) as wrong:
        raise ValueError(f"'{word}': {wrong}") from None


def filled(element: Held, shape: tuple[int, ...], fill: str, random: Random) -> Array:
    """An array with values in it; those of `arange` wrap around in narrow types.  ValueError where it has none."""
    if fill == "random" and element.kind in "iu":
        limits = np.iinfo(element.name)
        return random().integers(limits.min, limits.max, shape, element, endpoint=True)
    match fill:
        case "zeros":
            return np.zeros(shape, element)
        case "ones":
            return np.ones(shape, element)
        case "arange":
            counted = np.arange(prod(shape), dtype=np.uint64 if element.kind in "iu" else np.float64)
            return counted.astype(element).reshape(shape)
        case "random":
            return random().random(shape, np.float64 if element.itemsize == 8 else np.float32).astype(element)
    value = number(fill)
    if value is None:
        guess = did_you_mean(fill, FILLS)
        raise ValueError(f"an array is filled with {', '.join(FILLS)} or a number{f'; {guess}' if guess else ''}")
    if element.kind in "iu" and not (
        isinstance(value, int) and np.iinfo(element.name).min <= value <= np.iinfo(element.name).max
    ):
        raise ValueError(f"{fill} is no value of the type")
    return np.full(shape, value, element)

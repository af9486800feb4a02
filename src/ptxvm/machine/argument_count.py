"""The message for a wrong number of arguments, with demangled and shortened names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ptxvm.analysis.symbols import LONGEST, short
from ptxvm.diagnostics import mangled

MOST = 8  # parameters that are listed one by one
_ARRAY = re.compile(r"Array<.*?(?P<dimensions>\d+), [CFA](?:, .*)?>")
_TUPLE = re.compile(r"UniTuple<.*, (?P<count>\d+)>")


def kernel_name(name: str) -> str:
    """The name of a kernel, demangled where it is long."""
    signature = mangled.read(name) if len(name) > LONGEST else None
    return signature.name if signature is not None else name


def wrong_count(kernel: str, parameters: Sequence[tuple[str, str]], passed: int) -> str:
    """`kernel 'k' takes 2 arguments (n .u32, x .u64), and 1 were given`.

    `kernel` is what it is called, `kernel 'k'`; `parameters` are names and types.
    """
    count, name = len(parameters), kernel.removeprefix("kernel '").removesuffix("'")
    takes = f"{kernel.replace(name, kernel_name(name))} takes {count} argument{'s' * (count != 1)}"
    said = f"{takes} ({listed(parameters)}), and {passed} were given"
    groups = list(of_numba(name, count))
    if not groups:
        return said
    lines = [f"  {first:>3} to {last}: {type}" if first < last else f"  {first:>3}: {type}" for first, last, type in groups]
    way = "an array `x` of Numba is passed as 0, 0, x.size, x.itemsize, x, *x.shape, *x.strides"
    return "\n".join([f"{takes}, and {passed} were given:", *lines, way])


def listed(parameters: Sequence[tuple[str, str]]) -> str:
    """The parameters, or of many the first and the last."""
    shown = [f"{short(name)} {type}" for name, type in parameters]
    if len(shown) > MOST:
        shown = [*shown[: MOST - 2], "…", shown[-1]]
    return ", ".join(shown) or "none"


def of_numba(kernel: str, count: int) -> Iterator[tuple[int, int, str]]:
    """The first and last parameter of each argument of a Numba kernel, with its type; nothing where the counts differ."""
    signature = mangled.read(kernel)
    if signature is None or not any(_ARRAY.fullmatch(type) for type in signature.types):
        return
    sizes = [_parameters(type) for type in signature.types]
    if sum(sizes) != count:
        return
    first = 0
    for type, size in zip(signature.types, sizes, strict=True):
        yield first, first + size - 1, type
        first += size


def _parameters(type: str) -> int:
    """How many parameters Numba passes for an argument; an array has its owner, parent, counts, data, shape and strides."""
    if found := _ARRAY.fullmatch(type):
        return 5 + 2 * int(found["dimensions"])
    found = _TUPLE.fullmatch(type)
    return int(found["count"]) if found else 1

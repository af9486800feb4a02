"""The functions of the runtime API: the kinds of their results and parameters, for each major version.

`functions.txt` has them, from the headers of two toolkits (`tools/runtime_functions.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ptxvm.libcuda import signatures as driver
from ptxvm.libcudart.structures import Extent, Location, PitchedPointer, ThreeSizes
from ptxvm.named_tuple import NamedTuple

KINDS: Mapping[str, Any] = MappingProxyType(  # ctypes classes, None for void, as `CFUNCTYPE` takes them
    dict(driver.KINDS) | {"v": None, "D": ThreeSizes, "E": Extent, "P": PitchedPointer, "L": Location}
)
STRUCTURE = "C"  # a structure as the result: its address comes as a first parameter, and goes back (System V ABI, x86-64)


class CSignature(NamedTuple):
    """The kinds of a result and of parameters."""

    result: str
    parameters: str


@cache
def signatures(major: str) -> Mapping[str, CSignature]:
    """The functions of a version of the library."""
    found = {}
    for line in Path(__file__).with_name("functions.txt").read_text(encoding="ascii").splitlines():
        majors, name, result, *parameters = line.split()
        if major in majors.split(","):
            kinds = "".join(parameters)
            found[name] = CSignature("p", "p" + kinds) if result == STRUCTURE else CSignature(result, kinds)
    return MappingProxyType(found)


__all__ = ["KINDS", "CSignature", "signatures"]

"""Libraries: modules with a function that kernels share.

Such a function depends on nothing of a kernel, is long, and uses the memory that its argument points to alone.  A kernel's
module declares it; it is compiled once, and linked into each kernel that calls it (`engine.jit.objects.library_code`).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.ir.builder import Unit
from ptxvm.engine.jit.ir.digest import Digest

PREFIX = "ptxvm.library."
DECLARED = re.compile(rf"^declare .*@({re.escape(PREFIX)}[^(]+)\(", re.MULTILINE)


class Library(NamedTuple):
    """A module, and its function that takes an address and returns an i32."""

    unit: Unit
    function: str


LIBRARIES: dict[str, Library] = {}
"""The libraries that have been written, by the names of their functions in other modules."""


def enter(unit: Unit, function: str) -> str:
    """Let other modules call a function of a unit; its name tells it from all others for a processor.  Returns the new name."""
    name = f"{PREFIX}{function}.{Digest().add(cpu.identity()).text[:16]}"
    LIBRARIES[name] = Library(unit, function)
    return name


def declared(unit: Unit, name: str) -> str:
    """Declare the function of a library in a module; returns its name."""
    unit.declarations[name] = f"declare i32 @{name}(ptr) nounwind memory(argmem: readwrite)"
    return name


def needed(text: str) -> list[str]:
    """The names of the libraries that a module declares."""
    return DECLARED.findall(text)

"""Libraries: modules with a function that kernels share.

Such a function depends on nothing of a kernel.  It is compiled once, kept on disk, and linked into each kernel that calls it
(`engine.jit.objects.library_code`); a kernel's module declares it.  Those that are long are written apart, such as matrix
products; others are found in the text of a module (`engine.jit.objects.shared_functions`).
"""

from __future__ import annotations

import re

from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.ir.builder import Unit
from ptxvm.engine.jit.ir.digest import Digest
from ptxvm.engine.jit.ir.module_text import module_text

PREFIX = "ptxvm.library."
DECLARED = re.compile(rf"^declare .*@({re.escape(PREFIX)}[^(]+)\(", re.MULTILINE)

LIBRARIES: dict[str, str] = {}
"""The texts of the libraries that have been written, by the names of their functions."""


def enter(unit: Unit, function: str, parameters: str = "ptr") -> str:
    """Let other modules call a function of a unit; its name tells it from all others for a processor.  Returns the new name.

    It takes addresses, uses the memory there alone, and returns an i32.
    """
    name = f"{PREFIX}{function}.{Digest().add(cpu.identity()).text[:16]}"
    LIBRARIES[name] = module_text(unit, f"@{name} = alias i32 ({parameters}), ptr @{function}")
    return name


def declared(unit: Unit, name: str, parameters: str = "ptr") -> str:
    """Declare the function of a library in a module; returns its name."""
    unit.declarations[name] = f"declare i32 @{name}({parameters}) nounwind memory(argmem: readwrite)"
    return name


def needed(text: str) -> list[str]:
    """The names of the libraries that a module declares, and of those that they do."""
    found: dict[str, None] = {}
    waiting = DECLARED.findall(text)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = None
            waiting += DECLARED.findall(LIBRARIES[name])
    return list(found)

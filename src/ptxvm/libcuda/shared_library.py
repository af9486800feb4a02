"""Shared libraries of Python functions: an ELF file whose slots are filled when it is loaded."""

from __future__ import annotations

import atexit
import ctypes
import platform
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from ptxvm.libcuda.assembler import STUB
from ptxvm.libcuda.elf import FORKED, SLOTS, library, requirement
from ptxvm.libcuda.embedded import LEAVE, LEAVING, guest, starter

GIVING_UP = ("Destroy", "Detach", "Free", "Release", "Unload", "Unregister")
CHOOSING = ("CtxSetCurrent", "CtxPushCurrent")  # what clients do around it, and the current context, of which there is none
CURRENT = ("CtxGetCurrent", "CtxPopCurrent")


CFunction: TypeAlias = Any
"""A ctypes function; ctypes makes its class from the signature."""


class SharedLibrary:
    """A loaded library with filled slots: every request of the process for its name gets it.

    `functions` are ctypes functions by the names that the library exports.
    """

    def __init__(self, path: Path, functions: Mapping[str, CFunction]) -> None:
        self.path = path
        self.functions = {**functions, LEAVE: LEAVING}  # ctypes frees what nothing holds
        self.loaded = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
        self.slots = (ctypes.c_void_p * len(self.functions)).in_dll(self.loaded, SLOTS)
        self.ended = (self.slots[0] or 0) - STUB
        self.done = self.ended - STUB
        self.none = self.done - STUB
        for number, function in enumerate(self.functions.values()):
            self.slots[number] = ctypes.cast(function, ctypes.c_void_p).value
        atexit.register(self.end)
        guest(self.end, self.address(LEAVE), self.address(FORKED))

    def fill(self, addresses: Mapping[str, int]) -> None:
        """Set the slots of functions."""
        for number, name in enumerate(self.functions):
            if name in addresses:
                self.slots[number] = addresses[name]

    def filled(self) -> dict[str, int]:
        """The addresses in the slots of functions."""
        return {name: self.slots[number] or 0 for number, name in enumerate(self.functions)}

    def end(self) -> None:
        """Set all slots to code without Python: destructors of C++ call functions after the interpreter has ended.

        Functions that release something succeed, as those that choose its context: the process ends anyway, and clients
        would print warnings.
        """
        for number, name in enumerate(self.functions):
            self.slots[number] = self.at_end(name)

    def at_end(self, name: str) -> int:
        """The address of what a function does when the host has ended."""
        if any(word in name for word in CURRENT):
            return self.none
        return self.done if any(word in name for word in (*GIVING_UP, *CHOOSING)) else self.ended

    def address(self, name: str) -> int:
        """The address of an exported function."""
        return ctypes.cast(getattr(self.loaded, name), ctypes.c_void_p).value or 0


INSTALL = "ptxvm.libcudart.library"  # whose function `install` fills all libraries


def write(
    folder: Path, soname: str, names: Sequence[str], unfilled: int, ended: int, *, version: str = "",
    texts: Mapping[str, str] = MappingProxyType({}),
) -> Path:  # fmt: skip
    """The file of a library in a folder, under its name; functions return `unfilled` where Python cannot be started.

    They do so in a forked process too, but for those that return strings, the `texts`.  When the process ends, they return
    `ended`.  The functions have a `version` for the linker, if it is not "".
    """
    path = folder / soname
    if not path.exists():
        data = library((*names, LEAVE), soname, platform.machine(), unfilled, ended, starter(INSTALL), version, texts)
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            file.write(data)
        Path(file.name).replace(path)
    return path


def add_name(path: Path, name: str) -> None:
    """Let requests of this process for a name, which is a link to a loaded library beside it, get that library."""
    with tempfile.NamedTemporaryFile(dir=path.parent) as file:
        file.write(requirement(name, platform.machine()))
        file.flush()
        ctypes.CDLL(file.name)


__all__ = ["SharedLibrary", "add_name", "write"]

"""Python embedded in a program: start, output and end of the interpreter; the libraries start it at a first call.

What kernels print goes to C's standard output, in the order of the program's own prints.  When the program exits, the functions
of the libraries end before LLVM's and C++'s destructors run, and no thread is in LLVM from then on.
"""

from __future__ import annotations

import ctypes
import io
import os
import sys
import sysconfig
from collections.abc import Callable
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import TracebackType

from ptxvm.dataclass import dataclass
from ptxvm.driver.environment import WrongVariable
from ptxvm.driver.profile import profile
from ptxvm.libcuda.last_thread import watch_main_thread
from ptxvm.libcuda.starter import Starter

SCRIPT = """\
import sys
from importlib.machinery import EXTENSION_SUFFIXES
path = {path!r}
own = sys.argv[:1] == [{program!r}]  # was this Python started for the libraries?  Else the program is of Python
if EXTENSION_SUFFIXES[0] == {suffix!r}:
    sys.path[:] = path if own else [*sys.path, *(each for each in path if each not in sys.path)]
    from ptxvm.libcuda.embedded import started
    started()
    from {install} import install
    install()
elif not getattr(sys.modules.get("sitecustomize"), "said", ""):
    sys.stderr.write("ptxvm: " + sys.executable + " is another Python than that of ptxvm; `pip install ptxvm` there\\n")
"""
LEAVE = "ptxvm_leave"  # a function of every library: the program exits
HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
AT_EXIT: list[Callable[[], None]] = []
"""The functions to call when the program exits, in reverse order."""
AT_FORK: list[int] = []
"""Addresses of native functions to call in a child that the program forks."""


class StandardOutput(io.TextIOBase):
    """C's standard output; `input` edits lines on a terminal, if this has a file, an encoding and a way with errors."""

    encoding, errors = "utf-8", "surrogateescape"

    def __init__(self) -> None:
        self.libc = ctypes.CDLL(None)
        self.stream = ctypes.c_void_p.in_dll(self.libc, "stdout")

    def write(self, text: str) -> int:
        """Write a text as UTF-8."""
        data = text.encode(self.encoding, self.errors)
        self.libc.fwrite(data, ctypes.c_size_t(1), ctypes.c_size_t(len(data)), self.stream)
        return len(text)

    def fileno(self) -> int:
        """The number of its file."""
        return int(self.libc.fileno(self.stream))

    def isatty(self) -> bool:
        """Is it a terminal?"""
        return os.isatty(self.fileno())

    def flush(self) -> None:
        """Flush it, with what the program has printed."""
        self.libc.fflush(self.stream)


@dataclass
class Guest:
    """The state of Python as the guest of a program, and its handlers for exit and fork."""

    here: bool = False
    exits: bool = False
    forks: bool = False


GUEST = Guest()


def started() -> None:
    """Set Python up as a guest of the program."""
    import llvmlite.binding  # noqa: F401, PLC0415 - its destructors must run after the functions that are registered here

    sys.stdout = StandardOutput()
    sys.excepthook = tell
    GUEST.here = True
    watch_main_thread()


def tell(type: type[BaseException], wrong: BaseException, trace: TracebackType | None) -> None:
    """Print what made the start of the libraries fail: a line for a wrong variable, which is no defect of ptxvm."""
    if isinstance(wrong, WrongVariable):
        sys.stderr.write(f"ptxvm: {wrong}\n")
    else:
        sys.__excepthook__(type, wrong, trace)


def guest(end: Callable[[], None], leave: int, forked: int) -> None:
    """Register a library: its end, and its native functions for the exit of the program and for a forked child.

    Exit goes through a slot of the library: in a child no Python code runs, since another thread may have held its lock.
    """
    AT_EXIT.append(end)
    AT_FORK.append(forked)
    if GUEST.here and not GUEST.exits:
        GUEST.exits = True
        c_function("__cxa_atexit")(ctypes.c_void_p(leave), None, None)


def initialised() -> None:
    """The program has begun to use a device: its children cannot."""
    if GUEST.here and not GUEST.forks:
        GUEST.forks = True
        for address in AT_FORK:
            c_function("__register_atfork")(None, None, ctypes.c_void_p(address), None)


def c_function(name: str) -> ctypes._NamedFuncPointer:
    """A function of the C library."""
    return ctypes.CDLL(None)[name]


def leave(_: int) -> None:
    """The program exits; `atexit` would write the profile, but an embedded interpreter is never finalised."""
    while AT_EXIT:
        AT_EXIT.pop()()
    if (made := profile()) is not None:
        made.write()
    if "llvmlite.binding" in sys.modules:
        keep_llvm()


def keep_llvm() -> None:
    """Wait until no other thread is in LLVM, and let none in again: its destructors would free what a compilation uses.

    A stream, or better code in the background, may still compile.  llvmlite has one lock for all of LLVM.
    """
    from llvmlite.binding import ffi  # noqa: PLC0415 - a process of Python may have no LLVM

    ffi.lib._lock.__enter__()  # noqa: SLF001 - it has no public name


LEAVING = HANDLER(leave)


@cache
def starter(install: str) -> Starter:
    """The starter of this Python in another process; `install` is a module with a function of that name."""
    suffix = EXTENSION_SUFFIXES[0]
    script = SCRIPT.format(path=sys.path, install=install, program=sys.executable, suffix=suffix)
    return Starter(script, sys.executable, library_of_python())


def library_of_python() -> str:
    """The path of the shared library of this Python, "" where it has none."""
    folder, name = sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("INSTSONAME")
    for prefix in (folder, sysconfig.get_config_var("LIBPL"), Path(sys.base_prefix, "lib")):
        if prefix and name and ".so" in name and (path := Path(prefix, name)).exists():
            return str(path)
    return ""


__all__ = ["AT_EXIT", "LEAVE", "LEAVING", "guest", "initialised", "library_of_python", "started", "starter"]

"""Python inside a program that has none of its own: a library has started it when one of its functions was called.

What kernels print goes to C's standard output, in the order of the program's own prints.  When the program exits, the functions
of the libraries end before LLVM's and C++'s destructors do.
"""

from __future__ import annotations

import ctypes
import io
import sys
import sysconfig
from collections.abc import Callable
from functools import cache
from pathlib import Path

from ptxvm.libcuda.starter import Starter

SCRIPT = """\
import sys
sys.path[:] = {path!r}
from ptxvm.libcuda.embedded import started
started()
from {install} import install
install()
"""
HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
AT_EXIT: list[Callable[[], None]] = []
"""What to do when the program exits, the last first; only `started` fills in what does it."""
KEPT: list[object] = []  # what C has the address of


class StandardOutput(io.TextIOBase):
    """C's standard output."""

    def __init__(self) -> None:
        self.libc = ctypes.CDLL(None)
        self.stream = ctypes.c_void_p.in_dll(self.libc, "stdout")

    def write(self, text: str) -> int:
        """Write a text as UTF-8."""
        data = text.encode("utf-8", "surrogateescape")
        self.libc.fwrite(data, ctypes.c_size_t(1), ctypes.c_size_t(len(data)), self.stream)
        return len(text)

    def flush(self) -> None:
        """Leave it to the program when to flush."""


def started() -> None:
    """Set Python up as a guest of the program."""
    import llvmlite.binding  # noqa: F401, PLC0415 - its destructors are to run after what is registered here

    sys.stdout = StandardOutput()
    handler = HANDLER(lambda _: leave())
    KEPT.append(handler)
    at_exit = ctypes.CDLL(None)["__cxa_atexit"]
    at_exit(handler, None, None)


def leave() -> None:
    """The program exits."""
    while AT_EXIT:
        AT_EXIT.pop()()


@cache
def starter(install: str) -> Starter:
    """What starts this Python in another process, with a module that has a function `install`."""
    return Starter(SCRIPT.format(path=sys.path, install=install), sys.executable, library_of_python())


def library_of_python() -> str:
    """The path of the shared library of this Python, "" where it has none."""
    folder, name = sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("INSTSONAME")
    for place in (folder, sysconfig.get_config_var("LIBPL"), Path(sys.base_prefix, "lib")):
        if place and name and ".so" in name and (path := Path(place, name)).exists():
            return str(path)
    return ""


__all__ = ["AT_EXIT", "library_of_python", "started", "starter"]

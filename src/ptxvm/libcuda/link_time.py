"""Link-time optimisation: the toolkit's nvJitLink makes PTX of LTO-IR (nvJitLink manual, "Supported Link Options").

LTO-IR is a format of NVIDIA's own, so a link of it needs that library; it needs no device.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from ptxvm.driver.results import DriverError, Result
from ptxvm.libcuda.toolkit import installed
from ptxvm.named_tuple import NamedTuple

LTO_IR = 3  # nvJitLinkInputType
ALWAYS = ("-lto", "-ptx")
NONE_INSTALLED = "LTO-IR is linked by the toolkit's libnvJitLink, which is not installed (pip install nvidia-nvjitlink)"


class LinkInput(NamedTuple):
    """A module of LTO-IR."""

    data: bytes
    name: str


def toolkit_linker() -> Path:
    """The path of the newest library that is installed; DriverError where there is none."""
    found = next(chain(*(installed("libnvJitLink", "nvjitlink", major) for major in ("13", "12"))), None)
    if found is None:
        raise DriverError(Result.NOT_SUPPORTED, NONE_INSTALLED)
    return found


def linked_ptx(path: Path, inputs: Sequence[LinkInput], options: Sequence[str]) -> bytes:
    """The PTX of modules of LTO-IR, linked by a library with a client's options; DriverError with its log where it fails."""
    library = ctypes.CDLL(str(path))
    chosen = [each.encode() for each in dict.fromkeys((*ALWAYS, *options))]
    handle = ctypes.c_void_p()
    if library.nvJitLinkCreate(ctypes.byref(handle), len(chosen), (ctypes.c_char_p * len(chosen))(*chosen)):
        raise DriverError(Result.INVALID_VALUE, f"nvJitLink refuses the options {b' '.join(chosen).decode()}")
    try:
        for each in inputs:
            fails = library.nvJitLinkAddData(handle, LTO_IR, each.data, ctypes.c_size_t(len(each.data)), each.name.encode())
            if fails:
                raise DriverError(Result.INVALID_IMAGE, f"{each.name}: {log(library, handle)}")
        if library.nvJitLinkComplete(handle):
            raise DriverError(Result.INVALID_IMAGE, log(library, handle))
        return text(library, handle, "LinkedPtx")
    finally:
        library.nvJitLinkDestroy(ctypes.byref(handle))


def log(library: ctypes.CDLL, handle: ctypes.c_void_p) -> str:
    """The errors of a link."""
    return text(library, handle, "ErrorLog").decode(errors="replace").strip()


def text(library: ctypes.CDLL, handle: ctypes.c_void_p, what: str) -> bytes:
    """A text of a link, by the end of the names of its two functions."""
    size = ctypes.c_size_t()
    if getattr(library, f"nvJitLinkGet{what}Size")(handle, ctypes.byref(size)):
        return b""
    found = ctypes.create_string_buffer(size.value + 1)
    getattr(library, f"nvJitLinkGet{what}")(handle, found)
    return found.value


__all__ = ["LTO_IR", "LinkInput", "linked_ptx", "toolkit_linker"]

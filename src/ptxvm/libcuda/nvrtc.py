"""`libnvrtc`: the compiler of the toolkit, with PTX in place of machine code (NVRTC manual, "User Interface").

The library forwards every call to the real one, which is loaded at the first call; the cubin that a client gets is the PTX
of the program.  Without a real library there is none.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ptxvm.libcuda.shared_library import SharedLibrary, write
from ptxvm.libcuda.toolkit import MAJORS, installed

LOG = logging.getLogger("ptxvm.libcuda")
INTERNAL_ERROR = 11  # nvrtcResult
FORWARDED = ctypes.CFUNCTYPE(ctypes.c_size_t, *[ctypes.c_size_t] * 6)  # no function has more, and all are in registers
NAMES = """
nvrtcAddNameExpression nvrtcCompileProgram nvrtcCreateProgram nvrtcDestroyProgram nvrtcGetBundledHeadersInfo nvrtcGetCUBIN
nvrtcGetCUBINSize nvrtcGetErrorString nvrtcGetLTOIR nvrtcGetLTOIRSize nvrtcGetLoweredName nvrtcGetNVVM nvrtcGetNVVMSize
nvrtcGetNumSupportedArchs nvrtcGetOptiXIR nvrtcGetOptiXIRSize nvrtcGetPCHCreateStatus nvrtcGetPCHHeapSize
nvrtcGetPCHHeapSizeRequired nvrtcGetPTX nvrtcGetPTXSize nvrtcGetProgramLog nvrtcGetProgramLogSize nvrtcGetSupportedArchs
nvrtcGetTileIR nvrtcGetTileIRSize nvrtcInstallBundledHeaders nvrtcRemoveBundledHeaders nvrtcSetFlowCallback
nvrtcSetPCHHeapSize nvrtcVersion
""".split()
INSTEAD = {"nvrtcGetCUBIN": "nvrtcGetPTX", "nvrtcGetCUBINSize": "nvrtcGetPTXSize"}


class Compiler:
    """The library of one major version of CUDA; `real` is the path of the toolkit's."""

    def __init__(self, folder: Path, major: str, real: Path) -> None:
        self.real = real
        self.library = SharedLibrary(
            write_compiler(folder, major), {name: FORWARDED(partial(self.first_call, name)) for name in NAMES}
        )

    def first_call(self, name: str, *arguments: int) -> int:
        """Load the real library, fill all slots with its functions, and forward this call."""
        try:
            loaded = ctypes.CDLL(str(self.real))
        except OSError as wrong:
            LOG.warning("ptxvm: %s cannot be loaded: %s", self.real, wrong)
            return INTERNAL_ERROR
        functions = {each: found for each in NAMES if (found := getattr(loaded, INSTEAD.get(each, each), None)) is not None}
        for number, each in enumerate(NAMES):
            if each in functions:
                self.library.slots[number] = ctypes.cast(functions[each], ctypes.c_void_p).value
        if name not in functions:
            return INTERNAL_ERROR
        call: Callable[..., int] = FORWARDED(ctypes.cast(functions[name], ctypes.c_void_p).value or 0)
        return call(*arguments)


def write_compiler(folder: Path, major: str) -> Path:
    """The file of a library in a folder."""
    soname = f"libnvrtc.so.{major}"
    return write(folder, soname, tuple(NAMES), INTERNAL_ERROR, INTERNAL_ERROR, version=soname)


def write_compilers(folder: Path) -> None:
    """The files of the libraries of the versions that are installed, for programs that are linked with them.

    A link beside each one names the real one: the Python of the program may have other packages.
    """
    for major in MAJORS:
        link = link_to_real(folder, major)
        if (real := next(installed("libnvrtc", "cuda_nvrtc", major), None)) is not None and not link.exists():
            link.symlink_to(real.resolve())
            write_compiler(folder, major)


def compilers(folder: Path) -> list[Compiler]:
    """The libraries of the versions that are installed."""
    write_compilers(folder)
    links = {major: link_to_real(folder, major) for major in MAJORS}
    return [Compiler(folder, major, link.resolve()) for major, link in links.items() if link.exists()]


def link_to_real(folder: Path, major: str) -> Path:
    """Where the link to the library of the toolkit is, if there is one."""
    return folder / f"toolkit-nvrtc-{major}"


__all__ = ["Compiler", "compilers", "write_compilers"]

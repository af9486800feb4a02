"""The library that clients load: the ELF file, and its slots filled with functions of this process."""

from __future__ import annotations

import atexit
import ctypes
import logging
import os
import platform
import shutil
import tempfile
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from ptxvm.driver.results import DriverError, Result, result_of
from ptxvm.libcuda.calls import context, copies, device, entry, graph, launch, memory, module, stream
from ptxvm.libcuda.elf import SLOTS, library
from ptxvm.libcuda.session import FUNCTIONS, OF_ANY_STATE, Implementation, session
from ptxvm.libcuda.signatures import KINDS, base_of, signatures

LOG = logging.getLogger("ptxvm.libcuda")
SONAME = "libcuda.so.1"
CHAPTERS = (context, copies, device, entry, graph, launch, memory, module, stream)  # which enter their functions
UNFILLED = int(Result.NOT_INITIALIZED)


class Library:
    """A loaded library: its folder, and the addresses of its functions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names = tuple(signatures())
        self.path = write(folder)
        self.loaded = ctypes.CDLL(str(self.path), mode=ctypes.RTLD_GLOBAL)
        self.callbacks: list[Any] = []  # ctypes frees what nothing holds
        slots = (ctypes.c_void_p * len(self.names)).in_dll(self.loaded, SLOTS)
        for number, name in enumerate(self.names):
            slots[number] = ctypes.cast(self.callback(name), ctypes.c_void_p).value
        session().address_of = self.address

    def callback(self, name: str) -> Any:  # noqa: ANN401 - a ctypes function, whose class is made here
        """The C function that runs a function of ours."""
        prototype = ctypes.CFUNCTYPE(ctypes.c_int, *(KINDS[kind] for kind in signatures()[name]))
        implementation = FUNCTIONS.get(base_of(name))
        made = prototype(lacking(name) if implementation is None else guarded(name, implementation))
        self.callbacks.append(made)
        return made

    def address(self, name: str) -> int:
        """The address of an exported function."""
        found = ctypes.cast(getattr(self.loaded, name), ctypes.c_void_p).value
        return found or 0


def guarded(name: str, implementation: Implementation) -> Callable[..., int]:
    """A function that returns a result, whatever happens."""
    of_any_state = base_of(name) in OF_ANY_STATE

    def call(*arguments: Any) -> int:  # noqa: ANN401 - as the signature says
        try:
            if not of_any_state:
                session().check()
            implementation(*arguments)
        except DriverError as wrong:
            LOG.info("%s: %s", name, wrong)
            return wrong.result
        except Exception as wrong:
            LOG.exception("%s failed", name)
            return result_of(wrong)
        return Result.SUCCESS

    return call


def lacking(name: str) -> Callable[..., int]:
    """A function that says once that it is not there."""
    said: list[str] = []

    def call(*arguments: Any) -> int:  # noqa: ANN401, ARG001 - as the signature says
        if not said:
            said.append(name)
            LOG.warning("ptxvm: %s is not supported yet", name)
        return Result.NOT_SUPPORTED

    return call


def write(folder: Path) -> Path:
    """The file in a folder, under the names that clients look for."""
    path = folder / SONAME
    if not path.exists():
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            file.write(library(tuple(signatures()), SONAME, platform.machine(), UNFILLED))
        Path(file.name).replace(path)
        (folder / "libcuda.so").symlink_to(SONAME)
    return path


LOCK = threading.Lock()


@cache
def _installed() -> Library:
    if given := os.environ.get("PTXVM_LIBCUDA"):
        return Library(Path(given))
    folder = tempfile.mkdtemp(prefix="ptxvm-libcuda-")
    made_by = os.getpid()  # and not a child that ends first
    atexit.register(lambda: shutil.rmtree(folder, ignore_errors=True) if os.getpid() == made_by else None)
    return Library(Path(folder))


def install() -> Library:
    """Load the library, so that whatever of this process asks for `libcuda.so.1` gets it; once."""
    with LOCK:
        return _installed()


__all__ = ["Library", "install"]

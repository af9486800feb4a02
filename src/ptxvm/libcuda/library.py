"""The library that clients load: the ELF file, and its slots filled with functions of this process."""

from __future__ import annotations

import atexit
import ctypes
import logging
import os
import shutil
import tempfile
import threading
from collections import ChainMap
from collections.abc import Callable
from functools import cache
from pathlib import Path

from ptxvm.driver.results import DriverError, Result, result_of
from ptxvm.libcuda.calls import load_functions
from ptxvm.libcuda.error_log import error_log
from ptxvm.libcuda.jitlink import JitLink
from ptxvm.libcuda.native import Native, native
from ptxvm.libcuda.nvrtc import compilers
from ptxvm.libcuda.session import FUNCTIONS, OF_ANY_STATE, STATELESS, Implementation, session, with_default_of_thread
from ptxvm.libcuda.shared_library import CFunction, SharedLibrary, add_name, write
from ptxvm.libcuda.signatures import KINDS, STREAM_SUFFIXES, base_of, signatures
from ptxvm.libcuda.threads import raise_later
from ptxvm.libcuda.toolkit import MAJORS

LOG = logging.getLogger("ptxvm.libcuda")
SONAME, PLAIN = "libcuda.so.1", "libcuda.so"
UNFILLED, ENDED = int(Result.NOT_INITIALIZED), int(Result.DEINITIALIZED)
SUCCESS = int(Result.SUCCESS)  # ctypes takes a plain number in half the time


class Libraries:
    """The libraries of a process: the driver, and the compiler and linker that clients call before it."""

    def __init__(self, folder: Path) -> None:
        load_functions()
        self.folder = folder
        self.cuda = SharedLibrary(write_driver(folder), {name: callback(name) for name in signatures()})
        add_name(self.cuda.path, PLAIN)  # some clients load it under the name that linkers look for
        session().address_of = self.cuda.address
        self.native: Native | None = None
        session().listeners.append(self.set_ready)
        self.linkers = [JitLink(folder, version) for version in MAJORS]
        self.compilers = compilers(folder)

    def set_ready(self, ready: bool) -> None:  # noqa: FBT001 - it has one parameter
        """Let native code answer calls while the driver is initialised."""
        if ready and self.native is None:
            libraries = [self.cuda, *(each.library for each in self.linkers)]
            self.native = native(session(), dict(ChainMap(*(each.filled() for each in libraries))))
            addresses = self.native.addresses() if self.native is not None else {}
            for library in libraries:
                library.fill(addresses)
        if self.native is not None:
            session().gather = self.native.gather
            self.native.set_ready(ready)


def callback(name: str) -> CFunction:
    """The C function for a Python function."""
    prototype = ctypes.CFUNCTYPE(ctypes.c_int, *(KINDS[kind] for kind in signatures()[name]))
    implementation = FUNCTIONS.get(base_of(name))
    return prototype(lacking(name) if implementation is None else guarded(name, implementation))


def guarded(name: str, implementation: Implementation) -> Callable[..., int]:
    """A function that turns every exception into a result."""
    stateless = base_of(name) in STATELESS
    if name.endswith(STREAM_SUFFIXES):
        implementation = with_default_of_thread(implementation)
    check = session().check_initialised if base_of(name) in OF_ANY_STATE else session().check_usable

    def call(*arguments: object) -> int:
        try:
            if not stateless:
                check()
            implementation(*arguments)
        except DriverError as wrong:
            error_log().add(name, wrong)
            return wrong.result
        except Exception as wrong:
            LOG.exception("%s failed", name)
            return result_of(wrong)
        except BaseException as wrong:  # noqa: BLE001 - C would lose it
            raise_later(type(wrong))
            return Result.UNKNOWN
        return SUCCESS

    return call


def lacking(name: str) -> Callable[..., int]:
    """A function that is missing: it logs its name once, and returns NOT_SUPPORTED."""
    said: list[str] = []

    def call(*arguments: object) -> int:  # noqa: ARG001 - the signature of C
        if not said:
            said.append(name)
            LOG.warning("ptxvm: %s is not supported yet", name)
        return Result.NOT_SUPPORTED

    return call


def write_driver(folder: Path) -> Path:
    """The file of the driver in a folder, under its name and the one that linkers look for."""
    path = write(folder, SONAME, tuple(signatures()), UNFILLED, ENDED)
    if not (plain := folder / PLAIN).exists():
        plain.symlink_to(SONAME)
    return path


LOCK = threading.Lock()


@cache
def _installed() -> Libraries:
    if chosen := os.environ.get("PTXVM_LIBCUDA"):
        return Libraries(Path(chosen))
    folder = tempfile.mkdtemp(prefix="ptxvm-libcuda-")
    made_by = os.getpid()  # and not in a child that ends first
    atexit.register(lambda: shutil.rmtree(folder, ignore_errors=True) if os.getpid() == made_by else None)
    return Libraries(Path(folder))


def install() -> Libraries:
    """Load the libraries, once: every request of this process for their names gets them."""
    with LOCK:
        return _installed()


__all__ = ["Libraries", "install", "write_driver"]

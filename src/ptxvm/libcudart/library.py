"""The libraries that programs of nvcc load: ELF files, and their slots filled with functions of this process."""

from __future__ import annotations

import ctypes
import logging
import sys
import threading
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from ptxvm.driver.results import DriverError, Result, result_of
from ptxvm.libcuda.error_log import error_log
from ptxvm.libcuda.library import Libraries, install as install_driver, lacking
from ptxvm.libcuda.session import with_default_of_thread
from ptxvm.libcuda.shared_library import CFunction, SharedLibrary, write
from ptxvm.libcuda.signatures import STREAM_SUFFIXES, base_of
from ptxvm.libcuda.toolkit import MAJORS
from ptxvm.libcudart.bindings import BindingsFinder
from ptxvm.libcudart.calls import load_functions
from ptxvm.libcudart.runtime_state import FUNCTIONS, RuntimeApiError, RuntimeFunction, runtime
from ptxvm.libcudart.signatures import KINDS, signatures

LOG = logging.getLogger("ptxvm.libcudart")
UNFILLED, ENDED = 3, 4  # cudaErrorInitializationError, cudaErrorCudartUnloading
TEXTS = {"cudaGetErrorString": "initialization error", "cudaGetErrorName": "cudaErrorInitializationError"}
"""What the functions that return strings return in a forked process, where all others return that error."""


def soname(major: str) -> str:
    """The name of the library of a major version."""
    return f"libcudart.so.{major}"


def callback(name: str, major: str) -> CFunction:
    """The C function for a Python function."""
    result, parameters = signatures(major)[name]
    prototype = ctypes.CFUNCTYPE(KINDS[result], *(KINDS[kind] for kind in parameters))
    entry = FUNCTIONS.get(f"{base_of(name)}@{major}") or FUNCTIONS.get(base_of(name))
    return prototype(refused(name) if entry is None else guarded(name, entry, result))


def refused(name: str) -> Callable[..., int]:
    """A function that is missing: it stores NOT_SUPPORTED for its thread, too."""
    refuse = lacking(name)

    def call(*arguments: object) -> int:
        runtime().thread.error = code = refuse(*arguments)
        return code

    return call


def guarded(name: str, entry: RuntimeFunction, kind: str) -> Callable[..., int]:
    """A function that turns every exception into a result, and stores the error for its thread."""
    implementation = with_default_of_thread(entry.implementation) if name.endswith(STREAM_SUFFIXES) else entry.implementation

    def call(*arguments: object) -> int:
        code, done = 0, None
        try:
            if not entry.stateless:
                runtime().ready(any_state=entry.any_state)
            done = implementation(*arguments)
        except (DriverError, RuntimeApiError) as wrong:
            error_log().add(name, wrong)
            code = int(wrong.result)
        except Exception as wrong:
            LOG.exception("%s failed", name)
            code = int(result_of(wrong))
        if code and code != Result.NOT_READY:
            runtime().thread.error = code
        return code if code and kind == "i" else done or 0

    return call


def write_runtime(folder: Path) -> None:
    """The files of the libraries in a folder, under their names and the one that linkers look for."""
    for major in MAJORS:
        write(folder, soname(major), tuple(signatures(major)), UNFILLED, ENDED, version=soname(major), texts=TEXTS)


LOCK = threading.Lock()


@cache
def _libraries() -> tuple[Libraries, Mapping[str, SharedLibrary]]:
    driver = install_driver()
    load_functions()
    write_runtime(driver.folder)
    filled = {
        major: SharedLibrary(driver.folder / soname(major), {name: callback(name, major) for name in signatures(major)})
        for major in MAJORS
    }
    sys.meta_path.insert(0, BindingsFinder(filled))
    return driver, filled


def install() -> Libraries:
    """Load the libraries, once: every request of this process for the driver or the runtime gets them."""
    with LOCK:
        return _libraries()[0]


__all__ = ["install", "soname", "write_runtime"]

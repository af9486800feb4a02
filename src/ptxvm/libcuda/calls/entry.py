"""Initialisation, versions, errors, and the addresses of functions."""

from __future__ import annotations

from ptxvm.driver.results import BuildError, DriverError, Result, member
from ptxvm.libcuda.c_values import bytes_from, put_i32, put_u64, string
from ptxvm.libcuda.session import function, session
from ptxvm.libcuda.signatures import symbol_for

VERSION = 13050  # of CUDA, as 1000 times the major number
LEGACY, PER_THREAD = 1, 2  # CU_GET_PROC_ADDRESS_LEGACY_STREAM, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
TABLE_OF_RUNTIME = bytes.fromhex("6bd5fb6c5bf4e74a8987d93912fd9df9")
"""The table that NVIDIA's runtime library asks for, of CUDA 13.0 as of 13.4: by that it is known."""
STATIC_RUNTIME = (
    "a part of this process contains NVIDIA's CUDA runtime library, linked statically (nvcc does so by default). It works with "
    "NVIDIA's driver only, and its calls fail. Link the program with `nvcc -cudart shared`: `ptxvm exec` has a runtime "
    "library for it"
)
FOUND, NOT_FOUND, TOO_OLD = range(3)  # CUdriverProcAddressQueryResult


@function("cuInit", stateless=True)
def init(flags: int) -> None:
    """Make the devices known."""
    if flags:
        raise DriverError(Result.INVALID_VALUE, "the flags of cuInit are 0")
    session().initialise()


@function("cuDriverGetVersion", stateless=True)
def driver_version(out: int) -> None:
    """The newest version of CUDA that the driver knows."""
    put_i32(out, VERSION)


@function("cuGetErrorString", stateless=True)
def error_string(code: int, out: int) -> None:
    """A description of a result."""
    put_u64(out, 0)
    put_u64(out, session().text(known(code).text))


@function("cuGetErrorName", stateless=True)
def error_name(code: int, out: int) -> None:
    """The name of a result."""
    put_u64(out, 0)
    put_u64(out, session().text(known(code).symbol))


def known(code: int) -> Result:
    """A result by its number; DriverError for an unknown number."""
    return member(Result, code, "result")


@function("cuGetProcAddress", stateless=True)
def address(name: int, out: int, version: int, flags: int) -> None:
    """The function for a name in a version, as until CUDA 12: DriverError where there is none."""
    if put_address(name, out, version, flags) is None:
        raise DriverError(Result.NOT_FOUND, f"{string(name)} is not known in version {version}")


@function("cuGetProcAddress_v2", stateless=True)
def address_v2(name: int, out: int, version: int, flags: int, status: int) -> None:
    """The function for a name in a version, null where there is none, and in `status`, unless that is null, why."""
    found = put_address(name, out, version, flags)
    newer = symbol_for(string(name), 1 << 30) is not None
    if status:
        put_i32(status, FOUND if found else TOO_OLD if newer else NOT_FOUND)


def put_address(name: int, out: int, version: int, flags: int) -> str | None:
    """Put the address of a function, 0 where there is none; its symbol.

    DriverError for a version after the driver's own, and for unknown flags.
    """
    if flags not in (0, LEGACY, PER_THREAD):
        raise DriverError(Result.INVALID_VALUE, f"there are no flags {flags:#x} of a search for a function")
    if version > VERSION:
        raise DriverError(Result.INVALID_VALUE, f"version {version} is after {VERSION}, that of the driver")
    found = symbol_for(string(name), version, per_thread=bool(flags & PER_THREAD))
    put_u64(out, session().address_of(found) if found else 0)
    return found


@function("cuGetExportTable", stateless=True)
def export_table(out: int, which: int) -> None:
    """NVIDIA's private tables; this driver has none.  NVRTC goes on without, and NVIDIA's runtime library does not."""
    put_u64(out, 0)
    if which and bytes_from(which, 16) == TABLE_OF_RUNTIME:
        raise BuildError(Result.NOT_FOUND, STATIC_RUNTIME)
    raise DriverError(Result.NOT_FOUND, f"there is no table of {which:#x}")


@function("cuProfilerStart", "cuProfilerStop", "cuProfilerInitialize")
def profiler(*arguments: int) -> None:
    """No effect: there is no profiler."""

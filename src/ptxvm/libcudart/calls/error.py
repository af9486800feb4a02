"""Errors: the last one of each thread, names and descriptions."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ptxvm.driver.results import Result
from ptxvm.libcuda.session import session
from ptxvm.libcudart.runtime_state import function, runtime

DESCRIPTIONS = {
    0: "no error", 1: "invalid argument", 2: "out of memory", 3: "initialization error", 4: "driver shutting down",
    9: "invalid configuration argument", 13: "invalid device symbol", 21: "invalid copy direction for memcpy",
    98: "invalid device function", 100: "no CUDA-capable device is detected", 101: "invalid device ordinal",
    200: "device kernel image is invalid", 201: "invalid device context",
    209: "no kernel image is available for execution on the device", 218: "a PTX JIT compilation failed",
    400: "invalid resource handle", 600: "device not ready", 700: "an illegal memory access was encountered",
    701: "too many resources requested for launch", 702: "the launch timed out and was terminated",
    704: "peer access is already enabled", 705: "peer access has not been enabled", 710: "device-side assert triggered",
    716: "misaligned address", 719: "unspecified launch failure",
    720: "too many blocks in cooperative launch", 801: "operation not supported",
    900: "operation not permitted when stream is capturing", 907: "operation not permitted on an event last recorded in a "
    "capturing stream",
}  # fmt: skip


@cache
def names() -> dict[int, str]:
    """The names of the errors."""
    lines = Path(__file__).parent.with_name("errors.txt").read_text(encoding="ascii").splitlines()
    return {int(number): name for number, name in (line.split() for line in lines)}


@function("cudaGetLastError", any_state=True)
def last_error() -> int:
    """The last error of the thread; it is reset, unless a kernel has failed."""
    code = peek()
    runtime().thread.error = 0
    return code


@function("cudaPeekAtLastError", any_state=True)
def peek() -> int:
    """The last error of the thread."""
    context = session().stack.current
    failure = context.failure if context is not None else Result.SUCCESS
    return runtime().thread.error or int(failure)


@function("cudaGetErrorName", stateless=True)
def error_name(code: int) -> int:
    """The name of an error."""
    return session().text(names().get(code, "unrecognized error code"))


@function("cudaGetErrorString", stateless=True)
def error_string(code: int) -> int:
    """A description of an error; of a rare one the words of its name."""
    known = DESCRIPTIONS.get(code) or in_words(names().get(code, "cudaErrorUnrecognizedErrorCode"))
    return session().text(known)


def in_words(name: str) -> str:
    """A name as words: `cudaErrorInvalidSource` is "invalid source"."""
    return "".join(f" {each.lower()}" if each.isupper() else each for each in name.removeprefix("cudaError")).strip()

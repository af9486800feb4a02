"""Errors: the last one of each thread, names and descriptions."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ptxvm.driver import results as driver
from ptxvm.driver.results import Result
from ptxvm.libcuda.session import session
from ptxvm.libcudart.runtime_state import function, runtime

DESCRIPTIONS = dict(driver.DESCRIPTIONS) | {
    9: "invalid configuration argument", 13: "invalid device symbol", 21: "invalid copy direction for memcpy",
    98: "invalid device function",
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

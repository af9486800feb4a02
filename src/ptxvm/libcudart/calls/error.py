"""Errors: the last one of each thread, names and descriptions."""

from __future__ import annotations

from ptxvm.driver import runtime_errors
from ptxvm.driver.results import Result
from ptxvm.libcuda.session import session
from ptxvm.libcudart.runtime_state import function, runtime


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
    return session().text(runtime_errors.name(code))


@function("cudaGetErrorString", stateless=True)
def error_string(code: int) -> int:
    """A description of an error; of a rare one the words of its name."""
    return session().text(runtime_errors.description(code))

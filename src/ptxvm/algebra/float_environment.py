"""The floating-point environment of a thread of the host: rounding, flushing of subnormals, exceptions that trap (C17 7.6).

Anything in the process may have changed it: a library that was built with `-ffast-math` sets FTZ and DAZ for the thread
that loads it.  What is computed for a kernel, constants in its text included, needs the default.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache

SIZE = 128  # bytes: more than `fenv_t` of any host
(LEAST_NORMAL,) = struct.unpack("<d", bytes.fromhex("0000000000001000"))
HALF, ONE, SMALL = 0.5, 1.0, 2.0**-60
NOTHING = nullcontext()  # to be done


@cache
def _library() -> tuple[Callable[..., int], Callable[..., int], int]:
    """`fegetenv` and `fesetenv`, and `FE_DFL_ENV` of <fenv.h>."""
    library = ctypes.CDLL(None)
    get, put = library.fegetenv, library.fesetenv
    get.argtypes = put.argtypes = [ctypes.c_void_p]
    if sys.platform == "darwin":  # pragma: no cover - only macOS has the variable
        return get, put, ctypes.addressof(ctypes.c_char.in_dll(library, "_FE_DFL_ENV"))
    return get, put, ctypes.c_size_t(-1).value


class DefaultEnvironment:
    """The default environment for what stands within `with`; that of before is given back."""

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        get, put, default = _library()
        self._before = ctypes.create_string_buffer(SIZE)
        get(ctypes.addressof(self._before))
        put(default)

    def __exit__(self, *_: object) -> None:
        _library()[1](ctypes.addressof(self._before))


def usual_arithmetic() -> AbstractContextManager[None]:
    """The same for what may not trap anyway: nothing is done where arithmetic is as usual."""
    return NOTHING if computes_as_usual() else DefaultEnvironment()


def computes_as_usual() -> bool:
    """Does arithmetic keep subnormal numbers and round to nearest?  Which exceptions trap it does not tell."""
    return LEAST_NORMAL * HALF > 0.0 and ONE + SMALL == ONE and ONE - SMALL == ONE

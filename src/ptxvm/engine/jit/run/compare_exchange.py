"""Compare-and-exchange for the interpreter: its atomics are one step for compiled code beside it, too (PTX 8.10.3)."""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np

from ptxvm.engine.jit.abi.specialisation import Tier
from ptxvm.engine.jit.ir.runtime import runtime
from ptxvm.engine.jit.objects import code_cache
from ptxvm.machine.events import Flags
from ptxvm.machine.per_lane import Addresses, Array

NAME = "compare_exchange"


def compare_exchange(addresses: Addresses, expected: Array, desired: Array) -> Flags:
    """Give each word the desired value where it is what was expected; tells which were."""
    done = np.zeros(len(addresses), np.bool_)
    function = _function(expected.itemsize)
    function(addresses.ctypes.data, expected.ctypes.data, desired.ctypes.data, done.ctypes.data, len(addresses))
    return done


class _Function:
    """The code for words of a size, and its memory."""

    def __init__(self, size: int) -> None:
        text = runtime(NAME, type=f"i{8 * size}")
        self._linked, _ = code_cache.link(code_cache.object_code(text, Tier.QUICK, background=False), NAME, NAME)
        kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, ctypes.c_int64)
        self._call = kind(self._linked.address(NAME))

    def __call__(self, *arguments: int) -> None:
        self._call(*arguments)


_function = cache(_Function)

__all__ = ["compare_exchange"]

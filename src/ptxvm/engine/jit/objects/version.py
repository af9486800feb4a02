"""A version of a kernel: its code in memory, and its metadata."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cached_property

from ptxvm.engine.jit.abi.metadata import Facts

GRID = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4, *[ctypes.c_int64] * 2)


class Version:
    """Code in memory (`code` owns it), its entry address, and the metadata of it and of the versions before it.

    `seconds` is the time that it took to compile.
    """

    def __init__(self, facts: Facts, code: object, address: int, tier: int, seconds: float = 0.0) -> None:
        self.facts, self.code, self.address, self.tier, self.seconds = facts, code, address, tier, seconds

    @cached_property
    def grid(self) -> Callable[[int, int, int, int, int, int], int]:
        """The grid function, which runs some CTAs; only the first version has one."""
        return GRID(self.address)

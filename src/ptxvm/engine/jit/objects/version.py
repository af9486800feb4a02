"""A version of a kernel as code in memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cached_property

from ptxvm.engine.jit.abi.metadata import Facts

GRID = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4, *[ctypes.c_int64] * 2)


class Version:
    """Code in memory (`code` keeps it there), where it is entered, and what is known of it and of those before it.

    `seconds` is how long it took to compile.
    """

    def __init__(self, facts: Facts, code: object, address: int, tier: int, seconds: float = 0.0) -> None:
        self.facts, self.code, self.address, self.tier, self.seconds = facts, code, address, tier, seconds

    @cached_property
    def grid(self) -> Callable[[int, int, int, int, int, int], int]:
        """The function that runs some CTAs, of the version that runs first."""
        return GRID(self.address)

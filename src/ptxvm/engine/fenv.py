"""The rounding mode of the host's floating-point unit, which NumPy's arithmetic follows.

`fesetround` of the C library costs 0.2 us; the mode belongs to the thread.  NumPy converts to f16 and bf16 in software, which
ignores the mode.  A host that has no modes, as WebAssembly, rounds in software.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import platform
from collections.abc import Callable

import numpy as np

from ptxvm.engine import software_rounding
from ptxvm.machine.per_lane import PerLane

# The values of FE_* in <fenv.h>, by architecture.
X86 = {"rn": 0x000, "rm": 0x400, "rp": 0x800, "rz": 0xC00}
ARM = {"rn": 0x000000, "rp": 0x400000, "rm": 0x800000, "rz": 0xC00000}
MODES = {"x86_64": X86, "AMD64": X86, "i686": X86, "aarch64": ARM, "arm64": ARM}.get(platform.machine(), {})

fesetround = ctypes.CDLL(ctypes.util.find_library("m")).fesetround


def rounded(mode: str, function: Callable[..., PerLane], *args: PerLane) -> PerLane:
    """`function(*args)`, rounded in the mode `rn rz rm rp` or `odd`; the function is `cast` or a ufunc."""
    if mode == "rn":
        return function(*args)
    if mode == "odd":
        return to_odd(*bracketed(function, *args))
    if not HAS_MODES:
        return software_rounding.rounded(mode, function, *args)
    fesetround(MODES[mode])
    try:
        return function(*args)
    finally:
        fesetround(0)


def bracketed(function: Callable[..., PerLane], *args: PerLane) -> tuple[PerLane, PerLane]:
    """`function(*args)`, rounded down and rounded up."""
    if not HAS_MODES:
        return software_rounding.bracketed(function, *args)
    try:
        fesetround(MODES["rm"])
        low = function(*args)
        fesetround(MODES["rp"])
        return low, function(*args)
    finally:
        fesetround(0)


def to_odd(low: PerLane, high: PerLane) -> PerLane:
    """Round to odd, given a result rounded down and up: where they differ, the one whose last bit is 1.

    The bits of neighbours of one sign differ by one, and the lesser is nearer to zero; an exact zero is +0.
    """
    bits = np.dtype(f"u{low.dtype.itemsize}")
    inexact = low != high
    return (np.minimum(low.view(bits), high.view(bits)) | inexact.astype(bits)).view(low.dtype)


def has_modes() -> bool:
    """Does the arithmetic of this host follow `fesetround`, every element of an array, and return to the nearest?"""
    one, tiny = np.ones(64), np.full(64, 2.0**-60)
    if not MODES:
        return False
    fesetround(MODES["rp"])
    up = one + tiny
    fesetround(0)
    return bool((up > 1).all() and (one + tiny == 1).all())


HAS_MODES = has_modes()

__all__ = ["bracketed", "rounded", "to_odd"]

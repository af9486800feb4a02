"""Arrays that live in the memory of the device."""

from __future__ import annotations

import operator
import sys
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ptxvm.diagnostics.errors import Fault
from ptxvm.machine.memory import Memory, default_memory
from ptxvm.machine.per_lane import Array
from ptxvm.machine.streams import DEVICE

if TYPE_CHECKING:
    import numpy.typing as npt


class DeviceArray:
    """An array on the device: aligned to 256 bytes, kept from launch to launch, freed with the object.

    Device memory is memory of this process, so `array` is a view and costs nothing; `copy_to_host` copies.  Of an array
    that has been freed every use is a `Fault`; the views that were taken before keep their values.
    """

    def __init__(
        self, shape: int | tuple[int, ...], dtype: npt.DTypeLike = np.float32, *, memory: Memory | None = None
    ) -> None:
        if not isinstance(memory, Memory | None):
            raise TypeError(f"memory is a Memory, not {memory!r}")
        self.memory = default_memory() if memory is None else memory
        self.dtype, self.shape = _on_device(np.dtype(dtype)), _sizes(shape)
        self.is_written = False  # may the host or a kernel have written to it?
        self.allocation = self.memory.allocate(self.nbytes, name="a DeviceArray", detail=f"{self.dtype.name}{list(self.shape)}")

    @classmethod
    def from_host(cls, array: npt.ArrayLike, *, memory: Memory | None = None) -> DeviceArray:
        """A copy of a host array, in the byte order of the host."""
        host = np.asarray(array)
        made = cls(host.shape, host.dtype.newbyteorder("="), memory=memory)
        made.array[...] = host
        return made

    @property
    def array(self) -> Array:
        """A view of the values, which keeps the memory alive; a Fault if the array has been freed."""
        self.is_written = True
        return self.as_is

    @property
    def as_is(self) -> Array:
        """The view, without marking the array as written."""
        if not self.allocation.live:
            raise Fault("use-after-free", f"{self.allocation} has been freed", address=self.address)
        return self.allocation.lasting.view(self.dtype).reshape(self.shape)

    @property
    def live(self) -> bool:
        """Has it not been freed?"""
        return self.allocation.live

    @property
    def address(self) -> int:
        """The generic address of the first element."""
        return self.allocation.start

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The number of bytes."""
        return self.size * self.dtype.itemsize

    def copy_to_host(self, out: Array | None = None) -> Array:
        """The values, in a new array or in `out`."""
        if out is None:
            return self.array.copy()
        out[...] = self.array
        return out

    def copy_from_host(self, array: npt.ArrayLike) -> None:
        """Take new values."""
        self.array[...] = array

    def free(self) -> None:
        """Free the memory; what uses it from now on faults.  Of an array that has been freed nothing is left to free.

        A launch that used it, and that nothing has waited for, gets the finding `freed-in-use`.
        """
        if self.allocation.live:
            DEVICE.freed(self.allocation)
            self.memory.release(self.allocation)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:  # noqa: FBT001
        values = self.copy_to_host()
        return values if dtype is None else values.astype(dtype, copy=bool(copy))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a DeviceArray without dimensions has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        where = f"at {self.address:#x}" if self.live else "freed"
        return f"DeviceArray({list(self.shape)}, {self.dtype.name}, {where})"

    def __del__(self) -> None:
        if hasattr(self, "allocation") and not sys.is_finalizing():  # the memory goes with the process
            self.free()


def _sizes(shape: int | tuple[int, ...]) -> tuple[int, ...]:
    """A shape, as NumPy takes it."""
    try:
        sizes = tuple(map(operator.index, shape if isinstance(shape, tuple | list) else (shape,)))
    except TypeError:
        raise TypeError(f"the shape of a DeviceArray is an integer or a tuple of integers, not {shape!r}") from None
    if any(size < 0 for size in sizes):
        raise ValueError(f"the shape of a DeviceArray has no negative sizes, and {shape!r} was given")
    return sizes


def is_usable(dtype: np.dtype[np.generic]) -> bool:
    """Can a kernel read such values: no Python objects, and in the byte order of the host?

    NumPy's own `isnative` ignores the arrays of a structure.
    """
    return dtype.isnative and not dtype.hasobject and (dtype.kind != "V" or dtype == dtype.newbyteorder("="))


def _on_device(dtype: np.dtype[np.generic]) -> np.dtype[np.generic]:
    """A dtype that kernels can read."""
    if dtype.hasobject:
        raise TypeError("Python objects cannot be on the device")
    if not is_usable(dtype):
        raise TypeError(f"a DeviceArray has the byte order of the host, and {dtype} does not; pass dtype.newbyteorder('=')")
    return dtype

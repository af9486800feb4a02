"""Arrays that live in the memory of the device."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxvm.machine.memory import Memory, default_memory

if TYPE_CHECKING:
    import numpy.typing as npt


class DeviceArray:
    """An array on the device: aligned to 256 bytes, kept from launch to launch, freed with the object.

    Device memory is memory of this process, so `array` is a view and costs nothing; `copy_to_host` copies.
    """

    def __init__(
        self, shape: int | tuple[int, ...], dtype: npt.DTypeLike = np.float32, *, memory: Memory | None = None
    ) -> None:
        self.memory = memory or default_memory()
        self.dtype = np.dtype(dtype)
        if self.dtype.hasobject:
            raise TypeError("Python objects cannot be on the device")
        self.shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self.given = False  # may the host, or a kernel, have given it a value?
        self.allocation = self.memory.allocate(self.nbytes, name="a DeviceArray", detail=f"{self.dtype.name}{list(self.shape)}")

    @classmethod
    def from_host(cls, array: npt.ArrayLike, *, memory: Memory | None = None) -> DeviceArray:
        """A copy of a host array."""
        host = np.asarray(array)
        made = cls(host.shape, host.dtype, memory=memory)
        made.array[...] = host
        return made

    @property
    def array(self) -> npt.NDArray[Any]:
        """A view of the values, valid as long as this object is."""
        self.given = True
        return self.as_is

    @property
    def as_is(self) -> npt.NDArray[Any]:
        """The same view, for who gives no values."""
        return self.allocation.bytes.view(self.dtype).reshape(self.shape)

    @property
    def live(self) -> bool:
        """Has it not been freed?"""
        return self.allocation.live

    @property
    def address(self) -> int:
        """Where it begins: a generic address."""
        return self.allocation.start

    @property
    def size(self) -> int:
        """How many elements it has."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """How many bytes it takes."""
        return self.size * self.dtype.itemsize

    def copy_to_host(self, out: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
        """The values, in a new array or in `out`."""
        if out is None:
            return self.array.copy()
        out[...] = self.array
        return out

    def copy_from_host(self, array: npt.ArrayLike) -> None:
        """Take new values."""
        self.array[...] = array

    def free(self) -> None:
        """Free the memory; a kernel that uses it from now on faults."""
        if self.allocation.live:
            self.memory.release(self.allocation)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:  # noqa: FBT001
        values = self.copy_to_host()
        return values if dtype is None else values.astype(dtype, copy=bool(copy))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a DeviceArray without dimensions has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"DeviceArray({list(self.shape)}, {self.dtype.name}, at {self.address:#x})"

    def __del__(self) -> None:
        if hasattr(self, "allocation"):
            self.free()

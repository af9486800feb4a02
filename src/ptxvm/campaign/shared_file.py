"""A file in memory that the processes of this machine share: the arrays of a launch, and what ranges of its CTAs wrote.

It has no name, and ends with its processes.  A worker maps an array privately, so it reads and copies only the pages that
its range touches.  Behind the arrays the file has an area for the results of each range; the machine only backs what is
written there.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from tempfile import TemporaryFile

import numpy as np

from ptxvm.campaign.frames import Descriptor
from ptxvm.dataclass import dataclass
from ptxvm.machine.backing import LINE, Bytes
from ptxvm.machine.per_lane import Array
from ptxvm.named_tuple import NamedTuple

UNIT = mmap.ALLOCATIONGRANULARITY  # bytes: a mapping begins at a multiple


class Placed(NamedTuple):
    """An array in the file, at an offset in bytes, which is as far beyond a multiple of `backing.LINE` as its address was.

    `writable` is the array that it was made from.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    offset: int
    writable: bool

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize


class Stored(NamedTuple):
    """Bytes of the file: so many from an offset on."""

    offset: int
    size: int


@dataclass(frozen=True)
class SharedFile:
    """The file, by its descriptor, which goes to workers: bytes of arrays, and of the area of each range behind them."""

    descriptor: Descriptor
    arrays: int
    area: int

    def read_only(self, array: Placed) -> Array:
        """An array, which cannot be written."""
        shift = array.offset % UNIT
        pages = mmap.mmap(
            self.descriptor, array.nbytes + shift, mmap.MAP_PRIVATE, mmap.PROT_READ, offset=array.offset - shift
        )  # fmt: skip
        return np.frombuffer(pages, np.uint8)[shift:].view(array.dtype).reshape(array.shape)

    def write(self, number: int, offset: int, values: Bytes) -> Stored:
        """Write bytes at an offset of the area of a range."""
        where = Stored(self.arrays + number * self.area + offset, values.nbytes)
        left, at = np.ascontiguousarray(values).data, where.offset
        while left:
            wrote = os.pwrite(self.descriptor, left, at)
            left, at = left[wrote:], at + wrote
        return where

    def read(self, where: Stored) -> Bytes:
        """Bytes that a range has written."""
        if not where.size:
            return np.empty(0, np.uint8)
        first = where.offset // UNIT * UNIT
        pages = mmap.mmap(self.descriptor, where.offset + where.size - first, mmap.MAP_SHARED, mmap.PROT_READ, offset=first)
        return np.frombuffer(pages, np.uint8)[where.offset - first :]

    def forget(self, where: Stored) -> None:
        """Give the memory of such bytes back; they are not read again."""
        first, end = -(-where.offset // UNIT) * UNIT, (where.offset + where.size) // UNIT * UNIT
        if hasattr(mmap, "MADV_REMOVE") and first < end:
            with mmap.mmap(self.descriptor, end - first, mmap.MAP_SHARED, offset=first) as pages:
                pages.madvise(mmap.MADV_REMOVE)


@contextmanager
def shared(arrays: Sequence[Array], area: int, ranges: int) -> Iterator[tuple[SharedFile, list[Placed]]]:
    """A file with arrays, and an area of some bytes for each range; no array is empty."""
    placed, end = list[Placed](), 0
    for each in arrays:
        shift = each.ctypes.data % LINE
        placed.append(Placed(each.shape, each.dtype, end + shift, each.flags.writeable))
        end += -(-(each.nbytes + shift) // UNIT) * UNIT
    descriptor = _open()
    try:
        os.ftruncate(descriptor, end + area * ranges)
        file = SharedFile(Descriptor(descriptor), end, area)
        for each, where in zip(arrays, placed, strict=True):
            file.write(0, where.offset - end, np.ascontiguousarray(each).reshape(-1).view(np.uint8))
        yield file, placed
    finally:
        os.close(descriptor)


def _open() -> int:
    """A new file without a name."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("ptxvm")
    with TemporaryFile() as file:
        return os.dup(file.fileno())


__all__ = ["Placed", "SharedFile", "Stored", "shared"]

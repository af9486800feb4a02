"""The file that ranges of a grid share: arrays come out as they were, and only the pages that are touched are copied."""

from __future__ import annotations

import mmap
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from ptxvm.campaign.shared_file import Stored, shared
from ptxvm.engine.jit.run.recording import Recording, backed
from ptxvm.machine.backing import LINE

PAGE = mmap.PAGESIZE


def test_arrays_come_out_as_they_were(rng: np.random.Generator) -> None:
    pairs = np.zeros(5, [("a", "u1"), ("b", "<f8")])
    pairs["b"] = rng.random(5)
    arrays = [
        rng.random((40, 50))[::2, ::3],
        pairs,
        np.array(7, np.uint16),
        rng.integers(0, 256, 3 * PAGE + 1).astype(np.uint8),
    ]
    with shared(arrays, 0, 0) as (file, placed):
        for array, where in zip(arrays, placed, strict=True):
            found = file.read_only(where)
            assert (found.dtype, found.shape, where.nbytes) == (array.dtype, array.shape, array.nbytes)
            assert found.tobytes() == array.tobytes()
            assert (found.ctypes.data - array.ctypes.data) % LINE == 0
            with pytest.raises(ValueError, match="read-only"):
                found[...] = 0


def test_the_bytes_of_each_range_are_apart() -> None:
    with shared([np.arange(10)], 2 * PAGE, 3) as (file, (where,)):
        stored = [file.write(k, 5, np.full(k * PAGE, k, np.uint8)) for k in range(3)]
        assert [file.read(each).tolist() for each in stored] == [[k] * (k * PAGE) for k in range(3)]
        assert file.read_only(where).tolist() == list(range(10))


def test_memory_that_is_not_read_again_is_given_back() -> None:
    """Only whole pages of it: what is beside stays."""
    with shared([np.arange(10)], 4 * PAGE, 2) as (file, (where,)):
        first, second = (file.write(k, 5, np.full(4 * PAGE - 5, 1, np.uint8)) for k in range(2))
        before = os.fstat(file.descriptor).st_blocks
        file.forget(first)
        assert os.fstat(file.descriptor).st_blocks < before
        assert file.read(first).tolist() == [1] * (PAGE - 5) + [0] * (3 * PAGE)
        assert file.read(second).tolist() == [1] * (4 * PAGE - 5)
        file.forget(Stored(second.offset, 9))
        assert file.read(second).tolist() == [1] * (4 * PAGE - 5)
        assert file.read_only(where).tolist() == list(range(10))


def test_a_copy_is_private_to_its_recording() -> None:
    array = np.arange(4 * PAGE, dtype=np.uint8)
    with shared([array], 0, 0) as (file, (where,)):
        recordings = [Recording([7, array.nbytes], [0, where.offset % PAGE]) for _ in range(2)]
        assert [(each.array(1).ctypes.data - array.ctypes.data) % LINE for each in recordings] == [0, 0]
        for number, each in enumerate(recordings):
            each.fill(1, file.descriptor, where.offset)
            each.array(1)[PAGE] = number + 1
        assert [each.array(1)[PAGE] for each in recordings] == [1, 2]
        assert recordings[0].array(1)[PAGE + 1 :].tolist() == array[PAGE + 1 :].tolist()
        assert file.read_only(where).tolist() == array.tolist()
    with pytest.raises(OSError, match="Bad file descriptor"):
        recordings[0].fill(1, -1, where.offset)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells which pages it backs")
def test_only_the_pages_that_are_touched_are_copied() -> None:
    """Of 64 MiB, one byte is read and two are written, in three places; around a page that is read the host may map some."""
    size = 1 << 26
    with shared([np.ones(size, np.uint8)], 0, 0) as (file, (where,)):
        recording = Recording([size], [where.offset % PAGE])
        recording.fill(0, file.descriptor, where.offset)
        array = recording.array(0)
        assert backed(array) == []
        array[size // 2] += array[size // 4]
        array[-1] = 5
        found = backed(array)
        assert sum(end - start for start, end in found) <= 4 * 16 * PAGE
        assert all(any(start <= at < end for start, end in found) for at in (size // 4, size // 2, size - 1))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has them")
def test_nothing_is_left_open() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with shared([np.ones(5)], PAGE, 1) as (file, _):
        assert os.fstat(file.descriptor).st_size == 2 * max(PAGE, mmap.ALLOCATIONGRANULARITY)
    assert len(list(Path("/proc/self/fd").iterdir())) == before

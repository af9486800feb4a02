"""Copies in batches, and with attributes (driver API, "Memory Management": `cuMemcpyBatchAsync`, `cuMemcpy3DBatchAsync`)."""

from __future__ import annotations

from ctypes import byref, c_int, c_size_t, c_uint, c_uint64

import numpy as np
import pytest

from ptxvm.libcuda.structures import (
    Array3DDescriptor,
    CopyArray,
    CopyAttributes,
    CopyOperand,
    CopyOperandUnion,
    CopyOperation,
    CopyPointer,
)

INVALID_VALUE, UNSIGNED_INT16 = 1, 2
IN_ORDER, DURING_CALL = 1, 2  # CUmemcpySrcAccessOrder


def test_copies_come_in_batches(cuda):
    made = c_uint64()
    cuda.cuMemAllocManaged(byref(made), c_size_t(16), c_uint(1))
    memory, stream = made.value, cuda.stream()
    data = (c_int * 4).from_address(memory)
    data[:] = [1, 2, 3, 4]
    targets, sources, sizes = (c_uint64 * 2)(memory + 8, memory + 4), (c_uint64 * 2)(memory, memory + 12), (c_size_t * 2)(4, 4)
    reads, begins = (CopyAttributes * 2)(CopyAttributes(IN_ORDER), CopyAttributes(DURING_CALL)), (c_size_t * 2)(0, 1)
    attributes = (reads, begins, c_size_t(2))
    cuda.cuMemcpyBatchAsync_v2(targets, sources, sizes, c_size_t(2), *attributes, stream)
    cuda.cuStreamSynchronize(stream)
    assert list(data) == [1, 4, 1, 4]
    batch = cuda.library.cuMemcpyBatchAsync_v2
    assert batch(targets, sources, sizes, c_size_t(2), *attributes, None) == INVALID_VALUE
    for wrong in ((0, 0), (1, 2), (0, 2)):
        asked = (reads, (c_size_t * 2)(*wrong), c_size_t(2))
        assert batch(targets, sources, sizes, c_size_t(2), *asked, stream) == INVALID_VALUE
    cuda.cuMemcpyWithAttributesAsync(c_uint64(memory), c_uint64(memory + 4), c_size_t(4), reads, stream)
    cuda.cuStreamSynchronize(stream)
    assert data[0] == 4
    cuda.cuMemFree_v2(made)


def element_copy(source, target, extent, read=IN_ORDER):
    return CopyOperation(source, target, *extent, read)


def in_memory(address, length=0, height=0):
    return CopyOperand(1, CopyOperandUnion(pointer=CopyPointer(address, length, height)))


def in_array(array, x, y, z):
    return CopyOperand(2, CopyOperandUnion(array=CopyArray(array.value, x, y, z)))


def test_elements_are_copied_in_batches_of_three_dimensions(cuda):
    """Through an array of 16-bit pairs at an offset, and back to rows that are longer than the copy, as the manual counts."""
    described, stream = Array3DDescriptor(4, 3, 2, UNSIGNED_INT16, 2, 0), cuda.stream()
    array = cuda.handle("cuArray3DCreate_v2", byref(described))
    source = np.arange(2 * 2 * 2, dtype=np.uint32)
    target = np.zeros((2, 3, 5), np.uint32)
    to = element_copy(in_memory(source.ctypes.data), in_array(array, 1, 1, 0), (2, 2, 2))
    back = element_copy(in_array(array, 1, 1, 0), in_memory(target.ctypes.data, 5, 3), (2, 2, 2), DURING_CALL)
    cuda.cuMemcpy3DBatchAsync_v2(c_size_t(1), byref(to), c_uint64(0), stream)
    cuda.cuMemcpy3DWithAttributesAsync(byref(back), c_uint64(0), stream)
    expected = np.zeros_like(target)
    expected[:, :2, :2] = source.reshape(2, 2, 2)
    assert (target == expected).all()


@pytest.mark.parametrize("wrong", [
    CopyOperation(in_memory(64), in_memory(64), 1, 0, 1, IN_ORDER), CopyOperation(in_memory(64), in_memory(64), 1, 1, 1, 0),
    CopyOperation(in_memory(64, 1), in_memory(64), 2, 1, 1, IN_ORDER), CopyOperation(CopyOperand(3), in_memory(64), 1, 1, 1, 1),
])  # fmt: skip
def test_wrong_copies_of_a_batch_are_refused(cuda, wrong):
    assert cuda.library.cuMemcpy3DBatchAsync_v2(c_size_t(1), byref(wrong), c_uint64(0), cuda.stream()) == INVALID_VALUE

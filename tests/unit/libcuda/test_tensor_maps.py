"""Tensor maps: what the driver writes is what `TensorMap` encodes, and what it refuses."""

from __future__ import annotations

import ctypes
from ctypes import c_int32, c_uint32, c_uint64, c_void_p

import pytest

from ptxvm.libcuda.library import install
from ptxvm.machine.tensor_map import L2Promotion, Swizzle, TensorMap, TensorType

INVALID_VALUE = 1
ADDRESS = 0x7000_0000_1000
FLOAT16, SWIZZLE_128, PROMOTION_128 = 6, 3, 2


@pytest.fixture
def cuda():
    library = install().cuda.loaded
    assert library.cuInit(0) == 0
    return library


@pytest.fixture
def room():
    """128 bytes at a multiple of 64, and their address."""
    held = ctypes.create_string_buffer(192)
    at = -(-ctypes.addressof(held) // 64) * 64
    yield at
    del held


def tiled(cuda, at, box=(64, 16), rank=2, type=FLOAT16):
    sizes, strides = (c_uint64 * 2)(128, 40), (c_uint64 * 1)(256)
    numbers = ((c_uint32 * 2)(*box), (c_uint32 * 2)(1, 1))
    how = (0, SWIZZLE_128, PROMOTION_128, 0)
    return cuda.cuTensorMapEncodeTiled(c_void_p(at), type, c_uint32(rank), c_uint64(ADDRESS), sizes, strides, *numbers, *how)


def test_a_map_of_boxes(cuda, room):
    assert tiled(cuda, room) == 0

    def wanted(address):
        how = {"swizzle": Swizzle.B128, "l2_promotion": L2Promotion.B128}
        return TensorMap.tiled(TensorType.FLOAT16, address, (64, 16), sizes=(128, 40), strides=(256,), **how)

    assert ctypes.string_at(room, 128) == wanted(ADDRESS)
    assert cuda.cuTensorMapReplaceAddress(c_void_p(room), c_uint64(ADDRESS + 64)) == 0
    assert ctypes.string_at(room, 128) == wanted(ADDRESS + 64)


def test_a_map_is_written_where_clients_keep_it(cuda, room):
    """cuda.core's descriptors lie at multiples of 16, and its own tests pass on GPUs."""
    assert tiled(cuda, room) == 0
    whole = ctypes.string_at(room, 128)
    assert tiled(cuda, room + 16) == 0
    assert ctypes.string_at(room + 16, 128) == whole


def test_what_is_refused(cuda, room, caplog):
    """By its code; a traceback in the log is for what ptxvm itself does wrong."""
    assert tiled(cuda, room, box=(65, 16)) == INVALID_VALUE  # 130 bytes of a row
    assert tiled(cuda, room, rank=6) == INVALID_VALUE
    assert tiled(cuda, room, type=99) == INVALID_VALUE
    assert cuda.cuTensorMapReplaceAddress(c_void_p(room), c_uint64(ADDRESS)) == INVALID_VALUE  # it is no map
    assert [record.message for record in caplog.records if record.exc_info] == []


def test_a_map_of_columns(cuda, room):
    sizes, strides = (c_uint64 * 4)(64, 20, 10, 2), (c_uint64 * 3)(128, 2560, 25600)
    corners = ((c_int32 * 2)(-1, -1), (c_int32 * 2)(0, 1))
    made = cuda.cuTensorMapEncodeIm2col(
        c_void_p(room), FLOAT16, c_uint32(4), c_uint64(ADDRESS), sizes, strides, *corners, c_uint32(32), c_uint32(8),
        (c_uint32 * 4)(1, 1, 1, 1), 0, 0, 0, 0,
    )  # fmt: skip
    wanted = TensorMap.im2col(
        TensorType.FLOAT16, ADDRESS, (-1, -1), (0, 1), 32, 8, sizes=(64, 20, 10, 2), strides=(128, 2560, 25600)
    )
    assert (made, ctypes.string_at(room, 128)) == (0, wanted)

"""Tensor maps: 128 bytes that describe a tensor to copies of boxes (driver API, "Tensor Map Object Management").

The API asks for an address that is a multiple of 64.  That is not checked: cuda.core keeps maps in objects of Python, at
multiples of 16, and counts on it.  Kernels get a copy in a parameter, which is aligned.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypedDict

from ptxvm.driver.results import DriverError, Result
from ptxvm.isa.tensor_map import FIELDS, MARK, SIZE
from ptxvm.libcuda.c_values import array_at, bytes_from, put_bytes, u64s
from ptxvm.libcuda.session import function
from ptxvm.machine.tensor_map import Interleave, L2Promotion, OobFill, Swizzle, TensorMap, TensorType

WIDE_128 = 1  # CUtensorMapIm2ColWideMode


def numbers(address: int, count: int, type: type[ctypes.c_uint32 | ctypes.c_int32] = ctypes.c_uint32) -> list[int]:
    """Numbers of 32 bits that a client lists."""
    if not address:
        raise DriverError(Result.INVALID_VALUE, "a pointer is null")
    return list(array_at(type, address, count))


def check_rank(rank: int) -> None:
    """DriverError for an invalid rank; checked before lists of that length are read."""
    if not 1 <= rank <= 5:
        raise DriverError(Result.INVALID_VALUE, f"a tensor has 1 to 5 dimensions, not {rank}")


@contextmanager
def arguments_of_map() -> Iterator[None]:
    """INVALID_VALUE for what `TensorMap` and its enumerations refuse, with their words."""
    try:
        yield
    except ValueError as wrong:
        raise DriverError(Result.INVALID_VALUE, str(wrong)) from None


class MapFields(TypedDict):
    """The fields that all kinds of maps have."""

    sizes: list[int]
    strides: list[int]
    element_strides: list[int]
    interleave: Interleave
    swizzle: Swizzle
    l2_promotion: L2Promotion
    fill: OobFill


def described(rank: int, sizes: int, strides: int, steps: int, *modes: int) -> MapFields:
    """The arguments of all encoders: lists by their addresses, then interleave, swizzle, promotion and fill."""
    check_rank(rank)
    interleave, swizzle, promotion, fill = modes
    return {
        "sizes": u64s(sizes, rank),
        "strides": u64s(strides, rank - 1),
        "element_strides": numbers(steps, rank),
        "interleave": Interleave(interleave),
        "swizzle": Swizzle(swizzle),
        "l2_promotion": L2Promotion(promotion),
        "fill": OobFill(fill),
    }


@function("cuTensorMapEncodeTiled")
@arguments_of_map()
def tiled(
    out: int, type: int, rank: int, address: int, sizes: int, strides: int, box: int, steps: int,
    interleave: int, swizzle: int, promotion: int, fill: int,
) -> None:  # fmt: skip
    """A map for boxes of a tensor."""
    how = described(rank, sizes, strides, steps, interleave, swizzle, promotion, fill)
    put_bytes(out, bytes(TensorMap.tiled(TensorType(type), address, numbers(box, rank), **how)))


@function("cuTensorMapEncodeIm2col")
@arguments_of_map()
def im2col(
    out: int, type: int, rank: int, address: int, sizes: int, strides: int, lower: int, upper: int, channels: int, pixels: int,
    steps: int, interleave: int, swizzle: int, promotion: int, fill: int,
) -> None:  # fmt: skip
    """A map for the columns of images."""
    how = described(rank, sizes, strides, steps, interleave, swizzle, promotion, fill)
    first, last = (numbers(each, max(rank - 2, 0), ctypes.c_int32) for each in (lower, upper))
    put_bytes(out, bytes(TensorMap.im2col(TensorType(type), address, first, last, channels, pixels, **how)))


@function("cuTensorMapEncodeIm2colWide")
@arguments_of_map()
def im2col_wide(
    out: int, type: int, rank: int, address: int, sizes: int, strides: int, lower: int, upper: int, channels: int, pixels: int,
    steps: int, interleave: int, mode: int, swizzle: int, promotion: int, fill: int,
) -> None:  # fmt: skip
    """A map for rows of images along W."""
    how = described(rank, sizes, strides, steps, interleave, swizzle, promotion, fill)
    wide = mode == WIDE_128
    put_bytes(
        out, bytes(TensorMap.im2col_wide(TensorType(type), address, lower, upper, channels, pixels, wide_128=wide, **how))
    )


@function("cuTensorMapReplaceAddress")
def replace_address(out: int, address: int) -> None:
    """Let a map describe a tensor at another address."""
    if bytes_from(out, SIZE)[: len(MARK)] != MARK or address % 16:
        raise DriverError(Result.INVALID_VALUE, f"{out:#x} is no tensor map, or {address:#x} is no multiple of 16")
    put_bytes(out + FIELDS["global_address"].offset, address.to_bytes(8, "little"))

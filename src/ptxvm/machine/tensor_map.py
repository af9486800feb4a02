"""Tensor maps: the encoder, with the arguments and the rules of cuTensorMapEncodeTiled, Im2col and Im2colWide.

The rules are also held against the answers of an H200's driver to 4,000 sets of arguments (CUDA 13.0).  A tensor map is 128
bytes, which a kernel takes as a parameter.  Their layout is ptxvm's own (`isa.tensor_map`).
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

import numpy as np

from ptxvm.isa.tensor_map import ELEMENTS, FIELDS, MARK, SIZE, Element
from ptxvm.machine.device_array import DeviceArray
from ptxvm.named_tuple import NamedTuple


class TensorType(enum.IntEnum):
    """CUtensorMapDataType: the type of the elements."""

    UINT8 = 0
    UINT16 = 1
    UINT32 = 2
    INT32 = 3
    UINT64 = 4
    INT64 = 5
    FLOAT16 = 6
    FLOAT32 = 7
    FLOAT64 = 8
    BFLOAT16 = 9
    FLOAT32_FTZ = 10
    TFLOAT32 = 11
    TFLOAT32_FTZ = 12
    U4_ALIGN8B = 13
    U4_ALIGN16B = 14
    U6_ALIGN16B = 15


class Interleave(enum.IntEnum):
    """CUtensorMapInterleave: slices of channels."""

    NONE = 0
    B16 = 1
    B32 = 2


class Swizzle(enum.IntEnum):
    """CUtensorMapSwizzle: the pattern in shared memory."""

    NONE = 0
    B32 = 1
    B64 = 2
    B128 = 3
    B128_ATOM_32B = 4
    B128_ATOM_32B_FLIP_8B = 5
    B128_ATOM_64B = 6
    B96 = 7

    @property
    def span(self) -> int:
        """The most bytes of the inner dimension of a box; 0 where there is no limit."""
        return (0, 32, 64, 128, 128, 128, 128, 96)[self]


class L2Promotion(enum.IntEnum):
    """CUtensorMapL2promotion: a hint."""

    NONE = 0
    B64 = 1
    B128 = 2
    B256 = 3


class OobFill(enum.IntEnum):
    """CUtensorMapFloatOOBfill: what stands for elements outside the tensor."""

    ZERO = 0
    NAN = 1


class Mode(enum.IntEnum):
    """The kind of a tensor map."""

    TILED = 0
    IM2COL = 1
    IM2COL_W = 2
    IM2COL_W_128 = 3


PTX_TYPES = dict(zip(TensorType, (0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 11, 12, 13, 14, 15), strict=True))
SWIZZLES = dict(zip(Swizzle, ((0, 0), (1, 0), (2, 0), (3, 0), (3, 1), (3, 2), (3, 3), (4, 0)), strict=True))
FLOATS = frozenset(range(6, 13))  # types, by their numbers in PTX
PADDED = (TensorType.U4_ALIGN16B, TensorType.U6_ALIGN16B)
CORNERS = {3: 1 << 15, 4: 1 << 7, 5: 1 << 4}  # of the bounding box, by the rank


class Tensor(NamedTuple):
    """A tensor in global memory: its first byte, its sizes and the strides of its dimensions in bytes, innermost first.

    `owner` is the array that it is.
    """

    address: int
    sizes: Sequence[int]
    strides: Sequence[int]
    owner: np.ndarray | DeviceArray | int

    @classmethod
    def of(cls, array: np.ndarray | DeviceArray | int, sizes: Sequence[int] | None, strides: Sequence[int] | None) -> Tensor:
        """Of an array, or of an address with sizes and strides."""
        if isinstance(array, np.ndarray):
            known = array.ctypes.data, array.shape[::-1], array.strides[::-1][1:]
        elif isinstance(array, DeviceArray):
            steps = np.cumprod([array.dtype.itemsize, *array.shape[:0:-1]]).tolist()
            known = array.address, array.shape[::-1], tuple(steps[1:])
        else:
            known = int(array), (), ()
        size, step = known[1] if sizes is None else sizes, known[2] if strides is None else strides
        return cls(known[0], tuple(size), tuple(step), array)


class TensorMap(bytes):
    """A tensor map, 128 bytes: what a kernel takes as a parameter of `.b8 [128]`.

    Dimensions are in the order of CUDA, the innermost first.  `tensor` is the array that it was made for, which lives as long.
    """

    tensor: np.ndarray | DeviceArray | int | None = None

    def __repr__(self) -> str:
        """Its fields in words."""
        from ptxvm.machine.tensor_map_fields import fields  # noqa: PLC0415 - only where a map is shown

        return f"<TensorMap {'; '.join(f'{name} {held}' for name, held in fields(self))}>"

    __str__ = __repr__

    def __reduce__(self) -> tuple[type[TensorMap], tuple[bytes]]:
        """As bytes alone: in another process it names the same addresses, and no array."""
        return TensorMap, (bytes(self),)

    @classmethod
    def tiled(
        cls, type: TensorType, tensor: np.ndarray | DeviceArray | int, box: Sequence[int], *,
        sizes: Sequence[int] | None = None, strides: Sequence[int] | None = None,
        element_strides: Sequence[int] | None = None, interleave: Interleave = Interleave.NONE,
        swizzle: Swizzle = Swizzle.NONE, l2_promotion: L2Promotion = L2Promotion.NONE, fill: OobFill = OobFill.ZERO,
    ) -> TensorMap:  # fmt: skip
        """A map for boxes of a tensor: an array, or an address with `sizes` and `strides` (cuTensorMapEncodeTiled).

        ValueError where the driver refuses the arguments.
        """
        source = Tensor.of(tensor, sizes, strides)
        rank = len(source.sizes)
        steps = _steps(element_strides, rank)
        check(rank == len(box), f"the box has {len(box)} sizes, and the tensor {rank}")
        check(all(1 <= size <= 256 for size in box), f"the sizes of a box are 1 to 256, not {tuple(box)}")
        _check_tensor(type, source, interleave, 1 if interleave is Interleave.NONE else 3)
        _check_inner(type, box[0], interleave, swizzle, fill)
        return cls._encoded(Mode.TILED, type, source, steps, (interleave, swizzle, l2_promotion, fill), box_dim=tuple(box))

    @classmethod
    def im2col(  # noqa: PLR0913 - the arguments of cuTensorMapEncodeIm2col
        cls, type: TensorType, tensor: np.ndarray | DeviceArray | int, lower: Sequence[int], upper: Sequence[int],
        channels: int, pixels: int, *,
        sizes: Sequence[int] | None = None, strides: Sequence[int] | None = None,
        element_strides: Sequence[int] | None = None, interleave: Interleave = Interleave.NONE,
        swizzle: Swizzle = Swizzle.NONE, l2_promotion: L2Promotion = L2Promotion.NONE, fill: OobFill = OobFill.ZERO,
    ) -> TensorMap:  # fmt: skip
        """A map for the columns of images (cuTensorMapEncodeIm2col): corners of the box of pixels in W, H, D order."""
        source = Tensor.of(tensor, sizes, strides)
        rank = len(source.sizes)
        _check_tensor(type, source, interleave, 3)
        for corner in (lower, upper):
            check(len(corner) == rank - 2, f"a corner has {rank - 2} coordinates, not {len(corner)}")
            limit = CORNERS[rank]
            check(all(-limit <= each < limit for each in corner), f"the coordinates of a corner are {-limit} to {limit - 1}")
        pixels_there = [size + high - low for size, low, high in zip(source.sizes[1:], lower, upper, strict=False)]
        check(min(pixels_there) > 0, f"the box of pixels is empty: it has {tuple(pixels_there)}")
        _check_pixels(type, channels, pixels, interleave, swizzle, fill)
        return cls._encoded(
            Mode.IM2COL, type, source, _steps(element_strides, rank), (interleave, swizzle, l2_promotion, fill),
            channels_per_pixel=(channels,), pixels_per_column=(pixels,), lower_corner=tuple(lower), upper_corner=tuple(upper),
        )  # fmt: skip

    @classmethod
    def im2col_wide(  # noqa: PLR0913 - the arguments of cuTensorMapEncodeIm2colWide
        cls, type: TensorType, tensor: np.ndarray | DeviceArray | int, lower: int, upper: int, channels: int, pixels: int, *,
        wide_128: bool = False, sizes: Sequence[int] | None = None, strides: Sequence[int] | None = None,
        element_strides: Sequence[int] | None = None, interleave: Interleave = Interleave.NONE,
        swizzle: Swizzle = Swizzle.NONE, l2_promotion: L2Promotion = L2Promotion.NONE, fill: OobFill = OobFill.ZERO,
    ) -> TensorMap:  # fmt: skip
        """A map for rows of images along W (cuTensorMapEncodeIm2colWide); `wide_128` is for `.im2col::w::128`."""
        source = Tensor.of(tensor, sizes, strides)
        check(interleave is Interleave.NONE, "rows along W have no interleaved layout")
        _check_tensor(type, source, interleave, 3)
        limit = CORNERS[3]
        check(all(-limit <= each < limit for each in (lower, upper)), f"corners are {-limit} to {limit - 1}")
        _check_pixels(type, channels, pixels, interleave, swizzle, fill)
        return cls._encoded(
            Mode.IM2COL_W_128 if wide_128 else Mode.IM2COL_W, type, source, _steps(element_strides, len(source.sizes)),
            (interleave, swizzle, l2_promotion, fill),
            channels_per_pixel=(channels,), pixels_per_column=(pixels,), lower_corner=(lower,), upper_corner=(upper,),
        )  # fmt: skip

    @classmethod
    def _encoded(
        cls, mode: Mode, type: TensorType, tensor: Tensor, steps: Sequence[int],
        how: tuple[Interleave, Swizzle, L2Promotion, OobFill], **more: Sequence[int],
    ) -> TensorMap:  # fmt: skip
        interleave, swizzle, l2_promotion, fill = how
        pattern, atomicity = SWIZZLES[swizzle]
        values: dict[str, Sequence[int]] = {
            "mode": (mode,), "rank": (len(tensor.sizes) - 1,), "elemtype": (PTX_TYPES[type],),
            "interleave_layout": (interleave,), "swizzle_mode": (pattern,), "swizzle_atomicity": (atomicity,),
            "fill_mode": (fill,), "l2_promotion": (l2_promotion,), "global_address": (tensor.address,),
            "global_dim": tensor.sizes, "global_stride": tensor.strides, "element_stride": steps, **more,
        }  # fmt: skip
        data = bytearray(SIZE)
        data[: len(MARK)] = MARK
        for name, numbers in values.items():
            field = FIELDS[name]
            for n, number in enumerate(numbers):
                size = field.type.bytes
                data[field.at(n) : field.at(n) + size] = (number % (1 << 8 * size)).to_bytes(size, "little")
        made = cls(data)
        made.tensor = tensor.owner
        return made


def check(holds: bool, said: str) -> None:  # noqa: FBT001 - a condition
    """Raise ValueError where a rule does not hold."""
    if not holds:
        raise ValueError(said)


def element(type: TensorType) -> Element:
    """The type of elements as the machine knows it."""
    return ELEMENTS[PTX_TYPES[type]]


def _steps(strides: Sequence[int] | None, rank: int) -> Sequence[int]:
    steps = tuple(strides) if strides is not None else (1,) * rank
    check(len(steps) == rank, f"there are {len(steps)} element strides, and {rank} dimensions")
    check(all(1 <= step <= 8 for step in steps), f"element strides are 1 to 8, not {steps}")
    return steps


def _check_tensor(type: TensorType, tensor: Tensor, interleave: Interleave, least: int) -> None:
    """The rules about the tensor itself."""
    rank = len(tensor.sizes)
    check(least <= rank <= 5, f"the tensor has {rank} dimensions, and {least} to 5 are possible")
    grain = 32 if interleave is Interleave.B32 or type in PADDED else 16
    check(tensor.address % grain == 0, f"the address {tensor.address:#x} of the tensor is no multiple of {grain}")
    check(len(tensor.strides) == rank - 1, f"there are {len(tensor.strides)} strides, and {rank - 1} are needed")
    check(all(1 <= size <= 1 << 32 for size in tensor.sizes), f"the sizes {tuple(tensor.sizes)} are not all 1 to 2**32")
    check(
        all(stride % grain == 0 and 0 <= stride < 1 << 40 for stride in tensor.strides),
        f"strides are multiples of {grain} below 2**40, not {tuple(tensor.strides)}",
    )
    multiple = 128 if type in PADDED else 2 if type is TensorType.U4_ALIGN8B else 1
    check(tensor.sizes[0] % multiple == 0, f"the innermost size {tensor.sizes[0]} is no multiple of {multiple}")


def _check_inner(type: TensorType, inner: int, interleave: Interleave, swizzle: Swizzle, fill: OobFill) -> None:
    """The rules about the innermost dimension of a box, and about what is filled in."""
    each = element(type)
    check(type not in PADDED or inner == 128, f"the innermost size of a box of this type is 128, not {inner}")
    check(fill is OobFill.ZERO or PTX_TYPES[type] in FLOATS, f"{type.name} has no NaN to fill in")
    size = inner * each.padded // each.count
    check(size % 16 == 0, f"the innermost size of a box is {size} bytes, which is no multiple of 16")
    check(
        interleave is not Interleave.NONE or not swizzle.span or size <= swizzle.span,
        f"the innermost size of a box is {size} bytes, above the {swizzle.span} of the swizzle",
    )


def _check_pixels(
    type: TensorType, channels: int, pixels: int, interleave: Interleave, swizzle: Swizzle, fill: OobFill
) -> None:
    """The rules about the columns of images."""
    check(1 <= channels <= 256, f"a pixel has 1 to 256 channels, not {channels}")
    check(1 <= pixels <= 1024, f"a column has 1 to 1024 pixels, not {pixels}")
    _check_inner(type, channels, interleave, swizzle, fill)


__all__ = ["Interleave", "L2Promotion", "OobFill", "Swizzle", "TensorMap", "TensorType"]

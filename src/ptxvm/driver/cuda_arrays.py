"""CUDA arrays, and the textures and surfaces of arrays and of plain memory (driver API, "Texture Object Management")."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from functools import cached_property
from math import inf
from typing import Literal, cast

import numpy as np
import numpy.typing as npt

from ptxvm.dataclass import dataclass
from ptxvm.driver.attributes import Attribute
from ptxvm.driver.device import Device
from ptxvm.driver.memory import Rectangle
from ptxvm.driver.results import DriverError, Result
from ptxvm.machine.backing import bytes_at
from ptxvm.machine.texture import Address, Surface, Texture

A = Attribute
LAYERED, SURFACE, CUBEMAP, GATHER = 1, 2, 4, 8  # flags of arrays
MAPPED_LATER = {0x40: "sparse arrays", 0x80: "arrays whose memory is mapped later"}  # flags that no device here supports
FACES = 6


class Format(IntEnum):
    """The numbers of a channel (`CUarray_format`).  Normalised formats say how many channels there are."""

    UNSIGNED_INT8 = 0x01
    UNSIGNED_INT16 = 0x02
    UNSIGNED_INT32 = 0x03
    SIGNED_INT8 = 0x08
    SIGNED_INT16 = 0x09
    SIGNED_INT32 = 0x0A
    HALF = 0x10
    FLOAT = 0x20
    UNORM_INT8X1 = 0xC0
    UNORM_INT8X2 = 0xC1
    UNORM_INT8X4 = 0xC2
    UNORM_INT16X1 = 0xC3
    UNORM_INT16X2 = 0xC4
    UNORM_INT16X4 = 0xC5
    SNORM_INT8X1 = 0xC6
    SNORM_INT8X2 = 0xC7
    SNORM_INT8X4 = 0xC8
    SNORM_INT16X1 = 0xC9
    SNORM_INT16X2 = 0xCA
    SNORM_INT16X4 = 0xCB

    @property
    def normalised(self) -> tuple[str, int] | None:
        """The dtype of a normalised format and the number of its channels; None for other formats."""
        group, number = divmod(self - Format.UNORM_INT8X1, 3)
        return None if group < 0 else (("u1", "u2", "i1", "i2")[group], (1, 2, 4)[number])

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The NumPy dtype of a channel."""
        return np.dtype(self.normalised[0] if self.normalised is not None else DTYPES[self])


DTYPES = {
    Format.UNSIGNED_INT8: "u1", Format.UNSIGNED_INT16: "u2", Format.UNSIGNED_INT32: "u4", Format.SIGNED_INT8: "i1",
    Format.SIGNED_INT16: "i2", Format.SIGNED_INT32: "i4", Format.HALF: "f2", Format.FLOAT: "f4",
}  # fmt: skip


OTHER_FORMATS = frozenset({*range(0x50, 0x5F), *range(0x91, 0xA0), *range(0xA1, 0xAA), *range(0xB0, 0xB6)})
"""Formats of packed and of several planes, and of compressed blocks (`CUarray_format`)."""


class AddressMode(IntEnum):
    """How a texture treats coordinates outside (`CUaddress_mode`)."""

    WRAP = 0
    CLAMP = 1
    MIRROR = 2
    BORDER = 3


def format_of(number: int) -> Format:
    """A format by its number; DriverError for a number of no format, and for a format without textures here."""
    try:
        return Format(number)
    except ValueError:
        pass
    if number not in OTHER_FORMATS:
        raise DriverError(Result.INVALID_VALUE, f"there is no format {number:#x} of arrays")
    raise DriverError(Result.NOT_SUPPORTED, f"arrays of the format {number:#x} are not supported")


@dataclass(frozen=True)
class Elements:
    """The elements of an array: channels of a format."""

    format: Format
    channels: int

    def __post_init__(self) -> None:
        if self.channels not in (1, 2, 4):
            raise DriverError(Result.INVALID_VALUE, f"an element has 1, 2 or 4 channels, not {self.channels}")
        if (normalised := self.format.normalised) is not None and self.channels != normalised[1]:
            raise DriverError(Result.INVALID_VALUE, f"{self.format.name} has no {self.channels} channels")

    @property
    def size(self) -> int:
        """The bytes of an element."""
        return self.format.dtype.itemsize * self.channels

    def as_floats(self, sampling: Sampling) -> bool:
        """Are they integers that a texture reads as floats?  Those of normalised formats always are, of 32 bits never."""
        numbers = self.format.dtype
        if self.format.normalised is not None:
            return True
        return numbers.kind in "iu" and numbers.itemsize < 4 and not sampling.as_is

    def shape(self, *directions: int) -> tuple[int, ...]:
        """The shape of an array of such elements."""
        return (*directions, self.channels) if self.channels > 1 else directions


@dataclass(eq=False)
class CudaArray:
    """Elements in one to three directions; `height` and `depth` are 0 for directions that it does not have.

    The depth of a layered array is its layers, that of a cube map its faces.
    """

    width: int
    height: int
    depth: int
    elements: Elements
    flags: int = 0

    def __post_init__(self) -> None:
        if wanted := [name for flag, name in MAPPED_LATER.items() if self.flags & flag]:
            raise DriverError(Result.NOT_SUPPORTED, f"there are no {wanted[0]}, as the attributes of the device say")
        faces = self.depth % FACES if self.flags & LAYERED else self.depth - FACES
        if not self.width or (self.flags & LAYERED and not self.depth):
            raise DriverError(Result.INVALID_VALUE, f"there is no array of {self.width} x {self.height} x {self.depth}")
        if self.flags & CUBEMAP and (faces or self.width != self.height):
            raise DriverError(Result.INVALID_VALUE, "a cube map has six faces for each layer, and each is a square")

    @cached_property
    def data(self) -> npt.NDArray[np.generic]:
        """The elements: depth, height, width, and channels where there are several."""
        directions = [each for each in (self.depth, self.height) if each]
        return np.zeros(self.elements.shape(*directions, self.width), self.elements.format.dtype)

    def viewed(self, elements: Elements, layers: slice = slice(None)) -> CudaArray:
        """The same memory with other elements of the same size, or some of the layers; DriverError for another size."""
        if elements.size != self.elements.size:
            said = f"elements of {self.elements.size} bytes are not viewed as some of {elements.size}"
            raise DriverError(Result.INVALID_VALUE, said)
        chosen = self.data[layers] if self.layered else self.data
        view = CudaArray(self.width, self.height, len(chosen) if self.layered else self.depth, elements, self.flags)
        view.data = chosen.view(elements.format.dtype).reshape(elements.shape(*chosen.shape[: view.dimensions]))
        return view

    @property
    def size(self) -> int:
        """The bytes of its elements."""
        return self.width * max(self.height, 1) * max(self.depth, 1) * self.elements.size

    @property
    def dimensions(self) -> int:
        """The directions that it has."""
        return 1 + bool(self.height) + bool(self.depth)

    @property
    def rows(self) -> Rectangle:
        """The rows as bytes."""
        return Rectangle(self.data.ctypes.data, self.width * self.elements.size, max(self.height, 1))

    @property
    def layered(self) -> bool:
        """Does the array have layers?"""
        return bool(self.flags & LAYERED)

    @property
    def cubemap(self) -> bool:
        """Are the layers the faces of cubes?"""
        return bool(self.flags & CUBEMAP)


Limits = tuple[Attribute | int, ...]
"""The largest width, height and depth, by the attributes of a device that tell them, or as numbers."""
LIMITS: dict[str, tuple[Limits, Limits]] = {  # cuArray3DCreate: of each kind, then of those that are made for surfaces
    "1D": ((A.MAXIMUM_TEXTURE1D_WIDTH, 0, 0), (A.MAXIMUM_SURFACE1D_WIDTH, 0, 0)),
    "2D": (
        (A.MAXIMUM_TEXTURE2D_WIDTH, A.MAXIMUM_TEXTURE2D_HEIGHT, 0),
        (A.MAXIMUM_SURFACE2D_WIDTH, A.MAXIMUM_SURFACE2D_HEIGHT, 0),
    ),
    "3D": (
        (A.MAXIMUM_TEXTURE3D_WIDTH, A.MAXIMUM_TEXTURE3D_HEIGHT, A.MAXIMUM_TEXTURE3D_DEPTH),
        (A.MAXIMUM_SURFACE3D_WIDTH, A.MAXIMUM_SURFACE3D_HEIGHT, A.MAXIMUM_SURFACE3D_DEPTH),
    ),
    "layered 1D": (
        (A.MAXIMUM_TEXTURE1D_LAYERED_WIDTH, 0, A.MAXIMUM_TEXTURE1D_LAYERED_LAYERS),
        (A.MAXIMUM_SURFACE1D_LAYERED_WIDTH, 0, A.MAXIMUM_SURFACE1D_LAYERED_LAYERS),
    ),
    "layered 2D": (
        (A.MAXIMUM_TEXTURE2D_LAYERED_WIDTH, A.MAXIMUM_TEXTURE2D_LAYERED_HEIGHT, A.MAXIMUM_TEXTURE2D_LAYERED_LAYERS),
        (A.MAXIMUM_SURFACE2D_LAYERED_WIDTH, A.MAXIMUM_SURFACE2D_LAYERED_HEIGHT, A.MAXIMUM_SURFACE2D_LAYERED_LAYERS),
    ),
    "cubemap": (
        (A.MAXIMUM_TEXTURECUBEMAP_WIDTH, A.MAXIMUM_TEXTURECUBEMAP_WIDTH, FACES),
        (A.MAXIMUM_SURFACECUBEMAP_WIDTH, A.MAXIMUM_SURFACECUBEMAP_WIDTH, FACES),
    ),
    "layered cubemap": (
        (
            A.MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH,
            A.MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH,
            A.MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS,
        ),
        (
            A.MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH,
            A.MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH,
            A.MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS,
        ),
    ),
}
GATHER_LIMITS: Limits = (A.MAXIMUM_TEXTURE2D_GATHER_WIDTH, A.MAXIMUM_TEXTURE2D_GATHER_HEIGHT, 0)


def fitting(array: CudaArray, device: Device) -> CudaArray:
    """An array that its device has room for; DriverError for one beyond the device's limits, or its memory."""
    kind = f"{'layered ' * array.layered}{'cubemap' if array.cubemap else f'{array.dimensions - array.layered}D'}"
    of_textures, of_surfaces = LIMITS[kind]
    limits = [of_textures, *[of_surfaces] * bool(array.flags & SURFACE), *[GATHER_LIMITS] * bool(array.flags & GATHER)]
    extent = (array.width, array.height, array.depth)
    for limit in limits:
        most = tuple(device.attribute(each) if isinstance(each, Attribute) else each for each in limit)
        if any(size > room for size, room in zip(extent, most, strict=True)):
            said = f"a {kind} array of {extent} elements is beyond the limits of the device, {most}"
            raise DriverError(Result.INVALID_VALUE, said)
    if array.size > device.memory:
        raise DriverError(Result.OUT_OF_MEMORY, f"the array has {array.size} bytes, and the device {device.memory}")
    return array


class Mipmapped:
    """An array and smaller copies of it, each half as large as the one before."""

    @classmethod
    def of(cls, levels: Sequence[CudaArray]) -> Mipmapped:
        """Levels that there are."""
        made = cls.__new__(cls)
        made.levels = list(levels)
        return made

    def __init__(self, first: CudaArray, levels: int) -> None:
        most = max(first.width, first.height, 0 if first.layered else first.depth).bit_length()
        self.levels = [first]
        while len(self.levels) < min(levels, most):
            last = self.levels[-1]
            width, height = max(1, last.width // 2), last.height and max(1, last.height // 2)
            depth = last.depth if first.layered or first.cubemap else last.depth and max(1, last.depth // 2)
            self.levels.append(CudaArray(width, height, depth, first.elements, first.flags))

    @property
    def size(self) -> int:
        """The bytes of all levels."""
        return sum(each.size for each in self.levels)

    def level(self, number: int) -> CudaArray:
        """The array of a level; DriverError beyond the last one."""
        if not 0 <= number < len(self.levels):
            raise DriverError(Result.INVALID_VALUE, f"the array has {len(self.levels)} levels")
        return self.levels[number]


@dataclass(frozen=True)
class TextureView:
    """How a texture sees an array: other elements, or None for its own; some of its levels and layers, first and last."""

    elements: Elements | None
    levels: tuple[int, int] = (0, 0)
    layers: tuple[int, int] = (0, 0)

    def of(self, resource: CudaArray | Mipmapped) -> CudaArray | Mipmapped:
        """What is seen; DriverError for levels or layers that there are not."""
        first, last = self.levels
        if isinstance(resource, Mipmapped):
            if not first <= last < len(resource.levels):
                raise DriverError(Result.INVALID_VALUE, f"there are {len(resource.levels)} levels, not {first} to {last}")
            return Mipmapped.of([self._array(each) for each in resource.levels[first : last + 1]])
        return self._array(resource)

    def _array(self, array: CudaArray) -> CudaArray:
        first, last = self.layers
        if array.layered and not first <= last < array.depth:
            raise DriverError(Result.INVALID_VALUE, f"there are {array.depth} layers, not {first} to {last}")
        return array.viewed(self.elements or array.elements, slice(first, last + 1))


@dataclass(frozen=True)
class Linear:
    """Plain memory as elements, in rows if there is a height."""

    address: int
    elements: Elements
    width: int
    height: int = 0
    pitch: int = 0

    @property
    def data(self) -> npt.NDArray[np.generic]:
        """The elements, in place."""
        pitch = self.pitch or self.width * self.elements.size
        held = bytes_at(self.address, pitch * max(self.height, 1))
        dtype, channels = self.elements.format.dtype, self.elements.channels
        shape = self.elements.shape(*([self.height] if self.height else []), self.width)
        strides = (*([pitch] if self.height else []), dtype.itemsize * channels, *([dtype.itemsize] if channels > 1 else []))
        return np.ndarray(shape, dtype, held.data, strides=strides)


@dataclass(frozen=True)
class Sampling:
    """The sampling of a texture, in the driver's numbers."""

    address: Sequence[int] = (AddressMode.CLAMP,) * 3
    linear: bool = False
    linear_mipmaps: bool = False
    as_is: bool = False  # integers stay integers
    normalized: bool = False
    srgb: bool = False
    border: Sequence[float] = (0, 0, 0, 0)
    mipmap_bias: float = 0.0
    mipmap_range: tuple[float, float] = (0.0, inf)


def texture(resource: CudaArray | Mipmapped | Linear, sampling: Sampling) -> Texture:
    """A texture; DriverError for arguments that make none.

    Coordinates that are not normalized cannot wrap: they are clamped, as hardware does.  Reads outside plain memory give 0.
    """
    first = resource.levels[0] if isinstance(resource, Mipmapped) else resource
    if interpolates_integers(resource, sampling):
        raise DriverError(Result.INVALID_VALUE, "integers that stay integers are not interpolated")
    if isinstance(resource, Mipmapped) and not sampling.normalized:
        raise DriverError(Result.INVALID_VALUE, "the coordinates of an array with smaller copies are normalized")
    data = first.data
    as_floats = first.elements.as_floats(sampling)
    modes = [AddressMode(each).name.lower() for each in sampling.address]
    if not sampling.normalized:
        modes = [mode if mode in ("clamp", "border") else "clamp" for mode in modes]
    if isinstance(first, Linear) and not first.height:
        modes = ["border"] * 3
    more = [level.data for level in resource.levels[1:]] if isinstance(resource, Mipmapped) else []
    try:
        return Texture(
            data, filter_name(linear=sampling.linear), cast("list[Address]", modes), normalized=sampling.normalized,
            read="normalized_float" if as_floats else "element", srgb=sampling.srgb, border=sampling.border, mipmaps=more,
            mipmap_filter=filter_name(linear=sampling.linear_mipmaps), channels=first.elements.channels,
            layered=isinstance(first, CudaArray) and first.layered, cubemap=isinstance(first, CudaArray) and first.cubemap,
            mipmap_bias=sampling.mipmap_bias, mipmap_range=sampling.mipmap_range,
        )  # fmt: skip
    except (TypeError, ValueError) as wrong:
        raise DriverError(Result.INVALID_VALUE, str(wrong)) from wrong


def interpolates_integers(resource: CudaArray | Mipmapped | Linear, sampling: Sampling) -> bool:
    """Does a texture interpolate numbers that are read as integers, which hardware does not?  One of a row ignores filters."""
    if isinstance(resource, Linear) and not resource.height:
        return False
    elements = resource.levels[0].elements if isinstance(resource, Mipmapped) else resource.elements
    return sampling.linear and elements.format.dtype.kind in "iu" and not elements.as_floats(sampling)


def filter_name(*, linear: bool) -> Literal["linear", "nearest"]:
    """The name of a filter."""
    return "linear" if linear else "nearest"


def surface(array: CudaArray) -> Surface:
    """A surface of an array; DriverError for an array that was not made for it."""
    if not array.flags & SURFACE:
        raise DriverError(Result.INVALID_VALUE, "the array was created without the flag for surfaces")
    return Surface(array.data, channels=array.elements.channels, layered=array.layered, cubemap=array.cubemap)


__all__ = [
    "CudaArray", "Elements", "Format", "Linear", "Mipmapped", "Sampling", "TextureView", "fitting", "format_of",
    "interpolates_integers", "surface", "texture",
]  # fmt: skip

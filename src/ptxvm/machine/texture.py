"""Textures, samplers and surfaces: views of host arrays for opaque variables and handles (PTX 5.3).

    ptxvm.Texture(image, filter="linear", address="wrap", normalized=True, read="normalized_float")

Each has a handle, a 64-bit number that a kernel takes as `.u64` (a "texture object" of CUDA), as a `.texref` parameter, or
that `Module.bind` writes into a `.global .texref` variable.  An instruction that gets the address of such a variable
finds the handle there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from math import inf
from typing import Literal

import numpy as np
import numpy.typing as npt

from ptxvm.dataclass import dataclass
from ptxvm.machine.device_array import DeviceArray
from ptxvm.machine.opaque import Opaque
from ptxvm.machine.options import count
from ptxvm.machine.per_lane import Array

Filter = Literal["nearest", "linear"]
Address = Literal["wrap", "mirror", "clamp", "border"]
Read = Literal["element", "normalized_float"]

FILTERS = ("nearest", "linear")
ADDRESSES = ("wrap", "mirror", "clamp", "border")
READS = ("element", "normalized_float")
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne", "always", "never")
CHANNELS = (1, 2, 4)

# The enumerations of OpenCL (PTX 5.3.3, tables 11 and 12), by the dtype, and by the count of channels.
CHANNEL_DATA_TYPE = {
    "int8": 0x10D7, "int16": 0x10D8, "int32": 0x10D9, "uint8": 0x10DA, "uint16": 0x10DB, "uint32": 0x10DC,
    "float16": 0x10DD, "float32": 0x10DE,
}  # fmt: skip
NORMALIZED_DATA_TYPE = {"int8": 0x10D0, "int16": 0x10D1, "uint8": 0x10D2, "uint16": 0x10D3}
CHANNEL_ORDER = {1: 0x10B0, 2: 0x10B2, 4: 0x10B5}  # CL_R, CL_RG, CL_RGBA
# What `txq` answers (PTX 9.7.10.5): the enumerations of table 9.
FILTER_MODE = {"nearest": 0, "linear": 1}
ADDR_MODE = {"wrap": 0, "mirror": 1, "clamp": 3, "border": 4}  # clamp_ogl is 2, clamp is clamp_to_edge


# ── samplers ────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Sampling:
    """How a texture is read at coordinates: the properties of a sampler (PTX 5.3.2)."""

    filter: str = "nearest"
    address: tuple[str, str, str] = ("clamp", "clamp", "clamp")
    normalized: bool = False
    border: tuple[float, ...] = (0, 0, 0, 0)
    mipmap_filter: str = "nearest"
    compare: str = "le"
    mipmap_bias: float = 0.0  # added to the level of detail
    mipmap_range: tuple[float, float] = (0.0, inf)  # the least and the greatest level of detail

    def __post_init__(self) -> None:
        _one_of("filter", self.filter, FILTERS)
        _one_of("mipmap_filter", self.mipmap_filter, FILTERS)
        _one_of("compare", self.compare, COMPARISONS)
        for mode in self.address:
            _one_of("address", mode, ADDRESSES)
            if mode in ("wrap", "mirror") and not self.normalized:
                raise ValueError(f"address '{mode}' is for normalized coordinates; pass normalized=True, or 'clamp'")


class Sampler(Opaque):
    """A sampler without a texture: a `.samplerref` of a module in independent mode (PTX 9.7.10.1).

    `normalized=False` is `force_unnormalized_coords`.
    """

    kind = "samplerref"

    def __init__(
        self,
        filter: Filter = "nearest",
        address: Address | Sequence[Address] = "clamp",
        *,
        normalized: bool = True,
        border: Sequence[float] = (0, 0, 0, 0),
        mipmap_filter: Filter = "nearest",
        compare: str = "le",
        mipmap_bias: float = 0,
        mipmap_range: tuple[float, float] = (0, inf),
    ) -> None:
        super().__init__()
        modes, details = _axes(address), _details(mipmap_bias, mipmap_range)
        self.sampling = Sampling(filter, modes, normalized, _four(border), mipmap_filter, compare, *details)

    @classmethod
    def of_fields(cls, fields: Mapping[str, str | int]) -> Sampler:
        """A sampler from the initialiser of a variable: `{filter_mode = linear, addr_mode_0 = wrap}` (PTX 5.3)."""
        words = {"clamp_ogl": "clamp", "clamp_to_edge": "clamp", "clamp_to_border": "border"}
        modes = [str(fields.get(f"addr_mode_{n}", "clamp_to_edge")) for n in range(3)]
        made = cls.__new__(cls)
        Opaque.__init__(made)
        made.sampling = Sampling(
            str(fields.get("filter_mode", "nearest")),
            _axes([words.get(mode, mode) for mode in modes]),
            normalized=not fields.get("force_unnormalized_coords", 0),
        )
        return made


def _one_of(name: str, value: object, allowed: Sequence[str]) -> None:
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} is one of {', '.join(allowed)}, not {value!r}")


def _axes(address: object) -> tuple[str, str, str]:
    """A mode for each of the three directions."""
    if not isinstance(address, Sequence) or not (isinstance(address, str) or 1 <= len(address) <= 3):
        raise ValueError(f"address is one of {', '.join(ADDRESSES)}, or one to three of them, not {address!r}")
    modes = [address] * 3 if isinstance(address, str) else [*address, *["clamp"] * 3][:3]
    return modes[0], modes[1], modes[2]


def _details(bias: object, bounds: object) -> tuple[float, tuple[float, float]]:
    """The bias, and the least and the greatest level of detail."""
    if not isinstance(bias, int | float):
        raise TypeError(f"mipmap_bias is a number, not {bias!r}")
    match bounds:
        case [int() | float() as least, int() | float() as most]:
            return float(bias), (float(least), float(most))
    raise TypeError(f"mipmap_range is the least and the greatest level of detail, not {bounds!r}")


def _four(border: Sequence[float]) -> tuple[float, ...]:
    try:
        found = [float(each) for each in border]
    except (TypeError, ValueError):
        found = [0.0] * 5
    if len(found) > 4:
        raise TypeError(f"border is up to four numbers, not {border!r}")
    return tuple([*found, 0, 0, 0, 0][:4])


# ── images ──────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class Level:
    """The elements of one level of detail: an array (slices, height, width, channels), a view of the host's.

    The slices are those of a volume, the layers of an array, the faces of cubes, or the samples of elements.
    """

    texels: Array

    @property
    def size(self) -> tuple[int, int, int]:
        """Width, height and slices."""
        slices, height, width, _ = self.texels.shape
        return width, height, slices


@dataclass(slots=True)
class ImageView:
    """An array as an image: the common part of textures and surfaces."""

    geometry: str
    level: Level
    samples: int = 0
    dtype: np.dtype[np.generic] = field(init=False)
    channels: int = field(init=False)

    def __post_init__(self) -> None:
        self.dtype = self.level.texels.dtype
        self.channels = self.level.texels.shape[-1]

    @classmethod
    def of(
        cls, array: npt.ArrayLike | DeviceArray, channels: int, *, layered: bool, cubemap: bool, samples: int = 0
    ) -> ImageView:
        """An array as an image: axes (layers or depth), (samples), height, width and, where there are several, channels."""
        host = array.as_is if isinstance(array, DeviceArray) else np.asarray(array)
        if host.dtype.name not in CHANNEL_DATA_TYPE:
            raise TypeError(f"elements are one of {', '.join(CHANNEL_DATA_TYPE)}, not {host.dtype.name}")
        if not host.dtype.isnative:
            raise TypeError(f"elements have the byte order of the host, and {host.dtype} has not; pass x.astype(x.dtype.name)")
        channels, samples = count("channels", channels), count("samples", samples)
        if channels not in CHANNELS:
            raise ValueError(f"an element has 1, 2 or 4 channels, not {channels}")
        if channels > 1 and (not host.ndim or host.shape[-1] != channels):
            raise ValueError(f"the last axis of {host.shape} is no axis of {channels} channels")
        size = host.shape[:-1] if channels > 1 else host.shape
        if samples:
            return cls.multi_sample(host.reshape(*size, channels), samples, layered=layered)
        directions = len(size) - layered
        if not 1 <= directions <= 3 or (layered and directions > 2) or 0 in size:
            raise ValueError(f"an image has 1 to 3 directions (2 beside layers), and {host.shape} has {directions}")
        if cubemap and (len(size) != 3 or size[0] % 6 or size[1] != size[2]):
            raise ValueError(f"a cube map is an array of 6n faces, each a square, not {size}")
        spread = {1: (1, 1, size[-1]), 2: (1, *size[-2:]), 3: size[-3:]}[directions]
        if layered:
            spread = (size[0], *spread[1:])
        geometry = f"{'a' if layered else ''}{directions}d"
        if cubemap:
            geometry = "cube" if size[0] == 6 and not layered else "acube"
        return cls(geometry, Level(host.reshape(*spread, channels)))

    @classmethod
    def multi_sample(cls, host: Array, samples: int, *, layered: bool) -> ImageView:
        """An array of (layers), samples, height, width and channels."""
        if host.ndim != 4 + layered or host.shape[-4] != samples or 0 in host.shape:
            axes = f"{'layers, ' if layered else ''}{samples} samples, height, width"
            raise ValueError(f"a multi-sample image has the axes ({axes}), not {host.shape[:-1]}")
        return cls("a2dms" if layered else "2dms", Level(host.reshape(-1, *host.shape[-3:])), samples)

    @property
    def slices(self) -> int:
        """How many slices make up one image of an array: the faces of a cube, the samples."""
        return 6 if "cube" in self.geometry else self.samples or 1

    @property
    def layers(self) -> int:
        """How many images an array has; 0 where it is none (PTX 9.7.10.5)."""
        slices: int = self.level.texels.shape[0]
        return slices // self.slices if self.geometry.startswith("a") else 0

    def query(self, attribute: str, level: Level | None = None) -> int:
        """The size or format, as `txq` and `suq` name it; a direction that the image does not have has the size 1."""
        width, height, depth = (level or self.level).size
        match attribute:
            case "width":
                return width
            case "height":
                return height
            case "depth":
                return depth if self.geometry == "3d" else 1
            case "channel_data_type":
                return CHANNEL_DATA_TYPE[self.dtype.name]
            case "channel_order":
                return CHANNEL_ORDER[self.channels]
            case "array_size":
                return self.layers
            case "num_samples":
                return self.samples
        return 0  # .memory_layout: not linear


class Texture(Opaque):
    """An array that kernels read through the rules of a sampler.

    The array has one to three axes, and one more for channels (2 or 4) and one more in front for layers (`layered`) or
    the faces of cubes (`cubemap`); it is used in place.  `filter` interpolates, `address` (for each axis, x first) tells
    what is outside, `normalized` coordinates run from 0 to 1.  `read="normalized_float"` takes integers of 8 and 16 bits
    to [0, 1] or [-1, 1]; `srgb` then takes R, G and B of u8 to linear light.  `mipmaps` are the further levels, each half
    as large; `mipmap_bias` is added to the level of detail that an instruction gives, and what comes of it is kept within
    `mipmap_range`.  `compare` is the comparison with a depth: it passes where the operand is so to the element.  `samples`
    is how many of them each element of a multi-sample image has: an axis before the height, behind the layers.

    Components that the elements do not have are 0, and alpha is 1.
    """

    kind = "texref"

    def __init__(  # noqa: PLR0913 - a texture has as many properties (PTX 5.3, table 9)
        self,
        array: npt.ArrayLike | DeviceArray,
        filter: Filter = "nearest",
        address: Address | Sequence[Address] = "clamp",
        *,
        normalized: bool = False,
        read: Read = "element",
        srgb: bool = False,
        border: Sequence[float] = (0, 0, 0, 0),
        mipmaps: Sequence[npt.ArrayLike] = (),
        mipmap_filter: Filter = "nearest",
        channels: int = 1,
        layered: bool = False,
        cubemap: bool = False,
        samples: int = 0,
        compare: str = "le",
        mipmap_bias: float = 0,
        mipmap_range: tuple[float, float] = (0, inf),
    ) -> None:
        super().__init__(array)
        _one_of("read", read, READS)
        if samples and (cubemap or mipmaps or normalized or filter != "nearest"):
            raise ValueError("a multi-sample texture has no faces and no levels; it is neither normalized nor filtered")
        self.image = ImageView.of(array, channels, layered=layered, cubemap=cubemap, samples=samples)
        modes, details = _axes(address), _details(mipmap_bias, mipmap_range)
        self.sampling = Sampling(filter, modes, normalized, _four(border), mipmap_filter, compare, *details)
        self.read, self.srgb = read, srgb
        self.levels = [self.image.level]
        if isinstance(mipmaps, str) or not isinstance(mipmaps, Iterable):
            raise TypeError(f"mipmaps is a list of arrays, the levels after the first, not {mipmaps!r}")
        for number, each in enumerate(mipmaps, 1):
            self.levels.append(ImageView.of(each, channels, layered=layered, cubemap=cubemap).level)
            _check_level(self.levels, number, volume=self.image.geometry == "3d")
        dtype = self.image.dtype
        if read == "normalized_float" and dtype.name not in NORMALIZED_DATA_TYPE:
            raise ValueError(f"integers of 8 and 16 bits can be read as normalized floats, not {dtype.name}")
        if srgb and (dtype != np.uint8 or read == "element"):
            raise ValueError("srgb is for u8 that is read as normalized floats")
        if filter == "linear" and not self.is_float:
            raise ValueError('integers cannot be filtered; read them as floats with read="normalized_float"')

    @property
    def is_float(self) -> bool:
        """Does a kernel get floating-point numbers?"""
        return self.read == "normalized_float" or self.image.dtype.kind == "f"

    def query(self, attribute: str, level: int = 0) -> int:
        """An attribute, as `txq` names it (PTX 9.7.10.5)."""
        sampling = self.sampling
        match attribute:
            case "normalized_coords":
                return int(sampling.normalized)
            case "num_mipmap_levels":
                return len(self.levels) if len(self.levels) > 1 else 0
            case "channel_data_type" if self.read == "normalized_float":
                return NORMALIZED_DATA_TYPE[self.image.dtype.name]
        found = query_sampling(sampling, attribute)
        if found is not None:
            return found
        return self.image.query(attribute, self.levels[min(max(level, 0), len(self.levels) - 1)])

    def __repr__(self) -> str:
        size = "x".join(str(n) for n in self.image.level.size)
        return f"Texture({self.image.geometry}, {size}, {self.image.channels} x {self.image.dtype.name})"


def _check_level(levels: list[Level], number: int, *, volume: bool) -> None:
    """A level is half as large as the one before (PTX 9.7.10.2)."""
    width, height, slices = levels[number - 1].size
    wanted = (max(1, width // 2), max(1, height // 2), max(1, slices // 2) if volume else slices)
    if levels[number].size != wanted:
        raise ValueError(f"level {number} of the texture is {levels[number].size}, and half of level {number - 1} is {wanted}")


def query_sampling(sampling: Sampling, attribute: str) -> int | None:
    """An attribute of a sampler; None for an attribute of a texture."""
    match attribute:
        case "filter_mode":
            return FILTER_MODE[sampling.filter]
        case "addr_mode_0" | "addr_mode_1" | "addr_mode_2":
            return ADDR_MODE[sampling.address[int(attribute[-1])]]
        case "force_unnormalized_coords":
            return int(not sampling.normalized)
    return None


class Surface(Opaque):
    """An array that kernels read and write at integer coordinates, in place.

    The array is contiguous and has one to three axes, and one more for channels (2 or 4) and one more in front for
    layers or the faces of cubes.
    """

    kind = "surfref"

    def __init__(self, array: Array | DeviceArray, *, channels: int = 1, layered: bool = False, cubemap: bool = False) -> None:
        super().__init__(array)
        if not isinstance(array, DeviceArray | np.ndarray):
            raise TypeError(f"a surface is a contiguous NumPy array or a DeviceArray, not {type(array).__name__}")
        self.array = array.as_is if isinstance(array, DeviceArray) else array
        if not self.array.flags.c_contiguous:
            raise TypeError("a surface is a contiguous NumPy array, since kernels write to it in place")
        self.image = ImageView.of(self.array, channels, layered=layered, cubemap=cubemap)

    @property
    def rows(self) -> Array:
        """The bytes: (slices, height, bytes of a row)."""
        slices, height, width, channels = self.image.level.texels.shape
        return self.image.level.texels.view(np.uint8).reshape(slices, height, width * channels * self.array.itemsize)

    def query(self, attribute: str, level: int = 0) -> int:  # noqa: ARG002 - surfaces have one level
        """An attribute, as `suq` names it (PTX 9.7.11.4)."""
        return self.image.query(attribute)

    def __repr__(self) -> str:
        size = "x".join(str(n) for n in self.image.level.size)
        return f"Surface({self.image.geometry}, {size}, {self.image.channels} x {self.image.dtype.name})"

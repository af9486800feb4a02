"""Loads, stores and reductions of surfaces (PTX 9.7.11).

Unformatted access (`.b`) counts bytes in the first direction, formatted access (`.p`) elements; the others count rows and
slices.  Outside of the surface `.trap` faults, `.clamp` goes to the nearest element, `.zero` reads zeros and stores nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ptxvm.algebra.types import Type
from ptxvm.dataclass import dataclass
from ptxvm.machine.backing import address_of
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.per_lane import Array
from ptxvm.machine.texture import Surface

OPERATIONS: dict[str, np.ufunc] = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
}  # fmt: skip


@dataclass(frozen=True)
class SurfaceAccess:
    """The geometry of an access, what happens outside, and the number and type of its elements."""

    geometry: str
    clamp: str
    type: Type
    count: int = 1
    formatted: bool = False

    @property
    def bytes(self) -> int:
        """The bytes of an unformatted access."""
        return self.type.bytes * self.count


@dataclass(slots=True)
class SurfaceCoordinates:
    """Where lanes access a surface: slice, row and column, and which lanes are inside."""

    z: Array
    y: Array
    x: Array
    inside: Array


def surface_coordinates(access: SurfaceAccess, surface: Surface, coordinates: Sequence[Array]) -> SurfaceCoordinates:
    """The positions of lanes; columns are bytes, or elements where the access is formatted."""
    left = [c.view(np.int32).astype(np.int64) for c in coordinates]
    layer = np.zeros(len(left[0]), np.int64)
    if access.geometry in ("a1d", "a2d"):
        layer = left.pop(0) & 0xFFFF_FFFF
    x, y, z = (*left, layer * 0, layer * 0)[:3]
    if access.geometry in ("1d", "a1d"):
        y = layer * 0
    if access.geometry != "3d":
        z = layer
    width, height, slices = surface.image.level.size
    last = width - 1
    if not access.formatted:
        _aligned(access, x)
        last = width * surface.image.channels * surface.array.itemsize - access.bytes
    found = SurfaceCoordinates(z, y, x, np.ones(len(x), np.bool_))
    for axis, most in (("x", last), ("y", height - 1), ("z", slices - 1)):
        at = getattr(found, axis)
        found.inside &= (at >= 0) & (at <= most)
        setattr(found, axis, np.clip(at, 0, max(most, 0)))
    if access.clamp == "trap" and not found.inside.all():
        lane = int(np.argmin(found.inside))
        where = ", ".join(str(int(c[lane])) for c in (x, y, z))
        raise AccessFault(
            "surface-out-of-bounds",
            f"({where}) lies outside of {surface!r}; .clamp and .zero allow that",
            size=access.bytes,
            lane_index=lane,
        )
    if not access.formatted and last < 0:
        raise AccessFault("surface-out-of-bounds", f"a row of {surface!r} is shorter than {access.bytes} bytes")
    return found


@dataclass(slots=True)
class AccessedBytes:
    """The accessed bytes of an image: lanes, the address of each, the bytes of an element, and the number of elements."""

    array: Array  # the memory that they are in
    lanes: Array
    addresses: Array
    element: int
    count: int


def touched(access: SurfaceAccess, surface: Surface, coordinates: Sequence[Array], *, writing: bool) -> AccessedBytes:
    """The accessed bytes of the lanes that are inside of the surface, or are clamped to it."""
    at = surface_coordinates(access, surface, coordinates)
    if writing:
        check_writable(surface)
    lanes = np.flatnonzero(at.inside) if access.clamp == "zero" else np.arange(len(at.x))
    width, height, _ = surface.image.level.size
    texel = surface.image.channels * surface.array.itemsize
    row = (at.z[lanes] * height + at.y[lanes]) * (width * texel)
    addresses = address_of(surface.array) + row + at.x[lanes] * (texel if access.formatted else 1)
    if access.formatted:
        return AccessedBytes(surface.array, lanes, addresses, surface.array.itemsize, min(access.count, surface.image.channels))
    return AccessedBytes(surface.array, lanes, addresses, access.type.bytes, access.count)


def fitting(access: SurfaceAccess, surface: Surface, coordinates: Sequence[Array], *, writing: bool) -> Array:
    """Which lanes can access a surface, tested one by one?"""
    good = np.zeros(len(coordinates[0]), np.bool_)
    for lane in range(len(good)):
        try:
            touched(access, surface, [c[lane : lane + 1] for c in coordinates], writing=writing)
            good[lane] = True
        except AccessFault:
            pass
    return good


def check_writable(surface: Surface) -> None:
    """Refuse to write to a read-only array of the host."""
    if not surface.array.flags.writeable:
        raise AccessFault("read-only", f"{surface!r} is a read-only array")


def _aligned(access: SurfaceAccess, x: Array) -> None:
    wrong = x % access.bytes != 0
    if wrong.any():
        lane = int(np.argmax(wrong))
        raise AccessFault(
            "misaligned",
            f"byte {int(x[lane])} of a row is no multiple of the {access.bytes} bytes of the access",
            size=access.bytes,
            lane_index=lane,
        )


def load(access: SurfaceAccess, surface: Surface, coordinates: Sequence[Array]) -> list[Array]:
    """The elements, as unsigned integers of their size."""
    at = surface_coordinates(access, surface, coordinates)
    columns = at.x[:, None] + np.arange(access.bytes)
    raw = surface.rows[at.z[:, None], at.y[:, None], columns]
    if access.clamp == "zero":
        raw[~at.inside] = 0
    values = np.ascontiguousarray(raw).view(np.dtype(f"<u{access.type.bytes}"))
    return [np.ascontiguousarray(values[:, n]) for n in range(access.count)]


def store(access: SurfaceAccess, surface: Surface, coordinates: Sequence[Array], values: Sequence[Array]) -> None:
    """Write elements; where lanes have one address, the last lane's value stays."""
    at = surface_coordinates(access, surface, coordinates)
    lanes = np.flatnonzero(at.inside) if access.clamp == "zero" else np.arange(len(at.x))
    check_writable(surface)
    if access.formatted:
        texels = surface.image.level.texels
        for channel, value in enumerate(values[: surface.image.channels]):
            texels[at.z[lanes], at.y[lanes], at.x[lanes], channel] = converted(value[lanes], texels.dtype)
        return
    raw = np.ascontiguousarray(np.stack([v.view(np.dtype(f"<u{access.type.bytes}")) for v in values], axis=1)).view(np.uint8)
    columns = at.x[lanes, None] + np.arange(access.bytes)
    surface.rows[at.z[lanes, None], at.y[lanes, None], columns] = raw[lanes]


def converted(value: Array, dtype: np.dtype[np.generic]) -> Array:
    """32 bits as a component of the surface: of f32, u32 or s32, as its format is; integers saturate (PTX 9.7.11.2)."""
    if dtype.kind == "f":
        with np.errstate(over="ignore", invalid="ignore"):  # a number too large for a half becomes infinite
            return value.view(np.float32).astype(dtype)
    info = np.iinfo(dtype.name)
    whole = value.view(np.int32 if dtype.kind == "i" else np.uint32)
    return np.clip(whole, info.min, info.max).astype(dtype)


def reduce(operation: str, access: SurfaceAccess, surface: Surface, coordinates: Sequence[Array], value: Array) -> None:
    """Apply an operation to the elements, lane after lane."""
    check_writable(surface)
    at = surface_coordinates(access, surface, coordinates)
    lanes = np.flatnonzero(at.inside) if access.clamp == "zero" else np.arange(len(at.x))
    signed = access.type.is_signed or (access.formatted and surface.image.dtype.kind == "i")
    dtype = np.dtype(f"<{'i' if signed else 'u'}{access.type.bytes}")
    rows = surface.rows
    _, height, size = rows.shape
    column = at.x[lanes] * (surface.image.channels * surface.array.itemsize if access.formatted else 1)
    flat = (at.z[lanes] * height + at.y[lanes]) * size + column
    if (flat % dtype.itemsize).any() or rows.size % dtype.itemsize:
        raise AccessFault("misaligned", f"{surface!r} has no elements of {dtype.itemsize} bytes there")
    OPERATIONS[operation].at(rows.reshape(-1).view(dtype), flat // dtype.itemsize, value[lanes].view(dtype))

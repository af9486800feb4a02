"""Texture sampling: the formulas of the CUDA C programming guide, "Texture fetching".

A coordinate u counts elements: it is x, or x times the size of the image where x is normalized.

    nearest   T[i]                                   i = floor(u)
    linear    (1 - a) T[i] + a T[i + 1]              i = floor(u - 0.5), a the rest, in 1.8 fixed point

and so on for two and three directions.  An index outside of the image is taken to it as the address mode says.
Everything is done on arrays of lanes, in f64, which holds the coordinates and weights exactly; the result is rounded to
f32 once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from ptxvm.dataclass import dataclass
from ptxvm.machine.per_lane import Array
from ptxvm.machine.texture import ImageView, Level, Sampling, Texture

FRACTION = 256.0  # of the weights: 8 bits behind the point
DIRECTIONS = {"1d": 1, "2d": 2, "3d": 3, "a1d": 1, "a2d": 2, "cube": 2, "acube": 2, "2dms": 2, "a2dms": 2}
SHORTEST = 2.0**-60  # a gradient: what is less is as good as nothing
HALF_ROOT = 0.5**0.5
SERIES = tuple(2 / (n * np.log(2).item()) for n in range(1, 15, 2))  # of the logarithm to the base 2 of (1 + t) / (1 - t)
LIMIT = float(1 << 30)  # coordinates are clamped to it, far outside of any image
COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
    "always": lambda a, b: np.ones(np.broadcast(a, b).shape, np.bool_),
    "never": lambda a, b: np.zeros(np.broadcast(a, b).shape, np.bool_),
}  # fmt: skip


@dataclass(frozen=True)
class Fetch:
    """A look-up: the geometry of the instruction, whether coordinates are integers, and which component is gathered."""

    geometry: str
    integers: bool = False
    component: int | None = None


@dataclass(slots=True)
class Point:
    """The point of a look-up in each lane: a slice, and coordinates in the directions of the image."""

    slice: Array
    coordinates: list[Array]  # f64
    cube: bool = False


@dataclass(slots=True)
class AccessedTexels:
    """Elements of a level that lanes read: slices, rows and columns."""

    level: Level
    lanes: Array
    indexes: tuple[Array, Array, Array]


@np.errstate(invalid="ignore", over="ignore")
def fetch(
    kind: Fetch,
    texture: Texture,
    sampling: Sampling,
    coordinates: Sequence[Array],
    *,
    lod: Array | None = None,
    gradients: tuple[Sequence[Array], Sequence[Array]] | None = None,
    offset: Sequence[Array] | None = None,
    compare: Array | None = None,
    reached: list[AccessedTexels] | None = None,
) -> Array:
    """Four components for each lane, as u32: integers, or the bits of f32; `reached` gets the elements that they depend on.

    A geometry that is not the texture's own sees the same elements: a 1d look-up the first row, a 2d one the first slice.
    """
    point = locate(kind, texture.image, coordinates)
    count = len(point.slice)
    steps = [np.zeros(count)] * 3 if offset is None else [*(o.astype(np.float64) for o in offset), *[np.zeros(count)] * 3]
    reader = Reader(kind, texture, sampling, point, steps, compare, reached)
    if lod is None and gradients is None:
        return reader.at_level(np.zeros(count))
    if lod is None:
        lod = level_of(kind, texture, sampling, gradients)
    return reader.at_level(np.nan_to_num(lod.astype(np.float64), posinf=LIMIT, neginf=-LIMIT) + sampling.mipmap_bias)


def level_of(
    kind: Fetch, texture: Texture, sampling: Sampling, gradients: tuple[Sequence[Array], Sequence[Array]] | None
) -> Array:
    """The level of detail of gradients: the binary logarithm of the longer one, in elements."""
    if gradients is None:
        raise ValueError("no gradients")
    size = texture.levels[0].size
    normalized = sampling.normalized or kind.geometry in ("cube", "acube")
    directions = 3 if kind.geometry in ("3d", "cube", "acube") else DIRECTIONS[kind.geometry]
    lengths = []
    for gradient in gradients:
        scaled = [
            g.astype(np.float64) * ((size[0] / 2 if "cube" in kind.geometry else size[n]) if normalized else 1)
            for n, g in enumerate(gradient[:directions])
        ]
        lengths.append(np.sqrt(sum(g * g for g in scaled)))
    longest: Array = np.maximum(*lengths)
    return binary_logarithm(np.maximum(longest, SHORTEST))


def binary_logarithm(x: Array) -> Array:
    """The binary logarithm of normal numbers and infinity, by the series of the area tangent, to 40 bits.

    Compiled code computes the same (`engine.jit.lower.look_ups`): NumPy's own differs in the last bit from machine to machine.
    """
    mantissa, exponent = np.frexp(x)
    low = mantissa <= HALF_ROOT
    mantissa, exponent = np.where(low, 2 * mantissa, mantissa), exponent - low
    t = (mantissa - 1) / (mantissa + 1)
    square = t * t
    sum = np.full_like(t, SERIES[-1])
    for term in SERIES[-2::-1]:
        sum = sum * square + term
    found: Array = np.where(np.isinf(x), x, exponent + t * sum)
    return found


def locate(kind: Fetch, image: ImageView, coordinates: Sequence[Array]) -> Point:
    """The slice and the coordinates in it; an index past the last layer or sample means the last."""
    left = list(coordinates)
    geometry = kind.geometry
    slice = np.zeros(len(left[0]), np.int64)
    if geometry.startswith("a"):
        most = image.level.size[2] // image.slices - 1
        slice = np.minimum(left.pop(0).view(np.uint32).astype(np.int64), most) * image.slices
    if geometry.endswith("ms"):
        slice = slice + np.minimum(left.pop(0).view(np.uint32).astype(np.int64), image.slices - 1)
    numbers = [c.view(np.int32 if kind.integers else np.float32).astype(np.float64) for c in left]
    numbers = [np.clip(np.nan_to_num(c, nan=0.0, posinf=LIMIT, neginf=-LIMIT), -LIMIT, LIMIT) for c in numbers]
    if geometry in ("cube", "acube"):
        face, s, t = face_of(*numbers[:3])
        return Point(slice + face, [s, t], cube=True)
    return Point(slice, numbers[: DIRECTIONS[geometry]])


def face_of(x: Array, y: Array, z: Array) -> tuple[Array, Array, Array]:
    """The face of a cube in a direction, and the coordinates in it (CUDA C programming guide, "Cubemap textures").

    major axis   face   m    s    t
    |x|   x > 0   0     x   -z   -y
          x < 0   1    -x    z   -y
    |y|   y > 0   2     y    x    z
          y < 0   3    -y    x   -z
    |z|   z > 0   4     z    x   -y
          z < 0   5    -z   -x   -y
    """
    along_x = (abs(x) >= abs(y)) & (abs(x) >= abs(z))
    along_y = ~along_x & (abs(y) >= abs(z))
    axis = np.where(along_x, x, np.where(along_y, y, z))
    negative = axis < 0
    face = np.where(along_x, 0, np.where(along_y, 2, 4)) + negative
    s = np.choose(face, [-z, z, x, x, x, -x])
    t = np.choose(face, [-y, -y, z, -z, -y, -y])
    m = np.where(axis == 0, 1.0, abs(axis))
    return face, (s / m + 1) / 2, (t / m + 1) / 2


@dataclass(slots=True)
class Reader:
    """Reads a texture at a point."""

    kind: Fetch
    texture: Texture
    sampling: Sampling
    point: Point
    steps: Sequence[Array]
    compare: Array | None
    reached: list[AccessedTexels] | None

    def at_level(self, lod: Array) -> Array:
        """The four components at levels of detail: at the nearest level, or between two."""
        last = len(self.texture.levels) - 1
        lod = np.clip(np.clip(lod, *self.sampling.mipmap_range), 0, last)
        if self.sampling.mipmap_filter == "nearest" or self.kind.integers or not last or not self.is_float:
            return self.bits(self.of_levels(np.floor(lod + 0.5).astype(np.int64)))
        fixed = np.floor(lod * FRACTION + 0.5)
        low = np.minimum(fixed // FRACTION, last).astype(np.int64)
        weight = fixed / FRACTION - low
        fine, coarse = self.of_levels(low), self.of_levels(np.minimum(low + 1, last), weight != 0)
        return self.bits((1 - weight) * fine + weight * coarse)

    @property
    def is_float(self) -> bool:
        """Are the components floating-point numbers?  The results of a comparison are."""
        return self.compare is not None or self.texture.is_float

    def bits(self, components: Array) -> Array:
        """The components as u32."""
        if self.is_float:
            return components.astype(np.float32).view(np.uint32)
        return components.astype(np.int64).astype(np.uint32)

    def of_levels(self, levels: Array, counts: Array | None = None) -> Array:
        """Each lane's components from its level; zeros where the lane does not count."""
        result = np.zeros((4, len(levels)))
        for number in np.unique(levels):
            lanes = np.flatnonzero(levels == number if counts is None else (levels == number) & counts)
            result[:, lanes] = self.of_level(self.texture.levels[number], lanes)
        return result

    def of_level(self, level: Level, lanes: Array) -> Array:
        """The components of some lanes from one level."""
        size = level.size
        slices = None if self.kind.geometry == "3d" else np.clip(self.point.slice[lanes], 0, size[2] - 1)
        scaled = [self.scale(n, c[lanes], size[n], self.steps[n][lanes]) for n, c in enumerate(self.point.coordinates)]
        if self.kind.component is not None:
            return self.gather(level, lanes, slices, scaled)
        if self.sampling.filter == "nearest" or self.kind.integers or not self.texture.is_float:
            return self.texels(level, lanes, slices, [self.index(n, np.floor(u), size[n]) for n, u in enumerate(scaled)])
        return self.linear(level, lanes, slices, scaled)

    def scale(self, axis: int, x: Array, size: int, step: Array) -> Array:
        """The coordinate in elements: scaled, offset, and wrapped or mirrored."""
        normalized = (self.sampling.normalized or self.point.cube) and not self.kind.integers
        u = (x * size if normalized else x) + step
        mode = self.mode(axis)
        if self.kind.integers or mode in ("clamp", "border"):
            return u
        repeats = np.floor(u / size)
        rest: Array = u - repeats * size
        return rest if mode == "wrap" else np.where(repeats % 2 == 0, rest, size - rest)

    def mode(self, axis: int) -> str:
        """The address mode; faces of cubes are clamped."""
        return "clamp" if self.point.cube else self.sampling.address[axis]

    def index(self, axis: int, i: Array, size: int) -> Array:
        """The index of an element in the image; -1 for the border."""
        mode = self.mode(axis)
        whole = i.astype(np.int64)
        if mode == "wrap":
            return whole % size
        if mode == "mirror":
            turned = whole % (2 * size)
            return np.minimum(turned, 2 * size - 1 - turned)
        if mode == "border":
            return np.where((whole < 0) | (whole >= size), -1, whole)
        return np.clip(whole, 0, size - 1)

    def texels(
        self, level: Level, lanes: Array, slices: Array | None, indexes: Sequence[Array], counts: Array | None = None
    ) -> Array:
        """The elements at indexes, x first, as four components; `counts` tells for which lanes they count."""
        x, y, z = (*indexes, *[np.zeros(len(lanes), np.int64)] * 2)[:3]
        outside = (x < 0) | (y < 0) | (z < 0)
        texel = (z if slices is None else slices, y, x)
        if self.reached is not None:
            some = np.flatnonzero(~outside if counts is None else ~outside & counts)
            self.reached.append(AccessedTexels(level, lanes[some], (texel[0][some], y[some], x[some])))
        found = level.texels[texel]
        components = [*self.numbers(found), *self.missing(found.shape[1], len(lanes))]
        result = np.stack(components).astype(np.float64)
        for n in range(4):
            result[n] = np.where(outside, self.sampling.border[n], result[n])
        if self.compare is not None:
            reference = self.compare[lanes].view(np.float32).astype(np.float64)
            result = COMPARE[self.sampling.compare](reference, result).astype(np.float64)
        return result

    def numbers(self, found: Array) -> list[Array]:
        """Elements as numbers, channel by channel: in f64, which holds them exactly."""
        if self.texture.read == "element":
            return list(found.T.astype(np.float64))
        info = np.iinfo(found.dtype)
        scaled = np.maximum(found.T.astype(np.float64) / info.max, -1.0).astype(np.float32).astype(np.float64)
        if self.texture.srgb:
            scaled[:3] = linear_light(scaled[:3])
        return list(scaled)

    def missing(self, channels: int, count: int) -> list[Array]:
        """The values of components that the elements lack: 0, and 1 for alpha."""
        return [np.full(count, float(n == 3)) for n in range(channels, 4)]

    def footprint(self, scaled: Sequence[Array]) -> list[tuple[Array, Array]]:
        """In each direction the index of the first of two elements, and the weight of the second in 1.8 fixed point."""
        found = []
        for u in scaled:
            fixed = np.floor((u - 0.5) * FRACTION + 0.5)
            i = np.floor(fixed / FRACTION)
            found.append((i, fixed / FRACTION - i))
        return found

    def linear(self, level: Level, lanes: Array, slices: Array | None, scaled: Sequence[Array]) -> Array:
        """The weighted sum of the two, four or eight elements around the point."""
        around = self.footprint(scaled)
        total = np.zeros((4, len(lanes)))
        for corner in product((0, 1), repeat=len(around)):
            weight = np.ones(len(lanes))
            indexes = []
            for axis, (second, (i, a)) in enumerate(zip(corner, around, strict=True)):
                weight = weight * (a if second else 1 - a)
                indexes.append(self.index(axis, i + second, level.size[axis]))
            total += np.where(weight == 0, 0.0, weight * self.texels(level, lanes, slices, indexes, weight != 0))
        return total

    def gather(self, level: Level, lanes: Array, slices: Array | None, scaled: Sequence[Array]) -> Array:
        """One component of the four elements around the point, counter-clockwise from the lower left (`tld4`)."""
        (i, _), (j, _) = self.footprint(scaled)
        result = []
        for right, lower in ((0, 1), (1, 1), (1, 0), (0, 0)):
            indexes = [self.index(0, i + right, level.size[0]), self.index(1, j + lower, level.size[1])]
            result.append(self.texels(level, lanes, slices, indexes)[self.kind.component])
        return np.stack(result)


def linear_light(x: Array) -> Array:
    """From sRGB (IEC 61966-2-1), in f32."""
    light: Array = np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)
    return light.astype(np.float32).astype(np.float64)

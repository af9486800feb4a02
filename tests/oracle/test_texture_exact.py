"""Textures and surfaces against the formulas of the CUDA C programming guide ("Texture Fetching"), in exact rationals.

Nothing here comes from `ptxvm.isa` or `ptxvm.algebra`: coordinates are brought into the image as the guide writes it, one
lane at a time, where the machine works on indexes of all lanes.
"""

from __future__ import annotations

import tarfile
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from math import floor, log2, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import ptxvm

Array = npt.NDArray[Any]
CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "corpus.tar.xz"
HALF = Fraction(1, 2)
LANES = 64


def run(instruction: str, handle: Any, inputs: Sequence[Array], dtype: str = "f32", results: int = 4) -> Array:
    """An instruction on one lane for each input; `%f` and `%r` 10, 11, … hold the inputs, 1, 2, … are the results."""
    count = len(inputs[0])
    letter = {"f32": "f", "u32": "r", "s32": "r", "f16": "h"}[dtype]
    loads, arguments = "", [np.ascontiguousarray(x) for x in inputs]
    for n, x in enumerate(arguments):
        register = f"%{'f' if x.dtype == np.float32 else 'r'}{10 + n}"
        loads += f"ld.param.u64 %a, [i{n}]; add.u64 %a, %a, %at; ld.global.b32 {register}, [%a];\n"
    stores = "".join(f"st.global.b{16 if letter == 'h' else 32} [%o+{4 * n}], %{letter}{n + 1};\n" for n in range(results))
    parameters = "".join(f", .param .u64 i{n}" for n in range(len(arguments)))
    source = f""".version 6.4
        .target sm_75
        .address_size 64
        .visible .entry k(.param .u64 handle, .param .u64 out{parameters}) {{
            .reg .b64 %t, %o, %a, %at;
            .reg .b32 %r<40>; .reg .f32 %f<40>; .reg .b16 %h<8>; .reg .b32 %i;
            ld.param.u64 %t, [handle];
            ld.param.u64 %o, [out];
            mov.u32 %i, %tid.x;
            mul.wide.u32 %at, %i, 4;
            mad.wide.u32 %o, %i, {4 * results}, %o;
            {loads}
            {instruction}
            {stores}
            ret;
        }}"""
    out = np.zeros((count, results), np.uint32)
    ptxvm.load(source).kernel().launch(1, count, [handle, out, *arguments])
    return out


# ── the guide's formulas ────────────────────────────────────────────────────────────────


def brought_in(x: Fraction, size: int, mode: str, normalized: bool) -> Fraction:
    """The coordinate in elements, after the address mode."""
    if not normalized:
        return x
    turns = floor(x)
    if mode == "wrap":
        x -= turns
    elif mode == "mirror":
        x = x - turns if turns % 2 == 0 else 1 - (x - turns)
    return x * size


def element(image: Array, indexes: Sequence[int], modes: Sequence[str]) -> float | None:
    """An element; None where the border is.  `indexes` are x first, as the axes of the image are last."""
    inside = []
    for i, size, mode in zip(indexes, image.shape[::-1], modes, strict=False):
        if mode == "border" and not 0 <= i < size:
            return None
        inside.append(i % size if mode == "wrap" else min(max(i, 0), size - 1))
    return float(image[tuple(inside[::-1])])


def expected(
    image: Array, point: Sequence[float], modes: Sequence[str], *, normalized: bool, linear: bool, offset: Sequence[int] = (),
    border: float = 0.0,
) -> Array:  # fmt: skip
    """What a look-up gives, as f32."""
    steps = [*offset, 0, 0, 0]
    places = []
    for axis, (x, size) in enumerate(zip(point, image.shape[::-1], strict=False)):
        moved = Fraction(float(x)) + (Fraction(steps[axis], size) if normalized else steps[axis])
        places.append(brought_in(moved, size, modes[axis], normalized))
    if not linear:
        found = element(image, [floor(u) for u in places], modes)
        return np.float32(border if found is None else found)
    total = Fraction(0)
    corners = [divmod(Fraction(floor((u - HALF) * 256 + HALF), 256), 1) for u in places]
    for corner in product((0, 1), repeat=len(corners)):
        weight = Fraction(1)
        for second, (_, a) in zip(corner, corners, strict=True):
            weight *= a if second else 1 - a
        found = element(image, [int(i) + second for second, (i, _) in zip(corner, corners, strict=True)], modes)
        total += weight * Fraction(border if found is None else found)
    return np.float32(float(total))


def picture(*shape: int, seed: int = 1) -> Array:
    """Elements whose weighted sums are exact in f64."""
    return (np.random.default_rng(seed).integers(-512, 512, shape) / 8).astype(np.float32)


def points(count: int, low: float, high: float, seed: int) -> Array:
    """Coordinates: some on the edges of elements, most between."""
    found = np.random.default_rng(seed).uniform(low, high, count).astype(np.float32)
    edges = np.linspace(np.floor(low), np.ceil(high), count // 4).astype(np.float32)
    found[: len(edges)] = edges
    return found


# ── addressing and filtering ────────────────────────────────────────────────────────────

MODES = [("clamp", False), ("border", False), ("clamp", True), ("border", True), ("wrap", True), ("mirror", True)]
SIZES = {"1d": (7,), "2d": (5, 7), "3d": (3, 5, 7)}
COORDINATES = {"1d": "{%f10}", "2d": "{%f10, %f11}", "3d": "{%f10, %f11, %f12, %f12}"}


@pytest.mark.parametrize("filter", ["nearest", "linear"])
@pytest.mark.parametrize(("mode", "normalized"), MODES)
@pytest.mark.parametrize("geometry", SIZES)
def test_look_up(geometry: str, mode: str, normalized: bool, filter: Any) -> None:
    """`tex.{1d,2d,3d}`, in every address mode."""
    image = picture(*SIZES[geometry])
    reach = (-1.5, 2.5) if normalized else (-3.0, 9.0)
    given = [points(LANES, *reach, seed=n) for n in range(image.ndim)]
    texture = ptxvm.Texture(image, filter, mode, normalized=normalized, border=[2.5])  # type: ignore[arg-type]
    text = f"tex.{geometry}.v4.f32.f32 {{%f1,%f2,%f3,%f4}}, [%t, {COORDINATES[geometry]}];"
    found = run(text, texture, given).view(np.float32)
    wanted = [
        expected(image, point, [mode] * 3, normalized=normalized, linear=filter == "linear", border=2.5)
        for point in zip(*given, strict=True)
    ]
    np.testing.assert_array_equal(found[:, 0], wanted)


def test_each_axis_has_its_mode() -> None:
    """`address` names x first."""
    image = picture(4, 4)
    given = [points(LANES, -1, 2, seed=3), points(LANES, -1, 2, seed=4)]
    texture = ptxvm.Texture(image, "linear", ("wrap", "clamp"), normalized=True)
    found = run("tex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%t, {%f10, %f11}];", texture, given).view(np.float32)
    wanted = [expected(image, p, ("wrap", "clamp"), normalized=True, linear=True) for p in zip(*given, strict=True)]
    np.testing.assert_array_equal(found[:, 0], wanted)


def test_weights_have_eight_bits() -> None:
    """The weight of the guide: 9 bits with 8 of fraction, so 1/512 is lost in part and 1/256 is not."""
    texture = ptxvm.Texture(np.array([0, 256], np.float32), "linear")
    at = (np.array([0, 1, 2, 100, 256, 511, 512]) / 512 + 0.5).astype(np.float32)
    found = run("tex.1d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%t, {%f10}];", texture, [at]).view(np.float32)
    assert found[:, 0].tolist() == [0, 1, 1, 50, 128, 256, 256]


def test_integer_coordinates_are_indexes() -> None:
    """`.s32` coordinates pick an element, without a filter and without a scale (PTX 9.7.10.3)."""
    image = picture(5, 7)
    texture = ptxvm.Texture(image, "linear", "clamp", normalized=True)
    x, y = np.arange(-2, 10, dtype=np.int32), np.arange(12, dtype=np.int32) % 7 - 1
    found = run("tex.2d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%t, {%r10, %r11}];", texture, [x, y]).view(np.float32)
    np.testing.assert_array_equal(found[:, 0], image[np.clip(y, 0, 4), np.clip(x, 0, 6)])


@pytest.mark.parametrize("geometry", ["a1d", "a2d"])
def test_layers(geometry: str) -> None:
    """The first coordinate of an array is the index of a layer, clamped to those there are."""
    image = picture(4, 6) if geometry == "a1d" else picture(4, 5, 6)
    layer = np.arange(LANES, dtype=np.uint32) % 6
    given = [points(LANES, -2, 8, seed=n) for n in range(image.ndim - 1)]
    texture = ptxvm.Texture(image, "linear", layered=True)
    where = "{%r10, %f11}" if geometry == "a1d" else "{%r10, %f11, %f12, %f12}"
    found = run(f"tex.{geometry}.v4.f32.f32 {{%f1,%f2,%f3,%f4}}, [%t, {where}];", texture, [layer, *given]).view(np.float32)
    wanted = [
        expected(image[min(n, 3)], point, ["clamp"] * 3, normalized=False, linear=True)
        for n, *point in zip(layer, *given, strict=True)
    ]
    np.testing.assert_array_equal(found[:, 0], wanted)


@pytest.mark.parametrize("normalized", [False, True])
def test_offset(normalized: bool) -> None:
    """The offset moves by elements (PTX 9.7.10.3)."""
    image = picture(6, 8)
    given = [points(LANES, -0.5, 1.5, seed=5) * (1 if normalized else 8), points(LANES, -0.5, 1.5, seed=6)]
    mode: Any = "wrap" if normalized else "clamp"
    texture = ptxvm.Texture(image, "linear", mode, normalized=normalized)
    found = run("tex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%t, {%f10, %f11}], {-3, 2};", texture, given).view(np.float32)
    wanted = [
        expected(image, p, [mode] * 2, normalized=normalized, linear=True, offset=(-3, 2)) for p in zip(*given, strict=True)
    ]
    np.testing.assert_array_equal(found[:, 0], wanted)


def test_gather() -> None:
    """`tld4` gives the footprint of a bilinear look-up, counter-clockwise from the lower left (PTX 9.7.10.4)."""
    image = picture(5, 7, 4)
    x, y = points(LANES, -1, 8, seed=7), points(LANES, -1, 6, seed=8)
    texture = ptxvm.Texture(image, channels=4)
    found = run("tld4.b.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%t, {%f10, %f11}];", texture, [x, y]).view(np.float32)
    for lane in range(LANES):
        i, j = (floor(Fraction(floor((Fraction(float(u)) - HALF) * 256 + HALF), 256)) for u in (x[lane], y[lane]))
        corners = [(i, j + 1), (i + 1, j + 1), (i + 1, j), (i, j)]
        wanted = [image[min(max(b, 0), 4), min(max(a, 0), 6), 2] for a, b in corners]
        assert found[lane].tolist() == wanted


# ── cubes, levels, depth ────────────────────────────────────────────────────────────────

FACES = [  # face, major axis and its sign, what s and t are: the guide's table of cube maps
    (0, (1, 0, 0), lambda x, y, z: (-z, -y)), (1, (-1, 0, 0), lambda x, y, z: (z, -y)),
    (2, (0, 1, 0), lambda x, y, z: (x, z)), (3, (0, -1, 0), lambda x, y, z: (x, -z)),
    (4, (0, 0, 1), lambda x, y, z: (x, -y)), (5, (0, 0, -1), lambda x, y, z: (-x, -y)),
]  # fmt: skip


@pytest.mark.parametrize("array", [False, True])
def test_cube(array: bool) -> None:
    """The largest coordinate picks the face, the others divided by it the place; a layer past the last is the last."""
    image = picture(12 if array else 6, 8, 8)
    rng = np.random.default_rng(9)
    directions = rng.integers(-7, 8, (LANES, 3)).astype(np.float32)
    major = rng.integers(0, 3, LANES)
    directions[np.arange(LANES), major] = rng.choice([-8, 8], LANES)
    layer = np.arange(LANES, dtype=np.uint32) % 4
    given = [np.ascontiguousarray(column) for column in directions.T]
    texture = ptxvm.Texture(image, cubemap=True)
    if array:
        text, inputs = "tex.acube.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%t, {%r10, %f11, %f12, %f13}];", [layer, *given]
    else:
        text, inputs = "tex.cube.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%t, {%f10, %f11, %f12, %f12}];", given
    found = run(text, texture, inputs).view(np.float32)
    for lane, (x, y, z) in enumerate(directions.tolist()):
        face, _, st = next(f for f in FACES if np.dot(f[1], (x, y, z)) == 8)
        s, t = ((Fraction(int(c), 8) + 1) / 2 for c in st(x, y, z))
        slice = face + (6 * min(int(layer[lane]), 1) if array else 0)
        assert found[lane, 0] == image[slice, min(floor(t * 8), 7), min(floor(s * 8), 7)]


@pytest.mark.parametrize("array", [False, True])
def test_samples(array: bool) -> None:
    """Layer, sample, column and row; outside of the image the nearest element (PTX 9.7.10.3, 5.3.2)."""
    image = picture(2, 3, 4, 5)
    rng = np.random.default_rng(10)
    layer, sample = (np.asarray(rng.integers(0, n, LANES), np.uint32) for n in (2, 3))
    x, y = (np.asarray(rng.integers(-2, n + 2, LANES), np.int32) for n in (5, 4))
    if array:
        text, inputs = "tex.a2dms.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%t, {%r10, %r11, %r12, %r13}];", [layer, sample, x, y]
        texture = ptxvm.Texture(image, samples=3, layered=True)
    else:
        text, inputs = "tex.2dms.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%t, {%r10, %r11, %r12, %r12}];", [sample, x, y]
        texture, layer = ptxvm.Texture(image[0], samples=3), layer * 0
    found = run(text, texture, inputs).view(np.float32)
    wanted = image[layer, sample, np.clip(y, 0, 3), np.clip(x, 0, 4)]
    assert found[:, 0].tolist() == wanted.tolist()


@pytest.mark.parametrize("between", ["nearest", "linear"])
@pytest.mark.parametrize(
    ("bias", "least", "most"),
    [(0, 0, 99), (0.75, 0, 99), (-1.5, 0, 99), (0, Fraction(1, 2), Fraction(7, 4)), (1, 1, 2), (0, 0, 0)],
)
def test_level(between: Any, bias: float, least: Fraction, most: Fraction) -> None:
    """`.level` picks the level, or two of them (PTX 9.7.10.2).

    A bias is added to it, and the sum is kept within limits (driver API, `CUDA_TEXTURE_DESC`).
    """
    levels = [picture(8, 8, seed=1), picture(4, 4, seed=2), picture(2, 2, seed=3), picture(1, 1, seed=4)]
    limits = float(least), float(most)
    texture = ptxvm.Texture(
        levels[0], normalized=True, mipmaps=levels[1:], mipmap_filter=between, mipmap_bias=bias, mipmap_range=limits
    )
    x, y, lod = points(LANES, 0, 1, seed=10), points(LANES, 0, 1, seed=11), points(LANES, -1, 4, seed=12)
    found = run("tex.level.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%t, {%f10, %f11}], %f12;", texture, [x, y, lod]).view(np.float32)
    for lane in range(LANES):
        at = [float(expected(level, (x[lane], y[lane]), ["clamp"] * 2, normalized=True, linear=False)) for level in levels]
        clamped = min(max(Fraction(float(lod[lane])) + Fraction(bias), least, 0), most, 3)
        if between == "nearest":
            wanted = at[floor(clamped + HALF)]
        else:
            low, weight = divmod(Fraction(floor(clamped * 256 + HALF), 256), 1)
            wanted = float((1 - weight) * Fraction(at[int(low)]) + weight * Fraction(at[min(int(low) + 1, 3)]))
        assert found[lane, 0] == np.float32(wanted)


def test_gradients() -> None:
    """The level is the logarithm of the longer gradient, in elements."""
    levels = [picture(16, 16, seed=1), picture(8, 8, seed=2), picture(4, 4, seed=3)]
    texture = ptxvm.Texture(levels[0], normalized=True, mipmaps=levels[1:])
    rng = np.random.default_rng(13)
    inputs = [points(LANES, 0, 1, seed=14), points(LANES, 0, 1, seed=15), *rng.uniform(0, 0.3, (4, LANES)).astype(np.float32)]
    text = "tex.grad.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%t, {%f10, %f11}], {%f12, %f13}, {%f14, %f15};"
    found = run(text, texture, inputs).view(np.float32)
    for lane, (x, y, *g) in enumerate(zip(*(i.tolist() for i in inputs), strict=True)):
        length = max(sqrt((16 * g[0]) ** 2 + (16 * g[1]) ** 2), sqrt((16 * g[2]) ** 2 + (16 * g[3]) ** 2))
        level = levels[floor(min(max(log2(length), 0), 2) + 0.5)]
        assert found[lane, 0] == expected(level, (x, y), ["clamp"] * 2, normalized=True, linear=False)


def test_depth() -> None:
    """Elements are compared with the operand, and what comes of it is filtered."""
    image = picture(4, 4)
    texture = ptxvm.Texture(image, "linear", compare="lt")
    inputs = [points(LANES, 0, 4, seed=16), points(LANES, 0, 4, seed=17), points(LANES, -40, 40, seed=18)]
    found = run("tex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%t, {%f10, %f11}], %f12;", texture, inputs).view(np.float32)
    for lane, (x, y, depth) in enumerate(zip(*inputs, strict=True)):
        passes = (depth < image).astype(np.float32)
        assert found[lane, 0] == expected(passes, (x, y), ["clamp"] * 2, normalized=False, linear=True)


# ── channels and formats ────────────────────────────────────────────────────────────────

INTEGERS = [np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32]


@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers(dtype: Any, channels: int) -> None:
    """Integers come extended to 32 bits; what an element lacks is 0, and 1 for alpha."""
    info = np.iinfo(dtype)
    image = np.random.default_rng(19).integers(info.min, info.max, (9, channels), dtype, endpoint=True)
    texture = ptxvm.Texture(image if channels > 1 else image[:, 0], channels=channels)
    found = run("tex.1d.v4.s32.s32 {%r1,%r2,%r3,%r4}, [%t, {%r10}];", texture, [np.arange(9, dtype=np.int32)], "s32")
    lacking = np.tile([0, 0, 0, 1], (9, 1))[:, channels:]
    wanted = np.concatenate([image.astype(np.int64), lacking], axis=1) & 0xFFFF_FFFF
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", INTEGERS[:4])
def test_normalized_floats(dtype: Any) -> None:
    """u8 and u16 are read as [0, 1], s8 and s16 as [-1, 1]."""
    info = np.iinfo(dtype)
    image = np.array([info.min, info.min + 1, 0, 1, info.max // 3, info.max], dtype)
    texture = ptxvm.Texture(image, read="normalized_float")
    found = run("tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%t, {%r10}];", texture, [np.arange(6, dtype=np.int32)]).view(np.float32)
    wanted = [np.float32(float(max(Fraction(int(x), info.max), Fraction(-1)))) for x in image]
    np.testing.assert_array_equal(found[:, 0], wanted)


def test_halves() -> None:
    """f16 elements are exact in f32, and `.f16` results are rounded (PTX 9.7.10.3)."""
    image = np.array([1.5, -2.25, 65504, 6e-8, np.inf], np.float16)
    at = [np.arange(5, dtype=np.int32)]
    found = run("tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%t, {%r10}];", ptxvm.Texture(image), at).view(np.float32)
    np.testing.assert_array_equal(found[:, 0], image.astype(np.float32))
    exact = np.array([1.0005, 70000, 2**-26, -3, 0.1], np.float32)
    halves = run("tex.1d.v4.f16.s32 {%h1,%h2,%h3,%h4}, [%t, {%r10}];", ptxvm.Texture(exact), at, "f16")
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(halves[:, 0], exact.astype(np.float16).view(np.uint16))
    packed = run("tex.1d.v2.f16x2.s32 {%r1,%r2}, [%t, {%r10}];", ptxvm.Texture(exact), at, "u32", results=2)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(packed[:, 0], exact.astype(np.float16).view(np.uint16))
    assert packed[:, 1].tolist() == [0x3C00_0000] * 5  # blue is 0, alpha 1


def test_srgb() -> None:
    """u8 in sRGB comes as linear light, but for alpha."""
    image = np.array([[0, 10, 128, 128], [255, 200, 11, 255]], np.uint8)
    texture = ptxvm.Texture(image, read="normalized_float", srgb=True, channels=4)
    found = run("tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%t, {%r10}];", texture, [np.arange(2, dtype=np.int32)]).view(np.float32)
    scaled = image / 255
    light = np.where(scaled <= 0.04045, scaled / 12.92, ((scaled + 0.055) / 1.055) ** 2.4)
    np.testing.assert_allclose(found[:, :3], light[:, :3], rtol=1e-6)
    np.testing.assert_array_equal(found[:, 3], scaled[:, 3].astype(np.float32))


# ── surfaces ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("type", "letter"), [("b8", "h"), ("b16", "h"), ("b32", "r")])
def test_surface_load_counts_bytes(type: str, letter: str) -> None:
    """`suld.b` takes bytes in x and rows in y; `.zero` reads zero outside, `.clamp` the nearest (PTX 9.7.11.1)."""
    image = np.random.default_rng(20).integers(0, 1 << 16, (3, 8), np.uint16)
    size = int(type[1:]) // 8
    x, y = np.meshgrid(np.arange(-2, 20) * size, np.arange(-1, 5))
    inputs = [x.ravel().astype(np.int32), y.ravel().astype(np.int32)]
    raw = image.view(np.uint8).reshape(3, 16)
    for clamp in ("zero", "clamp"):
        text = f"suld.b.2d.{type}.{clamp} %{letter}1, [%t, {{%r10, %r11}}];"
        found = run(text, ptxvm.Surface(image), inputs, "f16" if letter == "h" else "u32", results=1)[:, 0]
        for lane, (column, row) in enumerate(zip(*inputs, strict=True)):
            inside = 0 <= column <= 16 - size and 0 <= row < 3
            first, y = min(max(column, 0), 16 - size), min(max(row, 0), 2)
            wanted = int.from_bytes(raw[y, first : first + size].tobytes(), "little")
            assert found[lane] == (wanted if inside or clamp == "clamp" else 0)


def test_surface_trap() -> None:
    """`.trap` faults outside of the surface, and says where."""
    surface = ptxvm.Surface(np.zeros((2, 4), np.uint32))
    with pytest.raises(ptxvm.Fault, match=r"\(16, 0, 0\)") as fault:
        run("suld.b.2d.b32.trap %r1, [%t, {%r10, 0}];", surface, [np.array([0, 16], np.int32)], "u32", results=1)
    assert fault.value.kind == "surface-out-of-bounds"
    with pytest.raises(ptxvm.Fault, match="multiple of the 4 bytes"):
        run("suld.b.2d.b32.zero %r1, [%t, {%r10, 0}];", surface, [np.array([2], np.int32)], "u32", results=1)


def test_surface_vectors_and_layers() -> None:
    """`.v4` moves 16 bytes; the first coordinate of an array is the layer."""
    image = np.zeros((3, 2, 8), np.uint32)
    layer = np.array([0, 1, 2], np.int32)
    run(
        "add.u32 %r1, %r10, 1; sust.b.a2d.v4.b32.trap [%t, {%r10, 16, 1, 0}], {%r1, 2, 3, 4};",
        ptxvm.Surface(image, layered=True), [layer], "u32", results=1,
    )  # fmt: skip
    wanted = np.zeros_like(image)
    wanted[:, 1, 4:] = [[n + 1, 2, 3, 4] for n in range(3)]
    np.testing.assert_array_equal(image, wanted)


def test_stores_outside() -> None:
    """`.zero` drops stores, `.clamp` takes them to the edge (PTX 9.7.11.2)."""
    image = np.zeros(4, np.uint32)
    x = np.array([-4, 4, 64], np.int32)
    run("sust.b.1d.b32.zero [%t, {%r10}], 7; mov.u32 %r1, 0;", ptxvm.Surface(image), [x], "u32", results=1)
    assert image.tolist() == [0, 7, 0, 0]
    run("sust.b.1d.b32.clamp [%t, {%r10}], 9; mov.u32 %r1, 0;", ptxvm.Surface(image), [x], "u32", results=1)
    assert image.tolist() == [9, 9, 0, 9]


def test_formatted_stores() -> None:
    """`sust.p` counts elements, and converts to the format of the surface: floats round, integers saturate."""
    halves = np.zeros((4, 2), np.float16)
    x = np.arange(4, dtype=np.int32)
    values = np.array([1.0005, -2, 0.1, 65520], np.float32)
    run("sust.p.1d.v4.b32.trap [%t, {%r10}], {%f11, %f11, %f11, %f11}; mov.u32 %r1, 0;",
        ptxvm.Surface(halves, channels=2), [x, values], "u32", results=1)  # fmt: skip
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(halves, np.stack([values.astype(np.float16)] * 2, axis=1))
    small = np.zeros(4, np.int8)
    wide = np.array([-1, 300, -300, 5], np.int32)
    run("sust.p.1d.b32.trap [%t, {%r10}], %r11; mov.u32 %r1, 0;", ptxvm.Surface(small), [x, wide], "u32", results=1)
    assert small.tolist() == [-1, 127, -128, 5]


@pytest.mark.parametrize(
    ("op", "type", "dtype", "wanted"),
    [
        ("add", "u32", np.uint32, 10 + sum(range(8))),
        ("max", "s32", np.int32, 10),
        ("min", "s32", np.int32, -3),
        ("min", "u32", np.uint32, 0),
        ("and", "b32", np.uint32, 0),
        ("or", "b32", np.uint32, 15),
    ],
)
def test_reductions(op: str, type: str, dtype: Any, wanted: int) -> None:
    """`sured.b` takes every lane's value."""
    image = np.full(2, 10, dtype)
    value = (np.arange(8) - (3 if dtype is np.int32 else 0)).astype(dtype)
    run(f"sured.b.{op}.1d.{type}.trap [%t, {{4}}], %r10; mov.u32 %r1, 0;", ptxvm.Surface(image), [value], "u32", results=1)
    assert image.tolist() == [10, wanted]


def test_formatted_reduction_is_signed_as_the_surface() -> None:
    """`sured.p.b32` compares as the format of the surface says (PTX 9.7.11.3)."""
    for dtype, wanted in ((np.int32, 5), (np.uint32, 0xFFFF_FFFF)):
        image = np.array([0, 5], dtype)
        run("sured.p.max.1d.b32.trap [%t, {1}], %r10; mov.u32 %r1, 0;", ptxvm.Surface(image), [np.array([-1], np.int32)],
            "u32", results=1)  # fmt: skip
        assert int(image[1]) == wanted


# ── independent mode, opaque variables and parameters ───────────────────────────────────

INDEPENDENT = """
    .version 6.4
    .target sm_75, texmode_independent
    .address_size 64
    .global .texref picture;
    .global .samplerref smooth = { addr_mode_0 = clamp_to_border, filter_mode = linear, force_unnormalized_coords = 1 };
    .visible .entry k(.param .u64 out, .param .texref given, .param .samplerref rough) {
        .reg .b64 %o, %t, %s;
        .reg .f32 %f<20>;
        .reg .b32 %r<8>;
        ld.param.u64 %o, [out];
        tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [picture, smooth, {0f00000000}];
        tex.1d.v4.f32.f32 {%f5, %f6, %f7, %f8}, [given, rough, {0f3f400000}];
        mov.u64 %t, picture;
        mov.u64 %s, smooth;
        tex.1d.v4.f32.f32 {%f9, %f10, %f11, %f12}, [%t, %s, {0f3f800000}];
        txq.filter_mode.b32 %r1, [smooth];
        txq.addr_mode_0.b32 %r2, [smooth];
        txq.force_unnormalized_coords.b32 %r3, [smooth];
        txq.width.b32 %r4, [given];
        st.global.v4.f32 [%o], {%f1, %f5, %f9, %f10};
        st.global.v4.u32 [%o+16], {%r1, %r2, %r3, %r4};
        ret;
    }
    """


def test_samplers_apart_from_textures() -> None:
    """In independent mode a sampler decides: one made by its initialiser (PTX 5.3), or a `ptxvm.Sampler`."""
    module = ptxvm.load(INDEPENDENT)
    module.bind("picture", ptxvm.Texture(np.array([8, 16], np.float32)))
    given = ptxvm.Texture(np.array([1, 2, 3, 4], np.float32))
    out = np.zeros(8, np.float32)
    module.kernel().launch(args=[out, given, ptxvm.Sampler(normalized=True)])
    assert out[:4].tolist() == [4, 4, 12, 0]  # half of the border; 0.75 of 4 elements; between both
    assert out[4:].view(np.uint32).tolist() == [1, 4, 1, 4]  # linear, clamp_to_border, true, the width


def test_nothing_is_bound() -> None:
    """A variable that nothing is bound to faults by its name."""
    module = ptxvm.load(INDEPENDENT)
    texture = ptxvm.Texture(np.zeros(4, np.float32))
    with pytest.raises(ptxvm.Fault, match="`picture`") as fault:
        module.kernel().launch(args=[np.zeros(8, np.float32), texture, ptxvm.Sampler()])
    assert fault.value.kind == "unbound"
    with pytest.raises(TypeError, match="samplerref"):
        module.kernel().launch(args=[np.zeros(8, np.float32), texture, texture])
    with pytest.raises(KeyError, match="picture"):
        module.bind("nosuch", texture)


# ── real code ───────────────────────────────────────────────────────────────────────────


@cache
def nvcc() -> ptxvm.Module:
    """What nvcc made of `tex1D`, `tex2DLod`, `surf2Dread` and so on."""
    if not CORPUS.is_file():
        pytest.skip("the reference data is missing")
    with tarfile.open(CORPUS) as archive:
        file = archive.extractfile("nvcc/tex_sm_80.ptx")
        assert file is not None
        return ptxvm.load(file.read().decode())


def test_texture_functions_of_cuda() -> None:
    """Each function looks up the same volume, as its geometry sees it."""
    volume = picture(4, 5, 6)
    sums, floats, integers = np.zeros(2, np.float32), np.zeros(12, np.float32), np.zeros(12, np.uint32)
    nvcc().kernel("tex_").launch(1, 2, [ptxvm.Texture(volume), sums, floats, integers])
    corner = volume[0, 0, 0]
    for lane in range(2):
        first = volume[0, 0]
        cubes = volume[0, 2, 3] + volume[3, 2, 3]  # the middle of a face; there are no 19 layers but 4
        layers = volume[2, 0, 0] * 2
        wanted = first[lane] + first[0] + corner * 6 + layers + cubes  # 6: the 2d, 3d and level look-ups at (0.1, 0.2, 0.3)
        assert sums[lane] == pytest.approx(wanted)
    assert floats[0:4].tolist() == [corner, 0, 0, 1]
    assert floats[8:12].tolist() == [0, 0, 0, 0]  # there is no blue
    assert integers[0:4].view(np.float32).tolist() == [volume[0, 0, 0], 0, 0, 1]
    assert integers[8:12].view(np.float32).tolist() == [volume[0, 2, 1], 0, 0, 1]


def test_surface_functions_of_cuda() -> None:
    """Loads and stores of every geometry, on a volume."""
    volume = picture(3, 5, 64)
    before = volume.copy()
    sums, vectors = np.zeros(4, np.float32), np.zeros((4, 4), np.float32)
    nvcc().kernel("surf_").launch(1, 4, [ptxvm.Surface(volume), sums, vectors])
    lanes = np.arange(4)
    np.testing.assert_array_equal(sums, before[0, 1, :4] + before[0, 0, :4] + 2 * before[2, 1, :4])
    np.testing.assert_array_equal(vectors, before[0, 3, :16].reshape(4, 4))
    np.testing.assert_array_equal(volume[0, 2, :4], sums)
    np.testing.assert_array_equal(volume[0, 0, :4], [3.0] * 4)
    np.testing.assert_array_equal(volume[1, 1].view(np.uint16)[:4], lanes)
    np.testing.assert_array_equal(volume[0, 4, :16], before[0, 3, :16])
    assert volume[2, 0].view(np.uint8)[:4].tolist() == [1, 1, 1, 1]


def test_queries_of_cuda() -> None:
    """The sizes are right; the store behind the last column then traps."""
    sizes = np.zeros(3, np.uint32)
    texture, surface = ptxvm.Texture(np.zeros((5, 7), np.float32)), ptxvm.Surface(np.zeros((8, 9), np.uint32))
    with pytest.raises(ptxvm.Fault) as fault:
        nvcc().kernel("texq").launch(args=[texture, surface, sizes])
    assert fault.value.kind == "surface-out-of-bounds"
    assert sizes.tolist() == [7, 5, 9]

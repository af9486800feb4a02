"""Look-ups by compiled code against the interpreter, whose texture unit `test_texture_exact.py` holds to the formulas."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm
from ptxvm.machine import texture_unit

THREADS, CTAS = 128, 4
COUNT = THREADS * CTAS
KERNEL = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 texture, .param .u64 at, .param .u64 out, .param .u32 step) {{
  .reg .b32 %r<8>; .reg .b64 %d<8>; .reg .f32 %f<5>; .reg .b32 %c<5>; .reg .b32 %o<5>;
  ld.param.u64 %d0, [texture]; ld.param.u64 %d1, [at]; ld.param.u64 %d2, [out]; ld.param.u32 %r5, [step];
  .reg .f32 %lod, %depth; .reg .b32 %level, %e0, %e1;
  mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mad.lo.u32 %r3, %r1, %r2, %r0;
  mul.wide.u32 %d3, %r3, 16; add.u64 %d4, %d1, %d3; add.u64 %d5, %d2, %d3;
  ld.global.v4.b32 {{%c0, %c1, %c2, %c3}}, [%d4];
  mul.lo.u32 %r6, %r3, 37; rem.u32 %r6, %r6, 101; cvt.rn.f32.u32 %lod, %r6; fma.rn.f32 %lod, %lod, 0f3D4CCCCD, 0fBF000000;
  rem.u32 %level, %r3, 7; sub.u32 %level, %level, 2; mul.f32 %depth, %lod, 0f3F000000;
  rem.u32 %e0, %r3, 5; sub.u32 %e0, %e0, 2; rem.u32 %e1, %r3, 16; sub.u32 %e1, %e1, 8;
  {tex}.{geometry}.v4.{result}.{coordinate} {{%o0, %o1, %o2, %o3}}, [%d0, {given}]{more};
  st.global.v4.b32 [%d5], {{%o0, %o1, %o2, %o3}};
  ret;
}}
"""
GIVEN = {"1d": "{%c0}", "2d": "{%c0, %c1}", "3d": "{%c0, %c1, %c2, %c2}", "a1d": "{%c3, %c0}", "a2d": "{%c3, %c0, %c1, %c1}"}
SIZES = {"1d": (17,), "2d": (9, 13), "3d": (5, 6, 7), "a1d": (3, 17), "a2d": (3, 9, 13), "cube": (6, 8, 8), "acube": (18, 8, 8)}
CUBES = {"cube": "{%c0, %c1, %c2, %c2}", "acube": "{%c3, %c0, %c1, %c2}"}
OFFSETS = {"1d": "{%e0}", "2d": "{%e0, %e1}", "3d": "{%e0, %e1, %e0, %e0}", "a1d": "{%e0}", "a2d": "{%e0, %e1}"}
KINDS = [
    ("float32", "element", 1), ("float32", "element", 4), ("uint8", "normalized_float", 4), ("int8", "normalized_float", 2),
    ("int16", "normalized_float", 1), ("uint16", "element", 1), ("int32", "element", 2), ("uint32", "element", 1),
    ("float16", "element", 2),
]  # fmt: skip


def image(rng: np.random.Generator, geometry: str, dtype: str, channels: int) -> np.ndarray:
    shape = SIZES[geometry] + ((channels,) if channels > 1 else ())
    if dtype.startswith("float"):
        values = rng.standard_normal(shape, np.float32).astype(dtype)
        values.ravel()[::11] = [np.nan, np.inf, -0.0][geometry.count("2") % 3]
        return values
    return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)


def points(rng: np.random.Generator, *, integers: bool, normalized: bool) -> np.ndarray:
    """Coordinates inside, at the edges, far outside, and no numbers; the last is a layer."""
    at = rng.uniform(-1.5, 2.5, (COUNT, 4)).astype(np.float32) * np.float32(1 if normalized else 9)
    at[:40] = rng.choice(np.array([0, 1, -1, 0.5, np.nan, np.inf, -np.inf, 3e9, -3e38, 1e-40], np.float32), (40, 4))
    words = rng.integers(-4, 20, (COUNT, 4), np.int32).view(np.uint32) if integers else at.view(np.uint32)
    words[:, 3] = rng.choice(np.array([0, 1, 2, 3, 2**32 - 1], np.uint32), COUNT)
    return words


@pytest.mark.sampled(8)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(map(str, kind)))
@pytest.mark.parametrize("filter", ["nearest", "linear"])
@pytest.mark.parametrize(("address", "normalized"), [("clamp", False), ("border", False), ("wrap", True), ("mirror", True)])
@pytest.mark.parametrize("geometry", GIVEN)
def test_floating_point_coordinates(geometry, address, normalized, filter, kind, rng, monkeypatch):
    dtype, read, channels = kind
    is_float = read != "element" or dtype.startswith("float")
    if filter == "linear" and not is_float:
        pytest.skip("integers are not interpolated")
    texture = ptxvm.Texture(
        image(rng, geometry, dtype, channels), filter, address, normalized=normalized, read=read, channels=channels,
        layered=geometry.startswith("a"), border=(0.25, -2, 3, 4),
    )  # fmt: skip
    looked_up(geometry, "f32" if is_float else "u32", texture, points(rng, integers=False, normalized=normalized), monkeypatch)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(map(str, kind)))
@pytest.mark.parametrize("address", ["clamp", "border"])
@pytest.mark.parametrize("geometry", GIVEN)
def test_integer_coordinates(geometry, address, kind, rng, monkeypatch):
    dtype, read, channels = kind
    is_float = read != "element" or dtype.startswith("float")
    texture = ptxvm.Texture(
        image(rng, geometry, dtype, channels), "linear" if is_float else "nearest", address, read=read, channels=channels,
        layered=geometry.startswith("a"), border=(1, 2, 3, 4),
    )  # fmt: skip
    looked_up(geometry, "f32" if is_float else "s32", texture, points(rng, integers=True, normalized=False), monkeypatch)


def text_of(
    geometry: str, result: str, coordinate: str = "f32", tex: str = "tex", more: str = "", given: str = "", whole: str = KERNEL
) -> str:
    given = given or {**GIVEN, **CUBES}[geometry]
    return whole.format(geometry=geometry, result=result, coordinate=coordinate, given=given, tex=tex, more=more)


def looked_up(
    geometry: str, result: str, texture: ptxvm.Texture, at: np.ndarray, monkeypatch: pytest.MonkeyPatch, *, least: int = 3,
    **how: str,
) -> None:  # fmt: skip
    """Both engines give the same bits, `least` different ones; few warps ask the host: the first of each of its threads."""
    coordinate = "s32" if (at[:, 0].view(np.int32) < 20).all() and (at[:, 0].view(np.int32) > -5).all() else "f32"
    kernel = ptxvm.load(text_of(geometry, result, coordinate, **how)).kernel()
    asked, found = [], []
    real = texture_unit.one_texture
    monkeypatch.setattr(texture_unit, "one_texture", lambda *given: asked.append(1) or real(*given))
    for engine in ("interp", "jit"):
        asked.clear()
        out = np.zeros((COUNT, 4), np.uint32)
        kernel.launch(CTAS, THREADS, [texture, at, out, np.uint32(0)], engine=engine)
        found.append(out)
    assert (found[0] == found[1]).all()
    assert len(np.unique(found[0])) >= least
    assert 1 <= len(asked) <= COUNT // 32 // 2


MIPMAPS = [("nearest", 0, (0, np.inf)), ("linear", 0, (0, np.inf)), ("linear", 0.3, (0.5, 2.75)), ("nearest", -1, (1, 2))]


def levels(rng: np.random.Generator, geometry: str, dtype: str, channels: int) -> list[np.ndarray]:
    """The image, and levels of half its size, down to an element."""
    layered, found = geometry in ("a1d", "a2d", "cube", "acube"), [image(rng, geometry, dtype, channels)]
    while any(n > 1 for n in found[-1].shape[layered : len(SIZES[geometry])]):
        size = found[-1].shape[: len(SIZES[geometry])]
        size = size[:layered] + tuple(max(1, n // 2) for n in size[layered:])
        spread = size + found[-1].shape[len(size) :]
        found.append(rng.permutation(np.resize(found[0].ravel(), np.prod(spread))).reshape(spread))
    return found


@pytest.mark.sampled(16)
@pytest.mark.parametrize("kind", [KINDS[n] for n in (0, 2, 5, 8)], ids=lambda kind: "-".join(map(str, kind)))
@pytest.mark.parametrize("filter", ["nearest", "linear"])
@pytest.mark.parametrize("mipmap", MIPMAPS, ids=str)
@pytest.mark.parametrize("coordinate", ["f32", "s32"])
@pytest.mark.parametrize("geometry", [*GIVEN, *CUBES])
def test_levels_of_detail(geometry, coordinate, mipmap, filter, kind, rng, monkeypatch):
    """An instruction's own level of detail; some are below 0 or beyond the last."""
    dtype, read, channels = kind
    is_float, integers = read != "element" or dtype.startswith("float"), coordinate == "s32"
    if (filter == "linear" and not is_float) or (geometry in CUBES and integers):
        pytest.skip("integers are not interpolated, and cubes have directions")
    first, *further = levels(rng, geometry, dtype, channels)
    texture = ptxvm.Texture(
        first, filter, "clamp" if integers else "mirror", normalized=not integers, read=read, channels=channels,
        layered=geometry in ("a1d", "a2d", "acube"), cubemap=geometry in CUBES, mipmaps=further, mipmap_filter=mipmap[0],
        mipmap_bias=mipmap[1], mipmap_range=mipmap[2],
    )  # fmt: skip
    at = points(rng, integers=integers, normalized=True)
    result, more = ("f32" if is_float else "s32"), (", %level" if integers else ", %lod")
    looked_up(geometry, result, texture, at, monkeypatch, tex="tex.level", more=more)
    if mipmap[2][0] in (0, 1):  # or a look-up without a level is between two, which the host does
        looked_up(geometry, result, texture, at, monkeypatch)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("mipmap", MIPMAPS, ids=str)
@pytest.mark.parametrize("geometry", [*GIVEN, *CUBES])
def test_gradients(geometry, mipmap, normalized, rng, monkeypatch):
    """The level of detail comes from the distances of neighbours; some are 0, some no numbers, some far."""
    first, *further = levels(rng, geometry, "float32", 1)
    texture = ptxvm.Texture(
        first, "linear", "border", normalized=normalized, layered=geometry in ("a1d", "a2d", "acube"),
        cubemap=geometry in CUBES, mipmaps=further, mipmap_filter=mipmap[0], mipmap_bias=mipmap[1], mipmap_range=mipmap[2],
    )  # fmt: skip
    at = points(rng, integers=False, normalized=normalized)
    lengths = "mul.f32 %lod, %lod, 0f3E4CCCCD; setp.eq.u32 %p, %r6, 9; selp.f32 %lod, 0f7FC00000, %lod, %p;"
    lengths += "setp.eq.u32 %p, %r6, 10; selp.f32 %lod, 0f7F800000, %lod, %p; selp.f32 %depth, 0f00000000, %depth, %p;"
    whole = KERNEL.replace("  {tex}", f"  .reg .pred %p; {lengths}\n  {{tex}}")
    one = {1: "{%lod}", 2: "{%lod, %depth}", 3: "{%lod, %depth, %lod, %lod}"}
    two = {1: "{%depth}", 2: "{%depth, %depth}", 3: "{%depth, %depth, %depth, %depth}"}
    directions = 3 if geometry in ("3d", *CUBES) else int(geometry[-2])
    more = f", {one[directions]}, {two[directions]}"
    looked_up(geometry, "f32", texture, at, monkeypatch, tex="tex.grad", more=more, whole=whole)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("coordinate", ["f32", "s32"])
@pytest.mark.parametrize("address", ["clamp", "border", "wrap", "mirror"])
@pytest.mark.parametrize("geometry", GIVEN)
def test_offsets(geometry, address, coordinate, rng, monkeypatch):
    if coordinate == "s32" and address in ("wrap", "mirror"):
        pytest.skip("the host does it")
    normalized = address in ("wrap", "mirror")
    texture = ptxvm.Texture(
        image(rng, geometry, "float32", 1), "linear", address, normalized=normalized, layered=geometry.startswith("a"),
        border=(5, 6, 7, 8),
    )  # fmt: skip
    at = points(rng, integers=coordinate == "s32", normalized=normalized)
    looked_up(geometry, "f32", texture, at, monkeypatch, more=f", {OFFSETS[geometry]}")


@pytest.mark.parametrize("kind", [KINDS[n] for n in (1, 2, 5)], ids=lambda kind: "-".join(map(str, kind)))
@pytest.mark.parametrize("filter", ["nearest", "linear"])
@pytest.mark.parametrize("geometry", CUBES)
def test_cubes(geometry, filter, kind, rng, monkeypatch):
    dtype, read, channels = kind
    is_float = read != "element" or dtype.startswith("float")
    if filter == "linear" and not is_float:
        pytest.skip("integers are not interpolated")
    texture = ptxvm.Texture(
        image(rng, geometry, dtype, channels), filter, read=read, channels=channels, cubemap=True, layered=geometry == "acube"
    )
    at = points(rng, integers=False, normalized=True)
    at[40:90, :3] = rng.choice(np.array([-1, 0, 1], np.float32), (50, 3)).view(np.uint32)  # edges, corners and no direction
    looked_up(geometry, "f32" if is_float else "u32", texture, at, monkeypatch)
    looked_up("2d", "f32" if is_float else "u32", texture, at, monkeypatch)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", [KINDS[n] for n in (0, 2, 6)], ids=lambda kind: "-".join(map(str, kind)))
@pytest.mark.parametrize("component", "rgba")
@pytest.mark.parametrize("geometry", ["2d", "a2d", *CUBES])
def test_gathers_of_a_component(geometry, component, kind, rng, monkeypatch):
    """`tld4`: one component of the four elements around the point."""
    dtype, read, channels = kind
    is_float = read != "element" or dtype.startswith("float")
    texture = ptxvm.Texture(
        image(rng, geometry, dtype, channels), address="wrap", normalized=True, read=read, channels=channels,
        layered=geometry.startswith("a"), cubemap=geometry in CUBES,
    )  # fmt: skip
    at = points(rng, integers=False, normalized=True)
    at[:, 3] = rng.integers(0, 3, COUNT)
    if component in "rg"[:channels] or channels == 4:
        looked_up(geometry, "f32" if is_float else "s32", texture, at, monkeypatch, tex=f"tld4.{component}")
        if geometry in GIVEN:
            more = f", {OFFSETS[geometry]}"
            looked_up(geometry, "f32" if is_float else "s32", texture, at, monkeypatch, tex=f"tld4.{component}", more=more)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("compare", ["lt", "le", "gt", "ge", "eq", "ne"])
@pytest.mark.parametrize("filter", ["nearest", "linear"])
@pytest.mark.parametrize("geometry", ["2d", "a2d", "cube"])
def test_comparisons_with_a_depth(geometry, filter, compare, rng, monkeypatch):
    first, *further = levels(rng, geometry, "float32", 1)
    texture = ptxvm.Texture(
        first, filter, normalized=True, mipmaps=further, compare=compare, layered=geometry == "a2d", cubemap=geometry == "cube",
        mipmap_filter="linear",
    )  # fmt: skip
    texture.levels[0].texels[..., ::3, 0] = np.float32(0.125)  # as some depths are
    at = points(rng, integers=False, normalized=True)
    kernel = {"more": ", %depth"}
    for how in (kernel, {"tex": "tex.level", "more": ", %lod, %depth"}):
        looked_up(geometry, "f32", texture, at, monkeypatch, least=1, **how)


@pytest.mark.parametrize("filter", ["nearest", "linear"])
@pytest.mark.parametrize("channels", [1, 4])
def test_colours(channels, filter, rng, monkeypatch):
    """sRGB: three components are taken to linear light, the fourth is not."""
    texture = ptxvm.Texture(
        image(rng, "2d", "uint8", channels),
        filter,
        "wrap",
        normalized=True,
        read="normalized_float",
        channels=channels,
        srgb=True,
    )
    looked_up("2d", "f32", texture, points(rng, integers=False, normalized=True), monkeypatch)


@pytest.mark.parametrize("geometry", ["2dms", "a2dms"])
def test_samples(geometry, rng, monkeypatch):
    layered = geometry.startswith("a")
    array = rng.integers(0, 1 << 32, ((3,) if layered else ()) + (4, 9, 13), np.uint32)
    texture = ptxvm.Texture(array, layered=layered, samples=4)
    at = points(rng, integers=True, normalized=False)
    at[:, 2] = rng.integers(0, 5, COUNT)
    given = "{%c3, %c2, %c0, %c1}" if layered else "{%c2, %c0, %c1, %c1}"
    looked_up(geometry, "u32", texture, at, monkeypatch, given=given)


def test_textures_take_turns(rng):
    """Each launch has its own textures, and lanes that have different ones ask the host."""
    text = text_of("2d", "f32")
    kernel = ptxvm.load(text).kernel()
    at = points(rng, integers=False, normalized=False)
    at[:, :2] = rng.integers(0, 9, (COUNT, 2)).astype(np.float32).view(np.uint32)
    for _ in range(3):
        array = rng.standard_normal((9, 13), np.float32)
        out = np.zeros((COUNT, 4), np.uint32)
        kernel.launch(CTAS, THREADS, [ptxvm.Texture(array), at, out, np.uint32(0)], engine="jit")
        x, y = (at[:, n].view(np.float32).astype(int) for n in (0, 1))
        assert (out[:, 0].view(np.float32) == array[y, x]).all()


@pytest.mark.parametrize("geometry", GIVEN)
def test_samplers_of_their_own(geometry, rng):
    """In independent mode: first one that interpolates, then one that does not, on the same texture."""
    text = KERNEL.replace("sm_80", "sm_80, texmode_independent").replace(".param .u32 step", ".param .u64 sampler")
    text = text.replace("%r5, [step]", "%r5, [sampler]; .reg .b64 %s; ld.param.u64 %s, [sampler]").replace(
        "[%d0, ", "[%d0, %s, "
    )
    kernel = ptxvm.load(text_of(geometry, "f32", whole=text)).kernel()
    at = points(rng, integers=False, normalized=True)
    texture = ptxvm.Texture(image(rng, geometry, "uint8", 4), read="normalized_float", channels=4, layered=geometry[0] == "a")
    for sampler in (ptxvm.Sampler("linear", "wrap"), ptxvm.Sampler("nearest", "mirror")):
        found = []
        for engine in ("interp", "jit"):
            out = np.zeros((COUNT, 4), np.uint32)
            kernel.launch(CTAS, THREADS, [texture, at, out, sampler], engine=engine)
            found.append(out)
        assert found[0].any()
        assert (found[0] == found[1]).all()


def test_a_handle_of_nothing_is_a_fault_behind_good_ones(rng):
    """The host refuses it, and compiled code takes it for no plan, which is zeros."""
    text = text_of("2d", "f32")
    chosen = "setp.eq.u32 %p, %r3, 300; selp.b64 %d0, 0, %d0, %p;\n  tex."
    kernel = ptxvm.load(text.replace("tex.", chosen, 1).replace(".reg .b32 %r<8>;", ".reg .pred %p; .reg .b32 %r<8>;")).kernel()
    at = points(rng, integers=False, normalized=False)
    for _ in range(16):  # textures whose handles follow each other: their plans stand in different places
        texture = ptxvm.Texture(np.ones((9, 13), np.float32))
        with pytest.raises(ptxvm.Fault, match="invalid-handle") as fault:
            kernel.launch(CTAS, THREADS, [texture, at, np.zeros((COUNT, 4), np.uint32), np.uint32(0)], engine="jit", threads=1)
        assert (fault.value.place.cta, fault.value.place.thread) == ((2, 0, 0), (44, 0, 0))

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
  mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mad.lo.u32 %r3, %r1, %r2, %r0;
  mul.wide.u32 %d3, %r3, 16; add.u64 %d4, %d1, %d3; add.u64 %d5, %d2, %d3;
  ld.global.v4.b32 {{%c0, %c1, %c2, %c3}}, [%d4];
  tex.{geometry}.v4.{result}.{coordinate} {{%o0, %o1, %o2, %o3}}, [%d0, {given}];
  st.global.v4.b32 [%d5], {{%o0, %o1, %o2, %o3}};
  ret;
}}
"""
GIVEN = {"1d": "{%c0}", "2d": "{%c0, %c1}", "3d": "{%c0, %c1, %c2, %c2}", "a1d": "{%c3, %c0}", "a2d": "{%c3, %c0, %c1, %c1}"}
SIZES = {"1d": (17,), "2d": (9, 13), "3d": (5, 6, 7), "a1d": (3, 17), "a2d": (3, 9, 13)}
KINDS = [
    ("float32", "element", 1), ("float32", "element", 4), ("uint8", "normalized_float", 4), ("int8", "normalized_float", 2),
    ("int16", "normalized_float", 1), ("uint16", "element", 1), ("int32", "element", 2), ("uint32", "element", 1),
]  # fmt: skip


def image(rng: np.random.Generator, geometry: str, dtype: str, channels: int) -> np.ndarray:
    shape = SIZES[geometry] + ((channels,) if channels > 1 else ())
    if dtype == "float32":
        values = rng.standard_normal(shape, np.float32)
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


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(map(str, kind)))
@pytest.mark.parametrize("filter", ["nearest", "linear"])
@pytest.mark.parametrize(("address", "normalized"), [("clamp", False), ("border", False), ("wrap", True), ("mirror", True)])
@pytest.mark.parametrize("geometry", GIVEN)
def test_floating_point_coordinates(geometry, address, normalized, filter, kind, rng, monkeypatch):
    dtype, read, channels = kind
    is_float = read != "element" or dtype == "float32"
    if filter == "linear" and not is_float:
        pytest.skip("integers are not interpolated")
    texture = ptxvm.Texture(
        image(rng, geometry, dtype, channels), filter, address, normalized=normalized, read=read, channels=channels,
        layered=geometry.startswith("a"), border=(0.25, -2, 3, 4),
    )  # fmt: skip
    looked_up(geometry, "f32" if is_float else "u32", texture, points(rng, integers=False, normalized=normalized), monkeypatch)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(map(str, kind)))
@pytest.mark.parametrize("address", ["clamp", "border"])
@pytest.mark.parametrize("geometry", GIVEN)
def test_integer_coordinates(geometry, address, kind, rng, monkeypatch):
    dtype, read, channels = kind
    is_float = read != "element" or dtype == "float32"
    texture = ptxvm.Texture(
        image(rng, geometry, dtype, channels), "linear" if is_float else "nearest", address, read=read, channels=channels,
        layered=geometry.startswith("a"), border=(1, 2, 3, 4),
    )  # fmt: skip
    looked_up(geometry, "f32" if is_float else "s32", texture, points(rng, integers=True, normalized=False), monkeypatch)


def looked_up(geometry: str, result: str, texture: ptxvm.Texture, at: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both engines give the same bits, and of all warps few ask the host: the first of each of its threads."""
    coordinate = "s32" if (at[:, 0].view(np.int32) < 20).all() and (at[:, 0].view(np.int32) > -5).all() else "f32"
    kernel = ptxvm.load(KERNEL.format(geometry=geometry, result=result, coordinate=coordinate, given=GIVEN[geometry])).kernel()
    asked, found = [], []
    real = texture_unit.one_texture
    monkeypatch.setattr(texture_unit, "one_texture", lambda *given: asked.append(1) or real(*given))
    for engine in ("interp", "jit"):
        asked.clear()
        out = np.zeros((COUNT, 4), np.uint32)
        kernel.launch(CTAS, THREADS, [texture, at, out, np.uint32(0)], engine=engine)
        found.append(out)
    assert (found[0] == found[1]).all()
    assert 1 <= len(asked) <= COUNT // 32 // 2


def test_textures_take_turns(rng):
    """Each launch has its own textures, and lanes that have different ones ask the host."""
    text = KERNEL.format(geometry="2d", result="f32", coordinate="f32", given=GIVEN["2d"])
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
    kernel = ptxvm.load(text.format(geometry=geometry, result="f32", coordinate="f32", given=GIVEN[geometry])).kernel()
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
    text = KERNEL.format(geometry="2d", result="f32", coordinate="f32", given=GIVEN["2d"])
    chosen = "setp.eq.u32 %p, %r3, 300; selp.b64 %d0, 0, %d0, %p;\n  tex."
    kernel = ptxvm.load(text.replace("tex.", chosen, 1).replace(".reg .b32 %r<8>;", ".reg .pred %p; .reg .b32 %r<8>;")).kernel()
    at = points(rng, integers=False, normalized=False)
    for _ in range(16):  # textures whose handles follow each other: their plans stand in different places
        texture = ptxvm.Texture(np.ones((9, 13), np.float32))
        with pytest.raises(ptxvm.Fault, match="invalid-handle") as fault:
            kernel.launch(CTAS, THREADS, [texture, at, np.zeros((COUNT, 4), np.uint32), np.uint32(0)], engine="jit", threads=1)
        assert (fault.value.place.cta, fault.value.place.thread) == ((2, 0, 0), (44, 0, 0))

"""Surfaces in compiled code against the interpreter, which the tests of textures and surfaces hold to NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm
from ptxvm.machine import texture_surface

THREADS, CTAS = 128, 4
COUNT = THREADS * CTAS
KERNEL = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 surface, .param .u64 at, .param .u64 out, .param .u32 step) {{
  .reg .b32 %r<8>; .reg .b64 %d<8>; .reg .b32 %c<5>; .reg .b{register} %v<5>; .reg .b64 %w;
  ld.param.u64 %d0, [surface]; ld.param.u64 %d1, [at]; ld.param.u64 %d2, [out];
  mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mad.lo.u32 %r3, %r1, %r2, %r0;
  mul.wide.u32 %d3, %r3, 16; add.u64 %d4, %d1, %d3; mul.wide.u32 %d5, %r3, 32; add.u64 %d5, %d2, %d5;
  ld.global.v4.b32 {{%c0, %c1, %c2, %c3}}, [%d4];
{body}
  ret;
}}
"""
GIVEN = {"1d": "{%c0}", "2d": "{%c0, %c1}", "3d": "{%c0, %c1, %c2, %c2}", "a1d": "{%c3, %c0}", "a2d": "{%c3, %c0, %c1, %c1}"}
SIZES = {"1d": (16,), "2d": (9, 16), "3d": (5, 6, 16), "a1d": (3, 16), "a2d": (3, 9, 16)}
FORMS = [(8, 1), (16, 2), (32, 1), (32, 4), (64, 1), (64, 2)]
EACH = (
    pytest.mark.parametrize(("bits", "count"), FORMS),
    pytest.mark.parametrize("clamp", ["clamp", "zero", "trap"]),
    pytest.mark.parametrize("geometry", GIVEN),
)


def kernel(geometry: str, clamp: str, bits: int, count: int, *, stores: bool) -> ptxvm.Kernel:
    registers = [f"%v{n}" for n in range(count)]
    vector, size = (f".v{count}" if count > 1 else ""), bits // 8
    values = "{" + ", ".join(registers) + "}"
    if stores:
        loads = [f"  ld.global.b{bits} {each}, [%d5+{size * n}];" for n, each in enumerate(registers)]
        body = [*loads, f"  sust.b.{geometry}{vector}.b{bits}.{clamp} [%d0, {GIVEN[geometry]}], {values};"]
    else:
        store = [f"  st.global.b{bits} [%d5+{size * n}], {each};" for n, each in enumerate(registers)]
        body = [f"  suld.b.{geometry}{vector}.b{bits}.{clamp} {values}, [%d0, {GIVEN[geometry]}];", *store]
    return ptxvm.load(KERNEL.format(register=max(bits, 16), body="\n".join(body))).kernel()


def points(rng: np.random.Generator, geometry: str, step: int, *, inside: bool) -> np.ndarray:
    """Coordinates; the last is a layer.  Of two threads none has the same place, so that the order of stores is none."""
    at = np.zeros((COUNT, 4), np.int32)
    size = SIZES[geometry][::-1]
    low, high = (0, 0) if inside else (-3, 5)
    at[:, 0] = step * rng.integers(low, 64 // step + high, COUNT)
    for n in (1, 2):
        at[:, n] = rng.integers(low, (size[n] if n < len(size) else 1) + high, COUNT)
    at[:, 3] = rng.integers(0, SIZES[geometry][0] + (0 if inside else 2), COUNT)
    return at


@pytest.mark.sampled(3)
@EACH[0]
@EACH[1]
@EACH[2]
def test_loads(geometry, clamp, bits, count, rng, monkeypatch):
    array = rng.integers(0, 2**32, SIZES[geometry], np.uint32)
    at = points(rng, geometry, bits * count // 8, inside=clamp == "trap")
    made, found = kernel(geometry, clamp, bits, count, stores=False), []
    asked = counted(monkeypatch, "load")
    for engine in ("interp", "jit"):
        asked.clear()
        out = np.zeros((COUNT, 32), np.uint8)
        surface = ptxvm.Surface(array, layered=geometry.startswith("a"))
        made.launch(CTAS, THREADS, [surface, at, out, np.uint32(0)], engine=engine)
        found.append(out)
    assert (found[0] == found[1]).all()
    assert found[1].any()
    assert 1 <= len(asked) <= COUNT // 32 // 2


@pytest.mark.sampled(3)
@EACH[0]
@EACH[1]
@EACH[2]
def test_stores(geometry, clamp, bits, count, rng, monkeypatch):
    values = rng.integers(1, 256, (COUNT, 32), np.uint8)
    at = points(rng, geometry, bits * count // 8, inside=clamp == "trap")
    kept = np.unique(at, axis=0, return_index=True)[1]  # of threads with one place all store the same
    values[:] = values[kept[np.unique(at, axis=0, return_inverse=True)[1].ravel()]]
    made, found = kernel(geometry, clamp, bits, count, stores=True), []
    asked = counted(monkeypatch, "store")
    for engine in ("interp", "jit"):
        asked.clear()
        array = np.zeros(SIZES[geometry], np.uint32)
        surface = ptxvm.Surface(array, layered=geometry.startswith("a"))
        made.launch(CTAS, THREADS, [surface, at, values, np.uint32(0)], engine=engine, threads=1)
        found.append(array)
    assert found[1].any()
    assert (found[0] == found[1]).all()
    assert 1 <= len(asked) <= COUNT // 32 // 2


def counted(monkeypatch: pytest.MonkeyPatch, name: str) -> list[int]:
    """A list that gets an element whenever the host accesses a surface."""
    asked: list[int] = []
    real = getattr(texture_surface, name)
    monkeypatch.setattr(texture_surface, name, lambda *given: asked.append(1) or real(*given))
    return asked


@pytest.mark.parametrize("geometry", GIVEN)
def test_what_is_outside_is_a_fault_of_its_thread(geometry, rng):
    made = kernel(geometry, "trap", 32, 1, stores=True)
    at = points(rng, geometry, 4, inside=True)
    at[300, 0] = 64
    surface = ptxvm.Surface(np.zeros(SIZES[geometry], np.uint32), layered=geometry.startswith("a"))
    with pytest.raises(ptxvm.Fault, match="outside") as fault:
        made.launch(CTAS, THREADS, [surface, at, np.zeros((COUNT, 32), np.uint8), np.uint32(0)], engine="jit")
    assert (fault.value.place.cta, fault.value.place.thread) == ((2, 0, 0), (44, 0, 0))


def test_a_handle_of_nothing_is_a_fault_behind_good_ones(rng):
    """The host refuses it, and compiled code takes it for no plan, which is zeros."""
    body = f"  setp.eq.u32 %p, %r3, 300; selp.b64 %d0, 0, %d0, %p;\n  suld.b.2d.b32.clamp %v0, [%d0, {GIVEN['2d']}];"
    text = KERNEL.format(register=32, body=body).replace(".reg .b64 %w;", ".reg .b64 %w; .reg .pred %p;")
    made, at = ptxvm.load(text).kernel(), points(rng, "2d", 4, inside=True)
    for _ in range(16):  # surfaces whose handles follow each other: their plans stand in different places
        surface = ptxvm.Surface(np.ones(SIZES["2d"], np.uint32))
        with pytest.raises(ptxvm.Fault, match="invalid-handle") as fault:
            made.launch(CTAS, THREADS, [surface, at, np.zeros((COUNT, 32), np.uint8), np.uint32(0)], engine="jit", threads=1)
        assert (fault.value.place.cta, fault.value.place.thread) == ((2, 0, 0), (44, 0, 0))

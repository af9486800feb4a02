"""Lanes in a regular order that is not that of memory: the same elements, and the same faults, as lane by lane.

The expectations are those of PTX 9.7.9 (ld, st): each thread accesses the elements at its own address, and NumPy's indices.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from engines import same, same_fault

import ptxvm
from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.ir.lane_values import Affine
from ptxvm.engine.jit.memory import permuted_rows

HEAD = ".version 7.8\n.target sm_80\n.address_size 64\n"
BLOCK, SIZE, PITCH = 128, 4096, 37
TYPES = {"u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "f32": np.float32, "f64": np.float64}
REGISTERS = {"u8": "b16", "u16": "b16", "u32": "b32", "u64": "b64", "f32": "f32", "f64": "f64"}

# Where a lane goes: PTX that leaves an element's number in %i, given tid.x in %t and a pitch in %u; and the same in Python.
ORDERS: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
    **{f"a stride of {n}": (f"mul.lo.u32 %i, %t, {n};", lambda t, n=n: t * n) for n in (2, 3, 4, 5, 8, 9)},
    "backwards": ("sub.u32 %i, 400, %t;", lambda t: 400 - t),
    "columns": (
        "and.b32 %i, %t, 3; mul.lo.u32 %i, %i, 256; shr.u32 %j, %t, 2; add.u32 %i, %i, %j;",
        lambda t: t % 4 * 256 + t // 4,
    ),
    "columns of a pitch": (
        "and.b32 %i, %t, 7; mul.lo.u32 %i, %i, %u; shr.u32 %j, %t, 3; add.u32 %i, %i, %j;",
        lambda t: t % 8 * PITCH + t // 8,
    ),
    "short rows of a pitch": (
        "shr.u32 %i, %t, 2; mul.lo.u32 %i, %i, %u; and.b32 %j, %t, 3; add.u32 %i, %i, %j;",
        lambda t: t // 4 * PITCH + t % 4,
    ),
    "few places": ("and.b32 %i, %t, 3; mul.lo.u32 %i, %i, %u;", lambda t: t % 4 * PITCH),
    "pairs swapped": ("xor.b32 %i, %t, 1;", lambda t: t ^ 1),
    "odd distances": ("and.b32 %i, %t, 5; mul.lo.u32 %i, %i, 11;", lambda t: (t & 5) * 11),
}


# Which lanes copy: PTX that leaves in %p whether a lane does, and the same in Python.
SOME: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
    "even lanes": ("and.b32 %j, %t, 1; setp.eq.u32 %p, %j, 0;", lambda t: t % 2 == 0),
    "the first lanes": ("add.u32 %j, %u, 6; setp.lt.u32 %p, %t, %j;", lambda t: t < PITCH + 6),
    "partners": ("xor.b32 %j, %t, 2; setp.gt.u32 %p, %j, %t;", lambda t: t ^ 2 > t),
}


def kernel(instructions: str, type: str, count: int, *, stores: bool, some: str = "") -> ptxvm.Kernel:
    """Copies vectors of elements in an order to the lanes' own, or the other way round; for all lanes, or for some."""
    size = TYPES[type]().itemsize
    names = [f"%v{n}" for n in range(count)]
    vector = f"{{{', '.join(names)}}}" if count > 1 else names[0]
    word = f".v{count}.{type}" if count > 1 else f".{type}"
    far, near = ("%b", "%a") if stores else ("%a", "%b")
    return ptxvm.load(f"""{HEAD}.visible .entry k(.param .u64 a, .param .u64 b, .param .u32 pitch) {{
        .reg .{REGISTERS[type]} %v<4>; .reg .b32 %t, %i, %j, %u; .reg .b64 %a, %b, %d; .reg .pred %p;
        ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; ld.param.u32 %u, [pitch]; mov.u32 %t, %tid.x;
        {instructions}
        mul.wide.u32 %d, %i, {size * count}; add.u64 {far}, {far}, %d;
        mul.wide.u32 %d, %t, {size * count}; add.u64 {near}, {near}, %d;
        {some and f"{some} @!%p bra end;"}
        ld.global{word} {vector}, [%a];
        st.global{word} [%b], {vector};
        end: ret; }}""").kernel("k")


@pytest.mark.sampled(8)
@pytest.mark.parametrize("stores", [False, True], ids=["loads", "stores"])
@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("order", ORDERS)
def test_every_lane_has_the_element_at_its_address(order: str, type: str, stores: bool, rng: np.random.Generator) -> None:
    instructions, place = ORDERS[order]
    for count in (1, 2) if TYPES[type]().itemsize == 8 else (1, 2, 4):
        data = rng.integers(1, 100, SIZE * count).astype(TYPES[type])
        out = np.zeros_like(data)
        kernel(instructions, type, count, stores=stores).launch(1, BLOCK, [data, out, np.uint32(PITCH)], engine="jit")
        lanes = np.arange(BLOCK)
        source, target = (lanes, place(lanes)) if stores else (place(lanes), lanes)
        wanted = np.zeros_like(data).reshape(SIZE, count)
        for a, b in zip(source, target, strict=True):  # in their order, so that the last one of those at one place stays
            wanted[b] = data.reshape(SIZE, count)[a]
        assert np.array_equal(out, wanted.ravel())


@pytest.mark.sampled(10)
@pytest.mark.parametrize("stores", [False, True], ids=["loads", "stores"])
@pytest.mark.parametrize("type", ["u32", "f32", "u64", "u16"])
@pytest.mark.parametrize("some", SOME)
@pytest.mark.parametrize("order", ["a stride of 2", "a stride of 3", "backwards", "columns", "few places", "pairs swapped"])
def test_some_lanes_have_the_element_at_their_address(
    order: str, some: str, type: str, stores: bool, rng: np.random.Generator
) -> None:
    (instructions, place), (condition, chosen) = ORDERS[order], SOME[some]
    lanes = np.arange(BLOCK)
    active = lanes[chosen(lanes)]
    for count in (1, 2):
        data = rng.integers(1, 100, SIZE * count).astype(TYPES[type])
        # no element too many, so that what no lane asks for lies outside
        ends = [int(where[active].max() + 1) * count for where in (place(lanes), lanes)]
        inputs, outputs = reversed(ends) if stores else ends
        data, out = data[:inputs].copy(), np.zeros(outputs, TYPES[type])
        copies = kernel(instructions, type, count, stores=stores, some=condition)
        copies.launch(1, BLOCK, [data, out, np.uint32(PITCH)], engine="jit")
        source, target = (active, place(active)) if stores else (place(active), active)
        wanted = np.zeros_like(out).reshape(-1, count)
        for a, b in zip(source, target, strict=True):  # in their order, as above
            wanted[b] = data.reshape(-1, count)[a]
        assert np.array_equal(out, wanted.ravel())


@pytest.mark.parametrize("stores", [False, True], ids=["loads", "stores"])
@pytest.mark.parametrize("order", ["a stride of 3", "columns", "columns of a pitch", "short rows of a pitch", "few places"])
def test_a_lane_out_of_bounds_is_the_one_that_the_interpreter_names(order: str, stores: bool) -> None:
    instructions, place = ORDERS[order]
    least = int(place(np.arange(BLOCK)).max())  # one element too few
    far, near = np.zeros(least, np.uint32), np.zeros(BLOCK, np.uint32)
    arrays = [near, far] if stores else [far, near]
    same_fault(kernel(instructions, "u32", 1, stores=stores), [*arrays, np.uint32(PITCH)], block=BLOCK)


@pytest.mark.parametrize("pitch", [0, 1, 3])
def test_rows_that_overlap_are_written_in_the_order_of_lanes(pitch: int, rng: np.random.Generator) -> None:
    for order in ("columns of a pitch", "short rows of a pitch", "few places"):
        data = rng.integers(1, 100, SIZE).astype(np.uint32)
        same(kernel(ORDERS[order][0], "u32", 1, stores=True), [data, np.zeros_like(data), np.uint32(pitch)], block=BLOCK)


@pytest.mark.skipif(not cpu.has("avx2"), reason="the processor permutes nothing")
def test_what_becomes_of_an_access_is_shown() -> None:
    shown = kernel(ORDERS["a stride of 2"][0], "u32", 1, stores=False).dump("shapes", BLOCK)
    rows = -(-BLOCK * 2 // permuted_rows.register(4))
    assert f"{rows} rows, permuted" in shown


def test_a_register_has_no_more_elements_than_the_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A processor that permutes 64 bytes at a time, and a vector of 32 lanes of bytes."""
    monkeypatch.setattr(cpu, "has", lambda _: True)
    address = Affine("%a", ((tuple(range(0, 128, 4)), 1),))
    plan = permuted_rows.stores(address, 1, (0, 1, 2, 3), 32)
    assert plan is not None
    assert plan.each == 32
    assert plan.sources()[0][:5] == [(0, 0), (1, 0), (2, 0), (3, 0), (0, 1)]  # byte after byte: a lane's four, then the next's

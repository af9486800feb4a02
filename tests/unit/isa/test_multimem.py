"""Multimem instructions where an address stands for several memories (PTX 9.7.9.14); expected are NumPy's sums and extremes.

Three arrays are the memories; the address is that of the first.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import ptxvm
from ptxvm.machine.teams import TEAMS, Team

ENGINES = ("interp", "jit")
KERNEL = """.version 9.3
.target {target}
.address_size 64
.visible .entry k(.param .u64 team, .param .u64 out)
{{
    .reg .b64 %team, %out, %d<4>; .reg .b32 %t, %r<4>; .reg .f32 %f<4>;
    ld.param.u64 %team, [team]; ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x; mul.wide.u32 %d0, %t, 16; add.u64 %d1, %team, %d0; add.u64 %d2, %out, %d0;
    {body}
    ret;
}}
"""
LANES, ROW = 40, 16  # bytes of a lane


@pytest.fixture
def memories(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ptxvm.DeviceArray]]:
    """The memories of a team; of the first 24 lanes three, of the others one."""
    monkeypatch.setenv("PTXVM_DEVICES", "3")
    found = [ptxvm.DeviceArray(LANES * ROW, np.uint8) for _ in range(3)]
    first, *others = (each.address for each in found)
    TEAMS.enter(Team(first, first + 24 * ROW, tuple((each - first) % 2**64 for each in others)))
    yield found
    TEAMS.remove(first, first + 1)


def filled(memories: list[ptxvm.DeviceArray], rng: np.random.Generator, dtype: str) -> np.ndarray:
    """Fill the memories with numbers; gives them, as rows of all elements."""
    count = LANES * ROW // np.dtype(dtype).itemsize
    values = rng.normal(size=(3, count)).astype(dtype) if dtype[0] == "f" else rng.integers(0, 2**31, (3, count)).astype(dtype)
    for memory, row in zip(memories, values, strict=True):
        memory.array[...] = row.view(np.uint8)
    return values


def run(body: str, memories: list[ptxvm.DeviceArray], engine: str, out: np.ndarray, target: str = "sm_90") -> None:
    kernel = ptxvm.load(KERNEL.format(body=body, target=target)).kernel()
    kernel.launch(1, LANES, [memories[0], out], engine=engine)


def of_three(values: np.ndarray, combined: np.ndarray) -> np.ndarray:
    """What is combined for the lanes with three memories; the first value for the others."""
    return np.where(np.arange(values.shape[1]) < 24 * values.shape[1] // LANES, combined, values[0])


FOUR = "{%r0, %r1, %r2, %r3}"
STORE = f"st.global.v4.b32 [%d2], {FOUR};"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("operation", "type", "dtype", "combine"),
    [
        ("add", "f32", "f4", lambda a, b, c: (a + b) + c), ("add", "f16x2", "f2", lambda a, b, c: (a + b) + c),
        ("min", "f16x2", "f2", lambda a, b, c: np.minimum(np.minimum(a, b), c)),
        ("add.acc::f32", "f16x2", "f2", lambda a, b, c: ((a.astype("f4") + b.astype("f4")) + c.astype("f4")).astype("f2")),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)  # fmt: skip
def test_loads_combine_what_all_memories_hold(memories, rng, engine, operation, type, dtype, combine):
    values, out = filled(memories, rng, dtype), np.zeros(LANES * ROW // np.dtype(dtype).itemsize, dtype)
    run(f"multimem.ld_reduce.relaxed.sys.global.{operation}.v4.{type} {FOUR}, [%d1]; {STORE}".replace(
        *(("%r", "%f") if type == "f32" else ("", ""))).replace("v4.b32", "v4.f32" if type == "f32" else "v4.b32"),
        memories, engine, out)  # fmt: skip
    assert out.tobytes() == of_three(values, combine(*values)).astype(dtype).tobytes()


@pytest.mark.parametrize("engine", ENGINES)
def test_sums_in_f32_are_rounded_once(memories, engine):
    """2048 + 1 + 1 is 2048 by sums of f16, which have 11 bits, and 2050 by those of f32."""
    for memory, value in zip(memories, (2048, 1, 1), strict=True):
        memory.array.view(np.float16)[...] = value
    for precision, expected in (("", 2048), (".acc::f32", 2050)):
        out = np.zeros(LANES * 8, np.float16)
        run(f"multimem.ld_reduce.relaxed.sys.global.add{precision}.v4.f16x2 {FOUR}, [%d1]; {STORE}", memories, engine, out)
        assert out[: 24 * 8].tolist() == [expected] * 24 * 8


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("form", ["red{0}.add.u32 [%d1], %r0;", "st{0}.u32 [%d1], %r0;"])
@pytest.mark.parametrize("how", [".relaxed.sys.global", ".async.release.sys.global"])
def test_updates_and_stores_reach_all_memories(memories, rng, engine, form, how):
    values = filled(memories, rng, "u4")
    addends = rng.integers(0, 2**31, LANES * 4).astype("u4")
    run(f"ld.global.u32 %r0, [%d2]; multimem.{form.format(how)}", memories, engine, addends, target="sm_100")
    for number, (memory, row) in enumerate(zip(memories, values, strict=True)):
        expected = row.copy()
        reached = slice(0, 4 * (LANES if number == 0 else 24), 4)
        expected[reached] = addends[reached] + (row[reached] if form.startswith("red") else 0)
        assert (memory.array.view("u4") == expected).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_eight_bit_floats_are_not_added_up(memories, engine):
    body = "multimem.ld_reduce.relaxed.sys.global.add.e5m2x4 %r0, [%d1];"
    with pytest.raises(ptxvm.Unsupported, match=r"multimem.ld_reduce.*over several devices"):
        run(body, memories, engine, np.zeros(LANES * 4, "u4"), target="sm_100f")

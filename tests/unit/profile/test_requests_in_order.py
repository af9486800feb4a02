"""The counts of requests by some lanes of a warp at constant distances: against NumPy, and against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm
from ptxvm.algebra.state_space import Space
from ptxvm.engine.jit.ir.lane_values import Affine
from ptxvm.engine.jit.memory.monotone_requests import Monotone, monotone
from ptxvm.engine.jit.memory.request_batches import Request
from ptxvm.isa.effects import Verb

ACCESSES = {
    "ld": ("ld{space}.{type} {value}, [%rd3];", "global_load"),
    "st": ("st{space}.{type} [%rd3], {value};", "global_store"),
}
TYPES = {1: "u8", 2: "u16", 4: "u32", 8: "v2.u32", 16: "v4.u32"}
VALUES = {1: "%h1", 2: "%h1", 4: "%r20", 8: "{%r20, %r21}", 16: "{%r20, %r21, %r22, %r23}"}
TEXT = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 from)
{
    .reg .pred %p<6>; .reg .b16 %h<4>; .reg .b32 %r<24>; .reg .b64 %rd<16>;
    ld.param.u64 %rd1, [out]; ld.param.u32 %r2, [from]; mov.u32 %r1, %tid.x; mov.u32 %r5, %r1;
    mov.u16 %h1, 0; mov.u32 %r20, 1; mov.u32 %r21, 0; mov.u32 %r22, 0; mov.u32 %r23, 0;
    WHERE
    cvt.s64.s32 %rd2, %r3; add.s64 %rd3, %rd1, %rd2;
    mov.u32 %r6, 24;
LOOP:
    mul.lo.u32 %r5, %r5, 1664525; add.u32 %r5, %r5, 1013904223; shr.u32 %r7, %r5, 24;
    setp.lt.u32 %p1, %r7, LEAST; not.pred %p2, %p1;
    @%p2 bra SKIP;
    ACCESS
SKIP:
    sub.u32 %r6, %r6, 1; setp.ne.u32 %p3, %r6, 0;
    @%p3 bra LOOP;
    ret;
}
"""
WHERE = {
    "forward": ("mad.lo.u32 %r3, %r1, STRIDE, %r2;", lambda lane, stride: lane * stride),
    "backward": ("mov.u32 %r4, %ntid.x; sub.u32 %r4, %r4, %r1; mad.lo.u32 %r3, %r4, STRIDE, %r2;", None),
    "in pairs": ("shr.u32 %r4, %r1, 1; mad.lo.u32 %r3, %r4, STRIDE, %r2;", lambda lane, stride: lane // 2 * stride),
    "alike": ("mov.u32 %r3, %r2;", lambda lane, stride: 0 * lane),
}


def active(block, rounds, least):
    """Which lanes are active in each round: the generator of the kernel."""
    state = np.arange(block, dtype=np.uint32)
    for _ in range(rounds):
        state = state * np.uint32(1664525) + np.uint32(1013904223)
        yield (state >> 24) < least


def wanted(distances, size, block, least, first):
    """Sectors, lines and the ideal of all requests, by what differs."""
    sectors = lines = ideal = 0
    for lanes in active(block, 24, least):
        for warp in range(0, block, 32):
            at = np.unique((distances + first)[warp : warp + 32][lanes[warp : warp + 32]])
            sectors, lines = sectors + len({*(at // 32)}), lines + len({*(at // 128)})
            ideal += -(-len(at) * size // 32)
    return sectors, lines, ideal


@pytest.mark.parametrize("block", [32, 128])
@pytest.mark.parametrize("least", [16, 128, 250])
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize(("access", "size", "stride", "space"), [
    ("ld", 1, 1, ".global"), ("ld", 1, 3, ""), ("ld", 2, 2, ".global"), ("st", 4, 4, ".global"), ("ld", 4, 12, ""),
    ("ld", 4, 132, ".global"), ("st", 8, 8, ""), ("ld", 8, 40, ".global"), ("ld", 16, 16, ".global"), ("st", 16, 48, ""),
])  # fmt: skip
def test_sectors_and_lines_are_those_of_the_active_lanes(access, size, stride, space, where, least, block):
    text, name = ACCESSES[access]
    lines, distance = WHERE[where]
    text = TEXT.replace("ACCESS", text.format(space=space, type=TYPES[size], value=VALUES[size]))
    text = text.replace("WHERE", lines.replace("STRIDE", str(stride))).replace("LEAST", str(least))
    kernel, lanes = ptxvm.load(text).kernel(), np.arange(block)
    distances = (block - lanes) * stride if distance is None else distance(lanes, stride)
    for first in (0, 16, 48):
        memory = np.zeros(1 << 15, np.uint8)
        found = kernel.launch(1, block, [memory, first], engine="jit", profile=True).profile
        counts = tuple(found[f"{name}_{end}"] for end in ("sectors", "lines", "sectors_ideal"))
        assert counts == wanted(distances, size, block, least, first)


@pytest.mark.parametrize("where", ["forward", "alike", "in pairs"])
@pytest.mark.parametrize("space", [".global", ""])
def test_contention_is_that_of_the_active_lanes(where, space):
    lines, distance = WHERE[where]
    text = TEXT.replace("ACCESS", f"atom{space}.add.u32 %r21, [%rd3], 1;").replace("LEAST", "100")
    kernel = ptxvm.load(text.replace("WHERE", lines.replace("STRIDE", "4"))).kernel()
    found = kernel.launch(1, 64, [np.zeros(4096, np.uint8), 0], engine="jit", profile=True).profile
    addresses = steps = 0
    for lanes in active(64, 24, 100):
        for warp in (0, 32):
            at = distance(np.arange(64), 4)[warp : warp + 32][lanes[warp : warp + 32]]
            _, counts = np.unique(at, return_counts=True)
            addresses, steps = addresses + len(counts), steps + int(counts.max(initial=0))
    assert (found["atomic_addresses"], found["atomic_steps"]) == (addresses, steps)


def test_lanes_at_the_end_of_an_array_are_counted_as_others(rng):
    """Lanes that are not active may lie outside the array: then the request goes to a batch."""
    text = TEXT.replace("ACCESS", "ld.global.u32 %r20, [%rd3];").replace("LEAST", "300")
    text = text.replace("WHERE", "shl.b32 %r3, %r1, 2; setp.ge.u32 %p4, %r1, %r2; @%p4 ret;")
    kernel = ptxvm.load(text).kernel()
    for count in (1, 8, 9, 31, 32, 33, 40, 63):
        memory = np.zeros(count, np.uint32)
        found = [kernel.launch(1, 64, [memory, count], engine=each, profile=True).profile for each in ("jit", "interp")]
        sectors = sum(-(-min(max(count - warp, 0), 32) * 4 // 32) for warp in (0, 32))
        assert [each["global_load_sectors"] for each in found] == [24 * sectors] * 2


# ── which requests are in order ─────────────────────────────────────────────────────────

LOAD = Request(Space.GLOBAL, Verb.READ, 4)
LANES = tuple(range(64))


@pytest.mark.parametrize(("terms", "request_", "distances"), [
    ((), LOAD, (0,) * 32),
    (((LANES, 4),), LOAD, tuple(range(0, 128, 4))),
    (((LANES, -8),), LOAD, tuple(range(0, -256, -8))),
    (((tuple(n // 32 for n in LANES), "%pitch"), (LANES, 4)), LOAD, tuple(range(0, 128, 4))),
    (((LANES, "%pitch"),), LOAD, None),  # the distances are known when the kernel runs
    (((LANES, 2),), LOAD, None),  # lanes overlap in part
    (((tuple(n ^ 1 for n in LANES), 4),), LOAD, None),
    (((LANES, 1 << 27),), LOAD, None),
    (((LANES, 4),), Request(Space.SHARED, Verb.READ, 4), None),
    (((tuple(n // 2 for n in LANES), 4),), Request(Space.GLOBAL, Verb.UPDATE, 4), None),  # some lanes compete
    (((LANES, 4),), Request(Space.GLOBAL, Verb.UPDATE, 4), tuple(range(0, 128, 4))),
])  # fmt: skip
def test_requests_are_in_order_where_no_lane_goes_back(terms, request_, distances):
    found = monotone(Affine("%base", terms), request_, 1)
    assert found == (None if distances is None else Monotone(request_, distances))

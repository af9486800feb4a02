"""The warp kernels of the corpus: shuffles, votes, matches, lane registers, cooperative groups, named barriers."""

from __future__ import annotations

import numpy as np
import pytest
from modules import cases, run

import ptxvm
from ptxvm.engine.interp import cohort

LANE = np.arange(32)


def warps(values: np.ndarray) -> np.ndarray:
    """One row for each warp."""
    return values.reshape(-1, 32)


def ballot(truth: np.ndarray) -> np.ndarray:
    """Of each warp, the lanes where it holds, one bit each."""
    return np.sum(warps(truth).astype(np.uint64) << LANE.astype(np.uint64), axis=1, keepdims=True)


def segment(lane: np.ndarray, width: int) -> np.ndarray:
    """The first lane of the part of the warp that a shuffle of a width stays in."""
    return lane // width * width


def shfl_all(kernel, rng):
    """`__shfl_sync(a, 3) + __shfl_up_sync(lane, 2, 8) + __shfl_down_sync(lane, 5) + __shfl_xor_sync(lane, 1, 16)`."""
    for threads in (32, 96, 1024):
        a, d = rng.integers(-1000, 1000, threads).astype(np.int32), rng.random(threads)
        got, doubles = a.copy(), d.copy()
        kernel.launch(1, threads, [got, doubles])
        up = np.where(segment(LANE, 8) <= LANE - 2, LANE - 2, LANE)
        down = np.where(LANE + 5 < 32, LANE + 5, LANE)
        expected = warps(a)[:, 3:4] + up + down + (LANE ^ 1)
        np.testing.assert_array_equal(warps(got), expected)
        np.testing.assert_array_equal(warps(doubles), warps(d)[:, LANE ^ 7])


def votes(kernel, rng):
    """Of the warp ballot + any + all + popc(activemask), and the same questions to the whole CTA: count + 2 * and + 3 * or."""
    for threads in (32, 256):
        for low, high in ((0, 8), (4, 5), (-9, 3)):  # some, all, none
            a, got = rng.integers(low, high, threads).astype(np.int32), np.zeros(threads, np.uint32)
            kernel.launch(1, threads, [a, got])
            true = a > 3
            each = warps(true)
            of_warp = ballot(true) + each.any(1, keepdims=True) + each.all(1, keepdims=True) + 32
            of_cta = true.sum() + 2 * true.all() + 3 * true.any()
            expected = np.broadcast_to(of_warp + np.uint64(of_cta), each.shape).astype(np.uint32)
            np.testing.assert_array_equal(warps(got), expected)


def match_(kernel, rng):
    """`__match_any_sync(a) ^ __match_all_sync(b, &p) ^ p`."""
    for alike in (True, False):
        a = rng.integers(0, 5, 64).astype(np.int32)
        b = np.full(64, 1 << 40) if alike else rng.integers(0, 2, 64) << 33
        got = np.zeros(64, np.uint32)
        kernel.launch(1, 64, [a, b, got])
        same = warps(a)[:, None, :] == warps(a)[:, :, None]
        any_mask = np.sum(same.astype(np.uint64) << LANE.astype(np.uint64), axis=2)
        all_mask = 0xFFFF_FFFF ^ 1 if alike else 0
        np.testing.assert_array_equal(warps(got), any_mask ^ np.uint64(all_mask))


def redux_(kernel, rng):
    """`__reduce_add/min/max/and/or/xor_sync` of all lanes, and the unsigned maximum of lanes 0 to 3.

    The other lanes call that too, with a mask that they are not in, so that what they get is nobody's business.
    """
    a = rng.integers(-(1 << 31), 1 << 31, 64).astype(np.int32)
    got = np.zeros(64, np.uint32)
    kernel.launch(1, 64, [a, got])
    rows = warps(a).astype(np.int64)
    reduced = [f(rows, 1) for f in (np.sum, np.min, np.max)]
    reduced += [f.reduce(rows, 1) for f in (np.bitwise_and, np.bitwise_or, np.bitwise_xor)]
    expected = sum(reduced) + warps(a.view(np.uint32))[:, :4].max(1)
    np.testing.assert_array_equal(warps(got)[:, :4], np.repeat(expected.astype(np.uint32)[:, None], 4, 1))


def lanes(kernel, rng):
    """The sum of the lane, warp, launch and clock registers.

    The interpreter's clocks stand still, so that all threads can be compared; the JIT's are the processor's, which only the
    lanes of a warp read at once.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cohort, "CLOCKS", dict.fromkeys(cohort.CLOCKS, lambda: 1 << 35))
        got = np.zeros(96, np.uint32)
        kernel.launch(1, 96, [got], shared=512)
    bit = 1 << LANE.astype(np.int64)
    of_lane = LANE + bit + (bit - 1) + (2 * bit - 1) + (2**32 - 2 * bit) + (2**32 - bit)
    expected = (of_lane + np.arange(3)[:, None]).astype(np.uint32)
    alike = slice(0, 1 if kernel.engine == "interp" else None)
    np.testing.assert_array_equal(warps(got) - warps(got)[alike, :1], expected - expected[alike, :1])


def cg_reduce(kernel, rng):
    """Tiles of 16 threads: reduce, scan, coalesced and labelled groups.

    The source lets threads race for `out`; both tiles get the same sum here, so that all who write one word agree.
    """
    half = rng.integers(1, 4, 16)
    half[0] += 40 - half.sum()  # 40 = 40 for every tile
    x = np.concatenate([half, half]).astype(np.float32)
    out = np.zeros(64, np.float32)
    kernel.launch(1, 32, [x, out, 32])
    rank, total = np.arange(16), np.float32(40)
    scans = (rank + 1) * total + rank * total  # inclusive of the sums, exclusive of the maxima
    np.testing.assert_array_equal(out[1:16], scans[1:])
    np.testing.assert_array_equal(out[16:32], 32)  # each lane of the coalesced group added its size
    times = (out[0] - scans[0]) / total  # groups of equal labels added their minimum, and may have lost an update
    assert times in range(1, 33)


def cg_grid(kernel, rng):
    """`grid.sync()` between three steps, `a[i] += a[(i + 1) % n]`; with one element that doubles it."""
    for grid, block in ((1, 64), (8, 128), ((3, 2, 2), (8, 4, 2))):
        a = np.array([5], np.int32)
        kernel.launch(grid, block, [a, 1])
        assert a[0] == 5 * 8


def barriers(kernel, rng):
    """`bar.sync 1, 64`, `barrier.sync 2`, `bar.arrive 3, 128`; then a trap where a[1] is 77, and a breakpoint."""
    a = np.array([4, 5, 0, *range(61)], np.int32)
    got = a.copy()
    kernel.launch(1, 64, [got])
    np.testing.assert_array_equal(got, a + 1)
    with pytest.raises(ptxvm.Fault, match="trap") as caught:
        kernel.launch(1, 64, [np.full(64, 76, np.int32)])
    assert caught.value.kind == "trap"


REFERENCES = {f.__name__: f for f in (shfl_all, votes, match_, redux_, lanes, cg_reduce, cg_grid, barriers)}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "kernel", "engines"), cases(r"(nvcc|nvrtc)/warp_.*", REFERENCES))
def test_warp(name, kernel, engines, rng):
    run(name, kernel, engines, REFERENCES, rng)

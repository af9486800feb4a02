"""The atomic kernels of the corpus: every operation and type, by one thread exactly, by many where the order is all one."""

from __future__ import annotations

from functools import reduce
from operator import or_, xor

import numpy as np
import pytest
from modules import cases, run

BF16_ONE = 0x3F80


def wrapped(value: int, limit: int, times: int, step: int) -> int:
    """`atomicInc` and `atomicDec` (PTX 9.7.12.3)."""
    for _ in range(times):
        up = 0 if value >= limit else value + 1
        down = limit if value == 0 or value > limit else value - 1
        value = up if step > 0 else down
    return value


def at32(kernel, rng):
    """Of 32 bits: add sub exch min max inc dec CAS and or xor; thread t gives t, or a constant."""
    for threads in (1, 64):
        t = range(threads)
        a, u = rng.integers(-100, 100, 12).astype(np.int32), rng.integers(0, 1 << 32, 12, dtype=np.uint32)
        u[1], u[3], a[9] = rng.integers(0, 10), rng.integers(0, 10), 0 if threads == 1 else -5
        f = rng.integers(-50, 50, 4).astype(np.float32)
        got_a, got_u, got_f = a.copy(), u.copy(), f.copy()
        kernel.launch(1, threads, [got_a, got_u, got_f])
        assert got_a[0] == a[0] + sum(t)
        assert got_a[2] == a[2] - sum(t)
        assert got_a[4] in t
        assert got_a[6] == min(a[6], 0)
        assert got_a[7] == max(a[7], threads - 1)
        assert got_a[9] == (3 if threads == 1 else -5)  # compared with t
        assert got_u[1] == wrapped(int(u[1]), 7, threads, 1)
        assert got_u[3] == wrapped(int(u[3]), 7, threads, -1)
        assert got_u[5] == 0  # thread 0 gives 0
        assert got_u[7] == reduce(or_, t, int(u[7]))
        assert got_u[9] == reduce(xor, t, int(u[9]))
        assert got_u[11] == min(u[11], 5)
        assert got_f[0] == f[0] + 1.5 * threads
        assert got_f[3] == 2
        if threads == 1:  # what was there before
            assert got_a[[1, 3, 5, 8]].tolist() == a[[2, 4, 6, 9]].tolist()
            assert got_u[::2].tolist() == u[1::2].tolist()
            assert (got_f[1], got_f[2]) == (f[0], f[3])


def at64(kernel, rng):
    """Of 64 bits: add exch CAS min max and or xor; thread t gives t."""
    for threads in (1, 64):
        t = range(threads)
        u, s = rng.integers(0, 1 << 64, 14, dtype=np.uint64), rng.integers(-(1 << 62), 1 << 62, 2)
        u[5] = 0 if threads == 1 else 1 << 40
        d = rng.integers(-50, 50, 2).astype(np.float64)
        got_u, got_s, got_d = u.copy(), s.copy(), d.copy()
        kernel.launch(1, threads, [got_u, got_s, got_d])
        assert got_u[1] == (int(u[1]) + sum(t)) % 2**64
        assert got_u[3] in t
        assert got_u[5] == (1 if threads == 1 else 1 << 40)
        assert got_u[7] == 0
        assert got_u[9] == 0
        assert got_u[11] == reduce(or_, t, int(u[11]))
        assert got_u[12] == reduce(xor, t, int(u[12]))
        assert got_s[1] == max(s[1], threads - 1)
        assert got_d[1] == d[1] + threads / 2
        if threads == 1:
            assert got_u[[0, 2, 4, 6, 8, 10]].tolist() == u[[1, 3, 5, 7, 9, 11]].tolist()
            assert (got_s[0], got_d[0]) == (s[1], d[1])


def bf16(values) -> np.ndarray:
    """Numbers that bf16 holds, as its bits."""
    return (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def at16(kernel, rng):
    """`atomicAdd` of half2, bfloat162, half and bfloat16, `atomicCAS` of 16 bits; small whole numbers, so exact."""
    for threads in (1, 32):
        half2 = np.array([0, 0, 3, -4, 1, 2], np.float16)  # [1] += [2], what was there to [0]
        bf162 = bf16([0, 0, 3, -4, 1, 2])
        half = np.zeros(10, np.float16)
        half[:] = range(10)  # [0] += [5], old to [9]
        words = np.array([7, 7, 9, 0], np.uint16)  # [0]: 7 -> 9 where it is [1], old to [3]
        single = bf16([1, 0, 0, 2])  # [0] += [3], old to [1]
        kernel.launch(1, threads, [half2, bf162, half, words, single])
        sums = [3 + threads, -4 + 2 * threads]
        assert half2[2:4].tolist() == sums
        assert bf162[2:4].tolist() == bf16(sums).tolist()
        assert half[0] == 5 * threads
        assert words[0] == 9
        assert single[0] == bf16([1 + 2 * threads])[0]
        if threads == 1:
            assert half2[:2].tolist() == [3, -4]
            assert bf162[:2].tolist() == bf16([3, -4]).tolist()
            assert (half[9], words[3], single[1]) == (0, 7, BF16_ONE)


def atscope(kernel, rng):
    """`atomicAdd_system`, `atomicAdd_block`, `atomicCAS_system(1, 2)`, `atomicMax_block(9)`."""
    for threads in (1, 64):
        a, u = np.array([10, 20, 30, -3], np.int32), np.array([1, 77], np.uint64)
        kernel.launch(2, threads, [a, u])
        assert a.tolist() == [10 + 2 * threads, 20 + 4 * threads, 30, 9]
        assert u.tolist() == [2, 77]


def cuatomic(kernel, rng):
    """`cuda::atomic_ref`: add, store 3, load, max 4; add to a float; CAS; xor and store of a byte among three others."""
    for threads in (1, 32):
        a, f = np.array([1, 0], np.int32), np.array([2.5, 3], np.float32)
        u = np.array([1, 0x1122334455667788], np.uint64)  # the byte is one of the second word
        kernel.launch(1, threads, [a, f, u, np.uint64(u.ctypes.data + 8 + 2)])
        if threads == 1:
            assert a.tolist() == [4, 3]
        assert f.tolist() == [2.5 + threads, 3]
        assert u.tolist() == [2, 0x1122334455037788]


def sharedat(kernel, rng):
    """In shared memory: s: add 1, max t, CAS(1, 2); t: add 2; f: add 1.0; their sum."""
    out = np.zeros(1, np.int32)
    kernel.launch(1, 1, [out])
    assert out[0] == 2 + 2 + 1
    kernel.launch(1, 256, [out])
    s = out[0] - 3 * 256
    assert 255 <= s <= 255 + 256 + 1  # the order of additions and maxima is open


def at128(kernel, rng):
    """`atomicAdd` of float2 and float4, exchange of 128 bits."""
    two, four = np.array([1, 2, 0, 0], np.float32), np.array([5, 6, 7, 8, 0, 0, 0, 0], np.float32)
    u = np.array([3, 4], np.uint64)
    kernel.launch(1, 1, [two, four, u])
    assert two.tolist() == [2, 4, 1, 2]
    assert four.tolist() == [6, 8, 10, 12, 5, 6, 7, 8]
    assert u.tolist() == [1, 2]


REFERENCES = {f.__name__: f for f in (at32, at64, at16, atscope, cuatomic, sharedat, at128)}


@pytest.mark.parametrize(("name", "kernel", "engines"), cases(r"(nvcc|nvrtc)/atomics_.*", REFERENCES))
def test_atomics(name, kernel, engines, rng):
    run(name, kernel, engines, REFERENCES, rng)

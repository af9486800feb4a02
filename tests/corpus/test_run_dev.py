"""The kernels of the corpus that use the device's library and the stack: printf, malloc, pointers, recursion, alloca."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from modules import cases, run, whole

import ptxvm


def pf(kernel, rng):
    """Two calls of printf, with `%d %f %s %llu` and without arguments (one thread only), and `assert(n > 0)`."""
    name = np.frombuffer(b"world\0", np.uint8).copy()
    result = kernel.launch(1, 3, [7, 2.25, name])
    assert result.output == "hello 7 2.250000 world 7\n" * 3 + "plain\n"
    with pytest.raises(ptxvm.Fault, match="Assertion `n>0` failed") as caught:
        kernel.launch(1, 1, [-1, 0.5, name])
    assert caught.value.kind == "assertion"


def mal(kernel, rng):
    """Each thread fills a block of malloc with i * thread, tells where, and frees the block of the next thread."""
    n, threads = 11, 40
    out = np.zeros(threads + 1, np.uint64)
    kernel.launch(1, threads, [out, n])
    assert len(set(out[:-1].tolist())) == threads
    assert not (out % 16).any()
    last = np.zeros(2, np.uint64)
    kernel.launch(1, 1, [last, n])  # nobody frees this one
    assert kernel.module.memory.read(int(last[0]), 4 * n) == bytes(4 * n)


def fptr(kernel, rng):
    """A table of pointers to functions: 2x, x + 3, 2x - (x + 3)."""
    x, which = whole(rng, 64), rng.integers(0, 100, 64).astype(np.int32)
    got = x.copy()
    kernel.launch(1, 64, [got, which])
    np.testing.assert_array_equal(got, np.choose(which % 3, [2 * x, x + 3, 2 * x - (x + 3)]))


def virt(kernel, rng):
    """Virtual functions: odd threads have a square of side n, area n * n * t; even ones n by 2, area n * 2 + t."""
    out, t = np.zeros(64, np.float32), np.arange(64)
    kernel.launch(1, 64, [out, 5])
    np.testing.assert_array_equal(out, np.where(t % 2, 25 * t, 10 + t))


@cache
def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def rec(kernel, rng):
    """fib(a[t]) + ack(2, a[0] & 3), where ack(2, n) = 2n + 3; a[0] = 3 becomes 11, which ends in the same two bits."""
    a = np.array([3, *rng.integers(0, 11, 39)], np.int32)
    got = a.copy()
    kernel.launch(1, 40, [got])
    assert got.tolist() == [fibonacci(n) + 9 for n in a.tolist()]


def alloca_(kernel, rng):
    """A copy l of a[0..n) on the stack; l[i] += l[i - 1] * l[a[i] % n] from the left; a[t] = l[n - 1]."""
    for n in (1, 2, 5, 14, 31):
        a = rng.integers(0, 1000, n).astype(np.int32)
        local = a.tolist()
        for i in range(1, n):
            local[i] += local[i - 1] * local[a[i] % n]
        got = a.copy()
        kernel.launch(1, 1, [got, n])
        assert got.tolist() == [local[-1] - (local[-1] + 2**31 >> 32 << 32), *a[1:]]


def localarr(kernel, rng):
    """l[i] = a[i] * i in local memory, and the sum of the l[a[i] & 63]."""
    a = rng.integers(-1000, 1000, 64).astype(np.int32)
    got = a.copy()
    kernel.launch(1, 1, [got])
    local = a * np.arange(64, dtype=np.int32)
    assert got.tolist() == [local[a & 63].sum(), *a[1:]]


def bigstruct(kernel, rng):
    """A struct of twenty numbers by value, changed by a function at thread % 20, returned by value."""
    given, threads = rng.integers(-100, 100, 20).astype(np.int32), 45
    got = np.zeros((threads, 20), np.int32)
    kernel.launch(1, threads, [given.tobytes(), got])
    t = np.arange(threads)
    expected = np.tile(given, (threads, 1))
    expected[t, t % 20] += t
    np.testing.assert_array_equal(got, expected)


def tmpl(kernel, rng):
    """Sums of int, float and double by a template; then memcpy and memset of n bytes."""
    for n in (1, 3, 12):
        a, f, d = rng.integers(-100, 100, 16).astype(np.int32), whole(rng, 16), rng.random(16)
        got = a.copy(), f.copy(), d.copy()
        kernel.launch(1, 1, [*got, n])
        a[0], f[0], d[0] = a[:n].sum(), f[:n].sum(), np.add.accumulate(d[:n])[-1]
        f.view(np.uint8)[16 : 16 + n] = a.view(np.uint8)[16 : 16 + n]
        d.view(np.uint8)[32 : 32 + n] = 0
        for one, other in zip(got, (a, f, d), strict=True):
            assert one.tobytes() == other.tobytes()


def cacheops(kernel, rng):
    """Loads and stores with every cache operator move the same data."""
    f, v, d = whole(rng, 48), whole(rng, 24), rng.random(8)
    got = f.copy(), v.copy(), d.copy()
    kernel.launch(1, 1, list(got))
    total = f[:5].sum()
    f[:5] = total, total, total, total, 1
    v[4:8], d[2:4] = v[:4], d[:2]
    f[40:44] = v[20:24]
    f[9] = f[8]
    for one, other in zip(got, (f, v, d), strict=True):
        np.testing.assert_array_equal(one, other)


REFERENCES = {
    f.__name__: f for f in (pf, mal, fptr, virt, rec, alloca_, localarr, bigstruct, tmpl, cacheops)
}  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "kernel", "engines"), cases(r"(nvcc|nvrtc)/dev_.*", REFERENCES))
def test_dev(name, kernel, engines, rng):
    run(name, kernel, engines, REFERENCES, rng)

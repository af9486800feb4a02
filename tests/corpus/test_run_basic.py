"""The textbook kernels of the corpus: vectors, matrices, reductions, scans, stencils, sorting, Mandelbrot, switches."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from modules import cases, run, whole


def vadd(kernel, rng):
    """c[i] = a[i] + b[i] for i < n."""
    n = 1000
    a, b, c = rng.random(n, np.float32), rng.random(n, np.float32), np.full(n + 24, -1, np.float32)
    kernel.launch(8, 128, [a, b, c, n])
    np.testing.assert_array_equal(c, [*(a + b), *[-1] * 24])


def matmul_tiled(kernel, rng):
    """C = A B by tiles of 16 in shared memory; n need not be a multiple."""
    for n in (32, 45):
        A, B, C = whole(rng, (n, n)), whole(rng, (n, n)), np.zeros((n, n), np.float32)
        kernel.launch((3, 3), (16, 16), [A, B, C, n])
        np.testing.assert_array_equal(C, A @ B)


def reduce_sum(kernel, rng):
    """The sum, by a stride of the grid, dynamic shared memory, shuffles and an atomic addition."""
    for block in (32, 64, 256):
        x, out = whole(rng, 3000), np.array([100], np.float32)
        kernel.launch(4, block, [x, out, len(x)], shared=4 * block)
        assert out[0] == 100 + x.sum()


def scan_block(kernel, rng):
    """The inclusive sums of each block."""
    for block in (32, 256, 1024):
        n = 3 * block - 7
        a, got = rng.integers(-100, 100, 3 * block).astype(np.int32), np.zeros(3 * block, np.int32)
        kernel.launch(3, block, [a, got, n])
        a[n:] = 0
        expected = np.cumsum(a.reshape(3, block), 1).ravel()
        np.testing.assert_array_equal(got[:n], expected[:n])
        assert not got[n:].any()


def transpose(kernel, rng):
    """By tiles of 32, eight rows of threads; a width and a height that are no multiples."""
    height, width = 70, 45
    a, got = rng.random((height, width)), np.zeros((width, height))
    kernel.launch((2, 3), (32, 8), [a, got, width, height])
    np.testing.assert_array_equal(got, a.T)


def histogram(kernel, rng):
    """256 bins in shared memory, added to those in global memory."""
    data, bins = rng.integers(0, 256, 5000).astype(np.uint8), np.arange(256, dtype=np.uint32)
    for block in (64, 256):
        got = bins.copy()
        kernel.launch(3, block, [data, got, len(data)])
        np.testing.assert_array_equal(got, bins + np.bincount(data, minlength=256).astype(np.uint32))


def flushes(kernel) -> bool:
    """Was it compiled with -ftz=true?"""
    return ".ftz" in kernel.module.programs[0].source.text


def conv2d(kernel, rng):
    """7 by 7 taps from constant memory, borders repeated; times table[(x ^ y) & 3]; counts the sums above 100."""
    width, height = 37, 21
    x = whole(rng, (height, width))
    taps = kernel.module.symbol("filt").view(np.float32).reshape(7, 7)
    taps[...] = whole(rng, (7, 7), -3, 4)
    table = np.frombuffer(bytes([0, 0, 192, 63, 0, 0, 32, 64, 0, 0, 0, 128, 194, 22, 1, 0]), np.float32)
    counter = kernel.module.symbol("counter").view(np.uint32)
    before, got = int(counter.item()), np.zeros((height, width), np.float32)
    kernel.launch((3, 3), (16, 8), [x, got, width, height])
    padded = np.pad(x, 3, "edge")
    sums = sum(taps[i, j] * padded[i : i + height, j : j + width] for i in range(7) for j in range(7))
    column, row = np.meshgrid(np.arange(width), np.arange(height))
    factor = table[(row ^ column) & 3]
    if flushes(kernel):
        factor = np.where(np.abs(factor) < np.finfo(np.float32).tiny, np.float32(0), factor)
    np.testing.assert_array_equal(got, sums * factor)
    assert counter.item() == (before + np.count_nonzero(sums > 100)) % 1001


def stencil3d(kernel, rng):
    """Of float4: a mean of five, a product and sum, an absolute difference, a minimum and maximum; the inside only."""
    nz, ny, nx = 5, 9, 12
    a, got = whole(rng, (nz, ny, nx, 4)), np.full((nz, ny, nx, 4), 7, np.float32)
    kernel.launch((2, 3, 3), (8, 4, 2), [a, got, nx, ny, nz])
    inside = (slice(1, -1), slice(1, -1), slice(1, -1))
    here, left, right = a[inside], a[1:-1, 1:-1, :-2], a[1:-1, 1:-1, 2:]
    above, below = a[1:-1, :-2, 1:-1], a[1:-1, 2:, 1:-1]
    expected = np.full_like(got, 7)
    expected[(*inside, 0)] = (here + left + right + above + below)[..., 0] * np.float32(0.2)
    expected[(*inside, 1)] = left[..., 1] * right[..., 1] + here[..., 1]
    expected[(*inside, 2)] = np.abs(above[..., 2] - below[..., 2])
    expected[(*inside, 3)] = np.maximum(left[..., 3], np.minimum(right[..., 3], here[..., 3]))
    np.testing.assert_array_equal(got, expected)


S = np.dtype(
    {
        "names": ["a", "b", "c", "d", "e", "f"],
        "formats": ["<i4", "<i2", "i1", "<f8", ("<f4", 3), "<i4"],
        "offsets": [0, 4, 6, 8, 16, 28],
        "itemsize": 32,
    }
)


def structs(kernel, rng):
    """A struct by value and arrays of it: a += s.a, b *= s.b, c ^= s.c, d /= s.d, e[i % 3] = s.e[(i + 1) % 3]."""
    n = 200
    items = np.frombuffer(rng.bytes(32 * (n + 1)), S).copy()
    items["d"], items["e"] = rng.random(n + 1) + 0.5, rng.random((n + 1, 3))
    s, items, got = items[0], items[1:].copy(), np.zeros(n, S)
    kernel.launch(2, 128, [s.tobytes(), items, got, n])
    i = np.arange(n)
    expected = items.copy()
    expected["a"] += s["a"]
    expected["b"] *= s["b"]
    expected["c"] ^= s["c"]
    expected["d"] /= s["d"]
    expected["e"][i, i % 3] = s["e"][(i + 1) % 3]
    for name in S.names:
        np.testing.assert_array_equal(got[name], expected[name], name)


def bitonic(kernel, rng):
    """One step of a bitonic sort for each launch; all of them sort."""
    a = rng.integers(-(1 << 31), 1 << 31, 256).astype(np.int32)
    got = a.copy()
    k = 2
    while k <= len(a):
        j = k // 2
        while j:
            kernel.launch(4, 64, [got, j, k])
            j //= 2
        k *= 2
    np.testing.assert_array_equal(got, np.sort(a))


def escape(x: Fraction, y: Fraction, most: int, *, fused: bool) -> int:
    """How many steps z = z² + c stays within 2, in f64 as the source rounds it."""

    def rounded(value: Fraction) -> Fraction:
        return Fraction(float(value))

    zx = zy = squared_x = squared_y = Fraction(0)
    for steps in range(1, most + 1):
        new_x = rounded(x + rounded(squared_x - squared_y))
        product = rounded(2 * zx) * zy
        zy = rounded((product if fused else rounded(product)) + y)
        zx = new_x
        squared_x, squared_y = rounded(zx * zx), rounded(zy * zy)
        if rounded(squared_x + squared_y) >= 4:
            return steps
    return most


def mandel(kernel, rng):
    """The Mandelbrot set in f64: the number of steps times 2654435761."""
    width, height, most, step = 24, 16, 30, 0.125
    got = np.zeros((height, width), np.uint32)
    kernel.launch(6, 64, [got, width, height, -2.0, -1.0, step, most])
    text = kernel.module.programs[0].source.text
    fused = "fma.rn.f64" in text[text.index(".entry mandel") :]
    steps = [
        [escape(Fraction(-2 + c * step), Fraction(-1 + r * step), most, fused=fused) for c in range(width)]
        for r in range(height)
    ]
    np.testing.assert_array_equal(got, np.array(steps, np.uint32) * np.uint32(2654435761))


def sw(kernel, rng):
    """A switch of eight cases."""
    a = np.array([*range(8), 8, -1, 100, 6, 3, *[0] * 40, -17], np.int32)
    for n in (53, 0, 1):  # a[53] is none of those that the 13 threads write
        if n == 1:
            a[6] = a[11] = 0  # case 6 reads a[1], which another thread writes
        got = a.copy()
        if n == 0:
            got[3] = got[12] = 8  # case 3 divides by n
        start = got.copy()
        kernel.launch(1, 13, [got, n])
        shifted = 4 << n if n < 32 else 0
        table = {0: n, 1: 3, 2: 2, 3: 3 // n if n else 0, 4: shifted, 5: 32 - n.bit_length(), 6: a[n] if n else 9, 7: -1}
        assert got[:13].tolist() == [table.get(value, 0) for value in start[:13].tolist()]
        assert got[13:].tolist() == a[13:].tolist()


REFERENCES = {
    f.__name__: f
    for f in (
        vadd, matmul_tiled, reduce_sum, scan_block, transpose, histogram, conv2d, stencil3d, structs, bitonic, mandel, sw,
    )
}  # fmt: skip


@pytest.mark.parametrize(("name", "kernel", "engines"), cases(r"(nvcc|nvrtc)/basic_.*", REFERENCES))
def test_basic(name, kernel, engines, rng):
    run(name, kernel, engines, REFERENCES, rng)

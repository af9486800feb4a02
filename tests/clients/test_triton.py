"""Kernels in Triton, from compiler to result, against NumPy: `make clients`.

Each runs on arrays of NumPy, of which Triton sees a pointer and a type, and on tensors of torch where that is installed.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest
import triton
import triton.language as tl

HAS_TORCH = importlib.util.find_spec("torch") is not None
TYPES = {"float32": "fp32", "float16": "fp16", "int32": "i32", "uint8": "fp8e4nv"}


class Array:
    """An array as Triton takes it."""

    def __init__(self, array):
        self.array = array
        self.dtype = TYPES[array.dtype.name]

    def data_ptr(self):
        return self.array.ctypes.data


@pytest.fixture(params=["numpy", pytest.param("torch", marks=pytest.mark.skipif(not HAS_TORCH, reason="needs torch"))])
def on_device(request):
    """Makes arrays of NumPy, contiguous ones, into what a kernel takes: the same memory."""
    if request.param == "numpy":
        return Array
    import torch

    def tensor(array):
        made = torch.from_numpy(array)
        return made.view(torch.float8_e4m3fn) if array.dtype == np.uint8 else made

    return tensor


@pytest.fixture
def rng():
    return np.random.default_rng(13)


# ── element by element ──────────────────────────────────────────────────────────────────


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, inside) + tl.load(y + at, inside), inside)


def test_vector_add(on_device, rng):
    n = 1000
    x, y, out = rng.random(n, np.float32), rng.random(n, np.float32), np.full(n + 24, 7, np.float32)
    add[(triton.cdiv(n, 256),)](on_device(x), on_device(y), on_device(out), n, BLOCK=256)
    assert (out[:n] == x + y).all()
    assert (out[n:] == 7).all()


@triton.jit
def dropout(x, out, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    keep = tl.rand(seed, at) > p
    tl.store(out + at, tl.where(keep, tl.load(x + at, inside) / (1 - p), 0.0), inside)


def philox_4x32_10(seed, counter):
    """The first word of Philox 4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3")."""
    low = np.uint64(0xFFFFFFFF)
    a, b, c, d = counter.astype(np.uint64), *(np.zeros(len(counter), np.uint64) for _ in range(3))
    key = [np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)]
    for _ in range(10):
        first, second = np.uint64(0xD2511F53) * a, np.uint64(0xCD9E8D57) * c
        a, b, c, d = second >> np.uint64(32) ^ b ^ key[0], second & low, first >> np.uint64(32) ^ d ^ key[1], first & low
        key = [key[0] + np.uint64(0x9E3779B9) & low, key[1] + np.uint64(0xBB67AE85) & low]
    return a.astype(np.uint32)


def test_dropout(on_device, rng):
    """`tl.rand` is Philox, as a float in [0, 1): the bits as an integer, a negative one inverted, times 2^-31 or so."""
    n, p, seed = 2000, np.float32(0.4), 123
    x, out = rng.random(n, np.float32) + np.float32(1), np.zeros(n, np.float32)
    dropout[(triton.cdiv(n, 512),)](on_device(x), on_device(out), n, float(p), seed, BLOCK=512)
    words = philox_4x32_10(seed, np.arange(n)).view(np.int32).astype(np.int64)
    uniform = np.where(words < 0, -words - 1, words).astype(np.float32) * np.float32(4.6566127342e-10)
    np.testing.assert_allclose(out, np.where(uniform > p, x / (1 - p), 0), rtol=1e-6)


def test_a_second_process_needs_no_llvm(tmp_path):
    """Triton keeps its PTX and ptxvm its code: the second process imports neither compiler."""
    program = tmp_path / "program.py"
    program.write_text(SECOND_PROCESS)
    caches = {"TRITON_CACHE_DIR": str(tmp_path / "triton"), "PTXVM_CACHE": str(tmp_path / "ptxvm")}
    command = [sys.executable, "-m", "ptxvm", "exec", "--", sys.executable, str(program)]
    said = [subprocess.run(command, env=os.environ | caches, capture_output=True, text=True, check=True).stdout for _ in "12"]
    assert said == ["499500 True\n", "499500 False\n"]


SECOND_PROCESS = """
import sys
import numpy as np
import triton
import triton.language as tl

class Array:
    dtype = "i32"
    def __init__(self, array):
        self.array = array
    def data_ptr(self):
        return self.array.ctypes.data

@triton.jit
def total(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out, tl.sum(tl.load(x + at, at < n, other=0), 0))

x, out = np.arange(1000, dtype=np.int32), np.zeros(1, np.int32)
total[(1,)](Array(x), Array(out), 1000, BLOCK=1024)
print(out[0], "llvmlite" in sys.modules)
"""


# ── scans, counts and atomics ───────────────────────────────────────────────────────────


@triton.jit
def after(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def recurrence(a, b, out, R: tl.constexpr, C: tl.constexpr):
    at = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    _, h = tl.associative_scan((tl.load(a + at), tl.load(b + at)), 1, after)
    tl.store(out + at, h)


def test_associative_scan(on_device, rng):
    a, b = (rng.random((8, 128)).astype(np.float32) for _ in "ab")
    out, h, expected = np.zeros_like(a), np.zeros(8), np.zeros(a.shape)
    recurrence[(1,)](on_device(a), on_device(b), on_device(out), R=8, C=128)
    for column in range(128):
        h = expected[:, column] = h * a[:, column] + b[:, column]
    np.testing.assert_allclose(out, expected, rtol=2e-5)


@triton.jit
def count(x, counts, lock, N: tl.constexpr, BINS: tl.constexpr):
    """Each program adds its histogram to that of all, and its number to a sum behind a lock."""
    own = tl.histogram(tl.load(x + tl.program_id(0) * N + tl.arange(0, N)), BINS)
    tl.atomic_add(counts + tl.arange(0, BINS), own)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(lock + 1, tl.load(lock + 1, volatile=True) + tl.program_id(0))
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


def test_histograms_and_a_lock(on_device, rng):
    x, counts, lock = rng.integers(0, 32, 4096).astype(np.int32), np.zeros(32, np.int32), np.zeros(2, np.int32)
    count[(8,)](on_device(x), on_device(counts), on_device(lock), N=512, BINS=32)
    assert (counts == np.bincount(x, minlength=32)).all()
    assert lock.tolist() == [0, sum(range(8))]


# ── rows ────────────────────────────────────────────────────────────────────────────────


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0) * columns
    values = tl.load(x + row + at, at < columns, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(out + row + at, powers / tl.sum(powers, 0), at < columns)


def test_softmax(on_device, rng):
    x = rng.normal(0, 3, (13, 781)).astype(np.float32)
    out = np.zeros_like(x)
    softmax[(13,)](on_device(x), on_device(out), 781, BLOCK=1024)
    powers = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, powers / powers.sum(1, keepdims=True), rtol=2e-6)


@triton.jit
def layer_norm(x, weight, bias, out, mean_out, rstd_out, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * columns + at, inside, other=0.0)
    mean = tl.sum(values, 0) / columns
    centred = tl.where(inside, values - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(centred * centred, 0) / columns + eps)
    tl.store(mean_out + row, mean)
    tl.store(rstd_out + row, rstd)
    scaled = centred * rstd * tl.load(weight + at, inside) + tl.load(bias + at, inside)
    tl.store(out + row * columns + at, scaled, inside)


@triton.jit
def layer_norm_backward(x, weight, dout, mean, rstd, dx, dweight, dbias, columns, BLOCK: tl.constexpr):
    """The gradients of a row; those of the weights are added up by atomics."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    normal = (tl.load(x + row * columns + at, inside, other=0.0) - tl.load(mean + row)) * tl.load(rstd + row)
    normal = tl.where(inside, normal, 0.0)
    given = tl.load(dout + row * columns + at, inside, other=0.0)
    weighted = given * tl.load(weight + at, inside, other=0.0)
    along = tl.sum(normal * weighted, 0) / columns
    gradient = (weighted - normal * along - tl.sum(weighted, 0) / columns) * tl.load(rstd + row)
    tl.store(dx + row * columns + at, gradient, inside)
    tl.atomic_add(dweight + at, given * normal, inside)
    tl.atomic_add(dbias + at, given, inside)


def test_layer_norm_and_its_gradient(on_device, rng):
    rows, columns, eps = 9, 300, 1e-5
    x, dout = (rng.normal(1, 2, (rows, columns)).astype(np.float32) for _ in range(2))
    weight, bias = (rng.normal(0, 1, columns).astype(np.float32) for _ in range(2))
    out, dx, mean, rstd = (np.zeros(shape, np.float32) for shape in (x.shape, x.shape, rows, rows))
    dweight, dbias = np.zeros(columns, np.float32), np.zeros(columns, np.float32)
    given = [on_device(each) for each in (x, weight, bias, out, mean, rstd)]
    layer_norm[(rows,)](*given, columns, eps, BLOCK=512)
    given = [on_device(each) for each in (x, weight, dout, mean, rstd, dx, dweight, dbias)]
    layer_norm_backward[(rows,)](*given, columns, BLOCK=512)

    exact = x.astype(np.float64)
    scale = 1 / np.sqrt(exact.var(1, keepdims=True) + eps)
    normal = (exact - exact.mean(1, keepdims=True)) * scale
    weighted = dout * weight.astype(np.float64)
    gradient = (weighted - normal * (normal * weighted).mean(1, keepdims=True) - weighted.mean(1, keepdims=True)) * scale
    np.testing.assert_allclose(out, normal * weight + bias, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(dx, gradient, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(dweight, (dout * normal).sum(0), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(dbias, dout.sum(0, dtype=np.float64), rtol=1e-4, atol=1e-4)


# ── matrices ────────────────────────────────────────────────────────────────────────────


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        left = tl.load(a + m[:, None] * K + (start + k)[None, :], (m[:, None] < M) & ((start + k)[None, :] < K), other=0.0)
        right = tl.load(b + (start + k)[:, None] * N + n[None, :], ((start + k)[:, None] < K) & (n[None, :] < N), other=0.0)
        total = tl.dot(left, right, total)
    tl.store(c + m[:, None] * N + n[None, :], total, (m[:, None] < M) & (n[None, :] < N))


def test_matmul(on_device, rng):
    """Products of halves are exact in f32; small integers keep their sums exact too."""
    M, N, K = 70, 90, 100
    a, b = (rng.integers(-8, 9, shape).astype(np.float16) for shape in ((M, K), (K, N)))
    c = np.zeros((M, N), np.float32)
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 32))
    matmul[grid](on_device(a), on_device(b), on_device(c), M, N, K, BM=32, BN=32, BK=32)
    assert (c == a.astype(np.float32) @ b.astype(np.float32)).all()


autotuned = triton.autotune(
    configs=[triton.Config({"BM": size, "BN": 32, "BK": 32}, num_warps=warps) for size, warps in ((16, 2), (32, 4))],
    key=["M", "N", "K"],
)(matmul)


def test_autotuning_measures_each_configuration_and_keeps_one(on_device, rng):
    M = N = K = 64
    a, b = (rng.integers(-8, 9, (64, 64)).astype(np.float16) for _ in range(2))
    c = np.zeros((M, N), np.float32)
    autotuned.cache.clear()
    grid = lambda chosen: (triton.cdiv(M, chosen["BM"]), triton.cdiv(N, chosen["BN"]))  # noqa: E731
    autotuned[grid](on_device(a), on_device(b), on_device(c), M, N, K)
    assert (c == a.astype(np.float32) @ b.astype(np.float32)).all()
    assert len(autotuned.configs_timings) == 2
    assert all(min(times) > 0 for times in autotuned.configs_timings.values())


@triton.jit
def to_fp8_and_back(x, small, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    narrow = tl.load(x + at, at < n).to(tl.float8e4nv)
    tl.store(small + at, narrow, at < n)
    tl.store(out + at, narrow.to(tl.float32), at < n)


def test_fp8(on_device, rng):
    """Rounded to e4m3 as ml_dtypes rounds, and multiplied by the tensor core."""
    from ml_dtypes import float8_e4m3fn

    if triton.runtime.driver.active.get_current_target().arch < 89:
        pytest.skip("Triton has this type since sm_89")
    x = rng.normal(0, 10, 512).astype(np.float32)
    small, out = np.zeros(512, np.uint8), np.zeros(512, np.float32)
    to_fp8_and_back[(2,)](on_device(x), on_device(small), on_device(out), 512, BLOCK=256)
    assert (small == x.astype(float8_e4m3fn).view(np.uint8)).all()
    assert (out == x.astype(float8_e4m3fn).astype(np.float32)).all()

    a, b = (rng.integers(-8, 9, (64, 64)).astype(float8_e4m3fn) for _ in range(2))
    c = np.zeros((64, 64), np.float32)
    given = [on_device(each) for each in (a.view(np.uint8), b.view(np.uint8), c)]
    matmul[(2, 2)](*given, 64, 64, 64, BM=32, BN=32, BK=32)
    assert (c == a.astype(np.float32) @ b.astype(np.float32)).all()


@triton.jit
def attention(q, k, v, out, scale, N, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):
    """One head and one block of queries: the softmax over blocks of keys, rescaled as its maximum grows."""
    head = tl.program_id(1) * N * D
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    queries = tl.load(q + head + m[:, None] * D + d[None, :])
    greatest = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    result = tl.zeros((BM, D), tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * BM if CAUSAL else N, BN):
        n = start + tl.arange(0, BN)
        keys = tl.load(k + head + n[None, :] * D + d[:, None])
        scores = tl.dot(queries, keys) * scale
        if CAUSAL:
            scores = tl.where(m[:, None] >= n[None, :], scores, -float("inf"))
        now = tl.maximum(greatest, tl.max(scores, 1))
        powers = tl.exp(scores - now[:, None])
        old = tl.exp(greatest - now)
        total = total * old + tl.sum(powers, 1)
        values = tl.load(v + head + n[:, None] * D + d[None, :])
        result = result * old[:, None] + tl.dot(powers.to(tl.float16), values)
        greatest = now
    tl.store(out + head + m[:, None] * D + d[None, :], result / total[:, None])


@pytest.mark.parametrize("causal", [False, True])
def test_fused_attention(on_device, rng, causal):
    heads, N, D = 2, 128, 32
    q, k, v = (rng.normal(0, 1, (heads, N, D)).astype(np.float16) for _ in range(3))
    out = np.zeros((heads, N, D), np.float32)
    given = [on_device(each) for each in (q, k, v, out)]
    attention[(N // 64, heads)](*given, D**-0.5, N, D=D, BM=64, BN=32, CAUSAL=causal)
    scores = q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1) * D**-0.5
    if causal:
        scores[:, np.triu_indices(N, 1)[0], np.triu_indices(N, 1)[1]] = -np.inf
    powers = np.exp(scores - scores.max(2, keepdims=True))
    np.testing.assert_allclose(out, powers / powers.sum(2, keepdims=True) @ v.astype(np.float64), rtol=5e-3, atol=2e-3)


class Buffer:
    """Memory that a kernel asks for, where it makes the descriptors of its tensors; `freed` is called at its end."""

    def __init__(self, size, alignment, freed):
        self.array = np.zeros(size + alignment, np.uint8)
        self.start = -self.array.ctypes.data % alignment + self.array.ctypes.data
        self.freed = freed

    def __del__(self):
        self.freed()

    def data_ptr(self):
        return self.start


@triton.jit
def persistent(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PROGRAMS: tl.constexpr):
    """Each program computes several tiles of C = A B^T; descriptors of tensors become tensor copies from sm_90 on."""
    left = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    right = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    result = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    across = tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * across, PROGRAMS):
        m, n = tile // across * BM, tile % across * BN
        total = tl.zeros((BM, BN), tl.float32)
        for k in range(0, K, BK):
            total = tl.dot(left.load([m, k]), right.load([n, k]).T, total)
        result.store([m, n], total)


def test_persistent_matmul(on_device, rng):
    """No side is a multiple of a tile: copies fill with zeros, and leave out what is outside.

    Triton frees the memory of the descriptors when its launcher returns: the kernel has ended then.
    """
    M, N, K = 200, 136, 96
    a, b = (rng.integers(-8, 9, shape).astype(np.float16) for shape in ((M, K), (N, K)))
    c = np.zeros((M, N), np.float32)
    expected, ended = a.astype(np.float32) @ b.astype(np.float32).T, []
    triton.set_allocator(lambda size, alignment, _: Buffer(size, alignment, lambda: ended.append((c == expected).all())))
    given = [on_device(each) for each in (a, b, c)]
    persistent[(2,)](*given, M, N, K, BM=128, BN=64, BK=64, PROGRAMS=2)
    assert (c == expected).all()
    assert ended == [True] * len(ended)


@triton.jit
def of_scaled_blocks(a, of_a, b, of_b, c, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """C = A B^T, whose factors are e4m3 with a scale for each 32 of K."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k, block = start + tl.arange(0, BK), start // 32 + tl.arange(0, BK // 32)
        left = tl.load(a + m[:, None] * K + k[None, :])
        right = tl.load(b + n[None, :] * K + k[:, None])
        rows = tl.load(of_a + m[:, None] * (K // 32) + block[None, :]).to(tl.uint8, bitcast=True)
        columns = tl.load(of_b + n[:, None] * (K // 32) + block[None, :]).to(tl.uint8, bitcast=True)
        total = tl.dot_scaled(left, rows, "e4m3", right, columns, "e4m3", total)
    tl.store(c + m[:, None] * N + n[None, :], total)


def test_matmul_of_scaled_blocks(on_device, rng):
    """Small integers times powers of two near one: every sum is exact."""
    from ml_dtypes import float8_e4m3fn

    if triton.runtime.driver.active.get_current_target().arch < 89:
        pytest.skip("Triton has e4m3 since sm_89")
    M, N, K = 128, 128, 256
    a, b = (rng.integers(-8, 9, (rows, K)) for rows in (M, N))
    powers = [rng.integers(-2, 3, (rows, K // 32)) for rows in (M, N)]
    c = np.zeros((M, N), np.float32)
    small = [each.astype(float8_e4m3fn).view(np.uint8) for each in (a, b)]
    scales = [(each + 127).astype(np.uint8) for each in powers]
    given = [on_device(each) for each in (small[0], scales[0], small[1], scales[1], c)]
    of_scaled_blocks[(1, 1)](*given, N, K, BM=128, BN=128, BK=128)
    left, right = (each * 2.0 ** power.repeat(32, axis=1) for each, power in zip((a, b), powers, strict=True))
    assert (c == left @ right.T).all()

"""Random kernels on both engines: they leave the same bits."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np

from ptxvm.api import Kernel, load
from ptxvm.campaign.random_kernels.kernels import DOUBLES_AT, SIZE, STRIDE, RandomKernel, kernels
from ptxvm.campaign.random_kernels.memory import INPUT
from ptxvm.machine.options import EngineName
from ptxvm.machine.per_lane import Array

STRANGE = np.array(
    [0, 1, 0x80000000, 0x7F800000, 0x7FC00000, 0xFFFFFFFF, 0x7FFFFFFF, 0x00000001, 0x80000001, 0x3F800000, 0x7F7FFFFF],
    np.uint32,
)


def random_kernel(number: int) -> RandomKernel:
    """The random kernel of a number."""
    from hypothesis import HealthCheck, Phase, given, seed, settings  # noqa: PLC0415 - an extra

    drawn: list[RandomKernel] = []

    # The first example of hypothesis is the simplest there is; the third is random.
    @seed(number)
    @settings(max_examples=3, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(kernels())
    def draw(kernel: RandomKernel) -> None:
        drawn.append(kernel)

    draw()
    return drawn[-1]


def compare(random: RandomKernel) -> None:
    """AssertionError where the engines disagree on what the kernel leaves, or on how many instructions it has."""
    kernel = load(random.text).kernel()
    (one, counted), (other, too) = left_by("interp", random, kernel), left_by("jit", random, kernel)
    for name, rows in one.items():
        wrong = np.argwhere(rows != other[name])
        if len(wrong):
            first = f"byte {wrong[0][1]} of {name} of thread {wrong[0][0]}"
            raise AssertionError(f"the engines disagree: {first}, and {len(wrong)} bytes in all")
    if not random.locks and counted != too:
        raise AssertionError(f"the engines count {counted} and {too} instructions")


def left_by(engine: EngineName, random: RandomKernel, kernel: Kernel) -> tuple[dict[str, Array], int]:
    """What a kernel leaves in memory, and how many instructions its threads have run."""
    threads = random.ctas * random.threads
    inputs, work = words(random.seed, INPUT // 4), words(random.seed + 1, threads * STRIDE // 4)
    inputs, work = fenced(inputs), fenced(work)
    shared, out = fenced(np.zeros(17, np.uint64)), fenced(np.zeros(threads * SIZE, np.uint8))
    result = kernel.launch(random.grid, random.shape, [inputs, work, shared, out], shared=random.shared, engine=engine)
    rows = {
        "result": one_nan(out.reshape(-1, SIZE), DOUBLES_AT),
        "work": one_nan(work.view(np.uint8).reshape(-1, STRIDE), slice(STRIDE - 16, STRIDE - 8)),
    }
    return rows | {"shared": shared.view(np.uint8).reshape(-1, 8)}, result.thread_instructions


def words(seed: int, count: int) -> Array:
    """What a kernel reads: random words, small ones, and those that break things."""
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 2**32, count, np.uint32)
    odd, small = rng.random(count) < 0.3, rng.random(count) < 0.3
    data[odd] = rng.choice(STRANGE, int(odd.sum()))
    data[small] &= 0x7F
    return data


def one_nan(rows: Array, where: slice) -> Array:
    """The results with one NaN of f64: which payload comes out of an operation on two NaNs is open."""
    doubles = np.ascontiguousarray(rows[:, where]).view(np.float64)
    doubles[np.isnan(doubles)] = np.nan
    rows[:, where] = doubles.view(np.uint8)
    return rows


def fenced(array: Array) -> Array:
    """A copy that ends where a page ends, before one that nothing may read: code that reads beyond it ends the process."""
    page, bytes = mmap.PAGESIZE, array.nbytes
    pages = mmap.mmap(-1, -(-bytes // page) * page + page)
    fence = np.frombuffer(pages, np.uint8)[-page:]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(fence.ctypes.data), ctypes.c_size_t(page), 0):
        raise OSError(ctypes.get_errno(), "mprotect")
    copy = np.frombuffer(pages, array.dtype, array.size, len(pages) - page - bytes).reshape(array.shape)
    copy[...] = array
    return copy


__all__ = ["compare", "fenced", "left_by", "one_nan", "random_kernel"]

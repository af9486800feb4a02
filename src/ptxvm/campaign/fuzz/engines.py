"""Random kernels on both engines: they leave the same bits."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np

from ptxvm.api import Kernel, load
from ptxvm.campaign.random_kernels.kernels import DOUBLES_AT, SIZE, STRIDE, Launch, RandomKernel, Watch
from ptxvm.campaign.random_kernels.memory import INPUT
from ptxvm.machine.options import Check, EngineName
from ptxvm.machine.per_lane import Array
from ptxvm.machine.result import LaunchResult

STRANGE = np.array(
    [0, 1, 0x80000000, 0x7F800000, 0x7FC00000, 0xFFFFFFFF, 0x7FFFFFFF, 0x00000001, 0x80000001, 0x3F800000, 0x7F7FFFFF],
    np.uint32,
)


ENGINES: tuple[EngineName, ...] = ("interp", "auto")
"""Each counts and checks; compiled code where it can."""


def compare(random: RandomKernel) -> None:
    """AssertionError where the engines disagree on what the kernel leaves, on what they count, or find what is not there."""
    kernel = load(random.text).kernel()
    for launch in random.launches:
        (one, counted), (other, too) = left_by("interp", random, launch, kernel), left_by("jit", random, launch, kernel)
        assert_same(one, other, launch)
        if not random.locks and counted != too:
            raise AssertionError(f"the engines count {counted} and {too} instructions of {launch}")
    if random.locks:
        return  # how often a lane spins is chance
    if random.watch is Watch.PROFILE:
        compare_profiles(random, kernel)
    if random.watch in CHECKED:
        compare_checked(random, kernel)


def assert_same(one: dict[str, Array], other: dict[str, Array], launch: Launch) -> None:
    """AssertionError where memory differs."""
    for name, rows in one.items():
        wrong = np.argwhere(rows != other[name])
        if len(wrong):
            first = f"byte {wrong[0][1]} of {name} of thread {wrong[0][0]}"
            raise AssertionError(f"the engines disagree: {first}, and {len(wrong)} bytes in all, of {launch}")


def compare_profiles(random: RandomKernel, kernel: Kernel) -> None:
    """AssertionError where the engines count otherwise of a line."""
    launch = random.launches[0]
    one, other = (counts_of(kernel, random, launch, engine) for engine in ENGINES)
    for line in sorted(one.keys() | other.keys()):
        if one.get(line) != other.get(line):
            raise AssertionError(f"the engines count otherwise of line {line}: {one.get(line)} and {other.get(line)}")


def counts_of(kernel: Kernel, random: RandomKernel, launch: Launch, engine: EngineName) -> dict[int, dict[str, int]]:
    """What an engine counts, by line; the interpreter where compiled code cannot."""
    _, result = launched(random, launch, kernel, engine=engine, profile=True)
    lines = () if result.profile is None else result.profile.lines
    return {line.number: {name: count for name, count in line.counts.items() if count} for line in lines}


def compare_checked(random: RandomKernel, kernel: Kernel) -> None:
    """AssertionError where a check finds what is not there, or engines find different things, or it changes what is left.

    There are no wrong accesses, uninitialised reads and races.  Shuffles may read from lanes that do not take part.
    """
    launch = random.launches[0]
    bare, _ = left_by("interp", random, launch, kernel)
    checks = CHECKED[random.watch]
    told = []
    for engine in ENGINES:
        memory, result = launched(random, launch, kernel, engine=engine, check=checks)
        told.append([str(each) for each in result.findings])
        if result.findings and "sync" not in checks:
            raise AssertionError(f"{engine} finds in {launch}: {result.findings[0].message}")
        assert_same(bare, memory.rows(), launch)
    if told[0] != told[1]:
        raise AssertionError(f"the engines find different things in {launch}: {told[0][:1]} and {told[1][:1]}")


CHECKED: dict[Watch, tuple[Check, ...]] = {Watch.CHECKS: ("memory", "init", "race"), Watch.SYNC: ("sync",)}


def left_by(engine: EngineName, random: RandomKernel, launch: Launch, kernel: Kernel) -> tuple[dict[str, Array], int]:
    """What a kernel leaves in memory, and how many instructions its threads have run."""
    memory, result = launched(random, launch, kernel, engine=engine)
    return memory.rows(), result.thread_instructions


def launched(random: RandomKernel, launch: Launch, kernel: Kernel, **how: Any) -> tuple[Memory, LaunchResult]:  # noqa: ANN401
    """Launch a kernel on memory of its own."""
    memory = Memory(random, launch)
    arguments = [*memory.arrays, np.uint32(launch.few), np.uint32(launch.many)]
    return memory, kernel.launch(launch.grid, random.shape, arguments, shared=random.shared, **how)


class Memory:
    """The arrays of a launch: what it reads, each thread's own, words that all update, and results."""

    def __init__(self, random: RandomKernel, launch: Launch) -> None:
        threads = launch.ctas * random.threads
        inputs, work = words(launch.seed, INPUT // 4), words(launch.seed + 1, threads * STRIDE // 4)
        self.arrays = [*map(fenced, (inputs, work, np.zeros(17, np.uint64), np.zeros(threads * SIZE, np.uint8)))]

    def rows(self) -> dict[str, Array]:
        """What is written, by thread, with one NaN."""
        _, work, shared, out = self.arrays
        return {
            "result": one_nan(out.reshape(-1, SIZE), DOUBLES_AT),
            "work": one_nan(work.view(np.uint8).reshape(-1, STRIDE), slice(STRIDE - 16, STRIDE - 8)),
            "shared": shared.view(np.uint8).reshape(-1, 8),
        }


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


__all__ = ["compare", "fenced", "left_by", "one_nan"]

"""Random kernels on both engines: they leave the same bits."""

from __future__ import annotations

import ctypes
import mmap
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ptxvm.api import Kernel, load
from ptxvm.campaign.random_kernels.columns import COLUMN, by_column
from ptxvm.campaign.random_kernels.kernels import DOUBLES_AT, SIZE, STRIDE, Launch, RandomKernel, Watch
from ptxvm.campaign.random_kernels.memory import INPUT
from ptxvm.campaign.random_kernels.operand_classes import SLOTS, SPECIAL
from ptxvm.campaign.random_kernels.rows import ROWS
from ptxvm.diagnostics.errors import Fault, Place
from ptxvm.engine.jit.run.tiering import policy
from ptxvm.machine.options import Check, EngineName
from ptxvm.machine.per_lane import Array
from ptxvm.machine.result import LaunchResult
from ptxvm.machine.settings import Tiering

STRANGE = np.array(
    [0, 1, 0x80000000, 0x7F800000, 0x7FC00000, 0xFFFFFFFF, 0x7FFFFFFF, 0x00000001, 0x80000001, 0x3F800000, 0x7F7FFFFF],
    np.uint32,
)


TIER = "PTXVM_TIER"
ADDRESS = re.compile(r"\b0x[0-9a-f]+")
UNUSED = np.zeros(16, np.uint8)
"""An array that a kernel does not access."""
ENGINES: tuple[EngineName, ...] = ("interp", "auto")
"""Each counts and checks; compiled code where it can."""


def compare(random: RandomKernel) -> None:
    """AssertionError where the engines disagree on what the kernel leaves, on what they count, or find what is not there."""
    kernel = load(random.text).kernel()
    with compiled_as(random.tier):
        for launch in random.launches:
            compare_launch(random, launch, kernel)
        if random.locks:
            return
        if random.watch is Watch.PROFILE and not random.stray and not random.spins:
            compare_profiles(random, kernel)
        if random.watch in CHECKED:
            compare_checked(random, kernel)


def compare_launch(random: RandomKernel, launch: Launch, kernel: Kernel) -> None:
    """AssertionError where the engines leave or count different things, or one has no fault, or another."""
    memory = Memory(random, launch)
    try:
        counted = launched(memory, kernel, engine="interp").thread_instructions
    except Fault as fault:
        if not random.stray:
            raise
        compare_fault(fault, memory, kernel)
        return
    one = memory.rows()
    too = launched(memory, kernel, engine="jit").thread_instructions
    assert_same(one, memory.rows(), launch)
    if not random.spins and counted != too:
        raise AssertionError(f"the engines count {counted} and {too} instructions of {launch}")


def compare_fault(fault: Fault, memory: Memory, kernel: Kernel) -> None:
    """AssertionError where compiled code does not have the same fault, or that of another thread."""
    try:
        launched(memory, kernel, engine="jit")
    except Fault as other:
        one, too = told_of(fault, memory), told_of(other, memory)
        if one != too and not are_of_different_threads(fault.place, other.place):
            raise AssertionError(f"the engines have different faults, {one} and {too}, of {memory.launch}") from None
        return
    raise AssertionError(f"only the interpreter has the fault {fault} of {memory.launch}")


def are_of_different_threads(one: Place, other: Place) -> bool:
    """Which of their faults comes first is open, in one warp too: lanes that have parted may meet again late."""
    return (one.cta, one.thread) != (other.cta, other.thread)


def told_of(fault: Fault, memory: Memory) -> tuple[object, ...]:
    """What a fault is, where, and of which address: shared and local memory are elsewhere in each launch."""
    address = fault.address if fault.address is not None and memory.is_near(fault.address) else None
    return fault.kind, fault.place.line, fault.place.cta, fault.place.thread, address, fault.size


@contextmanager
def compiled_as(tier: Tiering) -> Iterator[None]:
    """Within `with` kernels are compiled as a tier says."""
    before = os.environ.get(TIER)
    os.environ[TIER] = tier
    policy.cache_clear()
    try:
        yield
    finally:
        os.environ.pop(TIER)
        if before is not None:
            os.environ[TIER] = before
        policy.cache_clear()


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
    result = launched(Memory(random, launch), kernel, engine=engine, profile=True)
    lines = () if result.profile is None else result.profile.lines
    return {line.number: {name: count for name, count in line.counts.items() if count} for line in lines}


def compare_checked(random: RandomKernel, kernel: Kernel) -> None:
    """AssertionError where a check finds what is not there, or engines find different things, or it changes what is left.

    There are no uninitialised reads and races, and wrong accesses in stray kernels alone.
    Shuffles may read from lanes that do not take part.
    """
    launch = random.launches[0]
    memory, bare = Memory(random, launch), None
    if not random.stray:
        launched(memory, kernel, engine="interp")
        bare = memory.rows()
    checks = CHECKED[random.watch]
    told = []
    for engine in ENGINES:
        result = launched(memory, kernel, engine=engine, check=checks)
        told.append([ADDRESS.sub("an address", str(each)) for each in result.findings])
        if bare is None:
            continue
        if result.findings and "sync" not in checks:
            raise AssertionError(f"{engine} finds in {launch}: {result.findings[0].message}")
        assert_same(bare, memory.rows(), launch)
    if told[0] != told[1]:
        raise AssertionError(f"the engines find different things in {launch}: {told[0][:1]} and {told[1][:1]}")


CHECKED: dict[Watch, tuple[Check, ...]] = {Watch.CHECKS: ("memory", "init", "race"), Watch.SYNC: ("sync",)}


def launched(memory: Memory, kernel: Kernel, **how: Any) -> LaunchResult:  # noqa: ANN401
    """Launch a kernel on its memory as it is at first."""
    memory.fill()
    random, launch = memory.random, memory.launch
    arguments = [*memory.arrays, np.uint32(launch.few), np.uint32(launch.many)]
    return kernel.launch(launch.grid, random.shape, arguments, shared=random.shared, cluster=random.cluster, **how)


class Memory:
    """The arrays of a launch: what it reads, each thread's own, words that all update, results, rows to read, and columns.

    They stay where they are from one launch to the next: what an address is that lies beside them does not change.
    """

    def __init__(self, random: RandomKernel, launch: Launch) -> None:
        self.random, self.launch = random, launch
        threads = launch.ctas * random.threads
        inputs, work = read_only(launch.seed), words(launch.seed + 1, threads * STRIDE // 4)
        rows = words(launch.seed + 2, ROWS // 4).view(np.uint8)[: ROWS - launch.skew] if random.has_rows else UNUSED
        columns = words(launch.seed + 3, 4 * -(-threads * COLUMN // 16)).view(np.uint8) if random.has_columns else UNUSED
        self.first = [inputs, work, np.zeros(17, np.uint64), np.zeros(threads * SIZE, np.uint8), rows, columns]
        self.arrays = [fenced(each) for each in self.first]

    def fill(self) -> None:
        """Give all arrays what they have at first."""
        for array, first in zip(self.arrays, self.first, strict=True):
            array[...] = first

    def is_near(self, address: int) -> bool:
        """Is it in one of the arrays, or within a page beside one?"""
        starts = ((each.ctypes.data, each.nbytes) for each in self.arrays)
        return any(start - mmap.PAGESIZE <= address < start + size + mmap.PAGESIZE for start, size in starts)

    def rows(self) -> dict[str, Array]:
        """A copy of what is written, by thread, with one NaN."""
        work, shared, out, columns = (self.arrays[n].copy() for n in (1, 2, 3, 5))
        threads = self.launch.ctas * self.random.threads
        return {
            "result": one_nan(out.reshape(-1, SIZE), DOUBLES_AT),
            "work": one_nan(work.view(np.uint8).reshape(-1, STRIDE), slice(STRIDE - 16, STRIDE - 8)),
            "shared": shared.view(np.uint8).reshape(-1, 8),
            "columns": by_column(columns, threads) if self.random.has_columns else columns.reshape(1, -1),
        }


def read_only(seed: int) -> Array:
    """What all threads read and none writes: slots of special numbers, and words."""
    slots = np.random.default_rng(seed).choice(np.array(SPECIAL, np.uint64), SLOTS).view(np.uint32)
    return np.concatenate([slots, words(seed, INPUT // 4 - slots.size)])


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


__all__ = ["Memory", "compare", "counts_of", "fenced", "launched", "one_nan"]

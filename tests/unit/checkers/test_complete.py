"""No race is lost: random programs against a checker that keeps every access (PTX 8.7.1), and small kernels."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pytest

import ptxvm
from ptxvm.algebra.memory_order import Order, Scope
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type
from ptxvm.checkers.race import RaceDetector
from ptxvm.checkers.shadow import Packing
from ptxvm.isa.effects import COMPUTES
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.events import Scene
from ptxvm.machine.launch import LaunchShape

# ── an oracle: all accesses are kept, and every thread has a set of those that come before what it does next ────────────

BLOCK = 64  # two warps of a CTA
ACTIVE = (0, 1, 32, 33)  # those of its threads that access anything
STRENGTHS = (("weak", "sys"), ("weak", "sys"), ("volatile", "sys"), ("relaxed", "gpu"), ("relaxed", "cta"))


MEETING = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k() { bar.warp.sync -1; ret; }
"""


@cache
def meeting():
    """The instruction at which lanes meet, and which orders their accesses (PTX 9.7.13.2)."""
    return ptxvm.load(MEETING).kernel().function.instructions[0]


class Instruction:
    """One that no other is equal to."""

    summary = COMPUTES


@dataclass(eq=False)
class Step:
    """A place of the code: what it does, and how strong it is."""

    bound: Any
    operation: str
    type: Type
    order: str
    scope: str
    space: Space = Space.GLOBAL
    count: int = 1
    proxy: str = ""
    attributes: dict[str, Any] = field(init=False)

    def __post_init__(self):
        self.order, self.scope = Order(self.order), Scope(self.scope)
        self.attributes = {"order": self.order, "scope": self.scope, "proxy": self.proxy}

    @property
    def writes(self):
        return self.operation != "read"

    def reaches(self, one, other):
        """Is it strong, and does its scope have the thread `other` of the one who does it?"""
        return self.order != "weak" and (self.scope in ("gpu", "sys") or one // BLOCK == other // BLOCK)


@dataclass(eq=False, frozen=True)
class Done:
    """An access that a thread has made."""

    step: Step
    thread: int
    offset: int

    @property
    def bytes(self):
        return set(range(self.offset, self.offset + self.step.type.bytes))

    def strong_with(self, other):
        return (
            self.bytes == other.bytes
            and self.step.proxy == other.step.proxy
            and self.step.reaches(self.thread, other.thread)
            and other.step.reaches(other.thread, self.thread)
        )


class Oracle:
    """Keeps everything: what each thread knows is a set."""

    def __init__(self):
        self.done = []
        self.known = {}  # by thread
        self.knew = {}  # by access, what its thread knew then
        self.last = {}  # by byte, the last write
        self.observed = {}  # by write, who observed it
        self.seen = {}  # by atomic, the writes that it observed (PTX 8.9.4)

    def access(self, step, thread, offset):
        """The earlier accesses that one more races with."""
        mine = Done(step, thread, offset)
        known = self.known.setdefault(thread, set())
        racing = [each for each in self.done if self._races(each, mine, known)]
        for byte in mine.bytes:
            last = self.last.get(byte)
            if step.operation != "write" and last is not None and last.strong_with(mine):
                self.observe(mine, last)
            if step.writes:
                self.last[byte] = mine
        self.done.append(mine)
        self.knew[mine] = set(known)
        known.add(mine)
        return racing

    def observe(self, mine, last):
        """A write, and through an atomic what that has observed."""
        self.seen[mine] = {last} | self.seen.get(last, set())
        for write in self.seen[mine]:
            self.observed.setdefault(write, []).append(mine)

    def _races(self, earlier, later, known):
        conflict = earlier.bytes & later.bytes and (earlier.step.writes or later.step.writes)
        if conflict and earlier.step.writes and not self._can_be_seen(earlier, later) and not earlier.strong_with(later):
            return True
        if not conflict or earlier.thread == later.thread or earlier in known or earlier.strong_with(later):
            return False
        return not any(each in known for each in self.observed.get(earlier, ()))

    def _can_be_seen(self, earlier, later):
        """Can causality order the accesses, the earlier of which writes (PTX 8.9.5, 1 and 2; and 2.3)?"""
        if earlier.step.proxy != later.step.proxy:
            return False
        return not later.step.proxy or earlier.thread // BLOCK == later.thread // BLOCK

    def overtaken(self, earlier, thread):
        """Does a thread know who has observed a later write of the place, which came after an access?

        Causality says nothing of such an access (PTX 8.9.5), though coherence does: the detector may pass over it.
        """
        known = self.known[thread]
        return any(
            earlier in self.knew[write] and earlier.bytes & write.bytes and not known.isdisjoint(observers)
            for write, observers in self.observed.items()
        )

    def meet(self, threads):
        together = set().union(*(self.known.get(thread, set()) for thread in threads))
        for thread in threads:
            self.known[thread] = set(together)


class Trace:
    """One random program, told to the detector and to the oracle."""

    def __init__(self, seed, operations, *, images=False):
        self.random, self.operations, self.images = random.Random(seed), operations, images
        self.ctas = self.random.choice((1, 2, 3))
        self.found = []
        self.detector = RaceDetector(Scene("k", LaunchShape.of(self.ctas, BLOCK)), self.found.append)
        self.oracle = Oracle()
        self.memory = Allocation(0x1000, 8, Space.GLOBAL, "data")

    def turn(self):
        """One more step: the pairs of places that race by the detector and by the oracle, and must there be one?"""
        if self.random.random() < 0.4:
            self.barrier()
            return set(), set(), False
        return self.access()

    def barrier(self):
        cta = self.random.randrange(self.ctas)
        warp = cta * BLOCK + 32 * self.random.randrange(2)
        kind = self.random.choice(("cta", "cta", "warp", "some"))
        if kind == "cta":
            threads = range(cta * BLOCK, (cta + 1) * BLOCK)
            self.detector.ctas_synchronized(cta * BLOCK, 1)
        elif kind == "warp":
            threads = range(warp, warp + 32)
            self.detector.warps_synchronized(meeting(), [np.array(threads)])
        else:
            threads = [cta * BLOCK + n for n in sorted(self.random.sample(ACTIVE, 3))]
            self.detector.opened("1", [(None, np.array(threads))])
        self.oracle.meet(threads)

    def access(self):
        size = self.random.choice((4, 4, 4, 2))
        narrow = "atomic" not in self.operations  # of a chain of atomics the detector keeps the last, as all scopes are wide
        order, scope = self.random.choice(STRENGTHS if narrow else STRENGTHS[:-1])
        operation = self.random.choice(self.operations)
        if operation == "atomic":
            size, order = 4, "relaxed"
        proxy = self.random.choice(("", "", "surface", "texture")) if self.images else ""
        if proxy:
            size, order, scope = 4, "relaxed" if operation == "atomic" else "weak", "gpu"
        if proxy == "texture":
            operation = "read"
        step = Step(Instruction(), operation, Type.named[f"b{8 * size}"], order, scope, proxy=proxy)
        everybody = [cta * BLOCK + n for cta in range(self.ctas) for n in ACTIVE]
        threads = sorted(self.random.sample(everybody, self.random.choice((1, 1, 2, len(everybody)))))
        offsets = [self.random.randrange(8 // size) * size for _ in threads]
        tell = {"read": self.detector.read, "write": self.detector.wrote, "atomic": self.detector.updated}[operation]
        self.found.clear()
        tell(step, np.array(threads), self.memory, np.array(offsets))
        races, must = set(), False
        for thread, offset in zip(threads, offsets, strict=True):
            for earlier in self.oracle.access(step, thread, offset):
                races.add((earlier.step.bound, step.bound))
                must |= not self.oracle.overtaken(earlier, thread)
        return {tuple(site.bound for site in race.sites) for race in self.found}, races, must


def first_races(operations, *, images=False):
    """Of random programs the first race is found, and nothing else."""
    races = 0
    for seed in range(1500):
        trace = Trace(seed, operations, images=images)
        for _ in range(14):
            found, expected, must = trace.turn()
            assert found <= expected, f"seed {seed}"
            assert found or not must, f"seed {seed}"
            if expected:
                races += bool(found)
                break
    assert 100 < races < 1500


@pytest.mark.parametrize("operations", [("read", "read", "write"), ("read", "atomic"), ("read", "read", "write", "atomic")])
def test_the_first_race_of_a_program_is_found_and_nothing_else(operations):
    first_races(operations)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("operations", [("read", "read", "write"), ("read", "write", "atomic")])
def test_the_first_race_of_images_is_found_and_nothing_else(operations):
    first_races(operations, images=True)


def test_records_of_the_largest_grids(monkeypatch):
    """Of a grid of 2**29 threads: more bits for threads, and less for the rest."""
    large = Packing.of(1 << 29)
    assert (large.threads, large.stamps, large.sites) == (1 << 32, 1 << 19, 1 << 12)
    monkeypatch.setattr(Packing, "of", lambda threads: large)
    first_races(("read", "read", "write", "atomic"))


# ── kernels of two or three CTAs ────────────────────────────────────────────────────────

HEAD = """
.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data)
{
    .shared .align 4 .b32 s;
    .reg .pred %p<8>; .reg .b32 %r<8>; .reg .b64 %d;
    ld.param.u64 %d, [data];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    setp.eq.u32 %p1, %r1, 0;            // the first thread of a CTA
    setp.eq.and.u32 %p2, %r2, 1, %p1;   // that of CTA 1
    setp.lt.u32 %p3, %r1, 32;           // the first warp
    setp.eq.and.u32 %p4, %r2, 0, %p1;   // the first thread of CTA 0
"""
RACING = {
    "all read, a barrier, one CTA writes": (2, "ld.global.u32 %r3, [%d]; bar.sync 0; @%p2 st.global.u32 [%d], 1;"),
    "the same of three CTAs": (3, "ld.global.u32 %r3, [%d]; bar.sync 0; @%p2 st.global.u32 [%d], 1;"),
    "reads before and after the barrier": (
        2, """@%p4 ld.global.u32 %r3, [%d]; bar.sync 0; setp.eq.u32 %p5, %r2, 1; @%p5 ld.global.u32 %r4, [%d]; bar.sync 0;
        @%p2 st.global.u32 [%d], 1;""",
    ),
    "another warp of the CTA has only met itself": (
        1, "ld.shared.u32 %r3, [s]; bar.warp.sync -1; @%p3 bar.sync 1, 32; @%p1 st.shared.u32 [s], 1;",
    ),
    "a warp that did not come to the barrier": (
        1, """ld.shared.u32 %r3, [s]; @%p3 bar.sync 1, 32; @%p3 ld.shared.u32 %r4, [s]; @%p3 bar.sync 1, 32;
        @%p1 st.shared.u32 [s], 1;""",
    ),
    "a weak read, then atomics": (
        2, "@%p4 ld.global.u32 %r3, [%d]; bar.sync 0; @%p1 atom.relaxed.gpu.global.add.u32 %r4, [%d], 1;",
    ),
    "a weak read, then a volatile one of the same thread": (
        2, """@%p4 ld.global.u32 %r3, [%d]; @%p4 ld.volatile.global.u32 %r4, [%d]; bar.sync 0; bar.sync 0;
        @%p2 st.volatile.global.u32 [%d], 1;""",
    ),
    "atomics of three CTAs, then a weak read": (
        3, "@%p1 st.relaxed.gpu.global.u32 [%d], 1; bar.sync 0; @%p2 ld.global.u32 %r3, [%d];",
    ),
}  # fmt: skip
ORDERED = {
    "all read": (3, "ld.global.u32 %r3, [%d]; bar.sync 0; ld.global.u32 %r4, [%d];"),
    "all read, a barrier, one writes": (1, "ld.shared.u32 %r3, [s]; bar.sync 0; @%p1 st.shared.u32 [s], 1;"),
    "warps that have met": (
        1, "ld.shared.u32 %r3, [s]; bar.warp.sync -1; @!%p3 ld.shared.u32 %r4, [s]; bar.sync 0; @%p1 st.shared.u32 [s], 1;",
    ),
    "volatile reads, then atomics": (
        3, "ld.volatile.global.u32 %r3, [%d]; bar.sync 0; @%p1 atom.relaxed.sys.global.add.u32 %r4, [%d], 1;",
    ),
    "atomics alone": (3, "atom.global.add.u32 %r3, [%d], 1; bar.sync 0; red.global.add.u32 [%d], 1;"),
}  # fmt: skip


def hazards(ctas, body):
    kernel = ptxvm.load(HEAD + body + "\n ret;\n}\n").kernel()
    found = kernel.launch(ctas, 64, [np.zeros(4, np.uint32)], check=("race",), schedules=4, seed=0).findings
    assert all(each.kind == "race" for each in found), found
    return {each.hazard for each in found}


@pytest.mark.parametrize(("ctas", "body"), RACING.values(), ids=RACING)
def test_races_with_an_access_that_is_not_the_last(ctas, body):
    assert hazards(ctas, body)


@pytest.mark.parametrize(("ctas", "body"), ORDERED.values(), ids=ORDERED)
def test_many_accesses_that_are_ordered(ctas, body):
    assert hazards(ctas, body) == set()


def test_every_thread_reads_and_every_thread_updates():
    # Readers and writers of one word are no square of pairs: those that know the same are looked at once.
    body = "ld.global.u32 %r3, [%d]; bar.sync 0; atom.global.add.u32 %r4, [%d], 1;"
    kernel = ptxvm.load(HEAD + body + "\n ret;\n}\n").kernel()
    data = np.zeros(4, np.uint32)
    found = kernel.launch(8, 256, [data], check=("race",)).findings
    assert [each.hazard for each in found] == ["WAR"]
    assert data[0] == 8 * 256

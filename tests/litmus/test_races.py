"""The race detector and the axioms agree: random small tests, judged by the model and run in random orders (PTX 8.7.1).

The oracle is the model.  What the detector reports races in some execution; and where some execution has a race, some run
shows one.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from detected import Pair, detected

from ptxvm.model import Test, judge, read_litmus
from ptxvm.model.judge import choices

SHAPES = ((0, 1), (0, 0, 1), (0, 0, 1, 1), (0, 1, 1), (0, 0, 0), (0, 0))
"""The CTA of each thread."""
KINDS = {"st": 8, "ld": 8, "guard": 6, "atom": 3, "guarded atom": 4, "red": 2, "fence": 6}
RUNS = 4_000
MANY = 20_000
"""Tests with more executions to go through are left out."""


class Writer:
    """Writes one random test."""

    def __init__(self, seed: int, *, sizes: bool = False) -> None:
        self.random = random.Random(seed)
        self.write = self.sized if sizes else self.instruction

    def one_of(self, *choices: str) -> str:
        return self.random.choice(choices)

    def scope(self) -> str:
        return self.random.choices(["cta", "gpu", "sys"], [2, 5, 1])[0]

    def strong(self, *orders: str) -> str:
        return f"{self.one_of(*orders)}.{self.scope()}"

    def instruction(self, thread: int, n: int) -> list[str]:
        """One instruction that writes a value, or to a register, of its own; perhaps with a branch behind it."""
        x, value = self.one_of("x", "y", "z"), 10 * thread + n + 1
        kind = self.random.choices(list(KINDS), list(KINDS.values()))[0]
        skip = f"beq r{n}, 0, END{thread}"
        atom = f"atom.{self.strong('relaxed', 'acquire', 'release', 'acq_rel')}.add r{n}, {x}, {value}"
        match kind:
            case "st":
                return [f"st.{self.one_of('weak', self.strong('relaxed', 'release'))} {x}, {value}"]
            case "ld":
                return [f"ld.{self.one_of('weak', self.strong('relaxed', 'acquire'))} r{n}, {x}"]
            case "guard":
                return [f"ld.{self.strong('relaxed', 'acquire')} r{n}, {x}", skip]
            case "atom":
                return [atom]
            case "guarded atom":
                return [atom, skip]
            case "red":
                return [f"red.{self.strong('relaxed', 'release')}.add {x}, {value}"]
        return [f"fence.{self.random.choices(['sc', 'acq_rel', 'release', 'acquire'], [4, 2, 1, 1])[0]}.{self.scope()}"]

    def sized(self, thread: int, n: int) -> list[str]:
        """The same with accesses of several sizes, and of vectors."""
        place, value, half = self.one_of("x", "x+4", "y"), 10 * thread + n + 1, self.one_of("x", "x+2", "x+4", "y")
        store, load = (self.one_of("weak", self.strong("relaxed", last)) for last in ("release", "acquire"))
        guard, skip = self.strong("relaxed", "acquire"), f"beq {self.one_of('r', 'q')}{n}, 0, END{thread}"
        return self.random.choice([
            [f"st.{store}.b32 {place}, {value}"],
            [f"ld.{load}.b32 r{n}, {place}"],
            [f"ld.{guard}.b32 r{n}, {place}", f"beq r{n}, 0, END{thread}"],
            [f"st.{store}.v2.b32 x, {{{value}, {value + 100}}}"],
            [f"ld.{load}.v2.b32 {{r{n}, q{n}}}, x"],
            [f"ld.{guard}.v2.b32 {{r{n}, q{n}}}, x", skip],
            [f"st.{store}.b16 {half}, {value}"],
            [f"ld.{load}.b16 r{n}, {half}"],
            [f"atom.{self.strong('relaxed', 'acquire', 'release', 'acq_rel')}.add.b32 r{n}, {place}, {value}"],
            [f"fence.{self.one_of('sc', 'acq_rel')}.{self.scope()}"],
        ])  # fmt: skip

    def column(self, thread: int, barriers: int) -> list[str]:
        """The code of a thread; nothing jumps over a barrier."""
        body = [self.write(thread, n) for n in range(self.random.choice((2, 3, 3, 4)))]
        for at in sorted((self.random.randrange(len(body) + 1) for _ in range(barriers)), reverse=True):
            body[at:at] = [["bar.cta.sync b, 0"]]
            body[:at] = [each[:1] for each in body[:at]]
        return [*(line for each in body for line in each), f"END{thread}:"]

    def test(self) -> Test:
        ctas = self.random.choice(SHAPES)
        barriers = {cta: self.random.choice((0, 0, 1, 1, 2)) if ctas.count(cta) > 1 else 0 for cta in ctas}
        columns = [self.column(n, barriers[cta]) for n, cta in enumerate(ctas)]
        return table(columns, ctas)


def table(columns: Sequence[Sequence[str]], ctas: Sequence[int]) -> Test:
    """A test of these threads."""
    height = max(map(len, columns))
    rows = [[column[n] if n < len(column) else "" for column in columns] for n in range(height)]
    heads = [f"P{n}@cta {cta},gpu 0" for n, cta in enumerate(ctas)]
    lines = "\n".join(" | ".join(row) + " ;" for row in [heads, *rows])
    return read_litmus(f"PTX random\n{{\nx = 0; y = 0; z = 0;\n}}\n{lines}\nexists (x == 0)\n")


def judged(test: Test) -> set[Pair]:
    """The pairs that race in some execution."""
    return {frozenset((race.first, race.second)) for race in judge(test).races}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("sizes", [False, True], ids=["one size", "several sizes"])
@pytest.mark.parametrize("first", range(0, 200, 40))
def test_detector_and_model(first: int, sizes: bool):
    compared = 0
    for seed in range(first, first + 40):
        test = Writer(seed, sizes=sizes).test()
        if choices(test) > MANY:
            continue
        allowed = judged(test)
        found = detected(test, seed, 40)
        assert found <= allowed, f"seed {seed}"
        if allowed and not found:
            assert detected(test, seed, RUNS, some=True), f"seed {seed}"
        compared += 1
    assert compared > 10


BARRIER = "bar.cta.sync b, 0"


def guarded(fences: tuple[str, str], flag: tuple[str, str]) -> Test:
    """What a fence.sc orders, where the flag goes through other threads than the data."""
    writer = ["st.weak x, 1", fences[0], BARRIER]
    setter = [BARRIER, flag[0]]
    getter = [flag[1], "st.weak y, r0", BARRIER]
    reader = [BARRIER, fences[1], "ld.weak r2, y", "beq r2, 0, END3", "ld.weak r1, x", "END3:"]
    return table([writer, setter, getter, reader], (0, 0, 1, 1))


SET, GET = "st.relaxed.gpu z, 1", "ld.relaxed.gpu r0, z"
ORDERED = {
    "stores and loads": guarded(("fence.sc.gpu", "fence.sc.gpu"), (SET, GET)),
    "membar": guarded(("membar.gl", "membar.gl"), (SET, GET)),
    "system and device": guarded(("fence.sc.sys", "fence.sc.gpu"), (SET, GET)),
    "atomics": guarded(("fence.sc.gpu", "fence.sc.gpu"), ("atom.relaxed.gpu.add r1, z, 1", "atom.relaxed.gpu.add r0, z, 1")),
    "a reduction": guarded(("fence.sc.gpu", "fence.sc.gpu"), ("red.relaxed.gpu.add z, 1", GET)),
}
RACING = {
    "acquire and release": guarded(("fence.acq_rel.gpu", "fence.acq_rel.gpu"), (SET, GET)),
    "one fence is no fence.sc": guarded(("fence.sc.gpu", "fence.acq_rel.gpu"), (SET, GET)),
    "a fence of the CTA": guarded(("fence.sc.cta", "fence.sc.gpu"), (SET, GET)),
}


@pytest.mark.parametrize("test", ORDERED.values(), ids=ORDERED)
def test_fences_that_barriers_join_to_a_flag_of_other_threads(test: Test):
    """8.9.3 and 8.10.6: the reader's fence.sc cannot come first, so the writer's synchronizes with it."""
    assert judged(test) == detected(test, 0, 400) == set()


def test_a_flag_that_races_orders_all_the_same():
    """8.10.6: whatever is read from has its place before the reader."""
    test = guarded(("fence.sc.gpu", "fence.sc.gpu"), ("st.relaxed.cta z, 1", GET))
    race = frozenset(("P1: st.relaxed.cta z, 1", "P2: ld.relaxed.gpu r0, z"))
    assert judged(test) == detected(test, 0, 400) == {race}


@pytest.mark.parametrize("test", RACING.values(), ids=RACING)
def test_fences_that_do_not_order(test: Test):
    assert frozenset(("P0: st.weak x, 1", "P3: ld.weak r1, x")) in judged(test) & detected(test, 0, RUNS, some=True)


HALVES = {
    "a release seen by the second element": ["st.weak z, 1", "st.release.gpu.b32 x+4, 7"],
    "a release of a vector": ["st.weak z, 1", "st.release.gpu.v2.b32 x, {6, 7}"],
    "a fence and a vector": ["st.weak z, 1", "fence.acq_rel.gpu", "st.relaxed.gpu.v2.b32 x, {6, 7}"],
}


@pytest.mark.parametrize("get", ["ld.acquire.gpu.v2.b32 {q1, r1}, x", "ld.acquire.gpu.b32 r1, x+4"])
@pytest.mark.parametrize("put", HALVES.values(), ids=HALVES)
def test_the_elements_of_a_vector_are_flags_of_their_own(put: list[str], get: str):
    """8.2.4: operations on a vector are operations on its scalars."""
    test = table([put, [get, "bne r1, 7, END1", "ld.weak r2, z", "END1:"]], (0, 1))
    assert judged(test) == detected(test, 0, 200) == set()

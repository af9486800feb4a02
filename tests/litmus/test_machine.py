"""The machine never shows an outcome that the model forbids; and the model allows every outcome of taking turns.

Both engines run every litmus test that a kernel can say, the interpreter in random schedules.  The oracle for what is
seen is the model; the oracle for the model is `interleavings`.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from interleavings import CannotInterleave, Turns
from verdicts import KERNELS_AGAIN, REFUSED, Expected, can_run, collected, own, takes_turns

from ptxvm.litmus import KernelRunner, State, machines, observe, read
from ptxvm.model import judge
from ptxvm.model.litmus_test import Test

SCHEDULES = 6
MANY = 400
"""Of each test, in the long version."""


ENDLESS = 3000
"""Instructions after which a run does not end any more: no test has a hundred."""


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user waits longer for threads that spin."""
    monkeypatch.setattr("ptxvm.litmus.STEPS", ENDLESS)


RUN = [each for each in [*own(), *collected()] if each.model == "9.1" and can_run(each)]
SHORT = [each for each in RUN if "CADP" not in each.path]


def part(states: Iterable[State | None], names: set[str]) -> set[State]:
    """Final states, of some names."""
    return {tuple((name, value) for name, value in state if name in names) for state in states if state is not None}


def never_forbidden(test: Test, on: list[KernelRunner], runs: int, seed: int, engine: str = "interp") -> set[State]:
    """Run it, and compare; returns what was seen."""
    seen = observe(on, runs, seed, engine)
    names = {name for state in seen if state is not None for name, _ in state}
    for model in ("6.4", "9.1"):
        allowed = part(judge(test, model).outcomes, names)
        shown = {name for state in allowed for name, _ in state}
        assert part(seen, shown) <= allowed, f"seed {seed}, {engine}, PTX {model}"
    return part(seen, names)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("expected", SHORT, ids=str)
def test_interpreter(expected: Expected, rng: np.random.Generator):
    test = expected.test()
    never_forbidden(test, machines(test), SCHEDULES, int(rng.integers(1 << 30)))


def test_jit(rng: np.random.Generator):
    for n in rng.permutation(len(SHORT))[:24]:
        test = SHORT[int(n)].test()
        never_forbidden(test, machines(test)[:1], 2, 0, "jit")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("path", KERNELS_AGAIN)
def test_kernels(path, rng: np.random.Generator):
    for test in read(path):
        seen = never_forbidden(test, machines(test, path), SCHEDULES, int(rng.integers(1 << 30)))
        assert seen or judge(test).termination != "terminates"


def test_a_schedule_finds_what_another_does_not():
    """Random schedules differ: over many of them store buffering shows all that taking turns can."""
    (test,) = [each.test() for each in own() if each.name == "store-buffering" and each.model == "9.1"]
    names = {"P0:r0", "P1:r1"}
    assert part(observe(machines(test), 60), names) == part(Turns(test).final(), names)


@pytest.mark.long
@pytest.mark.parametrize("expected", RUN, ids=str)
def test_interpreter_in_many_schedules(expected: Expected, rng: np.random.Generator):
    test = expected.test()
    never_forbidden(test, machines(test), MANY, int(rng.integers(1 << 30)))


@pytest.mark.long
@pytest.mark.parametrize("expected", RUN, ids=str)
def test_jit_on_all(expected: Expected):
    test = expected.test()
    never_forbidden(test, machines(test), 4, 0, "jit")


# ── the model allows what taking turns gives ────────────────────────────────────────────


def test_the_list_of_what_takes_no_turns():
    found = {}
    for expected in [*own(), *collected()]:
        try:
            Turns(expected.test())
        except CannotInterleave as why:
            found[expected.key] = str(why)
    known = {expected.key for expected in [*own(), *collected()]}
    assert found == {key: why for key, why in REFUSED["taking turns"].items() if key in known}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("expected", [each for each in [*own(), *collected()] if takes_turns(each)], ids=str)
def test_every_interleaving_is_allowed(expected: Expected):
    test = expected.test()
    final = Turns(test).final()
    allowed = judge(test, expected.model).outcomes
    names = {name for state in allowed for name, _ in state}
    registers = {f"{thread.name}:{name}": 0 for thread in test.threads for name in thread.registers}
    for state in final:
        values = registers | dict(state)
        assert tuple((name, values.get(name, 0)) for name in sorted(names)) in allowed

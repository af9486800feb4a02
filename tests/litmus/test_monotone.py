"""What holds of every program: a stronger one has no outcome more, a weaker one none less.

In both versions of chapter 8 every relation stands positively in the axioms, so these are theorems: an access that is
ordered more strongly, a fence added, a wider scope can only forbid (PTX 8.8 to 8.10).  Tests and places are chosen at random.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from verdicts import Expected, collected, own

from ptxvm.algebra.memory_order import Order, Scope
from ptxvm.model import judge
from ptxvm.model.judge import State
from ptxvm.model.litmus_program import DEPTH, Atomic, Fence, LitmusInstruction, Load, MemoryInstruction, Store, Thread
from ptxvm.model.litmus_test import Test

STRONGER = {
    Load: {Order.RELAXED: [Order.ACQUIRE]},
    Store: {Order.RELAXED: [Order.RELEASE]},
    Atomic: {
        Order.RELAXED: [Order.ACQUIRE, Order.RELEASE],
        Order.ACQUIRE: [Order.ACQ_REL],
        Order.RELEASE: [Order.ACQ_REL],
    },
    Fence: {Order.ACQ_REL: [Order.SC], Order.ACQUIRE: [Order.ACQ_REL], Order.RELEASE: [Order.ACQ_REL]},
}
WIDER = {Scope.CTA: Scope.GPU, Scope.CLUSTER: Scope.GPU, Scope.GPU: Scope.SYS}


def changed(test: Test, thread: int, at: int, *instead: LitmusInstruction) -> Test:
    """The test with other instructions in the place of one; labels behind move on."""
    old = test.threads[thread]
    code = (*old.code[:at], *instead, *old.code[at + 1 :])
    labels = {label: goal + (len(instead) - 1) * (goal > at) for label, goal in old.labels.items()}
    new = Thread(old.name, old.cta, code, labels, old.registers)
    return replace(test, threads=(*test.threads[:thread], new, *test.threads[thread + 1 :]))


def stronger(test: Test) -> Iterator[tuple[str, Test]]:
    """The test, stronger in one place."""
    for n, thread in enumerate(test.threads):
        for at, one in enumerate(thread.code):
            if isinstance(one, MemoryInstruction) and one.proxy == "generic":
                yield from ((f"{one.text} and {f}", changed(test, n, at, f, one)) for f in fences())
                if one.order == "weak" and isinstance(one, Load | Store):
                    yield f"{one.text} relaxed", changed(test, n, at, replace(one, order=Order.RELAXED, scope=Scope.SYS))
            if isinstance(one, MemoryInstruction | Fence):
                for order in STRONGER.get(type(one), {}).get(one.order, []):
                    if not (isinstance(one, Atomic) and one.register is None and order != "release"):
                        yield f"{one.text} {order}", changed(test, n, at, replace(one, order=order))
                if one.scope in WIDER:
                    yield f"{one.text} {WIDER[one.scope]}", changed(test, n, at, replace(one, scope=WIDER[one.scope]))


def fences() -> Iterator[Fence]:
    yield from (
        Fence(order, scope, text=f"fence.{order}.{scope}")
        for order in (Order.ACQ_REL, Order.SC)
        for scope in (Scope.CTA, Scope.SYS)
    )


def nearer(test: Test) -> Iterator[tuple[str, Test]]:
    """The test with two threads of one device in one CTA: every scope has more threads.  Barriers would be other ones."""
    for n, thread in enumerate(test.threads):
        for other in test.threads[:n]:
            if thread.cta != other.cta and thread.cta[: DEPTH[Scope.GPU]] == other.cta[: DEPTH[Scope.GPU]]:
                alone = [each for each in test.threads if each.cta == thread.cta] == [thread]
                if alone and not any("bar" in one.text for each in (thread, other) for one in each.code):
                    moved = replace(thread, cta=other.cta)
                    yield (
                        f"{thread.name} with {other.name}",
                        replace(test, threads=tuple(moved if each is thread else each for each in test.threads)),
                    )


@cache
def outcomes(expected: Expected) -> frozenset[State]:
    return frozenset(judge(expected.test(), expected.model).outcomes)


CHOSEN = [each for each in [*own(), *collected()] if "CADP" not in each.path and "Ticketlock" not in each.path]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("part", range(12))
@pytest.mark.parametrize("change", [stronger, nearer], ids=lambda change: change.__name__)
def test_stronger_programs_have_no_outcome_more(change, part: int, rng: np.random.Generator):
    compared = 0
    for n in rng.permutation(len(CHOSEN))[:25]:
        expected = CHOSEN[int(n)]
        variants = list(change(expected.test()))
        for k in rng.permutation(len(variants))[:4]:
            what, variant = variants[int(k)]
            more = judge(variant, expected.model).outcomes.keys() - outcomes(expected)
            assert not more, f"{expected}: {what}"
            compared += 1
    assert compared or change is nearer


@pytest.mark.parametrize("model", ["6.4", "9.1"])
def test_a_scope_that_shrinks_loses_no_outcome(model: str):
    """By hand: message passing by release and acquire of the device, then of the CTA."""
    every = {each.name: each.test() for each in own() if each.model == model}
    wide, narrow = (judge(every[name], model).outcomes for name in ("message-passing-released", "message-passing-cta"))
    assert wide.keys() < narrow.keys()
    assert len(narrow) == 4

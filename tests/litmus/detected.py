"""The race detector on a litmus test: its threads take turns in random orders, one access after the other."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from ptxvm.algebra.asynchronous import Proxy
from ptxvm.algebra.memory_order import Order, Scope
from ptxvm.algebra.ports import AccessAttributes
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type
from ptxvm.checkers.race import RaceDetector
from ptxvm.checkers.race_pair import Race
from ptxvm.isa.effects import COMPUTES
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.events import Scene
from ptxvm.machine.launch import LaunchShape
from ptxvm.model.litmus_program import Atomic, Barrier, Branch, Fence, LitmusInstruction, Load, Location, Store
from ptxvm.model.litmus_test import Test
from ptxvm.model.values import ARITHMETIC, COMPARISONS

BYTES = 8
"""Of each variable."""
RUNS = 10_000
"""More than there are of one seed."""
Pair = frozenset[str]
"""Two accesses, as the model names them."""


@dataclass(eq=False)
class Step:
    """What one instruction accesses, as the machine tells its watcher."""

    bound: Any
    type: Type
    count: int
    order: Order
    scope: Scope | None
    space: Space = Space.GLOBAL
    attributes: AccessAttributes = field(init=False)

    def __post_init__(self) -> None:
        self.attributes = {"order": self.order, "scope": self.scope, "proxy": Proxy.GENERIC}


class Run:
    """One run of a test."""

    def __init__(self, test: Test, seed: int) -> None:
        self.test, self.random = test, random.Random(seed)
        self.ctas = list(dict.fromkeys(thread.cta for thread in test.threads))
        members = {cta: [thread for thread in test.threads if thread.cta == cta] for cta in self.ctas}
        self.size = max(map(len, members.values()))
        self.numbers = [self.ctas.index(t.cta) * self.size + members[t.cta].index(t) for t in test.threads]
        self.found: set[Pair] = set()
        self.detector = RaceDetector(Scene("k", LaunchShape.of(len(self.ctas), self.size)), self.report)
        self.memory = {name: Allocation(0x1000 * n, BYTES, Space.GLOBAL, name) for n, name in enumerate(test.variables, 1)}
        self.held = {name: bytearray(value.to_bytes(BYTES, "little")) for name, value in test.variables.items()}
        self.at = [0] * len(test.threads)
        self.registers: list[dict[str, int]] = [{} for _ in test.threads]
        self.waiting: set[int] = set()
        self.steps = {(n, at): self.step(n, one) for n, thread in enumerate(test.threads) for at, one in enumerate(thread.code)}

    def step(self, n: int, one: LitmusInstruction) -> Step | None:
        """What an instruction accesses."""
        if not isinstance(one, Load | Store | Atomic):
            return None
        places = (one.location,) if isinstance(one, Atomic) else one.locations
        opcode = one.text.partition(".")[0]
        name = f"{self.test.threads[n].name}: {one.text}"
        kind = Type.named[f"b{8 * self.bytes_of(places[0])}"]
        decoded = SimpleNamespace(destinations=lambda: () if opcode == "red" else ("d",))
        bound = SimpleNamespace(name=name, i=decoded, summary=COMPUTES)
        return Step(bound, kind, len(places), one.order, one.scope)

    def bytes_of(self, place: Location) -> int:
        return place.size or self.test.sizes.get(place.variable, BYTES)

    def report(self, race: Race) -> None:
        self.found.add(frozenset(cast("SimpleNamespace", site.bound).name for site in race.sites))

    def races(self) -> set[Pair]:
        """Run to the end, or until nobody can go on."""
        while True:
            ready = [n for n, t in enumerate(self.test.threads) if self.at[n] < len(t.code) and n not in self.waiting]
            if not ready:
                return self.found
            self.turn(self.random.choice(ready))

    def turn(self, n: int) -> None:
        """One thread executes one instruction."""
        one, me = self.test.threads[n].code[self.at[n]], np.array([self.numbers[n]])
        match one:
            case Barrier():
                self.barrier(n, one)
                return
            case Fence(order, scope):
                self.detector.fenced(me, order, scope)
            case Branch(comparison, left, right, label):
                if COMPARISONS[comparison](self.value(n, left), self.value(n, right)):
                    self.at[n] = self.test.threads[n].labels[label]
                    return
            case Load() | Store() | Atomic():
                self.access(n, one, me)
        self.at[n] += 1

    def value(self, n: int, operand: int | str) -> int:
        return operand if isinstance(operand, int) else self.registers[n].get(operand, 0)

    def access(self, n: int, one: Load | Store | Atomic, me: Any) -> None:
        step = self.steps[n, self.at[n]]
        assert step is not None
        places = (one.location,) if isinstance(one, Atomic) else one.locations
        where = self.memory[places[0].variable], np.array([places[0].offset])
        match one:
            case Load(registers, _):
                self.registers[n] |= {name: self.load(place) for name, place in zip(registers, places, strict=True)}
                self.detector.read(step, me, *where)
            case Store(_, values):
                for place, value in zip(places, values, strict=True):
                    self.store(place, self.value(n, value))
                self.detector.wrote(step, me, *where)
            case Atomic(operation, register, place, operands):
                old = self.load(place)
                self.store(place, ARITHMETIC[operation](old, self.value(n, operands[0])))
                if register:
                    self.registers[n][register] = old
                self.detector.updated(step, me, *where)

    def load(self, place: Location) -> int:
        return int.from_bytes(self.held[place.variable][place.offset : place.offset + self.bytes_of(place)], "little")

    def store(self, place: Location, value: int) -> None:
        size = self.bytes_of(place)
        self.held[place.variable][place.offset : place.offset + size] = (value % (1 << 8 * size)).to_bytes(size, "little")

    def barrier(self, n: int, one: Barrier) -> None:
        """A barrier of all threads of the CTA."""
        mates = [m for m, thread in enumerate(self.test.threads) if thread.cta == self.test.threads[n].cta]
        self.waiting.add(n)
        if all(m in self.waiting for m in mates):
            nowhere: Any = None
            self.detector.opened((int(self.numbers[mates[0]]), 0), [(nowhere, np.array([self.numbers[m] for m in mates]))])
            self.waiting.difference_update(mates)
            for m in mates:
                self.at[m] += 1


def detected(test: Test, seed: int, runs: int, *, some: bool = False) -> set[Pair]:
    """The pairs that race in some of so many runs; if `some` will do, those of the first run that has any."""
    found: set[Pair] = set()
    for n in range(runs):
        found |= Run(test, seed * RUNS + n).races()
        if found and some:
            break
    return found

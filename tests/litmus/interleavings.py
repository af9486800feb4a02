"""An oracle that shares nothing with the axioms: the final states of a test when its threads take turns.

Every memory model that is weaker than sequential consistency allows all of them (Lamport 1979).  Memory is bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxvm.model.litmus_program import Atomic, Branch, Compute, Fence, Load, Location, Operand, ProxyFence, Store, Thread
from ptxvm.model.litmus_test import Test
from ptxvm.model.values import ARITHMETIC, COMPARISONS

WHOLE = 8
Bytes = tuple[tuple[str, int], ...]
Standing = tuple[int, int, tuple[tuple[str, int], ...]]
"""Of a thread: where it is, how often it jumped back, and its registers."""


class CannotInterleave(Exception):  # noqa: N818 - it says what is in the way
    """It has barriers, copies or more."""


class Turns:
    """The states of a test: where each thread stands, how often it jumped back, its registers, and memory."""

    def __init__(self, test: Test) -> None:
        self.test = test
        for thread in test.threads:
            for one in thread.code:
                if not isinstance(one, Load | Store | Atomic | Compute | Branch | Fence | ProxyFence):
                    raise CannotInterleave(one.text)

    def final(self) -> set[tuple[tuple[str, int], ...]]:
        """All final states in which no thread jumped back more than once."""
        memory = {self.test.physical(name): value for name, value in self.test.variables.items()}
        start = tuple((0, 0, tuple(sorted(thread.registers.items()))) for thread in self.test.threads)
        states, waiting, final = set(), [(start, tuple(sorted(memory.items())))], set()
        while waiting:
            state = waiting.pop()
            if state in states:
                continue
            states.add(state)
            threads, held = state
            moves = [n for n, (at, _, _) in enumerate(threads) if at < len(self.test.threads[n].code)]
            if not moves:
                final.add(self.shown(threads, dict(held)))
            for n in moves:
                waiting += [
                    ((*threads[:n], after, *threads[n + 1 :]), tuple(sorted(memory.items())))
                    for after, memory in self.step(self.test.threads[n], threads[n], dict(held))
                ]
        return final

    def shown(self, threads: tuple[Standing, ...], held: dict[str, int]) -> tuple[tuple[str, int], ...]:
        values = {name: held.get(self.test.physical(name), 0) for name in [*held, *self.test.aliases]}
        for thread, (_, _, registers) in zip(self.test.threads, threads, strict=True):
            values |= {f"{thread.name}:{name}": value for name, value in registers}
        return tuple(sorted(values.items()))

    def step(  # noqa: C901 - a case for each instruction
        self, thread: Thread, state: Standing, memory: dict[str, int]
    ) -> Iterator[tuple[Standing, dict[str, int]]]:
        at, jumps, held = state
        registers = dict(held)

        def value(operand: Operand) -> int:
            return operand if isinstance(operand, int) else registers.get(operand, 0)

        def load(location: Location) -> int:
            whole = memory.get(self.test.physical(location.variable), 0)
            return whole >> 8 * location.offset & (1 << 8 * location.size) - 1 if location.size else whole

        def store(location: Location, value: int) -> None:
            name, mask = self.test.physical(location.variable), (1 << 8 * location.size) - 1
            if location.size:
                kept = memory.get(name, 0) & ~(mask << 8 * location.offset)
                value = kept | (value & mask) << 8 * location.offset
            memory[name] = value

        following = at + 1
        match thread.code[at]:
            case Load(names, locations):
                registers |= {name: load(location) for name, location in zip(names, locations, strict=True)}
            case Store(locations, operands):
                for location, operand in zip(locations, operands, strict=True):
                    store(location, value(operand))
            case Atomic(operation=operation, register=register, location=location, operands=operands):
                old, given = load(location), [value(operand) for operand in operands]
                if operation != "cas":
                    store(location, ARITHMETIC[operation](old, given[0]))
                elif old == given[0]:
                    store(location, given[1])
                if register:
                    registers[register] = old
            case Compute(operation, register, left, right):
                registers[register] = ARITHMETIC[operation](value(left), value(right))
            case Branch(comparison, left, right, label) if COMPARISONS[comparison](value(left), value(right)):
                following = thread.labels[label]
                jumps += following <= at
        if jumps <= 1:
            yield (following, jumps, tuple(sorted(registers.items()))), memory

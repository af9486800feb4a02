"""State-space exploration of a litmus test for termination: threads take turns, and each step is visible to all.

A variable holds all writes that nothing has ordered yet: a morally strong write replaces them, a racing write joins them, and
a load takes any of them, any number of times.  So a loop that spins on racing accesses may spin for ever.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import TypeVar

from ptxvm.algebra.memory_order import Scope
from ptxvm.dataclass import dataclass
from ptxvm.model.litmus_program import (
    DEPTH,
    Atomic,
    Barrier,
    Branch,
    Compute,
    LitmusInstruction,
    Load,
    Location,
    Operand,
    Store,
    Thread,
)
from ptxvm.model.litmus_test import Test
from ptxvm.model.values import ARITHMETIC, COMPARISONS

T = TypeVar("T")
Registers = tuple[tuple[str, int], ...]
Written = tuple[int, int, Scope | None]
"""A value, the number of its writer (-1: initial), and the scope of a strong write."""
BarrierKey = tuple[tuple[int, ...], str, int]


@dataclass(frozen=True, slots=True)
class LitmusState:
    """The position and the registers of each thread, the values of memory, and the arrivals at barriers."""

    at: tuple[int, ...]
    registers: tuple[Registers, ...]
    memory: tuple[tuple[str, frozenset[Written]], ...]
    arrived: tuple[tuple[BarrierKey, tuple[int, ...]], ...] = ()
    """The number of arrivals of each thread at each barrier."""
    passed: tuple[tuple[BarrierKey, tuple[int, ...]], ...] = ()
    """The number of completed waits of each thread at each barrier."""
    waiting: frozenset[int] = frozenset()
    """The threads that have arrived at a barrier, and wait there."""


class LitmusStates:
    """The states of a test and the steps between them; only instructions that can decide a branch or a barrier are followed."""

    def __init__(self, test: Test) -> None:
        self.test, self.threads = test, test.threads
        self.registers, self.variables = deciding(test)

    def start(self) -> LitmusState:
        """The state before any thread has begun."""
        known = {self.test.physical(name): value for name, value in self.test.variables.items()}
        names = sorted(known.keys() | self.variables)
        return LitmusState(
            tuple(self.skip(thread, 0) for thread in self.threads),
            tuple(tuple(sorted(thread.registers.items())) for thread in self.threads),
            tuple((name, frozenset({(known.get(name, 0), -1, None)})) for name in names if name in self.variables),
        )

    def successors(self, state: LitmusState, known: Collection[LitmusState]) -> dict[int, list[LitmusState]]:
        """The states after the next step of each thread that can run."""
        del known
        moves = {n: list(self.steps(state, n)) for n in range(len(self.threads))}
        return {n: following for n, following in moves.items() if following}

    def waits_for_others(self, state: LitmusState, number: int) -> bool:
        """Does the thread read memory there, or wait for others?"""
        return isinstance(self.threads[number].code[state.at[number]], Load | Atomic | Barrier)

    def where(self, state: LitmusState, number: int) -> str:
        """The instruction at which a thread stands."""
        return f"`{self.threads[number].code[state.at[number]].text}`"

    def is_finished(self, state: LitmusState, number: int) -> bool:
        """Has this thread ended?"""
        return state.at[number] >= len(self.threads[number].code)

    def steps(self, state: LitmusState, number: int) -> Iterator[LitmusState]:
        """The states after the next step of one thread; none at its end, or while it waits for others."""
        if self.is_finished(state, number):
            return
        instruction = self.threads[number].code[state.at[number]]
        step = _ThreadStep(self, state, number, dict(state.registers[number]))
        match instruction:
            case Compute(name, register, left, right):
                step.registers[register] = ARITHMETIC[name](step.value(left), step.value(right))
                yield step.ended(state)
            case Branch(comparison, left, right, label):
                jumps = COMPARISONS[comparison](step.value(left), step.value(right))
                yield step.ended(state, self.threads[number].labels[label] if jumps else None)
            case Load():
                yield from step.load(instruction)
            case Store(locations, values):
                for location, operand in zip(locations, values, strict=True):
                    state = self.write(state, number, location.variable, step.value(operand), instruction.scope)
                yield step.ended(state)
            case Atomic():
                yield from step.atomic(instruction)
            case Barrier():
                yield from step.barrier(instruction)

    def skip(self, thread: Thread, at: int) -> int:
        """The position of the next instruction that matters."""
        while at < len(thread.code) and not self._matters(thread, thread.code[at]):
            at += 1
        return at

    def _matters(self, thread: Thread, instruction: LitmusInstruction) -> bool:
        """Can the instruction decide a branch or a barrier of any thread?"""
        match instruction:
            case Branch() | Barrier():
                return True
            case Compute():
                return (thread.name, instruction.register) in self.registers
            case Load() | Store():
                return any(self.test.physical(place.variable) in self.variables for place in instruction.locations)
            case Atomic():
                return self.test.physical(instruction.location.variable) in self.variables
        return False

    def write(self, state: LitmusState, number: int, variable: str, value: int, scope: Scope | None) -> LitmusState:
        """The state after a write; it replaces initial values, writes of its thread, and morally strong writes."""
        name, memory = self.test.physical(variable), dict(state.memory)
        stays = {old for old in memory[name] if remains(self.threads, number, scope, old)}
        memory[name] = frozenset({*stays, (value, number, scope)})
        return replace(state, memory=tuple(sorted(memory.items())))

    def is_open(self, state: LitmusState, number: int, place: BarrierKey, count: int | None) -> bool:
        """May the thread pass the barrier?"""
        none = (0,) * len(self.threads)
        arrived = dict(state.arrived).get(place, none)
        if count is not None:
            return sum(arrived) >= count
        generation = dict(state.passed).get(place, none)[number] + 1
        taking_part = (n for n in range(len(self.threads)) if self._takes_part(state, n, place, arrived))
        return all(arrived[n] >= generation for n in taking_part)

    def _takes_part(self, state: LitmusState, number: int, place: BarrierKey, arrived: tuple[int, ...]) -> bool:
        """Must this thread come?  A thread whose barrier number is in a register must, until it has come to another barrier."""
        thread, (prefix, name, identity) = self.threads[number], place
        if thread.cta[: len(prefix)] != prefix:
            return False
        named = [i for i in thread.code if isinstance(i, Barrier) and i.name == name]
        if arrived[number] or any(barrier.identity == identity for barrier in named):
            return True
        went = any(other[:2] == place[:2] and counts[number] for other, counts in state.arrived)
        return any(isinstance(b.identity, str) for b in named) and not went and not self.is_finished(state, number)


def remains(threads: Sequence[Thread], number: int, scope: Scope | None, old: Written) -> bool:
    """Can an old write still be read after a write of a thread?  Not an initial one, its own, or a morally strong one."""
    _, other, theirs = old
    if other in (-1, number):
        return False
    mine, writer = threads[number], threads[other]
    return not (mine.within(scope, writer) and writer.within(theirs, mine))


@dataclass
class _ThreadStep:
    """One step of one thread: the state before it, and a copy of its registers, which the step may change."""

    machine: LitmusStates
    before: LitmusState
    number: int
    registers: dict[str, int]

    def value(self, operand: Operand) -> int:
        """The current value of an operand."""
        return operand if isinstance(operand, int) else self.registers.get(operand, 0)

    def ended(self, state: LitmusState, goal: int | None = None) -> LitmusState:
        """The state after the instruction; the thread continues at `goal`, or at the next instruction."""
        at = state.at[self.number] + 1 if goal is None else goal
        following = self.machine.skip(self.machine.threads[self.number], at)
        registers = _with(state.registers, self.number, tuple(sorted(self.registers.items())))
        return replace(state, at=_with(state.at, self.number, following), registers=registers)

    def readable(self, variable: str) -> list[Written]:
        """The writes that a read of a variable may find."""
        return sorted(dict(self.before.memory)[self.machine.test.physical(variable)])

    def load(self, load: Load) -> Iterator[LitmusState]:
        """The states after a load: one for each choice of values."""
        for chosen in product(*(self.readable(place.variable) for place in load.locations)):
            self.registers.update((name, value) for name, (value, _, _) in zip(load.registers, chosen, strict=True))
            yield self.ended(self.before)

    def atomic(self, atom: Atomic) -> Iterator[LitmusState]:
        """The states after an atomic operation: one for each value that it may find."""
        operands = [self.value(operand) for operand in atom.operands]
        for old, _, _ in self.readable(atom.location.variable):
            if atom.register:
                self.registers[atom.register] = old
            new = _modified(atom, old, operands)
            written = self.machine.write(self.before, self.number, atom.location.variable, new, atom.scope)
            yield self.ended(self.before if atom.operation == "cas" and old != operands[0] else written)

    def barrier(self, barrier: Barrier) -> Iterator[LitmusState]:
        """Arrive; the wait is a step of its own."""
        state, number, threads = self.before, self.number, self.machine.threads
        place = (threads[number].cta[: DEPTH[barrier.scope]], barrier.name, self.value(barrier.identity))
        count = None if barrier.count is None else self.value(barrier.count)
        if barrier.arrives and number not in state.waiting:
            came = replace(state, arrived=_counted(state.arrived, place, number, len(threads)))
            yield replace(came, waiting=state.waiting | {number}) if barrier.waits else self.ended(came)
        elif self.machine.is_open(state, number, place, count):
            passed = _counted(state.passed, place, number, len(threads))
            yield self.ended(replace(state, passed=passed, waiting=state.waiting - {number}))


def deciding(test: Test) -> tuple[set[tuple[str, str]], set[str]]:
    """The registers on which branches and barriers depend, and the variables on which these registers depend."""
    registers: set[tuple[str, str]] = set()
    variables: set[str] = set()
    code = [(thread.name, instruction) for thread in test.threads for instruction in thread.code]
    before = -1
    while before != len(registers) + len(variables):
        before = len(registers) + len(variables)
        for thread, instruction in code:
            written, places, operands = _flow(instruction)
            touched = {test.physical(place.variable) for place in places}
            if written is None or any((thread, name) in registers for name in written) or touched & variables:
                variables |= touched
                registers |= {(thread, operand) for operand in operands if isinstance(operand, str)}
    return registers, variables


def _flow(instruction: LitmusInstruction) -> tuple[tuple[str, ...] | None, tuple[Location, ...], tuple[Operand | None, ...]]:
    """The registers that an instruction writes (None: it decides), the locations that it accesses, and its operands."""
    match instruction:
        case Branch():
            return None, (), (instruction.left, instruction.right)
        case Barrier():
            return None, (), (instruction.identity, instruction.count)
        case Compute():
            return (instruction.register,), (), (instruction.left, instruction.right)
        case Load():
            return instruction.registers, instruction.locations, ()
        case Store():
            return (), instruction.locations, instruction.values
        case Atomic():
            return (instruction.register or "",), (instruction.location,), instruction.operands
    return (), (), ()


def _with(row: tuple[T, ...], number: int, value: T) -> tuple[T, ...]:
    """The row with one element replaced."""
    return (*row[:number], value, *row[number + 1 :])


def _counted(
    counts: tuple[tuple[BarrierKey, tuple[int, ...]], ...], place: BarrierKey, number: int, threads: int
) -> tuple[tuple[BarrierKey, tuple[int, ...]], ...]:
    """The counts of all barriers, with one more for this thread at this barrier."""
    known = dict(counts)
    old = known.get(place, (0,) * threads)
    known[place] = _with(old, number, old[number] + 1)
    return tuple(sorted(known.items()))


def _modified(atom: Atomic, old: int, operands: list[int]) -> int:
    """The value that an atomic operation writes."""
    if atom.operation == "cas":
        return operands[1]
    return ARITHMETIC[atom.operation](old, operands[0])

"""Paths through the code of one thread: their events, branches and last registers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from ptxvm.algebra.asynchronous import Proxy
from ptxvm.dataclass import dataclass
from ptxvm.model.litmus_program import (
    Atomic,
    Barrier,
    Branch,
    Compute,
    Copy,
    Fence,
    LitmusInstruction,
    Load,
    Operand,
    ProxyFence,
    Store,
    Thread,
    WaitForCopies,
)
from ptxvm.model.memory_events import Event, EventKind
from ptxvm.model.values import COMPARISONS, Key, ReadValue, Value, operation, reads_in


@dataclass(frozen=True, slots=True)
class PathCondition:
    """A comparison whose outcome the path requires."""

    comparison: str
    left: Value
    right: Value
    outcome: bool


Encounter = tuple[str, int, tuple[str, ...], int]
"""A barrier or collective at which threads meet: its name and number, the threads that it needs, and which iteration it is."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """The values that one thread gives to the threads that it meets, and those that it takes from them, by thread name."""

    encounter: Encounter
    thread: str
    offered: tuple[int, ...]
    comes_from: frozenset[Key]
    """The reads on which the given values depend; a key with a negative number stands for a value from another thread."""
    received: Mapping[str, tuple[int, ...] | None]
    """None for a thread that ended before the meeting."""
    keys: Mapping[Key, str]
    """For each key, the thread whose value it stands for."""


@dataclass(slots=True)
class Path:
    """A path through a thread, up to the current instruction."""

    thread: Thread
    at: int = 0
    events: list[Event] = field(default_factory=list)
    conditions: list[PathCondition] = field(default_factory=list)
    registers: dict[str, Value] = field(default_factory=dict)
    control: frozenset[Key] = frozenset()
    jumps_back: int = 0
    time: int = 0
    done: int = 0
    fault: Exception | None = None
    """The fault that stopped a kernel on this path."""
    exchanges: list[Exchange] = field(default_factory=list)
    """Of a kernel: the register values that it exchanged with other threads."""

    def fork(self) -> Path:
        """A copy of the path, to continue along another branch."""
        return replace(self, events=[*self.events], conditions=[*self.conditions], registers={**self.registers})

    def value(self, operand: Operand) -> Value:
        """The value of an operand at this point."""
        return operand if isinstance(operand, int) else self.registers.get(operand, 0)

    def add(self, kind: EventKind, of: LitmusInstruction, *, ends: int = 1, **fields: object) -> Key:
        """Append an event that lasts `ends` steps of time; its order, scope and proxy come from the instruction."""
        key = (self.thread.name, len(self.events))
        for name in ("order", "scope", "proxy"):
            if hasattr(of, name):
                fields.setdefault(name, getattr(of, name))
        event = Event(kind, key, of.text, self.thread, self.time, self.time + ends, control=self.control, **fields)  # type: ignore[arg-type]
        self.events.append(replace(event, made_of=self.done))
        return key


def paths(thread: Thread, bound: int) -> list[Path]:
    """All paths to the end of a thread with at most `bound` backward jumps; taken branches and failing `cas` come first."""
    first = Path(thread, registers=dict(thread.registers))
    found, work = [], [(first, _walk(first, bound))]
    while work:
        path, ways = work[-1]
        other = next(ways, None)
        if other is not None:
            work.append((other, _walk(other, bound)))
        else:
            work.pop()
            if path.at == len(path.thread.code):
                found.append(path)
    return found


def _walk(path: Path, bound: int) -> Iterator[Path]:
    """Extend a path to its end, or to a branch that is always taken; yields the other paths that fork from it."""
    code = path.thread.code
    while path.at < len(code):
        match code[path.at]:
            case Branch() as branch:
                left, right = path.value(branch.left), path.value(branch.right)
                known = _known(branch, left, right)
                if known is not False:
                    yield from _jump(path, branch, PathCondition(branch.comparison, left, right, outcome=True), bound)
                if known is True:
                    return
                path.conditions.append(PathCondition(branch.comparison, left, right, outcome=False))
                path.control |= reads_in(left) | reads_in(right)
            case Atomic(operation="cas") as atom:
                failed = path.fork()
                _fail(failed, atom)
                failed.at += 1
                failed.done += 1
                yield failed
                _swap(path, atom)
            case Compute(name, register, left, right):
                path.registers[register] = operation(name, path.value(left), path.value(right))
            case instruction:
                _perform(path, instruction)
        path.at += 1
        path.done += 1


def _known(branch: Branch, left: Value, right: Value) -> bool | None:
    """The outcome of the comparison, or None if it depends on a read."""
    if isinstance(left, int) and isinstance(right, int):
        return COMPARISONS[branch.comparison](left, right)
    return None


def _jump(path: Path, branch: Branch, taken: PathCondition, bound: int) -> Iterator[Path]:
    """The path that takes the branch, unless it has too many backward jumps."""
    goal = path.thread.labels[branch.label]
    back = path.jumps_back + (goal <= path.at)
    if back <= bound:
        jumped = path.fork()
        jumped.conditions.append(taken)
        jumped.control |= reads_in(taken.left) | reads_in(taken.right)
        jumped.at, jumped.jumps_back = goal, back
        yield jumped


def _perform(path: Path, instruction: LitmusInstruction) -> None:
    """Append the events of an instruction that has one outcome."""
    match instruction:
        case Load(registers, locations):
            for register, location in zip(registers, locations, strict=True):
                path.registers[register] = ReadValue(path.add(EventKind.READ, instruction, location=location))
        case Store(locations, values):
            for location, operand in zip(locations, values, strict=True):
                value = path.value(operand)
                path.add(EventKind.WRITE, instruction, location=location, value=value, data=reads_in(value))
        case Atomic():
            read = _atomic_read(path, instruction)
            _atomic_write(path, instruction, operation(instruction.operation, read, path.value(instruction.operands[0])))
        case Fence() | ProxyFence():
            path.add(EventKind.FENCE if isinstance(instruction, Fence) else EventKind.PROXY_FENCE, instruction)
        case Barrier():
            _barrier(path, instruction)
        case Copy():
            _copy(path, instruction)
        case WaitForCopies():
            _end_copies(path, instruction)
    path.time += 2


FOREVER = 1 << 30
"""The end of an asynchronous operation for which its thread never waits."""


def _copy(path: Path, copy: Copy) -> None:
    read = path.add(EventKind.READ, copy, ends=FOREVER, location=copy.source)
    path.add(EventKind.WRITE, copy, ends=FOREVER, location=copy.target, value=ReadValue(read), data=frozenset({read}))


def _end_copies(path: Path, wait: LitmusInstruction) -> None:
    """End all copies; a proxy fence follows those by the async proxy (PTX 9.7.9.25.2)."""
    by_proxy = any(event.end >= FOREVER and event.proxy is Proxy.ASYNC for event in path.events)
    path.events = [replace(event, end=path.time) if event.end >= FOREVER else event for event in path.events]
    if by_proxy:
        path.add(EventKind.PROXY_FENCE, wait, proxy=Proxy.ASYNC)


def _barrier(path: Path, barrier: Barrier) -> None:
    """Append an arrival, a wait, or both."""
    identity = path.value(barrier.identity)
    count = None if barrier.count is None else path.value(barrier.count)
    if barrier.arrives:
        path.add(EventKind.ARRIVAL, barrier, barrier=barrier, identity=identity, count=count)
        path.time += 1
    if barrier.waits:
        path.add(EventKind.WAIT, barrier, barrier=barrier, identity=identity, count=count)


def _atomic_read(path: Path, atom: Atomic) -> ReadValue:
    order = atom.order.halves[0]
    key: Key = (path.thread.name, len(path.events))
    path.add(EventKind.READ, atom, location=atom.location, order=order, atomic=key, is_red=atom.register is None)
    if atom.register:
        path.registers[atom.register] = ReadValue(key)
    return ReadValue(key)


def _atomic_write(path: Path, atom: Atomic, value: Value) -> None:
    order = atom.order.halves[1]
    key = path.events[-1].key
    path.time += 1
    path.add(EventKind.WRITE, atom, location=atom.location, order=order, atomic=key, value=value, data=reads_in(value))


def _swap(path: Path, atom: Atomic) -> None:
    """A `cas` whose comparison holds: it writes."""
    compared, new = (path.value(operand) for operand in atom.operands)
    read = _atomic_read(path, atom)
    path.conditions.append(PathCondition("==", read, compared, outcome=True))
    _atomic_write(path, atom, new)
    written = path.events[-1]  # the write happens because of the value that was read
    path.events[-1] = replace(written, data=written.data | {read.event} | reads_in(compared))
    path.time += 2


def _fail(path: Path, atom: Atomic) -> None:
    """A `cas` whose comparison fails: a read without a write (PTX 8.4)."""
    compared = path.value(atom.operands[0])
    read = _atomic_read(path, atom)
    path.conditions.append(PathCondition("==", read, compared, outcome=False))
    path.time += 2

"""One path through a thread of a kernel: the machine runs the code, a choice fixes each read, and accesses become events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field, replace
from itertools import product
from typing import Any, Protocol, TypeAlias, TypeVar

from ptxvm.algebra.asynchronous import AsyncKind, Proxy
from ptxvm.algebra.memory_order import FenceKind, Order, Scope
from ptxvm.analysis.program import Bound
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.isa.effects import Verb
from ptxvm.isa.fences import proxy_of_fence
from ptxvm.machine.single_thread import Holder, Meeting, Payload, Rendezvous, StopThread, ThreadAccess
from ptxvm.model.copying import PathCopies
from ptxvm.model.dependencies import NONE, Dependencies
from ptxvm.model.litmus_program import Barrier, Location, Thread
from ptxvm.model.memory_events import Event, EventKind
from ptxvm.model.paths import FOREVER, Encounter, Exchange, Path, PathCondition
from ptxvm.model.values import Key, ReadValue
from ptxvm.named_tuple import NamedTuple
from ptxvm.syntax import tree

STRONG = {Order.VOLATILE: Order.RELAXED}
C = TypeVar("C")

EventField: TypeAlias = Any
"""A field of an `Event`; its name determines its type."""
Chosen: TypeAlias = Any
"""What a path takes at a choice: a value, a write or a direction, as the choice determines."""

MANY = 64
"""The most chains of writes that are followed behind one value."""

Locate = Callable[[ThreadAccess, Thread], "tuple[str, int] | None"]
"""The variable and the byte in it at which an access begins; None for memory that no other thread writes."""


class WriteInstance(NamedTuple):
    """A write that a value depends on: its thread, the instruction, the iteration, and the element."""

    thread: str
    instruction: int
    iteration: int
    element: int


Chain = frozenset[WriteInstance]
FROM_OTHERS: tuple[Chain, ...] = (frozenset(),)
"""The chains behind a value that another thread gave: they are not followed."""


class PathWrite(NamedTuple):
    """A write of a path: its location, its value and the chains behind it; of an atomic operation also the value that it found.

    A weak write has no scope.  `initialises` marks a write that initialises an mbarrier.
    """

    location: Location
    value: int
    chains: tuple[Chain, ...]
    thread: Thread
    instance: WriteInstance
    scope: Scope | None
    found: int | None
    initialises: bool


@dataclass(slots=True)
class EarlierAccesses:
    """The earlier accesses of a thread to a location: the last value that it read or wrote, and the scopes of all accesses."""

    thread: Thread
    value: int | None = None
    scopes: set[Scope | None] = field(default_factory=set)


class Choices(Protocol):
    """The values that reads may find."""

    def at(self, location: Location, before: EarlierAccesses) -> Sequence[int]:
        """The values that a read of a location may find, given the earlier accesses of its thread there."""
        ...

    def chains_behind(self, location: Location, value: int) -> tuple[Chain, ...]:
        """The chains of writes through which the value may have come."""
        ...

    def offers(self, encounter: Encounter, thread: str) -> Sequence[Payload | None]:
        """The values that a thread may give at a meeting; None if it may end before."""
        ...


class PathRun:
    """A script that follows the choices in `chosen`, then takes the first choice; `others` collects the alternatives."""

    def __init__(
        self, thread: Thread, cta_threads: int, locate: Locate, choices: Choices, chosen: Sequence[Chosen], jumps_back: int
    ) -> None:
        self.path, self.cta_threads = Path(thread), cta_threads
        self.locate, self.choices, self.left = locate, choices, jumps_back
        self.chosen = list(chosen)
        self.others: list[list[Chosen]] = []
        self.reads_so_far = self.reads_before = 0
        self.was_cut = False
        self.written: list[PathWrite] = []
        self.before: dict[Location, EarlierAccesses] = {}
        self.offered: list[tuple[Encounter, str, Payload]] = []
        self.meetings = Counter[Encounter]()
        self.copying = PathCopies(self.path)
        self.iterations = Counter[int]()
        self.found: int | None = None
        self.running = self.elements = self.learned = 0
        self.chains_behind: dict[Key, tuple[Chain, ...]] = {}
        self.flow = Dependencies()

    # ── control ─────────────────────────────────────────────────────────────────────────

    def enters(self, code: Sequence[Bound], depth: int, standing: Callable[[], Hashable]) -> None:
        """Finish the last run of instructions and begin this one."""
        del standing  # not needed: a walk records all its events
        self.flow.enter(code, depth)

    def passes(self, source: Holder | None, target: Holder) -> None:
        """The target takes over the dependencies of the source."""
        self.flow.pass_value(source, target)

    def jumps_back(self) -> None:
        """Count a backward jump, and stop the path at the limit; an iteration without a choice is not counted."""
        self.left -= self.reads_so_far > self.reads_before
        self.reads_before = self.reads_so_far
        if self.left < 0:
            self.was_cut = True
            raise StopThread

    # ── memory ──────────────────────────────────────────────────────────────────────────

    def reads(self, touch: ThreadAccess) -> Sequence[int] | None:
        """Choose a value for each element."""
        self._encounter(touch.bound)
        start = self.locate(touch, self.path.thread)
        if start is None:
            self.flow.read_own(touch)
            return None
        values = []
        for n in range(touch.count):
            location = Location(start[0], start[1] + n * touch.size, touch.size)
            key = self._add(EventKind.READ, touch, location)
            self.flow.read(key)
            values.append(self._choose(key, location))
        self.path.time += 2
        return values

    def writes(self, touch: ThreadAccess, values: Sequence[int]) -> None:
        """Add a write for each element."""
        self._encounter(touch.bound)
        start = self.locate(touch, self.path.thread)
        if start is None:
            self.flow.wrote_own(touch)
            return
        for n, value in enumerate(values):
            location = Location(start[0], start[1] + n * touch.size, touch.size)
            self._add(EventKind.WRITE, touch, location, value=value, data=self.flow.of_element("b", n, touch.count))
        self.path.time += 2

    def updates(self, touch: ThreadAccess, modify: Callable[[int], int], compared: int | None) -> int:
        """Add a read and a write of each scalar; a `cas` whose comparison fails is only a read (PTX 8.4)."""
        self._encounter(touch.bound)
        start = self.locate(touch, self.path.thread)
        if start is None:
            raise Unsupported(f"'{touch.bound.i.mnemonic}' on memory of one thread, in a litmus kernel")
        size, keys, old = touch.size // touch.parts, [], 0
        acquires, releases = touch.order.halves
        is_red = not touch.bound.i.destinations()
        for n in range(touch.parts):
            location = Location(start[0], start[1] + n * size, size)
            key = self._key
            self._add(EventKind.READ, touch, location, order=acquires, atomic=key, is_red=is_red)
            keys.append((key, location))
            self.flow.read(key)
            old |= self._choose(key, location) << 8 * size * n
        new = modify(old)
        self.path.time += 1
        if compared is None or old == compared:
            sources = self.flow.of_sources()
            for n, (key, location) in enumerate(keys):
                value = new >> 8 * size * n & (1 << 8 * size) - 1
                data = sources if _replaces(touch.bound) else sources | {key}
                self.found = old >> 8 * size * n & (1 << 8 * size) - 1
                self._add(EventKind.WRITE, touch, location, order=releases, atomic=key, value=value, data=data)
                self.found = None
        self.path.time += 2
        return old

    def _choose(self, key: Key, location: Location) -> int:
        """Choose the value of a read, and note that the path requires this value."""
        before = self._before(location)
        value: int = self._one_of(self.choices.at(location, before))
        before.value = value
        self.chains_behind[key] = self.choices.chains_behind(location, value)
        self.path.conditions.append(PathCondition("==", ReadValue(key), value, outcome=True))
        return value

    def _one_of(self, choices: Sequence[C]) -> C:
        """The recorded choice for this point, or the first; the alternatives are stored for later paths."""
        if self.reads_so_far == len(self.chosen):
            first, *rest = choices
            self.others += [[*self.chosen, other] for other in rest]
            self.chosen.append(first)
        self.reads_so_far += 1
        chosen: C = self.chosen[self.reads_so_far - 1]
        return chosen

    def observes_phase(self, order: Order, scope: Scope) -> None:
        """The test found the phase over: its read has the order of the instruction.  Any other test acquires nothing."""
        self.path.events[-1] = replace(self.path.events[-1], order=order, scope=scope)

    # ── asynchronous copies ─────────────────────────────────────────────────────────────

    def copies(
        self, bound: Bound, kind: AsyncKind, sources: Sequence[tuple[ThreadAccess, bytes]], target: ThreadAccess
    ) -> None:
        """Add reads and writes that begin now, and end when the thread waits for them."""
        self._encounter(bound)
        first, found, keys = len(self.path.events), b"", NONE
        for touch, held in sources:
            start = self.locate(touch, self.path.thread)
            if start is None:
                found += held
                continue
            for n in range(touch.count):
                location = Location(start[0], start[1] + n * touch.size, touch.size)
                key = self._add(EventKind.READ, touch, location, end=FOREVER)
                found += self._choose(key, location).to_bytes(touch.size, "little")
                keys |= {key}
        self._write_copy(target, found.ljust(target.count * target.size, b"\0"), keys)
        self.copying.began(kind, first)
        self.path.time += 2

    def _write_copy(self, target: ThreadAccess, found: bytes, keys: frozenset[Key]) -> None:
        start = self.locate(target, self.path.thread)
        if start is None:
            raise Unsupported(f"'{target.bound.i.mnemonic}' to memory of one thread, in a litmus kernel")
        for at in range(0, target.count * target.size, target.size):
            location = Location(start[0], start[1] + at, target.size)
            value = int.from_bytes(found[at : at + target.size], "little")
            self._add(EventKind.WRITE, target, location, end=FOREVER, value=value, data=keys)

    def groups(self, kind: AsyncKind) -> None:
        """Complete a group of the copies since the last group."""
        self.copying.group(kind)

    def awaits(self, kind: AsyncKind, left: int, *, reading: bool) -> None:
        """End groups; a proxy fence makes copies by the async proxy visible to the generic proxy (PTX 9.7.9.25.2)."""
        self.path.done += 1
        ended = self.copying.end(kind, left, reading=reading)
        if any(event.proxy is Proxy.ASYNC and event.kind is EventKind.WRITE for event in ended):
            self._fence_async(NONE)

    def _fence_async(self, follows: frozenset[Key], *, end: int | None = None) -> Key:
        key, time = self._key, self.path.time
        said = "(the end of a bulk copy)"
        thread, done = self.path.thread, self.path.done
        fields: dict[str, EventField] = {"proxy": Proxy.ASYNC, "made_of": done, "follows": follows}
        self.path.events.append(Event(EventKind.PROXY_FENCE, key, said, thread, time, end or time + 1, **fields))
        self.path.time += 2
        return key

    def signals(self, touch: ThreadAccess, kind: AsyncKind, modify: Callable[[int], int], *, last: bool) -> None:
        """Add an atomic operation that is ordered after the copies, and before no later operation of the thread."""
        self._encounter(touch.bound)
        self.path.done += 1
        start = self.locate(touch, self.path.thread)
        if start is None:
            raise Unsupported(f"'{touch.bound.i.mnemonic}' with an mbarrier of one thread, in a litmus kernel")
        after = self.copying.keys(kind, last=last)
        if kind is not AsyncKind.COPY:
            after |= {self._fence_async(after, end=FOREVER)}
        location, key = Location(start[0], start[1], touch.size), self._key
        acquires, releases = touch.order.halves
        many: dict[str, EventField] = {"atomic": key, "end": FOREVER, "proxy": Proxy.GENERIC}
        self._add(EventKind.READ, touch, location, order=acquires, is_red=True, follows=after, **many)
        value = modify(self._choose(key, location))
        self._before(location).scopes.add(None)  # the time of the update is not fixed
        self._add(EventKind.WRITE, touch, location, order=releases, value=value, data={key}, follows=after | {key}, **many)
        self.path.time += 2

    # ── order ───────────────────────────────────────────────────────────────────────────

    def fences(self, bound: Bound, order: FenceKind, scope: Scope) -> None:
        """Add a fence, or a proxy fence where the instruction is one."""
        self._encounter(bound)
        proxy = proxy_of_fence(bound.i)
        kind = EventKind.FENCE if proxy is None else EventKind.PROXY_FENCE
        ordered = order if isinstance(order, Order) else Order.WEAK  # the proxy of a proxy fence determines what it orders
        self._put(kind, bound, bound.node.head, order=ordered, scope=scope, proxy=proxy or Proxy.GENERIC)
        self.path.time += 2

    def synchronizes(self, meeting: Rendezvous) -> None:
        """Arrive at a barrier, then wait."""
        self._barrier(meeting, waits=True)

    def arrives(self, meeting: Rendezvous) -> None:
        """Arrive at a barrier without a wait."""
        self._barrier(meeting, waits=False)

    def exchanges(self, meeting: Rendezvous, own_payload: Payload) -> Mapping[int, Payload]:
        """Choose the values that the other threads give; the path stops while one of them is not known to come."""
        names = {member: f"P{self.first + member}" for member in meeting.members}
        encounter = (meeting.name, meeting.number, tuple(names.values()), 0)
        encounter = (*encounter[:3], self.meetings[encounter])
        self.meetings[*encounter[:3], 0] += 1
        own = self.path.thread.name
        self._barrier(meeting, waits=True)
        self.offered.append((encounter, own, own_payload))
        others = {member: name for member, name in names.items() if name != own}
        known = [self.choices.offers(encounter, name) for name in others.values()]
        if not all(known):
            raise StopThread
        taken = dict(zip(others, self._one_of(list(product(*known))), strict=True))
        by_name = {others[member]: payload for member, payload in taken.items()}
        comes_from = self.flow.of_sources() | self.flow.control
        self.path.exchanges.append(Exchange(encounter, own, own_payload, comes_from, by_name, {}))
        return {member: payload for member, payload in taken.items() if payload is not None}

    def learns(self, thread: int) -> None:
        """The thread uses the value of another thread: a new key stands for it."""
        name, exchange = f"P{self.first + thread}", self.path.exchanges[-1]
        if exchange.received.get(name) is not None and name not in exchange.keys.values():
            self.learned += 1
            key = (self.path.thread.name, -self.learned)
            self.path.exchanges[-1] = replace(exchange, keys={**exchange.keys, key: name})
            self.chains_behind[key] = FROM_OTHERS
            self.flow.read(key)

    @property
    def first(self) -> int:
        """The number of the first thread of the CTA in the grid."""
        return self.path.thread.cta[2] * self.cta_threads

    def _barrier(self, meeting: Rendezvous, *, waits: bool) -> None:
        """Add the events of a barrier; only barriers of the CTA and `bar.warp.sync` order memory."""
        bound = meeting.bound
        self._encounter(bound)
        of_cta = meeting.kind is Meeting.CTA
        orders = of_cta or meeting.kind is Meeting.WARP
        barrier = Barrier(
            meeting.name, meeting.number, meeting.threads, waits=waits, of_warp=not of_cta, orders=orders, text=text_of(bound)
        )  # fmt: skip
        fields: dict[str, EventField] = {"barrier": barrier, "identity": meeting.number, "count": meeting.threads}
        self._put(EventKind.ARRIVAL, bound, barrier.text, **fields)
        self.path.time += 1
        if waits:
            self._put(EventKind.WAIT, bound, barrier.text, **fields)
        self.path.time += 2

    # ── events ──────────────────────────────────────────────────────────────────────────

    @property
    def _key(self) -> Key:
        return self.path.thread.name, len(self.path.events)

    def _encounter(self, bound: Bound) -> None:
        if self.flow.comes_to(bound):
            self.path.done += 1
            self.running, self.elements = bound.node.start, 0
            self.iterations[self.running] += 1

    def _add(self, kind: EventKind, touch: ThreadAccess, location: Location, **fields: EventField) -> Key:
        fields.setdefault("order", STRONG.get(touch.order, touch.order))
        scope = touch.scope if fields["order"] is not Order.WEAK else None
        fields.setdefault("proxy", touch.proxy)
        fields["data"] = fields.get("data", NONE) | self.flow.of_operands("a")
        return self._put(kind, touch.bound, describe(touch.bound, location), location=location, scope=scope, **fields)

    def _put(self, kind: EventKind, bound: Bound, text: str, **fields: EventField) -> Key:
        key, time = self._key, self.path.time
        control, end = self.flow.control | self.flow.of_guard(bound), fields.pop("end", time + 1)
        event = Event(kind, key, text, self.path.thread, time, end, control=control, made_of=self.path.done, **fields)
        self.path.events.append(event)
        initialises = any(access.mbarrier and access.verb is Verb.WRITE for access in bound.summary.accesses)
        makes = initialises and kind is EventKind.WRITE and self.found is None
        if event.location is not None:
            before = self._before(event.location)
            if not makes:
                before.scopes.add(event.scope if end == time + 1 else None)
        if kind is EventKind.WRITE and event.location is not None and isinstance(event.value, int):
            link = self._instance()
            self.written.append(PathWrite(
                event.location, event.value, self._chains(event, link), self.path.thread, link, event.scope, self.found, makes
            ))  # fmt: skip
            before.value = event.value
        return key

    def _before(self, location: Location) -> EarlierAccesses:
        return self.before.setdefault(location, EarlierAccesses(self.path.thread))

    def _chains(self, event: Event, link: WriteInstance) -> tuple[Chain, ...]:
        """The chains of writes behind this write; a chain through the write itself is dropped."""
        chains = {frozenset({link})}
        for read in event.data | event.control:
            behind = self.chains_behind[read]
            if len(chains) * len(behind) < MANY:
                chains = {chain | more for chain in chains for more in behind if link not in more}
        if not chains:
            raise StopThread
        return tuple(chains)

    def _instance(self) -> WriteInstance:
        """The link for the next write of the running instruction."""
        self.elements += 1
        return WriteInstance(self.path.thread.name, self.running, self.iterations[self.running], self.elements)


def _replaces(bound: Bound) -> bool:
    """Does the atomic operation write a value that does not depend on the old one?"""
    return any(access.operation == "exch" for access in bound.summary.accesses)


def text_of(bound: Bound) -> str:
    """An instruction as its source writes it."""
    return bound.text.rstrip(";").split("}")[-1].strip()


def describe(bound: Bound, location: Location | None) -> str:
    """An access with the variable in place of its address: `st.release.gpu.global.u32 flag, 1`."""
    operands = [bound.operands[name] for name in bound.i.of.sources if name in bound.operands]
    addressed = {id(node): str(location) for node in operands if isinstance(node, tree.Address)}
    if location is None or len(addressed) > 1:  # the machine does not say which of several addresses this is
        return text_of(bound)
    program = bound.program
    if program is None:
        return f"{bound.node.head} {location}"
    words = [
        addressed.get(id(node)) or " ".join(program.source.text[node.start : node.end].split()) for node in bound.node.operands
    ]
    return f"{bound.node.head} {', '.join(words)}"

"""One way through a thread of a kernel: the machine runs it, its reads are chosen, and what it does becomes events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from ptxvm.analysis.flow import registers_in
from ptxvm.analysis.program import Bound
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.machine.alone import Enough, Touch
from ptxvm.model.events import Event, Kind
from ptxvm.model.paths import ORDERS, Path, Taken
from ptxvm.model.program import Barrier, Location, Thread
from ptxvm.model.values import Key, Read
from ptxvm.syntax import tree

FENCES = ("fence", "membar")
STRONG = {"volatile": "relaxed"}
Keys = frozenset[Key]
NONE: Keys = frozenset()
MANY = 64
"""So many chains of writes behind a value are followed."""

Locate = Callable[[Touch, Thread], "tuple[str, int] | None"]
"""The variable, and which of its bytes, that an access begins at; None for memory of the thread alone."""


class Link(NamedTuple):
    """A write on the way of a value: which instruction of which thread, and its how manieth turn."""

    thread: str
    instruction: int
    turn: int
    element: int


Chain = frozenset[Link]


class Choices(Protocol):
    """What reads may find."""

    def at(self, location: Location) -> Sequence[int]:
        """What a read of a location may find."""
        ...

    def behind(self, location: Location, value: int) -> tuple[Chain, ...]:
        """The writes through which the value may have come, in one way or another."""
        ...


class Walk:
    """A script that chooses as `chosen` says, then always the first choice; `others` are the choices that it left."""

    def __init__(self, thread: Thread, locate: Locate, choices: Choices, chosen: Sequence[int], jumps_back: int) -> None:
        self.path = Path(thread)
        self.locate, self.choices, self.left = locate, choices, jumps_back
        self.chosen = list(chosen)
        self.given = len(self.chosen)
        self.others: list[list[int]] = []
        self.reads_so_far = 0
        self.written: list[tuple[Location, int, tuple[Chain, ...]]] = []
        self.turns = Counter[int]()
        self.running = self.elements = 0
        self.behind: dict[Key, tuple[Chain, ...]] = {}
        self.flow = Dependencies()

    # ── control ─────────────────────────────────────────────────────────────────────────

    def enters(self, code: Sequence[Bound]) -> None:
        """What was left of the last run of instructions is done."""
        self.flow.enter(code)

    def goes_back(self) -> None:
        """A loop is followed only so often."""
        self.left -= 1
        if self.left < 0:
            raise Enough

    # ── memory ──────────────────────────────────────────────────────────────────────────

    def reads(self, touch: Touch) -> Sequence[int] | None:
        """Choose for each element."""
        self._comes_to(touch.bound)
        start = self.locate(touch, self.path.thread)
        if start is None:
            self.flow.read_own(touch)
            return None
        values = []
        for n in range(touch.count):
            location = Location(start[0], start[1] + n * touch.size, touch.size)
            key = self._add(Kind.READ, touch, location)
            self.flow.read(key)
            values.append(self._choose(key, location))
        self.path.time += 2
        return values

    def writes(self, touch: Touch, values: Sequence[int]) -> None:
        """Each element is a write."""
        self._comes_to(touch.bound)
        start = self.locate(touch, self.path.thread)
        if start is None:
            self.flow.wrote_own(touch)
            return
        for n, value in enumerate(values):
            location = Location(start[0], start[1] + n * touch.size, touch.size)
            self._add(Kind.WRITE, touch, location, value=value, data=self.flow.of_element("b", n, touch.count))
        self.path.time += 2

    def updates(self, touch: Touch, modify: Callable[[int], int], compared: int | None) -> int:
        """A read and a write of each scalar; a `cas` that finds something else is a read (PTX 8.4)."""
        self._comes_to(touch.bound)
        start = self.locate(touch, self.path.thread)
        if start is None:
            raise Unsupported(f"'{touch.bound.i.mnemonic}' on memory of one thread, in a litmus kernel")
        size, keys, old = touch.size // touch.parts, [], 0
        acquires, releases = ORDERS.get(touch.order, ("relaxed", "relaxed"))
        is_red = not touch.bound.i.destinations()
        for n in range(touch.parts):
            location = Location(start[0], start[1] + n * size, size)
            key = self._key
            self._add(Kind.READ, touch, location, order=acquires, atomic=key, is_red=is_red)
            keys.append((key, location))
            self.flow.read(key)
            old |= self._choose(key, location) << 8 * size * n
        new = modify(old)
        self.path.time += 1
        if compared is None or old == compared:
            given = self.flow.of_operands("b", "c")
            for n, (key, location) in enumerate(keys):
                value = new >> 8 * size * n & (1 << 8 * size) - 1
                data = given if _replaces(touch.bound) else given | {key}
                self._add(Kind.WRITE, touch, location, order=releases, atomic=key, value=value, data=data)
        self.path.time += 2
        return old

    def _choose(self, key: Key, location: Location) -> int:
        """A value for a read: the path is only gone where it finds that one."""
        if self.reads_so_far == len(self.chosen):
            first, *rest = self.choices.at(location)
            self.others += [[*self.chosen, other] for other in rest]
            self.chosen.append(first)
        value = self.chosen[self.reads_so_far]
        self.reads_so_far += 1
        self.behind[key] = self.choices.behind(location, value)
        self.path.taken.append(Taken("==", Read(key), value, outcome=True))
        return value

    # ── order ───────────────────────────────────────────────────────────────────────────

    def fences(self, order: str, scope: str) -> None:
        """A fence, or a proxy fence: the instruction tells."""
        bound = self.flow.next_of(FENCES)
        self._comes_to(bound)
        proxy = "proxy" in bound.node.words
        kind = Kind.PROXY_FENCE if proxy else Kind.FENCE
        by = next((name for name in ("alias", "async") if any(name in word for word in bound.node.words)), "tensormap")
        self._put(kind, bound, bound.node.head, order=order, scope=scope, proxy=by if proxy else "generic")
        self.path.time += 2

    def meets(self, bound: Bound, number: int, threads: int | None) -> None:
        """Arrive, then wait."""
        self._barrier(bound, Barrier("bar", number, threads, text=_text(bound)), number)

    def arrives(self, bound: Bound, number: int, threads: int) -> None:
        """Arrive."""
        self._barrier(bound, Barrier("bar", number, threads, waits=False, text=_text(bound)), number)

    def meets_warp(self, bound: Bound, members: int) -> None:
        """Arrive, then wait: the members are the number of the barrier."""
        self._barrier(bound, Barrier("bar.warp", members, text=_text(bound)), members)

    def _barrier(self, bound: Bound, barrier: Barrier, number: int) -> None:
        self._comes_to(bound)
        self._put(Kind.ARRIVAL, bound, barrier.text, barrier=barrier, identity=number, count=barrier.count)
        self.path.time += 1
        if barrier.waits:
            self._put(Kind.WAIT, bound, barrier.text, barrier=barrier, identity=number, count=barrier.count)
        self.path.time += 2

    # ── events ──────────────────────────────────────────────────────────────────────────

    @property
    def _key(self) -> Key:
        return self.path.thread.name, len(self.path.events)

    def _comes_to(self, bound: Bound) -> None:
        if self.flow.comes_to(bound):
            self.path.done += 1
            self.running, self.elements = bound.node.start, 0
            self.turns[self.running] += 1

    def _add(self, kind: Kind, touch: Touch, location: Location, **what: Any) -> Key:
        what.setdefault("order", STRONG.get(touch.order, touch.order))
        scope = touch.scope if what["order"] != "weak" else ""
        what["data"] = what.get("data", NONE) | self.flow.of_operands("a")
        return self._put(kind, touch.bound, describe(touch.bound, location), location=location, scope=scope, **what)

    def _put(self, kind: Kind, bound: Bound, text: str, **what: Any) -> Key:
        key, time = self._key, self.path.time
        control = self.flow.control | self.flow.of_guard(bound)
        event = Event(kind, key, text, self.path.thread, time, time + 1, control=control, made_of=self.path.done, **what)
        self.path.events.append(event)
        if kind is Kind.WRITE and event.location is not None and isinstance(event.value, int):
            self.written.append((event.location, event.value, self._chains(event)))
        return key

    def _chains(self, event: Event) -> tuple[Chain, ...]:
        """The ways in which a value has come into this write; none goes through the write itself, or nobody looks further."""
        link = self._link()
        chains = {frozenset({link})}
        for read in event.data | event.control:
            behind = self.behind[read]
            if len(chains) * len(behind) < MANY:
                chains = {chain | more for chain in chains for more in behind if link not in more}
        if not chains:
            raise Enough
        return tuple(chains)

    def _link(self) -> Link:
        """The link that a write of the instruction that runs now is."""
        self.elements += 1
        return Link(self.path.thread.name, self.running, self.turns[self.running], self.elements)


def _replaces(bound: Bound) -> bool:
    """Does the value of an atomic not depend on what it found?"""
    return bool(bound.i.op == "exch")


def _text(bound: Bound) -> str:
    program = bound.function.program if bound.function is not None else None
    text = program.source.text[bound.node.start : bound.node.end] if program is not None else bound.node.head
    return " ".join(text.split()).rstrip(";").split("}")[-1].strip()


def describe(bound: Bound, location: Location) -> str:
    """An access with the name of what it reaches in the place of its address: `st.release.gpu.global.u32 flag, 1`."""
    operands = [bound.operands[name] for name in bound.i.of.sources if name in bound.operands]
    addressed = {id(node): str(location) for node in operands if isinstance(node, tree.Address)}
    program = bound.function.program if bound.function is not None else None
    if program is None:
        return f"{bound.node.head} {location}"
    words = [
        addressed.get(id(node)) or " ".join(program.source.text[node.start : node.end].split()) for node in bound.node.operands
    ]
    return f"{bound.node.head} {', '.join(words)}"


class Dependencies:
    """From which reads the registers of a thread come, instruction by instruction (PTX 8.10.4)."""

    def __init__(self) -> None:
        self.of: dict[int, Keys] = {}
        self.control: Keys = NONE
        self.code: Sequence[Bound] = ()
        self.at = 0
        self.now: Bound | None = None
        self.found: list[Keys] = []
        self.own: dict[int, Keys] = {}

    def enter(self, code: Sequence[Bound]) -> None:
        """These come next."""
        self._finish()
        for bound in self.code[self.at :]:
            self._pass(bound)
        self.code, self.at = code, 0

    def comes_to(self, bound: Bound) -> bool:
        """This instruction runs now; false if it already did."""
        if bound is self.now:
            return False
        self._finish()
        while self.at < len(self.code) and self.code[self.at] is not bound:
            self._pass(self.code[self.at])
            self.at += 1
        self.at += 1
        self.now, self.found = bound, []
        return True

    def next_of(self, opcodes: Sequence[str]) -> Bound:
        """The next instruction that has one of these opcodes."""
        found = next(bound for bound in self.code[self.at :] if bound.node.opcode in opcodes)
        if found.guard() is not None:
            raise Unsupported("a guarded fence in a litmus kernel")  # the machine does not say which of several it was
        return found

    def read(self, key: Key) -> None:
        """The instruction has read."""
        self.found.append(frozenset({key}))

    def read_own(self, touch: Touch) -> None:
        """It has read memory of its thread."""
        self.found += [self.own.get(touch.offset + n * touch.size, NONE) for n in range(touch.count)]

    def wrote_own(self, touch: Touch) -> None:
        """It has written there."""
        for n in range(touch.count):
            self.own[touch.offset + n * touch.size] = self.of_element("b", n, touch.count)

    def of_operands(self, *names: str) -> Keys:
        """The reads on which operands of the instruction depend."""
        if self.now is None:
            return NONE
        nodes = [self.now.operands[name] for name in names if name in self.now.operands]
        return NONE.union(*(self._of(node) for node in nodes))

    def of_element(self, name: str, n: int, count: int) -> Keys:
        """The reads on which an element of a vector depends."""
        node = self.now.operands.get(name) if self.now else None
        if isinstance(node, tree.Vector) and len(node.items) == count:
            return self._of(node.items[n])
        return self.of_operands(name)

    def of_guard(self, bound: Bound) -> Keys:
        """The reads on which it depends whether an instruction runs."""
        guard = bound.guard()
        return NONE if guard is None else self.of.get(guard[0].index, NONE)

    def _of(self, node: tree.Operand) -> Keys:
        if self.now is None:
            return NONE
        return NONE.union(*(self.of.get(register.index, NONE) for register in registers_in(node, self.now)))

    def _finish(self) -> None:
        """What the instruction has read is in its destinations."""
        if self.now is not None:
            found, self.found = self.found, []
            self._assign(self.now, found)
        self.now = None

    def _pass(self, bound: Bound) -> None:
        """An instruction that does not touch memory, or was guarded away."""
        self.now = bound
        destinations = set(bound.i.destinations())
        sources = NONE.union(*(self._of(node) for name, node in bound.operands.items() if name not in destinations))
        if "flow" in bound.i.of.effects:
            self.control |= sources | self.of_guard(bound)
        self._assign(bound, [sources])
        self.now = None

    def _assign(self, bound: Bound, found: list[Keys]) -> None:
        guard = bound.guard()
        for name in bound.i.destinations():
            node = bound.operands.get(name)
            if node is None or isinstance(node, tree.Address):
                continue
            registers = list(registers_in(node, bound))
            each = found if len(found) == len(registers) else [NONE.union(*found)] * len(registers)
            for register, keys in zip(registers, each, strict=True):
                partly = guard is not None or register.count > 1
                before = self.of.get(register.index, NONE) | self.of_guard(bound) if partly else NONE
                self.of[register.index] = keys | before

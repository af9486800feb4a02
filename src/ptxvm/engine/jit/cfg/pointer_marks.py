"""Pointer marks: registers that may hold addresses of one of several variables, where only a run tells of which.

With the check `memory` an access must stay within the variable that its address comes from (`analysis.provenance`).  Where a
pointer is chosen, passed to a function, or exchanged with another one in a loop, a register beside the pointer has the mark of
its variable (`node.marked_values`).

A pointer that was in memory has the mark of the variable that it points into.  For that, one that is stored must point into its
own variable, and the place must not outlive the variable (`memory.stored_pointers`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.flow import registers_in, value_registers, variables_in
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.provenance import (
    ALLOCATOR,
    NUMBER,
    SPACES,
    WORD,
    Provenance,
    ProvenanceAnalysis,
    of_program,
    reaches_memory,
    written,
)
from ptxvm.analysis.symbols import Register, Variable
from ptxvm.dataclass import dataclass
from ptxvm.named_tuple import NamedTuple
from ptxvm.syntax import tree


class Place(NamedTuple):
    """A register of a function."""

    function: Function
    register: Register


@dataclass(frozen=True, slots=True)
class BoundedAccesses:
    """The accesses that must stay within a variable.

    `certain` are those of one variable, `marked` those by a pointer with a mark, with the register that it is in.  `several`
    have a variable of which only a run tells, and which no mark follows.  `registers` are those that need a mark, by function,
    and `spaces` those of the variables that marks tell of.  `loads` read pointers into one of the `variables` from memory, and
    `stores` have written them there.  Registers of several `parts` have no mark, and must not get a pointer.
    """

    certain: Mapping[Bound, Variable] = field(default_factory=dict)
    marked: Mapping[Bound, Register] = field(default_factory=dict)
    several: Sequence[Bound] = ()
    registers: Mapping[Function, frozenset[Register]] = field(default_factory=dict)
    spaces: frozenset[Space] = frozenset()
    loads: frozenset[Bound] = frozenset()
    stores: frozenset[Bound] = frozenset()
    variables: frozenset[Variable] = frozenset()
    parts: frozenset[Register] = frozenset()


def bounded_accesses(functions: Iterable[Function], callees: Callable[[Bound], Iterable[Function]]) -> BoundedAccesses:
    """Those of functions that call each other; `callees` are the ones of them that a call may enter."""
    every = of_program(functions)
    search = _Search(every, callees, through_memory=True)
    found = _bounded(every, search)
    if not search.loads:
        return found
    stored = search.stored()
    if stored is None:
        return _bounded(every, _Search(every, callees, through_memory=False))
    return _bounded(every, search, stored)


def _bounded(every: Mapping[Function, Provenance], search: _Search, stored: set[Place] | None = None) -> BoundedAccesses:
    """The accesses; with marks of pointers that are `stored`, and loaded again, where these are given."""
    certain: dict[Bound, Variable] = {}
    marked: dict[Bound, Register] = {}
    several: list[Bound] = []
    places = set(stored or ())
    for function, found in every.items():
        certain |= found.certain
        for bound in found.several:
            pointer = _pointer(bound)
            sources = search.sources(Place(function, pointer)) if pointer is not None else None
            if pointer is None or sources is None:
                several.append(bound)
                continue
            marked[bound] = pointer
            places |= sources
    registers = {
        function: frozenset(each for owner, each in places if owner is function and _can_be_marked(each)) for function in every
    }
    variables = search.variables(places)
    spaces = frozenset(each.space for each in variables)
    if stored is None:
        return BoundedAccesses(certain, marked, several, registers, spaces)
    stores = frozenset(bound for found in every.values() for bound in found.stores)
    loads, parts = frozenset(search.loads), frozenset(search.parts)
    return BoundedAccesses(certain, marked, several, registers, spaces, loads, stores, variables, parts)


def _pointer(bound: Bound) -> Register | None:
    """The register of an access with its address, alone or with an offset; None where it has several, or one without a mark."""
    places = [node for node in bound.operands.values() if isinstance(node, tree.Address)]
    if len(places) != 1 or len(places[0].items) != 1:
        return None
    node = places[0].items[0]
    while isinstance(node, tree.Binary) and node.op in ("+", "-"):
        node = node.left
    found = bound.scope.find(node.text) if isinstance(node, tree.Name) else None
    return found if isinstance(found, Register) and _can_be_marked(found) else None


class _Search:
    """Finds the registers that the values of a register come from, through calls as well, and perhaps through memory."""

    def __init__(
        self, every: Mapping[Function, Provenance], callees: Callable[[Bound], Iterable[Function]], *, through_memory: bool
    ) -> None:
        self.every, self.through_memory = every, through_memory
        self.loads: set[Bound] = set()  # of pointers that were in memory
        self.parts: set[Register] = set()  # that have several, and no mark
        self.analyses = {each: ProvenanceAnalysis(each, [], found.escaped) for each, found in every.items()}
        self.writers: dict[Place, list[Bound]] = defaultdict(list)
        self.passed: dict[Place, list[tuple[Function, Bound, tree.Operand]]] = defaultdict(list)  # of formals, what calls pass
        self.returned: dict[tuple[Bound, Register], set[Place] | None] = {}  # the results of functions that a call gives back
        self._known: dict[Place, frozenset[Place] | None] = {}
        for function in every:
            for bound in function.instructions:
                for register in written(bound):
                    self.writers[Place(function, register)].append(bound)
                for callee in callees(bound) if bound.calls else ():
                    self._link(function, bound, callee)

    def _link(self, function: Function, bound: Bound, callee: Function) -> None:
        """Note what a call passes to a function, and what that returns."""
        arguments, formals = bound.operands.get("args"), callee.signature
        given = arguments.items if isinstance(arguments, tree.Group) else []
        for formal, node in zip(formals.parameters, given, strict=False):
            if isinstance(formal, Register):
                self.passed[Place(callee, formal)].append((function, bound, node))
        for formal, target in zip(formals.results, bound.results(), strict=False):
            if isinstance(target, Register):
                known = self.returned.get((bound, target), set())
                more = {Place(callee, formal)} if isinstance(formal, Register) else None
                self.returned[bound, target] = None if known is None or more is None else known | more

    def sources(self, place: Place) -> frozenset[Place] | None:
        """All registers with addresses that one depends on, with itself; None where one has values that have no mark."""
        if place not in self._known:
            self._known[place] = self._sources(place)
        return self._known[place]

    def variables(self, places: Iterable[Place]) -> frozenset[Variable]:
        """The variables whose addresses some registers get."""
        every = (bound for place in places for bound in self.writers[place] if not bound.calls)
        nodes = ((node, bound) for bound in every for name, node in bound.operands.items() if name in bound.i.of.sources)
        found = (each for node, bound in nodes for each in variables_in(node, bound))
        return frozenset(each for each in found if each.space in SPACES and each.size)

    def stored(self) -> set[Place] | None:
        """What the pointers that are stored depend on; None where one has no mark, or is stored beside the thread."""
        places: set[Place] = set()
        for function, found in self.every.items():
            for bound in found.stores:
                if any(each.asynchronous for each in bound.summary.accesses):
                    return None
                nodes = [bound.operands[name] for name in bound.i.of.sources if name in bound.operands]
                values = [node for node in nodes if not isinstance(node, tree.Address)]
                if any(variable.space in SPACES for node in values for variable in variables_in(node, bound)):
                    return None
                for register in value_registers(bound):
                    if register in found.followed and register.type.bits >= WORD:
                        sources = self.sources(Place(function, register))
                        if sources is None:
                            return None
                        places |= sources
        return places

    def _sources(self, place: Place) -> frozenset[Place] | None:
        found, work = {place}, [place]
        while work:
            each = work.pop()
            if not _can_be_marked(each.register):
                if not self.through_memory or each.register.of_module or each.register.type.bits < WORD:
                    return None
                self.parts.add(each.register)
            for read in self._reads(each):
                if read is None:
                    return None
                work += read - found
                found |= read
        return frozenset(found)

    def _reads(self, place: Place) -> Iterator[set[Place] | None]:
        """What each write of a register depends on, and what calls pass in it; None for what has no mark."""
        for function, bound, node in self.passed[place]:
            yield self._actual(function, bound, node)
        if place.register in place.function.signature.parameters and not self.passed[place]:
            yield None  # from a call that is not seen
        for bound in self.writers[place]:
            yield self._result(bound, place) if bound.calls else self._read(bound, place.function)

    def _actual(self, function: Function, bound: Bound, node: tree.Operand) -> set[Place] | None:
        """What an argument depends on."""
        symbol = bound.scope.find(node.text) if isinstance(node, tree.Name) else None
        if isinstance(symbol, Variable):
            return None
        return {Place(function, symbol)} & self._followed(function) if isinstance(symbol, Register) else set()

    def _result(self, bound: Bound, place: Place) -> set[Place] | None:
        """What the result of a call depends on; of functions of the device only that of the allocator is an address."""
        function = bound.callee()
        if (bound, place.register) in self.returned:
            return self.returned[bound, place.register]
        return set() if function is not None and function.name != ALLOCATOR else None

    def _followed(self, function: Function) -> set[Place]:
        return {Place(function, each) for each in self.every[function].followed}

    def _read(self, bound: Bound, function: Function) -> set[Place] | None:
        """The registers with addresses that a result depends on; None where it has no mark."""
        if bound.summary.grows_stack or bound.summary.maps_cluster:
            return None
        if reaches_memory(bound):
            if self.analyses[function].loaded(bound) == NUMBER:
                return set()
            self.loads.add(bound)
            return set() if self.through_memory else None
        followed = {each for each in self.every[function].followed if each.type.bits >= WORD}  # narrower ones count as numbers
        nodes = [node for name, node in bound.operands.items() if name in bound.i.of.sources]
        parts = [node for node in nodes if isinstance(node, tree.Vector)]
        if any(each in followed for node in parts for each in registers_in(node, bound)):
            return None
        return {Place(function, each) for node in nodes for each in registers_in(node, bound) if each in followed}


def _can_be_marked(register: Register) -> bool:
    return not register.of_module and register.count == 1 and register.type.bits >= WORD


def numbered(found: BoundedAccesses, frames: Iterable[tuple[Function, int]], first: int) -> Iterator[tuple[int, int]]:
    """The registers that need a mark, and those of the marks from `first` on; of frames the function and the first register."""
    known: set[int] = set()
    for function, begin in frames:
        for register in sorted(found.registers.get(function, ()), key=lambda each: each.index):
            if (number := begin + register.index) not in known:
                yield number, first + len(known)
                known.add(number)

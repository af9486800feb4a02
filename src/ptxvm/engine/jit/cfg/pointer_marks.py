"""Pointer marks: registers that may hold addresses of one of several variables, where only a run tells of which.

With the check `memory` an access must stay within the variable that its address comes from (`analysis.provenance`).  Where a
pointer is chosen, or two pointers are exchanged in a loop, a register beside the pointer has the mark of its variable
(`node.marked_values`).  A pointer that was in memory, in a parameter or a result has no mark: such accesses are left to the
exact checker.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.flow import registers_in, variables_in
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.provenance import NUMBER, SPACES, WORD, Provenance, ProvenanceAnalysis, of_program, reaches_memory, written
from ptxvm.analysis.symbols import Register, Variable
from ptxvm.dataclass import dataclass
from ptxvm.syntax import tree


@dataclass(frozen=True, slots=True)
class BoundedAccesses:
    """The accesses that must stay within a variable.

    `certain` are those of one variable, `marked` those by a pointer with a mark: the register that it is in, and the space of
    the variables that it may point to.  `several` have a variable of which only a run tells, and which no mark follows.
    `registers` are those that need a mark, by function.
    """

    certain: Mapping[Bound, Variable] = field(default_factory=dict)
    marked: Mapping[Bound, tuple[Register, Space]] = field(default_factory=dict)
    several: Sequence[Bound] = ()
    registers: Mapping[Function, frozenset[Register]] = field(default_factory=dict)


def bounded_accesses(functions: Iterable[Function], unmarked: Collection[Function]) -> BoundedAccesses:
    """Those of functions that call each other; no register has a mark in functions that are `unmarked`."""
    certain: dict[Bound, Variable] = {}
    marked: dict[Bound, tuple[Register, Space]] = {}
    several: list[Bound] = []
    registers: dict[Function, frozenset[Register]] = {}
    for function, found in of_program(functions).items():
        certain |= found.certain
        search = _Search(function, found)
        followed: set[Register] = set()
        for bound in found.several:
            pointer = _pointer(bound) if function not in unmarked else None
            sources = search.sources(pointer) if pointer is not None else None
            spaces = search.spaces(sources) if sources is not None else set[Space]()
            if pointer is None or sources is None or len(spaces) != 1:
                several.append(bound)
                continue
            marked[bound] = pointer, next(iter(spaces))
            followed |= sources
        registers[function] = frozenset(followed)
    return BoundedAccesses(certain, marked, several, registers)


def _pointer(bound: Bound) -> Register | None:
    """The register with the address of an access, alone or with an offset; None where it has several, or another kind."""
    places = [node for node in bound.operands.values() if isinstance(node, tree.Address)]
    if len(places) != 1 or len(places[0].items) != 1:
        return None
    node = places[0].items[0]
    while isinstance(node, tree.Binary) and node.op in ("+", "-"):
        node = node.left
    found = bound.scope.find(node.text) if isinstance(node, tree.Name) else None
    return found if isinstance(found, Register) else None


class _Search:
    """Finds the registers that the values of a register come from."""

    def __init__(self, function: Function, found: Provenance) -> None:
        self.found, self.analysis = found, ProvenanceAnalysis(function, [], found.escaped)
        self.formals = set() if function.entry else {*function.signature.parameters, *function.signature.results}
        self.writers: dict[Register, list[Bound]] = defaultdict(list)
        for bound in function.instructions:
            for register in written(bound):
                self.writers[register].append(bound)
        self._known: dict[Register, frozenset[Register] | None] = {}

    def sources(self, register: Register) -> frozenset[Register] | None:
        """All registers with addresses that one depends on, with itself; None where one has values that have no mark."""
        if register not in self._known:
            self._known[register] = self._sources(register)
        return self._known[register]

    def spaces(self, registers: Iterable[Register]) -> set[Space]:
        """The spaces of the variables whose addresses some registers get."""
        every = (bound for register in registers for bound in self.writers[register])
        nodes = ((node, bound) for bound in every for name, node in bound.operands.items() if name in bound.i.of.sources)
        return {each.space for node, bound in nodes for each in variables_in(node, bound) if each.space in SPACES}

    def _sources(self, register: Register) -> frozenset[Register] | None:
        found, work = {register}, [register]
        while work:
            each = work.pop()
            if not self._can_be_marked(each):
                return None
            for bound in self.writers[each]:
                made = self._read(bound)
                if made is None:
                    return None
                work += made - found
                found |= made
        return frozenset(found)

    def _can_be_marked(self, register: Register) -> bool:
        return not register.of_module and register.count == 1 and register.type.bits >= WORD and register not in self.formals

    def _read(self, bound: Bound) -> set[Register] | None:
        """The registers with addresses that a result depends on; None where it has no mark."""
        if bound.calls or bound.summary.grows_stack or bound.summary.maps_cluster:
            return None
        if reaches_memory(bound):
            return set() if self.analysis.loaded(bound) == NUMBER else None
        nodes = [node for name, node in bound.operands.items() if name in bound.i.of.sources]
        parts = [node for node in nodes if isinstance(node, tree.Vector)]
        if any(each in self.found.followed for node in parts for each in registers_in(node, bound)):
            return None
        if any(variable.space in SPACES and not variable.size for node in nodes for variable in variables_in(node, bound)):
            return None
        read = {each for node in nodes for each in registers_in(node, bound) if each in self.found.followed}
        simple = not bound.i.of.effects or bound.summary.converts_address
        return read if simple or not read else None


def numbered(found: BoundedAccesses, frames: Iterable[tuple[Function, int]], first: int) -> Iterator[tuple[int, int]]:
    """The registers that need a mark, and those of the marks from `first` on; of frames the function and the first register."""
    known: set[int] = set()
    for function, begin in frames:
        for register in sorted(found.registers.get(function, ()), key=lambda each: each.index):
            if (number := begin + register.index) not in known:
                yield number, first + len(known)
                known.add(number)

"""Marks of pointers: beside a value, of which variable it is an address (`cfg.pointer_marks`).

A mark is a word of 64 bits: where the variable begins in its window, with a bit that tells which window, and, in the upper
half, where it ends.  It is NUMBER for what is no address, and LOST for what was made of addresses and is none.  The rules are
those of the exact checker (`engine.interp.shadow_algebra`): an address plus or minus a number is one of the same variable, and
so on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type, pred, u64
from ptxvm.algebra.value import Algebra, Rounding, Value, select
from ptxvm.analysis.flow import registers_in, value_registers, variables_in
from ptxvm.analysis.program import Bound
from ptxvm.analysis.provenance import SPACES, WORD, reaches_memory, written
from ptxvm.analysis.symbols import Register, Variable
from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.cfg.nodes import Frame
from ptxvm.engine.jit.ir.lane_values import Affine, Raw
from ptxvm.engine.jit.node import stack
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.engine.jit.node.operands import Operands
from ptxvm.engine.jit.node.register_shapes import Key
from ptxvm.engine.jit.values.algebra import LlvmAlgebra
from ptxvm.engine.operands import OperandValue
from ptxvm.isa.model import PORTS
from ptxvm.machine.image import Placement
from ptxvm.syntax import tree

NUMBER, LOST = 0, 1
ENDED = 1 << 31 | 2  # for an address of a variable that is no more: no access is within it
END = 32  # the first bit of the end of a variable
IN_LOCAL = 1 << 31  # the variable is in local memory, else in shared memory
JOINING = frozenset({"add", "and", "or"})
SHIFTS = frozenset({"shl", "shr"})


@dataclass(frozen=True, slots=True)
class Marked:
    """A value and its mark; None for that of a number."""

    raw: Raw
    mark: Value | None = None


class MarkAlgebra(Algebra):
    """Writes code for the marks beside the code for the values, which LLVM code exists for already."""

    def __init__(self, values: LlvmAlgebra) -> None:
        self.values = values

    def const(self, type: Type, x: float) -> Marked:
        """A number."""
        return Marked(self.values.const(type, x))

    def integer(self, op: str, type: Type, a: Marked, b: Marked) -> Marked:
        """Sums and differences of an address and a number, and an address with some bits masked, keep the mark."""
        return Marked(self.values.integer(op, type, a.raw, b.raw), self._of_integer(op, type, a, b))

    def _of_integer(self, op: str, type: Type, a: Marked, b: Marked) -> Value | None:
        if type is pred or (a.mark is None and b.mark is None):
            return None
        shifted_by_none = op in SHIFTS and isinstance(b.raw, Affine) and b.raw.constant == 0
        keeps = shifted_by_none or op in JOINING or (op == "sub" and a.mark is not None)
        if type.bits < WORD or not keeps:
            return self._lost(a, b)
        if a.mark is None or b.mark is None:
            return a.mark if b.mark is None else b.mark
        lost, number = a.mark.lift(LOST), a.mark.lift(NUMBER)
        if op in JOINING:
            return select(b.mark.eq(NUMBER), a.mark, select(a.mark.eq(NUMBER), b.mark, lost))
        alike = a.mark.eq(b.mark) & a.mark.ne(LOST)
        return select(b.mark.eq(NUMBER), a.mark, select(alike, number, lost))

    def select(self, type: Type, condition: Marked, a: Marked, b: Marked) -> Marked:
        """One of two, with its mark."""
        raw = self.values.select(type, condition.raw, a.raw, b.raw)
        if a.mark is None and b.mark is None:
            return Marked(raw)
        return Marked(raw, select(Value(self.values, pred, condition.raw), self._mark(a), self._mark(b)))

    def cast(self, op: str, source: Type, target: Type, a: Marked, rounding: Rounding) -> Marked:
        """The same bits, and a change of size that keeps enough of them, keep the mark."""
        raw = self.values.cast(op, source, target, a.raw, rounding)
        keeps = op in ("view", "resize") and target.bits >= WORD
        return Marked(raw, a.mark if keeps else self._lost(a))

    def bits(self, op: str, type: Type, a: Marked) -> Marked:
        """No address."""
        return Marked(self.values.bits(op, type, a.raw), self._lost(a))

    def floating(self, op: str, type: Type, rounding: Rounding, *args: Marked) -> Marked:
        """No address."""
        return Marked(self.values.floating(op, type, rounding, *(each.raw for each in args)), self._lost(*args))

    def compare(self, op: str, type: Type, a: Marked, b: Marked) -> Marked:
        """A predicate has no mark."""
        return Marked(self.values.compare(op, type, a.raw, b.raw))

    def round(self, mode: str, type: Type, a: Marked) -> Marked:
        """No address."""
        return Marked(self.values.round(mode, type, a.raw), self._lost(a))

    def lookup(self, type: Type, table: tuple[int, ...], index: Marked) -> Marked:
        """No address."""
        return Marked(self.values.lookup(type, table, index.raw), self._lost(index))

    def _mark(self, a: Marked) -> Value:
        return Value(self.values, u64, self.values.const(u64, NUMBER)) if a.mark is None else a.mark

    def _lost(self, *args: Marked) -> Value | None:
        """LOST where one of the operands is no number."""
        marks = [each.mark for each in args if each.mark is not None]
        if not marks:
            return None
        numbers = marks[0].eq(NUMBER)
        for mark in marks[1:]:
            numbers = numbers & mark.eq(NUMBER)
        return select(numbers, marks[0].lift(NUMBER), marks[0].lift(LOST))


class MarkedValues:
    """The marks of the values of one instruction."""

    def __init__(self, at: Operands, bound: Bound) -> None:
        self.at, self.bound, self.marks = at, bound, at.kernel.graph.marks

    def results(self) -> dict[Key, Value]:
        """The marks of its results, by the keys of their registers; nothing where these need no mark, or memory has them."""
        if self.bound.calls:
            return {}
        registers, bounded = written(self.bound), self.at.kernel.graph.bounded
        if not bounded.parts.isdisjoint(registers):
            self._suspect_any(self._sources())
        keys = [self.at.key(each)[0] for each in registers]
        if self.bound in bounded.loads or self.marks.keys().isdisjoint(keys):
            return {}
        i, none = self.bound.i, Value(self.at.alg, u64, self.at.alg.const(u64, NUMBER))
        if reaches_memory(self.bound):
            made: list[Value] = [none for _ in keys]
        elif i.of.effects:
            sources = self._sources()
            if not self.bound.summary.converts_address:
                self._suspect_any(sources)
                sources = []
            made = [sources[0] if sources else none for _ in keys]
        else:
            made = [none if mark is None else mark for mark in self._computed()]
        return {(self.marks[key], 0): mark for key, mark in zip(keys, made, strict=True) if key in self.marks}

    def _sources(self) -> list[Value]:
        """The marks of what it reads."""
        nodes = [self.bound.operands[name] for name in self.bound.i.of.sources if name in self.bound.operands]
        parts = [part for node in nodes for part in (node.items if isinstance(node, tree.Vector) else [node])]
        return [mark for node in parts if (mark := self._of(node)) is not None]

    def _suspect_any(self, marks: Iterable[Value]) -> None:
        """Suspect pointers that lanes exchange, or that go where there are no marks."""
        for mark in marks:
            self.at.suspect_if(is_pointer(mark).raw)

    def _computed(self) -> Iterator[Value | None]:
        """The marks of what it computes from its operands."""
        i, algebra = self.bound.i, MarkAlgebra(self.at.alg)
        operands = [self._operand(algebra, name) for name in i.of.parameters if name not in PORTS]
        made = i.of.meaning(i, *operands)
        for each in made if isinstance(made, tuple | list) else [made]:
            yield each.raw.mark

    def _operand(self, algebra: MarkAlgebra, name: str) -> OperandValue:
        mark = self._of(self.bound.operands.get(name))
        return _marked(algebra, self.at.operand(self.bound, name), mark)

    def _of(self, node: tree.Operand | None) -> Value | None:
        """The mark of an operand; None for that of a number."""
        if node is None:
            return None
        register = next(registers_in(node, self.bound), None)
        if register is not None:
            number = self.marks.get(self.at.key(register)[0])
            return self.at.slot((number, 0), u64) if number is not None else None
        variable = next((each for each in variables_in(node, self.bound) if each.space in SPACES and each.size), None)
        if variable is None:
            return None
        return of_variable(self.at, variable)


def begin_of(at: NodeBuilder, variable: Variable, frame: Frame | None = None) -> int:
    """Where a variable of shared or local memory begins in its window, less the start of a frame that a run places.

    The variable is one of this function, or of a `frame` that it is inlined in.
    """
    frame = frame or at.node.frame
    where, begin = at.kernel.image.locate(variable, frame.function)
    return begin + (frame.offset if where is Placement.FRAME else 0)


def of_variable(at: NodeBuilder, variable: Variable, frame: Frame | None = None) -> Value:
    """The mark of the address of a variable, of this function or of a `frame` that it is inlined in."""
    frame = frame or at.node.frame
    begin, space = begin_of(at, variable, frame), IN_LOCAL if variable.space is Space.LOCAL else 0
    fixed: Value = Value(at.alg, u64, at.alg.const(u64, begin | space | begin + variable.size << END))
    if not in_placed_frame(at, variable, frame):
        return fixed
    start = stack.start(at, frame)
    return fixed + start + (start << END)


def in_placed_frame(at: NodeBuilder, variable: Variable, frame: Frame | None = None) -> bool:
    """Is it in a frame that a run places?"""
    frame = frame or at.node.frame
    return frame.root.shared and at.kernel.image.locate(variable, frame.function)[0].in_frame


def of_access(at: NodeBuilder, bound: Bound) -> Value | None:
    """The mark of the pointer of an access; None where it is not followed."""
    pointer = at.kernel.graph.bounded.marked.get(bound)
    return at.slot((at.kernel.graph.marks[at.key(pointer)[0]], 0), u64) if pointer is not None else None


def is_pointer(mark: Value) -> Value:
    """Is a mark that of an address of a variable?"""
    return mark.compare("gt", mark.lift(LOST))


def extent(mark: Value) -> tuple[Value, Value]:
    """Where the variable of a mark begins and ends in its window."""
    return mark & (IN_LOCAL - 1), mark >> END


def stored_by(at: NodeBuilder, bound: Bound) -> Iterator[tuple[Value, Value]]:
    """The values that an instruction stores which may be pointers, and their marks."""
    for register in value_registers(bound):
        key, marks = at.key(register)[0], at.kernel.graph.marks
        if key in marks:
            yield at.slot((key, 0), register.type), at.slot((marks[key], 0), u64)


def loaded_by(at: NodeBuilder, bound: Bound) -> Iterator[tuple[Key, Value]]:
    """The keys of the marks of the results of an instruction, and the results."""
    for register in written(bound):
        key, marks = at.key(register)[0], at.kernel.graph.marks
        if key in marks:
            yield (marks[key], 0), at.slot((key, 0), register.type)


def moved(at: NodeBuilder, source: Frame, given: Iterable[object], target: Frame, taken: Iterable[object]) -> dict[Key, Value]:
    """The marks of what a call passes from one frame to another, by the keys of their registers."""
    graph, found = at.kernel.graph, dict[Key, Value]()
    for one, other in zip(given, taken, strict=False):
        mark = graph.marks.get(graph.number(other, target)) if isinstance(other, Register) else None
        if mark is not None:
            own = graph.marks.get(graph.number(one, source)) if isinstance(one, Register) else None
            none = Value(at.alg, u64, at.alg.const(u64, NUMBER))
            found[mark, 0] = none if own is None else at.slot((own, 0), u64)
    return found


def returned(at: NodeBuilder, callee: Frame, marks: Mapping[Key, Value]) -> dict[Key, Value]:
    """The marks of what a function gives back: its own variables end with the call."""
    begin = stack.start(at, callee) + callee.offset
    found = {}
    for key, mark in marks.items():
        own = (mark & IN_LOCAL).ne(0) & (mark & (IN_LOCAL - 1)).compare("ge", begin)
        found[key] = select(own, mark.lift(ENDED), mark)
    return found


def assign(at: NodeBuilder, marks: Mapping[Key, Value]) -> None:
    """Give pointers their marks."""
    for key, mark in marks.items():
        at.assign(key, u64, mark)


def _marked(algebra: MarkAlgebra, value: OperandValue, mark: Value | None) -> OperandValue:
    """An operand with its mark; the elements of a vector have none."""
    if isinstance(value, list):
        return [Value(algebra, each.type, Marked(each.raw)) for each in value]
    return Value(algebra, value.type, Marked(value.raw, mark)) if isinstance(value, Value) else value

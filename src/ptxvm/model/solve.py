"""The executions of a test, found by z3: for tests with too many choices to enumerate.

The events are those of one path through each thread.  z3 decides what the search would enumerate: the write that each read
takes, the order of fence.sc pairs, and coherence order.  The axioms are those of the search, on `symbolic` relations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import z3

from ptxvm.model.axioms_6_4 import BEFORE_COHERENCE, PTX64, WITH_COHERENCE, Axiom
from ptxvm.model.barrier_matching import barrier_orders
from ptxvm.model.conditions import CannotSolve
from ptxvm.model.deadline import seconds_left
from ptxvm.model.enumerate import Candidate, initial_writes, may_take
from ptxvm.model.execution import Cell
from ptxvm.model.litmus_test import Test
from ptxvm.model.memory_events import EventKind
from ptxvm.model.names import register_names
from ptxvm.model.paths import Path
from ptxvm.model.relations import Relation, members
from ptxvm.model.symbolic import Symbolic, Truth
from ptxvm.model.values import COMPARISONS, Key, ReadValue, Value

BITS = 64
OPERATIONS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "min": lambda a, b: z3.If(a < b, a, b),
    "max": lambda a, b: z3.If(a > b, a, b),
    "inc": lambda a, b: z3.If(a >= b, z3.BitVecVal(0, BITS), a + 1),
    "dec": lambda a, b: z3.If(z3.Or(a == 0, a > b), b, a - 1),
}


Term: TypeAlias = Any
"""A number, or a bit vector of z3, which has no types."""

Axioms: TypeAlias = Any
"""`PTX64` over relations whose pairs are formulas."""


class Question:
    """All executions along some paths and one order of the barriers, as constraints."""

    def __init__(self, test: Test, model: type[PTX64], chosen: tuple[Path, ...], barriers: Relation, start: PTX64) -> None:
        self.test, self.start, self.chosen, self.barriers = test, start, chosen, barriers
        self.solver = z3.Solver()
        self.values = {e.key: z3.BitVec(f"v{i}", BITS) for i, e in enumerate(start.events) if e.kind is EventKind.READ}
        self.takes = dict(self.sources())
        self.sc = self.fence_sc()
        self.co = self.coherence()
        self.x = self.execution()
        self.require(model)
        self.state = self.final_state()

    # ── what z3 decides ─────────────────────────────────────────────────────────────────

    def sources(self) -> Iterator[tuple[tuple[int, int], Term]]:
        """A variable for each pair of a write and a read: each read takes one write, and has its value."""
        start = self.start
        for read in members(start.reads):
            (cell,) = self.whole(read)
            writes = [write for write in start.memory[cell] if may_take(start, read, write)]
            taken = [z3.Bool(f"rf{write}_{read}") for write in writes]
            self.solver.add(z3.PbEq([(each, 1) for each in taken], 1) if taken else z3.BoolVal(val=False))
            for write, each in zip(writes, taken, strict=True):
                self.solver.add(z3.Implies(each, self.values[start.events[read].key] == self.value(start.events[write].value)))
                yield (write, read), each

    def whole(self, access: int) -> tuple[Cell, ...]:
        """The one cell of an access; CannotSolve if other writes to the cell have another size."""
        cells = self.start.cells[access]
        if len(cells) != 1 or any(self.start.cells[write] != cells for write in self.start.memory[cells[0]]):
            raise CannotSolve("accesses of several sizes have no formula for z3")
        return cells

    def value(self, value: Value) -> Term:
        """The value as a z3 term."""
        if isinstance(value, int):
            return z3.BitVecVal(value, BITS)
        if isinstance(value, ReadValue):
            return self.values[value.event]
        if value.name not in OPERATIONS:
            raise CannotSolve(f"`{value.name}` has no formula for z3")
        return OPERATIONS[value.name](self.value(value.left), self.value(value.right))

    def fence_sc(self) -> Symbolic:
        """An order of each morally strong pair of fence.sc operations, without a cycle."""
        x, rows = self.start, dict[int, dict[int, Truth]]()
        for a, b in x.morally_strong.between(x.fence_scs, x.fence_scs):
            if a < b:
                way = z3.Bool(f"sc{a}_{b}")
                rows.setdefault(a, {})[b] = way
                rows.setdefault(b, {})[a] = z3.Not(way)
        order = Symbolic(rows, x.count)
        self.acyclic(order, "sc")
        return order

    def coherence(self) -> Symbolic:
        """An order of the writes of each variable: irreflexive and transitive; it relates all pairs that must be ordered."""
        x, rows = self.start, dict[int, dict[int, Truth]]()
        for writes in x.memory.values():
            for a in writes:
                for b in writes:
                    if a != b:
                        rows.setdefault(a, {})[b] = z3.Bool(f"co{a}_{b}")
            self.solver.add(*(
                z3.Implies(z3.And(rows[a][b], rows[b][c]), rows[a][c] if a != c else z3.BoolVal(val=False))
                for a in writes for b in writes for c in writes if a != b != c
            ))  # fmt: skip
        self.solver.add(*(z3.Or(rows[a][b], rows[b][a]) for a, b in x.either_way if a < b))
        return Symbolic(rows, x.count)

    def execution(self) -> Axioms:
        """The execution with conditions for its pairs; the properties of the model work on it."""
        x = self.start.with_decisions()
        x.__dict__.update({name: Symbolic.of(held) for name, held in x.__dict__.items() if isinstance(held, Relation)})
        rf: dict[int, dict[int, Truth]] = {}
        fr: dict[int, dict[int, Truth]] = {}
        for (write, read), taken in self.takes.items():
            rf.setdefault(write, {})[read] = taken
            for later, before in self.co.rows_of.get(write, {}).items():
                way = z3.And(taken, before)
                row = fr.setdefault(read, {})
                row[later] = z3.Or(row[later], way) if later in row else way
        count = self.start.count
        return x.with_decisions(
            reads_from=Symbolic(rf, count), from_reads=Symbolic(fr, count), coherence=self.co,
            fence_sc=self.sc, barriers=Symbolic.of(self.barriers),
        )  # fmt: skip

    # ── constraints ─────────────────────────────────────────────────────────────────────

    def require(self, model: type[PTX64]) -> None:
        """Add the axioms, and the branches that the paths took."""
        del model
        x = self.x
        required = x.initial_before_all | (x.causality & x.overlap).between(x.writes, x.writes)
        for a, b, truth in required.items():
            self.solver.add(z3.Not(truth) if a == b and truth is not True else z3.Implies(truth, self.co.holds(a, b)))
        for axiom in (*BEFORE_COHERENCE, *WITH_COHERENCE):
            self.keep(axiom)
        for path in self.chosen:
            for one in path.conditions:
                held = COMPARISONS[one.comparison](self.value(one.left), self.value(one.right))
                self.solver.add(held if one.outcome else z3.Not(held))

    def keep(self, axiom: Axiom) -> None:
        """Add one axiom."""
        relation = Symbolic.of(axiom.relation(self.x))
        if axiom.must_be == "acyclic":
            self.acyclic(relation, axiom.name)
            return
        for a, b, truth in relation.items():
            if axiom.must_be == "empty" or a == b:
                self.solver.add(z3.BoolVal(val=False) if truth is True else z3.Not(truth))

    def acyclic(self, relation: Symbolic, name: str) -> None:
        """Forbid cycles: events have numbers that grow along the relation."""
        height = [z3.Int(f"{name}{i}") for i in range(relation.count)]
        self.solver.add(*(z3.Implies(truth, height[a] < height[b]) for a, b, truth in relation.items()))

    def final_state(self) -> dict[str, Term]:
        """The final state: registers, and for each cell the value of a write that no other write follows."""
        state: dict[str, Term] = {
            name: z3.BitVecVal(0, BITS) for thread in self.test.threads for name in register_names(thread)
        }
        for path in self.chosen:
            for name, value in path.registers.items():
                if not name.startswith("#"):
                    state[f"{path.thread.name}:{name}"] = self.value(value)
        state |= {
            name: z3.BitVecVal(value, BITS)
            for variable in self.test.elements
            for name, value in self.test.elements[variable].named(variable, self.test.variables[variable]).items()
        }
        shown = set[str]()
        for cell, writes in self.start.memory.items():
            if cell[0] in self.test.elements and all(self.start.initial >> write & 1 for write in writes):
                continue  # it keeps its initial value
            name = self.name(cell, writes[-1])
            if name in shown:
                raise CannotSolve("a variable with writes of its parts has no formula for z3")
            shown.add(name)
            final = z3.BitVec(f"final_{name}", BITS)
            state[name] = self.signed(cell[0], final)
            last = [z3.Bool(f"last{write}") for write in writes]
            self.solver.add(z3.Or(*last))
            for write, each in zip(writes, last, strict=True):
                follows = list(self.co.rows_of.get(write, {}).values())
                is_final = z3.And(final == self.value(self.start.events[write].value), z3.Not(z3.Or(*follows)))
                self.solver.add(z3.Implies(each, is_final))
        for alias in self.test.aliases:
            state[alias] = state[self.test.physical(alias)]
        return state

    def name(self, cell: Cell, write: int) -> str:
        """The name of a cell in a final state: a variable, or an element of one."""
        variable, start, end = self.start.ranges[write]
        elements = self.test.elements.get(variable)
        if elements is None:
            if not self.start.is_whole(variable, start, end):
                raise CannotSolve("a variable of which only a part is written has no formula for z3")
            return variable
        if end - start != elements.size or start % elements.size or cell[1] != start:
            raise CannotSolve("parts of the elements of an array have no formula for z3")
        return list(elements.named(variable, 0))[start // elements.size]

    def signed(self, variable: str, value: Term) -> Term:
        """A final value, sign-extended if its type is signed."""
        elements = self.test.elements.get(variable)
        if elements is None or not elements.signed:
            return value
        return z3.SignExt(BITS - 8 * elements.size, z3.Extract(8 * elements.size - 1, 0, value))

    # ── questions ───────────────────────────────────────────────────────────────────────

    def holds_for(self, formula: Truth) -> z3.ModelRef | None:
        """An execution in which a formula holds; None if there is none."""
        left = seconds_left()
        if left is not None:
            self.solver.set("timeout", 1 + int(left * 1000))
        self.solver.push()
        self.solver.add(formula)
        answer = self.solver.check()
        if answer == z3.unknown:
            seconds_left()
            raise CannotSolve("z3 finds no answer")
        found = self.solver.model() if answer == z3.sat else None
        self.solver.pop()
        return found

    def outcome(self, found: z3.ModelRef) -> tuple[tuple[str, int], ...]:
        """The final state of a found execution."""
        return tuple(sorted((name, number(found, value)) for name, value in self.state.items()))

    def differs(self, outcome: tuple[tuple[str, int], ...]) -> Truth:
        """The formula of all other final states."""
        return z3.Or(*(self.state[name] != value for name, value in outcome))

    def races(self) -> Iterator[tuple[int, int]]:
        """Pairs that conflict, are not morally strong, and are unordered in some execution."""
        causality = Symbolic.of(self.x.causality)
        for a, b in self.start.conflict - self.start.morally_strong:
            ordered = [truth for truth in (causality.holds(a, b), causality.holds(b, a)) if truth is not False]
            if a < b and True not in ordered and self.holds_for(z3.Not(z3.Or(*ordered))) is not None:
                yield a, b

    def candidate(self, found: z3.ModelRef) -> Candidate:
        """A found execution, in the form that the search gives."""

        def chosen(relation: Symbolic) -> Relation:
            return Relation.of(((a, b) for a, b, truth in relation.items() if is_so(found, truth)), relation.count)

        sources = {
            (read, self.start.cells[read][0]): write for (write, read), taken in self.takes.items() if is_so(found, taken)
        }
        x = self.start.with_decisions(
            sources=sources, barriers=self.barriers, fence_sc=chosen(self.sc), coherence=chosen(self.co)
        )  # fmt: skip
        known: Mapping[Key, int] = {key: number(found, value) for key, value in self.values.items()}
        registers = {name: number(found, value) for name, value in self.state.items() if ":" in name}
        return Candidate(x, known, registers)


def is_so(found: z3.ModelRef, truth: Truth) -> bool:
    """Does a condition hold in a found execution?"""
    return truth is True or bool(z3.is_true(found.eval(truth, model_completion=True)))


def number(found: z3.ModelRef, value: Term) -> int:
    """The signed value of a term."""
    held: int = found.eval(value, model_completion=True).as_signed_long()
    return held


def questions(
    test: Test, model: type[PTX64], ways: Iterator[tuple[Path, ...]], on_stuck: Callable[[], None]
) -> Iterator[Question]:
    """A question for each choice of paths and order of barriers; `on_stuck` is called if no order exists."""
    for chosen in ways:
        if any(path.fault for path in chosen):
            raise CannotSolve("a kernel with a fault has no formula for z3")
        events = [event for path in chosen for event in path.events]
        start = model(test, [*initial_writes(test, events), *events])
        for name in (*model.known_from_the_start, "overlap"):
            getattr(start, name)
        if any(not isinstance(event.identity, int) or isinstance(event.count, ReadValue) for event in events if event.barrier):
            raise CannotSolve("a barrier with a number from memory has no formula for z3")
        orders = list(barrier_orders(start, {}))
        if not orders:
            on_stuck()
        yield from (Question(test, model, chosen, barriers, start) for barriers in orders)

"""Divergence analysis: the shapes of registers, and the code that only some threads of a CTA may come to.

A fixed point of two things that depend on each other: values that meet behind a branch of which threads take both sides
vary, and a branch is such a one where its condition varies.  What a branch decides is its control dependence, by
post-dominators.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from heapq import heappop, heappush

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.value import Value
from ptxvm.analysis.flow import Segment, segments
from ptxvm.analysis.lane_shapes import UNIFORM, UNKNOWN, LaneShape, LaneShapes, Variation, joined, of_special, together, value
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.shapes import constant
from ptxvm.analysis.symbols import Register, Variable
from ptxvm.isa.effects import Verb
from ptxvm.isa.model import Decoded
from ptxvm.isa.special_registers import lookup
from ptxvm.syntax import tree

State = dict[Register, LaneShape]

MOST_ROUNDS = 16
"""Rounds of the fixed point; each makes at least one branch more divergent, so that most functions need two or three."""


class Divergence:
    """The analysis of one function whose instructions are all recognised."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.segments = segments(function)
        self.results: dict[int, LaneShape] = {}  # by the number of an instruction: the shape of its first result
        self.addresses: dict[int, LaneShape] = {}
        self.divergent: frozenset[int] = frozenset()  # segments
        self._known: dict[tuple[object, ...], tuple[LaneShape, ...]] = {}
        self._once = written_once(function)
        several = [each for each in function.registers if each not in self._once and not each.of_module]
        self._live = [[each for each in several if segment.live_in >> each.index & 1] for segment in self.segments]
        self._fixed: State = {}  # the shapes of registers that one instruction writes: they need no place in a state
        self._solve()

    # ── questions ───────────────────────────────────────────────────────────────────────

    def may_part(self, number: int) -> bool:
        """May only some threads come to an instruction, as conditions that differ between threads decide it?"""
        return any(self.segments[at].start <= number < self.segments[at].end for at in self.divergent)

    @cached_property
    def reached(self) -> frozenset[int]:
        """The segments that can be reached."""
        found, work = set[int](), [0] if self.segments else []
        while work:
            at = work.pop()
            if at not in found:
                found.add(at)
                work += self.segments[at].successors
        return frozenset(found)

    # ── the fixed point ─────────────────────────────────────────────────────────────────

    def _solve(self) -> None:
        if not self.segments:
            return
        depends = control_dependence(self.segments, [self._ends_threads(segment) for segment in self.segments])
        for _ in range(MOST_ROUNDS):
            fixed = dict(self._fixed)
            divergent = closure(depends, self._shapes())
            if divergent == self.divergent and fixed == self._fixed:
                break
            self.divergent = divergent

    def _ends_threads(self, segment: Segment) -> bool:
        """May threads end here, although others go on?"""
        last = self.function.instructions[segment.end - 1]
        return last.node.guard is not None and last.summary.ends_thread

    def _shapes(self) -> set[int]:
        """The shapes of all registers; the segments that end in a branch whose condition differs between threads."""
        entry: dict[int, State] = {0: {}}
        work, parting = [0], set[int]()  # a heap: in the order of the code most segments are looked at once
        while work:
            at = heappop(work)
            state = dict(entry[at])
            segment = self.segments[at]
            for number in range(segment.start, segment.end):
                self.step(number, state)
            last = self.function.instructions[segment.end - 1]
            if len(set(segment.successors)) + self._ends_threads(segment) > 1 and self._condition(last, state).differs:
                parting.add(at)
            for successor in segment.successors:
                merged = self._merged(entry.get(successor), state, successor, apart=at in self.divergent)
                if merged != entry.get(successor):
                    entry[successor] = merged
                    if successor not in work:
                        heappush(work, successor)
        return parting

    def _merged(self, before: State | None, state: State, at: int, *, apart: bool) -> State:
        """The state at the begin of a segment, of registers that are read there or behind it."""
        merged = {}
        for register in self._live[at]:
            shape, known = state.get(register, UNKNOWN), None if before is None else before.get(register)
            merged[register] = shape if known is None else joined(known, shape, apart=apart and known != shape)
        return merged

    def _condition(self, last: Bound, state: State) -> LaneShape:
        guard = last.guard()
        shapes = [self._of(guard[0], state)] if guard is not None else []
        for name in last.i.of.sources:
            node = last.operands.get(name)
            if isinstance(node, tree.Name) and isinstance(last.scope.find(node.text), Register):
                shapes.append(self.shape(node, last, state))
        return together(*shapes) if shapes else UNIFORM

    # ── one instruction ─────────────────────────────────────────────────────────────────

    def step(self, number: int, state: State) -> None:
        """Apply an instruction to the shapes."""
        bound = self.function.instructions[number]
        i = bound.i
        shapes = {name: self.shape(node, bound, state) for name, node in bound.operands.items()}
        if (address := shapes.get("a")) is not None and i.of.moves is not None:
            self.addresses[number] = address
        made = self._results(bound, shapes)
        guard = bound.guard()
        for name, shape in zip(i.destinations(), made, strict=False):
            for register in registers_of(bound.operands.get(name), bound):
                if register in self._once:
                    self._fixed[register] = shape
                elif guard is None:
                    state[register] = shape
                else:
                    state[register] = joined(self._of(register, state), shape, apart=self._of(guard[0], state).differs)
        if made:
            self.results[number] = made[0]

    def _results(self, bound: Bound, shapes: dict[str, LaneShape]) -> tuple[LaneShape, ...]:
        i = bound.i
        count = len(i.destinations())
        if i.of.moves is Verb.READ:
            return (self._loaded(bound, shapes),) * count
        if i.of.effects:
            same_place = bound.summary.converts_address and not bound.summary.accesses
            return (shapes.get("a", UNKNOWN) if same_place else UNKNOWN,) * count
        key = (id(i), *shapes.items())
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = computed(i, shapes)
        return found

    def _loaded(self, bound: Bound, shapes: dict[str, LaneShape]) -> LaneShape:
        """What comes from memory: the same in all threads where the address is, unless each thread has its own memory."""
        windows = {access.window for access in bound.summary.having(Verb.READ)}
        own = Space.LOCAL in windows or (Space.PARAM in windows and not self.function.entry)
        strong = any(access.strong for access in bound.summary.accesses)
        return UNIFORM if shapes.get("a", UNKNOWN).is_uniform and not own and not strong else UNKNOWN

    def shape(self, node: tree.Operand, bound: Bound, state: State) -> LaneShape:
        """The shape of an operand."""
        match node:
            case tree.Name():
                return self._name(node, bound, state)
            case tree.Address() if len(node.items) == 1:
                return self.offset(node.items[0], bound, state)
            case tree.Vector() | tree.Address():
                return together(*(self.offset(item, bound, state) for item in node.items))
            case tree.Unary() if node.op == "!" and isinstance(node.operand, tree.Name):
                return together(self._name(node.operand, bound, state))
        known = constant(node)
        return LaneShape(Variation.UNIFORM, value=known) if isinstance(known, int) else UNIFORM

    def offset(self, node: tree.Operand, bound: Bound, state: State) -> LaneShape:
        """The shape of a part of an address: a name, perhaps with a constant added."""
        if isinstance(node, tree.Binary):
            node = tree.chain(node)[0]
        return self._name(node, bound, state) if isinstance(node, tree.Name) else UNIFORM

    def _name(self, node: tree.Name, bound: Bound, state: State) -> LaneShape:
        symbol = bound.scope.find(node.text)
        if isinstance(symbol, Register):
            return self._of(symbol, state)
        if isinstance(symbol, Variable) or not node.text.startswith(("%", "WARP_SZ")):
            return UNIFORM
        special = lookup(node.text, node.component)
        return of_special(special) if special is not None else UNIFORM

    def _of(self, register: Register, state: State) -> LaneShape:
        return state.get(register) or self._fixed.get(register, UNKNOWN)


def written_once(function: Function) -> frozenset[Register]:
    """The registers that one instruction writes, and in all cases."""
    writes = Counter[Register]()
    for bound in function.instructions:
        times = 2 if bound.node.guard is not None else 1
        for name in bound.i.destinations():
            writes.update(dict.fromkeys(registers_of(bound.operands.get(name), bound), times))
    return frozenset(register for register, times in writes.items() if times == 1 and register.count == 1)


def registers_of(node: tree.Operand | None, bound: Bound) -> Iterator[Register]:
    """The registers that a destination names."""
    items = node.items if isinstance(node, tree.Vector) else [node]
    for item in items:
        if isinstance(item, tree.Name) and isinstance(symbol := bound.scope.find(item.text), Register):
            yield symbol


def computed(i: Decoded, shapes: dict[str, LaneShape]) -> tuple[LaneShape, ...]:
    """The shapes of what an instruction without effects computes, by its meaning, or else by all its operands."""
    operands = []
    for name in i.of.sources:
        type = i.type_of(name)
        if type is None or name not in shapes:
            return (together(*shapes.values()),) * len(i.destinations())
        operands.append(value(type, shapes[name]))
    made = by_meaning(i, operands)
    if made is None:
        return (together(*(shapes[name] for name in i.of.sources)),) * len(i.destinations())
    return tuple(each.raw if isinstance(each, Value) and isinstance(each.alg, LaneShapes) else UNKNOWN for each in made)


def by_meaning(i: Decoded, operands: list[Value]) -> tuple[object, ...] | None:
    """What an instruction without effects computes of abstract values; None where its operands are not single values."""
    try:
        made = i.of.meaning(i, *operands)
    except (AttributeError, TypeError, ValueError, IndexError, KeyError):  # vectors, symbols
        return None
    return made if isinstance(made, tuple) else (made,)


# ── control dependence ──────────────────────────────────────────────────────────────────


def control_dependence(found: list[Segment], ends: list[bool]) -> list[set[int]]:
    """For each segment, the segments whose execution its last instruction decides."""
    exit = len(found)
    after = [[*dict.fromkeys(s.successors), *([exit] if ends[n] or not s.successors else [])] for n, s in enumerate(found)]
    parents = post_dominators(after, exit)
    decides: list[set[int]] = [set() for _ in found]
    for at, successors in enumerate(after):
        if len(successors) < 2:
            continue
        for successor in successors:
            runner: int | None = successor
            while runner is not None and runner != parents.get(at) and runner != exit:
                decides[at].add(runner)
                runner = parents.get(runner)
    return decides


def post_dominators(after: list[list[int]], exit: int) -> dict[int, int]:
    """The immediate post-dominator of each node but the exit, and what never comes to it.

    K. D. Cooper, T. J. Harvey, K. Kennedy: A Simple, Fast Dominance Algorithm (2001), on the graph with its edges turned.
    """
    before: list[list[int]] = [[] for _ in range(exit + 1)]
    for at, successors in enumerate(after):
        for successor in successors:
            before[successor].append(at)
    order, rank = postorder(before, exit)
    parents = {exit: exit}
    changed = True
    while changed:
        changed = False
        for at in reversed(order[:-1]):
            new: int | None = None
            for successor in after[at]:
                if successor in parents:
                    new = successor if new is None else meet(new, successor, parents, rank)
            if new is not None and parents.get(at) != new:
                parents[at], changed = new, True
    del parents[exit]
    return parents


def postorder(before: list[list[int]], exit: int) -> tuple[list[int], dict[int, int]]:
    """The nodes that come to the exit, in postorder from it, and the place of each."""
    order, seen, work = list[int](), {exit}, [(exit, iter(before[exit]))]
    while work:
        at, rest = work[-1]
        following = next((each for each in rest if each not in seen), None)
        if following is None:
            order.append(at)
            work.pop()
        else:
            seen.add(following)
            work.append((following, iter(before[following])))
    return order, {at: n for n, at in enumerate(order)}


def meet(one: int, other: int, parents: dict[int, int], rank: dict[int, int]) -> int:
    """The nearest node that post-dominates both."""
    while one != other:
        if rank[one] < rank[other]:
            one = parents[one]
        else:
            other = parents[other]
    return one


def closure(decides: list[set[int]], parting: set[int]) -> frozenset[int]:
    """The segments that branches of some segments decide, and those that branches within these decide."""
    found, work = set[int](), [at for start in parting for at in decides[start]]
    while work:
        at = work.pop()
        if at not in found:
            found.add(at)
            work += decides[at]
    return frozenset(found)

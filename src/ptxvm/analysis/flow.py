"""The control flow of a function: segments, their successors, and the registers that are live between them.

A segment is a run of instructions that a group of lanes executes in one go.  It ends before a label that something
jumps to, after an instruction that uses the port `flow`, and around one at which a warp can wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from itertools import pairwise

from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.shapes import names_in
from ptxvm.analysis.symbols import Label, Register, Table, Variable
from ptxvm.dataclass import dataclass
from ptxvm.isa.special_registers import SpecialRegister, lookup
from ptxvm.syntax import tree


@dataclass(eq=False, slots=True)
class Segment:
    """Instructions `start:end` of a function.  `live_in` and `live_out` are sets of register indexes, as bits."""

    start: int
    end: int
    successors: list[int] = field(default_factory=list)
    successors_at: list[int] = field(default_factory=list)  # the instructions at which they start
    live_in: int = 0
    live_out: int = 0


def segments(function: Function, *, single: bool = False) -> list[Segment]:
    """The segments of a function, in the order of the code, with successors and live registers.

    Where they are `single`, each instruction is one.
    """
    code = function.instructions
    cuts = range(len(code) + 1) if single else sorted({0, len(code), *cut_points(function)})
    found = [Segment(a, b) for a, b in pairwise(cuts)]
    number = {s.start: n for n, s in enumerate(found)}
    for segment in found:
        segment.successors_at = successors(function, code[segment.end - 1], segment.end)
        segment.successors = [number[at] for at in segment.successors_at]
    live(function, found)
    return found


def cut_points(function: Function) -> Iterator[int]:
    """The instructions at which segments begin."""
    for label in labels(function):
        yield label.index
    for n, bound in enumerate(function.instructions):
        effects = bound.i.of.effects
        if "waits" in effects:
            yield n
            yield n + 1
        elif "flow" in effects:
            yield n + 1


def labels(function: Function) -> Iterator[Label]:
    """Every label that the code may jump to."""
    for bound in function.instructions:
        for operand in bound.node.operands:
            if isinstance(operand, tree.Name):
                symbol = bound.scope.find(operand.text)
                if isinstance(symbol, Label):
                    yield symbol
                elif isinstance(symbol, Table) and symbol.kind == "branchtargets":
                    yield from symbol.targets


def targets(bound: Bound) -> list[int]:
    """The instructions that one may jump to."""
    found = []
    for operand in bound.node.operands:
        if isinstance(operand, tree.Name):
            symbol = bound.scope.find(operand.text)
            if isinstance(symbol, Label):
                found.append(symbol.index)
            elif isinstance(symbol, Table) and symbol.kind == "branchtargets":
                found += [label.index for label in symbol.targets]
    return found


def successors(function: Function, last: Bound, following: int) -> list[int]:
    """The segments that can follow the last instruction of a segment."""
    found = targets(last) if "flow" in last.i.of.effects else []
    if not last.i.of.ends or last.node.guard is not None:
        found.append(following)
    return [at for at in found if at < len(function.instructions)]


def registers_in(node: tree.Operand, bound: Bound) -> Iterator[Register]:
    """The registers that an operand names."""
    for name in names_in(node):
        symbol = bound.scope.find(name.text)
        if isinstance(symbol, Register):
            yield symbol


def variables_in(node: tree.Operand, bound: Bound) -> Iterator[Variable]:
    """The variables that an operand names."""
    for name in names_in(node):
        symbol = bound.scope.find(name.text)
        if isinstance(symbol, Variable):
            yield symbol


def value_registers(bound: Bound) -> Iterator[Register]:
    """The registers that an instruction reads as values, and not as addresses that it accesses."""
    for name, node in bound.operands.items():
        if (name in bound.i.of.sources or bound.calls) and not isinstance(node, tree.Address):
            yield from registers_in(node, bound)


def address_registers(bound: Bound) -> Iterator[Register]:
    """The registers of the addresses that an instruction accesses."""
    for operand in bound.node.operands:
        if isinstance(operand, tree.Address):
            for item in operand.items:
                yield from registers_in(item, bound)


def reads_and_writes(bound: Bound) -> tuple[int, int]:
    """The registers of the function that an instruction reads, and those that it writes in all cases, as bits."""
    if bound.reads_and_writes is None:
        bound.reads_and_writes = _reads_and_writes(bound)
    return bound.reads_and_writes


def changes(bound: Bound) -> int:
    """The registers of the function that an instruction may write, as bits."""
    return named(bound)[1]


def named(bound: Bound) -> tuple[int, int]:
    """The registers of the function that the operands of an instruction read, and those that they may write, as bits."""
    if bound.named is None:
        bound.named = _operands(bound)
    return bound.named


def _reads_and_writes(bound: Bound) -> tuple[int, int]:
    reads, writes = named(bound)
    if (guard := bound.guard()) is not None:
        return reads | bit_of(guard[0]) | writes, 0
    return reads, writes


def _operands(bound: Bound) -> tuple[int, int]:
    i = bound.i
    destinations = set(i.destinations())
    reads = writes = 0
    for name, node in bound.operands.items():
        bits = 0
        for register in registers_in(node, bound):
            bits |= bit_of(register)
        if name in destinations and not isinstance(node, tree.Address):
            writes |= bits
            one_element = isinstance(node, tree.Name) and node.component is not None  # of a vector: the others stay
            if one_element or name in i.of.updates:
                reads |= bits
        else:
            reads |= bits
    return reads, writes


def bit_of(register: Register) -> int:
    """A register as a set; empty for a register of the module, which lives as long as the thread."""
    return 0 if register.of_module else 1 << register.index


def bits(registers: int) -> Iterator[int]:
    """The registers of a set, each as a set of its own."""
    while registers:
        yield registers & -registers
        registers &= registers - 1


def live(function: Function, found: list[Segment]) -> None:
    """Find the live registers of segments: a backward data-flow analysis."""
    gen, kill = [], []
    for segment in found:
        used = defined = 0
        for bound in function.instructions[segment.start : segment.end]:
            reads, writes = reads_and_writes(bound)
            used |= reads & ~defined
            defined |= writes
        gen.append(used)
        kill.append(defined)
    results = 0
    for symbol in function.signature.results:
        if isinstance(symbol, Register):
            results |= 1 << symbol.index
    before, after = live_sets(gen, kill, [segment.successors for segment in found], results)
    for segment, live_in, live_out in zip(found, before, after, strict=True):
        segment.live_in, segment.live_out = live_in, live_out


def live_sets(
    gen: Sequence[int], kill: Sequence[int], successors: Sequence[Sequence[int]], everywhere: int = 0
) -> tuple[list[int], list[int]]:
    """The registers that are live before each piece of code, and those that are live after it: a fixed point.

    A piece reads the registers `gen` before it writes any, and writes those of `kill` in all cases.  Registers that are live
    `everywhere` are so at the end of each piece.
    """
    before, after = [0] * len(gen), [0] * len(gen)
    predecessors: list[list[int]] = [[] for _ in gen]
    for n, following in enumerate(successors):
        for s in following:
            predecessors[s].append(n)
    work = list(range(len(gen)))
    while work:
        n = work.pop()
        live_out = everywhere
        for s in successors[n]:
            live_out |= before[s]
        after[n] = live_out
        live_in = gen[n] | (live_out & ~kill[n])
        if live_in != before[n]:
            before[n] = live_in
            work += predecessors[n]
    return before, after


def special_registers(bound: Bound) -> tuple[SpecialRegister, ...]:
    """The special registers that the operands of an instruction mention."""
    if bound.special_registers is None:
        bound.special_registers = tuple(_special_registers(bound))
    return bound.special_registers


def _special_registers(bound: Bound) -> Iterator[SpecialRegister]:
    for node in bound.operands.values():
        for name in names_in(node):
            if name.text.startswith("%") and (found := lookup(name.text, name.component)) is not None:
                yield found

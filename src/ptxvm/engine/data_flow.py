"""Data flow: the registers that instructions read and write, and which depend on which."""

from __future__ import annotations

from collections.abc import Iterable

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.flow import bit_of, reads_and_writes, registers_in
from ptxvm.analysis.program import Bound
from ptxvm.analysis.symbols import Register
from ptxvm.isa.effects import Verb
from ptxvm.syntax import tree


def data_flow(code: list[Bound]) -> list[tuple[int, int]]:
    """The registers that each instruction reads, and those that it writes; `.param` variables count as one register."""
    return [(read(bound) | _param_bit(bound, reads=True), _defined(bound)) for bound in code]


def read(bound: Bound) -> int:
    """The registers that an instruction reads, without those that take the results of a call."""
    found = reads_and_writes(bound)[0]
    results = sum({bit_of(result) for result in bound.results() if isinstance(result, Register)})
    arguments = sum(
        {bit_of(each) for name, node in bound.operands.items() if name != "ret" for each in registers_in(node, bound)}
    )
    return found & ~results | arguments if results else found


def _param_bit(bound: Bound, *, reads: bool) -> int:
    """The bit for all `.param` variables, beyond those of registers, if an instruction reads or writes one."""
    verb = Verb.READ if reads else Verb.WRITE
    touches = bound.calls or any(access.window is Space.PARAM for access in bound.summary.having(verb))
    return 1 << len(bound.scope.registers) if touches else 0


def dependent(flows: list[tuple[int, int]], seeds: int) -> int:
    """The registers whose values depend on those of `seeds`."""
    found, before = 0, -1
    while found != before:
        before = found
        for reads, writes in flows:
            if reads & (seeds | found):
                found |= writes
    return found


def written(code: Iterable[Bound]) -> int:
    """The registers that some instructions write."""
    found = 0
    for bound in code:
        found |= _defined(bound)
    return found


def _defined(bound: Bound) -> int:
    """The registers that an instruction writes, perhaps only where its guard holds."""
    found = _param_bit(bound, reads=False)
    for result in bound.results():
        found |= bit_of(result) if isinstance(result, Register) else 0
    for name in bound.i.destinations():
        node = bound.operands.get(name)
        if node is not None and not isinstance(node, tree.Address):
            for register in registers_in(node, bound):
                found |= bit_of(register)
    return found

"""The causes of slow code: why lanes differ at each gather, scatter, access lane by lane and divergent branch.

The search goes backwards from the address or the condition, through varying registers, to a result that varies although its
own operands do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from textwrap import wrap

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.flow import address_registers
from ptxvm.analysis.program import Bound
from ptxvm.analysis.symbols import Register
from ptxvm.analysis.unset import use
from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.node.context import KernelContext
from ptxvm.engine.jit.node.node_code import ON_HOST
from ptxvm.isa.effects import Verb

GATHERED = {
    "gather": "the address is a formula of the lane that gives no rows, or lanes are masked",
    "scatter": "the address is a formula of the lane that gives no rows, or lanes are masked",
    "lane by lane": "an atomic access",
}
"""The notes of slow accesses, each with the cause where the address does not vary."""

PARTED, MAY_PART = "together, else masked", "may part"
PARTS = {PARTED: "lanes that part run in the masked version", MAY_PART: "lanes that part run under a mask"}
"""The notes of divergent branches, each with its meaning."""
IN_STEP = ", in step"
"""The addition for the branch of a loop that CTAs may run in step."""

ENDS, BEHIND = "masked from here", "masked"
"""The notes of where the version for whole warps ends, and of what comes then."""

WIDTH = 118


@dataclass(slots=True)
class Definitions:
    """The instructions that give a register a value that varies, and all that write it."""

    varying: dict[Register, list[Bound]] = field(default_factory=dict)
    written: dict[Register, list[Bound]] = field(default_factory=dict)

    def add(self, bound: Bound, *, varies: bool) -> None:
        """Note what an instruction writes."""
        for register in use(bound).writes:
            for found in (self.written, self.varying) if varies else (self.written,):
                found.setdefault(register, []).append(bound)

    def roots(self, registers: Iterable[Register]) -> Iterator[str]:
        """The reasons why registers vary, each in some words."""
        work, seen = list(registers), set[Register]()
        while work:
            register = work.pop()
            if register in seen:
                continue
            seen.add(register)
            for bound in self.varying.get(register, ()):
                sources = [each for each in read(bound) if each in self.varying]
                if loads(bound):
                    yield f"line {bound.line} loads {register.name}"
                elif sources:
                    work += sources
                else:
                    yield f"line {bound.line} ({bound.i.mnemonic}) makes {register.name} differ"
            if register not in self.varying and len(lines := lines_of(self.written.get(register, ()))) > 1:
                yield f"{register.name} comes from lines {' and '.join(map(str, lines))}"


def cause(definitions: Definitions, bound: Bound, note: str) -> str:
    """One line on a slow access or branch; empty where the note tells of none."""
    note = note.removesuffix(IN_STEP)
    if note in GATHERED:
        finding, unknown, registers = note, GATHERED[note], list(address_registers(bound))
    elif note in PARTS:
        guard = bound.guard()
        registers = [guard[0]] if guard is not None else read(bound)
        finding, unknown = PARTS[note], "the condition is a formula of the lane"
    elif note == ON_HOST:
        said = f"computed in Python, which takes microseconds for each warp: {bound.i.mnemonic} has no machine code"
        return f"line {bound.line}: {said}"
    elif note == ENDS:
        why = f"{bound.i.mnemonic} is written for one warp" if "warp" in bound.i.of.effects else "lanes part behind it"
        return f"line {bound.line}: from here on each warp runs alone, under masks: {why}"
    else:
        return ""
    reasons = list(dict.fromkeys(definitions.roots(registers)))
    said = "; ".join(reasons) if reasons else unknown
    return "\n".join(wrap(f"line {bound.line}: {finding}: {said}", WIDTH, subsequent_indent="    "))


def read(bound: Bound) -> list[Register]:
    """The registers whose values an instruction takes."""
    found = use(bound)
    return [*found.reads, *found.passes]


def loads(bound: Bound) -> bool:
    """Does the instruction read memory?"""
    return any(access.verb is not Verb.WRITE and access.space is not Space.PARAM for access in bound.summary.accesses)


def lines_of(bounds: Iterable[Bound]) -> list[int]:
    """The lines of instructions, each once."""
    return sorted({bound.line for bound in bounds})


def causes(kernel: KernelContext, rows: Iterable[tuple[Bound, str, str]]) -> Iterator[str]:
    """The lines of a kernel: `rows` has its instructions with the shapes of their values and the notes of its table."""
    rows = list(rows)
    definitions = Definitions()
    for bound, value, _ in rows:
        definitions.add(bound, varies="varies" in value)
    found = dict.fromkeys(said for bound, _, note in rows if (said := cause(definitions, bound, note)))
    yield from found
    if not kernel.straight:
        yield "everywhere: the kernel has no version for whole warps; code runs under masks, one warp at a time"

"""Lints: what is legal and probably not meant, or slow.  `ptxvm check --lint` prints them, editors show them as hints.

A lint needs a module without errors.  Each says only what it can know from the text: a register that no instruction reads, an
address that grows by a known stride.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.divergence import Divergence
from ptxvm.analysis.flow import named
from ptxvm.analysis.lane_shapes import Variation
from ptxvm.analysis.program import Bound, Function, Program
from ptxvm.analysis.report import Report
from ptxvm.analysis.shapes import constant, shape_of
from ptxvm.analysis.validate import recogniser
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics import Diagnostic, Severity, Span, register
from ptxvm.isa.access import count
from ptxvm.isa.effects import Collective
from ptxvm.isa.special_registers import WARP
from ptxvm.isa.targets import LOWEST, VERSIONS
from ptxvm.syntax import tree

SECTOR = 32  # bytes that memory moves at least
BANKS, BANK = 32, 4  # of shared memory, and the bytes that one gives in a cycle

UNREACHABLE = register(
    "P0701",
    "code that is never executed",
    """
    No path from the begin of the function comes here: a jump or `ret` stands above, and nothing jumps to a label between.

        ret;
        add.s32 %r1, %r1, 1;       // never executed
    """,
)
NEVER_READ = register(
    "P0702",
    "a register that is never read",
    """
    The function writes the register and no instruction reads it, so what computes it has no effect.  A name that was mistyped
    is a likely reason.
    """,
)
DIVERGENT_BARRIER = register(
    "P0703",
    "a barrier that only some threads may reach",
    """
    Whether a thread comes to this barrier depends on its number, and the barrier waits for all threads of the CTA (PTX
    9.7.13.1).  Mostly the condition belongs around the work and not around the barrier.

        setp.lt.u32 %p1, %tid.x, 16;
        @!%p1 bra DONE;
        bar.sync 0;                // threads 16 and above never come
    """,
)
UNCOALESCED = register(
    "P0704",
    "an access to global memory with a wide stride",
    """
    Neighbouring threads access addresses that are far apart, so that a warp moves more sectors of 32 bytes than its values
    fill.  Where neighbours access neighbouring elements, few sectors suffice.
    """,
)
BANK_CONFLICT = register(
    "P0705",
    "an access to shared memory with bank conflicts",
    """
    Shared memory has 32 banks of 4 bytes.  The lanes of a warp access different words of the same banks, which come one after
    the other.  A row of 33 words instead of 32, or a swizzled index, cures most of these.
    """,
)
DEPRECATED = register(
    "P0706",
    "a deprecated form",
    """
    Later versions of PTX, or later targets, do not take this form any more, or another one replaces it.

        shfl.up.b32 %r1, %r2, 1, 0;            // gone for sm_70 and later
        shfl.sync.up.b32 %r1, %r2, 1, 0, -1;   // names the lanes that take part
    """,
)

NEEDS = frozenset(("P0306", "P0307"))
"""The codes of what a version or target lacks: that is no sign of age."""

REPLACED: dict[str, str] = {"maxnctapersm": "minnctapersm"}
"""Directives that another replaces (PTX 11.4.5)."""


def lint(program: Program) -> list[Diagnostic]:
    """The lints of a program without errors, in the order of the text."""
    report = Report(program.source)
    for function in program.functions.values():
        if function.defined:
            lint_function(LintedFunction(function), report)
    return sorted(report.diagnostics, key=lambda each: each.span.start)


def lint_function(known: LintedFunction, report: Report) -> None:
    """The lints of one function."""
    for rule in RULES:
        for found in rule(known):
            report.add(Severity.NOTE, found.code, found.message, found.place, help=found.help, note=found.note)


@dataclass(frozen=True, slots=True)
class Lint:
    """A finding: its code and message, its place, and the way out."""

    code: str
    message: str
    place: tree.Node | Span
    help: str = ""
    note: str = ""


@dataclass
class LintedFunction:
    """A function, and what is known of it."""

    function: Function

    @cached_property
    def divergence(self) -> Divergence:
        """The shapes of its values, and its divergent code."""
        return Divergence(self.function)

    def reached(self) -> Iterator[tuple[int, Bound]]:
        """The instructions that can be executed, with their numbers."""
        for at in sorted(self.divergence.reached):
            segment = self.divergence.segments[at]
            yield from ((number, self.function.instructions[number]) for number in range(segment.start, segment.end))


# ── rules ───────────────────────────────────────────────────────────────────────────────


def unreachable(known: LintedFunction) -> Iterator[Lint]:
    """Runs of instructions that nothing comes to, but for a last `ret` or `trap` that a compiler leaves."""
    segments = known.divergence.segments
    dead = [n for n in range(len(segments)) if n not in known.divergence.reached]
    runs: list[list[int]] = []
    for n in dead:
        if runs and segments[runs[-1][1] - 1].end == segments[n].start:
            runs[-1][1] = n + 1
        else:
            runs.append([n, n + 1])
    code = known.function.instructions
    for first, last in runs:
        body = code[segments[first].start : segments[last - 1].end]
        if not all(bound.summary.ends_thread for bound in body):
            yield Lint(UNREACHABLE, "this code is never executed", Span(body[0].node.start, body[-1].node.end))


def never_read(known: LintedFunction) -> Iterator[Lint]:
    """Registers that are written by instructions without other effects, and read nowhere."""
    function = known.function
    reads, writers = 0, defaultdict[int, list[Bound]](list)
    for bound in function.instructions:
        read, written = named(bound)
        guard = bound.guard()
        reads |= read | (1 << guard[0].index if guard is not None and not guard[0].of_module else 0)
        if written and written & (written - 1) == 0:
            writers[written].append(bound)
    results = sum(1 << each.index for each in function.signature.results if hasattr(each, "index"))
    for register_bit, bounds in writers.items():
        if not register_bit & (reads | results) and all(not bound.i.of.effects for bound in bounds):
            name = function.registers[register_bit.bit_length() - 1].name
            place = next(iter(bounds[0].operands.values()), bounds[0].node)
            yield Lint(NEVER_READ, f"'{name}' is written and never read", place, help=f"remove what computes '{name}'")


def divergent_barriers(known: LintedFunction) -> Iterator[Lint]:
    """Barriers for all threads of a CTA in code that conditions on the numbers of threads decide."""
    for number, bound in known.reached():
        waits_for_all = bound.summary.collective is Collective.BARRIER and bound.i.shape("b") is None
        if waits_for_all and known.divergence.may_part(number):
            yield Lint(
                DIVERGENT_BARRIER,
                "only some threads may come to this barrier: a branch above depends on the number of the thread",
                Span(bound.node.start, bound.node.end),
                help="place the barrier where all threads pass",
            )


def uncoalesced(known: LintedFunction) -> Iterator[Lint]:
    """Accesses to global memory whose stride between neighbouring threads wastes half of each sector, or more.

    Accesses from one base count together: what one leaves out of a sector, its neighbour may take.
    """
    groups = defaultdict[tuple[object, object, int], list[tuple[Bound, int, int]]](list)
    for bound, stride, size in _strided(known, Space.GLOBAL):
        base, offset = parts(bound.operands["a"])
        groups[bound.scope.find(base), bound.i.of.moves, stride].append((bound, offset, size))
    for (_, _, stride), group in groups.items():
        taken = {offset + byte for _, offset, size in group for byte in range(size)}
        addresses = {lane * stride + byte for lane in range(WARP) for byte in taken}
        first = min(addresses)  # nothing is known of its alignment: it may begin a sector
        sectors = {(address - first) // SECTOR for address in addresses}
        needed = -(-WARP * len(taken) // SECTOR)
        if len(sectors) >= 2 * needed:
            for bound, _, _ in group:
                yield Lint(
                    UNCOALESCED,
                    f"neighbouring threads are {abs(stride)} bytes apart: {len(sectors)} sectors where {needed} would do",
                    bound.operands["a"],
                    note=f"a warp moves {len(sectors) * SECTOR} bytes for {WARP * len(taken)}",
                )


def parts(address: tree.Operand) -> tuple[str, int]:
    """The name that an address starts from, and the bytes that are added."""
    node = address.items[0] if isinstance(address, tree.Address) else address
    offset = 0
    if isinstance(node, tree.Binary):
        added = constant(node.right)
        offset = added if isinstance(added, int) and node.op == "+" else 0
        node = node.left
    return (node.text if isinstance(node, tree.Name) else "", offset)


def bank_conflicts(known: LintedFunction) -> Iterator[Lint]:
    """Accesses to shared memory of which a bank has several words to give."""
    for bound, stride, size in _strided(known, Space.SHARED):
        ways = conflicts(stride, size)
        if ways > 1:
            yield Lint(
                BANK_CONFLICT,
                f"lanes {abs(stride)} bytes apart meet in the same banks: {ways} words of each, one after the other",
                bound.operands["a"],
                help="pad the rows, or swizzle the index",
            )


def conflicts(stride: int, size: int) -> int:
    """The most words that one bank has to give to lanes that access memory together."""
    together = WARP * BANK // max(size, BANK)  # wider accesses are served in parts of a warp
    words = {lane * stride // BANK + word for lane in range(together) for word in range(-(-size // BANK))}
    in_bank = defaultdict[int, int](int)
    for word in words:
        in_bank[word % BANKS] += 1
    return max(in_bank.values())


def _strided(known: LintedFunction, space: Space) -> Iterator[tuple[Bound, int, int]]:
    """The accesses of a space with a known stride, with the bytes between neighbours and of each access."""
    for number, bound in known.reached():
        address = known.divergence.addresses.get(number)
        if address is None or address.variation is not Variation.AFFINE or not address.stride:
            continue
        if bound.summary.spaces == {space} and "a" in bound.operands:
            yield bound, address.stride, bound.i.type.bytes * count(bound.i)


def deprecated(known: LintedFunction) -> Iterator[Lint]:
    """Directives that another replaces, and instructions that the newest version refuses on the newest target."""
    for directive in known.function.directives.values():
        if (other := REPLACED.get(directive.name)) is not None:
            yield Lint(DEPRECATED, f"'.{directive.name}' is deprecated", directive, help=f"write `.{other}`")
    newest = recogniser(VERSIONS[-1], max(target for target in LOWEST if not target.suffix))
    for bound in known.function.instructions:
        node = bound.node
        shapes = tuple(shape_of(operand, bound.scope) for operand in node.operands)
        verdict = newest.recognise(node.opcode, node.words, shapes, tuple(constant(operand) for operand in node.operands))
        refused = [problem for problem in verdict.problems if problem.code not in NEEDS]
        if refused:
            said = f"later versions or targets refuse this: {refused[0].message}"
            yield Lint(DEPRECATED, said, Span(node.head_start, node.head_end))


RULES: tuple[Callable[[LintedFunction], Iterator[Lint]], ...] = (
    unreachable,
    never_read,
    divergent_barriers,
    uncoalesced,
    bank_conflicts,
    deprecated,
)
"""All lints."""

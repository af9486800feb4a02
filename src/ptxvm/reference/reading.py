"""Reads instructions alone: `ptxvm explain 'prmt.b32 %r1, %r2, %r3, 0x5250;'` has no module around it.

One is made for each: the registers get the types that the form asks for, the version and the target are the newest ones that
take the instruction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from ptxvm.algebra.types import Type
from ptxvm.analysis.check import analyse
from ptxvm.analysis.program import Bound
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics import Diagnostic, Severity, Span
from ptxvm.isa.catalog import load_catalog
from ptxvm.isa.model import Decoded, candidates
from ptxvm.isa.targets import LOWEST, VERSIONS, Target, Version, parse_need
from ptxvm.reference.inference import Names, anything, infer
from ptxvm.syntax import tree
from ptxvm.syntax.parser import parse
from ptxvm.syntax.source import Source

NEWEST: tuple[Version, Target] = VERSIONS[-1], max(target for target in LOWEST if not target.suffix)
# Where the newest take an instruction no longer, these do: before sm_100, sm_70, and with old rules.
OLDER: tuple[tuple[Version, Target], ...] = (
    ((8, 5), Target(90)),
    ((6, 4), Target(75)),
    ((6, 0), Target(60)),
    ((3, 1), Target(20)),
    ((1, 3), Target(13)),
)


@dataclass(frozen=True, slots=True)
class Reading:
    """An instruction understood: as written, with its form and operands, for one version and target.

    `names` are what its names were taken for; `refused` is what the newest version and target say, where an older one had to
    be taken.
    """

    source: Source
    bound: Bound
    names: Names
    version: Version
    target: Target
    refused: tuple[Diagnostic, ...] = ()

    @property
    def decoded(self) -> Decoded:
        """The form with its modifiers chosen."""
        return self.bound.i

    @property
    def text(self) -> str:
        """The instruction as it was written."""
        return self.source.text


class NotUnderstood(Exception):  # noqa: N818 - it says what happened
    """The text is no instruction; `diagnostics` say why, with places in `source`."""

    def __init__(self, source: Source, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__("; ".join(d.message for d in diagnostics))
        self.source, self.diagnostics = source, list(diagnostics)


def read(text: str, registers: Mapping[str, Type] = MappingProxyType({})) -> Reading:
    """The instruction in a text, with or without its semicolon; raises `NotUnderstood`.

    `registers` are types that are known; what the form asks for counts for the others.
    """
    load_catalog()
    source = Source(_ended(text), "<instruction>")
    node = _parse(source)
    refusals: list[list[Diagnostic]] = []
    for names, decoded in _guesses(node):
        names.registers |= {name: type for name, type in registers.items() if name in names.registers}
        refused: list[Diagnostic] = []
        for setting in _settings(decoded):
            result = _analyse(source, names, setting)
            if isinstance(result, Reading):
                return result if setting[0] == NEWEST[0] else replace(result, refused=tuple(refused))
            refused = refused or result
        refusals.append(refused)
    if not refusals:
        result = _analyse(source, anything(node), NEWEST)
        refusals.append(result if isinstance(result, list) else [])
    raise NotUnderstood(source, min(refusals, key=len))


def read_all(text: str) -> list[Reading]:
    """The instructions in a text, one or several; raises `NotUnderstood`."""
    text = _ended(text)
    whole, start = _module(Source(text), Names(), NEWEST)
    module, wrong = parse(Source(whole))
    statements = [s for s in _body(module) if start <= s.start < start + len(text)]
    if wrong or len(statements) < 2 or not all(isinstance(s, tree.Instruction) for s in statements):
        return [read(text)]
    texts = [whole[s.start : s.end] for s in statements]
    readings = [read(each) for each in texts]
    registers = dict(_agreed(texts, readings))
    return [read(each, registers) for each in texts] if registers else readings


def _agreed(texts: Sequence[str], readings: Sequence[Reading]) -> Iterator[tuple[str, Type]]:
    """A type for each register that instructions take for several sizes: one that all of them take.

    An address may have 32 bits, and a register may be wider than what is loaded into it.
    """
    types: dict[str, list[Type]] = {}
    for reading in readings:
        for name, type in reading.names.registers.items():
            types.setdefault(name, []).append(type)
    for name, found in types.items():
        if len({type.bits for type in found}) > 1:
            users = [text for text, each in zip(texts, readings, strict=True) if name in each.names.registers]
            yield from ((name, type) for type in found if all(_takes(text, name, type) for text in users))


def _takes(text: str, name: str, type: Type) -> bool:
    """Does the instruction take a register of this type?"""
    try:
        read(text, {name: type})
    except NotUnderstood:
        return False
    return True


def _ended(text: str) -> str:
    """The text with its last semicolon."""
    text = text.strip()
    return text if text.endswith(";") or text.startswith("{") else f"{text};"


def _guesses(node: tree.Instruction) -> Iterator[tuple[Names, Decoded]]:
    """What the names may stand for: as each form that the head fits has it."""
    for decoded in candidates(node.opcode, node.words):
        names = infer(node, decoded)
        if names is not None:
            yield names, decoded


def _settings(decoded: Decoded) -> Iterator[tuple[Version, Target]]:
    """Versions and targets to try, the newest first; a feature of one chip needs that chip."""
    yield NEWEST
    needs = [*decoded.of.needs.values(), *(need for _, need in decoded.of.conditional_needs)]
    for need in dict.fromkeys(needs):
        for target in parse_need(need).targets:
            if target.suffix and target in LOWEST:
                yield NEWEST[0], target
    yield from OLDER


# ── a module around the instruction ─────────────────────────────────────────────────────


def _module(source: Source, names: Names, setting: tuple[Version, Target]) -> tuple[str, int]:
    """The text of the module, and where the instruction stands in it."""
    (major, minor), target = setting
    size = [".address_size 64"] if setting[0] >= (2, 3) else []
    head = [
        f".version {major}.{minor}",
        f".target {target}",
        *size,
        *names.module_lines(),
        f".entry k ({names.parameters()})",
        "{",
    ]
    before = "\n".join([*head, *names.body_lines(), ""])
    return before + source.text + "\n" + "\n".join([*names.labels_after(), "ret;", "}", ""]), len(before)


def _parse(source: Source) -> tree.Instruction:
    """The one instruction of the text."""
    text, start = _module(source, Names(), NEWEST)
    module, wrong = parse(Source(text))
    errors = _within(source, wrong, start)
    if errors:
        raise NotUnderstood(source, errors)
    statements = [s for s in _body(module) if s.start < start + len(source.text)]
    if len(statements) != 1 or not isinstance(statements[0], tree.Instruction):
        problem = "only instructions can be explained" if len(statements) > 1 else "this is not an instruction"
        raise NotUnderstood(source, [_diagnostic(source, "P0101", problem)])
    return statements[0]


def _body(module: tree.Module) -> list[tree.Statement]:
    for statement in module.statements:
        if isinstance(statement, tree.Function) and isinstance(statement.body, tree.Block):
            return statement.body.statements
    return []


def _analyse(source: Source, names: Names, setting: tuple[Version, Target]) -> Reading | list[Diagnostic]:
    """The instruction in a module with these names, or what is wrong with it."""
    text, start = _module(source, names, setting)
    program, report = analyse(Source(text))
    errors = [d for d in report.diagnostics if d.severity is Severity.ERROR]
    bound = next((b for f in program.functions.values() for b in f.instructions if b.node.start >= start), None)
    if errors or bound is None or bound.decoded is None:
        return _within(source, errors, start) or [_diagnostic(source, "P0101", "this is not an instruction")]
    return Reading(source, bound, names, setting[0], setting[1])


def _within(source: Source, diagnostics: Sequence[Diagnostic], start: int) -> list[Diagnostic]:
    """The same findings, with their places in the instruction's own text."""

    def clip(offset: int) -> int:
        return min(max(offset - start, 0), len(source.text))

    moved = []
    for each in diagnostics:
        if each.severity is not Severity.ERROR:
            continue
        span = Span(clip(each.span.start), clip(each.span.end))
        line, column = source.location(span.start)
        related = tuple((label, Span(clip(s.start), clip(s.end))) for label, s in each.related)
        moved.append(replace(each, span=span, line=line, column=column, related=related))
    return moved


def _diagnostic(source: Source, code: str, message: str) -> Diagnostic:
    """A finding about the whole text."""
    return Diagnostic(Severity.ERROR, code, message, Span(0, len(source.text)), 1, 1)

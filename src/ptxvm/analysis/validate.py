"""Validation: every instruction of a program against its declaration."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ptxvm.analysis import (
    codes,
    instruction_codes as _codes,  # noqa: F401 - enters its codes
)
from ptxvm.analysis.calls import check_calls
from ptxvm.analysis.consequences import NO_PREDICATE, besides_head, consequences
from ptxvm.analysis.naming import report_unknown, unknown_symbol
from ptxvm.analysis.operand_problems import SYMBOL
from ptxvm.analysis.parameters import check_parameters
from ptxvm.analysis.passing import check_passing
from ptxvm.analysis.program import Bound, Program
from ptxvm.analysis.recognise import Recogniser, Recognition
from ptxvm.analysis.report import Report
from ptxvm.analysis.shapes import constant, names_in, shape_of
from ptxvm.diagnostics import Span
from ptxvm.isa.model import Problem
from ptxvm.isa.targets import Target, Version
from ptxvm.syntax import tree

OPERAND_CODES = ("P0302", "P0303")
"""The codes of operands that are too few, or of another form."""
MOST_TARGETS = 64
"""Pairs of a version and a target of which is remembered what is right."""

recogniser = lru_cache(maxsize=MOST_TARGETS)(Recogniser)


def validate(program: Program, report: Report) -> None:
    """Recognise all instructions, and report what is wrong with them."""
    version: Version = program.version
    target: Target = program.target
    known = recogniser(version, target, program.target_options)
    for function in list(program.made_functions.values()):  # others are right; a check can make them
        if function.lazy is not None and not has_wrong_calls(function.lazy.calls, report):
            function.lazy.calls.clear()
            program.unexecuted.extend(function.lazy.unexecuted)
            continue
        for bound in function.instructions:
            check_instruction(bound, known, report)
            if bound.decoded is not None and not bound.decoded.of.executes:
                program.unexecuted.append(bound)
        check_calls(function.instructions, report)
        check_parameters(function, function.instructions, report)
        check_passing(function, report)


def has_wrong_calls(calls: Sequence[Bound], report: Report) -> bool:
    """Is a call of a lazy body wrong?  Then others like it may be, which are known as lines: the body is read in full."""
    if not calls:
        return False
    found = Report(report.source)
    check_calls(calls, found)
    return bool(found.diagnostics)


def check_instruction(bound: Bound, known: Recogniser, report: Report) -> Recognition:
    """One instruction: its verdict, its names, its guard."""
    node, scope = bound.node, bound.scope
    shapes = tuple([shape_of(operand, scope) for operand in node.operands])
    values = tuple([constant(operand) for operand in node.operands])
    verdict = known.recognise(node.opcode, node.words, shapes, values)
    bound.decoded = verdict.decoded
    bound.places = verdict.at
    if node.guard is not None and not verdict.unknown:
        check_guard(bound, report)
    if verdict.decoded is not None and verdict.decoded.form.fixed:
        check_opcode_words(node, verdict.decoded.form.fixed, report)
    if verdict.undeclared and verdict.decoded is not None:  # else the head is wrong, whatever its operands are
        report_undeclared(bound, report)
    else:
        problems = report_elements(bound, verdict.problems or verdict.doubts, report)
        for n, found in enumerate(problems):
            of_head = n == 0 and (verdict.unknown or (verdict.undeclared and verdict.decoded is None))
            whole = besides_head(found, bound, guarded=verdict.unknown) if of_head else found
            report_problem(whole, bound, verdict, report)
    return verdict


def report_elements(bound: Bound, problems: Sequence[Problem], report: Report) -> Sequence[Problem]:
    """Report an index behind a register, which explains all that is wrong with its instruction."""
    for node in bound.node.operands:
        if not isinstance(node, tree.Index) or shape_of(node.name, bound.scope).kind not in ("register", "special"):
            continue
        text, name = report.source.text, node.name.text
        inside = text[node.name.end : node.end].strip()
        if text[node.name.end].isspace():
            help = f"operands are divided by commas: `{name}, {inside}`"
        else:
            help = f"the address behind a register is `[{name}+{inside[1:-1].strip()}]`"
        besides = [p.ptxas or p.message for p in problems if p.code in OPERAND_CODES]
        said = f"'{name}' is a register, which has no elements"
        report.error(codes.NO_ARRAY, said, node, help=help, ptxas="Array indexing on non-array",
                     consequences="\n".join(besides[:1]))  # fmt: skip
        return []
    return problems


def check_guard(bound: Bound, report: Report) -> None:
    """A guard is a predicate register."""
    guard = bound.node.guard
    if guard is None:
        return
    symbol = bound.scope.find(guard.name.text)
    if symbol is None:
        report_unknown(guard.name, bound, report, NO_PREDICATE)
    elif symbol.shape.kind != "register" or symbol.shape.type is None or symbol.shape.type.name != "pred":
        report.error("P0310", f"the guard '{guard.name.text}' is not a predicate register", guard.name,
                     ptxas=NO_PREDICATE)  # fmt: skip


def check_opcode_words(node: tree.Instruction, fixed: int, report: Report) -> None:
    """The words that belong to the opcode (`brx.idx`, `mul.lo`) follow it directly; others may stand apart."""
    opcode = ".".join((node.opcode, *node.words[:fixed]))
    if not report.source.text.startswith(opcode, node.head_start):
        report.error("P0312", f"a blank cannot divide '{opcode}'", Span(node.head_start, node.head_end),
                     ptxas=f"Not a name of any known instruction: '{node.opcode}'")  # fmt: skip


def report_undeclared(bound: Bound, report: Report) -> None:
    """Report each undeclared name once, the first with what else ptxas says of the instruction."""
    found: list[tuple[tree.Name, list[str]]] = []
    said, others = set(), list(consequences(bound))
    for operand in bound.node.operands:
        for name in names_in(operand):
            if shape_of(name, bound.scope).kind != "unknown":
                continue
            if (name.text, name.component) not in said:
                said.add((name.text, name.component))
                found.append((name, others))
                others = []
            elif name.component is None:
                found[-1][1].append(unknown_symbol(name))
    for name, besides in found:
        report_unknown(name, bound, report, "\n".join(besides))


def report_problem(found: Problem, bound: Bound, verdict: Recognition, report: Report) -> None:
    """Turn a problem into a diagnostic at its operand or modifier."""
    place = place_of(found, bound, verdict, report.source.text)
    section = f"PTX ISA {verdict.decoded.of.section}" if verdict.decoded else ""
    help = found.help
    if not isinstance(help, str):
        help = help(report.source.text[place.start : place.end])
    report.add(found.severity, found.code, found.message, place, help=help, note=f"see {section}" if section else "",
               ptxas=named(found.ptxas or found.message, place),
               consequences=found.consequence)  # fmt: skip


def named(ptxas: str, place: tree.Node | Span) -> str:
    """What ptxas says, with the name that stands at the place."""
    if SYMBOL not in ptxas or not isinstance(place, tree.Address | tree.Binary):
        return ptxas
    return ptxas.replace(SYMBOL, names_in(place)[0].text)


def place_of(found: Problem, bound: Bound, verdict: Recognition, text: str) -> tree.Node | Span:
    """The node of a problem: the operand, the modifier, or else the head; the opcode of an unknown instruction."""
    node = bound.node
    if found.number is not None:
        return node.operands[found.number]
    if found.operand in bound.operands:
        return bound.operands[found.operand]
    if found.word and (word := found.word.lstrip(".")) in node.words:
        return word_span(node, text, word)
    return Span(node.head_start, node.head_start + len(node.opcode) if verdict.unknown else node.head_end)


def word_span(node: tree.Instruction, text: str, word: str) -> Span:
    """The span of a modifier in the head."""
    at = text.find(f".{word}", node.head_start, node.head_end)
    return Span(at, at + len(word) + 1) if at >= 0 else Span(node.head_start, node.head_end)

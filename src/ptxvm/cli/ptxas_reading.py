"""What ptxas says of the instruction in which it stops: words that it does not know, and nothing of the instruction as a whole.

It looks at words and constants as it reads them, and at an instruction when it has read its `;`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ptxvm.algebra.types import Type
from ptxvm.analysis.naming import strange_component
from ptxvm.analysis.program import Program
from ptxvm.analysis.ptxas_modifiers import strange_words
from ptxvm.analysis.scope import NameScope
from ptxvm.analysis.shapes import shape_of
from ptxvm.diagnostics import Diagnostic, Severity, Span
from ptxvm.diagnostics.codes import BAD_NUMBER
from ptxvm.diagnostics.ptxas import stops
from ptxvm.syntax import tree
from ptxvm.syntax.cursor import NAME_START, OCTAL
from ptxvm.syntax.lexer import END, PlainText, Tokens, integer
from ptxvm.syntax.operands import has_meaning
from ptxvm.syntax.source import Source

SYNTAX = "P01"
"""How the codes of errors of syntax begin."""
LONGEST = 128
"""The characters of the token at which ptxas stops that are looked at."""
NUMBER, OPCODE = re.compile(r"\d{20,}"), re.compile(r"([a-z]\w*)\.(\w+)")
BITS = (1 << 64) - 1
OVERFLOW, NO_INTEGER = "Constant overflow", "Integer constant expression expected"
NO_TYPE = "Vector Type not specified properly"
VECTOR = re.compile(r"(?<![\w.%$])([a-z]\w*(?:\.[\w:]+)*?)\.v[24](?![\w:])(?:\s*\.(\w*))?")
"""The head of an instruction up to such a modifier, and the next one."""

HEAD = re.compile(r"(^|[;{}:]|@\s*!?\s*[\w%$.]+)\s*$")
"""What stands before an instruction: the end of a statement, a brace, a label or a guard."""


def as_read(program: Program, found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """The findings, of which those of an instruction that is not read to its end are what ptxas says while it reads."""
    stop = min((each for each in found if stops(each)), key=noticed, default=None)
    if stop is not None and not stop.code.startswith(SYNTAX):  # it is of an instruction that is read
        stop = None
    source = program.source
    scope = None if stop is None else scope_at(program, noticed(stop))
    before, after = of_vectors(program)
    if stop is None or scope is None:
        return [*before, *found, *after]
    plain, end = PlainText(source), noticed(stop)
    last = stop.span.end if stop.code == BAD_NUMBER else end
    tokens = Tokens(source, plain, [(plain.text.rfind(";", 0, end) + 1, last)])
    first = first_of_instruction(tokens)
    if first is None:
        return [*before, *found, *after]
    start = tokens.starts[first]
    said = [finding(source, text, place) for text, place in words_of(tokens, first, scope)]
    said += [finding(source, text, Span(end, end)) for text in of_next(plain.text[end : end + LONGEST], tokens, first, scope)]
    above = [each for each in found if each is not stop and each.span.start < start]
    below = [each for each in found if each.span.start >= end and each is not stop]
    return [*before, *above, *after, *said, stop, *below]


def of_vectors(program: Program) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """The warnings of `.v2` and `.v4` before no type: those that are said before all else of an instruction, and after it."""
    before, after = list[Diagnostic](), list[Diagnostic]()
    if not any(vector in program.source.text for vector in (".v2", ".v4")):
        return before, after
    text = PlainText(program.source).text
    for found in VECTOR.finditer(text):
        begins = HEAD.search(text[max(0, found.start(1) - LONGEST) : found.start(1)])
        if begins and found[2] not in {"v2", "v4", "", *Type.named}:  # it stops at the second of two dots
            said = finding(program.source, NO_TYPE, Span(found.start(1), found.end()), Severity.WARNING)
            (before if found[2] else after).append(said)
    return before, after


def noticed(stop: Diagnostic) -> int:
    """Where ptxas stops."""
    return (stop.related[-1][1] if stop.related else stop.span).start


def scope_at(program: Program, place: int) -> NameScope | None:
    """The names that are known at a place; None outside of all bodies."""
    for function in program.functions.values():
        if function.defined and function.node.start <= place <= function.node.end:
            before = [bound for bound in function.instructions if bound.node.start <= place]
            return before[-1].scope if before else function.scope
    return None


def first_of_instruction(tokens: Tokens) -> int | None:
    """The first token of an instruction, behind what begins and ends blocks, labels and a guard; None where there is none."""
    texts, at = tokens.texts, 0
    while texts[at] in {"{", "}"} or texts[at + 1] == ":":
        at += 1 if texts[at] in {"{", "}"} else 2
    if texts[at] == "@":
        at += 3 if texts[at + 1] == "!" else 2
    return at if texts[at][0] in NAME_START else None


def words_of(tokens: Tokens, first: int, scope: NameScope) -> Iterator[tuple[str, Span]]:
    """What is said of the words of an instruction, each with its place."""
    texts, count = tokens.texts, tokens.texts.index(END)
    places = [Span(start, end) for start, end in zip(tokens.starts, tokens.ends, strict=True)]
    at, (opcode, *words) = first + 1, texts[first].split(".")
    while at < count and texts[at][0] == "." and len(texts[at]) > 1:
        words.append(texts[at][1:])
        at += 1
    for word in strange_words(opcode, tuple(words)):
        yield f"Unknown modifier '.{word}'", places[first]
    for n in range(at, count):
        text = texts[n]
        if text[0].isdigit():
            value = integer(text)
            if value is not None and value[0] > BITS:
                yield OVERFLOW, places[n]
            elif value is None and not OCTAL.match(text) and texts[n - 1] == "+" and "[" in texts[n - 3 : n - 1]:
                yield NO_INTEGER, places[n]
            continue
        name, dot, component = text.partition(".")
        if not dot and text[0] in NAME_START and n + 1 < count and texts[n + 1][0] == ".":
            component = texts[n + 1][1:]
        if name and name[0] in NAME_START and component and is_unknown(name, component, scope):
            yield strange_component(name, component, scope)[0], places[n]


def is_unknown(name: str, component: str, scope: NameScope) -> bool:
    """Is it a component that the name has not, and no word that has a meaning elsewhere, which ends the instruction?"""
    if has_meaning(component):
        return False
    return component in Type.named or shape_of(tree.Name(name, component), scope).kind == "unknown"


def of_next(text: str, tokens: Tokens, first: int, scope: NameScope) -> list[str]:
    """What is said of the token at which ptxas stops: a number that is too large, or an opcode that it takes for an operand."""
    number, name = NUMBER.match(text), OPCODE.match(text)
    if number and int(number[0]) > BITS:
        return [OVERFLOW]
    if name and tokens.texts[first + 1] == END and not has_meaning(name[2]):
        return strange_component(name[1], name[2], scope)[:1]
    return []


def finding(source: Source, said: str, place: Span, severity: Severity = Severity.ERROR) -> Diagnostic:
    """A finding in ptxas's words."""
    line, column = source.location(place.start)
    return Diagnostic(severity, "", said, place, line, column)


__all__ = ["as_read"]

"""A module while it is written: its functions, the statement at a place, the names in it and what they stand for."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property

from ptxvm.algebra.float_environment import usual_arithmetic
from ptxvm.analysis.checks import Checks
from ptxvm.analysis.header import header
from ptxvm.analysis.program import Bound, Function, Program
from ptxvm.analysis.report import Report
from ptxvm.analysis.scope import NameScope
from ptxvm.analysis.shapes import names_in
from ptxvm.analysis.symbols import Signature
from ptxvm.analysis.validate import check_instruction, recogniser
from ptxvm.dataclass import dataclass
from ptxvm.isa.catalog import load_catalog
from ptxvm.isa.model import ISA
from ptxvm.lsp import names
from ptxvm.lsp.names import Definition, NameTable
from ptxvm.syntax import tree
from ptxvm.syntax.lexer import Tokens
from ptxvm.syntax.outline import Outline, sketch
from ptxvm.syntax.parser import Parser
from ptxvm.syntax.source import Source
from ptxvm.syntax.statements import BLANKS

WORD = re.compile(r"[%$]?[\w$]+|[%$]", re.ASCII)
"""A name, an opcode, or the word behind a dot."""

LONGEST_STATEMENT = 1 << 14
"""The characters before a place in which the begin of its statement is looked for."""

_EDGE = re.compile(
    r"[;{}]|(?<![:\w])[%$_A-Za-z][\w$]*[ \t]*:(?!:)|^[ \t]*\.loc(?:_intermediate)?\b[^\n]*$", re.MULTILINE | re.ASCII
)


@dataclass(eq=False)
class FunctionView:
    """A kernel or function of the module; `start:end` is the span of its body."""

    module: ModuleView
    node: tree.Function
    start: int
    end: int

    @cached_property
    def text(self) -> str:
        """The text of the body, with its braces."""
        return self.module.source.text[self.start : self.end]

    @cached_property
    def names(self) -> NameTable:
        """Its parameters, registers, variables and labels."""
        return names.of_body(self.node, self.text, self.start)


@dataclass(frozen=True)
class SourceWord:
    """A word of the text: `start:end`, without the dot of a modifier or component, of which `is_dotted` tells."""

    text: str
    start: int
    end: int
    is_dotted: bool


class ModuleView:
    """A text of PTX, read as far as it can be."""

    def __init__(self, source: Source) -> None:
        self.source = source

    @cached_property
    def outline(self) -> Outline:
        """Its tree, with bodies unread."""
        return sketch(self.source, parses_all=True)

    @property
    def plain(self) -> str:
        """The text with its comments blanked out."""
        return self.outline.plain.text

    @cached_property
    def functions(self) -> list[FunctionView]:
        """The functions with a body, in their order."""
        statements = self.outline.module.statements
        found = [s for s in statements if isinstance(s, tree.Function) and s.body is not None]
        return [FunctionView(self, s, s.body.start, s.body.end) for s in found if s.body is not None]

    @cached_property
    def names(self) -> NameTable:
        """The names of the module: its variables, kernels and functions."""
        found = NameTable()
        for statement in self.outline.module.statements:
            for each in names.of_statement(statement, 0, len(self.source.text)):
                found.add(each)
        return found

    @cached_property
    def program(self) -> Program:
        """The version, target and address size that the head of the module says."""
        program = Program(self.source, self.outline.module)
        header(Checks(program, Report(self.source)))
        return program

    # ── places ──────────────────────────────────────────────────────────────────────────

    @cached_property
    def _body_starts(self) -> list[int]:
        return [function.start for function in self.functions]

    def function_at(self, offset: int) -> FunctionView | None:
        """The function whose body, or whose parameters, have a place."""
        at = bisect_right(self._body_starts, offset) - 1
        if at >= 0 and offset < self.functions[at].end:
            return self.functions[at]
        after = self.functions[at + 1] if at + 1 < len(self.functions) else None
        return after if after is not None and after.node.start <= offset else None

    def in_comment(self, offset: int) -> bool:
        """Is there a comment at a place?  In the plain text comments are blank, and strings that look like one are not."""
        text, plain = self.source.text, self.plain
        line, block = text.rfind("//", text.rfind("\n", 0, offset) + 1, offset), text.rfind("/*", 0, offset)
        in_line = line >= 0 and not plain[line : line + 2].strip()
        return in_line or (block >= 0 and not plain[block : block + 2].strip() and text.find("*/", block + 2, offset) < 0)

    def word_at(self, offset: int) -> SourceWord | None:
        """The word at a place, or just before it."""
        text = self.plain
        start = offset = min(offset, len(text))  # a NUL ends it
        while start > 0 and (text[start - 1].isalnum() or text[start - 1] in "_$%:"):
            start -= 1
        for found in WORD.finditer(text, start):
            if found.start() > offset:
                return None
            if found.end() >= offset:
                dotted = found.start() > 0 and text[found.start() - 1] == "."
                return SourceWord(found[0], found.start(), found.end(), dotted)
        return None

    def statement_span(self, offset: int) -> tuple[int, int]:
        """The span of the statement at a place, from the end of the one before it."""
        text = self.plain
        begin = max(0, offset - LONGEST_STATEMENT)
        start = begin
        depth = 0
        for edge in _EDGE.finditer(text, begin, offset):
            if edge[0] == "{" and self._is_vector(edge.start()):
                depth += 1
            elif edge[0] == "}" and depth:
                depth -= 1
            else:
                start = edge.end()
        end = offset
        while end < len(text) and text[end] != ";" and not (text[end] in "{}" and not self._in_operand(text, start, end)):
            end += 1
        return start, end + (1 if text[end : end + 1] == ";" else 0)

    def _is_vector(self, at: int) -> bool:
        """Does a brace open the elements of a vector?  It then follows an operand's comma, a bracket, an opcode or `=`."""
        text = self.plain
        before = text[:at].rstrip(BLANKS) if at < 64 else text[at - 64 : at].rstrip(BLANKS)
        if before[-1:] in {",", "[", "=", "|", "("} or (before[-1:] == "{" and "=" in before):
            return True
        line = before.rpartition("\n")[2]
        return (
            re.search(r"(?:^|[;:}\s])[a-z]\w*(?:\.[\w:]+)+$", line) is not None and ".entry" not in line and ".func" not in line
        )

    def _in_operand(self, text: str, start: int, at: int) -> bool:
        return (text[at] == "}" and "{" in text[start:at]) or (text[at] == "{" and self._is_vector(at))

    def instruction_at(self, offset: int) -> tree.Instruction | None:
        """The instruction at a place, as far as it is written, with places in the module; None for another statement."""
        function = self.function_at(offset)
        if function is None or not function.start < offset <= function.end:
            return None
        start, end = self.statement_span(offset)
        parser = Parser(self.source, Tokens(self.source, self.outline.plain, [(start, end)]))
        for statement in parser.statements():
            if isinstance(statement, tree.Instruction) and statement.start <= offset <= max(statement.end, end):
                return statement
        return None

    # ── names ───────────────────────────────────────────────────────────────────────────

    def resolve(self, name: str, offset: int) -> Definition | None:
        """What a name stands for at a place; None for what is not declared."""
        function = self.function_at(offset)
        found = function.names.find(name, offset) if function is not None else None
        if found is None:
            every = list(self.names.candidates(name))
            defined = [each for each in every if not each.is_declaration]
            found = next(iter(defined or every), None)
        return found

    def bound(self, node: tree.Instruction) -> Bound:
        """An instruction with its form and operands, where they can be told."""
        load_catalog()
        scope = NameScope()
        words = {name.text for operand in node.operands for name in names_in(operand)}
        words |= {node.guard.name.text} if node.guard is not None else set()
        for word in words:
            if (found := self.resolve(word, node.start)) is not None and (symbol := found.symbol(word)) is not None:
                scope.names[word] = symbol
        program = self.program
        function = Function(
            "", entry=True, node=tree.Function("entry", "", [], []), signature=Signature(), scope=scope, program=program
        )
        bound = Bound(node, scope, function=function)
        with usual_arithmetic():
            check_instruction(bound, recogniser(program.version, program.target, program.target_options), Report(self.source))
        return bound


def is_opcode(word: str) -> bool:
    """Is it the opcode of an instruction?"""
    load_catalog()
    return word in ISA.by_opcode

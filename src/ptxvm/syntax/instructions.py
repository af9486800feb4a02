"""Instructions: a head, its operands, and the `;`.

None is known by name but `call`, which has a grammar of its own.

Sources: PTX 4.3.2, 9.2 (instructions), 9.7.12.5 (`call`), 5.1.3 (banks of constants, up to PTX 2.2).
"""

from __future__ import annotations

from ptxvm.diagnostics import codes
from ptxvm.syntax import tree
from ptxvm.syntax.cursor import NAME_START, NO_NAME, OPCODE_FIRST, shorten
from ptxvm.syntax.directives import Directives
from ptxvm.syntax.lexer import END, Tokens, integer
from ptxvm.syntax.source import Source

_NO_MODIFIER = frozenset(".reg .entry .func .visible .extern .version .address_size .file .loc .pragma .section .align".split())
"""Words that no instruction has behind its opcode: there a `;` was forgotten."""

_SEPARATORS = frozenset((",", ";"))

_NO_OPERAND = frozenset((".", "@", "}", END))
"""What no operand starts with."""


class Instructions(Directives):
    """Reads one instruction."""

    def __init__(self, source: Source, tokens: Tokens | None = None) -> None:
        super().__init__(source, tokens)
        self._heads: dict[str, tuple[str, tuple[str, ...]]] = {}

    def instruction(self, guard: tree.Guard | None = None) -> tree.Instruction:
        """A head, its operands, and the `;`.

        The loop is the hottest of the reader: plain names and small decimal numbers take no call.
        """
        texts, starts, ends = self.texts, self.starts, self.ends
        first = at = self.at
        head = texts[at]
        known = self._heads.get(head)
        if known is None:
            known = self._head(head)
        opcode, words = known
        at += 1
        head_end = ends[first]
        text = texts[at]
        if text[0] == "." or text == "[":
            self.at = at
            words = self._more_modifiers(words)
            at = self.at
            head_end = ends[at - 1]
        operands: list[tree.Operand] = []
        if opcode == "call":
            self.at = at
            operands = self._call()
            at = self.at
        elif texts[at] != ";" and texts[at][0] not in _NO_OPERAND:
            while True:
                text, after = texts[at], texts[at + 1]
                if after in _SEPARATORS and text[0] in NAME_START and "." not in text and text not in NO_NAME:
                    operands.append(tree.Name(text, None, start=starts[at], end=ends[at]))
                    at += 1
                else:
                    self.at = at
                    operands.append(self.operand(first=not operands))
                    at = self.at
                    after = texts[at]
                if after != ",":
                    break
                at += 1
        self.at = at
        if texts[at] == ";":
            self.at = at = at + 1
        else:
            self._end_of_instruction(first, operands)
            at = self.at
        start = starts[first] if guard is None else guard.start
        return tree.Instruction(opcode, words, operands, guard, starts[first], head_end, start=start, end=ends[at - 1])

    def _head(self, head: str) -> tuple[str, tuple[str, ...]]:
        """Split a head once for all instructions that have it."""
        if head in NO_NAME:
            raise self.unexpected("an instruction")
        opcode, *words = head.split(".")
        for word in words:
            if f".{word}" in _NO_MODIFIER:
                raise self.fail(codes.UNEXPECTED, f"`.{word}` is no modifier of an instruction")
        self._heads[head] = opcode, tuple(words)
        return self._heads[head]

    def _more_modifiers(self, words: tuple[str, ...]) -> tuple[str, ...]:
        """Modifiers after a blank, and the bank of `.const[3]` up to PTX 2.2."""
        texts, found = self.texts, list(words)
        while True:
            text = texts[self.at]
            if text[0] == "." and len(text) > 1 and text not in _NO_MODIFIER:
                found.append(text[1:])
                self.at += 1
            elif text == "[" and found and found[-1] == "const" and self.touches(self.at) and self._is_bank():
                found[-1] = f"const[{texts[self.at + 1]}]"
                self.at += 3
            else:
                return tuple(found)

    def _is_bank(self) -> bool:
        return integer(self.texts[self.at + 1]) is not None and self.texts[self.at + 2] == "]"

    def _end_of_instruction(self, first: int, operands: list[tree.Operand]) -> None:
        """No `;` where it should be: one that was forgotten, or something that does not belong here."""
        if self.starts_statement(self.at):
            self.missing_semicolon(self.at, "the instruction")
            return
        before = self.at - 1
        if len(operands) == 1 and before == first + 1 and self.starts_line(before) and self._looks_like_head(before):
            operands.pop()
            self.at = before
            self.missing_semicolon(before, "the instruction", ptxas=self.near(self.texts[before + 1]))
            return
        raise self.unexpected("`,` or `;`" if operands else "an operand or `;`", self._line_help(first, operands))

    def _line_help(self, first: int, operands: list[tree.Operand]) -> str:
        """What a line was meant to be that goes on where an instruction ends."""
        head, text = self.texts[first], self.texts[self.at]
        if text in {"=", "+", "-", "*"}:
            return OPCODE_FIRST
        if head[0] in "%$" and self.is_name(self.at):
            return f"a guard starts with `@`: `@{shorten(head)} {shorten(text)} …`"
        if text == "(":
            return self._parenthesis_help(first, operands)
        follows = operands and not self.touches(self.at) and (self.is_name(self.at) or text[0].isdigit())
        return "operands are divided by commas" if follows else ""

    def _parenthesis_help(self, first: int, operands: list[tree.Operand]) -> str:
        """`call f(x);`, or the address `4(%rd1)`."""
        if self.texts[first].startswith("call"):
            return f"the form is `call (results), {shorten(self.texts[self.at - 1])}, (arguments);`"
        if operands and isinstance(operands[-1], tree.Integer) and self.is_name(self.at + 1):
            return f"an address is written `[{shorten(self.texts[self.at + 1])}+{operands[-1].text}]`"
        return ""

    def _looks_like_head(self, at: int) -> bool:
        return "." in self.texts[at] or self.texts[at + 1] == ":"

    def _call(self) -> list[tree.Operand]:
        """`call (results), function, (arguments), prototype;` with all but the function optional (PTX 9.7.12.5)."""
        operands: list[tree.Operand] = []
        if self.texts[self.at] == "(":
            operands.append(self.group())
            self.expect(",", "the results")
        if not self.is_name(self.at):
            raise self.unexpected("the function to call")
        operands.append(self._bare_name())
        if self.texts[self.at] == "," and self.texts[self.at + 1] == "(":
            self.at += 1
            operands.append(self.group())
        if self.take(","):
            if not self.is_name(self.at):
                raise self.unexpected("a prototype, or a list of functions")
            operands.append(self._bare_name())
        return operands

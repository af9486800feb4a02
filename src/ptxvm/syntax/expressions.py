"""Constant expressions and literals.

Sources: PTX 4.5 (constants), 4.5.4 (precedence: that of C), and ptxas's departures from it:
casts only to .s64 and .u64, `%` apart from the word after it, exact floats (`0f3F800000`) alone.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable

from ptxvm.diagnostics import codes, habits
from ptxvm.syntax import tree
from ptxvm.syntax.cursor import DEEPEST, NAME_START, Cursor, Recover, shorten
from ptxvm.syntax.lexer import END, LONGEST_NUMBER, float_bits, integer

PRECEDENCE = {
    operator: level
    for level, operators in enumerate("|| && | ^ & ==,!= <,<=,>,>= <<,>> +,- *,/,%".split(), start=1)
    for operator in operators.split(",")
}
"""How strongly each binary operator binds, from 1 for `||`; all associate to the left (PTX 4.5.4)."""

_ENDS = frozenset(",;]})")
_UNARY = frozenset("+-!~")
_DIGITS = frozenset("0123456789")
_DECIMAL = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_CASTS = frozenset((".s64", ".u64"))
_CAST_TYPES = frozenset(f".{letter}{bits}" for letter in "busf" for bits in (8, 16, 32, 64))


class Expressions(Cursor):
    """Reads constant expressions: the only name in them is `WARP_SZ`."""

    _waiting = 0  # operators and brackets whose operand is being read

    def constant(self) -> tree.Operand:
        """A whole constant expression."""
        if self.is_exact_float(self.at):
            return self._exact_float()
        if self.texts[self.at][0] in _DIGITS and self.texts[self.at + 1] in _ENDS:
            return self.number()  # most constants are
        self._waiting = 0
        return self._conditional()

    def is_exact_float(self, at: int) -> bool:
        """Whether the token is `0f…` or `0d…`."""
        return self.texts[at][0] == "0" and self.texts[at][1:2] in {"f", "F", "d", "D"}

    def starts_constant(self, at: int) -> bool:
        """Whether a constant expression can start with this token."""
        text = self.texts[at]
        return text[0] in _DIGITS or text in _UNARY or text in {"(", "WARP_SZ"} or (text[0] == "." and text[1:2].isdigit())

    def literal_size(self, expected: str, *, allow_warp_size: bool = True) -> tree.Operand:
        """The number in `[4]`, `<100>` or `.align 16`: a literal or `WARP_SZ`, no expression."""
        at, text = self.at, self.texts[self.at]
        if allow_warp_size and text == "WARP_SZ":
            self.at += 1
            return self.plain_name(at)
        value = integer(text) if text[0] in _DIGITS else None
        if value is None:
            if text[0] in _DIGITS or text in _UNARY or text == "(" or self.is_name(at):
                raise self.fail(codes.BAD_SIZE, f"{expected} is an integer literal, found {self.describe(at)}")
            raise self.unexpected(expected)
        self.at += 1
        if self.texts[self.at] in PRECEDENCE and self.texts[self.at] != ">":
            raise self.fail(codes.BAD_SIZE, f"{expected} is a literal, not an expression", at, self.at, noticed=self.at)
        return tree.Integer(value[0], text, value[1], start=self.starts[at], end=self.ends[at])

    def plain_name(self, at: int) -> tree.Name:
        """The identifier at a token, which is known to be one without a dotted tail."""
        return tree.Name(self.texts[at], start=self.starts[at], end=self.ends[at])

    def number(self) -> tree.Integer | tree.Float:
        """An integer or a decimal floating-point literal."""
        at, text = self.at, self.texts[self.at]
        start, end = self.starts[at], self.ends[at]
        value = integer(text)
        if value is not None:
            self.at += 1
            return tree.Integer(value[0], text, value[1], start=start, end=end)
        if not text.isdigit() and len(text) < LONGEST_NUMBER and _DECIMAL.fullmatch(text):
            self.at += 1
            bits, width = float_bits(text)
            return tree.Float(bits, width, text, start=start, end=end)
        if text[0] == "0" and text.rstrip("U").isdigit():
            raise self.fail(
                codes.BAD_NUMBER,
                f"{self.describe(at)} is not an octal number",
                help="a leading 0 means octal, with digits up to 7",
                ptxas=self.near(text.lstrip(string.octdigits)),
            )
        if text[0] == "." or len(text) < LONGEST_NUMBER:
            raise self.fail(codes.BAD_NUMBER, f"{self.describe(at)} is not a number")
        raise self.fail(codes.BAD_NUMBER, "this number is too long")

    def _exact_float(self) -> tree.Float:
        at, text = self.at, self.texts[self.at]
        self.at += 1
        bits, width = float_bits(text)
        return tree.Float(bits, width, text, start=self.starts[at], end=self.ends[at])

    # ── the grammar, loosest binding first ──────────────────────────────────────────────

    def _within(self, read: Callable[..., tree.Operand], *level: int) -> tree.Operand:
        """Read what an operator or a bracket waits for; a bound on how many wait spares the stack.

        A chain that associates to the left, such as a sum, has no bound: nothing in it waits, and `tree.chain` walks it.
        """
        if self._waiting == DEEPEST:
            raise self.fail(
                codes.TOO_DEEP,
                "this expression is nested too deeply",
                note=f"ptxvm takes {DEEPEST} operators and brackets in one another",
            )
        self._waiting += 1
        operand = read(*level)
        self._waiting -= 1
        return operand

    def _conditional(self) -> tree.Operand:
        condition = self._binary(1)
        if not self.take("?"):
            return condition
        yes = self._within(self._conditional)
        self.expect(":", "the second part of `?:`")
        no = self._within(self._conditional)
        return tree.Conditional(condition, yes, no, start=condition.start, end=no.end)

    def _binary(self, level: int) -> tree.Operand:
        left = self._unary()
        while True:
            operator = self.texts[self.at]
            own = PRECEDENCE.get(operator, 0)
            if own < level:
                return left
            self.at += 1
            right = self._within(self._binary, own + 1)
            left = tree.Binary(operator, left, right, start=left.start, end=right.end)

    def _unary(self) -> tree.Operand:
        at, text = self.at, self.texts[self.at]
        if text[0] in _DIGITS or (text[0] == "." and text[1:2].isdigit()):
            if self.is_exact_float(at):
                raise self.fail(
                    codes.BAD_NUMBER,
                    f"{self.describe(at)} takes no sign and no part in arithmetic",
                    help="write the bits of the result, or a decimal number",
                )
            return self.number()
        if text in _UNARY:
            self.at += 1
            operand = self._within(self._unary)
            return tree.Unary(text, operand, start=self.starts[at], end=operand.end)
        if text == "(":
            return self._parenthesised()
        if text == "WARP_SZ":
            self.at += 1
            return self.plain_name(at)
        raise self._no_constant()

    def _parenthesised(self) -> tree.Operand:
        """`(x)`, or a cast `(.s64) x`."""
        opening = self.at
        self.at += 1
        kind = self.texts[self.at]
        if kind in _CAST_TYPES:
            if kind not in _CASTS:
                raise self.fail(
                    codes.BAD_OPERAND, f"a constant cannot be cast to `{kind}`", help="only `.s64` and `.u64` are casts"
                )
            self.at += 1
            self.expect_close(opening)
            operand = self._within(self._unary)
            return tree.Cast(kind[1:], operand, start=self.starts[opening], end=operand.end)
        alone = self.is_exact_float(self.at) and self.texts[self.at + 1] == ")"
        inner = self._exact_float() if alone else self._within(self._conditional)
        self.expect_close(opening)
        return inner

    def _no_constant(self) -> Recover:
        text = self.texts[self.at]
        if self.texts[self.at - 1] == "(" and self.at > 1 and (wrong := self._wrong_parenthesis()) is not None:
            return wrong
        if text[0] in NAME_START:
            message = f"{self.describe(self.at)} cannot stand in a constant expression"
            return self.fail(codes.BAD_OPERAND, message, note="the only name that is a constant is `WARP_SZ`")
        if text in {",", ";", ")", "]", "}", END}:
            return self.fail(codes.MISSING_OPERAND, f"expected a constant, found {self.describe(self.at)}")
        return self.unexpected("a constant")

    def _wrong_parenthesis(self) -> Recover | None:
        """Behind a `(`: a call as C writes it, `f(x)` or `if (p)`, an address `(%rd1)` or a vector `(%r1, %r2)`."""
        opening, before = self.at - 1, self.texts[self.at - 2]
        known = self.texts[self.at][0] in NAME_START
        if self.is_plain_name(opening - 1) and (self.touches(opening) or habits.opcode(before)):
            said = f"`{shorten(before)}(` does not begin an instruction of PTX"
            help = habits.in_ptx(before) or "a function is called by `call (result), name, (arguments);`"
            return self.fail(codes.UNEXPECTED, said, opening - 1, opening, noticed=self.at, help=help)
        if not known:
            return None
        if self.texts[self.at + 1] == ")":
            said, help = "an address stands in brackets", f"write `[{shorten(self.texts[self.at])}]`"
        elif self.texts[self.at + 1] == ",":
            said, help = "a vector stands in braces", f"write `{{{shorten(self.texts[self.at])}, …}}`"
        else:
            return None
        return self.fail(codes.BAD_OPERAND, said, opening, noticed=self.at, help=help)

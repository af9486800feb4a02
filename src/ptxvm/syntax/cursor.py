"""The reader's place among the tokens: looking ahead, reporting errors, and finding the way back."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import TypedDict, TypeVar, Unpack

from ptxvm.diagnostics import Diagnostic, Severity, Span, codes, numbers
from ptxvm.diagnostics.ptxas import NO_ASCII
from ptxvm.syntax.lexer import END, Tokens
from ptxvm.syntax.source import Source

T = TypeVar("T")

DEEPEST = 128
"""Levels of blocks or brackets, and of operators that wait for their right side, that the reader takes."""

_MOST_ERRORS = 10_000
OCTAL = re.compile(r"0[0-7]*(?=[89])")
"""What ptxas reads of an integer that begins with 0, up to a digit that is not octal."""
_LONGEST_QUOTE = 40
_MEANINGLESS = frozenset("'`\\#")
_STOPS = frozenset((END, ";", "{", "}"))

NAME_START = frozenset("%$_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
"""The characters with which an identifier starts (PTX 4.4)."""

_NUMBER_TAIL = (NAME_START - {"%", "$"}) | frozenset(".0123456789")
NO_NAME = frozenset(("_", "%", "$"))
"""Tokens that start like a name and are none."""

COMMENTS = "a comment starts with `//`, or stands between `/*` and `*/`"
"""The help where a comment has another mark."""

OPCODE_FIRST = "an instruction is an opcode and its operands, of which the result is the first: `add.s32 %r1, %r2, %r3;`"
"""The help where an instruction is written as an assignment."""

PREPROCESSOR = frozenset("define undef include if ifdef ifndef elif else endif error warning pragma line".split())
"""The words behind the `#` of a line for the C preprocessor."""

CLOSING = {"(": ")", "[": "]", "{": "}"}

STATEMENT_DIRECTIVES = frozenset(
    (
        ".reg .global .const .shared .local .param .tex .align .attribute .extern .visible .weak .common "
        ".entry .func .version .target .address_size .file .loc .loc_intermediate .section .pragma .alias"
    ).split()
)
"""Words that start a statement wherever they stand first on a line."""


def shorten(text: str) -> str:
    """A piece of the source that fits in a message."""
    return text if len(text) <= _LONGEST_QUOTE else f"{text[: _LONGEST_QUOTE - 1]}…"


class Recover(Exception):  # noqa: N818 - not an error to report: the error is reported already
    """Unwinds to the statement in which an error was reported."""


class Details(TypedDict, total=False):
    """What a diagnostic says beside its message."""

    label: str
    note: str
    help: str
    ptxas: str
    related: tuple[tuple[str, Span], ...]


class Cursor:
    """The tokens of a source, the next one to read (`at`), and what was wrong so far.

    `unread` are the places of braces whose content has no tokens; `unread_tables` those that were read as tables.
    """

    def __init__(self, source: Source, tokens: Tokens | None = None) -> None:
        self.source = source
        self.tokens = tokens or Tokens(source)
        self.texts = self.tokens.texts
        self.starts = self.tokens.starts
        self.ends = self.tokens.ends
        self.at = 0
        self.depth = 0
        self.diagnostics: list[Diagnostic] = []
        self.unread: Collection[int] = ()
        self.unread_tables: set[int] = set()

    # ── looking ─────────────────────────────────────────────────────────────────────────

    def is_name(self, at: int) -> bool:
        """Whether the token is an identifier, with a dotted tail or without."""
        text = self.texts[at]
        return text[0] in NAME_START and text not in NO_NAME

    def is_plain_name(self, at: int) -> bool:
        """Whether the token is an identifier without a dotted tail."""
        return self.is_name(at) and "." not in self.texts[at]

    def starts_line(self, at: int) -> bool:
        """Whether the token is the first on its line."""
        return at == 0 or "\n" in self.tokens.text[self.ends[at - 1] : self.starts[at]]

    def touches(self, at: int) -> bool:
        """Whether nothing stands between the token and the one before it."""
        return at > 0 and self.ends[at - 1] == self.starts[at]

    def starts_statement(self, at: int) -> bool:
        """Whether a new statement plausibly starts here: first on its line, and looking like one."""
        text = self.texts[at]
        if text in {END, "}"}:
            return True
        if not self.starts_line(at) or self.texts[at - 1] in {",", "(", "|"}:
            return False
        if text[0] == ".":
            return text in STATEMENT_DIRECTIVES
        if not self.is_name(at):
            return text in {"@", "{"}
        after = self.texts[at + 1]
        ends = after in {":", ";"} or (self.starts_line(at + 1) and (after[0] in NAME_START or after[0] in ".@}"))
        return "." in text or ends

    # ── taking ──────────────────────────────────────────────────────────────────────────

    def take(self, text: str) -> bool:
        """Step over a token if it is the next one."""
        if self.texts[self.at] == text:
            self.at += 1
            return True
        return False

    def expect(self, text: str, after: str = "") -> None:
        """Step over a token that must come next."""
        if self.texts[self.at] != text:
            raise self.unexpected(f"`{text}`" + (f" after {after}" if after else ""))
        self.at += 1

    def expect_close(self, opening: int, *, more: bool = False) -> None:
        """Step over the partner of the bracket at `opening`; a comma could stand there too if there may be `more`."""
        text = CLOSING[self.texts[opening]]
        if self.texts[self.at] == text:
            self.at += 1
            return
        if self.texts[self.at] in {END, ";", "{", "}"} or self.starts_statement(self.at):
            raise self.fail(
                codes.UNCLOSED,
                f"this `{self.texts[opening]}` is not closed",
                opening,
                label=f"no `{text}` for this",
                related=((f"expected `{text}` before {self.describe(self.at)}", self.span(self.at)),),
                noticed=self.at,
            )
        raise self.unexpected(f"`,` or `{text}`" if more else f"`{text}`")

    def expect_semicolon(self, after: str) -> None:
        """Step over the `;` that ends a statement; one that is forgotten at the end of a line is reported there."""
        if self.texts[self.at] == ";":
            self.at += 1
        elif self.starts_statement(self.at):
            self.missing_semicolon(self.at, after)
        else:
            raise self.unexpected(f"`;` after {after}")

    def nested(self, read: Callable[[], T]) -> T:
        """Read something that may hold itself, up to a depth that spares the stack."""
        if self.depth == DEEPEST:
            raise self.fail(codes.TOO_DEEP, "this is nested too deeply", note=f"ptxvm takes {DEEPEST} levels")
        self.depth += 1
        try:
            return read()
        finally:
            self.depth -= 1

    # ── reporting ───────────────────────────────────────────────────────────────────────

    def span(self, first: int, last: int | None = None) -> Span:
        """The place of a token, or of a range of them with both ends."""
        return Span(self.starts[first], self.ends[first if last is None else last])

    def describe(self, at: int) -> str:
        """A token in words, for a message."""
        text = self.texts[at]
        if text == END:
            return "the end of the file"
        if text[0] == '"' and len(text) > 1:
            return f"the string {shorten(text)}"
        if text == "`":
            return "a backquote"
        if not text.isprintable():
            return f"the character U+{ord(text[0]):04X}"
        return f"`{shorten(text)}`"

    def report(
        self,
        code: str,
        message: str,
        span: Span,
        *,
        noticed: int | None = None,
        severity: Severity = Severity.ERROR,
        **details: Unpack[Details],
    ) -> None:
        """Record a finding; `noticed` is the token at which ptxas would stop, by default the next one."""
        if len(self.diagnostics) > _MOST_ERRORS:
            return
        if len(self.diagnostics) == _MOST_ERRORS:
            code, message, details = codes.TOO_MANY, "too many errors", {}
        if severity is Severity.ERROR:
            details.setdefault("ptxas", self.near(self.texts[self.at if noticed is None else noticed]))
        line, column = self.source.location(span.start)
        self.diagnostics.append(Diagnostic(severity, code, message, span, line, column, **details))

    def fail(
        self,
        code: str,
        message: str,
        first: int | None = None,
        last: int | None = None,
        *,
        noticed: int | None = None,
        **details: Unpack[Details],
    ) -> Recover:
        """Record an error at some tokens, by default the next one; raise what this returns."""
        first = self.at if first is None else first
        self.report(code, message, self.span(first, last), noticed=first if noticed is None else noticed, **details)
        return Recover()

    def unexpected(self, expected: str, advice: str = "") -> Recover:
        """The next token is not what the grammar wants: say so as exactly as the token allows."""
        at, text = self.at, self.texts[self.at]
        if self._splits_number(at):
            number = self.texts[at - 1] + text
            advice = advice or numbers.help_for(number)
            return self.fail(codes.BAD_NUMBER, f"`{shorten(number)}` is not a number", at - 1, at, noticed=at, help=advice)
        if text[0] == "%" and at and self.touches(at):
            advice = advice or "`%` at the start of a word makes it a name; the remainder is written with blanks: `7 % 3`"
        if text == '"':
            return self.fail(codes.UNCLOSED_STRING, "this string has no end on its line", help=advice)
        if text == ".":
            advice = "a modifier follows its dot without a blank"
            return self.fail(codes.SPLIT_MODIFIER, "a dot with nothing after it", help=advice)
        if text == "#":
            advice = advice or self._hash_help()
        if text == "=":
            advice = advice or OPCODE_FIRST
        if text == "'":
            advice = advice or "a character is written as its number: 65 for A"
        if text != END and (not text.isascii() or not text.isprintable() or text in _MEANINGLESS):
            ptxas = self.near(text) if text.isascii() else NO_ASCII
            return self.fail(codes.STRAY_CHARACTER, f"{self.describe(at)} has no meaning in PTX", help=advice, ptxas=ptxas)
        return self.fail(codes.UNEXPECTED, f"expected {expected}, found {self.describe(at)}", help=advice)

    def _hash_help(self) -> str:
        """What `#` may have been meant to be: a line of the C preprocessor, a comment, or the mark of a constant."""
        after = self.texts[self.at + 1]
        if not self.starts_line(self.at):
            return f"a constant has no mark in front: `{shorten(after)}`" if after[0].isdigit() else COMMENTS
        return "lines for the C preprocessor are not read: run it first" if after in PREPROCESSOR else COMMENTS

    def _splits_number(self, at: int) -> bool:
        """Whether the token goes on where a number ended: `0xg`, `1u`, `1.0.0`."""
        text = self.texts[at]
        return self.touches(at) and self.texts[at - 1][0].isdigit() and text[0] in _NUMBER_TAIL

    def missing_semicolon(self, before: int, after: str, severity: Severity = Severity.ERROR, ptxas: str = "") -> None:
        """Report a `;` that was forgotten before a token, at the end of what stands in front of it."""
        end = self.ends[before - 1]
        self.report(
            codes.MISSING_SEMICOLON,
            f"missing `;` after {after}",
            Span(end, end),
            label="here",
            related=(("before this", self.span(before)),),
            noticed=before,
            severity=severity,
            **({"ptxas": ptxas} if ptxas else {}),
        )

    def near(self, text: str) -> str:
        """What ptxas says of an error of syntax at some text: of a register with a component it names the register, `%tid`.

        Of a head it names the opcode, which `ptxvm.analysis.repairs` finds: a reader of syntax knows none.
        """
        if text[:1] in ("%", "$"):
            text = text.partition(".")[0]
        elif octal := OCTAL.match(text):
            text = text[octal.end() :]
        return f"Parsing error near '{'' if text == END else text}': syntax error"

    # ── finding the way back ────────────────────────────────────────────────────────────

    def recover(self, start: int) -> None:
        """After an error in the statement that started at `start`: step to where the next can start.

        That is behind a `;`, before a `}` that closes the block, or at a line that looks like a statement.
        """
        texts, starts, source = self.texts, self.starts, self.tokens.text
        at, stuck, open_braces = start, self.at, 0
        line_end = -1  # a token behind it is the first of its line; all others are stepped over fast
        while True:
            text = texts[at]
            if text in _STOPS or starts[at] > line_end:
                if text == END:
                    break
                if at >= stuck and at > start and open_braces == 0 and self.starts_statement(at):
                    break
                if text == ";" and at >= stuck:
                    at += 1
                    break
                if text == "{":
                    open_braces += 1
                elif text == "}":
                    open_braces = max(0, open_braces - 1)
                if starts[at] > line_end:
                    found = source.find("\n", self.ends[at])
                    line_end = found if found >= 0 else len(source)
            at += 1
        self.at = max(at, start + 1) if texts[start] not in {END, "}"} else at

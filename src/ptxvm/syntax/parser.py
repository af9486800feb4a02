"""Reads a module: `parse(source)` gives its tree and everything that is wrong with its syntax.

A recursive descent without backtracking.  It knows no instruction, only that one is a head, operands and `;`
(`call` alone has a grammar of its own), and no name: what `add.f33` or an undeclared `%r9` mean is the
business of `ptxvm.analysis`.  After an error it goes on with the next statement.

Sources: PTX 4.3 (statements), 9.2-9.3 (instructions and guards), 11.2 (kernels and functions), 11.3 (lists of targets,
prototypes), and what ptxas takes beyond them.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from ptxvm.diagnostics import Diagnostic, Severity, Span, codes, did_you_mean
from ptxvm.syntax import tree
from ptxvm.syntax.cursor import CLOSING, COMMENTS, NAME_START, NO_NAME, PREPROCESSOR, Recover, shorten
from ptxvm.syntax.declarations import LINKAGE, SPACES
from ptxvm.syntax.directives import FUNCTION_DIRECTIVES, HEADER, KERNEL_DIRECTIVES
from ptxvm.syntax.instructions import Instructions
from ptxvm.syntax.lexer import END, INTERMEDIATE_SOURCES, Tokens
from ptxvm.syntax.source import Source

_MODULE_DIRECTIVES = frozenset((*HEADER, ".file", ".pragma", ".alias", ".section", INTERMEDIATE_SOURCES))
_DECLARING = SPACES | {".align", ".attribute"}
_BINARY = re.compile("[\x01-\x08\x0e-\x1f\x7f-\x9f]")
_LOOKED_AT = 4096
_LABELLED = frozenset((".branchtargets", ".calltargets", ".callprototype"))
_IN_BODIES = frozenset(("{", ";", ".loc", ".loc_intermediate", *_LABELLED))
"""What is a part of a body that ended too early, where it stands behind a statement of one; so are names and `@`."""

_ALL_DIRECTIVES = [
    *_MODULE_DIRECTIVES,
    *_DECLARING,
    *_LABELLED,
    *LINKAGE,
    *KERNEL_DIRECTIVES,
    *FUNCTION_DIRECTIVES,
    ".entry",
    ".func",
    ".loc",
    ".loc_intermediate",
]


def _directive(word: str) -> str:
    """The directive that a word was meant to be, without its dot or in C; empty where it is none."""
    bare = word.lower().removeprefix(".")
    if bare in {"kernel", "__global__", "global__"}:
        return "a kernel is declared by `.visible .entry name(.param .u64 parameter)`"
    if bare in {"__device__", "void", "function"}:
        return "a function is declared by `.func name(.param .u64 parameter)`"
    return f"a directive starts with a dot: `.{bare}`" if f".{bare}" in _ALL_DIRECTIVES and word[0] != "." else ""


def parse(source: Source | str | bytes) -> tuple[tree.Module, list[Diagnostic]]:
    """The tree of a source and its errors of syntax, in the order of the text.

    No input makes it raise; where there are errors the tree holds the statements that were understood.
    """
    parser = Parser(source if isinstance(source, Source) else Source(source))
    return parser.module(), sorted(parser.diagnostics, key=lambda found: found.span.start)


class Parser(Instructions):
    """Reads statements, blocks, functions and the module."""

    def __init__(
        self, source: Source, tokens: Tokens | None = None, unread: Collection[int] = (), unclosed: Collection[int] = ()
    ) -> None:
        super().__init__(source, tokens)
        self.unread, self.unclosed = unread, unclosed
        self._header: list[str] = []
        self._header_over = False
        self._is_outside = False

    # ── the module ──────────────────────────────────────────────────────────────────────

    def module(self) -> tree.Module:
        """Everything up to the end of the text."""
        found: list[tree.Statement] = []
        if self._is_binary():
            self.report(
                codes.NOT_TEXT,
                "this is a binary file, not PTX",
                Span(self.tokens.plain.nul, self.tokens.plain.nul + 1),
                help="`cuobjdump -ptx FILE` takes the PTX out of a fat binary",
            )
            return tree.Module(found, start=0, end=len(self.source.text))
        while self.texts[self.at] != END:
            start = self.at
            try:
                self._add(found, self._module_statement())
                self._is_outside = self._is_outside and not isinstance(found[-1], tree.Function)
            except Recover:
                self.recover(start)
                self._skip_body()
        self._check_text()
        return tree.Module(found, start=0, end=len(self.source.text))

    @staticmethod
    def _add(found: list[tree.Statement], statement: tree.Statement) -> None:
        """Add a statement; lines `@@DWARF` go on where only a mistake stands between them, as they do when printed."""
        last = found[-1] if found else None
        sections = [each for each in (last, statement) if isinstance(each, tree.Section) and each.name == "@@DWARF"]
        if len(sections) == 2:
            sections[0].lines += sections[1].lines
            sections[0].end = statement.end
        else:
            found.append(statement)

    def _skip_body(self) -> None:
        """Step over the body of what was no function, or over a `}` too many: it is part of the same mistake."""
        if self.texts[self.at] == "}":
            self.at += 1
        elif self.texts[self.at] == "{":
            depth = 0
            while self.texts[self.at] != END and not (self.texts[self.at] == "}" and depth == 1):
                depth += {"{": 1, "}": -1}.get(self.texts[self.at], 0)
                self.at += 1
            self.take("}")

    def _check_text(self) -> None:
        """Report what the lexer met: a comment without an end, a NUL character."""
        at = self.tokens.plain.unclosed_comment
        if at >= 0:
            ptxas = "Parsing error near '': unexpected EOF while scanning"
            place = Span(at, at + 2)
            self.report(codes.UNCLOSED_COMMENT, "this comment has no end", place, label="no `*/` for this", ptxas=ptxas)
        if self.tokens.plain.nul >= 0:
            nul = self.tokens.plain.nul
            self.report(codes.NOT_TEXT, "a NUL character ends the text here", Span(nul, nul + 1))

    def _is_binary(self) -> bool:
        """Whether the source is a cubin or the like: NULs, and other characters that no text has before the first."""
        nul = self.tokens.plain.nul
        return nul >= 0 and (nul < 4 or _BINARY.search(self.source.text, 0, min(nul, _LOOKED_AT)) is not None)

    def _module_statement(self) -> tree.Statement:
        text = self.texts[self.at]
        if text in HEADER:
            return self._header_directive(text)
        found = self._other_module_statement(text)
        self._header_over = True
        return found

    def _other_module_statement(self, text: str) -> tree.Statement:
        if text in LINKAGE or text in {".entry", ".func"}:
            return self._linked(in_body=False)
        if text in _DECLARING or self.is_bare_type():
            return self.variable()
        if text in _MODULE_DIRECTIVES:
            return self.directive()
        if text == "@" and self.texts[self.at + 1] == "@" and self.texts[self.at + 2] == "DWARF":
            return self.dwarf()
        raise self._no_module_statement(text)

    def _header_directive(self, text: str) -> tree.Statement:
        """`.version`, `.target` and `.address_size` open the module in this order (PTX 11.1)."""
        at = self.at
        found = self.directive()
        if text in self._header and text != ".target":
            self.report(codes.MISPLACED, f"a second `{text}`", self.span(at), noticed=at)
        elif self._header_over or (self._header and HEADER.index(self._header[-1]) > HEADER.index(text)):
            self.report(codes.MISPLACED, f"`{text}` stands at the start of the module", self.span(at), noticed=at)
        self._header.append(text)
        return found

    def _no_module_statement(self, text: str) -> Recover:
        at = self.at
        if text == ";":
            help = "the directives at the start of a module take no `;`" if not self._header_over else ""
            return self.fail(codes.UNEXPECTED, "there is no statement before this `;`", help=help)
        if text == "}":
            self.at += 1
            return self._outside(codes.UNMATCHED, "this `}` closes nothing", at)
        is_guard = text == "@" and self.texts[at + 1] != "@"
        if is_guard or (self._is_outside and (text in _IN_BODIES or self.is_name(at))):
            return self._outside(codes.MISPLACED, f"{self.describe(at)} stands outside of a function", at, _directive(text))
        if (
            text in {".loc", ".loc_intermediate"}
            or text in KERNEL_DIRECTIVES
            or text in FUNCTION_DIRECTIVES
            or text in _LABELLED
        ):
            return self.fail(codes.MISPLACED, f"`{text}` cannot stand at module level")
        if self.is_type(text):
            return self.without_space()
        if text[0] == "." and len(text) > 1:
            return self.fail(
                codes.UNKNOWN_DIRECTIVE,
                f"unknown directive `{shorten(text)}`",
                help=did_you_mean(text, _ALL_DIRECTIVES),
            )
        if self.is_name(at) and (self.texts[at + 1] == ":" or self.is_name(at + 1) or self.texts[at + 1] in {";", "[", "{"}):
            return self._outside(codes.MISPLACED, f"{self.describe(at)} stands outside of a function", at, _directive(text))
        return self.unexpected("a directive", _directive(text))

    def _outside(self, code: str, message: str, at: int, help: str = "") -> Recover:
        """Statements at module level: mostly the rest of a body that ended too early, so the first stands for all."""
        if self._is_outside:
            return Recover()
        self._is_outside = True
        note = "" if help else "is there one `}` too many above?"
        return self.fail(code, message, at, note=note, help=help)

    # ── kernels and functions (PTX 11.2) ────────────────────────────────────────────────

    def _linked(self, *, in_body: bool) -> tree.Statement:
        """What a linking directive, `.entry` or `.func` starts."""
        first, linkage = self.at, None
        text = self.texts[first]
        if text in LINKAGE:
            linkage = tree.Linkage(text[1:])
            self.at += 1
            text = self.texts[self.at]
            if text in LINKAGE:
                raise self.fail(codes.BAD_LINKAGE, f"`{text}` excludes `.{linkage}`", first, self.at, noticed=self.at)
        if text in _DECLARING or self.is_bare_type():
            if in_body:
                raise self.fail(codes.MISPLACED, f"`.{linkage}` cannot stand in a function", first, noticed=self.at)
            return self.variable(linkage, first)
        if text not in {".entry", ".func"}:
            raise self.unexpected("a state space, `.entry` or `.func`", _directive(text) or did_you_mean(text, _ALL_DIRECTIVES))
        if linkage is tree.Linkage.COMMON:
            raise self.fail(codes.BAD_LINKAGE, f"`.common` is for variables, not for `{text}`", first, noticed=self.at)
        if in_body and text == ".entry":
            raise self.fail(codes.MISPLACED, "a kernel cannot stand in a function")
        return self._function(first, linkage, in_body=in_body)

    def _function(self, first: int, linkage: tree.Linkage | None, *, in_body: bool) -> tree.Function:
        kind = self.texts[self.at][1:]
        found = tree.Function(kind, "", [], [], [], None, linkage, start=self.starts[first])
        self.at += 1
        readable = False
        try:
            self._signature(found)
            readable = True
        except Recover:
            self._skip_signature()
        if self.texts[self.at] == "{":
            if in_body:
                raise self.fail(codes.MISPLACED, f"`{found.name}` cannot have its body inside of another function")
            found.body = self._unread_body() or self.nested(self.block)
        elif readable:
            self._end_of_declaration(found, in_body=in_body)
        else:
            self.take(";")
        if not found.name:
            raise Recover
        found.end = self.ends[self.at - 1] if found.body is None else found.body.end
        return found

    def _unread_body(self) -> tree.Unread | None:
        """The body that begins here, if its statements are left for later."""
        opening = self.at
        start = self.starts[opening]
        if start not in self.unread:
            return None
        self.at += 1
        is_open = start in self.unclosed
        end = self.starts[self.at] if is_open else self.ends[self.at]
        self._close(opening)
        return tree.Unread(start=start, end=end, is_open=is_open)

    def _end_of_declaration(self, found: tree.Function, *, in_body: bool) -> None:
        """The `;` of a function without a body; at module level ptxas does without it."""
        text = self.texts[self.at]
        if found.kind == "entry" and found.directives:
            raise self.unexpected("`{`: a kernel with performance directives has a body")
        if any(each.name == "language" for each in found.directives):
            raise self.unexpected("`{`: a function with a `.language` has a body")
        if found.kind == "func" and not in_body and (text == END or text[0] == "."):
            self.missing_semicolon(self.at, "the declaration", Severity.WARNING)
        elif not self.take(";"):
            raise self.unexpected("`{` or `;` after the signature")

    def _signature(self, found: tree.Function) -> None:
        """`(results) name (parameters) directives`."""
        if found.kind == "func":
            if self.texts[self.at] == ".attribute":
                found.attributes = self.attributes((".unified",))
            if self.texts[self.at] == "(":
                found.results = self.parameters()
        at = self.at
        if self.texts[at] in LINKAGE:
            raise self.fail(codes.BAD_LINKAGE, f"`{self.texts[at]}` stands before `.{found.kind}`")
        found.name = self._declared_name()
        found.name_start, found.name_end = self.starts[at], self.ends[at]
        if self.texts[self.at] == "(":
            found.parameters = self.parameters()
        found.directives = self.performance("kernel" if found.kind == "entry" else "function")

    def _skip_signature(self) -> None:
        """After an error in a signature: to the body, so that its statements are read, or to the end."""
        while self.texts[self.at] not in {"{", ";", END} and not (
            self.starts_statement(self.at) and self.texts[self.at] in {".entry", ".func", *LINKAGE}
        ):
            self.at += 1

    # ── blocks ──────────────────────────────────────────────────────────────────────────

    def block(self) -> tree.Block:
        """`{ … }`: a body or a scope in one (PTX 5.4.1)."""
        opening = self.at
        self.at += 1
        statements = self.statements()
        self._close(opening)
        return tree.Block(statements, start=self.starts[opening], end=self.ends[self.at - 1])

    def _close(self, opening: int) -> None:
        """The `}` of a block, which may have been forgotten."""
        if not self.take("}"):
            self.report(
                codes.UNCLOSED,
                "this `{` is not closed",
                self.span(opening),
                label="no `}` for this",
                related=((f"expected `}}` before {self.describe(self.at)}", self.span(self.at)),),
                noticed=self.at + (self.texts[self.at] in LINKAGE),  # a variable can have one in a body
            )

    def statements(self) -> list[tree.Statement]:
        """The statements up to a `}`, or to where a forgotten one must have been."""
        texts = self.texts
        found: list[tree.Statement] = []
        while True:
            start = self.at
            text = texts[start]
            try:
                if text[0] in NAME_START:
                    if texts[start + 1] == ":":
                        found.append(self._label())
                    else:
                        found.append(self.instruction())
                elif text == "@":
                    found.append(self._guarded())
                elif text[0] == ".":
                    if self._belongs_to_module(start):
                        return found
                    found.append(self._body_directive(text))
                elif text == "{":
                    found.append(self.nested(self.block))
                elif text in {"}", END}:
                    return found
                else:
                    found.append(self._other_statement(text))
            except Recover:
                self.recover(start)

    def _belongs_to_module(self, at: int) -> bool:
        """Whether a kernel, a function with a body or a section starts here: then a `}` was forgotten above."""
        if not self.starts_line(at):
            return False
        if self.texts[at] in LINKAGE:
            at += 1
        return self.texts[at] in {".entry", ".section"} or (self.texts[at] == ".func" and self._has_body(at))

    def _has_body(self, at: int) -> bool:
        """Whether a `{` comes before all that ends a signature."""
        at += 1
        while self.texts[at] not in {"{", ";", "}", ".func", ".entry", END}:
            at += 1
        return self.texts[at] == "{"

    def _no_statement(self, text: str) -> Recover:
        if text in {";", "#", "-"} and self.starts_line(self.at) and not self.starts_line(self.at + 1):
            return self._wrong_comment()
        if text == ";":
            return self.fail(codes.UNEXPECTED, "there is no statement before this `;`")
        if text in CLOSING.values():
            return self.fail(codes.UNMATCHED, f"this `{text}` closes nothing")
        label = text.isdigit() and self.texts[self.at + 1] == ":"
        advice = f"the name of a label starts with a letter, `_`, `$` or `%`: `L{text}:`" if label else ""
        return self.unexpected("an instruction, a label or a directive", advice)

    def _wrong_comment(self) -> Recover:
        """A line that starts with the mark of a comment in another assembler; the rest of it is no statement."""
        first = self.at
        preprocessor = self.texts[first] == "#" and self.texts[first + 1] in PREPROCESSOR
        self.at += 1
        while self.texts[self.at] != END and not self.starts_line(self.at):
            self.at += 1
        return self.fail(
            codes.STRAY_CHARACTER if self.texts[first] == "#" else codes.UNEXPECTED,
            f"{self.describe(first)} does not begin a statement",
            first,
            noticed=first,
            help="lines for the C preprocessor are not read: run it first" if preprocessor else COMMENTS,
        )

    # ── statements ──────────────────────────────────────────────────────────────────────

    def _label(self) -> tree.Statement:
        """`name:`, and what belongs to it: a list of targets or a prototype."""
        at = self.at
        text = self.texts[at]
        if "." in text or text in NO_NAME or text == "WARP_SZ":
            raise self.fail(codes.UNEXPECTED, f"`{shorten(text)}` cannot be a label", noticed=at + 1)
        self.at += 2
        word = self.texts[self.at]
        if word in {".branchtargets", ".calltargets"}:
            return self.targets(at)
        if word == ".callprototype":
            return self.prototype(at)
        return tree.Label(text, start=self.starts[at], end=self.ends[at + 1])

    def _body_directive(self, text: str) -> tree.Statement:
        if text in _DECLARING or self.is_bare_type():
            return self.variable()
        if text in {".loc", ".loc_intermediate", ".pragma", ".file", ".alias"}:
            return self.directive()
        if text == ".func" or text in LINKAGE:
            return self._linked(in_body=True)
        if text == ".target":
            self.report(codes.MISPLACED, "`.target` in a function has no effect", self.span(self.at), severity=Severity.WARNING)
            return self.directive()
        if text in _LABELLED:
            raise self.fail(codes.MISPLACED, f"`{text}` needs a label in front of it", help=f"write `name: {text} …;`")
        if text in _ALL_DIRECTIVES:
            raise self.fail(codes.MISPLACED, f"`{text}` cannot stand in a function")
        if self.is_type(text):
            raise self.without_space()
        if len(text) > 1:
            label = self.texts[self.at + 1] == ":"
            raise self.fail(
                codes.UNKNOWN_DIRECTIVE,
                f"unknown directive `{shorten(text)}`",
                help=f"a label has no dot: `{shorten(text[1:])}:`" if label else did_you_mean(text, _ALL_DIRECTIVES),
            )
        raise self.unexpected("a directive")

    def _other_statement(self, text: str) -> tree.Statement:
        """An instruction behind a backslash, or nothing that stands in a body."""
        if text != "\\":
            raise self._no_statement(text)
        self._backslash()
        return self.instruction()

    def _backslash(self) -> None:
        """A backslash before an opcode, which ptxas steps over."""
        self.at += 1
        if self.texts[self.at][0] not in NAME_START:
            raise self.unexpected("an instruction after the backslash")
        if self.texts[self.at + 1] == ":":
            self.at += 1
            raise self.unexpected("operands: no label follows a backslash")

    def _guarded(self) -> tree.Statement:
        """`@p` or `@!p`, and the instruction that it guards."""
        first = self.at
        self.at += 1
        negated = self.take("!")
        at = self.at
        if not self.is_name(at):
            wrapped = self.texts[at] == "(" and self.is_name(at + 1)
            raise self.unexpected("a predicate", f"write `@{shorten(self.texts[at + 1])}`" if wrapped else "")
        self.at += 1
        if "." in self.texts[at]:
            raise self.fail(codes.BAD_GUARD, f"a predicate has no component: {self.describe(at)}", at)
        name = self.plain_name(at)
        guard = tree.Guard(name, negated, start=self.starts[first], end=name.end)
        if self.texts[self.at] == "\\":
            self._backslash()
        text = self.texts[self.at]
        if text[0] in NAME_START and self.texts[self.at + 1] != ":":
            return self.instruction(guard)
        if text[0] == "." or text in {"{", "@"} or self.texts[self.at + 1] == ":":
            found = {"{": "a block", "@": "another guard"}.get(text, "a directive" if text[0] == "." else "a label")
            self.report(codes.BAD_GUARD, f"a guard cannot stand before {found}", self.span(first, at))
            if text == "{":
                return self.nested(self.block)
            raise Recover
        raise self.unexpected("an instruction after the guard", "no comma follows a guard" if text == "," else "")

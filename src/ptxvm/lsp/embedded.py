"""Embedded PTX: in `asm("...")` of CUDA C, and in strings of Python that hold a module or inline assembly.

A piece of PTX becomes a document of its own, character by character the same: what is not PTX is blank, so that places differ
by a constant.  Statements get a kernel around them, with registers for the operands of their constraints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from lsprotocol import types

from ptxvm.analysis.incremental import IncrementalChecker
from ptxvm.diagnostics import Diagnostic, Span
from ptxvm.lsp import hover as of_ptx
from ptxvm.lsp.document import Document
from ptxvm.lsp.text import DocumentText

C_LANGUAGES = frozenset(("cuda-cpp", "cuda", "cpp", "c"))
"""The languages with `asm`, as editors call them."""

PYTHON = "python"

REGISTERS = {"h": ".b16", "r": ".b32", "l": ".b64", "q": ".b128", "f": ".f32", "d": ".f64"}
"""The register that each letter of a constraint asks for (CUDA, Inline PTX Assembly)."""

SETTINGS = (("9.0", "sm_100a"), ("9.0", "sm_90a"), ("8.5", "sm_90"), ("6.4", "sm_75"), ("6.0", "sm_60"))
"""Versions and targets to try: the host's compiler decides them, and the text does not say."""

_ASM = re.compile(r"\b(?:asm|__asm__|__asm)\s*(?:(?:volatile|__volatile__|goto)\s*)*\(")
_C_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_C_SKIPPED = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', re.DOTALL)
_PYTHON_STRING = re.compile(
    r'(?P<prefix>\b[rRbBuUfF]{1,2})?(?P<quote>"""|\'\'\'|"|\')(?P<text>(?:\\.|(?!(?P=quote)).)*)(?P=quote)', re.DOTALL
)
_MODULE = re.compile(r"^\s*(?://[^\n]*\n\s*|/\*.*?\*/\s*)*\.version\s+\d", re.DOTALL)
_CONSTRAINTS = re.compile(r"""\s*,\s*(?:constraints\s*=\s*)?["']([=+&\w,~{} ]*)["']""")
_ESCAPE = re.compile(r"\\(?:\r?\n|.)", re.DOTALL)
_PERCENT = re.compile(r"%%")
_NOT_SAID = frozenset(("P0306", "P0307"))  # versions and targets


@dataclass(frozen=True)
class EmbeddedFragment:
    """A piece of PTX of another document, which begins at `start` there; `registers` are those of its operands."""

    host: Document
    start: int
    text: str
    registers: tuple[str, ...] = ()
    is_module: bool = False

    @cached_property
    def documents(self) -> list[tuple[Document, int]]:
        """The document of the fragment for each setting, and where in it the fragment begins."""
        if self.is_module:
            return [(self._document("", ""), 0)]
        found = []
        for version, target in SETTINGS:
            declared = "".join(f".reg {register};" for register in self.registers)
            before = f".version {version}\n.target {target}\n.address_size 64\n.entry asm() {{ {declared}\n"
            found.append((self._document(before, "\nret; }\n"), len(before)))
        return found

    def _document(self, before: str, after: str) -> Document:
        return Document(self.host.uri, DocumentText(before + self.text + after, self.host.text.encoding))

    @property
    def end(self) -> int:
        """Where it ends in the host."""
        return self.start + len(self.text)


# ── what editors ask ────────────────────────────────────────────────────────────────────


def findings(host: Document, checker: IncrementalChecker) -> list[Diagnostic]:
    """What is wrong with the PTX in a document: for the version and target that it suits best."""
    found = []
    for fragment in fragments(host):
        best = min((checked(fragment, *each, checker) for each in fragment.documents), key=len)
        found += [each for each in best if fragment.is_module or each.code not in _NOT_SAID]
    return found


def checked(fragment: EmbeddedFragment, inner: Document, begin: int, checker: IncrementalChecker) -> list[Diagnostic]:
    """The findings of a fragment, with places in the host."""
    by = fragment.start - begin
    found = []
    for each in checker.check(inner.source):
        start = min(max(each.span.start + by, fragment.start), fragment.end)
        end = min(max(each.span.end + by, start), fragment.end)
        line, column = fragment.host.source.location(start)
        found.append(replace(each, span=Span(start, end), line=line, column=column, related=()))
    return found


def hover(host: Document, position: types.Position) -> types.Hover | None:
    """What the PTX at a position is; None where there is none."""
    offset = host.text.offset(position)
    for fragment in fragments(host):
        if fragment.start <= offset <= fragment.end:
            inner, begin = fragment.documents[0]
            by = fragment.start - begin
            found = of_ptx.hover(inner, inner.text.position(offset - by))
            if found is not None and found.range is not None:
                start, end = inner.text.span(found.range)
                found.range = host.text.range(start + by, end + by)
            return found
    return None


# ── where PTX is ────────────────────────────────────────────────────────────────────────


def fragments(host: Document) -> list[EmbeddedFragment]:
    """The pieces of PTX in a document."""
    return list(_of_python(host) if host.language == PYTHON else _of_c(host))


def _of_c(host: Document) -> Iterator[EmbeddedFragment]:
    """The strings of each `asm`, up to its first colon; the constraints behind it name the operands."""
    source = host.source.text
    for found in _ASM.finditer(source):
        strings, at = list[re.Match[str]](), found.end()
        while string := _C_STRING.match(source, _behind_blanks(source, at)):
            strings.append(string)
            at = string.end()
        if strings and not _is_hidden(source, found.start()):
            start, end = strings[0].start(1), strings[-1].end(1)
            text = [" "] * (end - start)
            for string in strings:
                text[string.start(1) - start : string.end(1) - start] = _unescaped(string[1])
            registers = _operands(_constraints(source, at), "%")
            if registers is not None:
                yield EmbeddedFragment(host, start, "".join(text), registers)


def _behind_blanks(source: str, at: int) -> int:
    """The place behind blanks and comments."""
    while found := re.compile(r"\s+|//[^\n]*|/\*.*?\*/|\\\n", re.DOTALL).match(source, at):
        at = found.end()
    return at


def _is_hidden(source: str, offset: int) -> bool:
    """Is the place within a comment or string?"""
    line = source.rfind("\n", 0, offset) + 1
    opened = source.rfind("/*", 0, offset)
    in_comment = opened >= 0 and source.find("*/", opened, offset) < 0
    return in_comment or any(each.start() + line < offset < each.end() + line for each in _C_SKIPPED.finditer(source[line:]))


def _constraints(source: str, at: int) -> list[str]:
    """The constraints of the outputs, then of the inputs: strings before a parenthesis, up to the end of the statement."""
    end = source.find(";", at)
    return re.findall(r'"([=+&]*[a-zA-Z]+)"\s*\(', source[at : end if end >= 0 else len(source)])


def _of_python(host: Document) -> Iterator[EmbeddedFragment]:
    """Strings that hold a module, and those before constraints, as `inline_asm_elementwise` of Triton has them."""
    source = host.source.text
    for found in _PYTHON_STRING.finditer(source):
        if "f" in (found["prefix"] or "").lower():
            continue
        raw = "r" in (found["prefix"] or "").lower()
        text = found["text"] if raw else "".join(_unescaped(found["text"], percent=False))
        if _MODULE.match(text):
            yield EmbeddedFragment(host, found.start("text"), text, is_module=True)
        elif (behind := _CONSTRAINTS.match(source, found.end())) and "=" in behind[1]:
            registers = _operands([each.strip() for each in behind[1].split(",")], "$")
            if registers is not None:
                yield EmbeddedFragment(host, found.start("text"), text, registers)


def _operands(constraints: list[str], mark: str) -> tuple[str, ...] | None:
    """The declarations of the operands; None where a constraint is not known."""
    found = []
    for number, constraint in enumerate(constraints):
        letters = constraint.strip("=+&")
        if letters in REGISTERS:
            found.append(f"{REGISTERS[letters]} {mark}{number}")
        elif letters.startswith("~"):
            continue
        else:
            return None
    return tuple(found)


def _unescaped(text: str, *, percent: bool = True) -> str:
    """A string's characters, each in the place where it stands: what an escape leaves is blank."""
    found = _ESCAPE.sub(lambda escape: "\n".rjust(len(escape[0])) if escape[0][1] in "nr\n" else " " * len(escape[0]), text)
    return _PERCENT.sub(" %", found) if percent else found

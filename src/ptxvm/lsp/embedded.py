"""Embedded PTX: in `asm("...")` of CUDA C, and in strings of Python that hold a module or inline assembly.

A piece of PTX becomes a document of its own, character by character the same: what is not PTX is blank, so that places differ
by a constant.  Statements get a kernel around them, with registers for the operands of their constraints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial

from lsprotocol import types

from ptxvm.analysis.incremental import IncrementalChecker
from ptxvm.dataclass import dataclass
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
_C_STRING = re.compile(r'R"(?P<mark>[^()\\\s"]*)\((?P<raw>.*?)\)(?P=mark)"|"(?P<usual>(?:[^"\\\n]|\\.)*)"', re.DOTALL)
_C_CONSTANT = re.compile(r"(?<!%)%(\d+)")
_F_STRING = re.compile(r"\{\{|\}\}|\{[^{}\n]*\}")
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
    """A piece of PTX of another document, which begins at `start` there; `registers` are those of its operands.

    Of a `template` some of the text is only known when the program runs: nothing is wrong with it, as far as can be seen.
    """

    host: Document
    start: int
    text: str
    registers: tuple[str, ...] = ()
    is_module: bool = False
    is_template: bool = False

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
    for fragment in (each for each in fragments(host) if not each.is_template):
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
            start, end = strings[0].start(_group(strings[0])), strings[-1].end(_group(strings[-1]))
            text = [" "] * (end - start)
            constraints = _constraints(source, at)
            constants = {n: value for n, (letters, value) in enumerate(constraints) if letters == "n"}
            for string in strings:
                group = _group(string)
                known = _C_CONSTANT.sub(partial(_constant, constants), string[group])
                text[string.start(group) - start : string.end(group) - start] = _unescaped(known, raw=group == "raw")
            registers = _operands([letters for letters, _ in constraints], "%")
            if registers is not None:
                is_template = any(_place(n, constants) is None for n in constants)
                yield EmbeddedFragment(host, start, "".join(text), registers, is_template=is_template)


def _group(string: re.Match[str]) -> str:
    """Which spelling a string of C++ has."""
    return "raw" if string["raw"] is not None else "usual"


def _constant(constants: Mapping[int, str], found: re.Match[str]) -> str:
    """What stands for `%2` where it is a constant; itself for another operand."""
    number = int(found[1])
    return found[0] if number not in constants else (_place(number, constants) or "0").ljust(len(found[0]))


def _place(number: int, constants: Mapping[int, str]) -> str | None:
    """The digits of a constant that have room where its operand is named; None of another, whose value is not seen."""
    value = constants[number].strip()
    return value if value.isdecimal() and len(value) <= len(f"%{number}") else None


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


def _constraints(source: str, at: int) -> list[tuple[str, str]]:
    """The constraints of the outputs, then of the inputs, and what stands in parentheses behind each."""
    end = source.find(";", at)
    return re.findall(r'"([=+&]*[a-zA-Z]+)"\s*\(([^()]*)', source[at : end if end >= 0 else len(source)])


def _of_python(host: Document) -> Iterator[EmbeddedFragment]:
    """Strings that hold a module, and those before constraints, as `inline_asm_elementwise` of Triton has them."""
    source = host.source.text
    for found in _PYTHON_STRING.finditer(source):
        prefix, text = (found["prefix"] or "").lower(), found["text"]
        is_template = "f" in prefix and any(each[0] not in ("{{", "}}") for each in _F_STRING.finditer(text))
        if "f" in prefix:
            text = _F_STRING.sub(_of_f_string, text)
        text = _unescaped(text, raw="r" in prefix, percent=False)
        if _MODULE.match(text):
            yield EmbeddedFragment(host, found.start("text"), text, is_module=True, is_template=is_template)
        elif (behind := _CONSTRAINTS.match(source, found.end())) and "=" in behind[1]:
            registers = _operands([each.strip() for each in behind[1].split(",")], "$")
            if registers is not None:
                yield EmbeddedFragment(host, found.start("text"), text, registers, is_template=is_template)


def _of_f_string(found: re.Match[str]) -> str:
    """The brace that two stand for, and a name in the place of an expression."""
    return f" {found[0][0]}" if found[0] in ("{{", "}}") else "_" * len(found[0])


def _operands(constraints: list[str], mark: str) -> tuple[str, ...] | None:
    """The declarations of the operands; None where a constraint is not known."""
    found = []
    for number, constraint in enumerate(constraints):
        letters = constraint.strip("=+&")
        if letters in REGISTERS:
            found.append(f"{REGISTERS[letters]} {mark}{number}")
        elif letters == "n" or letters.startswith("~"):
            continue
        else:
            return None
    return tuple(found)


def _unescaped(text: str, *, raw: bool = False, percent: bool = True) -> str:
    """A string's characters, each in the place where it stands: what an escape leaves is blank; a raw one has none."""
    found = (
        text
        if raw
        else _ESCAPE.sub(lambda escape: "\n".rjust(len(escape[0])) if escape[0][1] in "nr\n" else " " * len(escape[0]), text)
    )
    return _PERCENT.sub(" %", found) if percent else found

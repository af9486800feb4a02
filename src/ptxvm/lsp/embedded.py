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

_C_SKIPPED = r"""//[^\n]*|/\*.*?\*/|R"(?P<raw>[^()\\\s"]*)\(.*?\)(?P=raw)"|"(?:[^"\\\n]|\\.)*"|(?<!\w)'(?:[^'\\\n]|\\.)*'"""
_ASM = re.compile(rf"(?P<skipped>{_C_SKIPPED})|\b(?:asm|__asm__|__asm)\s*(?:(?:volatile|__volatile__|goto)\s*)*\(", re.DOTALL)
_C_STRING = re.compile(r'R"(?P<mark>[^()\\\s"]*)\((?P<raw>.*?)\)(?P=mark)"|"(?P<usual>(?:[^"\\\n]|\\.)*)"', re.DOTALL)
_C_MACRO = re.compile(r"#?[A-Za-z_]\w*(?:\([^()\"]*\))?")
_C_OPERAND = re.compile(r"(?<!%)%(?:(?P<number>\d+)|\[(?P<name>\w+)\]|=)")
_C_CONSTRAINT = re.compile(r'(?:\[(?P<name>\w+)\]\s*)?"(?P<letters>[=+&]*[a-zA-Z]+)"\s*\((?P<value>[^()]*)')
_F_STRING = re.compile(r"\{\{|\}\}|\{[^{}\n]*\}")
_PYTHON_STRING = re.compile(
    r'#[^\n]*|(?P<prefix>\b[rRbBuUfF]{1,2})?(?P<quote>"""|\'\'\'|"|\')(?P<text>(?:\\.|(?!(?P=quote)).)*)(?P=quote)', re.DOTALL
)
_PYTHON_BLANKS = re.compile(r"(?:\s|\\\n|#[^\n]*)*")
_FORMATTED = re.compile(r"\s*\)?\s*(?:\.\s*(?:format|format_map|replace)\b|%)")
_MODULE = re.compile(r"^\s*(?://[^\n]*\n\s*|/\*.*?\*/\s*)*\.version\s+\d", re.DOTALL)
_CONSTRAINTS = re.compile(r"""\s*\)?\s*,\s*(?:constraints\s*=\s*)?\(?((?:\s*["'][=+&\w,~{} ]*["'])+)""")
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
    """The strings of each `asm`, up to its first colon; the constraints behind it name the operands.

    Macros between the strings are text that is not seen here.
    """
    source = host.source.text
    for found in _ASM.finditer(source):
        strings, has_macros, at = _c_strings(source, found.end()) if found["skipped"] is None else ([], False, 0)
        if not strings:
            continue
        start, end = strings[0].start(_group(strings[0])), strings[-1].end(_group(strings[-1]))
        text = [" "] * (end - start)
        constraints = _constraints(source, at)
        constants = {n: each["value"] for n, each in enumerate(constraints) if each["letters"] == "n"}
        named = {each["name"]: n for n, each in enumerate(constraints) if each["name"]}
        for string in strings:
            group = _group(string)
            known = _C_OPERAND.sub(partial(_operand, constants, named), string[group])
            text[string.start(group) - start : string.end(group) - start] = _unescaped(known, raw=group == "raw")
        registers = _operands([each["letters"] for each in constraints], "%")
        if registers is not None:
            is_template = has_macros or any(_place(n, constants) is None for n in constants)
            yield EmbeddedFragment(host, start, "".join(text), registers, is_template=is_template)


def _c_strings(source: str, at: int) -> tuple[list[re.Match[str]], bool, int]:
    """The strings from a place on, whether there are macros between or behind them, and the place behind them."""
    strings, macros = list[re.Match[str]](), 0
    while True:
        place = _behind_blanks(source, at)
        if string := _C_STRING.match(source, place):
            strings.append(string)
            at = string.end()
        elif macro := _C_MACRO.match(source, place):
            macros += 1
            at = macro.end()
        else:
            return strings, macros > 0, at


def _group(string: re.Match[str]) -> str:
    """Which spelling a string of C++ has."""
    return "raw" if string["raw"] is not None else "usual"


def _operand(constants: Mapping[int, str], named: Mapping[str, int], found: re.Match[str]) -> str:
    """What stands for an operand, as long as it was: a register or a constant.  `%=`, a number of the `asm`, is 00."""
    if found[0] == "%=":
        return "00"
    number = int(found["number"]) if found["number"] else named.get(found["name"])
    if number is None:
        return found[0]
    return ((_place(number, constants) or "0") if number in constants else f"%{number}").ljust(len(found[0]))


def _place(number: int, constants: Mapping[int, str]) -> str | None:
    """The digits of a constant that have room where its operand is named; None of another, whose value is not seen."""
    value = constants[number].strip()
    return value if value.isdecimal() and len(value) <= len(f"%{number}") else None


def _behind_blanks(source: str, at: int) -> int:
    """The place behind blanks and comments."""
    while found := re.compile(r"\s+|//[^\n]*|/\*.*?\*/|\\\n", re.DOTALL).match(source, at):
        at = found.end()
    return at


def _constraints(source: str, at: int) -> list[re.Match[str]]:
    """The constraints of the outputs, then of the inputs: the name and letters of each, and what is in parentheses behind."""
    end = source.find(";", at)
    return list(_C_CONSTRAINT.finditer(source, at, end if end >= 0 else len(source)))


def _of_python(host: Document) -> Iterator[EmbeddedFragment]:
    """Strings that hold a module, and those before constraints, as `inline_asm_elementwise` of Triton has them."""
    source = host.source.text
    for strings in _python_strings(source):
        start, end = strings[0].start("text"), strings[-1].end("text")
        text, is_template = [" "] * (end - start), _FORMATTED.match(source, strings[-1].end()) is not None
        for found in strings:
            prefix, known = (found["prefix"] or "").lower(), found["text"]
            if "f" in prefix:
                is_template |= any(each[0] not in ("{{", "}}") for each in _F_STRING.finditer(known))
                known = _F_STRING.sub(_of_f_string, known)
            known = _unescaped(known, raw="r" in prefix, percent=False)
            text[found.start("text") - start : found.end("text") - start] = known
        whole = "".join(text)
        if _MODULE.match(whole):
            yield EmbeddedFragment(host, start, whole, is_module=True, is_template=is_template)
        elif (behind := _CONSTRAINTS.match(source, strings[-1].end())) and "=" in behind[1]:
            registers = _operands([each.strip() for each in re.sub(r"""\s*["']\s*""", "", behind[1]).split(",")], "$")
            if registers is not None:
                yield EmbeddedFragment(host, start, whole, registers, is_template=is_template)


def _python_strings(source: str) -> Iterator[list[re.Match[str]]]:
    """The strings, those together that stand beside each other: Python joins them."""
    run = list[re.Match[str]]()
    for found in _PYTHON_STRING.finditer(source):
        if found["quote"] is None:
            continue  # a comment
        blanks = _PYTHON_BLANKS.match(source, run[-1].end()) if run else None
        if blanks is not None and blanks.end() != found.start():
            yield run
            run = []
        run.append(found)
    if run:
        yield run


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

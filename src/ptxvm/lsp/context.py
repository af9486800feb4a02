"""The context of a cursor: which part of a statement is being written there."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Sequence

from ptxvm.analysis.operand_matching import chosen
from ptxvm.dataclass import dataclass
from ptxvm.isa.catalog import load_catalog
from ptxvm.isa.model import ISA, Decoded, candidates
from ptxvm.isa.notation import Operand
from ptxvm.lsp.module import ModuleView


class CursorPart(enum.Enum):
    """What is written at a place."""

    STATEMENT = "the beginning of a statement"
    GUARD = "the predicate of a guard"
    MODIFIER = "a modifier of an instruction"
    OPERAND = "an operand"
    COMPONENT = "a component of a register"
    DIRECTIVE = "a word of a directive or declaration"
    MODULE = "a statement of the module"


_NAME = r"[%$_A-Za-z][\w$]*"
_GUARD = re.compile(rf"@!?\s*({_NAME}|[%$])?$", re.ASCII)
_HEAD = re.compile(rf"(?:@!?\s*{_NAME}\s+)?([a-z]\w*)((?:\s*\.[\w:]+)*?)\s*\.([\w:]*)$", re.ASCII)
_OPERANDS = re.compile(rf"(?:@!?\s*{_NAME}\s+)?([a-z]\w*)((?:\s*\.[\w:]+)*)\s+([^.].*)?$", re.ASCII | re.DOTALL)
_COMPONENT = re.compile(rf"({_NAME})\.(\w*)$", re.ASCII)
_START = re.compile(rf"(?:@!?\s*{_NAME}\s+)?([\w%$]*)$", re.ASCII)
_HEADER = re.compile(r"^(?:\s*\.(?:version|target|address_size)\b[^\n]*\n)*", re.ASCII)
_PARTIAL = re.compile(r"[%$]?[\w$]*$", re.ASCII)


@dataclass(frozen=True)
class CursorContext:
    """The part at a cursor; of an instruction its opcode and modifiers, and the operands before the cursor.

    `partial` is the beginning of the word that is written.  `operand` counts from 0, and `groups` says which of those before it
    are in parentheses; `bracket` is the innermost one that is open there.  `line` is what stands before the word, of a
    directive.
    """

    part: CursorPart
    partial: str = ""
    opcode: str = ""
    modifiers: tuple[str, ...] = ()
    operand: int = 0
    bracket: str = ""
    owner: str = ""
    line: str = ""
    groups: tuple[bool, ...] = ()

    @property
    def forms(self) -> tuple[Decoded, ...]:
        """The forms that the modifiers fit; if they are incomplete, those to which modifiers are missing."""
        load_catalog()
        return candidates(self.opcode, self.modifiers) or tuple(self._incomplete())

    def _incomplete(self) -> Iterator[Decoded]:
        for of, form in ISA.by_opcode.get(self.opcode, ()):
            match = form.match(self.modifiers)
            if not match.extra:
                yield Decoded(of, form, match.bound)

    def operands(self, i: Decoded) -> list[Operand]:
        """The operands of a form that may be the one at the cursor: optional ones before it may be left out."""
        least, most = i.form.counts
        found: dict[str, Operand] = {}
        for count in range(max(least, self.operand + 1), most + 1):
            *before, operand = chosen(i.form.operands, count)[: self.operand + 1]
            if self.groups == tuple(bool(each.group) for each in before[: len(self.groups)]):
                found[operand.name] = operand
        return list(found.values())


def context_at(module: ModuleView, offset: int) -> CursorContext | None:
    """The context of a place; None within a comment or string."""
    function = module.function_at(offset)
    start = module.statement_span(offset)[0]
    before = module.plain[start:offset]
    if _is_hidden(module, offset, before):
        return None
    before = before.lstrip()
    partial = _PARTIAL.search(before)
    word = partial[0] if partial is not None else ""
    if function is None or not function.start < offset <= function.end:
        line = _HEADER.sub("", before[: len(before) - len(word)]).lstrip()
        return CursorContext(CursorPart.MODULE, word, line=line)
    return _in_body(before, word)


def _is_hidden(module: ModuleView, offset: int, before: str) -> bool:
    return before.count('"') % 2 == 1 or module.in_comment(offset)


def _in_body(before: str, word: str) -> CursorContext:
    if before.startswith("."):
        return CursorContext(CursorPart.DIRECTIVE, word, line=before[: len(before) - len(word)])
    if found := _GUARD.match(before):
        return CursorContext(CursorPart.GUARD, found[1] or "")
    if found := _HEAD.match(before):
        return CursorContext(CursorPart.MODIFIER, found[3], found[1], _modifiers(found[2]))
    if found := _OPERANDS.match(before):
        written = found[3] or ""
        if found[1] and (component := _COMPONENT.search(written)):
            return CursorContext(CursorPart.COMPONENT, component[2], found[1], _modifiers(found[2]), owner=component[1])
        groups, bracket = _operand(written)
        return CursorContext(CursorPart.OPERAND, word, found[1], _modifiers(found[2]), len(groups), bracket, groups=groups)
    if found := _START.match(before):
        return CursorContext(CursorPart.STATEMENT, found[1])
    return CursorContext(CursorPart.DIRECTIVE, word, line=before)


def _modifiers(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(".")[1:])


def _operand(written: str) -> tuple[tuple[bool, ...], str]:
    """The operands before the one that is being written, each in parentheses or not, and the bracket that is open in that."""
    groups, brackets, start = list[bool](), list[str](), 0
    for at, character in enumerate(written):
        if character in "([{":
            brackets.append(character)
        elif character in ")]}" and brackets:
            brackets.pop()
        elif character == "," and not brackets:
            groups.append(written[start:at].lstrip().startswith("("))
            start = at + 1
    return tuple(groups), brackets[-1] if brackets else ""


def next_modifiers(context: CursorContext) -> dict[str, Decoded]:
    """The modifiers that may follow those that are written, in the order of the syntax, each with a form that has it."""
    load_catalog()
    found: dict[str, Decoded] = {}
    for of, form in ISA.by_opcode.get(context.opcode, ()):
        match = form.match(context.modifiers)
        if match.extra:
            continue
        last = max((n for n, slot in enumerate(form.slots) if slot.name in match.bound), default=-1)
        for n, slot in enumerate(form.slots):
            if slot.name in match.bound or (n < last and slot.optional):
                continue
            for choice in slot.order:
                found.setdefault(choice, Decoded(of, form, {**match.bound, slot.name: choice}))
            if not slot.optional:
                break
    return found


def fitting(forms: Sequence[Decoded]) -> Iterator[Decoded]:
    """The forms, each once by how it is written."""
    seen = set()
    for each in forms:
        key = (each.mnemonic, each.form.text)
        if key not in seen:
            seen.add(key)
            yield each

"""Navigation: definition, references, highlights, and renaming."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lsprotocol import types

from ptxvm.dataclass import dataclass
from ptxvm.isa.special_registers import SPECIAL
from ptxvm.lsp.document import Document
from ptxvm.lsp.names import Definition, NameKind

NAME = re.compile(r"(?:[%$_A-Za-z][\w$]+|[A-Za-z])", re.ASCII)
"""An identifier (PTX 4.4)."""

FAMILY = re.compile(rf"({NAME.pattern})<(\d+)>", re.ASCII)
"""The name of a family of registers."""


class BadName(ValueError):  # noqa: N818 - it says what happened
    """A new name that cannot be; the message says why."""


@dataclass(frozen=True)
class Occurrence:
    """A place where a name stands: `start:end`; `declares` where it is a declaration."""

    start: int
    end: int
    declares: bool


def definition(document: Document, position: types.Position) -> list[types.Location]:
    """Where the name at a position is declared."""
    found = found_at(document, position)
    return [types.Location(document.uri, document.text.range(found[0].start, found[0].end))] if found is not None else []


def references(document: Document, position: types.Position, *, declaration: bool) -> list[types.Location]:
    """Every place of the name at a position; the declarations too where they are wanted."""
    found = found_at(document, position)
    places = occurrences(document, *found) if found is not None else ()
    return [types.Location(document.uri, document.text.range(o.start, o.end)) for o in places if declaration or not o.declares]


def highlights(document: Document, position: types.Position) -> list[types.DocumentHighlight]:
    """The same within the document, for the editor to mark."""
    found = found_at(document, position)
    if found is None:
        return []
    kinds = types.DocumentHighlightKind
    return [
        types.DocumentHighlight(document.text.range(o.start, o.end), kinds.Write if o.declares else kinds.Read)
        for o in occurrences(document, *found)
    ]


def found_at(document: Document, position: types.Position) -> tuple[Definition, str] | None:
    """The definition of the name at a position, and the name as it stands there."""
    module, offset = document.module, document.text.offset(position)
    word = module.word_at(offset)
    if word is None or word.is_dotted:
        return None
    function = module.function_at(offset)
    declared = [*(function.names.every if function is not None else ()), *module.names.every]
    found = next((each for each in declared if each.start == word.start), None) or module.resolve(word.text, word.start)
    return (found, word.text) if found is not None else None


def occurrences(document: Document, found: Definition, name: str) -> Iterator[Occurrence]:
    """Every place where a name stands for one definition.

    Of `%r7` of a family `%r<16>` these are the places of `%r7`; of the family itself, those of all its registers.
    """
    module, whole = document.module, found.count is not None and name == found.name
    same = {found}  # a function of the module may have several declarations
    if is_global := found in module.names.every:
        same = {each for each in module.names.every if each.name == found.name}
    declared = {each.start for each in same}
    function = None if is_global else module.function_at(found.start)
    first, last = (0, len(module.plain)) if function is None else (function.node.start, function.end)
    pattern = re.escape(name) + (r"\d*" if whole else "")
    for at in re.compile(rf"(?<![\w$%.]){pattern}(?![\w$])", re.ASCII).finditer(module.plain, first, last):
        if at.start() in declared or module.resolve(at[0], at.start()) in same:
            yield Occurrence(at.start(), at.end(), declares=at.start() in declared)


# ── renaming ────────────────────────────────────────────────────────────────────────────


def renameable(document: Document, position: types.Position) -> types.Range | None:
    """The name at a position, if it can be renamed."""
    if found_at(document, position) is None:
        return None
    word = document.module.word_at(document.text.offset(position))
    return document.text.range(word.start, word.end) if word is not None else None


def rename(document: Document, position: types.Position, new: str) -> types.WorkspaceEdit | None:
    """The edit that renames what stands at a position; raises BadName.

    On the declaration `%r<16>` all its registers are renamed; one register of a family cannot be renamed alone.
    """
    found = found_at(document, position)
    if found is None:
        return None
    definition, name = found
    if definition.count is not None:
        name = definition.name
        new = FAMILY.sub(r"\1", new)
        new = new.rstrip("0123456789") if new.startswith(("%", "$")) and definition.name[-1:].isalpha() else new
    check_name(document, definition, new)
    places = occurrences(document, definition, name)
    edits = [types.TextEdit(document.text.range(each.start, each.start + len(name)), new) for each in places]
    return types.WorkspaceEdit({document.uri: edits})


def check_name(document: Document, definition: Definition, new: str) -> None:
    """Raise BadName where a definition cannot have a name."""
    if not NAME.fullmatch(new):
        raise BadName(f"'{new}' is no identifier: letters, digits, '_' and '$', or '%' in front (PTX 4.4)")
    if new.removeprefix("%") in SPECIAL and new[0] in "%W":
        raise BadName(f"'{new}' is a special register")
    if definition.kind is NameKind.LABEL and new.startswith("%"):
        raise BadName(f"'{new}' cannot be a label: labels do not start with '%'")
    module = document.module
    function = module.function_at(definition.start)
    inside = [function.names] if function is not None else []
    if definition in module.names.every:
        inside = [each.names for each in module.functions]
    for names in (module.names, *inside):
        other = next((each for each in _clashes(names.every, definition, new)), None)
        if other is not None:
            line = document.text.line(other.start) + 1
            raise BadName(f"'{new}' is declared on line {line}")


def _clashes(every: list[Definition], definition: Definition, new: str) -> Iterator[Definition]:
    for each in every:
        if each is definition or each.name == definition.name:
            continue
        apart = each.last <= definition.first or definition.last <= each.first
        if apart and each.kind is not NameKind.KERNEL and each.kind is not NameKind.FUNCTION:
            continue
        same = each.name == new or (definition.count is None and each.has(new))
        if definition.count is not None and each.count is None:
            same = same or (each.name.startswith(new) and each.name[len(new) :].isdigit())
        if same:
            yield each

"""Completion: what fits at the cursor, as the declarations of the instructions tell."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache

from lsprotocol import types

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type, pred
from ptxvm.isa.model import Decoded
from ptxvm.isa.notation import Operand
from ptxvm.isa.operand_types import Shape, holds, problem
from ptxvm.isa.special_registers import SPECIAL
from ptxvm.isa.summary import calls
from ptxvm.isa.targets import LOWEST, VERSIONS, gives, parse_need
from ptxvm.lsp.context import CursorContext, CursorPart, context_at, next_modifiers
from ptxvm.lsp.document import Document
from ptxvm.lsp.module import FunctionView, ModuleView
from ptxvm.lsp.names import Definition, NameKind
from ptxvm.reference import modifiers
from ptxvm.reference.directive_words import DIRECTIVES
from ptxvm.reference.page import Page, find, opcodes
from ptxvm.syntax.declarations import LINKAGE, SPACES, TYPES
from ptxvm.syntax.directives import FUNCTION_DIRECTIVES, HEADER, KERNEL_DIRECTIVES

Items = Iterator[types.CompletionItem]
Kinds = types.CompletionItemKind

KINDS = {
    NameKind.REGISTER: Kinds.Variable,
    NameKind.VARIABLE: Kinds.Field,
    NameKind.PARAMETER: Kinds.Field,
    NameKind.LABEL: Kinds.Reference,
    NameKind.KERNEL: Kinds.Function,
    NameKind.FUNCTION: Kinds.Function,
    NameKind.TABLE: Kinds.Reference,
    NameKind.PROTOTYPE: Kinds.Interface,
}

IN_BODY = (".reg", ".shared", ".local", ".param", ".global", ".const", ".loc", ".pragma", ".align", ".branchtargets",
           ".calltargets", ".callprototype")  # fmt: skip
"""The directives with which a statement of a body begins (PTX 11)."""

NAMED = frozenset({"function", "table", "prototype", "label"})
"""The marks of operands that are names."""

ELEMENTS = (1, 2, 4, 8)
"""How many elements a vector may have: those of `mov` have their type by their number (PTX 9.7.9.11)."""

OF_MODULE = (
    *HEADER,
    *sorted(LINKAGE),
    ".entry",
    ".func",
    ".file",
    ".section",
    ".alias",
    ".pragma",
    *sorted(SPACES - {".param"}),
)
"""The directives with which a statement of a module begins."""


def completion(document: Document, position: types.Position) -> list[types.CompletionItem]:
    """What may stand at a position."""
    module, offset = document.module, document.text.offset(position)
    context = context_at(module, offset)
    if context is None:
        return []
    replaced = document.text.range(offset - len(context.partial), offset)
    items = list(_items(module, context, offset))
    for number, item in enumerate(items):
        item.text_edit = types.TextEdit(replaced, item.label)
        item.sort_text = f"{item.sort_text or 'm'}{number:05}"
        item.filter_text = item.label
    return items


def _items(module: ModuleView, context: CursorContext, offset: int) -> Items:
    match context.part:
        case CursorPart.STATEMENT:
            yield from _opcodes()
        case CursorPart.GUARD:
            yield from _names(module, offset, lambda shape: shape.type is pred)
        case CursorPart.MODIFIER:
            yield from _modifiers(module, context)
        case CursorPart.OPERAND:
            yield from _operands(module, context, offset)
        case CursorPart.COMPONENT:
            yield from _components(module, context, offset)
        case CursorPart.DIRECTIVE | CursorPart.MODULE:
            yield from _directives(context)


# ── opcodes and modifiers ───────────────────────────────────────────────────────────────


@cache
def _headlines() -> tuple[tuple[str, str], ...]:
    """Every opcode with what it does, in a line."""
    return tuple((opcode, find(opcode)[0].headline) for opcode in sorted(opcodes()))


def _opcodes() -> Items:
    for opcode, headline in _headlines():
        yield types.CompletionItem(opcode, kind=Kinds.Keyword, detail=headline)


def _modifiers(module: ModuleView, context: CursorContext) -> Items:
    for word, i in next_modifiers(context).items():
        slot = next(slot for slot in i.form.slots if i.bound.get(slot.name) == word)
        lacks = _lacking(module, i, word)
        yield types.CompletionItem(
            word,
            kind=Kinds.TypeParameter if slot.is_type else Kinds.EnumMember,
            detail=modifiers.meaning(slot, word, i.form.opcode) or None,
            documentation=lacks or None,
            sort_text="z" if lacks else None,
        )


def _lacking(module: ModuleView, i: Decoded, word: str) -> str:
    """What a modifier needs that the module does not give; empty where nothing is missing."""
    program = module.program
    for said, need in Page(i.of).needs:
        wanted = parse_need(need) if f".{word}" in said.split() else None
        if wanted is not None and not (gives(program.version, wanted.version) and wanted.met_by(program.target)):
            return f"needs {need}"
    return ""


# ── operands ────────────────────────────────────────────────────────────────────────────


def _operands(module: ModuleView, context: CursorContext, offset: int) -> Items:
    """The names that some form takes here; at a result first a register that is not used yet."""
    places = [(i, operand) for i in context.forms for operand in context.operands(i)]

    def fits(shape: Shape) -> bool:
        return any(_fits(shape, i, operand, context.bracket) for i, operand in places)

    for each in _names(module, offset, fits):
        if each.detail != NameKind.KERNEL.value or not calls(context.opcode):  # a kernel cannot be called (PTX 9.7.12.5)
            yield each
    yield from _special_registers(fits)


def _fits(shape: Shape, i: Decoded, operand: Operand, bracket: str) -> bool:
    """May a name of this shape stand for an operand, in the bracket that is open there?"""
    if operand.address != (bracket == "[") and not (operand.bare and not bracket) and not operand.items:
        return False
    if operand.group or bracket == "(":
        passed = (shape.kind == "register" and shape.type is not pred) or shape.space is Space.PARAM
        return bool(operand.group) and bracket == "(" and passed
    results = i.destinations()
    for name in operand.names:
        if shape.kind == "function" and "function" not in i.operand_type(name).marks:
            continue  # ptxas takes the address of a function as any number, which no author means
        if shape.kind == "special" and name in results:
            continue  # ptxas takes it as an element of a vector, and it is read-only (PTX 10)
        if not _is_meant(shape, i.type_of(name), i.operand_type(name).marks):
            continue
        wanted = [Shape("address", items=(shape,)) if operand.address else shape]
        if bracket == "{":
            wanted = [Shape("vector", items=(shape,) * count) for count in ELEMENTS]
        type, spec = i.type_of(name), i.operand_type(name)
        if any(not problem(each, type, spec, destination=name in results) for each in wanted):
            return True
    return False


def _is_meant(shape: Shape, type: Type | None, marks: frozenset[str]) -> bool:
    """Is it what stands beside `any` in a declaration?  Rules judge operands with that mark, and take nothing else."""
    kinds = marks & NAMED
    if "any" not in marks or not (kinds or type):
        return True
    if kinds:
        is_array = shape.kind == "variable" and shape.space is not Space.PARAM
        return shape.kind in kinds or (is_array and "table" in kinds)  # an array of targets
    return shape.kind == "register" and shape.type is not None and type is not None and holds(shape.type, type)


def _names(module: ModuleView, offset: int, fits: Callable[[Shape], bool]) -> Items:
    function = module.function_at(offset)
    if function is not None:
        for each in reversed(function.names.every):
            if each.first <= offset < each.last:
                yield from _name(function, each, offset, fits)
    for each in module.names.every:
        if (symbol := each.symbol(each.name)) is not None and fits(symbol.shape):
            yield types.CompletionItem(each.name, kind=KINDS[each.kind], detail=each.kind.value)


def _name(function: FunctionView, found: Definition, offset: int, fits: Callable[[Shape], bool]) -> Items:
    symbol = found.symbol(found.name)
    if symbol is None or not fits(symbol.shape):
        return
    said = f"{found.type}" if found.type is not None else found.kind.value
    if found.count is None:
        yield types.CompletionItem(found.name, kind=KINDS[found.kind], detail=said)
        return
    used = _used(function, found, offset)
    fresh = next((n for n in (*range(1, found.count), 0) if n < found.count and n not in used), None)
    if fresh is not None:
        yield types.CompletionItem(
            f"{found.name}{fresh}", kind=KINDS[found.kind], detail=f"{said}, not used yet", sort_text="n"
        )
    for number in sorted(used):
        yield types.CompletionItem(f"{found.name}{number}", kind=KINDS[found.kind], detail=said)


def _used(function: FunctionView, family: Definition, offset: int) -> set[int]:
    """The numbers of the registers of a family that the function names, but for the one that is being written."""
    pattern = re.compile(rf"(?<![\w$%]){re.escape(family.name)}(\d{{1,9}})(?![\w$])", re.ASCII)
    plain = function.module.plain
    found = pattern.finditer(plain, function.start, function.end)
    return {int(each[1]) for each in found if each.end() != offset and int(each[1]) < (family.count or 0)}


def _special_registers(fits: Callable[[Shape], bool]) -> Items:
    for register in SPECIAL.values():
        element = Shape("special", register.type, detail=register.name)
        vector = element._replace(items=(element,) * register.count) if register.count > 1 else element
        if fits(element) or fits(vector):
            name = register.name if register.value is not None else f"%{register.name}"
            yield types.CompletionItem(name, kind=Kinds.Constant, detail=register.meaning, sort_text="s")


def _components(module: ModuleView, context: CursorContext, offset: int) -> Items:
    special = SPECIAL.get(context.owner.removeprefix("%"))
    count = special.count if special is not None else 1
    if (found := module.resolve(context.owner, offset)) is not None and found.kind is NameKind.REGISTER:
        symbol = found.symbol(context.owner)
        count = symbol.count if symbol is not None else 1
    for component in "xyzw"[: count if count > 1 else 0]:
        yield types.CompletionItem(component, kind=Kinds.Field)


# ── directives ──────────────────────────────────────────────────────────────────────────


def _directives(context: CursorContext) -> Items:
    """What may follow in a directive or declaration: spaces, types, targets, directives of functions."""
    line = context.line
    if line.startswith(".version "):
        yield from _words(reversed([f"{major}.{minor}" for major, minor in VERSIONS]))
    elif line.startswith(".target "):
        yield from _words(str(target) for target in sorted(LOWEST, reverse=True))
    elif context.part is CursorPart.DIRECTIVE and line == ".":
        yield from _dotted(IN_BODY)
    elif line in {".", ""}:
        yield from _dotted(OF_MODULE, dot=line == "")
    elif line.endswith("."):
        yield from _after_dot(line)


def _after_dot(line: str) -> Items:
    if ")" in line and ".entry" in line:
        yield from _dotted(KERNEL_DIRECTIVES)
    elif ")" in line and ".func" in line:
        yield from _dotted(FUNCTION_DIRECTIVES)
    elif any(space in line for space in SPACES):
        yield from _dotted((".align", ".v2", ".v4", ".ptr"))
        yield from _dotted(sorted(TYPES))
    else:
        yield from _dotted((".entry", ".func", *sorted(SPACES)))


def _dotted(found: Iterable[str], *, dot: bool = False) -> Items:
    for word in found:
        type = Type.named.get(word[1:])
        said = DIRECTIVES[word][1] if word in DIRECTIVES else modifiers.type_in_words(type) if type is not None else None
        yield types.CompletionItem(word if dot else word[1:], kind=Kinds.Keyword, detail=said)


def _words(found: Iterable[str]) -> Items:
    for word in found:
        yield types.CompletionItem(word, kind=Kinds.Constant)

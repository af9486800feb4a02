"""Hover: what an instruction, modifier, operand, directive or type is, with an example that is computed on the spot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from lsprotocol import types

from ptxvm.analysis.program import Bound
from ptxvm.analysis.symbols import spelling
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.isa.model import Instruction
from ptxvm.isa.special_registers import SpecialRegister, lookup
from ptxvm.lsp.document import Document
from ptxvm.lsp.module import ModuleView, SourceWord
from ptxvm.lsp.names import Definition, NameKind
from ptxvm.reference import modifiers, words
from ptxvm.reference.directive_words import DIRECTIVES
from ptxvm.reference.examples import example_of
from ptxvm.reference.instruction_parts import modifiers_of, operands_of, requirements
from ptxvm.reference.markdown import code, escaped, table as plain_table
from ptxvm.reference.page import Page, find
from ptxvm.syntax import tree

MOST_PAGES = 3
"""The declarations of one opcode that a hover shows in full."""

Lines = Iterator[str]


def hover(document: Document, position: types.Position) -> types.Hover | None:
    """What stands at a position; None where there is nothing to say."""
    module, offset = document.module, document.text.offset(position)
    word = module.word_at(offset)
    if word is None:
        return None
    lines = list(_said(module, word, offset))
    if not lines:
        return None
    markdown = types.MarkupContent(types.MarkupKind.Markdown, "\n".join(lines))
    return types.Hover(markdown, document.text.range(word.start, word.end))


def _said(module: ModuleView, word: SourceWord, offset: int) -> Lines:
    """The hover of a word, as lines of Markdown."""
    node = module.instruction_at(offset)
    if node is not None and node.head_start <= word.start < node.head_end:
        yield from _of_head(module, node, word)
    elif word.is_dotted and (register := _component(module, word)) is not None:
        yield from of_special_register(register)
    elif word.is_dotted:
        yield from of_dotted(word.text)
    elif (found := module.resolve(word.text, word.start)) is not None:
        yield from of_definition(module, found, word.text)
    elif (register := lookup(word.text, _component_behind(module, word))) is not None and word.text[0] in "%W":
        yield from of_special_register(register)
    elif module.function_at(offset) is None and (target := words.target(word.text)) is not None:
        yield from (
            f"**{target[0]}**, a target; PTX {words.version(target[1])} and later have it",
            "",
            words.provides(target[0]),
        )


def _component(module: ModuleView, word: SourceWord) -> SpecialRegister | None:
    """The special register of which the word is a component: `x` in `%tid.x`."""
    owner = module.word_at(word.start - 1)
    return lookup(owner.text, word.text) if owner is not None and owner.text.startswith("%") else None


def _component_behind(module: ModuleView, word: SourceWord) -> str | None:
    behind = module.word_at(word.end + 1) if module.plain[word.end : word.end + 1] == "." else None
    return behind.text if behind is not None else None


# ── instructions ────────────────────────────────────────────────────────────────────────


def _of_head(module: ModuleView, node: tree.Instruction, word: SourceWord) -> Lines:
    """An opcode, or one of its modifiers."""
    bound = module.bound(node)
    if not word.is_dotted:
        yield from of_instruction(bound) if bound.decoded is not None else of_opcode(node.head)
    elif bound.decoded is not None:
        yield from _of_modifier(bound, word.text)
    else:
        yield from of_dotted(word.text)


def of_instruction(bound: Bound) -> Lines:
    """An instruction whose form is known: what it does, its modifiers and operands, and an example."""
    i = bound.i
    page = Page(i.of)
    yield from _fenced([f"{i.form.text};"])
    yield from (escaped(page.summary), "")
    if said := modifiers_of(i):
        yield from (*table(("modifier", "says"), [_cells(row) for row in said]), "")
    if bound.places and (operands := operands_of(bound)):
        rows = [(code(name), _in_code(text), escaped(what)) for name, text, what in operands]
        yield from (*table(("operand", "here", "is"), rows), "")
    if page.effects:
        yield from (f"Effects: {'; '.join(page.effects)}.", "")
    yield from (f"{page.section}; needs {requirements(i)}.", "")
    yield from of_example(i.of)


def of_opcode(name: str) -> Lines:
    """An opcode whose form cannot be told yet: all that it may be."""
    found = find(name) or find(name.partition(".")[0])
    for page in found[:MOST_PAGES]:
        yield from _fenced(page.syntax)
        yield from (escaped(page.summary), "", f"{page.section}.", "")
    if len(found) > MOST_PAGES:
        yield f"Also: {', '.join(dict.fromkeys(code(page.title) for page in found[MOST_PAGES:]))}."
    elif len(found) == 1:
        yield from of_example(found[0].of)


def _of_modifier(bound: Bound, word: str) -> Lines:
    """A modifier: what it says here, and what it needs."""
    i = bound.i
    for slot in i.form.slots:
        if i.bound.get(slot.name) == word or (":" not in word and word in str(i.bound.get(slot.name)).split("::")):
            whole = i.bound[slot.name]
            others = [f"`.{each}`" for each in slot.order if each != whole]
            said = modifiers.meaning(slot, whole, i.form.opcode)
            yield from (f"**.{whole}**, a modifier of `{i.opcode}`" + (f": {escaped(said)}" if said else ""), "")
            yield from (f"Needs {need}.\n" for need in _needs(i.of, whole))
            if others:
                yield f"In its place: {', '.join(others)}."
            return


def _needs(instruction: Instruction, word: str) -> list[str]:
    return [need for said, need in Page(instruction).needs if f".{word}" in said.split()]


@lru_cache(maxsize=1024)
def _example(instruction: Instruction) -> tuple[str, ...]:
    example = example_of(instruction)
    if example is None:
        return ()
    try:
        worked = example.work()
    except Unsupported:
        return ()
    rows = [tuple(code(cell) for cell in row) for row in worked.rows]
    return ("**Example**", "", *_fenced(worked.text.splitlines()), *table(worked.head, rows), "")


def of_example(instruction: Instruction) -> Iterable[str]:
    """A worked example, which is computed once."""
    return _example(instruction)


# ── names ───────────────────────────────────────────────────────────────────────────────


def of_definition(module: ModuleView, found: Definition, name: str) -> Lines:
    """A declared name: its declaration, and what the declaration says."""
    yield from _fenced([declaration(module, found)])
    yield _in_words(found, name)


def declaration(module: ModuleView, found: Definition) -> str:
    """The text of a declaration on one line, without the body of a function."""
    first, last = found.declared_at
    if isinstance(found.node, tree.Function) and found.node.body is not None:
        last = module.plain.find("{", found.end, last)
    return " ".join(module.plain[first:last].split())


def _in_words(found: Definition, name: str) -> str:
    symbol = found.symbol(name)
    match found.kind:
        case NameKind.REGISTER if found.type is not None:
            vector = f"{symbol.count} × " if symbol.count > 1 else ""
            return f"`{name}`, a register: {vector}{modifiers.type_in_words(found.type)}"
        case NameKind.VARIABLE | NameKind.PARAMETER if symbol is not None:
            size = f", {symbol.size} bytes" if symbol.size else ""
            aligned = f", aligned to {symbol.alignment}" if symbol.alignment > 1 else ""
            return f"`{name}`, a {found.kind.value} in `.{symbol.space}`: `{spelling(symbol)}`{size}{aligned}"
    return f"`{name}`, a {found.kind.value}"


def of_special_register(register: SpecialRegister) -> Lines:
    """A special register: what it holds."""
    vector = f".v{register.count}" if register.count > 1 else ""
    component = f".{'xyzw'[register.component]}" if register.component is not None else ""
    yield from (
        f"**{escaped(register.spelling + component)}**, {register.noun}, `{vector}.{register.type.name}`",
        "",
        register.meaning,
        "",
    )
    yield from (f"PTX ISA {register.section}; needs {register.needs}.", "")
    if register.always is not None:
        yield f"In ptxvm always {register.always}: {register.because}."


# ── words behind a dot ──────────────────────────────────────────────────────────────────


def of_dotted(word: str) -> Lines:
    """A directive, state space, linkage or type."""
    directive, type, needed = DIRECTIVES.get(f".{word}"), words.type_named(word), words.directive(word)
    if directive is not None:
        yield from (f"**.{word}**: {escaped(directive[1])}", "", f"PTX ISA {directive[0]}.", "")
    elif type is not None:
        yield from (f"**.{word}**, a type: {escaped(modifiers.type_in_words(type))}", "")
    else:
        for meaning, titles in words.uses(word).items():
            yield from (f"**.{word}**, a modifier: {escaped(meaning)}", "", f"Of {', '.join(map(code, titles))}.", "")
    if needed is not None:
        gone = f", until PTX {words.version(needed.until)}" if needed.until else ""
        yield f"Needs {words.need(needed.need)}{gone}."


# ── Markdown ────────────────────────────────────────────────────────────────────────────


def _fenced(lines: Iterable[str]) -> Lines:
    yield from ("```ptx", *lines, "```", "")


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Lines:
    """A table whose columns stand in line also where an editor shows the text as it is."""
    cells = [line[2:-2].split(" | ") for line in plain_table(head, list(rows))]
    widths = [max(len(row[n]) for row in cells) for n in range(len(head))]
    for row in cells:
        fill = "-" if set("".join(row)) == {"-"} else " "
        yield f"| {' | '.join(cell.ljust(width, fill) for cell, width in zip(row, widths, strict=True))} |"


def _cells(row: tuple[str, ...]) -> tuple[str, ...]:
    return code(row[0]), *(escaped(cell) for cell in row[1:])


def _in_code(text: str) -> str:
    return code(text.replace("`", "'"))

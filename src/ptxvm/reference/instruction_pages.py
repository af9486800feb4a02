"""The pages of the instructions, made from their declarations, and the lists of their families.

A page is an instruction: the declarations of a family that have one title.  Everything on it is read from them, but
for the examples, whose results are computed here, and the pictures, which are drawn from the same functions that the
machine uses.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from itertools import groupby

from ptxvm.dataclass import dataclass
from ptxvm.isa.catalog.logic import PERMUTATIONS
from ptxvm.isa.fragments import Fragment
from ptxvm.isa.matrix import variants_of_matrices
from ptxvm.isa.model import Decoded, Instruction
from ptxvm.reference import pictures
from ptxvm.reference.drawings import of_computation
from ptxvm.reference.examples import Computation, ExampleRun, WorkedExample, example_of
from ptxvm.reference.markdown import Files, also_called, code, escaped, prose, table, toctree
from ptxvm.reference.matrices import HELD, fragments_of, matrix_of, period
from ptxvm.reference.page import Page, pages
from ptxvm.reference.permutation import MODE_COLUMNS, mode_table
from ptxvm.reference.syntax_lines import hanging
from ptxvm.reference.words import SOUGHT

WORD = re.compile(r"\W+")
FOLDER = "reference/instructions"
COLUMNS = 78  # of a syntax line on a page
WIDE = 32  # columns of a fragment that is not drawn whole where it repeats itself


@dataclass(frozen=True)
class PageEntry:
    """An instruction of the site: its family and title, and the declarations that share them."""

    family: str
    title: str
    declarations: tuple[Page, ...]

    @property
    def slug(self) -> str:
        """The name of its file."""
        return WORD.sub("-", self.title).strip("-")

    @property
    def path(self) -> str:
        """Where it stands, without a suffix."""
        return f"{FOLDER}/{self.family}/{self.slug}"

    @cached_property
    def opcode(self) -> str:
        """The first word."""
        return self.declarations[0].of.forms[0].opcode


# ── the lists ───────────────────────────────────────────────────────────────────────────


def instruction_pages(opcodes: Collection[str] = ()) -> tuple[Files, list[PageEntry]]:
    """The pages of all instructions or those of some opcodes, with the lists of their families; and what they are of."""
    chapters = {
        chapter: [entry for entry in entries_of(of_family) if not opcodes or entry.opcode in opcodes]
        for chapter, of_family in pages().items()
    }
    chapters = {chapter: entries for chapter, entries in chapters.items() if entries}
    every = [entry for entries in chapters.values() for entry in entries]
    files = {f"{entry.path}.md": _page(entry, every) for entry in every}
    for chapter, entries in chapters.items():
        files[f"{FOLDER}/{entries[0].family}/index.md"] = _family(chapter, entries)
    files[f"{FOLDER}/index.md"] = _index(chapters)
    return files, every


def entries_of(of_family: Collection[Page]) -> list[PageEntry]:
    """The declarations of a family, by title."""
    titles = dict.fromkeys(page.title for page in of_family)
    grouped = {title: tuple(page for page in of_family if page.title == title) for title in titles}
    return [PageEntry(group[0].of.family, title, group) for title, group in grouped.items()]


def short_title(chapter: str) -> str:
    """The title of a chapter without what explains it and where it stands: `Asynchronous copies`."""
    return re.split(r", | \(", chapter)[0]


def _index(chapters: Mapping[str, Collection[PageEntry]]) -> str:
    """The list of the families."""
    lines = ["# Instructions", "", "By the chapters of the manual; `ptxvm isa OPCODE` prints the same on a terminal.", ""]
    for chapter, entries in chapters.items():
        linked = ", ".join(f"[{code(entry.title)}](/{entry.path}.md)" for entry in entries)
        lines += [f"## {escaped(chapter)}", "", linked, ""]
    named = {short_title(chapter): next(iter(entries)).family for chapter, entries in chapters.items()}
    return "\n".join([*lines, *toctree(f"{title} <{family}/index>" for title, family in named.items())])


def _family(chapter: str, entries: Collection[PageEntry]) -> str:
    """The list of a family."""
    rows = [(f"[{code(entry.title)}]({entry.slug}.md)", escaped(entry.declarations[0].headline)) for entry in entries]
    lines = [f"# {escaped(short_title(chapter))}", "", f"{escaped(chapter)}.", ""]
    lines += [*table(("instruction", "what it does"), rows), ""]
    return "\n".join([*lines, *toctree(entry.slug for entry in entries)])


# ── the page of an instruction ──────────────────────────────────────────────────────────


def _page(entry: PageEntry, every: Collection[PageEntry]) -> str:
    """All that is known of it."""
    lines = [f"# {code(entry.title)}", "", *also_called(_sought(entry))]
    for page in entry.declarations:
        summary = page.summary
        if len(entry.declarations) > 1:
            lines += [f"## {escaped(_heading(page))}", ""]
            summary = summary.removeprefix(f"{_heading(page)}.").strip()
        lines += [*_declaration(page, summary), ""]
    others = [other for other in every if other.opcode == entry.opcode and other is not entry]
    if others:
        linked = ", ".join(f"[{code(o.title)}](/{o.path}.md) ({o.family})" for o in others)
        lines += ["---", "", f"Others of this name: {linked}.", ""]
    return pictures.share("\n".join(lines))


def _sought(entry: PageEntry) -> list[str]:
    """What people search for when they want this page."""
    return [SOUGHT[entry.opcode]] if entry.opcode in SOUGHT else []


def _heading(page: Page) -> str:
    """What tells a declaration from the others of its title: the first part of what it does."""
    return re.split(r"[;:.](?: |$)", page.headline)[0]


def _declaration(page: Page, summary: str) -> Iterator[str]:
    """Meaning, where the heading does not say it, syntax, operands, needs, rules, exactness, example, pictures."""
    if summary:
        yield from (prose(summary), "")
    yield from ("```{code-block} text", *(part for line in page.syntax for part in hanging(line, COLUMNS)), "```", "")
    if page.operands:
        yield from (*table(("operand", "what it is"), [(code(name), escaped(meaning)) for name, meaning in page.operands]), "")
    needs = [(_needed_for(meaning), need) for meaning, need in page.needs]
    yield from (*table(("feature", "needs"), needs), "", f"Described in {page.section}.", "")
    if page.rules:
        yield from ("**Rules**", "")
        rows = [(f"[{each}](#{each.lower()})", escaped(said)) for each, said in page.rules]
        yield from (*table(("code", "what it says"), rows), "")
    if page.effects:
        yield from (f"**Effects:** it {'; '.join(page.effects)}.", "")
    yield from (f"**{word.capitalize()}.** {escaped(said)}\n" for word, said in page.of.exactness)
    yield from _example(page.of)
    yield from _drawn(page.of)


def _needed_for(meaning: str) -> str:
    """The modifiers, or the condition; `always` where there is none."""
    return " ".join(map(code, meaning.split())) if meaning.startswith(".") else escaped(meaning) or "always"


def _example(instruction: Instruction) -> Iterator[str]:
    """A worked example, computed now."""
    example = example_of(instruction)
    if example is None:
        return
    worked: WorkedExample = example.work()
    said = _circumstances(example) if isinstance(example, ExampleRun) else ""
    yield from (f"**Example.** {said}".strip(), "", "```{code-block} ptx", ":force:", "", *worked.text.splitlines(), "```", "")
    yield from (*table(worked.head, [tuple(code(cell) for cell in row) for row in worked.rows]), "")
    if isinstance(example, Computation):
        for drawing in of_computation(example.reading, example.bits):
            yield from ("```{raw} html", drawing, "```", "")


def _circumstances(example: ExampleRun) -> str:
    """What the kernel around an example is, and what its registers hold."""
    threads = f", of {example.threads} threads," if example.threads > 1 else ""
    held = ["`%r0` is the number of the thread"]
    if "%rd0" in example.text:
        held.append("`%rd0` points to the words 100, 101, ...")
    if "%rd1" in example.text and example.images:
        held.append("`%rd1` is a texture, linearly filtered, of 4 by 4 numbers 0.0 to 15.0")
    if "%rd2" in example.text and example.images:
        held.append("`%rd2` is a surface of 4 by 4 words 100 to 115")
    return f"A kernel{threads} in which {', '.join(held[:-1])}{' and ' if held[1:] else ''}{held[-1]}:"


# ── pictures ────────────────────────────────────────────────────────────────────────────


def _drawn(instruction: Instruction) -> Iterator[str]:
    """The pictures that an instruction has, each under its caption."""
    for caption, drawing in _pictures(instruction):
        if caption:
            yield from (caption, "")
        if drawing:
            yield from ("```{raw} html", drawing, "```", "")


def _pictures(instruction: Instruction) -> Iterator[tuple[str, str]]:
    match instruction.meaning.__name__:
        case "prmt":
            yield "Each hexadecimal digit of `c` picks a byte; with 8 added, that byte's sign (dashed).", ""
            yield "\n".join(["A mode takes two bits of `c`; the bytes of `d` are then these:", "", *_modes()]), ""
        case "lop3":
            for table in (0xCA, 0x96, 0xE8):
                yield f"`immLut` is the column of results, here 0x{table:02X}:", pictures.table_of_lop3(table)
        case "shfl_sync":
            yield from _shuffles()
        case _ if instruction.family in HELD:
            yield from _fragments(instruction)


def _modes() -> list[str]:
    """The bytes of prmt's result by its modes and `c`, the highest first."""
    rows = [
        (code(f".{mode}"), control, *map(code, selected)) for mode in PERMUTATIONS for control, *selected in mode_table(mode)
    ]
    return table(("mode", *MODE_COLUMNS), rows)


SHUFFLES = (("up", 2, 0), ("down", 2, 31), ("bfly", 1, 31), ("idx", 5, 31), ("down", 1, 0x181F))


def _shuffles() -> Iterator[tuple[str, str]]:
    """What lanes get, from a kernel in which each sends its own number."""
    for mode, amount, clamp in SHUFFLES:
        text = f"shfl.sync.{mode}.b32 %r1|%p1, %r0, {amount}, {clamp:#x}, -1;"
        rows = {name: values for name, *values in ExampleRun(text, 32, 32, ("%r1", "%p1")).work().rows}
        sources, found = [int(lane) for lane in rows["%r1"]], [word == "true" for word in rows["%p1"]]
        yield (
            f"`.{mode}` with b = {amount} and c = {clamp:#x}; a lane whose predicate is false keeps its own (dashed):",
            pictures.lanes_of_shuffle(text, sources, found),
        )


def _fragments(instruction: Instruction) -> Iterator[tuple[str, str]]:
    """Every different fragment of the legal variants, by shape; of A to D only where no other page has them."""
    found: dict[tuple[str, str, str], dict[str, Fragment]] = {}  # by shape, matrix and width; then by type
    as_dense = "metadata" in instruction.sources and instruction.family != "wgmma"
    for i in variants_of_matrices(instruction) if instruction.executes else ():
        for name, fragment in fragments_of(i).items():
            matrix = matrix_of(i, name)
            if as_dense and len(matrix) == 1:
                continue
            key = _shape_of(i), matrix + _order_of(matrix, fragment, i), str(fragment.width)
            found.setdefault(key, {}).setdefault(fragment.type.name, fragment)
    if as_dense:
        yield "B, C and D lie as those of a dense product, and the stored half of A as an A of half the depth.", ""
    if found:
        yield "**Fragments** by shape. Lane T*n* holds the elements of the matrix with the numbers named.", ""
    for shape, group in groupby(sorted(found, key=_order), key=lambda key: key[0]):
        drawn = "".join(_drawn_fragment(matrix, found[s, matrix, kind]) for s, matrix, kind in group)
        yield "", f"<details><summary>.{shape}</summary>{drawn}</details>"


def _shape_of(i: Decoded) -> str:
    """The shape, and `.m64nNk16` for all N: their fragments differ in length only; of tensor memory the shape of a tile."""
    return re.sub(r"^m64n\d+", "m64nN", i.mnk) if "mnk" in i.of.modifiers else str(i.tile)


def _drawn_fragment(matrix: str, of_types: Mapping[str, Fragment]) -> str:
    """The picture of fragments that differ in their type only; of wide ones, of the first columns, with how it goes on."""
    fragment, types = next(iter(of_types.values())), list(of_types)
    again = period(fragment) if fragment.shape[1] > WIDE else None
    if again is None:
        return pictures.matrix_of_fragment(matrix, fragment, types)
    return f"{pictures.matrix_of_fragment(matrix, again.of(fragment), types)}<p>{again.said}.</p>"


def _order_of(matrix: str, fragment: Fragment, i: Decoded) -> str:
    """What tells fragments of one matrix, shape and type apart: in `.m8n8k4` the order of the factors, `, .row`."""
    order = {"A": "alayout", "B": "blayout"}.get(matrix) if fragment.matrices > 1 else None
    return f", .{getattr(i, order)}" if order else ""


def _order(key: tuple[str, str, str]) -> tuple[tuple[int, ...], str, str]:
    shape, matrix, kind = key
    return tuple(map(int, re.findall(r"\d+", shape))), matrix, kind

"""The pages of the reference as Markdown (MyST), made from the declarations; `docs/conf.py` has Sphinx render them.

A page is an instruction: the declarations of a family that have one title.  Everything on it is read from them, but
for the examples, whose results are computed here, and the pictures, which are drawn from the same functions that the
machine uses.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path

from ptxvm.isa.fragments import Fragment
from ptxvm.isa.matrix import variants_with_shape
from ptxvm.isa.model import Decoded, Instruction
from ptxvm.reference import pictures
from ptxvm.reference.codes import every_code, page_of
from ptxvm.reference.examples import Run, WorkedExample, example_of
from ptxvm.reference.matrices import fragments_of, matrix_of
from ptxvm.reference.page import Page, pages

Files = dict[str, str]
"""Texts by their paths below the folder of the site."""

SPECIAL = re.compile(r"([\\*_\[\]<>#$~^{}|])")
WORD = re.compile(r"\W+")
BAR, ESCAPED_BAR = re.compile(r"(?<!\\)[|]"), r"\\|"


@dataclass(frozen=True)
class Entry:
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
        return f"reference/{self.family}/{self.slug}"

    @cached_property
    def opcode(self) -> str:
        """The first word."""
        return self.declarations[0].of.forms[0].opcode


def site(opcodes: Collection[str] = ()) -> Files:
    """Every file of the reference, or those of some opcodes and what belongs to them."""
    chapters = {
        chapter: [entry for entry in _entries(of_family) if not opcodes or entry.opcode in opcodes]
        for chapter, of_family in pages().items()
    }
    chapters = {chapter: entries for chapter, entries in chapters.items() if entries}
    every = [entry for entries in chapters.values() for entry in entries]
    files = {f"{entry.path}.md": _page(entry, every) for entry in every}
    for chapter, entries in chapters.items():
        files[f"reference/{entries[0].family}/index.md"] = _family(chapter, entries)
    files["reference/index.md"] = _index(chapters)
    return files | _codes(every)


def write(folder: Path, opcodes: Collection[str] = ()) -> None:
    """Write the site into a folder; files that are right already keep their time, so that Sphinx reads them once."""
    files = site(opcodes)
    for path, text in files.items():
        file = folder / path
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    for room in ("reference", "codes"):
        for file in (folder / room).rglob("*.md"):
            if str(file.relative_to(folder)) not in files:
                file.unlink()


def _entries(of_family: Collection[Page]) -> list[Entry]:
    """The declarations of a family, by title."""
    titles = dict.fromkeys(page.title for page in of_family)
    grouped = {title: tuple(page for page in of_family if page.title == title) for title in titles}
    return [Entry(group[0].of.family, title, group) for title, group in grouped.items()]


# ── the lists ───────────────────────────────────────────────────────────────────────────


def _index(chapters: Mapping[str, Collection[Entry]]) -> str:
    """The list of the families."""
    lines = ["# Instructions", "", "By the chapters of the manual; `ptxvm isa OPCODE` prints the same on a terminal.", ""]
    for chapter, entries in chapters.items():
        linked = ", ".join(f"[{_code(entry.title)}](/{entry.path}.md)" for entry in entries)
        lines += [f"## {_escaped(chapter)}", "", linked, ""]
    families = [next(iter(entries)).family for entries in chapters.values()]
    return "\n".join([*lines, *_toctree(f"{family}/index" for family in families)])


def _family(chapter: str, entries: Collection[Entry]) -> str:
    """The list of a family."""
    rows = [(f"[{_code(entry.title)}]({entry.slug}.md)", _escaped(entry.declarations[0].headline)) for entry in entries]
    lines = [f"# {_escaped(chapter)}", "", *_table(("instruction", "what it does"), rows), ""]
    return "\n".join([*lines, *_toctree(entry.slug for entry in entries)])


def _toctree(names: Iterator[str] | Collection[str]) -> list[str]:
    return ["```{toctree}", ":hidden:", ":maxdepth: 1", "", *names, "```", ""]


# ── the page of an instruction ──────────────────────────────────────────────────────────


def _page(entry: Entry, every: Collection[Entry]) -> str:
    """All that is known of it."""
    lines = [f"# {_code(entry.title)}", ""]
    for n, page in enumerate(entry.declarations, 1):
        if len(entry.declarations) > 1:
            lines += [f"## Form {n}", ""]
        lines += [*_declaration(page), ""]
    others = [other for other in every if other.opcode == entry.opcode and other is not entry]
    if others:
        linked = ", ".join(f"[{_code(o.title)}](/{o.path}.md) ({o.family})" for o in others)
        lines += ["---", "", f"Others of this name: {linked}.", ""]
    return "\n".join(lines)


def _declaration(page: Page) -> Iterator[str]:
    """Meaning, syntax, operands, needs, rules, exactness, example, pictures."""
    yield from (_prose(page.summary), "")
    yield from ("```{code-block} text", *page.syntax, "```", "")
    if page.operands:
        yield from (*_table(("operand", "what it is"), [(_code(name), _escaped(what)) for name, what in page.operands]), "")
    needs = [(_needed_for(what), need) for what, need in page.needs]
    yield from (*_table(("feature", "needs"), needs), "", f"Described in {page.section}.", "")
    if page.rules:
        yield from ("**Rules**", "")
        yield from (*_table(("code", "what it says"), [(_link(code), _escaped(said)) for code, said in page.rules]), "")
    if page.effects:
        yield from (f"**Effects:** it {'; '.join(page.effects)}.", "")
    yield from (f"**{word.capitalize()}.** {_escaped(said)}\n" for word, said in page.of.exactness)
    yield from _example(page.of)
    yield from _drawn(page.of)


def _needed_for(what: str) -> str:
    """The modifiers, or the condition; `always` where there is none."""
    return _code(what) if what.startswith(".") else _escaped(what) or "always"


def _example(instruction: Instruction) -> Iterator[str]:
    """A worked example, computed now."""
    example = example_of(instruction)
    if example is None:
        return
    worked: WorkedExample = example.work()
    said = _circumstances(example) if isinstance(example, Run) else ""
    yield from (f"**Example.** {said}".strip(), "", "```{code-block} ptx", ":force:", "", *worked.text.splitlines(), "```", "")
    yield from (*_table(worked.head, [tuple(_code(cell) for cell in row) for row in worked.rows]), "")


def _circumstances(example: Run) -> str:
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
            yield "Each hexadecimal digit of `c` picks a byte; with 8 added, that byte's sign (dashed):", _prmt(0x5A10)
            for mode in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16"):
                yield f"`.{mode}`:", _prmt(1, mode)
        case "lop3":
            for table in (0xCA, 0x96, 0xE8):
                yield f"`immLut` is the column of results, here 0x{table:02X}:", pictures.table_of_lop3(table)
        case "shfl_sync":
            yield from _shuffles()
        case name if instruction.family == "mma" or name.startswith(("wmma_load", "wmma_store")):
            yield from _fragments(instruction)


def _prmt(control: int, mode: str | None = None) -> str:
    return pictures.bytes_of_prmt(control, mode)


SHUFFLES = (("up", 2, 0), ("down", 2, 31), ("bfly", 1, 31), ("idx", 5, 31), ("down", 1, 0x181F))


def _shuffles() -> Iterator[tuple[str, str]]:
    """What lanes get, from a kernel in which each sends its own number."""
    for mode, amount, clamp in SHUFFLES:
        text = f"shfl.sync.{mode}.b32 %r1|%p1, %r0, {amount}, {clamp:#x}, -1;"
        rows = {name: values for name, *values in Run(text, 32, 32, ("%r1", "%p1")).work().rows}
        sources, found = [int(lane) for lane in rows["%r1"]], [word == "true" for word in rows["%p1"]]
        yield (
            f"`.{mode}` with b = {amount} and c = {clamp:#x}; a lane whose predicate is false keeps its own (dashed):",
            pictures.lanes_of_shuffle(text, sources, found),
        )


def _fragments(instruction: Instruction) -> Iterator[tuple[str, str]]:
    """Every different fragment of the legal variants, by shape."""
    found: dict[tuple[str, str, str], Fragment] = {}
    for i in variants_with_shape(instruction):
        for name, fragment in fragments_of(i).items():
            matrix = matrix_of(i, name)
            found.setdefault((i.mnk, matrix + _order_of(matrix, fragment, i), str(fragment.width)), fragment)
    if found:
        yield "**Fragments** by shape. Lane T*n* holds the elements of the matrix with the numbers named.", ""
    for shape, group in groupby(sorted(found, key=_order), key=lambda key: key[0]):
        drawn = "".join(pictures.matrix_of_fragment(matrix, found[s, matrix, kind]) for s, matrix, kind in group)
        yield "", f"<details><summary>.{shape}</summary>{drawn}</details>"


def _order_of(matrix: str, fragment: Fragment, i: Decoded) -> str:
    """What tells fragments of one matrix, shape and type apart: in `.m8n8k4` the order of the factors, `, .row`."""
    order = {"A": "alayout", "B": "blayout"}.get(matrix) if fragment.matrices > 1 else None
    return f", .{getattr(i, order)}" if order else ""


def _order(key: tuple[str, str, str]) -> tuple[tuple[int, ...], str, str]:
    shape, matrix, kind = key
    return tuple(map(int, re.findall(r"\d+", shape))), matrix, kind


# ── codes ───────────────────────────────────────────────────────────────────────────────


def _codes(entries: Collection[Entry]) -> Files:
    """The pages of the diagnostics: a page for each hundred."""
    breaks = {
        code: [entry for entry in entries if any(code == found for page in entry.declarations for found, _ in page.rules)]
        for code in every_code()
    }
    files, names = Files(), []
    for hundred, group in groupby(every_code(), key=lambda code: code[:3]):
        names.append(hundred.lower())
        lines = [f"# {hundred}xx", ""]
        for code in group:
            lines += [f"({code.lower()})=", "", *_code_page(code, breaks[code])]
        files[f"codes/{hundred.lower()}.md"] = "\n".join(lines)
    head = [
        "# Diagnostics",
        "",
        "Every finding of `ptxvm check` has a code; `ptxvm explain CODE` prints what stands here.",
        "",
    ]
    rows = [(_link(code), _escaped(page.title)) for code in every_code() if (page := page_of(code))]
    files["codes/index.md"] = "\n".join([*head, *_table(("code", ""), rows), "", *_toctree(names)])
    return files


def _code_page(code: str, broken_by: Collection[Entry]) -> Iterator[str]:
    page = page_of(code)
    if page is None:
        return
    yield from (f"## {code}: {_escaped(page.title.rstrip('.'))}", "")
    if page.explanation:
        yield from (_prose(page.explanation), "")
    if broken_by:
        yield from (f"A rule of {', '.join(f'[{_code(e.title)}](/{e.path}.md)' for e in broken_by)}.", "")


def _link(code: str) -> str:
    return f"[{code}](#{code.lower()})"


# ── Markdown ────────────────────────────────────────────────────────────────────────────


def _escaped(text: str) -> str:
    """Prose with nothing in it that Markdown takes for its own, but for `code`."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(part if part.startswith("`") else SPECIAL.sub(r"\\\1", part) for part in parts)


def _prose(text: str) -> str:
    """Paragraphs as they are; what is indented is code."""
    blocks = []
    for block in re.split(r"\n\s*\n", text):
        if block.startswith("    "):
            blocks.append("\n".join(["```{code-block} ptx", ":force:", "", *(x[4:] for x in block.splitlines()), "```"]))
        else:
            blocks.append(_escaped(block))
    return "\n\n".join(blocks)


def _code(text: str) -> str:
    """A text as it is written in a source; nothing for no text."""
    return f"`{text}`" if text else ""


def _table(head: tuple[str, ...], rows: Collection[tuple[str, ...]]) -> list[str]:
    """A table; a bar in a cell is one of the cell's own."""
    lines = [head, tuple("---" for _ in head), *rows]
    return [f"| {' | '.join(BAR.sub(ESCAPED_BAR, cell) for cell in line)} |" for line in lines]


__all__ = ["Entry", "site", "write"]

"""The pages of what `ptxvm` reports: diagnostics, a page for each hundred of their codes, and kinds of faults and findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby

from ptxvm.diagnostics import KINDS
from ptxvm.reference.codes import every_code, page_of
from ptxvm.reference.instruction_pages import PageEntry, short_title
from ptxvm.reference.markdown import Files, code, escaped, prose, table, toctree
from ptxvm.reference.page import chapter_of

FOLDER = "reference/diagnostics"
GROUPS = {
    "P01": "Text that cannot be read",
    "P02": "Names",
    "P03": "Instructions and operands",
    "P05": "Directives and declarations",
    "P06": "Modules that are linked",
    "P07": "Lints",
}
"""What the codes are about that belong to no instruction, by their first letters."""


def code_pages(entries: Collection[PageEntry]) -> Files:
    """The pages of the diagnostics, whose rules link to the instructions that have them."""
    breaks = {
        each: [entry for entry in entries if any(each == found for page in entry.declarations for found, _ in page.rules)]
        for each in every_code()
    }
    files, named, tables = Files(), {}, []
    for hundred, codes in ((key, list(group)) for key, group in groupby(every_code(), key=lambda each: each[:3])):
        title = f"{hundred}xx: {_subject(hundred, codes)}"
        named[title] = hundred.lower()
        lines = [f"# {title}", ""]
        for each in codes:
            lines += [f"({each.lower()})=", "", *_code_page(each, breaks[each])]
        files[f"{FOLDER}/{hundred.lower()}.md"] = "\n".join(lines)
        rows = [(_link(each), escaped(page.title)) for each in codes if (page := page_of(each))]
        tables += [f"## {_subject(hundred, codes)}", "", *table(("code", "what is wrong"), rows), ""]
    said = "Every finding of `ptxvm check` has a code; `ptxvm explain CODE` prints what stands here."
    below = toctree(f"{title} <{path}>" for title, path in named.items())
    return files | {f"{FOLDER}/index.md": "\n".join(["# Diagnostics", "", said, "", *tables, *below])}


def fault_page() -> Files:
    """The kinds of faults and findings."""
    lines = [
        "# Faults and findings",
        "",
        "What goes wrong while a kernel runs: `Fault.kind`, and the kind of a finding of the checks.",
        "`ptxvm explain KIND` prints the same.",
        "",
    ]
    for kind, page in KINDS.items():
        lines += [f"(fault-{kind})=", "", f"## {kind}", "", f"*{escaped(page.title)}.*", "", prose(page.explanation), ""]
    return {"reference/faults.md": "\n".join(lines)}


def _subject(hundred: str, codes: Sequence[str]) -> str:
    """What the codes of a hundred are about: the family that most of them are of, however many instructions it has."""
    if hundred in GROUPS:
        return GROUPS[hundred]
    known = [page for each in codes if (page := page_of(each))]
    chapters = Counter(chapter for page in known for chapter in dict.fromkeys(map(chapter_of, page.instructions)))
    return short_title(chapters.most_common(1)[0][0])


def _code_page(each: str, broken_by: Collection[PageEntry]) -> Iterator[str]:
    page = page_of(each)
    if page is None:
        return
    yield from (f"## {each}: {escaped(page.title.rstrip('.'))}", "")
    if page.explanation:
        yield from (prose(page.explanation), "")
    if broken_by:
        yield from (f"A rule of {', '.join(f'[{code(e.title)}](/{e.path}.md)' for e in broken_by)}.", "")
    if len(broken_by) == 1:
        yield from _declared(each, broken_by)


def _declared(each: str, broken_by: Collection[PageEntry]) -> Iterator[str]:
    """The syntax lines that a rule of one instruction is about, and where the manual has them."""
    declared = [page for entry in broken_by for page in entry.declarations if any(each == found for found, _ in page.rules)]
    lines = dict.fromkeys(line for page in declared for line in page.syntax)
    sections = dict.fromkeys(page.section for page in declared)
    yield from ("```{code-block} text", *lines, "```", "", f"See {', '.join(sections)}.", "")


def _link(each: str) -> str:
    return f"[{each}](#{each.lower()})"

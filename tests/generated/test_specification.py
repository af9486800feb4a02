"""No row of the tables of PTX ISA 6.4 is missing: instructions with all words of their syntax lines, registers, directives.

The declarations are held against the text of the specification (`../shared/spec`).  It was read from print, so its
misprints are mended first, by name.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import ptxvm
from ptxvm.isa.catalog import load_catalog
from ptxvm.isa.model import ISA, candidates
from ptxvm.isa.notation import Form, parse_forms
from ptxvm.isa.special_registers import lookup

load_catalog()

MOST = 30_000  # combinations of the modifiers of a line that are all tried; of a longer list every word is, with others
MISPRINTS = {
    "mul 24": "mul24", "shf1": "shfl", "vavg2": "vavrg2", ".ald": ".a1d", "d[[p]": "d|p", "ase1": "asel", "bse1": "bsel",
    "geom ctype": "geom.ctype", ".scope{.ss}{.vec}.scope": ".scope{.ss}{.vec}", "@p ": "", "d.dsel": "d{.dsel}",
    "p[|q]": "p{|q}", "d[|p]": "d{|p}", "(!)c": "{!}c", "var+imm": "var",
    "fma.rnd{.ftz}{.sat}.f16x2 d, a, b;": "fma.rnd{.ftz}{.sat}.f16x2 d, a, b, c;", "{1d,2d,3d}": "{.1d,.2d,.3d}",
    "{a1d,a2d}": "{.a1d,.a2d}",
}  # fmt: skip
LEFT_OUT = {"9.7.1.2": "\n.type = { .u16, .u32, .u64, .s16, .s32, .s64 };"}
NO_INSTRUCTIONS = {"9.7.11.1", "9.7.11.2"}  # braces, guards


@pytest.fixture(scope="module")
def text(shared: Path) -> str:
    """The specification."""
    path = shared / "spec" / "ptx-isa-6.4.md"
    if not path.is_file():
        pytest.skip(f"the specification is missing: no {path}")
    return path.read_text()


# ── instructions ────────────────────────────────────────────────────────────────────────


def test_reserved_keywords_are_opcodes(text: str) -> None:
    """Table 2."""
    table = text[text.index("Table 2 Reserved Instruction Keywords") : text.index("## 4.4. Identifiers")]
    for wrong, right in MISPRINTS.items():
        table = table.replace(wrong, right)
    words = re.findall(r"[a-z]\w*", table.partition("\n")[2])
    assert len(words) >= 90
    assert [word for word in words if word not in ISA.by_opcode] == []


def syntax(text: str) -> Iterator[tuple[str, str]]:
    """The section and the syntax block of every instruction of chapter 9."""
    chapter = text[text.index("#### 9.7.1.1. ") : text.index("# Chapter 10.\n")]
    heading = re.compile(r"^(?:#+ |\*\*)\**(9\.7\.\d+\.\d+)\. ", re.MULTILINE)
    marks = [*heading.finditer(chapter)]
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        section = chapter[mark.start() : following.start() if following else None]
        _, *lines = re.split(r"^(?:#+ |\*\*)\**Syntax\b", section, maxsplit=1, flags=re.MULTILINE)
        lines = re.split(r"^(?:#+ |\*\*)\**(?:[DS]e|PTX|Notes|Examples)", "".join(lines), maxsplit=1, flags=re.MULTILINE)
        blocks = re.findall(r"^```\n(.*?)^```", lines[0], re.MULTILINE | re.DOTALL)
        if blocks and mark[1] not in NO_INSTRUCTIONS:
            yield mark[1], "".join(blocks)


def mended(block: str) -> str:
    """A syntax block in the notation of the declarations."""
    block = re.sub(r"//.*|^.*defaults to.*$|^ *deprecated$", "", block, flags=re.MULTILINE)
    block = re.sub(r"[ \t]+", " ", block)
    for wrong, right in MISPRINTS.items():
        block = block.replace(wrong, right)
    inline: list[str] = []

    def named(choices: re.Match[str]) -> str:
        """`mul{.hi,.lo}` as `mul.choice1`."""
        inline.append(f".choice{len(inline)} = {{ {choices[1]} }};")
        return f".choice{len(inline) - 1}"

    block = re.sub(r"(\.\w+\s*=\s*\{)([^.}]+)\}", lambda m: m[1] + re.sub(r"(\w+)", r".\1", m[2]) + "}", block)
    block = re.sub(r"(?<=[a-z0-9.])\{(\s*\.\w+(?:\s*,\s*\.\w+)+\s*)\}", named, block)
    return "\n".join([block.replace("..", "."), *inline])


def spelled_out(block: str) -> list[str]:
    """One block for each opcode of `vop = { vadd, vsub };`."""
    found = re.search(r"^\s*(\w+)\s*=\s*\{([^}.]*)\}\s*;?", block, re.MULTILINE)
    if found is None:
        return [block]
    rest = block[: found.start()] + block[found.end() :]
    return [re.sub(rf"\b{found[1]}\b", opcode.strip(), rest) for opcode in found[2].split(",")]


def parts(block: str) -> list[str]:
    """One block for each run of lines that has definitions of its own, which come before those of the others."""
    definitions = re.findall(r"^\s*(?:\.\w+\s*=\s*)+\{[^}]*\}\s*;?", block, re.MULTILINE)
    closed = "\n".join(each.rstrip("; \n") + ";" for each in definitions)
    return [f"{closed}\n{part}" for part in re.split(r"\n\s*\n(?=\s*\w+\.)", block) if re.search(r"^\s*\w", part, re.MULTILINE)]


def unknown_words(form: Form) -> list[str]:
    """What no declared form has with other modifiers of a syntax line: a word, a count of operands, or the line itself."""
    options = [(*((None,) if slot.optional else ()), *slot.order) for slot in form.slots]
    known: set[str] = set()
    counts: set[tuple[int, int]] = set()
    size = 1
    for option in options:
        size *= max(1, len(option))
    fits = False
    for words in itertools.islice(itertools.product(*options), MOST) if size <= MOST else some(options):
        given = tuple(word for word in words if word)
        if not set(given) <= known or not fits:
            found = candidates(form.opcode, given)
            known |= {word for word in given if found}
            counts |= {each.form.counts for each in found}
            fits = fits or bool(found)
    wanted = {word for option in options for word in option if word}
    least, most = form.counts
    uncounted = [f"{n} operands" for n in range(least, most + 1) if not any(low <= n <= high for low, high in counts)]
    return sorted(wanted - known) + uncounted if fits else [form.text]


def some(options: list[tuple[str | None, ...]]) -> Iterator[tuple[str | None, ...]]:
    """Each pair of words of different slots, with the first and the last choices of the others."""
    for (a, first), (b, second) in itertools.combinations(enumerate(options), 2):
        for one, other in itertools.product(first, second):
            for end in (0, -1):
                yield tuple(one if n == a else other if n == b else option[end] for n, option in enumerate(options))


def test_syntax_lines_are_declared(text: str) -> None:
    """Every syntax line fits a form of a declaration, with every word of it."""
    missing, lines, sections = [], 0, set()
    for section, block in syntax(text):
        block = mended(block) + LEFT_OUT.get(section, "")  # noqa: PLW2901 - what it should have been
        for form in (form for each in spelled_out(block) for part in parts(each) for form in parse_forms(part)):
            lines += 1
            sections.add(section)
            if wrong := unknown_words(form):
                missing.append((section, form.text, wrong))
    assert missing == []
    assert lines >= 270
    assert len(sections) == 120


# ── registers and directives ────────────────────────────────────────────────────────────


def test_special_registers_are_known(text: str) -> None:
    """Table 3, and the headings of chapter 10."""
    table = text[text.index("Table 3 Predefined Identifiers") : text.index("## 4.5. Constants")]
    chapter = text[text.index("# Chapter 10.\n") : text.index("# Chapter 11.\n")]
    headings = re.findall(r"^#+ 10\.\d+\. Special Registers: (.*)$", chapter, re.MULTILINE)
    names = re.findall(r"%\w+", " ".join([table, *headings]).replace("\\_", "_"))
    names += [f"%pm{n}{width}" for n in range(8) for width in ("", "_64")] + [f"%envreg{n}" for n in range(32)]
    names = [name for name in names if name != "%envreg"]
    assert len(headings) == 23
    assert [name for name in names if lookup(name[1:]) is None] == []


DIRECTIVES = {
    ".version": "", ".target": "", ".address_size": ".address_size 64",
    ".align": ".global .align 8 .b8 a[8];", ".global": ".global .b32 a;", ".const": ".const .b32 a = 1;",
    ".shared": ".shared .b32 a;", ".extern": ".extern .global .b32 a;", ".visible": ".visible .global .b32 a;",
    ".weak": ".weak .global .b32 a;", ".common": ".common .global .b32 a;",
    ".entry": ".entry k { ret; }", ".func": ".func f { ret; }", ".param": ".entry k(.param .b32 a) { ret; }",
    ".alias": ".visible .func f; .visible .func g { ret; } .alias f, g;",
    ".reg": ".func f { .reg .b32 a; ret; }", ".local": ".func f { .local .b32 a; ret; }",
    ".branchtargets": ".func f { l: .branchtargets m; m: ret; }",
    ".calltargets": ".func f { ret; } .func g { l: .calltargets f; ret; }",
    ".callprototype": ".func f { l: .callprototype _ (.param .b32 _); ret; }",
    ".maxnreg": ".entry k .maxnreg 16 { ret; }", ".maxntid": ".entry k .maxntid 256 { ret; }",
    ".reqntid": ".entry k .reqntid 16, 4 { ret; }", ".minnctapersm": ".entry k .maxntid 256 .minnctapersm 4 { ret; }",
    ".noreturn": ".func f .noreturn { exit; }",
    ".pragma": '.pragma "nounroll";', ".section": ".section .debug_str { .b8 0 }",
    ".file": '.file 1 "a.cu"', ".loc": '.file 1 "a.cu"\n.func f { .loc 1 2 3\nret; }',
    ".attribute": ".global .attribute(.managed) .b32 a;",
}  # fmt: skip
"""Each directive in a module that has it."""
OLD_DIRECTIVES = {
    ".tex": ".tex .u32 t;",
    "@@dwarf": "@@DWARF .byte 0x2b",
    ".maxnctapersm": ".entry k .maxntid 256 .maxnctapersm 4 { ret; }",
}
"""Those that ended with PTX 1.5, 2.0 and 2.1."""
UNUSED = {".sreg"}  # special registers are declared by nobody: ptxas does not read it either


def test_directives_are_accepted(text: str) -> None:
    """Table 1, and the headings of chapter 11."""
    table = text[text.index("Table 1 PTX Directives") : text.index("### 4.3.2. Instruction Statements")]
    chapter = text[text.index("# Chapter 11.\n") : text.index("# Chapter 12.\n")]
    headings = re.findall(r"^#+ 11\.\d+\.\d+\. .*? Directives: (.*)$", chapter, re.MULTILINE)
    found = set(re.findall(r"\.[a-z_]+|@@\w+", re.sub(r"</?\w+>", "", table) + " ".join(headings).replace("\\_", "_")))
    assert len(found) >= 32
    assert sorted(found - {*DIRECTIVES, *OLD_DIRECTIVES, *UNUSED}) == []


@pytest.mark.parametrize("directive", [*DIRECTIVES, *OLD_DIRECTIVES])
def test_a_module_with_each_directive(directive: str) -> None:
    head = ".version 1.4\n.target sm_13\n" if directive in OLD_DIRECTIVES else ".version 6.4\n.target sm_70\n"
    source = head + (DIRECTIVES | OLD_DIRECTIVES)[directive] + "\n"
    assert [found.message for found in ptxvm.check(source) if found.severity == "error"] == []

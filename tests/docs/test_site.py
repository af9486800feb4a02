"""The reference: pages made from the declarations, and the site that Sphinx makes of them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ptxvm.algebra.types import Type
from ptxvm.diagnostics import KINDS
from ptxvm.isa.catalog import load_catalog
from ptxvm.isa.directives import FEATURES
from ptxvm.isa.fragments import mma_fragment, quarter_fragment
from ptxvm.isa.model import ISA
from ptxvm.isa.special_registers import SPECIAL, WARP
from ptxvm.isa.targets import LOWEST
from ptxvm.machine.settings import VARIABLES
from ptxvm.reference import matrices, pictures, site, type_words
from ptxvm.reference.code_pages import code_pages
from ptxvm.reference.example_table import COMPUTED, RUN
from ptxvm.reference.examples import ExampleRun, example_of
from ptxvm.reference.instruction_pages import SOUGHT, instruction_pages

ROOT = Path(__file__).parents[2]
HANDFUL = ("prmt", "lop3", "shfl", "atom", "ex2", "tanh")

load_catalog()


@pytest.fixture(scope="module")
def handful() -> site.Files:
    return site.site(HANDFUL)


def table_after(text: str, start: str) -> list[list[str]]:
    """The cells of the first table behind a text."""
    lines = iter(text[text.index(start) :].splitlines())
    rows = []
    for line in lines:
        if line.startswith("|"):
            rows.append([cell.strip().strip("`") for cell in line.strip("|").split("|")])
        elif rows:
            break
    return rows[2:]


# ── the pages ───────────────────────────────────────────────────────────────────────────


def test_a_page_has_what_the_declaration_says(handful):
    page = handful["reference/instructions/logic/prmt.md"]
    assert "prmt.b32{.mode} d, a, b, c;" in page
    assert "| always | PTX 2.0, sm_20 |" in page
    assert "PTX ISA 9.7.9.7" in page
    assert "Build a word from any four of the eight bytes of two words" in page


def test_an_example_shows_the_result_that_was_computed(handful):
    rows = table_after(handful["reference/instructions/logic/prmt.md"], "**Example.**")
    assert rows[-1] == ["out", "d", ".b32", "0x55ff1100", str(0x55FF1100)]


def test_an_example_of_lanes_ran_in_a_kernel(handful):
    rows = table_after(handful["reference/instructions/warp/shfl-sync.md"], "**Example.**")
    assert rows[0] == ["%r1", "2", "3", "4", "5", "6", "7", "6", "7"]
    assert rows[1] == ["%p1", *["true"] * 6, "false", "false"]


def test_an_example_of_mma_tells_the_elements_apart():
    """Lane 4g + t holds the elements 2t and 2t + 1 of rows g and g + 8 (PTX 9.7.14.5.6); element (r, n) is 10 r + n + 0.5."""
    mma = next(i for i in ISA.instructions if i.meaning.__name__ == "mma")
    rows = {name: [float(value) for value in values] for name, *values in example_of(mma).work().rows}
    lanes = [(lane // 4, 2 * (lane % 4)) for lane in range(8)]
    assert rows["%f1"] == [10 * row + column + 0.5 for row, column in lanes]
    assert rows["%f4"] == [10 * (row + 8) + column + 1.5 for row, column in lanes]


@pytest.mark.parametrize(
    ("name", "registers", "depth"),
    [("mma_alternate", ("%f1", "%f4"), 8), ("mma_small", ("%f1", "%f4"), 32), ("mma_f64", ("%fd3",), 4)],
)
def test_the_other_examples_of_mma_tell_rows_and_columns_apart(name, registers, depth):
    """D[r][n] is depth r n + 0.5; lane 4g + t holds the columns 2t and 2t + 1 (PTX 9.7.14.5)."""
    mma = next(i for i in ISA.instructions if i.meaning.__name__ == name)
    rows = {each: [float(value) for value in values] for each, *values in example_of(mma).work().rows}
    lanes = [(lane // 4, 2 * (lane % 4)) for lane in range(8)]
    assert rows[registers[0]] == [depth * row * column + 0.5 for row, column in lanes]
    if len(registers) > 1:
        assert rows[registers[1]] == [depth * (row + 8) * (column + 1) + 0.5 for row, column in lanes]


def test_the_picture_of_an_example_stands_behind_it(handful):
    """Four bytes are picked by 0x5A10, one of them its sign."""
    behind = handful["reference/instructions/logic/prmt.md"].partition("**Example.**")[2]
    assert behind.index("c = 0x5a10") < behind.index("A mode takes")


def test_what_is_bounded_is_said(handful):
    assert "**As silicon.** The ISA bounds the error" in handful["reference/instructions/float/ex2.md"]
    assert "**Within bound.** ptxvm rounds the true value" in handful["reference/instructions/half/tanh-approx.md"]
    assert "**Exact.** The ISA defines every bit" in handful["reference/instructions/logic/lop3.md"]


def test_every_rule_links_to_its_code(handful):
    codes = "".join(text for path, text in handful.items() if path.startswith("reference/diagnostics/"))
    anchors = set(re.findall(r"^\((p\d{4})\)=$", codes, re.MULTILINE))
    linked = {code for text in handful.values() for code in re.findall(r"\]\(#(p\d{4})\)", text)}
    assert linked
    assert linked <= anchors


def test_links_between_pages_lead_somewhere(handful):
    for text in handful.values():
        for link in re.findall(r"\]\(/([^)]+\.md)\)", text):
            assert link in handful


@pytest.mark.parametrize(("word", "page"), [("shuffle", "warp/shfl-sync"), ("atomic", "atomic/atom")])
def test_a_search_finds_an_instruction_by_its_common_name(handful, word, page):
    assert f"*Also called: {word}" in handful[f"reference/instructions/{page}.md"]


def test_common_names_are_those_of_opcodes():
    assert SOUGHT.keys() <= ISA.by_opcode.keys()


def test_every_register_type_target_and_kind_has_its_row(handful):
    tables = {
        name: handful[f"reference/{name}.md"] for name in ("special-registers", "types", "targets", "faults", "directives")
    }
    assert all(f"`%{name}`" in tables["special-registers"] for name in SPECIAL if name != "WARP_SZ")
    assert all(f"`.{name}`" in tables["types"] for name in Type.named if type_words.is_type(name))
    assert all(f"`{target}`" in tables["targets"] for target in LOWEST)
    assert all(f"## {kind}" in tables["faults"] for kind in KINDS)
    assert all(f"`{name}`" in tables["directives"] for name in FEATURES)


def test_environment_variables_are_those_that_the_package_has():
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    assert set(re.findall(r"PTXVM_[A-Z_]+", text)) == {variable.name for variable in VARIABLES}


def test_writing_again_leaves_pages_alone_and_removes_old_ones(tmp_path):
    site.write(tmp_path, ["prmt", "not"])
    page = tmp_path / "reference" / "instructions" / "logic" / "prmt.md"
    before = page.stat().st_mtime_ns
    site.write(tmp_path, ["prmt"])
    assert page.stat().st_mtime_ns == before
    assert not (tmp_path / "reference" / "instructions" / "logic" / "not.md").exists()


# ── the examples ────────────────────────────────────────────────────────────────────────


def test_examples_are_of_their_instructions():
    for instruction in ISA.instructions:
        example = example_of(instruction)
        opcodes = {form.opcode for form in instruction.forms}
        assert example is None or opcodes & set(re.findall(r"\w+", example.text)), instruction.name


def test_every_example_computes():
    for instruction in ISA.instructions:
        example = example_of(instruction)
        assert example is None or example.work().rows, instruction.name


def test_examples_are_of_instructions_that_there_are():
    declared = {f"{i.family}.{i.meaning.__name__}" for i in ISA.instructions}
    keys = [line.split()[0] for line in COMPUTED.splitlines() if line.strip()]
    keys += re.findall(r"^== (\S+) \|", RUN, re.MULTILINE)
    assert len(keys) == len(set(keys))
    assert set(keys) <= declared


def test_what_a_lane_does_not_write_is_shown_as_nothing():
    rows = ExampleRun("setp.eq.u32 %p1, %r0, 1;\n@%p1 exit;", 2, 2, ("%r0",)).work().rows
    assert rows == (("%r0", "0", "-"),)


# ── the pictures ────────────────────────────────────────────────────────────────────────

FRAGMENTS = [
    ("a", "f16", "m16n8k16"),
    ("b", "s8", "m16n8k32"),
    ("c", "f32", "m16n8k16"),
    ("a", "b1", "m16n8k256"),
    ("b", "tf32", "m16n8k8"),
    ("d", "f64", "m8n8k4"),
]


@pytest.mark.parametrize(("matrix", "type", "shape"), FRAGMENTS)
def test_the_pieces_of_a_picture_cover_the_matrix_once(matrix, type, shape):
    fragment = mma_fragment(matrix, Type.named[type], shape)
    covered = [
        (piece.row + n * piece.down, piece.column + n * (not piece.down), piece.lane, piece.first + n)
        for piece in matrices.pieces(fragment)
        for n in range(piece.count)
    ]
    assert sorted((row, column) for row, column, _, _ in covered) == [
        (row, column) for row in range(fragment.shape[0]) for column in range(fragment.shape[1])
    ]
    assert all(fragment.layout(lane, element) == (row, column) for row, column, lane, element in covered)
    assert {lane for _, _, lane, _ in covered} == set(range(WARP))


def test_a_quarter_of_the_warp_is_drawn():
    lanes = {piece.lane for piece in matrices.pieces(quarter_fragment("c", Type.named["f32"]))}
    assert lanes == {0, 1, 2, 3, 16, 17, 18, 19}


def test_pictures_are_xml_and_neutral():
    import xml.etree.ElementTree as ET

    drawn = [
        pictures.bytes_of_prmt(0x5A10),
        pictures.table_of_lop3(0xCA),
        pictures.lanes_of_shuffle("idx", [1, 0], [True, False]),
        pictures.matrix_of_fragment("A", mma_fragment("a", Type.named["f16"], "m16n8k16")),
    ]
    for svg in drawn:
        root = ET.fromstring(svg)  # noqa: S314  our own text
        assert root.get("fill") == "currentColor"
        assert not {"white", "black"} & {node.get("fill") for node in root.iter()}


def test_the_routing_of_bytes_is_drawn_from_the_selectors():
    svg = pictures.bytes_of_prmt(0x5A10)
    assert svg.count("<line ") == 4
    assert svg.count("stroke-dasharray") == 1  # the digit `a` takes a sign


def test_equal_cells_are_drawn_once():
    import xml.etree.ElementTree as ET

    fragment = mma_fragment("c", Type.named["f32"], "m16n8k16")
    drawn = [pictures.matrix_of_fragment(name, fragment) for name in "CD"]
    other = pictures.matrix_of_fragment("A", mma_fragment("a", Type.named["f16"], "m16n8k16"))
    first, again, last = ET.fromstring(f"<p>{pictures.share(''.join([*drawn, other]))}</p>")  # noqa: S314  our own text
    cells = [[node.get("id") for node in svg if node.get("id")] for svg in (first, again, last)]
    assert cells == [["cells-0"], [], ["cells-1"]]
    assert [node.get("href") for node in again if node.tag.endswith("use")] == ["#cells-0"]
    assert "T5: 2-3" in {text.text for text in first.iter("{http://www.w3.org/2000/svg}text")}


@pytest.fixture(scope="module")
def matrices_drawn() -> dict[str, dict[str, set[str]]]:
    """The captions of the pictures of fragments on the pages of mma and wmma, by page and shape."""
    files, _ = instruction_pages(("mma", "wmma"))
    assert all(len(text) < 300_000 for text in files.values())  # a page that is read in a moment
    found: dict[str, dict[str, set[str]]] = {}
    for path, text in files.items():
        shapes = found.setdefault(path.rpartition("/")[2], {})
        for shape, drawn in re.findall(r"<details><summary>\.(.*?)</summary>(.*?)</details>", text):
            shapes.setdefault(shape, set()).update(re.findall(r">(\w+: \d+ x \d+, [^<]*)<", drawn))
    return found


def test_the_matrices_of_wmma_are_those_of_its_tables(matrices_drawn):
    """PTX 9.7.15.3, 9.7.15.4.3 and 9.7.15.4.4: what `wmma.load` loads by shape, and that `wmma.store` stores D."""
    loads, stores = matrices_drawn["wmma-load-sync.md"], matrices_drawn["wmma-store-d-sync.md"]
    assert loads["m16n16k8"] == {"A: 16 x 8, .tf32", "B: 8 x 16, .tf32", "C: 16 x 16, .f32"}
    assert loads["m8n8k4"] == {"A: 8 x 4, .f64", "B: 4 x 8, .f64", "C: 8 x 8, .f64"}
    assert {"A: 16 x 16, .f16, .bf16", "A: 16 x 16, .s8, .u8", "C: 16 x 16, .f16", "C: 16 x 16, .f32, .s32"} <= loads[
        "m16n16k16"
    ]
    assert {"A: 8 x 128, .b1", "B: 128 x 8, .b1"} <= loads["m8n8k128"]
    factors = {caption for captions in loads.values() for caption in captions if caption[0] in "AB"}
    assert not [caption for caption in factors if re.search(r", \.[fs]32", caption)]
    assert {caption[:2] for captions in stores.values() for caption in captions} == {"D:"}


def test_the_matrices_of_a_product_have_types_that_go_together(matrices_drawn):
    """PTX 9.7.15.5.14: A and B are both of bytes or both of half bytes, both of bf16 or of tf32."""
    shapes = matrices_drawn["mma-sync-aligned.md"]
    assert {caption for caption in shapes["m8n8k16"] if caption[0] == "B"} == {"B: 16 x 8, .s8, .u8"}
    assert {caption for caption in shapes["m8n8k32"] if caption[0] == "B"} == {"B: 32 x 8, .s4, .u4"}


def test_a_page_of_diagnostics_is_named_after_what_most_of_its_codes_are_about():
    """An address is wrong in an mbarrier, too; P18xx are of loads and stores."""
    titles = {path: text.partition("\n")[0] for path, text in code_pages(()).items()}
    assert titles["reference/diagnostics/p18.md"] == "# P18xx: Loads and stores"
    assert titles["reference/diagnostics/p25.md"] == "# P25xx: Mbarrier objects"
    assert len(set(titles.values())) == len(titles)


# ── the site ────────────────────────────────────────────────────────────────────────────


def build(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Build the documentation from a copy of its sources; warnings are errors."""
    pytest.importorskip("sphinx", reason="the documentation needs Sphinx: pip install --group docs")
    pytest.importorskip("myst_parser")
    pytest.importorskip("furo")
    pytest.importorskip("sphinx_design")
    source, docs = folder / "source", ROOT / "docs"
    for beside in ("examples", "src"):  # the pages show parts of them
        (folder / beside).symlink_to(ROOT / beside)
    shutil.copytree(docs, source, ignore=shutil.ignore_patterns("reference", "__pycache__", "sessions.py", "front_pages.py"))
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", *options]
    # The sessions of the pages run in the repository itself.
    path = os.pathsep.join(filter(None, (str(ROOT / "src"), str(docs), os.environ.get("PYTHONPATH"))))
    environment = os.environ | {"PYTHONPATH": path, "PYTHONWARNINGS": "default"}
    done = subprocess.run([*command, source, folder / "html"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done


def test_a_part_of_the_site_builds(tmp_path):
    build(tmp_path, "-D", f"opcodes={','.join(HANDFUL)}", "-D", "sessions=0")  # tests/docs/test_readme.py runs these
    page = (tmp_path / "html" / "reference" / "instructions" / "logic" / "prmt.html").read_text()
    assert "<svg" in page
    assert "0x55ff1100" in page
    assert (tmp_path / "html" / "reference" / "diagnostics" / "p03.html").exists()
    index = SearchIndex(tmp_path / "html" / "searchindex.js")
    assert "reference/instructions/warp/shfl-sync" in index.pages_with("shuffle")
    assert "reference/instructions/atomic/atom" in index.pages_with("atomic")
    assert "reference/instructions/logic/prmt" in index.pages_with("permute")


class SearchIndex:
    """What the search of a built site knows: the stems of words, and the pages of each."""

    def __init__(self, file: Path) -> None:
        text = file.read_text(encoding="utf-8")
        self._index = json.loads(text[text.index("(") + 1 : text.rindex(")")])

    def pages_with(self, word: str) -> set[str]:
        """The pages that a search for the word lists."""
        from sphinx.search.en import SearchEnglish

        stem = SearchEnglish({}).stem(word)
        found = [self._index[part].get(stem, []) for part in ("terms", "titleterms")]
        return {self._index["docnames"][page] for pages in found for page in ([pages] if isinstance(pages, int) else pages)}


@pytest.mark.long
def test_the_whole_site_builds(tmp_path):
    build(tmp_path)
    for instruction in ISA.instructions:
        assert list((tmp_path / "html" / "reference" / "instructions" / instruction.family).glob("*.html"))


@pytest.mark.long
def test_whatever_can_be_computed_has_an_example():
    lacking = [
        f"{i.family}.{i.meaning.__name__}"
        for i in ISA.instructions
        if i.executes and i.effects <= {"cc"} and i.sources and example_of(i) is None
    ]
    assert not lacking, "give them a line in src/ptxvm/reference/example_table.py"

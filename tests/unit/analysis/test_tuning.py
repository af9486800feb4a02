"""Performance directives, clusters, pragmas and debugging directives; the verdicts are those of ptxas 13.5."""

from __future__ import annotations

import pytest

from ptxvm.analysis.check import analyse
from ptxvm.syntax.source import Source


def kernel(directives, body="ret;"):
    return f".entry k() {directives} {{ {body} }}"


@pytest.mark.parametrize(
    "directives",
    [
        ".maxntid 1024, 1024, 64",
        ".maxntid 32 .maxntid 64",
        ".reqntid 32 .minnctapersm 2 .maxnreg 16",
        ".reqnctapercluster 0 .explicitcluster",
        ".blocksareclusters .reqntid 32 .reqnctapercluster 2",
        '.pragma "nosuch", "nounroll";',
    ],
)
def test_what_ptxas_takes(errors, directives):
    assert errors(kernel(directives)) == []


@pytest.mark.parametrize(
    ("directives", "code", "place"),
    [
        (".maxntid 32, 0", "P0530", "0"),
        (".maxnreg 4294967297", "P0530", "4294967297"),
        (".minnctapersm 0 .maxntid 1", "P0530", "0"),
        (".maxntid 32 .reqntid 32", "P0531", ".reqntid 32"),
        (".maxclusterrank 4 .reqnctapercluster 2", "P0531", ".maxclusterrank 4"),
        (".blocksareclusters .reqntid 32", "P0531", ".blocksareclusters"),
        (".maxnctapersm 2 .maxntid 32", "P0508", ".maxnctapersm 2"),
        ('.pragma "frequency 5";', "P0533", '"frequency 5"'),
    ],
)
def test_what_ptxas_refuses(errors, directives, code, place):
    assert errors(kernel(directives)) == [(code, place)]


@pytest.mark.parametrize(
    ("head", "directives", "codes"),
    [
        ("7.7\n.target sm_80", ".explicitcluster", ["P0506", "P0507"]),
        ("7.8\n.target sm_90", ".explicitcluster", []),
        ("2.0\n.target sm_20", ".maxnctapersm 1 .maxntid 2", []),
        ("1.2\n.target sm_13", ".maxnreg 2", ["P0506"]),
        ("1.5\n.target sm_13", '.pragma "x";', ["P0506"]),
    ],
)
def test_versions_and_targets(errors, head, directives, codes):
    assert [code for code, _ in errors(f".version {head}\n{kernel(directives)}")] == codes


def test_a_directive_without_effect_is_a_warning():
    _, report = analyse(Source(f".version 6.4\n.target sm_75\n{kernel('.minnctapersm 2')}"))
    assert [(str(d.severity), d.code) for d in report.diagnostics] == [("warning", "P0532")]


@pytest.mark.parametrize(
    ("strings", "found"),
    [
        ('"nounroll"', []),
        ('"nounroll", "nosuch"', [("P0533", '"nosuch"')]),
        ('"nounroll "', [("P0533", '"nounroll "')]),
        ('""', [("P0533", '""')]),
        ('"frequency 5"', [("P0533", '"frequency 5"')]),
    ],
)
def test_pragmas_of_modules(errors, strings, found):
    """The others are refused when ptxas makes code, not when it only reads the module."""
    assert errors(f".pragma {strings};") == found


@pytest.mark.parametrize(
    ("function", "pragma", "code"),
    [
        (".entry k()", "used_bytes_mask 0x1", None),
        (".entry k()", "enable_smem_spilling", None),
        (".func f()", "enable_smem_spilling", "P0533"),
        (".entry k()", "frequency 5", None),
        (".entry k()", "frequency 0", "P0533"),
        (".entry k()", "frequency", "P0533"),
    ],
)
def test_pragmas_of_bodies(errors, function, pragma, code):
    found = errors(f'{function} {{ .pragma "{pragma}"; ret; }}')
    assert [each for each, _ in found] == [code] * (code is not None)


@pytest.mark.parametrize(("count", "codes"), [(11, []), (12, ["P0530"])])
def test_control_registers_of_functions(errors, count, codes):
    assert [code for code, _ in errors(f".func f() .abi_preserve_control {count} {{ ret; }}")] == codes


# ── debugging (PTX 11.5) ────────────────────────────────────────────────────────────────


def test_files(program, errors):
    assert program('.file 1 "a.cu"\n.file 2 "a.cu", 5, 6').files == {1: "a.cu", 2: "a.cu"}
    assert errors('.file 1 "a.cu"\n.file 1 "b.cu"') == [("P0540", "1")]
    assert errors('.file 4294967296 "a.cu"') == [("P0540", "4294967296")]
    assert [code for code, _ in errors(kernel("", '.file 1 "a.cu" ret;'))] == ["P0540"]
    assert [code for code, _ in errors('.version 3.1\n.target sm_20\n.file 1 "a.cu", 5')] == ["P0506"]


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (".loc 1 2 3\n.loc 1 9 9, function_name $L, inlined_at 1 2 3", None),
        (".loc 1 2 3\n.loc 1 9 9, function_name $L, inlined_at 1 9 9", "P0541"),
        (".loc 1 4294967296 1", "P0541"),
    ],
)
def test_locations(errors, lines, code):
    assert [each for each, _ in errors(kernel("", f"\n{lines}\nret;"))] == [code] * (code is not None)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (".b8 255, -128", None),
        (".b32 4294967296", None),
        (".b64 18446744073709551616", None),
        ("L: M: .b32 L-M .b64 .debug_abbrev+4", None),
        (".b64 .foo .b32 .debug_str+4", None),
        (".b64 .entry", "P0101"),
        ("\n.b32 .u32+4\n", "P0101"),
        (".b8 4294967551 .b16 8589934592", None),
        (".b8 256", "P0542"),
        (".b8 4294967552", "P0542"),
        (".b16 -4294967296", "P0542"),
        (".b16 -32769", "P0542"),
        (".b32 -2147483649", "P0542"),
        (".u8 1", "P0542"),
        (".b16 L", "P0542"),
        ("L: L: .b8 1", "P0202"),
    ],
)
def test_sections(errors, line, code):
    found = errors(f".section .debug_info {{ {line} }}")
    assert [each for each, _ in found] == [code] * (code is not None)


@pytest.mark.parametrize(("name", "codes"), [(".own", []), (".u32", ["P0101"]), (".maxntid", ["P0101"])])
def test_names_of_sections(errors, name, codes):
    """Words of types, state spaces and directives are none."""
    assert [each for each, _ in errors(f".section {name} {{ .b8 1 }}")] == codes


@pytest.mark.parametrize(
    ("version", "line", "place"),
    [
        ("1.5", ".b8 1", ".section"),
        ("6.5", "L: .b8 1", "L:"),
        ("3.1", ".b32 L+4", ".b32 L+4"),
        ("7.4", ".b8 -1", ".b8 -1"),
        ("7.4", ".b32 a-b", ".b32 a-b"),
    ],
)
def test_the_versions_of_sections(errors, version, line, place):
    target = "sm_13" if version < "2" else "sm_20"
    found = errors(f".version {version}\n.target {target}\n.section .debug_info {{ {line} }}")
    assert found == [("P0506", place)]


def test_dwarf_lines_ended_with_2_0(errors):
    text = '.version {}\n@@DWARF .section .debug_info, "", @progbits\n@@DWARF .byte 1'
    assert errors(text.format("1.4\n.target sm_10")) == []
    assert errors(text.format("2.0\n.target sm_20")) == [("P0508", "@@DWARF")]

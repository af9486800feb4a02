"""Findings for tools: ptxas's lines, JSON, SARIF."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib import metadata
from xml.etree import ElementTree as ET

import pytest

from ptxvm.diagnostics import Diagnostic, Severity, Span, all_codes, render
from ptxvm.isa.catalog import load_catalog
from ptxvm.syntax import Source, parse

TEXT = ".version 8.7\n.target sm_90a\n.entry k()\n{\n  mov.u32 %r1, 5\n  ret;\n}\n"


def findings(*more: Diagnostic):
    source = Source(TEXT, "dir/a b.ptx")
    return [(source, [*parse(source)[1], *more])]


SEMANTIC = Diagnostic(Severity.ERROR, "P0998", "our words", Span(37, 40), 4, 1, ptxas="Unknown modifier '.x'")
LATER = Diagnostic(Severity.WARNING, "P0998", "a warning", Span(60, 61), 7, 1)


def test_ptxas_names_the_line_where_it_stumbles():
    assert render(findings(), "ptxas") == (
        "ptxas dir/a b.ptx, line 6; fatal   : Parsing error near 'ret': syntax error\n"
        "ptxas fatal   : Ptx assembly aborted due to errors\n"
    )


def test_ptxas_says_once_of_an_instruction_that_its_operands_do_not_fit():
    source = Source("add.u32 %f1, %f2, 1; add.u32 %f1, 1, 2;", "k.ptx")
    said = "Arguments mismatch for instruction 'add'"
    found = [Diagnostic(Severity.ERROR, "P0304", "ours", Span(n, n + 3), 1, 1, ptxas=said) for n in (8, 13, 29)]
    assert render([(source, found)], "ptxas").count(said) == 2


def test_ptxas_reads_no_further_than_an_error_of_syntax():
    assert render(findings(SEMANTIC, LATER), "ptxas") == (
        "ptxas dir/a b.ptx, line 4; error   : Unknown modifier '.x'\n"
        "ptxas dir/a b.ptx, line 6; fatal   : Parsing error near 'ret': syntax error\n"
        "ptxas fatal   : Ptx assembly aborted due to errors\n"
    )


def test_ptxas_looks_for_symbols_at_the_end():
    name = Diagnostic(Severity.ERROR, "P0998", "ours", Span(0, 1), 1, 1, ptxas="Unknown symbol 'x'", consequences="a\nb")
    assert render([(Source(TEXT, "k.ptx"), [LATER, name])], "ptxas") == (
        "ptxas k.ptx, line 1; error   : a\n"
        "ptxas k.ptx, line 1; error   : b\n"
        "ptxas k.ptx, line 7; warning : a warning\n"
        "ptxas k.ptx, line 1; error   : Unknown symbol 'x'\n"
        "ptxas fatal   : Ptx assembly aborted due to errors\n"
    )


def test_ptxas_without_errors():
    source = Source(TEXT, "k.ptx")
    assert render([(source, [LATER])], "ptxas") == "ptxas k.ptx, line 7; warning : a warning\n"
    assert render([(source, [])], "ptxas") == ""


@pytest.mark.parametrize(
    "body",
    [
        "add.u32 %r1, _, %r2;",
        "mov.u32 %r1, 5\nret;",
        "mov.u32 %r1, [a-4];",
        "ld.u32 %r1, [a;",
        "mov. u32 %r1, 5;",
        "foo 5 6;",
        "{",
        "mov.u32 %r1, 08;",
        "mov.u32 %r1, %tid.x.y;",
    ],
)
def test_the_lines_are_those_of_ptxas_itself(tmp_path, body):
    """Where a ptxas is installed."""
    if shutil.which("ptxas") is None:
        pytest.skip("no ptxas on the path")
    path = tmp_path / "k.ptx"
    path.write_text(f".version 8.0\n.target sm_80\n.address_size 64\n.entry k()\n{{\n.reg .b32 %r<9>;\n{body}\n")
    answer = subprocess.run(["ptxas", "-arch=sm_80", str(path), "-o", "/dev/null"], capture_output=True, text=True, check=False)
    source = Source.read(path)
    ours = render([(source, parse(source)[1])], "ptxas")
    assert ours == answer.stdout + answer.stderr


def test_json():
    objects = json.loads(render(findings(SEMANTIC), "json"))
    assert [each["code"] for each in objects] == ["P0102", "P0998"]
    first = objects[0]
    assert first["file"] == "dir/a b.ptx"
    assert first["severity"] == "error"
    assert (first["line"], first["column"], first["end_line"], first["end_column"]) == (5, 17, 5, 17)
    assert TEXT[: first["start"]].endswith("5")
    assert first["related"][0]["message"] == "before this"
    assert TEXT[first["related"][0]["start"] : first["related"][0]["end"]] == "ret"
    assert all(each.keys() == first.keys() for each in objects)


def test_json_of_nothing_is_an_empty_list():
    assert json.loads(render([], "json")) == []


def test_a_rule_of_an_instruction_has_a_sentence_and_no_name_in_sarif():
    load_catalog()
    log = json.loads(render(findings(Diagnostic(Severity.ERROR, "P1701", "ours", Span(37, 40), 4, 1)), "sarif"))
    rule = next(each for each in log["runs"][0]["tool"]["driver"]["rules"] if each["id"] == "P1701")
    assert rule["shortDescription"]["text"].startswith(".ftz needs .f32")
    assert "name" not in rule


def test_sarif():
    log = json.loads(render(findings(SEMANTIC, LATER), "sarif"))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["P0102", "P0998"]
    assert rules[0]["shortDescription"]["text"] == "missing semicolon"
    assert rules[0]["name"] == "MissingSemicolon"
    assert [rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"]] == [True] * 3
    assert [result["level"] for result in run["results"]] == ["error", "error", "warning"]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "dir/a%20b.ptx"
    assert place["region"] == {
        "startLine": 5,
        "startColumn": 17,
        "endLine": 5,
        "endColumn": 17,
        "charOffset": 57,
        "charLength": 0,
    }
    assert run["results"][0]["relatedLocations"][0]["message"]["text"] == "before this"
    assert run["columnKind"] == "unicodeCodePoints"


def test_junit_has_a_test_case_for_each_source():
    """Control characters, which XML cannot have, are question marks."""
    warned, fine = Source(TEXT, "warned.ptx"), Source(TEXT, "fine\x01.ptx")
    text = render([*findings(replace(SEMANTIC, message="our\x1b words")), (warned, [LATER]), (fine, [])], "junit")
    report = ET.fromstring(text)  # noqa: S314 - our own
    assert report.attrib == {"name": "ptxvm", "tests": "3", "failures": "1", "errors": "0", "skipped": "0"}
    wrong, doubtful, right = report.iter("testcase")
    assert [case.get("name") for case in (wrong, doubtful, right)] == ["dir/a b.ptx", "warned.ptx", "fine?.ptx"]
    failure = wrong.find("failure")
    assert failure is not None
    assert failure.get("type") == "P0102"
    assert "error[P0998]: our? words" in str(failure.text)
    assert "warning[P0998]: a warning" in str(doubtful.findtext("system-out"))
    assert not list(right)


def test_github_has_a_line_for_each_finding():
    """The escapes are those of GitHub's toolkit: of `%` and line ends, in properties of `:` and `,` too."""
    source, move = Source(TEXT, "a:b,c.ptx"), TEXT.index("mov")
    on_a_line = Diagnostic(Severity.ERROR, "P0998", "our words", Span(move, move + 3))
    nowhere = Diagnostic(Severity.WARNING, "P0998", "a warning", Span(move, move))
    over_lines = Diagnostic(Severity.NOTE, "P0998", "100%", Span(move, len(TEXT) - 2), help="do\nthis")
    assert render([(source, [on_a_line, nowhere, over_lines])], "github") == (
        "::error file=a%3Ab%2Cc.ptx,line=5,endLine=5,col=3,endColumn=5,title=P0998::our words\n"
        "::warning file=a%3Ab%2Cc.ptx,line=5,endLine=5,col=3,endColumn=3,title=P0998::a warning\n"
        "::notice file=a%3Ab%2Cc.ptx,line=5,endLine=7,title=P0998::100%25%0Ahelp: do%0Athis\n"
    )


def test_an_unknown_format_names_those_that_there_are():
    with pytest.raises(ValueError, match="text, ptxas, json, sarif, junit, github"):
        render([], "xml")


def test_the_package_loads_neither_numpy_nor_rich_nor_the_renderers():
    """With the room alone: `ptxvm` itself opens others."""
    program = """
import sys, types
package = types.ModuleType("ptxvm")
package.__path__ = [sys.argv[1]]
sys.modules["ptxvm"] = package
import ptxvm.diagnostics, ptxvm.syntax
print(sorted({"numpy", "llvmlite", "rich", "ptxvm.diagnostics.terminal", "ptxvm.diagnostics.sarif"} & set(sys.modules)))
"""
    import ptxvm.diagnostics

    folder = ptxvm.diagnostics.__file__.rsplit("/", 2)[0]
    done = subprocess.run([sys.executable, "-c", program, folder], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_every_code_explains_itself():
    for code in [code for code in all_codes() if code.code.startswith("P01")]:
        assert len(code.explanation) > 60, code.code
        assert str(code).startswith(f"{code.code}: {code.title}\n\n")


def test_sarif_of_a_package_without_metadata_has_version_0(monkeypatch):
    def missing(_: str) -> str:
        raise metadata.PackageNotFoundError

    monkeypatch.setattr(metadata, "version", missing)
    (run,) = json.loads(render(findings(), "sarif"))["runs"]
    assert run["tool"]["driver"]["version"] == "0"

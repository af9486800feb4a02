"""`ptxvm check`."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import pytest

from ptxvm.cli import check
from ptxvm.diagnostics import Diagnostic, Severity

GOOD = """\
.version 6.4
.target sm_75
.address_size 64
.visible .entry k()
{
    .reg .b32 %r<3>;
    add.u32 %r1, %r2, 1;
    ret;
}
"""
BAD = GOOD.replace("add.u32", "add.u31")


def test_a_module_without_errors(ptxvm, module):
    done = ptxvm("check", module(GOOD))
    assert (done.code, done.out, done.err) == (0, "m.ptx: no errors\n", "")


def test_an_error_with_its_place(ptxvm, module):
    done = ptxvm("check", module(BAD))
    assert done.code == 1
    assert done.err == ""
    assert done.out.startswith(
        """\
error[P0305]: '.u31' does not fit here in 'add'
 --> m.ptx:7:8
  |
7 |     add.u31 %r1, %r2, 1;
  |        ^^^^
"""
    )
    assert done.out.endswith("\n\n1 error in m.ptx\n")


def test_several_files_are_summed_up(ptxvm, module):
    good, bad, worse = module(GOOD, "a.ptx"), module(BAD, "b.ptx"), module(BAD.replace("%r2", "%q"), "c.ptx")
    assert ptxvm("check", good, good).out == "no errors in 2 files\n"
    assert ptxvm("check", bad, worse).out.endswith("\n2 errors in 2 files\n")
    assert ptxvm("check", good, bad, worse).out.endswith("\n2 errors in 2 of 3 files\n")


def test_the_standard_input(ptxvm, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(BAD.encode())))
    done = ptxvm("check", "-")
    assert done.code == 1
    assert "--> <stdin>:7:8" in done.out


def test_as_ptxas_prints_it(ptxvm, module):
    done = ptxvm("check", "--format", "ptxas", module(BAD), module(GOOD, "good.ptx"))
    assert done.code == 1
    assert done.out == (
        "ptxas m.ptx, line 7; error   : Unknown modifier '.u31'\n"
        "ptxas m.ptx, line 7; error   : Unexpected instruction types specified for 'add'\n"
        "ptxas fatal   : Ptx assembly aborted due to errors\n"
    )


@pytest.mark.parametrize("form", ["json", "sarif"])
def test_formats_for_tools_are_one_document(ptxvm, module, form):
    done = ptxvm("check", "--format", form, module(BAD), module(BAD, "other.ptx"))
    assert done.code == 1
    document = json.loads(done.out)
    found = document if form == "json" else document["runs"][0]["results"]
    assert len(found) == 2


def test_a_target_takes_the_place_of_the_module_s_own(ptxvm, module):
    # PTX 9.7.8.6: lop3 requires sm_50 or higher.
    name = module(GOOD.replace("add.u32 %r1, %r2, 1", "lop3.b32 %r1, %r2, %r2, %r2, 1"))
    assert ptxvm("check", name).code == 0
    done = ptxvm("check", name, "--target", "sm_35")
    assert done.code == 1
    assert "requires .target sm_50" in done.out


def test_a_warning_is_no_reason_to_fail(ptxvm, module, monkeypatch):
    class Report:
        diagnostics = (Diagnostic(Severity.WARNING, "P0999", "doubtful", line=1, column=1),)

    monkeypatch.setattr(check, "analyse", lambda *_: (None, Report))
    done = ptxvm("check", module(GOOD))
    assert done.code == 0
    assert done.out.endswith("\n1 warning in m.ptx\n")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["nix.ptx"], "ptxvm check: no such file: 'nix.ptx'"),
        (["m.ptx", "nix.ptx"], "ptxvm check: no such file: 'nix.ptx'"),
        (["m.ptx", "--format", "jsn"], "ptxvm check: no such format: 'jsn'; did you mean `json`?"),
        (["m.ptx", "--format", "x"], "ptxvm check: no such format: 'x'; there are text, ptxas, json, sarif, junit, github"),
        (
            ["m.ptx", "--target", "turing"],
            "ptxvm check: no target is called 'turing'; targets are written as sm_75 or sm_100a",
        ),
    ],
)
def test_a_wrong_call_gets_one_line(ptxvm, module, words, line):
    module(BAD)
    done = ptxvm("check", *words)
    assert (done.code, done.out, done.err) == (2, "", line + "\n")


# ── folders, patterns, suppressions ─────────────────────────────────────────────────────


@pytest.fixture
def folder(tmp_path):
    """Modules in folders, of which one is wrong."""
    (tmp_path / "kernels" / "more").mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    (tmp_path / "kernels" / "good.ptx").write_text(GOOD)
    (tmp_path / "kernels" / "more" / "bad.ptx").write_text(BAD)
    (tmp_path / "kernels" / "notes.txt").write_text("no module")
    return tmp_path


def test_folders_and_patterns(ptxvm, folder):
    assert ptxvm("check", "kernels").out.endswith("\n1 error in 1 of 2 files\n")
    assert ptxvm("check", "kernels/*.ptx").out == "kernels/good.ptx: no errors\n"
    assert ptxvm("check", "kernels/**/b*.ptx").code == 1
    assert ptxvm("check", str(folder / "kernels" / "g*")).code == 0
    assert ptxvm("check", "empty").err == "ptxvm check: there is no .ptx file in 'empty'\n"
    assert ptxvm("check", "none/*.ptx").err == "ptxvm check: no file matches 'none/*.ptx'\n"


def test_findings_that_a_file_suppresses(ptxvm, folder):
    (folder / "known").write_text("# what is known\nP0305 kernels/*/bad.ptx:7  # a type to come\n")
    assert ptxvm("check", "kernels", "--suppress", "known").out == "no errors in 2 files (1 suppressed)\n"
    (folder / "known").write_text("P0305 kernels/*/bad.ptx:8\nrace\n")
    done = ptxvm("check", "kernels", "--suppress", "known")
    assert done.code == 1
    assert done.err == "known:1: nothing matches 'P0305 kernels/*/bad.ptx:8'\nknown:2: nothing matches 'race'\n"


@pytest.mark.parametrize("code", ["P0305", "P0201", "P0702", "P1701", "race"])
def test_each_kind_of_code_can_be_suppressed_by_a_command_that_has_loaded_nothing(folder, code):
    """Those of instructions are declared in the catalog, which a command has not read when it reads the file."""
    (folder / "known").write_text(code)
    command = [sys.executable, "-m", "ptxvm", "check", "kernels/good.ptx", "--suppress", "known"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=True)
    assert done.stderr == f"known:1: nothing matches '{code}'\n"


def test_findings_that_a_comment_suppresses(ptxvm, module):
    below = BAD.replace("    add", "    // ptxvm: allow P0305\n    add")
    assert ptxvm("check", module(below)).out == "m.ptx: no errors (1 suppressed)\n"
    beside = BAD.replace("1;", "1; // ptxvm: allow P0301, P0305")
    assert ptxvm("check", module(beside)).code == 0
    assert ptxvm("check", module(BAD.replace("1;", "1; // ptxvm: allow race"))).code == 1


def test_files_of_suppressions_that_are_wrong(ptxvm, module, tmp_path):
    good = module(GOOD)
    assert ptxvm("check", good, "--suppress", "none").err.startswith("ptxvm check: cannot read 'none': No such file")
    for text, said in (
        ("\nrac", "line 2: no such code: 'rac'; did you mean `race`?"),
        ("P9999", "line 1: no such code: 'P9999'; a finding names its code"),
        ("race a b", "line 1: 'race a b' is no suppression; write CODE FILE:LINE, such as race kernels/*.ptx:22"),
    ):
        (tmp_path / "known").write_text(text)
        done = ptxvm("check", good, "--suppress", "known")
        assert (done.code, done.err) == (2, f"ptxvm check: known: {said}\n")


def test_lints_are_notes_and_no_errors(ptxvm, module):
    """`%r1` is written and never read; a module with errors has no lints."""
    done = ptxvm("check", "--lint", module(GOOD))
    assert done.code == 0
    assert done.out.startswith("note[P0702]: '%r1' is written and never read\n --> m.ptx:7:13\n")
    assert done.out.endswith("1 note in m.ptx\n")
    assert "P0702" not in ptxvm("check", "--lint", module(BAD)).out
    assert "P0702" not in ptxvm("check", module(GOOD)).out

"""`ptxvm examples`: what comes with the package, and that a wheel has it."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from ptxvm.cli.examples import names

ROOT = Path(__file__).parents[3]
SOURCES = [path for path in (ROOT / "examples").iterdir() if path.suffix in (".cu", ".ptx")]
CASES = list((ROOT / "tests" / "litmus" / "cases").iterdir())


def test_all_examples_and_litmus_tests_are_listed(ptxvm):
    listed = ptxvm("examples").out.splitlines()
    assert sorted(listed) == sorted([*(path.name for path in SOURCES), *(f"litmus/{path.name}" for path in CASES)])
    assert listed == names()


def test_one_is_printed_as_it_is(ptxvm):
    assert ptxvm("examples", "saxpy.ptx").out == (ROOT / "examples" / "saxpy.ptx").read_text()


def test_an_unknown_one_is_refused(ptxvm):
    done = ptxvm("examples", "saxpi.ptx")
    assert done.code == 2
    assert "there is no example 'saxpi.ptx'; did you mean `saxpy.ptx`?" in done.err


def test_a_wheel_has_their_contents(tmp_path, monkeypatch):
    buildapi = pytest.importorskip("flit_core.buildapi", reason="a wheel is built by flit_core")
    monkeypatch.chdir(ROOT)
    with zipfile.ZipFile(tmp_path / buildapi.build_wheel(str(tmp_path))) as wheel:
        assert wheel.read("ptxvm/samples/saxpy.ptx") == (ROOT / "examples" / "saxpy.ptx").read_bytes()
        assert {f"ptxvm/samples/{name}" for name in names()} <= set(wheel.namelist())
        assert {"ptxvm/report/templates/page.html", "ptxvm/report/templates/page.css"} <= set(wheel.namelist())

"""The test suite that the page about `ptxvm-ptxas` shows, run as lit runs it, with the back end of LLVM that is here."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "ptxas.md"
LLC = """\
import sys
from llvmlite import binding as llvm

llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
options = dict(word.lstrip("-").split("=") for word in sys.argv[1:])
machine = llvm.Target.from_triple(options["mtriple"]).create_target_machine(cpu=options["mcpu"])
print(machine.emit_assembly(llvm.parse_assembly(sys.stdin.read())))
"""
MAIN = "from ptxvm.cli.ptxas import main; raise SystemExit(main())"


@pytest.fixture
def commands(tmp_path):
    """The environment in which the programs of the page are."""
    (tmp_path / "llc.py").write_text(LLC)
    programs = {
        "llc": f"'{tmp_path / 'llc.py'}'",
        "ptxvm-ptxas": f"-c '{MAIN}'",
    }
    for name, words in programs.items():
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\nexec '{sys.executable}' {words} \"$@\"\n")
        path.chmod(0o755)
    return os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}


def test_the_suite_of_the_page_verifies_what_llvm_writes(tmp_path, commands):
    page = PAGE.read_text(encoding="utf-8")
    (module,) = re.findall(r"^```llvm\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (verify,) = re.findall(r'\("%ptxas-verify", "(.*?)"\)', page)
    assert "import lit.formats" in page
    (tmp_path / "add.ll").write_text(module)
    (line,) = (line for line in re.findall(r"^; RUN: (.*)", module, re.MULTILINE) if "%ptxas-verify" in line)
    line = line.replace("%ptxas-verify", verify).replace("%s", "add.ll")
    for target, code in ((line, 0), (line.replace("-arch=sm_75", "-arch=sm_70"), 255)):
        done = subprocess.run(["/bin/sh", "-c", target], cwd=tmp_path, env=commands, capture_output=True, check=False)
        assert done.returncode == code, done.stderr
        assert bool(done.stderr) is bool(code)

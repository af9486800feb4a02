"""Every command and code block of README.md and docs/ runs, and prints what is shown.

    ```python    is run; the blocks of a file share their names, as in one session
    ```console   `$ command` is run in the repository; what follows is what it prints, `...` stands for any lines
    ```sh        is run, line by line
    ```ptx       has no errors, where it is a module; `// error` in it asks for one

`<!-- not run: WHY -->` before a block says that it is not.  Other languages are not run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

import ptxvm
from ptxvm.cli.failures import WRONG_CALL
from ptxvm.cli.ptxas import REFUSED

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GENERATED = DOCS / "reference"
DOCUMENTS = [ROOT / "README.md", *sorted(p for p in DOCS.rglob("*.md") if GENERATED not in p.parents)]
BLOCK = re.compile(
    r"(?:<!-- not run: (?P<why>[^>]*?) -->\s*\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\[[^\]]*\]\((?!https?:|#|mailto:)([^)#]+)[^)]*\)")


@dataclass(frozen=True)
class Block:
    """A fenced block: where it starts, its language and text, and why it is not run."""

    path: Path
    line: int
    language: str
    text: str
    why: str | None = None

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}"


def blocks(path: Path) -> list[Block]:
    """The fenced blocks of a file that have a language."""
    source = path.read_text(encoding="utf-8")
    return [
        Block(path, source.count("\n", 0, m.start("language")) + 1, m["language"], m["text"], m["why"])
        for m in BLOCK.finditer(source)
    ]


def of(*languages: str) -> list[object]:
    """The blocks of some languages in all documents, as parameters."""
    found = [block for path in DOCUMENTS for block in blocks(path) if block.language in languages]
    return [pytest.param(block, id=str(block)) for block in found]


def matches(shown: str, printed: str) -> bool:
    """Is this what was shown?  A line `...` stands for any lines, `...` within one for any text."""
    pattern = "".join(
        r"(?:.*\n)*" if line.strip() == "..." else re.escape(line.rstrip()).replace(r"\.\.\.", ".*") + r"[ ]*\n"
        for line in shown.strip("\n").splitlines()
    )
    said = printed.strip("\n")
    return re.fullmatch(pattern, said and f"{said}\n") is not None


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """Runs a command line in a copy of what a user has: the project's commands are this Python's."""
    beside = tmp_path_factory.mktemp("bin")
    for name, entry in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"].items():
        module, _, function = entry.partition(":")
        command = beside / name
        code = f"import sys; from {module} import {function}; sys.exit({function}())"
        command.write_text(f"#!/bin/sh\nexec '{sys.executable}' -c '{code}' \"$@\"\n")
        command.chmod(0o755)
    (beside / "python").symlink_to(sys.executable)
    environment = os.environ | {
        "PATH": f"{beside}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(filter(None, (str(Path(ptxvm.__file__).parents[1]), os.environ.get("PYTHONPATH")))),
        "COLUMNS": "80",
        "NO_COLOR": "1",
        "PTXVM_CACHE": str(tmp_path_factory.mktemp("kept")),
    }

    def run(line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", line],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=600,
        )

    return run


# ── the blocks ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_python_blocks_run(path, monkeypatch):
    found = [block for block in blocks(path) if block.language == "python" and block.why is None]
    if not found:
        pytest.skip("has none")
    monkeypatch.chdir(ROOT)
    names = {"__name__": "__main__"}
    for block in found:
        exec(compile("\n" * block.line + block.text, str(path), "exec"), names)  # noqa: S102


@pytest.mark.parametrize("block", of("console"))
def test_console_blocks_print_what_they_show(block, shell):
    if block.why is not None:
        pytest.skip(block.why)
    sessions = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE)
    assert sessions, "a console block has lines that start with `$ `"
    for command, shown in sessions:
        done = shell(command)
        assert done.returncode in (0, 1, WRONG_CALL, REFUSED), done.stdout
        assert matches(shown, done.stdout), f"{command} prints\n{done.stdout}\nand not\n{shown}"


@pytest.mark.parametrize("block", of("sh", "bash", "shell"))
def test_commands_run(block, shell):
    if block.why is not None:
        pytest.skip(block.why)
    for line in block.text.splitlines():
        if line.strip() and not line.startswith("#"):
            done = shell(line)
            assert done.returncode == 0, f"{line}: {done.stdout}"


@pytest.mark.parametrize("block", of("ptx"))
def test_modules_have_the_errors_that_they_announce(block):
    if block.why is not None or ".version" not in block.text:
        pytest.skip(block.why or "no whole module")
    errors = [d for d in ptxvm.check(block.text) if d.severity == "error"]
    assert bool(errors) == ("// error" in block.text), errors


# ── what the README says beside them ────────────────────────────────────────────────────


def test_what_the_saxpy_of_the_readme_prints(monkeypatch, capsys):
    """The comment at `print(y)` is what it prints."""
    block = next(b for b in blocks(ROOT / "README.md") if b.language == "python")
    monkeypatch.chdir(ROOT)
    exec(block.text, {})  # noqa: S102
    (shown,) = re.findall(r"print\(y\)\s*# (.*)", block.text)
    assert capsys.readouterr().out == f"{shown}\n"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_to_files_lead_somewhere(path):
    for link in LINK.findall(CODE.sub("", BLOCK.sub("", path.read_text(encoding="utf-8")))):
        target = (path.parent / link).resolve()
        assert target.exists() or GENERATED in target.parents, link


def test_targets_of_make_are_those_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for path in DOCUMENTS:
        for target in re.findall(r"(?:^|`)make ([a-z-]+)", path.read_text(encoding="utf-8"), re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{path.name}: make {target}"


def test_errors_of_the_readme_are_those_of_the_package():
    named = set(re.findall(r"`ptxvm\.([A-Z]\w+)`", (ROOT / "README.md").read_text(encoding="utf-8")))
    assert named
    assert all(hasattr(ptxvm, name) for name in named)


# ── the rules of the blocks ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\nb\n", "a\n", False),
        ("a\n...\n", "a\nb\nc\n", True),
        ("...\nc\n", "a\nb\n", False),
        ("took ... ms\n", "took 12 ms\n", True),
        ("", "", True),
    ],
)
def test_three_dots_stand_for_anything(shown, printed, same):
    assert matches(shown, printed) == same


def test_a_block_that_is_not_run_says_why(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("<!-- not run: it needs a network -->\n```sh\ncurl x\n```\n\n```python\nx = 1\n```\n")
    assert [(b.language, b.why) for b in blocks(path)] == [("sh", "it needs a network"), ("python", None)]


def test_make_is_there_where_the_readme_wants_it():
    if shutil.which("make") is None:
        pytest.skip("no make")
    done = subprocess.run(["make", "-n", "help"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0

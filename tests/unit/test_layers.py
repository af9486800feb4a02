"""The rooms of the package stay apart at run time too; `make layers` checks the imports that stand in the source."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import ptxvm

ROOT = Path(__file__).parents[2]
PACKAGE = Path(ptxvm.__file__).parent


def loaded_by(statement: str) -> set[str]:
    """The top-level modules, and the rooms of ptxvm, that a fresh Python has after `statement`."""
    command = f"import sys; {statement}; print(*sys.modules)"
    names = subprocess.run([sys.executable, "-c", command], check=True, capture_output=True, text=True).stdout.split()
    return {name for name in names if "." not in name or name.startswith("ptxvm.")}


def test_import_brings_no_room_and_the_names_no_command_line_and_no_compiler():
    assert not {name for name in loaded_by("import ptxvm") if name.startswith("ptxvm.")}
    assert not loaded_by("import ptxvm; ptxvm.load; ptxvm.Fault") & {"click", "llvmlite", "numpy", "pydantic", "rich", "typer"}


def test_every_public_name_is_there_when_it_is_used():
    """`campaign` is a room that can be called, and called `ptxvm.campaign`."""
    assert all(getattr(ptxvm, name).__name__.removeprefix("ptxvm.") == name for name in ptxvm.__all__)


@pytest.mark.parametrize("room", ["algebra", "analysis", "diagnostics", "isa", "syntax"])
def test_the_specification_needs_no_back_end(room):
    # The parent package is stood in for, so that only the room itself and what it asks for are loaded.
    alone = (
        f"import types; parent = types.ModuleType('ptxvm'); parent.__path__ = [{str(PACKAGE)!r}]; "
        f"sys.modules['ptxvm'] = parent; import ptxvm.{room}"
    )
    assert not loaded_by(alone) & {"llvmlite", "ml_dtypes", "numpy", "ptxvm.engine", "ptxvm.machine", "rich", "typer"}


def launched() -> set[str]:
    """What a fresh Python has loaded after a launch of compiled code."""
    return loaded_by(
        f"import numpy, ptxvm; kernel = ptxvm.load({str(ROOT / 'examples' / 'saxpy.ptx')!r}).kernel(); "
        "kernel.launch(1, 32, [32, 2.0, numpy.ones(32, numpy.float32), numpy.ones(32, numpy.float32)], engine='jit')"
    )


def test_a_launch_loads_what_it_needs(tmp_path, monkeypatch):
    """That is no profiler and no log; and where the code is on disk no compiler, and no search for spin loops."""
    monkeypatch.setenv("PTXVM_CACHE", str(tmp_path))
    none_needs = {
        "logging",
        "ml_dtypes",
        "ptxvm.engine.jit.memory.access_counters",
        "ptxvm.machine.tensor_products",
        "ptxvm.machine.tensor_unit",
        "ptxvm.profile",
    }
    compiled = launched()
    assert {"llvmlite", "ptxvm.engine.jit.translate"} <= compiled
    assert not compiled & none_needs
    kept = {"llvmlite", "ptxvm.engine.jit.ir.builder", "ptxvm.engine.jit.translate", "ptxvm.engine.spin_loops"}
    assert not launched() & (none_needs | kept)


def test_oracles_know_the_package_from_outside():
    """What they expect must not come from what they judge: they import `ptxvm`, and no room of it."""
    inner = set()
    for path in (ROOT / "tests" / "oracle").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            inner |= {f"{path.name}: {name}" for name in names if name.startswith("ptxvm.")}
    assert inner == set()


def test_the_package_is_typed():
    assert (PACKAGE / "py.typed").exists()


def test_the_locks_agree_and_name_every_core_dependency():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    core = {requirement.split(">=")[0].replace("_", "-") for requirement in project["dependencies"]}
    run, dev = (locked(ROOT / "locks" / name) for name in ("run.txt", "dev.txt"))
    assert core <= run.keys()
    assert run.items() <= dev.items()


def locked(lock: Path) -> dict[str, str]:
    """The version of each distribution in a lock."""
    heads = (line.split(" ")[0] for line in lock.read_text().splitlines() if "==" in line and not line.startswith(" "))
    return dict(head.split("==") for head in heads)


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_no_module_exports_what_it_only_imports(path: Path) -> None:
    """A name in `__all__` counts as used, so an import that is there and nowhere else would never be missed; packages may."""
    names: set[str] = set()
    imported: set[str] = set()
    for node in ast.parse(path.read_text()).body if path.name != "__init__.py" else ():
        match node:
            case ast.Import() | ast.ImportFrom():
                imported |= {alias.asname or alias.name for alias in node.names}
            case ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List(elts=exported)):
                names = {each.value for each in exported if isinstance(each, ast.Constant)}
    assert names & imported == set()


def folders(path: Path) -> set[str]:
    """The folders within one that have files, but for byte code, which outlives its sources."""
    return {each.name for each in path.iterdir() if any(file.is_file() and file.suffix != ".pyc" for file in each.rglob("*"))}


def test_unit_tests_stand_in_the_folders_of_the_rooms():
    assert folders(ROOT / "tests" / "unit") - {"tools"} <= folders(PACKAGE)
    assert folders(ROOT / "tests" / "unit") >= {"algebra", "analysis", "diagnostics", "isa", "syntax", "machine", "engine"}


def test_every_folder_of_tests_is_explained():
    listed = (ROOT / "CONTRIBUTING.md").read_text()
    assert {name for name in folders(ROOT / "tests") if f"| `{name}/`" not in listed} == set()

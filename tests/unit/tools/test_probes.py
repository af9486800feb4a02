"""Coverage by instrumentation, against coverage.py's tracer on the same program."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import probes
import pytest
from coverage import Coverage, CoverageData

PROGRAM = '''"""Statements and branches of each kind, some of them run."""

from __future__ import annotations

import contextlib
import functools


@functools.cache
@functools.wraps(
    len,
)
def conditions(number):
    """Of a condition one branch or both are run; the last one ends a function."""
    if number:
        number += 1
    if (
        number > 5
        or number < -5
    ):
        number = 5
    elif number == 2:
        number = 2
    elif number == 1:
        return 1
    else:
        number -= 1
    if number == 100:
        number = 1


def loops(numbers):
    for number in numbers:
        if number == 3:
            break
        if number == 2:
            continue
        while number:
            number -= 1
    else:
        number = 9
    while True:
        for _ in range(number):
            if number:
                return [each for each in numbers
                        if each]
    return 0


def exceptions(call):
    try:
        call()
        number = 1
    except ZeroDivisionError:
        number = 2
        if number:
            raise
    except KeyError:
        number = 3
    else:
        number = 4
    finally:
        if number:
            number = 5
    with contextlib.suppress(KeyError):
        if number:
            return call()
    try:
        pass
    except:
        number = 6
    return number


def patterns(value):
    match value:
        case 1 | 2:
            found = 1
        case [first, *_] if first:
            found = 2
        case {"one": _}:
            found = 3
    match value:
        case str():
            return found
        case int() as found:
            found = 4
        case _:
            found = 5
    match value:
        case 1:
            found = 6
        case [found]:
            found = 7


class Outer:
    """Bodies of classes are run where they stand."""

    field: int
    if len("ab") > 1:
        other = 1
    else:
        other = 2

    class Inner:
        pass

    def method(self):
        global seen
        seen = lambda: (
            1
        )

        def within():
            yield 1
            yield 2
            seen = 3

        return next(within())

    def only_a_docstring(self):
        """Nothing else."""


if __name__ == "never":
    Outer().only_a_docstring()

conditions(1)
conditions(7)
loops([1, 2, 3])
loops([1])
for call in ({1: 1}.popitem, {}.popitem, lambda: None):
    exceptions(call)
with contextlib.suppress(ZeroDivisionError):
    exceptions(lambda: 1 / 0)
patterns(1)
patterns([3])
Outer().method()
'''


def report(data: CoverageData, folder: Path) -> dict[str, object]:
    """What coverage.py reports of the one file in its data."""
    data.write()
    coverage = Coverage(data_file=data.data_filename(), config_file=False)
    coverage.load()
    coverage.json_report(outfile=str(folder / "report.json"))
    (file,) = json.loads((folder / "report.json").read_text())["files"].values()
    return {
        name: file[name] for name in ("executed_lines", "missing_lines", "executed_branches", "missing_branches", "summary")
    }


def test_coverage_py_reports_the_same_after_its_tracer_and_after_probes(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    traced = ["-m", "coverage", "run", "--branch", "--data-file=traced", "--rcfile=/dev/null", program.name]
    subprocess.run([sys.executable, *traced], cwd=tmp_path, check=True)
    oracle = CoverageData(str(tmp_path / "traced"))
    oracle.read()

    tree, arcs = probes.with_probes(program.read_bytes())
    passed = [False] * len(arcs)
    exec(compile(tree, program, "exec"), {"__name__": "__main__", probes.LIST: passed})  # noqa: S102  the program above
    found = CoverageData(str(tmp_path / "found"))
    found.add_arcs({str(program): probes.arcs_run(program, passed)})

    expected = report(oracle, tmp_path)
    assert expected["missing_lines"]
    assert expected["missing_branches"]
    assert report(found, tmp_path) == expected


@pytest.fixture
def one_module(tmp_path, monkeypatch) -> ModuleType:
    """A module of a package `ptxvm` that is no other than that, imported with probes."""
    package = tmp_path / "ptxvm"
    package.mkdir()
    (package / "sign.py").write_text("def sign(x):\n    if x < 0:\n        return -1\n    return 1\n")
    monkeypatch.setattr(probes, "SOURCE", package)
    monkeypatch.setattr(probes, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(probes, "passed", {})
    spec = probes.Finder().find_spec("ptxvm.sign", [str(package)])
    module = ModuleType(spec.name)
    spec.loader.exec_module(module)
    return module


def test_processes_that_ran_different_branches_have_run_both(one_module, tmp_path):
    file = str(tmp_path / "ptxvm" / "sign.py")
    one_module.sign(1)
    assert not all(probes.passed[file])
    other = bytes(probes.passed[file])
    probes.passed[file][:] = [False] * len(other)
    one_module.sign(-1)
    assert not all(probes.passed[file])
    probes.add({file: other})
    assert all(probes.passed[file])


def test_probes_that_were_passed_are_taken_out_and_the_others_stay(one_module, tmp_path):
    file, before = str(tmp_path / "ptxvm" / "sign.py"), one_module.sign.__code__
    one_module.sign(1)
    probes.take_out_passed()
    assert len(one_module.sign.__code__.co_code) < len(before.co_code)
    assert not all(probes.passed[file])
    assert one_module.sign(-1) == -1
    assert all(probes.passed[file])
    probes.take_out_passed()
    assert probes.LIST not in one_module.sign.__code__.co_names


def test_the_data_has_the_arcs_and_names_the_files_that_nothing_imported(one_module, tmp_path):
    (tmp_path / "ptxvm" / "never.py").write_text("x = 1\n")
    one_module.sign(1)
    probes.write(tmp_path / "data" / "probes")
    data = CoverageData(str(tmp_path / "data" / "probes"))
    data.read()
    assert {Path(file).name: set(data.arcs(file)) for file in data.measured_files()} == {
        "sign.py": {(1, 1), (2, 2), (2, 4), (4, 4)},
        "never.py": set(),
    }


def test_a_module_is_instrumented_once_and_then_read_from_the_cache(one_module, tmp_path, monkeypatch):
    (kept,) = (tmp_path / "cache").iterdir()
    monkeypatch.delattr(probes, "with_probes")
    code, count = probes.instrumented(tmp_path / "ptxvm" / "sign.py")
    assert count == len(probes.passed[code.co_filename]) == 5
    (tmp_path / "ptxvm" / "sign.py").write_text("x = 1\n")
    with pytest.raises(NameError):
        probes.instrumented(tmp_path / "ptxvm" / "sign.py")
    assert list((tmp_path / "cache").iterdir()) == [kept]

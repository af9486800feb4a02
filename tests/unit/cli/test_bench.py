"""`ptxvm bench`: the rates themselves are not tested, for a test machine is never quiet."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys

import pytest

from ptxvm.cli import bench, checkout
from ptxvm.cli.bench import load_suite, scaled
from ptxvm.engine.jit.abi.specialisation import Tier


@pytest.fixture
def suite():
    return load_suite()


def test_the_collatz_kernel_agrees_with_numpy(ptxvm):
    done = ptxvm("bench", "collatz", "--json", "--repeat", "1")
    assert (done.code, done.err) == (0, "")
    document = json.loads(done.out)
    (measured,) = document["measurements"]
    assert measured["correct"] is True
    assert measured["unit"] == "thread-instructions/s"
    assert measured["goal"] == 30e6
    # 8 instructions a step, 5,8 million steps in all (OEIS A006577), and some 20 a thread besides
    assert 8 * 6.9e6 < measured["work"] < 8 * 7.5e6
    assert document["machine"]["numpy"]


def test_a_table_for_people(ptxvm, monkeypatch, suite):
    measured = suite.Measurement("name", "what it is of", [0.5, 1.0, 2.0], 1000, "things/s", 900, correct=True)
    monkeypatch.setattr(bench, "measurements", lambda *_: [measured])
    assert ptxvm("bench", "import").out == (
        "      median    range       goal  result  of\n"
        "name     1 k  0.5–2 k  ≥ 0.9 k ✓  right   what it is of\n"
        "\n"
        "Medians of 3 runs; rates are things/s.\n"
    )


def test_the_names_are_those_of_the_suite(ptxvm, suite):
    done = ptxvm("bench", "--list")
    assert (done.code, done.err) == (0, "")
    assert [line.split()[0] for line in done.out.splitlines()[1:] if line[0] != " "] == list(suite.BENCHMARKS)
    assert "--list" in ptxvm("bench", "--help").out


def test_missing_data_is_named(ptxvm, tmp_path):
    done = ptxvm("bench", "matmul", "wild", "--shared", str(tmp_path))
    assert done.code == 0
    line = "is missing; name the folder of the reference data with --shared"
    assert done.err.splitlines() == [
        f"ptxvm bench: matmul is skipped: {tmp_path / 'kernels' / 'workloads.py'} {line}",
        f"ptxvm bench: wild is skipped: {tmp_path / 'kernels' / 'wild' / 'speed.py'} {line}",
    ]


def test_without_the_repository_it_says_so(ptxvm, monkeypatch, tmp_path):
    assert "\n  bench " in ptxvm("--help").out
    monkeypatch.setattr(checkout, "BENCHMARKS", tmp_path / "suite.py")
    assert "\n  bench " not in ptxvm("--help").out
    done = ptxvm("bench")
    assert done.code == 2
    assert done.err.startswith("ptxvm bench: the benchmarks are part of the repository, not of the package, and ")


PRODUCT = """.version 8.0
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 at) {
  .reg .b32 %r<11>; .reg .f32 %f<9>; .reg .b64 %rd;
  ld.param.u64 %rd, [at]; ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd]; ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd+16];
  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
    {%f5, %f6, %f7, %f8}, {%r1, %r2, %r3, %r4}, {%r1, %r2}, {%f1, %f2, %f3, %f4};
  st.global.v4.f32 [%rd], {%f5, %f6, %f7, %f8}; ret;
}
"""


@pytest.mark.parametrize("large", [False, True])
def test_long_kernels_are_compiled_once_and_the_longest_where_they_are_asked_for(large, monkeypatch, suite, tmp_path):
    compiling = suite.imported("compiling")
    asked = []

    def compiled(source, name, block, shared, tier, runs):
        asked.append((len(source), tier, runs))
        return compiling.Compilation(1, {"": [1.0]})

    monkeypatch.setattr(compiling, "compiled", compiled)
    monkeypatch.setattr(suite, "member", lambda *_: b"")
    for path in (tmp_path / "kernels" / "kernels.ptx", tmp_path / "corpus" / "corpus.tar.xz"):
        path.parent.mkdir()
        path.touch()
    said = {each.what for each in suite.compiling(suite.Setup(3, tmp_path, large=large))}
    longest = max(length for length, _, _ in asked)
    assert (longest > 1_000_000) is large
    assert {runs for length, _, runs in asked if length > 200_000} == {1}
    assert {runs for length, tier, runs in asked if tier is Tier.QUICK and length < 60_000} == {3}
    assert any(length > 200_000 and tier is Tier.BEST for length, tier, _ in asked) is large
    assert {what.partition(",")[0] for what, _ in compiling.FAMILIES} <= {each.partition(",")[0] for each in said}


@pytest.mark.parametrize("tier", [Tier.QUICK, Tier.BEST])
def test_compiling_takes_what_kernels_share_from_elsewhere(tier, monkeypatch, suite):
    """The function of a matrix product is in a library, which is no part of the kernel's own time."""
    monkeypatch.syspath_prepend(str(suite.HERE))
    found = importlib.import_module("compiling").compiled(PRODUCT, "kernel", (32, 1, 1), 0, tier, 1)
    assert found.instructions == 6
    assert list(found.stages) == ["translation", "parse", "passes", "code", "link"]


BENCHMARKS = (
    "import",
    "check",
    "matmul",
    "checkers",
    "collatz",
    "kernels",
    "tensor",
    "wild",
    "start",
    "compile",
    "litmus",
    "driver",
    "clients",
    "campaign",
)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["colatz"], "ptxvm bench: no benchmark is called 'colatz'; did you mean `collatz`?"),
        (
            ["x"],
            f"ptxvm bench: no benchmark is called 'x'; there are {', '.join(BENCHMARKS)}",
        ),
        (["--shared", "nix"], "ptxvm bench: --shared: 'nix' is not a folder"),
    ],
)
def test_a_wrong_call_gets_one_line(ptxvm, words, line):
    done = ptxvm("bench", *words)
    assert (done.code, done.out, done.err) == (2, "", line + "\n")


def test_wrong_results_fail(ptxvm, monkeypatch, suite):
    wrong = suite.Measurement("name", "what", [1.0], 1, "things/s", correct=False)
    monkeypatch.setattr(bench, "measurements", lambda *_: [wrong])
    done = ptxvm("bench", "import")
    assert done.code == 1
    assert done.err == "ptxvm bench: wrong results: name\n"


def test_rates_count_and_times_do_not(suite):
    rate = suite.Measurement("", "", [1.0, 2.0, 4.0], 8, "things/s", goal=4)
    time = suite.Measurement("", "", [1.0, 2.0, 4.0], goal=1.5)
    assert (rate.median, rate.is_met) == (4, True)
    assert (time.median, time.is_met) == (2, False)
    assert scaled(rate, 8, 4) == "8–4"
    assert scaled(time, 0.25) == "0.25 s"


def test_numpy_counts_collatz_steps(suite):
    import numpy as np

    # OEIS A006577: 0, 1, 7, 2, 5, 8, 16, 3, 19; 27 takes 111
    assert suite.collatz_steps(np.array([*range(1, 10), 27], np.uint32)).tolist() == [0, 1, 7, 2, 5, 8, 16, 3, 19, 111]


def test_the_suite_runs_as_a_script():
    script = checkout.BENCHMARKS
    done = subprocess.run([sys.executable, script, "x"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no benchmark is called 'x'" in done.stderr

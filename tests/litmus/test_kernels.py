"""Kernels as litmus tests: what the model says of what the interpreter runs.

The verdicts of `kernels` are argued in each file from the text of chapter 8.  For the litmus tests, the oracle is the
reader of litmus syntax: translated into a kernel, a test has the same outcomes.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from verdicts import COLLECTED, HERE, KERNELS, REFUSED, Expected, can_run, collected, own

from ptxvm.api import load
from ptxvm.diagnostics.errors import Fault, Unsupported
from ptxvm.litmus import read, read_module
from ptxvm.model import NotALitmusTest, judge
from ptxvm.model.judge import Judgement
from ptxvm.model.translate import Translated, Untranslatable, as_kernel, register

LINES = re.compile(r"//: (litmus|expected|races|termination) (.*)")


def expectations(path: Path) -> dict[str, dict[str, str]]:
    """What the file says of each of its tests."""
    found: dict[str, dict[str, str]] = {}
    for word, rest in LINES.findall(path.read_text()):
        if word == "litmus":
            current = found[rest] = {}
        else:
            current[word] = rest
    return found


@pytest.mark.sampled(6)
@pytest.mark.parametrize("model", ["6.4", "9.1"])
@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_verdicts(path: Path, model: str):
    expected = expectations(path)
    tests = read(path)
    assert [test.name for test in tests] == list(expected)
    for test in tests:
        judgement, said = judge(test, model), expected[test.name]
        assert f"{model}: {judgement.verdict}" in said["expected"].split(", "), test.name
        assert not (judgement.races and said.get("races") == "none"), test.name
        assert judgement.termination == said.get("termination", "terminates"), test.name


SLOW = re.compile(r"Ticketlock|barrier-(instance|logical)-id|CADP|Memalloy")


def translated(which: str) -> list[Expected]:
    """Those that a kernel can say: no other proxies, clusters, or orders that PTX has not."""
    every = [expected for expected in [*own(), *collected()] if expected.model == "9.1"]
    return [expected for expected in every if bool(SLOW.search(str(expected))) == (which == "long") and can_run(expected)]


@pytest.mark.skipif(not collected(), reason=f"the collected litmus tests are missing: no {COLLECTED}/index.json")
def test_most_tests_are_compared():
    assert len([*translated("short"), *translated("long")]) > 250


def test_the_list_of_what_no_kernel_can_say():
    found = {}
    for expected in [*own(), *collected()]:
        try:
            as_kernel(expected.test(), stores=False)
        except Untranslatable as why:
            found[expected.key] = str(why)
    known = {expected.key for expected in [*own(), *collected()]}
    assert found == {key: why for key, why in REFUSED["as a kernel"].items() if key in known}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("expected", translated("short"), ids=str)
def test_a_litmus_test_as_a_kernel_has_the_same_outcomes(expected: Expected):
    same_outcomes(expected)


@pytest.mark.long
@pytest.mark.parametrize("expected", translated("long"), ids=str)
def test_a_long_litmus_test_as_a_kernel_has_the_same_outcomes(expected: Expected):
    same_outcomes(expected)


def same_outcomes(expected: Expected) -> None:
    kernel = as_kernel(expected.test(), stores=False)
    (test,) = read_module(load(kernel.text))
    before, after = judge(kernel.test, "9.1"), judge(test, "9.1")
    if kernel.is_faithful:
        assert after.verdict == before.verdict
        assert outcomes(after, kernel) == outcomes(before, kernel)
    else:  # one device for several, and one address for two, order more
        assert outcomes(after, kernel) <= outcomes(before, kernel)


def outcomes(judgement: Judgement, kernel: Translated) -> set[tuple[tuple[str, int], ...]]:
    """Final states, of what the question asks for and both name: memory, and registers by their name in the kernel."""
    names = {name: name for name in kernel.test.condition.names if ":" not in name}
    names |= {name: register(name) for name in kernel.test.condition.names if ":" in name}
    found = set()
    for state in judgement.outcomes:
        values = dict(state) | {name.partition(":")[2]: value for name, value in state if ":" in name}
        found.add(tuple((name, values.get(name, values.get(renamed, 0))) for name, renamed in sorted(names.items())))
    return found


# ── what is wrong, or not there yet ─────────────────────────────────────────────────────

KERNEL = """.version 8.0
.target sm_90
.address_size 64
.visible .global .u32 x;
.global .surfref image;
.extern .func (.reg .b64 p) malloc (.reg .b64 size);
.visible .entry k() {{ .reg .b32 %r<3>; .reg .b64 %d<3>; .reg .f64 %f<3>; .reg .pred %p<2>; {code} ret; }}
"""


def asked(code: str, header: str = "//: litmus t\n//: launch k<<<1, 2>>>()\n//: exists (x == 1)\n") -> Judgement:
    (test,) = read_module(load(header + KERNEL.format(code=code)))
    return judge(test)


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("", "a kernel is a litmus test by lines"),
        ("//: litmus t\n//: exists (x == 1)\n", "has no line `//: launch"),
        ("//: litmus t\n//: launch k<<<1>>>()\n//: exists (x == 1)\n", "is no launch"),
        ("//: litmus t\n//: launch j<<<1, 1>>>()\n//: exists (x == 1)\n", "launches `j`, which is no kernel"),
        ("//: litmus t\n//: launch k<<<1, 1>>>(y)\n//: exists (x == 1)\n", "`y` is neither a number nor memory"),
        ("//: litmus t\n//: launch k<<<1, 1>>>()\n//: exists (y == 1)\n", "asks for `y`; there is x"),
        ("//: litmus t\n//: launch k<<<1, 1>>>()\n//: exists (P0:%q == 1)\n", "asks for `P0:%q`"),
        ("//: litmus t\n//: launch k<<<1, 1>>>()\n", "no `exists`"),
        ("//: litmus t\n//: memory y\n//: launch k<<<1, 1>>>()\n//: exists (x == 1)\n", "`y` declares no memory"),
        ("//: exists (x == 1)\n", "stands before"),
        ("//: litmus\n//: launch k<<<1, 1>>>()\n//: exists (x == 1)\n", "a test has a name"),
        ("//: litmus t\n//: launch k<<<0, 1>>>()\n//: exists (x == 1)\n", "cannot be launched: grid.x is 0"),
        ("//: litmus t\n//: launch k<<<1, 1>>>(5)\n//: exists (x == 1)\n", "gives 1 arguments, and `k` takes 0"),
        ("//: litmus t\n//: memory y: u32 = z\n//: launch k<<<1, 1>>>()\n//: exists (x == 1)\n", "`z` is neither a number"),
    ],
)
def test_a_header_that_is_not_whole(header: str, said: str):
    with pytest.raises(NotALitmusTest, match=re.escape(said)):
        asked("", header)


@pytest.mark.parametrize(
    ("code", "feature"),
    [
        ("mov.u32 %r1, %clock;", "%clock"),
        ("activemask.b32 %r1;", "a collective of the lanes that happen to be active"),
        ("call (%d1), malloc, (%d2);", "a call of 'malloc'"),
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%f1, %f2}, {%f1}, {%f2}, {%f1, %f2};", "mma.sync"),
        ("suld.b.1d.b32.trap %r1, [image, {%r0}];", "suld.b"),
    ],
)
def test_what_the_model_cannot_follow_is_named(code: str, feature: str):
    with pytest.raises(Unsupported, match=re.escape(feature)):
        asked(code)


def test_a_fault_of_the_kernel_is_a_fault():
    with pytest.raises(Fault, match=r"address 0|null|0x0"):
        asked("mov.u64 %d1, 0; ld.global.u32 %r1, [%d1];")


def test_a_copy_is_shown_as_it_is_written():
    """It has several addresses, and each event of it reaches one of them."""
    (test, *_) = [test for test in read(HERE / "kernels" / "copies.ptx") if test.name == "not-awaited"]
    assert "cp.async.ca.shared.global [s], [x], 4" in {race.first.partition(": ")[2] for race in judge(test).races}


def test_memory_is_as_before():
    header = "//: litmus t\n//: launch k<<<1, 2>>>()\n//: exists (x == 1)\n"
    module = load(header + KERNEL.format(code="st.global.u32 [x], 5;"))
    (test,) = read_module(module)
    assert set(judge(test).outcomes) == {(("x", 5),)}
    assert module.symbol("x").tolist() == 0

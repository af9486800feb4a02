"""What fuzzing makes, and what it notices."""

from __future__ import annotations

from random import Random

import pytest

import ptxvm
from ptxvm.campaign.fuzz import litmus, text
from ptxvm.campaign.fuzz.coverage import Coverage, Tracer
from ptxvm.campaign.fuzz.seeds import declared_kernel, seeds
from ptxvm.model import read_litmus


def test_kernels_of_declared_instructions_are_valid() -> None:
    for number in range(20):
        found = declared_kernel(Random(number))
        assert not [each.message for each in ptxvm.check(found) if each.severity == "error"], found


def test_mutants_differ_from_their_text_and_survive(rng: object) -> None:
    first, other = seeds(2)
    mutants = {text.mutated(first, other, Random(number)) for number in range(30)}
    assert len(mutants) > 25
    for each in mutants:
        text.survive(each)


def test_a_reader_that_prints_another_module_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptxvm.campaign.fuzz.text.print_module", lambda module: ".version 8.0\n")
    with pytest.raises(AssertionError, match="as another module"):
        text.survive(seeds(1)[0])


def test_random_litmus_tests_are_litmus_tests() -> None:
    threads = [len(read_litmus(litmus.random_test(number)).threads) for number in range(40)]
    assert set(threads) == {2, 3}


def test_what_the_model_forbids_is_noticed() -> None:
    """Coherence: a thread that has read 1 does not read 0 again (PTX 8.9.2, by both versions)."""
    rows = [
        " P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;", " st.relaxed.gpu x, 1 | ld.relaxed.gpu r0, x ;", " | ld.relaxed.gpu r1, x ;",
    ]  # fmt: skip
    forbidden = "\n".join(["PTX t", "{", "x = 0;", "}", *rows, "exists (x == 1)", ""])
    names = {"P1:r0", "P1:r1", "x"}
    allowed = {(("P1:r0", 0), ("P1:r1", 1), ("x", 1))}
    litmus.refuse_forbidden(forbidden, "9.1", allowed, names, "interp")
    with pytest.raises(AssertionError, match=r"interp shows what PTX 9\.1 forbids: P1:r0 == 1"):
        litmus.refuse_forbidden(forbidden, "9.1", {(("P1:r0", 1), ("P1:r1", 0), ("x", 1))}, names, "interp")


def test_coverage_tells_each_feature_once() -> None:
    coverage = Coverage()
    assert coverage.new(["b", "a", "b"]) == ("a", "b")
    assert coverage.new(["a", "c"]) == ("c",)


def test_lines_of_the_package_are_traced_until_they_have_been_seen() -> None:
    tracer = Tracer()
    valid, wrong = ".version 8.0\n.target sm_80\n", ".version 8.0\n.target sm_80\n.entry k() { add.u32 %r1, 1 }"
    first, again, other = (tracer.traced(lambda text=text: ptxvm.check(text)) for text in (valid, valid, wrong))
    assert any(each.startswith("syntax/parser.py:") for each in first)
    assert not first & (again | other)
    assert len(again) < len(first)
    assert any(each.startswith("syntax/instructions.py:") for each in other)

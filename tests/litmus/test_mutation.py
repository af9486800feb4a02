"""Would the litmus tests see a fault in the model?  Each relation is dropped or weakened, and a verdict must change."""

from __future__ import annotations

import pytest
from axiom_mutants import mutants
from verdicts import COLLECTED, Expected, collected, own

from ptxvm.model import judge
from ptxvm.model.axioms_6_4 import PTX64

SURVIVE = {
    "6.4: no fence_sc_against_causality": "Fence-SC synchronizes; so what it has against causality makes a cycle in causality",
    "6.4: no coherence_against_itself": "a causality cycle passes an observation or a fence: Causality or Fence-SC refuse it",
    "6.4: no torn_reads": "rf and fr between the same two morally strong operations are a cycle for SC per Location too",
    "9.1: no fences_in_order": "it serves Fence-SC alone",
    "6.4: release pattern 3 with a weak write": "nobody else can observe a weak write",
}
"""What no verdict can tell from the model, by this reasoning."""

PARTS = 3  # of the mutants, one of which is for every run


def changed(model: type[PTX64], tests: list[Expected]) -> Expected | None:
    """The first test whose verdict is another under this model."""
    for expected in tests:
        if expected.verdict and not expected.name.startswith("Release_acquire_pattern"):
            try:
                verdict = judge(expected.test(), model).verdict
            except RecursionError:
                return expected
            if verdict != expected.verdict:
                return expected
    return None


@pytest.mark.skipif(not collected(), reason=f"the collected litmus tests are missing: no {COLLECTED}/index.json")
@pytest.mark.sampled(PARTS)
@pytest.mark.parametrize("part", range(PARTS))
def test_every_mutant_changes_a_verdict(capsys: pytest.CaptureFixture[str], part: int):
    survived, killers = [], dict[str, list[Expected]]()
    chosen = dict(list(mutants().items())[part::PARTS])
    for what, model in chosen.items():
        if what in SURVIVE:
            continue
        tests = order(model.name, killers)
        by = changed(model, tests)
        if by:
            killers.setdefault(model.name, []).append(by)
        else:
            survived.append(what)
    total = len(chosen)
    spared = [what for what in SURVIVE if what in chosen]
    with capsys.disabled():
        score = f"mutation score: {total - len(survived) - len(spared)} of {total}"
        print(f"\n{score}; survived: {survived + spared}")  # noqa: T201 - the score is for the reader
    assert not survived


def order(name: str, killers: dict[str, list[Expected]]) -> list[Expected]:
    """First the tests that saw faults before, then ours, then the collected ones."""
    every = [*killers.get(name, []), *own(), *reversed(collected())]
    return list(dict.fromkeys(expected for expected in every if expected.model == name))

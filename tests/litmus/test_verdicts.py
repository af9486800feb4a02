"""Every litmus test with a known verdict, under both models: verdict, termination and races."""

from __future__ import annotations

import pytest
from verdicts import COLLECTED, Expected, collected, own

from ptxvm.model import judge

RECORDED_OTHERWISE = {"Release_acquire_pattern.test": "forbidden"}
"""Its file permits what pattern 2 of 8.7 forbids, and what Dat3M's list and NVlabs's own Alloy text forbid too."""


@pytest.mark.sampled(4)
@pytest.mark.skipif(not collected(), reason=f"the collected litmus tests are missing: no {COLLECTED}/index.json")
@pytest.mark.parametrize("expected", collected(), ids=str)
def test_collected(expected: Expected):
    agrees(expected)


@pytest.mark.parametrize("expected", own(), ids=str)
def test_own(expected: Expected):
    agrees(expected)


def agrees(expected: Expected) -> None:
    judgement = judge(expected.test(), expected.model)
    if expected.verdict:
        assert judgement.verdict == RECORDED_OTHERWISE.get(expected.name, expected.verdict)
    if expected.termination:
        assert judgement.termination == expected.termination
    if expected.race is not None:
        assert bool(judgement.races) == expected.race

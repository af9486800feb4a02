"""Instructions against the verdicts of ptxas 13.5: a sample of 41,109 variants; `make test-long` asks all.

A floor is what was reached when it was set; raise it when more is.
"""

from __future__ import annotations

from math import sqrt

import pytest
from ptxas import disagreement, errors, script

SAMPLE = 400
SETTINGS = {
    "1.4/sm_13": 0.999,
    "2.3/sm_20": 0.999,
    "6.4/sm_75": 0.9995,
    "6.4/sm_70": 0.999,
    "6.4/sm_50": 0.999,
    "6.4/sm_30": 0.999,
    "7.0/sm_80": 0.999,
    "7.8/sm_89": 0.9998,
    "8.0/sm_90": 0.9998,
    "8.8/sm_90a": 0.9998,
    "8.8/sm_100a": 0.9998,
    "9.5/sm_75": 0.9998,
    "9.5/sm_103a": 0.9998,
    "9.5/sm_120a": 0.9998,
    "9.5/sm_121a": 0.9998,
}


def least_of_a_sample(floor):
    """What a sample agrees at least where the whole agrees by the floor: four standard deviations less."""
    return floor - 4 * sqrt(floor * (1 - floor) / SAMPLE)


@pytest.fixture(scope="module")
def table(shared):
    score = script(shared)
    path = shared / "isa" / "variants.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"the answers of ptxas are missing: {path}")
    return score.Table(path)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("setting", "floor"), SETTINGS.items())
def test_ptxas_takes_what_we_take(table, rng, setting, floor):
    chosen = [table.rows[n] for n in rng.choice(len(table.rows), SAMPLE, replace=False)]
    compare(table, chosen, setting, least_of_a_sample(floor))


@pytest.mark.long
@pytest.mark.parametrize(("setting", "floor"), SETTINGS.items())
def test_ptxas_takes_all_that_we_take(table, setting, floor):
    compare(table, table.rows, setting, floor)


def compare(table, chosen, setting, least):
    """The share of the rows on which both agree is not below the least."""
    at, target = setting.split("/")
    wrong = []
    for row in chosen:
        found = errors(table.module(row, at, target))
        if bool(found) == table.accepted(row, at, target):
            said = found[0].message if found else "accepted"
            wrong.append(f"  {row['opcode']}: {row['text']} [{said}]")
    assert len(wrong) <= (1 - least) * len(chosen), disagreement(wrong, len(chosen))

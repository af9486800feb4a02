"""Fuzzing campaigns: what is found is told once, made small and repeated; the corpus grows, and a campaign goes on."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from this_process import InThisProcess

from ptxvm.campaign.fuzz import session
from ptxvm.campaign.fuzz.seeds import seeds
from ptxvm.campaign.fuzz.session import fuzz
from ptxvm.campaign.fuzz.workload import FuzzWorkload, Kind, repeat
from ptxvm.campaign.outcome import Job, Verdict


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "runner", InThisProcess)


def test_a_campaign_goes_on_behind_what_has_ended(tmp_path: Path) -> None:
    assert fuzz("text", cases=20, folder=tmp_path).counts == {Verdict.PASSED: 20}
    told: list[tuple[int, int, int]] = []
    assert fuzz("text", cases=32, folder=tmp_path, progress=lambda *counts: told.append(counts)).cases == 32
    assert [ended for ended, _, _ in told] == list(range(20, 33))


def test_a_module_of_statements_is_as_many_cases(tmp_path: Path) -> None:
    assert fuzz("statements", cases=65, folder=tmp_path).counts == {Verdict.PASSED: 128}
    assert fuzz("statements", cases=129, folder=tmp_path).cases == 192


def test_the_corpus_grows_by_what_is_new(tmp_path: Path) -> None:
    """Each text of it showed a code or a line that none before had shown."""
    fuzz("text", cases=40, folder=tmp_path)
    with closing(sqlite3.connect(tmp_path / "results.sqlite")) as connection:
        features = [set(each.split("\n")) for (each,) in connection.execute("SELECT features FROM corpus ORDER BY rowid")]
    assert features
    assert sum(map(len, features)) == len(set().union(*features))


def test_what_is_found_is_told_once_and_made_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect is put in: a reader that stumbles over `.entry`."""

    def stumbles(text: str, ways: object) -> list[object]:
        if ".entry" in text:
            raise KeyError(".entry")
        return []

    monkeypatch.setattr("ptxvm.campaign.fuzz.text.survive", stumbles)
    found = fuzz("text", cases=30, folder=tmp_path)
    (reason,) = found.reasons
    assert reason.count > 10
    assert reason.first.outcome.kind == "KeyError"
    (test,) = found.tests
    small = test.with_suffix(".ptx").read_text()
    (word,) = small.split()
    assert ".entry" in word
    assert small == f"{word}\n"  # without what stood between the words that are left out
    with pytest.raises(KeyError):
        repeat("text", test.with_suffix(".ptx").read_text())


def test_it_ends_after_a_number_or_a_time(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="fuzzing ends after a number of cases or a time"):
        fuzz("text", folder=tmp_path)
    with pytest.raises(ValueError, match="there is no kind 'texts'"):
        fuzz("texts", cases=1, folder=tmp_path)
    assert fuzz("text", seconds=0.001, folder=tmp_path).cases <= 1


@pytest.mark.parametrize("kind", [Kind.TEXT, Kind.KERNELS, Kind.LITMUS])
def test_a_case_is_the_same_for_the_same_number(kind: Kind) -> None:
    """So that a case that ended its process can be told."""
    first, other = seeds(2)
    made = [
        FuzzWorkload(kind, 5).made(Job(number, {"other": other}, None if kind is Kind.LITMUS else first))
        for number in (3, 3, 4)
    ]
    assert made[0] == made[1]
    assert made[0] != made[2]


@pytest.mark.parametrize("kind", [Kind.KERNELS, Kind.LITMUS])
def test_some_cases_pass(kind: Kind) -> None:
    texts = seeds(4)[1:]
    for number, text in enumerate(texts):
        found = FuzzWorkload(kind).run(Job(number, {"other": text}, text if kind is Kind.KERNELS else None))
        assert not found.failed, found.message

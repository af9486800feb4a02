"""The notes of a release, which towncrier makes of the fragments in `changes/`."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
KINDS = ("summary", "added", "changed", "fixed", "removed")
FRAGMENT = re.compile(rf"(?P<issue>\d+)(\.[\w-]+)?\.(?P<kind>{'|'.join(KINDS)})\.md")
MOST_WORDS = 100  # of three lines


@pytest.fixture(scope="module")
def fragments():
    return {path: FRAGMENT.fullmatch(path.name) for path in (ROOT / "changes").glob("*.md")}


@pytest.fixture(scope="module")
def notes():
    command = [sys.executable, "-m", "towncrier", "build", "--draft", "--version", "9.9"]
    return subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=True).stdout


def test_a_note_names_its_issue_by_the_number(fragments, notes):
    assert all(fragments.values())
    issues = set(re.findall(r"\(issue ([^)]*)\)$", notes, re.MULTILINE))
    assert issues == {found["issue"] for found in fragments.values()}


def test_a_fragment_is_no_essay(fragments):
    assert {path.name for path in fragments if len(path.read_text(encoding="utf-8").split()) > MOST_WORDS} == set()


def test_notes_begin_with_a_summary_and_the_rest_is_folded_by_kind(fragments, notes):
    summary, *folded = notes.split("<details>")
    count = Counter(found["kind"] for found in fragments.values())
    assert len(re.findall("^- ", summary, re.MULTILINE)) == count["summary"]
    assert [re.match(r"\n<summary>(\w+): (\d+)</summary>\n\n- ", each).groups() for each in folded] == [
        (kind.capitalize(), str(count[kind])) for kind in KINDS[1:] if count[kind]
    ]
    assert all(each.count("\n</details>\n") == 1 for each in folded)


def test_changes_stand_in_the_order_of_their_issues(notes):
    for each in notes.split("<details>"):
        numbers = [int(number) for number in re.findall(r"\(issue (\d+)[^)]*\)$", each, re.MULTILINE)]
        assert numbers == sorted(numbers)

"""The notes of a release, which towncrier makes of the fragments in `changes/`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
FRAGMENT = re.compile(r"(?P<issue>\d+)(\.[\w-]+)?\.(?P<kind>added|changed|fixed|removed)\.md")


def test_a_note_names_its_issue_by_the_number():
    fragments = [FRAGMENT.fullmatch(path.name) for path in (ROOT / "changes").glob("*.md")]
    assert all(fragments)
    command = [sys.executable, "-m", "towncrier", "build", "--draft", "--version", "9.9"]
    notes = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=True).stdout
    issues = set(re.findall(r"\(issue ([^)]*)\)$", notes, re.MULTILINE))
    assert issues == {found["issue"] for found in fragments}
    kinds = {found["kind"].capitalize() for found in fragments}
    headings = re.findall(r"\n\n(#.*)\n\n(?=- )", f"\n\n{notes}")
    assert headings == [f"### {kind}" for kind in ("Added", "Changed", "Fixed", "Removed") if kind in kinds]

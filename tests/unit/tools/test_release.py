"""The addresses of a release, and notes that can be read."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import release
from packaging.requirements import Requirement
from release import absolute, materials, notes, with_addresses

ROOT = Path(__file__).parents[3]
ADDRESS, TAG = "https://example.org/me/ptxvm", "v1.2.3"


def test_links_of_the_readme_are_absolute():
    said = absolute("![A picture](docs/a.svg) [how](docs/b.md#part) [site](https://example.com) [here](#x)", ADDRESS, TAG)
    assert said == (
        f"![A picture]({ADDRESS}/raw/{TAG}/docs/a.svg) [how]({ADDRESS}/blob/{TAG}/docs/b.md#part) [site](https://example.com)"
        " [here](#x)"
    )
    whole = absolute((ROOT / "README.md").read_text(), ADDRESS, TAG)
    assert f"]({ADDRESS}/raw/{TAG}/docs/session.svg)" in whole
    assert "](docs/" not in whole


def test_the_metadata_has_addresses():
    project = tomllib.loads(with_addresses((ROOT / "pyproject.toml").read_text(), ADDRESS, TAG))["project"]
    assert project["name"] == "ptxvm"
    assert project["urls"]["Repository"] == ADDRESS
    assert project["urls"]["Changelog"] == f"{ADDRESS}/blob/{TAG}/CHANGELOG.md"


def test_the_bill_of_materials_says_which_package_needs_which():
    found = materials("1.2.3")
    names = {each["bom-ref"]: each["name"] for each in (found["metadata"]["component"], *found["components"])}
    graph = {names[each["ref"]]: {names[one] for one in each["dependsOn"]} for each in found["dependencies"]}
    assert graph.keys() == {*names.values()}
    assert len(found["dependencies"]) == len(graph)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert graph["ptxvm"] == {Requirement(each).name.replace("_", "-") for each in project["dependencies"]}
    assert graph["jinja2"] == {"markupsafe"}
    assert graph["rich"] == {"markdown-it-py", "pygments"}
    assert not graph["click"]  # colorama is for Windows, and not in the lock


def test_notes_that_are_too_long_to_read_are_refused(monkeypatch):
    assert notes("9.9").startswith("## 9.9")
    monkeypatch.setattr(release, "MOST_LINES", 10)
    with pytest.raises(SystemExit, match="at most 10 are read: merge the fragments of a theme"):
        notes("9.9")

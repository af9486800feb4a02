"""The addresses that a release has, where somebody says where the project is published."""

from __future__ import annotations

import tomllib
from pathlib import Path

from release import absolute, with_addresses

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

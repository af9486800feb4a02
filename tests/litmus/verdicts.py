"""The litmus tests with a known verdict: those collected in ../shared/litmus, and our own in `cases`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from ptxvm.model import Test, read_tests

HERE = Path(__file__).parent
REFUSED: dict[str, dict[str, str]] = json.loads((HERE / "refused.json").read_text(encoding="utf-8"))
"""What cannot be compared, and why: tests that no kernel can say, and tests that are no turns of reads and writes."""
COLLECTED = HERE.parents[2] / "shared" / "litmus"
KERNELS = sorted((HERE / "kernels").glob("*.ptx"))
"""Kernels whose comments say what each litmus test of theirs gives."""
KERNELS_AGAIN = [pytest.param(path, id=path.stem, marks=[pytest.mark.long] if path.stem == "loops" else []) for path in KERNELS]
"""The same for what else is asked of them: all outcomes of loops take the model some seconds each time."""
MODELS = {"6.4": "v6_0", "9.1": "v7_5"}
"""Our models, by the names that the collection has for what they agree with."""


@dataclass(frozen=True)
class Expected:
    """What is known of a test under one model."""

    path: str
    name: str
    model: str
    verdict: str | None
    termination: str | None
    race: bool | None = None

    def __str__(self) -> str:
        return f"{self.key}-{self.model}"

    @property
    def key(self) -> str:
        """The test, under whatever model."""
        return f"{self.path}:{self.name}"

    def test(self) -> Test:
        """The test itself."""
        found = tests_of(COLLECTED / self.path if "/" in self.path else HERE / "cases" / self.path)
        return next(test for test in found if test.name == self.name)


@cache
def tests_of(path: Path) -> list[Test]:
    return read_tests(path)


def can_run(expected: Expected) -> bool:
    """Can a kernel say it: no other proxies, clusters, or orders that PTX has not?"""
    return expected.key not in REFUSED["as a kernel"]


def takes_turns(expected: Expected) -> bool:
    """Are all its instructions reads, writes, fences and branches?"""
    return expected.key not in REFUSED["taking turns"]


@cache
def collected() -> tuple[Expected, ...]:
    """All of ../shared/litmus; none where it is missing."""
    index = COLLECTED / "index.json"
    if not index.exists():
        return ()
    return tuple(
        Expected(record["file"], record["name"], model, verdict, termination, race)
        for record in json.loads(index.read_text())
        for model, theirs in MODELS.items()
        if (verdict := record["expected"][theirs]) or (record.get("expected_liveness") or {}).get(theirs)
        for termination in [(record.get("expected_liveness") or {}).get(theirs)]
        for race in [record.get("data_race_computed_v6_0") if model == "6.4" else None]
    )


@cache
def own() -> tuple[Expected, ...]:
    """Ours: a comment in each says what is expected."""
    return tuple(
        Expected(path.name, path.stem, model, verdict, "may_hang" if '"hangs"' in text else "terminates")
        for path in sorted((HERE / "cases").glob("*.litmus"))
        for text in [path.read_text()]
        for model, verdict in re.findall(r"(\d\.\d): ([a-z ]+?)[,\"]", text.partition('"expected')[2])
    )

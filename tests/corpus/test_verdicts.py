"""Real modules are accepted where ptxas accepts them, and refused where it refuses them.

The index has the verdicts of ptxas 13.5 on modules of most producers; of the others, from compilers that wrote what ran,
`REFUSED` has those that ptxas 13.0 refuses.  The default run takes one module in nine; `pytest -m long` takes all.
"""

from __future__ import annotations

from typing import Any

import pytest

import ptxvm
from ptxvm.syntax import Source

SAMPLE = 9
"""The default run asks about one module in nine."""

REFUSED = {
    # sin.f64, which no target has
    "tinygrad/cudaptx75_E_5_2_4_5510d3.ptx",
    "tinygrad/cudaptx80_E_5_2_4_8d75c0.ptx",
}


def accepted(entry: dict[str, Any]) -> bool:
    """Does ptxas take it?  What it misses at the end, when it links, is no fault of the module."""
    said = entry["ptxas_13_5"]
    if said is None or said.startswith("n/a"):
        return entry["file"] not in REFUSED
    return bool(said.startswith("ok") or "Unresolved extern" in said)


def disagreement(source: Source, entry: dict[str, Any]) -> str:
    """How our verdict differs; empty where it does not."""
    errors = [d for d in ptxvm.check(source.text) if d.severity == "error"]
    if accepted(entry) == (not errors):
        return ""
    return f"{entry['file']} is {'accepted' if accepted(entry) else 'refused'} by ptxas, and here: {errors[:1]}"


def test_a_sample(corpus) -> None:
    wrong = [said for source, entry in corpus[4::SAMPLE] if (said := disagreement(source, entry))]
    assert not wrong, "\n".join(wrong)


def test_refusals(corpus) -> None:
    """All of those that ptxas refuses."""
    refused = [(source, entry) for source, entry in corpus if not accepted(entry)]
    wrong = [said for source, entry in refused if (said := disagreement(source, entry))]
    assert not wrong, "\n".join(wrong)
    assert len(refused) >= 20


@pytest.mark.long
def test_all(corpus) -> None:
    wrong = [said for source, entry in corpus if (said := disagreement(source, entry))]
    assert not wrong, "\n".join(wrong)

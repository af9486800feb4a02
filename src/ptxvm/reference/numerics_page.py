"""The page on numerics: which instructions have results that the ISA leaves open, and how tensor cores add, by architecture."""

from __future__ import annotations

from collections.abc import Sequence

from ptxvm.isa.exactness import Exactness
from ptxvm.isa.model import ISA
from ptxvm.machine.tensor_core import UNITS, Accumulation, Architecture
from ptxvm.reference.instruction_pages import PageEntry
from ptxvm.reference.markdown import Files, code, escaped, table

EXACT = "exact"

SAID = [
    "A sum of products of floats is made in steps: so many products at once are added to the accumulator, each cut off some",
    "bits below the largest exponent among them. An architecture that is not named does as the one before it.",
]
HEAD = (
    "factors",
    "from",
    "products at once",
    "bits below the largest exponent",
    "bits of an f32 result",
    "smallest exponent, f32",
)


def numerics_page(entries: Sequence[PageEntry]) -> Files:
    """What is left open by the ISA, by what ptxvm does there; `entries` have pages to link to."""
    lines = ["# Numerics", "", "Results of instructions that are not named here are exact: the ISA defines every bit.", ""]
    for exactness in _open():
        named = [f"[{code(each.title)}](/{each.path}.md)" for each in entries if _has(each, exactness)]
        if named:
            lines += [f"## {_title(exactness)}", "", escaped(exactness.said), "", ", ".join(named), ""]
    lines += ["## How tensor cores add", "", *SAID, "", *table(HEAD, list(_units())), ""]
    return {"reference/numerics.md": "\n".join(lines)}


def _units() -> list[tuple[str, ...]]:
    """A row for each kind of factors and each architecture that adds them in a new way."""
    return [
        (code(kind) if n == 0 else "", f"{_named(architecture)}, `sm_{architecture}`", *_row(unit))
        for kind, units in UNITS.items()
        for n, (architecture, unit) in enumerate(sorted(units.items(), key=_since))
    ]


def _named(architecture: Architecture) -> str:
    """`RTX Blackwell`."""
    return " ".join(word if word == "RTX" else word.title() for word in architecture.name.split("_"))


def _since(of: tuple[Architecture, Accumulation]) -> Architecture:
    return of[0]


def _row(unit: Accumulation) -> tuple[str, ...]:
    at_once = f"{unit.length}, as f16" if unit.converted else str(unit.length)
    floor = f"{unit.floor[0]:.3g}" if unit.floor[0] else ""
    return at_once, str(unit.fraction), str(unit.accumulator_bits), floor


def _open() -> list[Exactness]:
    """What declarations say where a result is not exact."""
    return list(dict.fromkeys(each for i in ISA.instructions for each in i.exactness if each.word != EXACT))


def _has(entry: PageEntry, exactness: Exactness) -> bool:
    return any(exactness in page.of.exactness for page in entry.declarations)


def _title(exactness: Exactness) -> str:
    """The word, and the first instruction's family where several have the word."""
    of = next(i for i in ISA.instructions if exactness in i.exactness)
    return f"{exactness.word.capitalize()}: {of.forms[0].opcode} and the like"

"""Words that stand in many places: modifiers, types, directives and targets, each with what the declarations say of it."""

from __future__ import annotations

from collections.abc import Iterator

from ptxvm.algebra.types import Type
from ptxvm.isa.catalog import load_catalog
from ptxvm.isa.directives import FEATURES, Feature
from ptxvm.isa.model import ISA, Instruction
from ptxvm.isa.notation import ModifierSlot
from ptxvm.isa.targets import LOWEST, Need, Target, Version, parse_need, parse_target
from ptxvm.reference import modifiers
from ptxvm.reference.page import Page


def uses(word: str) -> dict[str, list[str]]:
    """What a modifier says, each meaning with the instructions where it says so."""
    load_catalog()
    found: dict[str, list[str]] = {}
    for instruction in ISA.instructions:
        title = short_title(instruction)
        for slot in _slots(instruction, word):
            titles = found.setdefault(modifiers.meaning(slot, word), [])
            if title not in titles:
                titles.append(title)
    return {meaning: sorted(titles) for meaning, titles in found.items()}


def short_title(instruction: Instruction) -> str:
    """Its title without the words that say how something is done, such as `mbarrier::complete_tx::bytes`."""
    return ".".join(word for word in Page(instruction).title.split(".") if "::" not in word)


def _slots(instruction: Instruction, word: str) -> Iterator[ModifierSlot]:
    for form in instruction.forms:
        yield from (slot for slot in (*form.slots, *form.marks) if word in slot.choices)


def type_named(word: str) -> Type | None:
    """The type of a name."""
    return Type.named.get(word)


def directive(word: str) -> Feature | None:
    """What a directive needs, where not every version and target has it."""
    return FEATURES.get(f".{word}") or FEATURES.get(word)


def target(text: str) -> tuple[Target, Version] | None:
    """A target of this name, and the lowest version that has it."""
    try:
        found = parse_target(text)
    except ValueError:
        return None
    return (found, LOWEST[found]) if found in LOWEST else None


def brought_by(wanted: Target) -> list[str]:
    """The instructions that need this target, or have modifiers that do."""
    load_catalog()
    found: dict[str, None] = {}
    for instruction in ISA.instructions:
        needs: list[Need] = [
            *map(parse_need, instruction.needs.values()),
            *(parse_need(text) for _, text in instruction.conditional_needs),
        ]
        if any(wanted in each.targets for each in needs):
            found[short_title(instruction)] = None
    return sorted(found)


def provides(target: Target) -> str:
    """Which chips run code for a target (PTX 11.1.2)."""
    if target.suffix == "a":
        return "Code for it runs on this chip only: it may use what no later chip promises."
    if target.suffix == "f":
        return "Code for it runs on this chip and on later ones of its family."
    return "Code for it runs on this chip and on all later ones."


def version(number: Version) -> str:
    """`6.4`."""
    return f"{number[0]}.{number[1]}"


def need(of: Need) -> str:
    """`PTX 6.0, sm_70`."""
    return ", ".join([f"PTX {version(of.version)}", *map(str, of.targets)])

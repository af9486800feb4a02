"""Words that stand in many places: modifiers, types, directives and targets, each with what the declarations say of it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ptxvm.algebra.types import Type
from ptxvm.isa.catalog import load_catalog
from ptxvm.isa.directives import FEATURES, Feature
from ptxvm.isa.model import ISA, Instruction
from ptxvm.isa.notation import ModifierSlot
from ptxvm.isa.targets import LOWEST, Need, Target, Version, parse_need, parse_target
from ptxvm.reference import modifiers
from ptxvm.reference.directive_words import DIRECTIVES
from ptxvm.reference.page import Page
from ptxvm.reference.type_words import is_type

SOUGHT = {
    "activemask": "active lanes", "atom": "atomic", "bar": "barrier", "bfe": "extract bits", "bfi": "insert bits",
    "bfind": "leading zeros", "bra": "branch, jump", "brev": "reverse bits", "brx": "branch, jump", "clz": "leading zeros",
    "cp": "asynchronous copy", "cvt": "conversion, convert", "cvta": "address conversion", "div": "division",
    "elect": "leader", "ex2": "exponential", "fma": "multiply-add", "fns": "find bit",
    "griddepcontrol": "programmatic dependent launch", "isspacep": "state space", "ld": "load", "ldmatrix": "load matrix",
    "lg2": "logarithm", "lop3": "logic, truth table", "mad": "multiply-add", "mapa": "distributed shared memory",
    "mbarrier": "barrier, phase", "membar": "fence", "mma": "matrix multiply, tensor core", "mov": "move",
    "mul": "multiply", "popc": "population count", "prmt": "permute bytes", "rcp": "reciprocal", "red": "reduction, atomic",
    "redux": "warp reduction", "rsqrt": "reciprocal square root", "selp": "select", "setp": "compare, predicate",
    "shf": "funnel shift", "shfl": "shuffle", "shl": "shift left", "shr": "shift right", "sqrt": "square root",
    "st": "store", "stmatrix": "store matrix", "suld": "surface load", "sured": "surface reduction",
    "sust": "surface store", "tcgen05": "tensor memory, Blackwell", "tex": "texture", "tld4": "texture gather",
    "vote": "ballot, any, all", "wgmma": "warpgroup matrix multiply, Hopper", "wmma": "matrix multiply, tensor core",
}  # fmt: skip
"""What people search for, beside what stands on the page of an instruction, by opcode."""


def uses(word: str) -> dict[str, list[str]]:
    """What a modifier says, each meaning with the instructions where it says so."""
    load_catalog()
    found: dict[str, list[str]] = {}
    for instruction in ISA.instructions:
        title = short_title(instruction)
        for opcode, slot in _slots(instruction, word):
            titles = found.setdefault(modifiers.meaning(slot, word, opcode), [])
            if title not in titles:
                titles.append(title)
    return {meaning: sorted(titles) for meaning, titles in found.items()}


def short_title(instruction: Instruction) -> str:
    """Its title without the words that say how something is done, such as `mbarrier::complete_tx::bytes`."""
    return ".".join(word for word in Page(instruction).title.split(".") if "::" not in word)


def _slots(instruction: Instruction, word: str) -> Iterator[tuple[str, ModifierSlot]]:
    """The places that take the word, each with the opcode."""
    for form in instruction.forms:
        yield from ((form.opcode, slot) for slot in (*form.slots, *form.marks) if word in slot.choices)


def type_named(word: str) -> Type | None:
    """The type of a name."""
    return Type.named[word] if is_type(word) else None


def is_known(word: str) -> bool:
    """Is it a modifier, a type or a directive, without its dot?"""
    return type_named(word) is not None or directive(word) is not None or f".{word}" in DIRECTIVES or bool(uses(word))


def known_words() -> Iterator[str]:
    """Every modifier, type and directive, without its dot."""
    load_catalog()
    yield from (name for name in Type.named if is_type(name))
    yield from (each.removeprefix(".") for each in (*DIRECTIVES, *FEATURES))
    for instruction in ISA.instructions:
        yield from (choice for form in instruction.forms for slot in (*form.slots, *form.marks) for choice in slot.choices)


def opcodes_called(word: str) -> list[str]:
    """The opcodes that a common word stands for: of `shuffle`, `shfl`."""
    return [opcode for opcode, said in SOUGHT.items() if word in re.split(r",? ", said)]


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
        first = min((each.number for each in parse_need(instruction.needs.get("", "PTX 1.0")).targets), default=0)
        if wanted.number >= first and any(wanted in each.targets for each in needs):
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

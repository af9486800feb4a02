"""The parts of one instruction in words: what it needs, its modifiers, its operands."""

from __future__ import annotations

from collections.abc import Collection

from ptxvm.analysis.program import Bound
from ptxvm.isa.model import Decoded
from ptxvm.isa.targets import Need
from ptxvm.reference import modifiers
from ptxvm.syntax import tree
from ptxvm.syntax.printer import print_operand

Rows = list[tuple[str, ...]]
"""Lines of a table."""


def requirements(i: Decoded) -> str:
    """`PTX 2.0, sm_20`: what all of the instruction's features need together, with the lowest targets that have them."""
    needs = [need for _, need in i.requirements()]
    version = max((need.version for need in needs), default=(1, 0))
    named = dict.fromkeys(target for need in needs for target in need.targets)
    enough = [target for target in named if all(need.met_by(target) for need in needs)]
    lowest = [t for t in enough if not any(Need(version, (other,)).met_by(t) for other in enough if other != t)]
    return f"PTX {version[0]}.{version[1]}" + (f", {' or '.join(map(str, lowest))}" if lowest else "")


def modifiers_of(i: Decoded) -> Rows:
    """Each modifier that was written, in words."""
    slots = [*i.form.slots, *(mark for mark in i.form.marks if mark.name in i.bound)]
    words = [(i.bound[slot.name], slot) for slot in slots if slot.name in i.bound]
    return [("-" if word == "-" else f".{word}", modifiers.meaning(slot, word, i.form.opcode)) for word, slot in words]


def operands_of(bound: Bound, constants: Collection[str] = ()) -> Rows:
    """Each operand: its name in the form, what is written, and what it is; `constants` names those that are constant."""
    i, rows = bound.i, Rows()
    results = i.destinations()
    for name, node in bound.operands.items():
        type = i.type_of(name)
        parts = ["result" if name in results else "source"]
        if isinstance(node, tree.Address):
            parts = ["address"]
        elif isinstance(node, tree.Group):
            parts = ["results" if name == "ret" else "arguments"]
        elif type is not None:
            parts.append(f".{(type.as_bits if 'untyped' in i.operand_type(name).marks else type).name}")
        if name in constants:
            parts[0] = "constant"
        if isinstance(node, tree.Unary) and node.op == "!":
            parts.append("negated")
        if isinstance(node, tree.Name) and (symbol := bound.scope.find(node.text)) is not None:
            parts[0] = symbol.shape.kind if symbol.shape.kind != "register" else parts[0]
        rows.append((name, print_operand(node), ", ".join(parts)))
    if guard := bound.node.guard:
        holds = "false" if guard.negated else "true"
        rows.append(("guard", guard.name.text, f"only lanes where it is {holds} do this"))
    return rows

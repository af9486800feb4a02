"""The parts of one instruction in words: what it needs, its modifiers, its operands."""

from __future__ import annotations

from collections.abc import Collection

from ptxvm.analysis.program import Bound
from ptxvm.isa.model import Decoded
from ptxvm.isa.targets import Target
from ptxvm.reference import modifiers
from ptxvm.syntax import tree
from ptxvm.syntax.printer import print_operand

Rows = list[tuple[str, ...]]
"""Lines of a table."""


def requirements(i: Decoded) -> str:
    """`PTX 2.0, sm_20`: what all of the instruction's features need together."""
    needs = [need for _, need in i.requirements()]
    version = max((need.version for need in needs), default=(1, 0))
    plain = [need.targets[0] for need in needs if len(need.targets) == 1 and not need.targets[0].suffix]
    special = [" or ".join(map(str, n.targets)) for n in needs if n.targets and (len(n.targets) > 1 or n.targets[0].suffix)]
    lowest: list[Target] = [max(plain)] if plain else []
    targets = list(dict.fromkeys([*map(str, lowest), *special]))
    return ", ".join([f"PTX {version[0]}.{version[1]}", *targets])


def modifiers_of(i: Decoded) -> Rows:
    """Each modifier that was written, in words."""
    slots = [*i.form.slots, *(mark for mark in i.form.marks if mark.name in i.bound)]
    words = [(i.bound[slot.name], slot) for slot in slots if slot.name in i.bound]
    return [("-" if word == "-" else f".{word}", modifiers.meaning(slot, word)) for word, slot in words]


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
            parts.append(f".{type.name}")
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

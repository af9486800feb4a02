"""The code of one node as it was last written, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass

from ptxvm.algebra.value import Value
from ptxvm.engine.jit.cfg.nodes import Node
from ptxvm.engine.jit.node.register_shapes import Key

Definition = tuple[int, Key, Value]  # the position of an instruction, and what it gave to a register


@dataclass(frozen=True, slots=True)
class NodeCode:
    """The lines of a node; `leaves` says that they hold a side exit.

    `loaded` and `definitions` are the values that it reads first and those that it makes; `notes` say how instructions
    access memory, by their positions; `light` are vectors that take fewer registers than their type says.
    """

    node: Node
    width: int
    lines: list[str]
    leaves: bool
    loaded: dict[Key, Value]
    definitions: list[Definition]
    notes: dict[int, str]
    light: dict[str, int]

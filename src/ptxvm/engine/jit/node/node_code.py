"""The finished code of one node, and its definitions for the estimate of register pressure."""

from __future__ import annotations

from ptxvm.algebra.value import Value
from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.cfg.nodes import Node
from ptxvm.engine.jit.node.register_shapes import Key

ON_HOST = "in Python"  # the note of an instruction that calls the host each time
Definition = tuple[int, Key, Value]  # the position of an instruction, a register, and its new value


@dataclass(frozen=True, slots=True)
class NodeCode:
    """The lines of a node; `leaves` says that they have a side exit.

    `loaded` are the values of registers on entry, `definitions` those that it writes; `notes` say, by their positions, how
    instructions access memory, or that the host computes them; `light` are vectors that take fewer registers than their
    types say.  `variables` are those of the warp function that it counts in, with their types.
    """

    node: Node
    width: int
    lines: list[str]
    leaves: bool
    loaded: dict[Key, Value]
    definitions: list[Definition]
    notes: dict[int, str]
    light: dict[str, int]
    variables: dict[str, str]

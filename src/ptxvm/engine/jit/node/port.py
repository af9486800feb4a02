"""What the ports of the machine share: how a node ends, and what an instruction waits for."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import field

from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.symbols import Label, Register, Table, Variable
from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.ir.lane_values import Raw
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.syntax import tree

Argument = Register | Variable | tree.Operand  # the symbol of an argument of a call, or the node of a constant
Result = Register | Variable | None  # where a call puts a result; None drops it


class Ending(enum.Enum):
    """How a node ends that has no target of its own."""

    NEXT = enum.auto()  # at the node that follows in the code
    WAIT = enum.auto()  # at a barrier or a collective
    LEAVE = enum.auto()  # with a return from the function
    EXIT = enum.auto()  # with the end of the thread
    TRAP = enum.auto()  # with a fault


@dataclass(frozen=True, slots=True)
class Goto:
    """A node ends with a branch to a label."""

    target: Label


@dataclass(frozen=True, slots=True)
class Switch:
    """A node ends with a branch to one of a list of labels."""

    table: Table
    index: Value


@dataclass(slots=True)
class Call:
    """A node ends with a call: of a function, or through a pointer.

    `targets` are the nodes at which the lanes go on, each with the predicate of those that do; empty where the body of
    the function stands in the place of the call.
    """

    function: Function | None
    pointer: Value | None
    arguments: Sequence[Argument]
    results: Sequence[Result]
    targets: list[tuple[Raw | None, int]] = field(default_factory=list)


Action = Ending | Goto | Switch | Call


@dataclass(frozen=True, slots=True)
class Request:
    """The operands of a barrier (number, threads, vote) or of a collective (members, payload)."""

    values: tuple[Value | None, ...]


class Port:
    """A port of the machine, for one instruction."""

    def __init__(self, at: NodeBuilder, bound: Bound) -> None:
        self.at, self.alg, self.code, self.bound, self.width = at, at.alg, at.code, bound, at.code.width

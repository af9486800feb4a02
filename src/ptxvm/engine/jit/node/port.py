"""What the ports of the machine share, and what an instruction asks of the flow and of other lanes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound
from ptxvm.engine.jit.ir.lane_values import Raw
from ptxvm.engine.jit.node.node import NodeBuilder


@dataclass(slots=True)
class Action:
    """What the last instruction of a node asked of the flow."""

    verb: str
    symbol: Any = None
    index: Value | None = None
    extra: Any = None
    ways: list[tuple[Raw | None, int]] = field(default_factory=list)  # to which nodes lanes go, with their predicates


@dataclass(slots=True)
class Request:
    """What an instruction waits for."""

    verb: str
    values: tuple[Value | None, ...]


class Port:
    """A port of the machine, for one instruction."""

    def __init__(self, at: NodeBuilder, bound: Bound) -> None:
        self.at, self.alg, self.code, self.bound, self.width = at, at.alg, at.code, bound, at.code.width

"""Asynchronous transfers of many bytes: what an instruction says of one, for the port `tasks` (PTX 9.7.9.25)."""

from __future__ import annotations

import enum

from ptxvm.algebra.asynchronous import AsyncKind
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type
from ptxvm.dataclass import dataclass


class Pattern(enum.Enum):
    """Which bytes are transferred, and by which operands: `a` and `b` are the addresses of the target and the source."""

    BYTES = "`size` bytes from `b` to `a`"
    MASKED = "of `size` bytes those of each 16 that `bytes` names"
    INSIDE = "of `size` bytes those behind the first `left` and before the last `right`"
    ZEROS = "`size` bytes of zeros, before the instruction ends"
    VALUES = "the values `b` of registers"
    CANCELLATION = "the answer whether the launch of a cluster was cancelled"
    TENSOR = "the part at `c` of the tensor that `map` describes"


@dataclass(frozen=True, slots=True)
class Transfer:
    """A kind of transfer: its pattern and its spaces, and how its end is told.

    The `origin` of what is no memory, of values and zeros, is `REG`.

    `mbarrier` says that the bytes are counted as transactions of the mbarrier `bar`; otherwise the transfer is in a bulk
    group.  `multicast` is to the CTAs of `mask`, and `pair` lets the mbarrier lie in the other CTA of a pair.
    `multimem` is to every memory that a multimem address stands for.  An
    `operation` combines what comes with what is there; its `type` is that of the tensor where the instruction has none.
    `mode` is how a part of a tensor is shaped, by its word in PTX.
    """

    pattern: Pattern
    to: Space
    origin: Space = Space.REG
    mbarrier: bool = False
    multicast: bool = False
    multimem: bool = False
    pair: bool = False
    operation: str = ""
    type: Type | None = None
    flushes: bool = False
    mode: str = ""

    @property
    def kind(self) -> AsyncKind:
        """What waits for it."""
        return AsyncKind.MBARRIER if self.mbarrier else AsyncKind.BULK

    @property
    def shared(self) -> Space:
        """The space of its mbarrier."""
        return Space.SHARED_CLUSTER if self.to is Space.SHARED_CLUSTER else Space.SHARED

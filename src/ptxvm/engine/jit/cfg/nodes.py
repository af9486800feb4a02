"""Nodes: the pieces of a kernel's code, each in the frame of a function that is inlined, or whose code stands once."""

from __future__ import annotations

from dataclasses import field

from ptxvm.analysis.program import Bound, Function
from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.cfg.if_conversion import Region
from ptxvm.engine.jit.cfg.requirements import OF_OTHER_WARPS
from ptxvm.isa.effects import Collective
from ptxvm.isa.model import Decoded
from ptxvm.isa.summary import summary

STACK, SAVED = 0, 1  # registers of a thread: the start of its frame, and the bytes on its spill stack
BACK = -2  # stands for the node to return to, which the caller of a shared function has spilled


@dataclass(eq=False, slots=True)
class Frame:
    """A function inlined at a call, or one whose code stands once (`shared`).

    `registers` is the number of its first register among those of all frames, `offset` the start of its variables in the
    local memory of a thread; `back` is the node to which its lanes return.  A `shared` function has several callers, or
    calls itself: each lane has spilled which of the nodes `backs` it returns to, and its variables begin at the end of
    its caller's frame.  `extra` is the register that counts the bytes which the function added to its frame.  `body` is the
    function as its code is written: with some parameters in registers (`cfg.parameter_registers`), or as it is.
    """

    function: Function
    body: Function
    number: int
    registers: int
    offset: int
    end: int
    parent: Frame | None = None
    call: Bound | None = None
    call_end: int = 0  # the instruction after the call
    shared: bool = False
    extra: int | None = None
    back: int = -1
    backs: list[int] = field(default_factory=list)
    at: dict[int, int] = field(default_factory=dict)  # nodes by the instruction at which they begin
    root: Frame = field(init=False)  # the outermost frame that it is inlined in: the kernel's, or a shared one

    @property
    def code(self) -> list[Bound]:
        """Its instructions."""
        return self.body.instructions

    def __post_init__(self) -> None:
        """Take the root of the parent."""
        self.root = self if self.parent is None else self.parent.root


@dataclass(eq=False, slots=True)
class Node:
    """A piece of code without branches inside.

    `waits` says that it begins after the wait of a barrier or collective; `returns` is the frame of the function that
    lanes return from here.
    """

    number: int
    frame: Frame
    start: int
    end: int
    rank: int = 0
    gen: int = 0
    kill: int = 0
    live_in: int = 0
    live_out: int = 0
    waits: bool = False
    barrier: bool = False
    successors: list[int] = field(default_factory=list)
    wait: int = -1  # of a barrier or a collective, the node that follows the wait
    callee: Frame | None = None  # the function that its call enters inline
    calls: list[tuple[Frame, int]] = field(default_factory=list)  # of shared functions, each with the node to return to
    spilled: int = 0  # the registers that such a call spills
    region: Region | None = None  # the predicated blocks behind the branch at `end` (`if_conversion`) ...
    escapes: tuple[int, ...] = ()  # ... and for each the registers that it writes and that are read behind it
    returns: Frame | None = None
    call: Bound | None = None  # the call of a shared function that returns here

    @property
    def barrier_wait(self) -> bool:
        """Do lanes resume here after a barrier?"""
        return self.waits and is_barrier(self.code[0].i)

    @property
    def head(self) -> int:
        """The number of its instructions that all lanes run."""
        return 0 if self.returns is not None else self.end - self.start

    @property
    def code(self) -> list[Bound]:
        """Its instructions."""
        if self.returns is not None:
            return []
        code = self.frame.code[self.start : self.end]
        for block in self.region.blocks if self.region is not None else ():
            code += self.frame.code[block.start : block.end]
        return code

    @property
    def next(self) -> int:
        """The instruction after it in the code, or the join of its region."""
        return self.end if self.region is None else self.region.join


def is_barrier(i: Decoded) -> bool:
    """Does it wait for threads of the CTA, of the cluster, or of the warpgroup, or for what they give back?"""
    return "waits" in i.of.effects and (not i.of.effects.isdisjoint(("cta", "cluster")) or _of_other_warps(i))


def is_collective(i: Decoded) -> bool:
    """Does it wait for lanes of the warp alone?"""
    return "waits" in i.of.effects and "warp" in i.of.effects and not _of_other_warps(i)


def asks_for_lanes(bound: Bound) -> bool:
    """Does it depend on which lanes of the warp run it now, without a wait for any?"""
    return bound.summary.collective is Collective.ACTIVE_LANES


def _of_other_warps(i: Decoded) -> bool:
    return summary(i).collective in OF_OTHER_WARPS

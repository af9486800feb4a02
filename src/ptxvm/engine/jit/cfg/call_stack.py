"""The call stack of a thread: what calls keep there, and how much room it needs where the depth of calls has a bound."""

from __future__ import annotations

from ptxvm.algebra.types import Type, u32
from ptxvm.engine.jit.abi.launch_record import UNBOUNDED_LOCAL
from ptxvm.engine.jit.cfg.nodes import Frame, Node, Plan

BACK = 8  # bytes of the last entry of the second stack: the node, and where the caller's frame begins
LEAST_FRAME = 16  # bytes
Key = tuple[int, int]  # the index of the register, and the element of a vector one


def bounded_frames(plan: Plan) -> int:
    """Bytes of local memory that the frames of a kernel need at most, where no function is entered twice."""
    ends: dict[Frame, int] = {}
    for frame in plan.frames:
        ends[frame.root] = max(ends.get(frame.root, 16), frame.end)
    for node in plan.nodes:
        for callee, _ in node.calls:
            ends[callee] = max(ends[callee], plan.image.frame_size(callee.function, node.code[-1]))
    return sum(-(-end // 16) * 16 for end in ends.values()) + 32


def bounded_saved(plan: Plan) -> int:
    """The same of the second stack."""
    return sum(_most_saved(plan).values())


def unbounded_saved(plan: Plan) -> int:
    """Bytes of the second stack with which the first one is always the first to be full."""
    return UNBOUNDED_LOCAL // LEAST_FRAME * max(_most_saved(plan).values(), default=0)


def _most_saved(plan: Plan) -> dict[Frame, int]:
    """The most that a call leaves there, for each function that stands in the code once."""
    most: dict[Frame, int] = {}
    for node in plan.nodes:
        if node.calls:
            most[node.frame.root] = max(most.get(node.frame.root, 0), saved_size(spilled_registers(node)))
    return most


def saved_size(kept: list[tuple[Key, Type]]) -> int:
    """Bytes of the registers that a call keeps, and of where it returns to."""
    return sum(entry_size(type) for _, type in kept) + BACK


def entry_size(type: Type) -> int:
    """Bytes of a register there."""
    return max(8, type.bytes)


def spilled_registers(node: Node) -> list[tuple[Key, Type]]:
    """The registers that a call keeps on the second stack, with their types."""
    found: list[tuple[Key, Type]] = []
    frame: Frame | None = node.frame
    while frame is not None:
        for register in frame.function.registers:
            if node.spilled >> register.index + frame.registers & 1:
                found += [((register.index + frame.registers, part), register.type) for part in range(register.count)]
        if frame.extra is not None:
            found.append(((frame.extra, 0), u32))
        frame = frame.parent
    return found

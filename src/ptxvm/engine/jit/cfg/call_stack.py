"""The call stacks of a thread: what a call spills, and how many bytes the stacks need where call depth is bounded."""

from __future__ import annotations

from ptxvm.algebra.types import Type, u32, u64
from ptxvm.engine.jit.abi.launch_record import UNBOUNDED_LOCAL
from ptxvm.engine.jit.cfg.control_flow_graph import ControlFlowGraph
from ptxvm.engine.jit.cfg.nodes import Frame, Node

BACK = 8  # bytes of the last entry of a call: the node to return to, and the start of the caller's frame
LEAST_FRAME = 16  # bytes
Key = tuple[int, int]  # the index of the register, and the element of a vector one


def bounded_frames(graph: ControlFlowGraph) -> int:
    """The most bytes of local memory that the frames of a kernel need, where there is no recursion."""
    ends: dict[Frame, int] = {}
    for frame in graph.frames:
        ends[frame.root] = max(ends.get(frame.root, 16), frame.end)
    for node in graph.nodes:
        for callee, _ in node.calls:
            ends[callee] = max(ends[callee], graph.image.frame_size(callee.function, node.code[-1]))
    return sum(-(-end // 16) * 16 for end in ends.values()) + 32


def bounded_saved(graph: ControlFlowGraph) -> int:
    """The most bytes of the spill stack, where there is no recursion."""
    return sum(_most_saved(graph).values())


def unbounded_saved(graph: ControlFlowGraph) -> int:
    """Bytes of a spill stack that cannot overflow before the stack of frames does."""
    return UNBOUNDED_LOCAL // LEAST_FRAME * max(_most_saved(graph).values(), default=0)


def _most_saved(graph: ControlFlowGraph) -> dict[Frame, int]:
    """The most bytes that a call spills, for each function whose code stands once."""
    most: dict[Frame, int] = {}
    for node in graph.nodes:
        if node.calls:
            most[node.frame.root] = max(most.get(node.frame.root, 0), saved_size(spilled_registers(graph, node)))
    return most


def saved_size(spilled: list[tuple[Key, Type]]) -> int:
    """Bytes of the registers that a call spills, and of its return address."""
    return sum(entry_size(type) for _, type in spilled) + BACK


def entry_size(type: Type) -> int:
    """Bytes of a register on the spill stack."""
    return max(8, type.bytes)


def spilled_registers(graph: ControlFlowGraph, node: Node) -> list[tuple[Key, Type]]:
    """The registers that a call spills, with their types, and their marks."""
    found: list[tuple[Key, Type]] = []
    frame: Frame | None = node.frame
    while frame is not None:
        for register in frame.body.registers:
            number = register.index + frame.registers
            if node.spilled >> number & 1:
                found += [((number, part), register.type) for part in range(register.count)]
                if number in graph.marks:
                    found.append(((graph.marks[number], 0), u64))
        if frame.extra is not None:
            found.append(((frame.extra, 0), u32))
        frame = frame.parent
    return found

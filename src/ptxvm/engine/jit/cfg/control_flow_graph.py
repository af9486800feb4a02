"""The control flow graph of a kernel: its nodes, with the functions that it calls inlined, and their ranks.

A node is a segment of the kernel, or the part of a barrier after its wait.  Of the nodes that hold lanes of a warp, the
one of the lowest rank runs first, so that diverged lanes reconverge.  Ranks order nodes as the code does; collectives
come after all other code, since they may wait for lanes; barriers, which wait for other warps, come last.  What asks for the
lanes that run it now (`activemask`) comes with the collectives: lanes that are at earlier ones may still join it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import pairwise

from ptxvm.analysis.flow import cut_points, segments, successors
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.symbols import Register
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.engine import call_targets
from ptxvm.engine.jit.cfg import liveness, pointer_marks
from ptxvm.engine.jit.cfg.if_conversion import Region, regions
from ptxvm.engine.jit.cfg.loops import repeated
from ptxvm.engine.jit.cfg.nodes import BACK, SAVED, STACK, Frame, Node, asks_for_lanes, is_barrier, is_collective
from ptxvm.engine.jit.cfg.parameter_registers import in_registers
from ptxvm.engine.jit.cfg.pointer_marks import BoundedAccesses
from ptxvm.engine.jit.cfg.restart_points import after_stores
from ptxvm.isa.effects import Jump
from ptxvm.machine.image import Image

MOST_FRAMES = 4000  # with registers of their own: compile time grows with the square of their number
OWN_REGISTERS = 1000
"""The copies of functions that have registers, and so shapes, of their own; later copies of a function share registers."""
MOST_COPIED = 5_000  # instructions of functions that are inlined once more, or ...
COPIES_PER_CODE = 4  # ... so many times those of the code itself.  A function that stands once serves lanes at any node


class ControlFlowGraph:
    """The nodes of a kernel, with the functions that it calls inlined."""

    def __init__(
        self,
        image: Image,
        kernel: Function,
        *,
        general: bool = False,
        spinning: frozenset[Bound] = frozenset(),
        ordered: bool = False,
        deferred: bool = False,
        bounded: bool = False,
        body: Callable[[Function], Function] = in_registers,
    ) -> None:
        self.image, self.spinning, self._body = image, spinning, body
        self.ordered = ordered  # lanes run in the order of code: no branch is converted whose lanes meet before it
        self.nodes: list[Node] = []
        self.frames: list[Frame] = []
        self.order: list[Node] = []
        self.count = 2  # STACK and SAVED come first
        self.numbered: list[Frame] = []  # frames that have registers of their own, or share them with later ones
        self.shared: dict[Function, Frame] = {}
        code = sum(len(each.instructions) for each in call_targets.called(image, kernel))  # reads the bodies
        self.module: dict[Register, int] = {}  # registers of the module, which all functions of a thread share (PTX 5.1.1)
        for register in (r for program in image.programs for r in program.scope.registers):
            self.module[register], self.count = self.count, self.count + 1
        self.copies = self.copied = 0  # functions whose code stands elsewhere too, and their instructions
        self._most_copied = max(MOST_COPIED, COPIES_PER_CODE * code)
        self._standing: set[Function] = set()
        self._first: dict[tuple[Frame, Function], int] = {}  # the first register of a function in frames that share registers
        self._segments: dict[Function, dict[int, int]] = {}
        self._found_regions: dict[Function, dict[int, Region]] = {}
        self._fill(self._enter(kernel, None, None, 0))
        self._link()
        self._rank()
        self.marks: dict[int, int] = {}  # registers with addresses, and those with the marks of these
        self.bounded = BoundedAccesses()
        if bounded:
            self._bound_accesses()
        always = sum(1 << index for index in (*self.stack_registers, *self.module.values(), *self.marks.values()))
        liveness.find(self.nodes, always, deferred=deferred)
        for node in self.nodes:
            if node.wait >= 0 and not node.barrier and not general:  # lanes of a collective do not wait
                node.successors.remove(node.wait)

    def _bound_accesses(self) -> None:
        """Find the variables of accesses; pointers to one of several have marks."""
        self.bounded = pointer_marks.bounded_accesses((frame.body for frame in self.frames), self._entered)
        frames = ((frame.body, frame.registers) for frame in self.frames)
        self.marks.update(pointer_marks.numbered(self.bounded, frames, self.count))
        self.count += len(self.marks)

    def _entered(self, call: Bound) -> list[Function]:
        """The functions that a call may enter, as their code is written."""
        return [self._body(each) for each in call_targets.callees(self.image, call)]

    def repeats(self, node: Node) -> bool:
        """Is the node part of a loop?"""
        return node.number in self._loops

    @property
    def has_loops(self) -> bool:
        """Is any node part of a loop?"""
        return bool(self._loops)

    def joins(self, node: Node) -> bool:
        """Has a node several predecessors?  Lanes that have parted can meet there."""
        return self._predecessors[node.number] > 1

    @cached_property
    def _predecessors(self) -> Counter[int]:
        """How many predecessors each node has."""
        return Counter(number for node in self.nodes for number in set(node.successors))

    @cached_property
    def _loops(self) -> set[int]:
        """The nodes that are in loops."""
        return repeated([node.successors for node in self.nodes])

    # ── frames ──────────────────────────────────────────────────────────────────────────

    def _fits(self, function: Function, caller: Frame) -> bool:
        """Can the function be inlined?"""
        if caller.extra is not None or function not in self._standing:
            return caller.extra is None
        if self.copied + len(function.instructions) > self._most_copied:
            return False
        above: Frame | None = caller
        while above is not None:
            if above.function is function:
                return False
            above = above.parent
        return True

    def _enter(self, function: Function, parent: Frame | None, call: Bound | None, call_end: int) -> Frame:
        size = self.image.frame_size(function, call)
        start = self.image.module_local.size if parent is None else -(-parent.end // 16) * 16
        end = start + (size if parent is None else max(size, 16))
        frame = Frame(function, self._body(function), len(self.frames), self.count, start, end, parent, call, call_end)
        if function in self._standing:
            self.copies += 1
            self.copied += len(function.instructions)
        self._standing.add(function)
        if self.copies > OWN_REGISTERS:  # a lane is in one of them at a time: none is inlined in another
            frame.registers = self._first.setdefault((frame.root, function), self.count)
        self._add(frame)
        return frame

    def _shared(self, function: Function) -> Frame:
        """The frame of a function whose code stands once."""
        size = self.image.frame_size(function, None)
        frame = Frame(function, self._body(function), len(self.frames), self.count, 0, max(size, 16), shared=True, back=BACK)
        self._standing.add(function)
        self._add(frame)
        return frame

    def _add(self, frame: Frame) -> None:
        if len(self.numbered) >= MOST_FRAMES:
            raise Unsupported(f"compiling a kernel that calls {MOST_FRAMES:,} functions or more (engine='interp' runs it)")
        self.frames.append(frame)
        if frame.registers == self.count:
            self.numbered.append(frame)
        numbers = len(frame.body.registers)
        if any(bound.summary.grows_stack for bound in frame.code):
            frame.extra, numbers = frame.registers + numbers, numbers + 1
        self.count = max(self.count, frame.registers + numbers)

    def _fill(self, frame: Frame) -> None:
        """Make the nodes of a frame, and depth first those of the frames that its calls enter."""
        work = [self._nodes(frame)]
        while work:
            entered = next(work[-1], None)
            if entered is None:
                work.pop()
            else:
                work.append(self._nodes(entered))

    def _nodes(self, frame: Frame) -> Iterator[Frame]:
        """Make the nodes of a frame; yields each frame that its calls enter, which the caller fills first."""
        code = frame.code
        own: list[Node] = []
        if not code:  # control comes to the end at once
            frame.at[0] = self._node(frame, 0, 0).number
        for start, end, region in self._pieces(frame):
            node = self._node(frame, start, end)
            own.append(node)
            node.region = region
            last = code[end - 1]
            if last.calls:
                yield from self._call(node, last)
            if is_barrier(last.i) or is_collective(last.i):
                node.barrier = is_barrier(last.i)
                after = self._node(frame, start, end)
                after.waits, node.wait = True, after.number
        for node in own:
            frame.at[node.start] = node.number
        for node in own:
            targets_at = [node.next] if node.region is not None else successors(frame.body, code[node.end - 1], node.end)
            following = [frame.at[at] for at in targets_at]
            if node.wait >= 0:
                self.nodes[node.wait].successors = list(following)
                passes = not node.barrier or code[node.start].node.guard is not None
                following = [node.wait, *(following if passes else [])]
            guarded = code[node.end - 1].node.guard is not None
            if node.callee is not None:
                self.nodes[node.callee.back].successors = list(following)
                following = [node.callee.at[0], *(following if guarded else [])]
            for _, back in node.calls:
                self.nodes[back].successors = list(following)
            node.successors = following if guarded or not node.calls else []

    def _pieces(self, frame: Frame) -> Iterator[tuple[int, int, Region | None]]:
        """The start and the end of each node, and the predicated region behind it."""
        asking = (n for n, bound in enumerate(frame.code) if asks_for_lanes(bound))
        cuts = sorted({0, len(frame.code), *cut_points(frame.body), *after_stores(frame.code), *asking})
        behind = self._regions(frame.body, cuts) if not self.module else {}
        predicated = {block.start for region in behind.values() for block in region.blocks}
        for start, end in pairwise(cuts):
            if start not in predicated:
                yield start, end, behind.get(end)

    def _regions(self, function: Function, cuts: list[int]) -> dict[int, Region]:
        if function not in self._found_regions:
            found = regions(function, cuts[:-1], self.spinning)
            self._found_regions[function] = {at: each for at, each in found.items() if not self.ordered or each.join >= at}
        return self._found_regions[function]

    def _node(self, frame: Frame, start: int, end: int) -> Node:
        node = Node(len(self.nodes), frame, start, end)
        self.nodes.append(node)
        self.order.append(node)
        return node

    def _call(self, node: Node, bound: Bound) -> Iterator[Frame]:
        """Enter a call: inline, or to functions whose code stands once; a function without a body is not entered.

        Yields the frames that are new.
        """
        functions = call_targets.callees(self.image, bound)
        direct = bound.operands.get("func") is not None
        for function in functions:
            if direct and self._fits(function, node.frame):
                node.callee = self._enter(function, node.frame, bound, node.end)
                yield node.callee
                back = self._node(node.frame, node.end, node.end)
                back.returns, node.callee.back = node.callee, back.number
                return
        for function in functions:
            callee = self.shared.get(function)
            if callee is None:
                callee = self.shared[function] = self._shared(function)
                yield callee
            back = self._node(node.frame, node.end, node.end)
            back.returns, back.call = callee, bound
            callee.backs.append(back.number)
            node.calls.append((callee, back.number))

    def _link(self) -> None:
        """Link the calls and returns of shared functions, and find what their calls spill."""
        for node in self.nodes:
            if node.calls:
                node.successors = [*(callee.at[0] for callee, _ in node.calls), *node.successors]
                node.spilled = self._live_across(node)
                for _, back in node.calls:
                    self.nodes[back].spilled = node.spilled
            if node.frame.shared and may_return(node):
                node.successors = [*node.successors, *node.frame.backs]
        mine = [node for node in self.order if not node.frame.root.shared]
        self.order = [node for node in self.order if node.frame.root.shared] + mine

    def _live_across(self, node: Node) -> int:
        """The registers that live across a call: those of a shared function, and of what is inlined in it."""
        if not node.frame.root.shared:
            return 0
        found, frame, end = 0, node.frame, node.end
        while True:
            found |= self._live_after(frame.body, end) << frame.registers
            if frame.extra is not None:
                found |= 1 << frame.extra
            if frame.parent is None:
                return found
            frame, end = frame.parent, frame.call_end

    def _live_after(self, function: Function, end: int) -> int:
        """The registers of a function that are live where a segment ends."""
        if function not in self._segments:
            self._segments[function] = {segment.end: segment.live_out for segment in segments(function)}
        return self._segments[function][end]

    # ── order ───────────────────────────────────────────────────────────────────────────

    def _rank(self) -> None:
        total = len(self.order)
        for position, node in enumerate(self.order):
            meets = bool(node.code) and (is_collective(node.code[0].i) or asks_for_lanes(node.code[0]))
            later = 2 if node.waits else int(meets)
            node.rank = position + later * total
        for node in self.nodes:  # the end of an inlined function goes to the node after its call
            back = node.frame.back
            if back >= 0 and may_return(node) and back not in node.successors:
                node.successors.append(back)

    def number(self, register: Register, frame: Frame) -> int:
        """The number of a register among those of the kernel: of a frame, or of the module."""
        return self.module[register] if register.of_module else register.index + frame.registers

    @property
    def stack_registers(self) -> list[int]:
        """The registers that hold positions on the stacks."""
        return ([STACK, SAVED] if self.shared else []) + [f.extra for f in self.numbered if f.extra is not None]


def may_return(node: Node) -> bool:
    """May lanes return from the function at the end of a node?  Control past the last instruction returns."""
    code = node.frame.code
    return node.end == len(code) or (node.returns is None and code[node.end - 1].summary.jump is Jump.LEAVE)

"""The control flow graph of a kernel: nodes, their ranks (reconvergence), liveness, inlined functions.

A node is a segment of the kernel, or the part of a barrier after its wait.  Of the nodes that hold lanes of a warp, the
one of the lowest rank runs first, so that diverged lanes reconverge.  Ranks order nodes as the code does; collectives
come after all other code, since they may wait for lanes; barriers, which wait for other warps, come last.  What asks for the
lanes that run it now (`activemask`) comes with the collectives: lanes that are at earlier ones may still join it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import field
from functools import cached_property
from itertools import pairwise

from ptxvm.algebra.asynchronous import AsyncKind
from ptxvm.analysis.flow import cut_points, reads_and_writes, segments, successors
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.symbols import Register
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.engine import call_targets
from ptxvm.engine.jit.cfg.if_conversion import Region, regions
from ptxvm.engine.jit.cfg.loops import repeated
from ptxvm.engine.jit.cfg.requirements import OF_OTHER_WARPS, accumulators
from ptxvm.engine.jit.cfg.restart_points import after_stores
from ptxvm.isa.effects import Collective, Jump
from ptxvm.isa.model import Decoded
from ptxvm.isa.summary import summary
from ptxvm.machine.image import Image


@dataclass(eq=False, slots=True)
class Frame:
    """A function inlined at a call, or one whose code stands once (`shared`).

    `registers` is the number of its first register among those of all frames, `offset` the start of its variables in the
    local memory of a thread; `back` is the node to which its lanes return.  A `shared` function has several callers, or
    calls itself: each lane has spilled which of the nodes `backs` it returns to, and its variables begin at the end of
    its caller's frame.  `extra` is the register that counts the bytes which the function added to its frame.
    """

    function: Function
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
        return self.function.instructions

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


class Plan:
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
    ) -> None:
        self.image, self.general, self.spinning, self.deferred = image, general, spinning, deferred
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
        self._live()
        for node in self.nodes:
            if node.wait >= 0 and not node.barrier and not general:  # lanes of a collective do not wait
                node.successors.remove(node.wait)

    def repeats(self, node: Node) -> bool:
        """Is the node part of a loop?"""
        return node.number in self._loops

    @property
    def has_loops(self) -> bool:
        """Is any node part of a loop?"""
        return bool(self._loops)

    def joins(self, node: Node) -> bool:
        """Do several ways lead to a node?  Lanes that have parted can meet there."""
        return self._ways[node.number] > 1

    @cached_property
    def _ways(self) -> Counter[int]:
        """How many nodes lead to each."""
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
        frame = Frame(function, len(self.frames), self.count, start, end, parent, call, call_end)
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
        frame = Frame(function, len(self.frames), self.count, 0, max(size, 16), shared=True, back=BACK)
        self._standing.add(function)
        self._add(frame)
        return frame

    def _add(self, frame: Frame) -> None:
        if len(self.numbered) >= MOST_FRAMES:
            raise Unsupported(f"compiling a kernel that calls {MOST_FRAMES:,} functions or more (engine='interp' runs it)")
        self.frames.append(frame)
        if frame.registers == self.count:
            self.numbered.append(frame)
        numbers = len(frame.function.registers)
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
            targets_at = [node.next] if node.region is not None else successors(frame.function, code[node.end - 1], node.end)
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
        cuts = sorted({0, len(frame.code), *cut_points(frame.function), *after_stores(frame.code), *asking})
        behind = self._regions(frame.function, cuts) if not self.module else {}
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
                node.spilled = self._needed(node)
                for _, back in node.calls:
                    self.nodes[back].spilled = node.spilled
            if node.frame.shared and _leaves(node):
                node.successors = [*node.successors, *node.frame.backs]
        mine = [node for node in self.order if not node.frame.root.shared]
        self.order = [node for node in self.order if node.frame.root.shared] + mine

    def _needed(self, node: Node) -> int:
        """The registers that live across a call: those of a shared function, and of what is inlined in it."""
        if not node.frame.root.shared:
            return 0
        found, frame, end = 0, node.frame, node.end
        while True:
            found |= self._live_after(frame.function, end) << frame.registers
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

    # ── order and liveness ──────────────────────────────────────────────────────────────

    def _rank(self) -> None:
        total = len(self.order)
        for position, node in enumerate(self.order):
            meets = bool(node.code) and (is_collective(node.code[0].i) or asks_for_lanes(node.code[0]))
            later = 2 if node.waits else int(meets)
            node.rank = position + later * total
        for node in self.nodes:  # the end of an inlined function goes to the node after its call
            back = node.frame.back
            if back >= 0 and _leaves(node) and back not in node.successors:
                node.successors.append(back)

    def _live(self) -> None:
        """Liveness of the registers of all frames: backward data flow to a fixed point."""
        for node in self.nodes:
            self._uses(node)
        work = [node.number for node in self.nodes]
        before: list[list[int]] = [[] for _ in self.nodes]
        for node in self.nodes:
            for s in node.successors:
                before[s].append(node.number)
        while work:
            node = self.nodes[work.pop()]
            node.live_out = 0
            for s in node.successors:
                node.live_out |= self.nodes[s].live_in
            needed = node.gen | (node.live_out & ~node.kill)
            if needed != node.live_in:
                node.live_in = needed
                work += before[node.number]
        always = sum(1 << index for index in (*self.measures, *self.module.values()))
        for node in self.nodes:
            node.live_in |= always
            node.live_out |= always
            node.escapes = _escapes(node)

    def number(self, register: Register, frame: Frame) -> int:
        """The number of a register among those of the kernel: of a frame, or of the module."""
        return self.module[register] if register.of_module else register.index + frame.registers

    @property
    def measures(self) -> list[int]:
        """The registers that hold positions on the stacks."""
        return ([STACK, SAVED] if self.shared else []) + [f.extra for f in self.numbered if f.extra is not None]

    def _uses(self, node: Node) -> None:
        if node.returns is not None:
            self._returned(node)
            return
        shift, written = node.frame.registers, 0
        for bound in node.code[: node.head]:
            reads, writes = reads_and_writes(bound)
            if self.deferred and bound.summary.awaits is AsyncKind.PRODUCT:  # it may leave each accumulator as it is
                reads |= self._accumulators(node.frame.function)
            if (node.callee is not None or node.calls) and bound is node.code[-1]:
                writes = 0
            if node.barrier or node.waits:
                writes = 0
            node.gen |= reads << shift & ~written
            written |= writes << shift
        node.kill = written
        if node.region is not None:  # there some lanes keep their old values
            node.gen |= node.region.reads << shift & ~written
        node.gen |= node.spilled & ~node.kill
        if node.callee is not None and node.code[-1].node.guard is None:
            for formal in node.callee.function.signature.parameters:
                if isinstance(formal, Register):
                    node.kill |= 1 << formal.index + node.callee.registers

    def _accumulators(self, function: Function) -> int:
        """The registers that waits for products write in deferred code, as bits."""
        return sum(1 << register.index for register in accumulators(function))

    def _returned(self, node: Node) -> None:
        callee = node.returns
        if callee is None:
            return
        call = callee.call or node.call
        for formal, target in zip(callee.function.signature.results, call.results() if call else [], strict=False):
            if isinstance(formal, Register):
                node.gen |= 1 << formal.index + callee.registers
            if isinstance(target, Register) and not target.of_module:
                node.kill |= 1 << target.index + node.frame.registers
        node.kill |= node.spilled


MOST_FRAMES = 4000  # with registers of their own: compile time grows with the square of their number
OWN_REGISTERS = 1000
"""So many copies of functions have registers, and with these shapes, of their own; later ones of a function share theirs."""
MOST_COPIED = 5_000  # instructions of functions that are inlined once more, or ...
COPIES_PER_CODE = 4  # ... so many times those of the code itself.  A function that stands once serves lanes at any node
STACK, SAVED = 0, 1  # registers of a thread: the start of its frame, and the bytes on its spill stack
BACK = -2  # stands for the node to return to, which the caller of a shared function has spilled


def _leaves(node: Node) -> bool:
    """May lanes return from the function at the end of a node?  Control past the last instruction returns."""
    code = node.frame.code
    return node.end == len(code) or (node.returns is None and code[node.end - 1].summary.jump is Jump.LEAVE)


def _escapes(node: Node) -> tuple[int, ...]:
    """For each block of its region the registers that it writes and that are read behind it."""
    blocks, shift = node.region.blocks if node.region is not None else (), node.frame.registers
    return tuple((block.written & block.live) << shift | block.written << shift & node.live_out for block in blocks)


def waiting(found: list[Node], divergent: set[int]) -> list[frozenset[int]]:
    """For each node, the nodes at which other lanes may wait while it runs."""
    leaving = {node.number for node in found if node.code and node.code[-1].summary.ends_thread}
    others: list[set[int]] = [set() for _ in found]
    reached = {0}
    work = [0]
    while work:
        n = work.pop()
        node = found[n]
        groups = [set(node.successors)] if n in divergent else [{s} for s in node.successors] or [set()]
        if n in leaving:
            groups.append(set())
        for group in groups:
            standing = others[n] | group
            if not standing:
                continue
            bound = max((found[s].rank for s in group), default=1 << 60)
            for following in standing:
                rank = found[following].rank
                if rank > bound:
                    continue
                left = {q for q in standing if found[q].rank > rank}
                if following not in reached or not left <= others[following]:
                    reached.add(following)
                    others[following] |= left
                    work.append(following)
    return [frozenset(each) for each in others]


def reachable(found: list[Node], starts: set[int]) -> set[int]:
    """The nodes that control can reach."""
    seen: set[int] = set()
    work = list(starts)
    while work:
        n = work.pop()
        if n not in seen:
            seen.add(n)
            work += found[n].successors
    return seen

"""A kernel as a module of LLVM IR, for CTAs of one shape."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

from ptxvm.algebra.types import Type, pred, u32
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.symbols import Variable
from ptxvm.diagnostics.errors import Crash
from ptxvm.engine.jit import asides, counting, driver, handover, keeping, needs, plan, schedule, spinning, stack, streams, taint
from ptxvm.engine.jit.code import Code, TooWideError, Unit
from ptxvm.engine.jit.control import Leaving
from ptxvm.engine.jit.emitter import Emitter
from ptxvm.engine.jit.facts import LAUNCHING, Outside
from ptxvm.engine.jit.ports import Request
from ptxvm.engine.jit.queue import Queue
from ptxvm.engine.jit.raw import WARP, Lin, Raw
from ptxvm.engine.jit.record import POINTERS, TICKS, offset
from ptxvm.engine.jit.registers import CARRY, Key, Registers, Urgency, alignment, place
from ptxvm.engine.jit.shadow import Shadow
from ptxvm.machine.window import GRAIN

MOST_KEPT = 32  # accesses in loops: the processor has fewer registers for what is known of their allocations
WINDOWED = {"param", "shared", "shared::cta", "local"}  # they need no allocation
MOST_THREADS = 1 << 18  # of CTAs that are under way at once ...
MOST_BYTES = 1 << 30  # ... and what their records, shared and local memory may take
PARTED = 1 << 19  # the state of a warp that comes from the straight version
SHAPELESS = 1 << 20  # added to the states of the version without shapes
RESUME = 1 << 21  # the state of a warp that comes from the masked version
STRAIGHT = 1 << 22  # added to the states of the straight version


class Kernel:
    """The translation of a kernel.

    It is `general` where lanes may stand anywhere (`dispatch`): in the version without shapes, and where the kernel
    `meets` (its barriers are for some threads, `meeting`) or is `fair` (lanes that spin must not starve others).
    """

    TICKS = TICKS
    SPANS = 4  # how many distances between lanes are told apart, for each instruction
    PATIENCE = 64  # turns of loops after which a warp of a fair kernel lets others run

    def __init__(  # noqa: PLR0913 - what is to be translated, and how
        self, image: Any, function: Function, block: tuple[int, int, int], shared_size: int,
        constants: dict[str, int], *, shapeless: bool = False, straight: bool = False, width: int = WARP,
        before: Kernel | None = None, shadow: Shadow | None = None, trusted: bool = False, fast: bool = False,
    ) -> None:  # fmt: skip
        """`before` is the version from which warps come to this one."""
        self.image, self.function, self.block, self.constants = image, function, block, constants
        self.before = before
        self._by_memory: dict[int, int] = {}
        self.shared_size, self.shapeless, self.straight, self.main = shared_size, shapeless, straight, before is None
        self.bank_size = image.parameters(function).size
        self.threads = block[0] * block[1] * block[2]
        self.warps = -(-self.threads // WARP)
        self.width = width
        self.fast = fast  # approximate functions keep the bounds of the manual only
        self.trusted = trusted  # no access is checked
        self.shadow = shadow
        self.held: dict[Bound, Variable] = {}  # accesses that must not leave a variable
        self.unit = Unit(width)
        self.asks = needs.asks(image, function)
        self.fair = spinning.spins(image, function) is not None
        self.meets = self.fair or needs.meets(image, function)
        self.unbounded = needs.unbounded(image, function)
        self.meets = self.meets or self.unbounded
        self.general = self.meets or shapeless
        self.plan = plan.Plan(image, function, general=self.general)
        self.nodes = self.plan.nodes
        if shadow is not None and "memory" in shadow.checks:
            self.held = keeping.held(frame.function for frame in self.plan.frames)
        self.pools = sorted({n.code[0].i.mnemonic for n in self.nodes if n.waits and not n.barrier_wait})
        self.stack_size = -(-max(frame.end for frame in self.plan.frames) // 16) * 16 + 32
        if self.unbounded:
            self.stack_size = image.module_local.size + stack.UNBOUNDED
        self.local_stride = -(-max(self.stack_size, 1) // 256) * 256
        self.registers = Registers(width, not shapeless, before is not None, self._requeue)
        self.divergent: set[int] = set()
        self.masked: set[int] = set()
        self.texts: dict[tuple[int, bool], tuple[Emitter, list[str]]] = {}
        self.queues = tuple(Queue(lambda n: self.nodes[n].rank) for _ in Urgency)  # nodes that are to be written
        self.buffers: dict[str, str] = {}
        self.endings: set[int] = set()  # nodes of the straight version that it leaves to the masked one
        self.parting: dict[int, tuple[int, int]] = {}  # nodes of the straight version and where their lanes go
        self.sites: list[tuple[Bound, str, int, int, bool]] = before.sites if before else []
        self.site_numbers: dict[tuple[int, str, int, int, bool], int] = before.site_numbers if before else {}
        self.kept_sites: set[tuple[int, int]] = set()  # of places in loops, and which of their fields
        self.walks = 0
        self.uses_local = self.leaves_all = False
        self.addresses: set[int] = set()
        self._order: dict[Key, int] | None = None
        self.barrier_numbers: dict[int, int] = {}
        self.places = [b for frame in self.plan.frames for b in frame.code]
        self._index = {id(b): n for n, b in enumerate(self.places)}
        self.works: list[tuple[Bound, Outside, list[Type], list[Type]]] = before.works if before else []
        self.most_spans = self.SPANS * (len(self.places) + 16)
        self.most_sites = self.most_spans + 4 * (len(self.places) + 16)

    @cached_property
    def outputs(self) -> dict[Bound, Variable]:
        """The stores that may go past the caches, and the parameters through which they go."""
        return streams.found(self)

    @cached_property
    def streamed(self) -> list[Variable]:
        """The parameters that have a bit in `kept`, in all versions."""
        return self.before.streamed if self.before is not None else []

    # ── what nodes ask ──────────────────────────────────────────────────────────────────

    def place_of(self, bound: Bound) -> int:
        """The number of an instruction among those of the kernel and of what it calls."""
        return self._index[id(bound)]

    @property
    def frees(self) -> bool:
        """May memory go away while it runs?"""
        return any(name == "free" or name.startswith(LAUNCHING) for name in self.asks)

    def outside(self, bound: Bound, work: Outside, inputs: list[Type], outputs: list[Type]) -> int:
        """The number of something that Python does."""
        self.works.append((bound, work, inputs, outputs))
        return len(self.works) - 1

    @property
    def pending(self) -> set[int]:
        """The nodes at which lanes may stand while others run."""
        return self.masked | {node.number for node in self.nodes if node.waits} | {0}

    @cached_property
    def keeps_sites(self) -> bool:
        """Do accesses in loops keep their allocations in variables?  Not where there are many, nor where memory is freed."""
        looping = (b for node in self.nodes if self.plan.repeats(node) for b in node.code)
        count = sum("mem" in b.i.of.effects and not WINDOWED & set(b.node.words) for b in looping)
        return count <= MOST_KEPT and not self.frees

    @property
    def patience(self) -> int:
        """How many turns of loops a warp runs before it lets others run, or the machine look."""
        return self.PATIENCE if self.fair else self.TICKS

    @property
    def parts(self) -> bool:
        """Do some lanes of a warp run what others do not?"""
        return not self.straight or any(node.aside for node in self.nodes)

    @property
    def in_turn(self) -> bool:
        """Is it the version that runs first, of a kernel whose CTAs run one after the other?"""
        return self.main and not self.meets

    @property
    def shared_stride(self) -> int:
        """From the shared memory of a CTA to that of the next one beside it."""
        return -(-max(self.shared_size, 1) // GRAIN) * GRAIN

    @property
    def cta_size(self) -> int:
        """Bytes of the records of a CTA that is under way."""
        return schedule.cta_size(self) if self.meets else self.warps * self.record_size

    @property
    def most_resident(self) -> int:
        """How many CTAs are under way at once, at most: those of a fair kernel may wait for each other."""
        if not self.fair:
            return 1
        local = self.local_stride * self.threads if self.uses_local else 0
        saved = stack.ROOM * self.warps * WARP if self.plan.shared else 0
        return max(1, min(MOST_THREADS // self.threads, MOST_BYTES // (self.cta_size + self.shared_stride + local + saved)))

    def field(self, code: Code, name: str) -> str:
        """The place of a field of the launch's record."""
        return code.emit(f"getelementptr i8, ptr %ctx, i64 {offset(name)}")

    def here(self, code: Code) -> None:
        """Somebody is about to be asked, who may want to know of which CTA."""
        code.run("store i32 %ctaid.x, ptr %ctaid.x.place, align 8")

    def context(self, code: Code, name: str, *, pure: bool = True) -> str:
        """A field of the launch's record."""
        llvm = "ptr" if name in POINTERS else "i32"
        where = code.emit(f"getelementptr i8, ptr %ctx, i64 {offset(name)}", pure=pure)
        return code.emit(f"load {llvm}, ptr {where}, align 8", pure=pure)

    def address(self, number: int) -> str:
        """Where something of the module is: loaded from a table when the warp's function begins."""
        self.addresses.add(number)
        return f"%address.{number}"

    def buffer(self, llvm: str, number: int) -> str:
        """Scratch memory of the warp's function."""
        name = f"%buffer.{number}." + re.sub(r"\W+", "_", llvm)
        self.buffers[name] = llvm
        return name

    def site(self, bound: Bound, space: str, size: int, span: int, *, writing: bool) -> int:
        """The number of a place that accesses memory; where there are too many, one for lanes at any distance."""
        place = self._index[id(bound)]
        if (place, space, size, span, writing) not in self.site_numbers and len(self.sites) >= self.most_spans:
            span = 0
        key = (place, space, size, span, writing)
        if key not in self.site_numbers:
            if len(self.sites) == self.most_sites:
                raise Crash(f"more accesses of memory than {self.most_sites}")
            self.site_numbers[key] = len(self.sites)
            self.sites.append((bound, space, size, span, writing))
        return self.site_numbers[key]

    def barrier(self, bound: Bound, request: Request) -> None:
        """Remember the number of a barrier for the whole CTA."""
        number = request.values[0]
        known = number.raw.constant if number is not None and isinstance(number.raw, Lin) else None
        if known is None:
            raise Crash(f"the number of '{bound.i.mnemonic}' was thought to be constant")
        self.barrier_numbers[id(bound)] = known

    def kept_by_others(self, node: plan.Node, key: Key) -> bool:
        """Do lanes that stand elsewhere need their value of a register?"""
        if key == CARRY:
            return bool(node.waiting)
        return any(self.nodes[n].live_in >> key[0] & 1 for n in node.waiting)

    def diverges(self, node: plan.Node, guard: Raw, *, linear: bool) -> None:
        """Lanes may part at the end of a node."""
        if self.straight:
            taint.expect_whole(self, node, guard, linear=linear)
        else:
            self.divergent.add(node.number)

    def loop_helper(self, kind: str, llvm: str) -> str:
        """A function that gathers or scatters lane by lane."""
        name = f"ptxvm.{kind}.{llvm}"
        return self.unit.helper(name, driver.lane_loop(name, kind, llvm))

    # ── the fixed point ─────────────────────────────────────────────────────────────────

    @property
    def queue(self) -> Queue:
        """The nodes that are to be written first."""
        return self.queues[Urgency.SHAPE]

    def _requeue(self, user: tuple[int, bool], urgency: Urgency) -> None:
        self.queues[urgency].add(user)

    def translate(self) -> str:
        """The module's text."""
        self._initial_registers()
        whole = self.threads % WARP == 0 and self.main
        everything = plan.reachable(self.nodes, {0})
        self.queue.update((n, True) for n in everything)
        if self.straight:
            self._settle()
            return driver.module(self)
        if not whole:
            self._mask(everything)
        for _ in range(1000):
            self._settle()
            before = [node.waiting for node in self.nodes]
            starts = {s for n in self.divergent for s in self.nodes[n].successors}
            if self.general:
                starts |= everything if self.fair else {node.number for node in self.nodes if node.waits} & everything
            self._mask(plan.reachable(self.nodes, starts))
            for node, others in zip(self.nodes, self._others(), strict=True):
                node.waiting = others
            self.queue.update(
                (node.number, False)
                for node, old in zip(self.nodes, before, strict=True)
                if node.waiting != old and node.number in self.masked
            )
            if not self.queue:
                break
        return driver.module(self)

    def _others(self) -> list[frozenset[int]]:
        """For every node the nodes at which other lanes may stand while it runs."""
        if not self.general:
            return plan.waiting(self.nodes, self.divergent)
        return [frozenset(self.masked - {node.number}) for node in self.nodes]

    def _mask(self, numbers: set[int]) -> None:
        """These nodes may run for some lanes of a warp."""
        self.queue.update((n, False) for n in numbers - self.masked)
        self.masked |= numbers

    def _settle(self) -> None:
        """Write nodes until no shape changes."""
        while queue := next(filter(None, self.queues), None):
            number, full = user = queue.pop()
            for each in self.queues:
                each.discard(user)
            emitter = Emitter(self, self.nodes[number], full=full)
            try:
                emitter.run()
                counting.node(emitter)
                emitter.store_registers()
                Leaving(self, emitter).run()
            except (taint.PartsError, TooWideError):
                if self.plan.repeats(emitter.node):
                    raise
                emitter = self._left_to_others(emitter.node)
            self.texts[user] = (emitter, emitter.prologue + emitter.code.lines)

    def _left_to_others(self, node: plan.Node) -> Emitter:
        """The straight version ends before a node that is better run warp by warp."""
        self.endings.add(node.number)
        emitter = Emitter(self, node, full=True)
        emitter.leaves = True
        emitter.code.jump(emitter.name("leave"))
        return emitter

    def by_memory(self, frame: plan.Frame) -> int:
        """The registers of a function that depend on what memory holds, as a mask."""
        if frame.number not in self._by_memory:
            self._by_memory[frame.number] = asides.by_memory(frame.code)
        return self._by_memory[frame.number]

    def gains(self) -> bool:
        """Is the straight version worth it: does it run to the end, or at least a loop of it?"""
        return not self.endings or any(self.plan.repeats(self.nodes[n]) for n, _ in self.texts)

    def _initial_registers(self) -> None:
        first = self.nodes[0]
        for frame in self.plan.frames:
            for register in frame.function.registers:
                if first.live_in >> register.index + frame.registers & 1:
                    for part in range(register.count):
                        self.registers.initial((register.index + frame.registers, part), register.type)
        for register, index in self.plan.module.items():
            for part in range(register.count):
                self.registers.initial((index, part), register.type)
        for index in self.plan.measures:
            self.registers.initial((index, 0), u32)
        if any("cc" in b.i.of.effects for b in self.places):
            self.registers.initial(CARRY, pred)

    def order(self, key: Key | None) -> int:
        """The place of a register among those that live across nodes; None asks for their number."""
        if self._order is None:
            live = 0
            for node in self.nodes:
                live |= node.live_in
            kept = sorted([(n, part) for frame in self.plan.frames for r in frame.function.registers
                           for n in (r.index + frame.registers,) for part in range(r.count) if live >> n & 1]
                          + [(n, part) for r, n in self.plan.module.items() for part in range(r.count)]
                          + [(n, 0) for n in self.plan.measures])  # fmt: skip
            self._order = {CARRY: 0, **{k: 1 + n for n, k in enumerate(kept)}}
        return len(self._order) if key is None else self._order[key]

    # ── what lives across barriers ──────────────────────────────────────────────────────

    @property
    def record_size(self) -> int:
        """Bytes of the record of a warp."""
        return handover.record_size(self)

    def saved(self, node: plan.Node) -> list[tuple[str, str, int]]:
        """The stack slots that a warp needs after a barrier, their types, and their places in its record."""
        at, found = 64, []
        for key, part, llvm in self.registers.slots():
            if key != CARRY and not node.live_in >> key[0] & 1:
                continue
            step = alignment(llvm)
            at = -(-at // step) * step
            found.append((place(key, part), llvm, at))
            at += size_of(llvm)
        if at > self.record_size * (self.width // WARP):
            raise Crash("the registers of a warp do not fit its record")
        return found


def size_of(llvm: str) -> int:
    """Bytes of a stack slot."""
    if llvm.startswith("<"):
        count, _, one = llvm[1:-1].partition(" x ")
        return int(count) * size_of(one) if one != "i1" else 64
    return {"float": 4, "double": 8}.get(llvm) or max(1, int(llvm[1:]) // 8)


__all__ = ["PARTED", "RESUME", "SHAPELESS", "STRAIGHT", "Kernel", "pred", "u32"]

"""The lane scheduler of a general version: which lanes of a diverged warp run next, and how the warp suspends and resumes.

Most kernels need none: each node knows at which nodes other lanes can wait (`lower.terminators`).  Kernels need it whose
lanes wait for lanes at other collectives or barriers, or must not starve each other; so does the shapeless version.
"""

from __future__ import annotations

from ptxvm.engine.jit.abi.launch_record import HEADER
from ptxvm.engine.jit.abi.states import GENERAL, RUNNABLE, SHAPELESS, STUCK
from ptxvm.engine.jit.cfg.nodes import Node
from ptxvm.engine.jit.ir.builder import Code
from ptxvm.engine.jit.ir.runtime import runtime
from ptxvm.engine.jit.memory import barrier_epochs
from ptxvm.engine.jit.node.context import KernelContext
from ptxvm.engine.jit.node.register_shapes import CARRY, move_slot
from ptxvm.isa.cta_barrier import reduction
from ptxvm.isa.special_registers import WARP

WORDS = f"<{WARP} x i32>"


# ── the next lanes ───────────────────────────────────────────────────────────────────────


class LaneScheduler:
    """Writes the blocks `dispatch`, `yield` and `resume.general` of a warp's function."""

    def __init__(self, kernel: KernelContext) -> None:
        self.kernel, self.code = kernel, Code(kernel.unit)
        written = [kernel.nodes[n] for n, full in kernel.written if not full]
        self.runnable = sorted((node for node in written if not node.waits), key=lambda node: node.rank)
        self.waits = sorted((node for node in written if node.waits), key=lambda node: node.rank)
        self.all_nodes = [*self.runnable, *self.waits]
        needed = 0
        for node in self.all_nodes:
            needed |= node.live_in
        self.slots = [slot for slot in kernel.registers.slots() if slot[0] == CARRY or needed >> slot[0][0] & 1]
        self.later = ""

    def run(self) -> list[str]:
        """Write all blocks."""
        self._dispatch()
        self._settle("settle", "wake", "idle")
        self._suspend("idle", waiting=True)
        if self.kernel.fair:
            self.code.block("yield")
            self.code.run(f"store i32 {self.kernel.time_slice}, ptr %ticks, align 4")
            self.code.jump("yield.settle")
            self._settle("yield.settle", "wake", "yielded")
            self._suspend("yielded", waiting=False)
        self._resume()
        return self.code.lines

    def _mask(self, node: Node) -> str:
        return self.code.emit(f"load i32, ptr %pending.{node.number}, align 4", pure=False)

    def _standing(self, nodes: list[Node]) -> str:
        """The lanes that wait at some nodes."""
        total = "0"
        for node in nodes:
            total = self.code.emit(f"or i32 {total}, {self._mask(node)}", pure=False)
        return total

    def _dispatch(self) -> None:
        code = self.code
        code.block("dispatch")
        released = code.emit("load i32, ptr %released, align 4", pure=False)
        busy = "runnable" if not self.kernel.graph.ordered else "arrived"
        code.branch(code.emit(f"icmp eq i32 {released}, 0", pure=False), busy, "wake", likely=True)
        if self.kernel.graph.ordered:
            self._release_at_once()
        code.block("wake")
        released = code.emit("load i32, ptr %released, align 4", pure=False)
        for node in self.waits:
            here = code.emit(f"and i32 {self._mask(node)}, {released}", pure=False)
            onward = code.label()
            code.branch(code.emit(f"icmp eq i32 {here}, 0", pure=False), onward, f"M{node.number}")
            code.block(onward)
        code.jump("runnable")
        code.block("runnable")
        left = code.emit("load i32, ptr %ticks, align 4", pure=False)
        less = code.emit(f"add i32 {left}, -1", pure=False)
        code.run(f"store i32 {less}, ptr %ticks, align 4")
        go = code.label()
        code.branch(code.emit(f"icmp sle i32 {less}, 0", pure=False), self._slice_ends(go), go, likely=False)
        code.block(go)
        self._choose("settle")

    def _release_at_once(self) -> None:
        """Release complete collectives before any other lanes run, as the order of code says.

        Elsewhere they wait until no lanes can run, which costs less and does not show in what a kernel computes.
        """
        code, pools = self.code, self._pools()
        code.block("arrived")
        if not pools:
            code.jump("runnable")
            return
        standing = self._standing([node for nodes in pools.values() for node in nodes])
        some = code.label()
        code.branch(code.emit(f"icmp eq i32 {standing}, 0", pure=False), "runnable", some)
        code.block(some)
        freed = self._freed(pools, self._standing(self.all_nodes), stuck="false")
        code.branch(code.emit(f"icmp eq i32 {freed}, 0", pure=False), "runnable", "wake")

    def _slice_ends(self, go: str) -> str:
        """The block at the end of a time slice: yield, or check the clock."""
        if self.kernel.fair:
            return "yield"
        self.later = go
        return "look"

    def _first_place(self) -> str:
        """The number, plus 1, of the first instruction of a runnable node."""
        code, found = self.code, "0"
        for node in reversed(self.runnable):
            if node.code:
                number = self.kernel.instruction_number(node.code[0]) + 1
                there = code.emit(f"icmp ne i32 {self._mask(node)}, 0", pure=False)
                found = code.emit(f"select i1 {there}, i32 {number}, i32 {found}", pure=False)
        return found

    def _choose(self, none: str, after: str | None = None) -> None:
        """Run the first runnable node at which lanes are; by round-robin, the first one after another.

        That one is remembered then, for the next round.
        """
        code = self.code
        found = self._scanned(after) if self.kernel.scans_pending else self._lowest_bit(after)
        some = code.label()
        code.branch(code.emit(f"icmp slt i32 {found}, 0", pure=False), none, some)
        code.block(some)
        if after is not None:
            where = code.emit("getelementptr i8, ptr %record, i64 4", pure=False)
            code.run(f"store i32 {found}, ptr {where}, align 4")
        cases = " ".join(f"i32 {n}, label %M{node.number}" for n, node in enumerate(self.runnable))
        code.run(f"switch i32 {found}, label %unreachable [ {cases} ]")

    def _lowest_bit(self, after: str | None) -> str:
        """The index of the first runnable node at which lanes are, -1 if there is none: of a word with a bit for each."""
        code, ready = self.code, "0"
        for number, node in enumerate(self.runnable):
            there = code.emit(f"icmp ne i32 {self._mask(node)}, 0", pure=False)
            bit = code.emit(f"select i1 {there}, i64 {1 << number}, i64 0", pure=False)
            ready = code.emit(f"or i64 {ready}, {bit}", pure=False)
        if after is not None:
            beyond = code.emit(f"shl i64 -2, {code.emit(f'zext i32 {after} to i64', pure=False)}", pure=False)
            later = code.emit(f"and i64 {ready}, {beyond}", pure=False)
            none = code.emit(f"icmp eq i64 {later}, 0", pure=False)
            ready = code.emit(f"select i1 {none}, i64 {ready}, i64 {later}", pure=False)
        code.unit.declarations["llvm.cttz.i64"] = "declare i64 @llvm.cttz.i64(i64, i1 immarg)"
        lowest = code.emit(f"call i64 @llvm.cttz.i64(i64 {ready}, i1 false)", pure=False)
        narrow = code.emit(f"trunc i64 {lowest} to i32", pure=False)
        nothing = code.emit(f"icmp eq i64 {ready}, 0", pure=False)
        return code.emit(f"select i1 {nothing}, i32 -1, i32 {narrow}", pure=False)

    def _scanned(self, after: str | None) -> str:
        """The next such node, by a search of the array of lane masks."""
        code = self.code
        code.unit.declarations["llvm.cttz.i32"] = "declare i32 @llvm.cttz.i32(i32, i1 immarg)"
        helper = runtime("first_pending", name="ptxvm.first_pending", count=len(self.runnable))
        name = code.unit.helper("ptxvm.first_pending", helper)
        if after is None:
            return code.emit(f"call i32 @{name}(ptr %pending, i32 0)", pure=False)
        later = code.emit(f"add i32 {after}, 1", pure=False)
        found = code.emit(f"call i32 @{name}(ptr %pending, i32 {later})", pure=False)
        first = code.emit(f"call i32 @{name}(ptr %pending, i32 0)", pure=False)
        none = code.emit(f"icmp slt i32 {found}, 0", pure=False)
        return code.emit(f"select i1 {none}, i32 {first}, i32 {found}", pure=False)

    # ── lanes that wait for lanes of their warp ─────────────────────────────────────────

    def _settle(self, label: str, some: str, none: str) -> None:
        """Release collectives whose members have all arrived with one mask (PTX 9.7.13.9); if all are stuck, with any masks."""
        code = self.code
        code.block(label)
        pools = self._pools()
        if not pools:
            code.jump(none)
            return
        alive = self._standing(self.all_nodes)
        freed = self._freed(pools, alive, stuck="false")
        stuck, on = code.label(), code.label()
        there = code.emit(f"xor i32 {self._standing([n for nodes in pools.values() for n in nodes])}, {alive}", pure=False)
        busy = code.emit(f"or i32 {there}, {freed}", pure=False)
        code.branch(code.emit(f"icmp eq i32 {busy}, 0", pure=False), stuck, on, likely=False)
        code.block(stuck)
        more = self._freed(pools, alive, stuck="true")
        code.jump(on)
        code.block(on)
        freed = code.emit(f"phi i32 [ {freed}, %{label} ], [ {more}, %{stuck} ]", pure=False)
        code.branch(code.emit(f"icmp eq i32 {freed}, 0", pure=False), none, some)

    def _pools(self) -> dict[str, list[Node]]:
        """The nodes at which lanes wait for lanes of their warp, by mnemonic."""
        pools: dict[str, list[Node]] = {}
        for node in self.waits:
            if not node.barrier_wait:
                pools.setdefault(node.code[0].i.mnemonic, []).append(node)
        return pools

    def _freed(self, pools: dict[str, list[Node]], alive: str, *, stuck: str) -> str:
        """Release the lanes of complete collectives; returns their mask."""
        code, freed = self.code, "0"
        where = code.emit(f"getelementptr i8, ptr %record, i64 {self.kernel.layout.exchange}", pure=False)
        name = code.unit.helper("ptxvm.meet", runtime("meet"))
        for nodes in pools.values():
            ready = code.emit(
                f"call i32 @{name}(ptr {where}, i32 {self._standing(nodes)}, i32 {alive}, i1 {stuck})", pure=False
            )
            freed = code.emit(f"or i32 {freed}, {ready}", pure=False)
        released = code.emit("load i32, ptr %released, align 4", pure=False)
        code.run(f"store i32 {code.emit(f'or i32 {released}, {freed}', pure=False)}, ptr %released, align 4")
        return freed

    # ── suspending and resuming ─────────────────────────────────────────────────────────

    def _suspend(self, label: str, *, waiting: bool) -> None:
        """Spill everything and return; a warp without live lanes has ended."""
        code, kernel = self.code, self.kernel
        code.block(label)
        some = code.label()
        code.branch(code.emit(f"icmp eq i32 {self._standing(self.all_nodes)}, 0", pure=False), "done", some)
        code.block(some)
        if waiting and not kernel.partial_barriers:
            self._tell_barriers()
            at_barriers = [node for node in self.waits if node.barrier_wait]
            alike: dict[str, list[Node]] = {}
            for node in at_barriers:
                alike.setdefault(reduction(node.code[0].i), []).append(node)
            barrier_epochs.warp_waits(kernel, code, {each: self._standing(nodes) for each, nodes in alike.items()})
            barrier_epochs.warp_is_apart(kernel, code, [self._mask(node) for node in at_barriers])
        self._move(save=True)
        state = GENERAL + (0 if waiting else RUNNABLE) + (SHAPELESS if kernel.shapeless else 0)
        code.run(f"ret i32 {state}")

    def _tell_barriers(self) -> None:
        """Report the barriers of the whole CTA at which lanes wait."""
        code, kernel = self.code, self.kernel
        where = kernel.launch_field_pointer(code, "barriers")
        met = code.emit(f"load i32, ptr {where}, align 8", pure=False)
        for node in self.waits:
            bit = 1 << kernel.barrier_numbers[id(node.code[0])] if node.barrier_wait else STUCK
            there = code.emit(f"icmp ne i32 {self._mask(node)}, 0", pure=False)
            own = code.emit(f"select i1 {there}, i32 {bit}, i32 0", pure=False)
            met = code.emit(f"or i32 {met}, {own}", pure=False)
        code.run(f"store i32 {met}, ptr {where}, align 8")

    def _move(self, *, save: bool) -> None:
        """Save the masks and the registers in the record, or restore them."""
        code, kernel = self.code, self.kernel
        for node in self.all_nodes:
            saved = code.emit(f"getelementptr i8, ptr %record, i64 {HEADER + 4 * node.number}", pure=False)
            source, target = (f"%pending.{node.number}", saved) if save else (saved, f"%pending.{node.number}")
            mask = code.emit(f"load i32, ptr {source}, align 4", pure=False)
            code.run(f"store i32 {mask}, ptr {target}, align 4")
        code.memo.clear()
        for slot, llvm, at in kernel.layout.anywhere(self.slots):
            move_slot(code, "%record", slot, llvm, at, save=save)
        code.memo.clear()

    def _resume(self) -> None:
        """Resume the lanes at their nodes."""
        code, kernel = self.code, self.kernel
        code.block("resume.general")
        self._move(save=False)
        if not kernel.partial_barriers:  # whose barriers are for the whole CTA: all go on
            freed = self._standing([node for node in self.waits if node.barrier_wait])
            if kernel.fair:  # a warp that has yielded leaves its lanes at the barrier
                yielded = code.emit(f"and i32 %state, {RUNNABLE}", pure=False)
                opened = code.emit(f"icmp eq i32 {yielded}, 0", pure=False)
                freed = code.emit(f"select i1 {opened}, i32 {freed}, i32 0", pure=False)
            code.run(f"store i32 {freed}, ptr %released, align 4")
        if not kernel.fair:
            code.jump("dispatch")
        else:
            self._rotate()
        if not kernel.fair:
            code.block("look")
            code.run(f"store i32 {kernel.TICKS}, ptr %ticks, align 4")
            kernel.record_position(code, self._first_place())
            kernel.record_cta_id(code)
            answer = code.emit(f"call i32 {kernel.launch_field(code, 'tick', pure=False)}()", pure=False)
            code.branch(code.emit(f"icmp eq i32 {answer}, 0", pure=False), self.later, "fault", likely=True)
        code.block("unreachable")
        code.run("unreachable")

    def _rotate(self) -> None:
        """Round-robin: after each pause, run the node that follows the one which ran first after the last pause.

        Nodes that ran later do not count: spinning lanes go from node to node, and would starve the others.
        """
        code = self.code
        released = code.emit("load i32, ptr %released, align 4", pure=False)
        next_round = code.label()
        code.branch(code.emit(f"icmp eq i32 {released}, 0", pure=False), next_round, "wake")
        code.block(next_round)
        where = code.emit("getelementptr i8, ptr %record, i64 4", pure=False)
        last = code.emit(f"load i32, ptr {where}, align 4", pure=False)
        if not self.kernel.scans_pending:
            last = code.emit(f"and i32 {last}, 63", pure=False)
        self._choose("settle", after=last)

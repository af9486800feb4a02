"""Terminators: the jumps at the end of a node, divergence and reconvergence.

Whole warps jump.  After divergence each node has a mask of the lanes that wait at it (`%pending.N`), and of the nodes with
waiting lanes the one of lowest rank runs next.  A warp whose lanes have reconverged continues as a whole.
"""

from __future__ import annotations

from ptxvm.algebra.types import pred, u32
from ptxvm.algebra.value import Value
from ptxvm.engine.jit.abi.launch_record import offset
from ptxvm.engine.jit.cfg.nodes import BACK, Node
from ptxvm.engine.jit.ir import preserving_calls
from ptxvm.engine.jit.ir.lane_values import Affine, Raw, text
from ptxvm.engine.jit.ir.runtime import runtime
from ptxvm.engine.jit.lower.barriers import cluster_records
from ptxvm.engine.jit.lower.emitter import Emitter
from ptxvm.engine.jit.node import counters, stack
from ptxvm.engine.jit.node.divergence import expect_whole
from ptxvm.engine.jit.node.divergent_regions import DivergenceError
from ptxvm.engine.jit.node.host_queries import NoTarget
from ptxvm.engine.jit.node.port import Call, Ending, Goto, Switch
from ptxvm.isa.special_registers import WARP

EXIT = -1  # stands for the end of the thread, as a target; BACK for the return of a shared function


class Terminator:
    """Writes the jumps at the end of a node."""

    def __init__(self, at: Emitter) -> None:
        self.kernel, self.at, self.code, self.node = at.kernel, at, at.code, at.node
        self.word = f"i{at.width}"  # of the mask of its lanes

    def run(self) -> None:
        """Write the jumps that the last instruction asked for."""
        action, guard = self.at.action, self.at.guard
        onward = self._onward()
        match action:
            case None | Ending.NEXT:
                self.one(onward)
            case Goto():
                self.choose(guard, self.node.frame.at.get(action.target.index, self._end()), onward)
            case Ending.LEAVE:
                self.choose(guard, self.node.frame.back, onward)
            case Call() if action.targets:
                self.several(guard, action.targets, onward)
            case Call():
                self.choose(guard, self._callee(onward), onward)
            case Switch():
                self.switch(action, guard, onward)
            case Ending.EXIT:
                self.choose(guard, EXIT, onward)
            case Ending.WAIT:
                self.choose(guard, self.node.wait, onward)
            case Ending.TRAP:
                self.trap(guard, onward)

    def _onward(self) -> int:
        """The node after this one in the code; predicated blocks, into which no code falls, are none."""
        frame = self.node.frame
        return self._end() if self.node.next == len(frame.code) else frame.at.get(self.node.next, self._end())

    def _end(self) -> int:
        """The target past the last instruction: lanes return."""
        return self.node.frame.back

    def _callee(self, onward: int) -> int:
        return self.node.callee.at[0] if self.node.callee is not None else onward

    def trap(self, guard: Raw | None, onward: int) -> None:
        """Stop the grid, if a lane is active here."""
        bits = self.at.active_text()
        if guard is None:
            self.at.trap(bits)
            return
        bad, good = self.code.label(), self.code.label()
        self.code.branch(self.code.emit(f"icmp eq i32 {bits}, 0"), good, bad)
        self.code.block(bad)
        self.at.trap(bits)
        self.code.block(good)
        self.one(onward)

    # ── whole warps ─────────────────────────────────────────────────────────────────────

    def one(self, target: int) -> None:
        """All lanes go to one target."""
        if self.at.full:
            self.jump(target)
        else:
            self.add_pending(target, self.at.mask or "-1")
            self.chain({target}, certain=target)

    def jump(self, target: int) -> None:
        """Jump to a node with a whole warp."""
        if target == EXIT:
            self.ended("-1")
            self.code.jump("done")
        elif target == BACK:
            self.add_pending(BACK, "-1")
            self.code.jump("dispatch")
        elif self.kernel.nodes[target].waits:
            self.wait(target)
        else:
            self.tick(target)
            self.code.jump(f"F{target}")

    def wait(self, target: int) -> None:
        """A whole warp waits for others; at one barrier, all of its lanes are released at once."""
        as_one = self.kernel.suspends_whole_warps and self.node.barrier and self.at.waits_as_one
        if self.kernel.one_group:  # all threads of the CTA have arrived
            self._opened()
            self.code.jump(f"F{target}")
        elif self.kernel.general and not as_one:
            self.add_pending(target, "-1")
            self.code.jump("dispatch")
        else:
            self.code.jump(f"suspend.F{target}")

    def _opened(self) -> None:
        """Open a barrier at which the whole CTA is: its votes are those that the outcome reads."""
        if not self.at.voted:
            return
        for votes in ("ayes", "voters"):
            own, then = (
                self.kernel.launch_field_pointer(self.code, votes),
                self.kernel.launch_field_pointer(self.code, f"{votes}_then"),
            )
            count = self.code.emit(f"load i32, ptr {own}, align 8", pure=False)
            self.code.run(f"store i32 {count}, ptr {then}, align 8")
            self.code.run(f"store i32 0, ptr {own}, align 8")

    def tick(self, target: int) -> None:
        """Count an iteration of a loop; at the end of the time slice, check the clock or yield."""
        if self.kernel.nodes[target].rank > self.node.rank:
            return
        if self.kernel.counts_spins and (self.at.full or not self.kernel.general):  # or `chain` has counted
            self._spun(target)
        if self.at.full and self._strides():
            self._pause(target)
            return
        code, counts = self.code, self.kernel.SPIN if self.kernel.yields and self._spins() else 1
        go = self._count_down("%ticks", counts) if not self.kernel.scalar else self._compare_count()
        self.kernel.record_position(code, str(self.kernel.instruction_number(self.node.frame.code[self.node.end - 1]) + 1))
        if self.kernel.yields:
            self.add_pending(target, "-1")
            code.jump("yield")
            code.block(go)
            return
        if not self.kernel.scalar:
            code.run(f"store i32 {self.kernel.TICKS}, ptr %ticks, align 4")
        self._check_clock(go)

    def _compare_count(self) -> str:
        """Begin the block for when a thread has executed many instructions; the label of the block for when it has not."""
        code = self.code
        count, limit = (code.emit(f"load i64, ptr {each}, align 8", pure=False) for each in (counters.WHOLE, "%ticks"))
        many, go = code.label(), code.label()
        code.branch(code.emit(f"icmp ugt i64 {count}, {limit}", pure=False), many, go, likely=False)
        code.block(many)
        code.run(f"store i64 {code.emit(f'add i64 {limit}, {self.kernel.MOST_INSTRUCTIONS}')}, ptr %ticks, align 8")
        return go

    def _check_clock(self, go: str) -> None:
        """Check the clock, and go on at a label unless the CTA must stop."""
        code = self.code
        answer = self.at.buffer("[2 x ptr]", 10)
        self.kernel.record_cta_id(code)
        code.run(f"store ptr %ctx, ptr {answer}, align 8")
        preserving_calls.call(code, code.unit.helper("ptxvm.tick", runtime("tick", tick=offset("tick"))), answer)
        stopped = code.emit(f"icmp eq i32 {code.emit(f'load i32, ptr {answer}, align 8', pure=False)}, 0", pure=False)
        code.branch(stopped, go, "fault", likely=True)
        code.block(go)

    def _strides(self) -> bool:
        """Does the node end a grid-stride loop?  Scalar code never runs in step, and its one thread keeps no record."""
        return self.kernel.width >= WARP and bool(self.node.code) and self.node.code[-1] in self.kernel.grid_strides

    def _pause(self, target: int) -> None:
        """Count an iteration of a grid-stride loop; after some, let the other warps and CTAs catch up, if they run in step."""
        code, kernel = self.code, self.kernel
        kernel.pauses.add(target)
        go = self._count_down("%strides", 1)
        kernel.record_position(code, str(kernel.instruction_number(self.node.frame.code[self.node.end - 1]) + 1))
        alone = code.label()
        code.branch(code.emit("icmp eq i32 %in_step, 0", pure=False), alone, f"pause.F{target}")
        code.block(alone)
        code.run(f"store i32 {kernel.TICKS}, ptr %strides, align 4")
        self._check_clock(go)

    def _count_down(self, counter: str, by: int) -> str:
        """Take from a counter, and begin the block for when it is used up; the label of the block for when it is not."""
        code = self.code
        left = code.emit(f"load i32, ptr {counter}, align 4", pure=False)
        less = code.emit(f"add i32 {left}, {-by}", pure=False)
        code.run(f"store i32 {less}, ptr {counter}, align 4")
        used_up, go = code.label(), code.label()
        code.branch(code.emit(f"icmp sle i32 {less}, 0", pure=False), used_up, go, likely=False)
        code.block(used_up)
        return go

    def _spun(self, target: int = EXIT) -> None:
        """Count an iteration of a spin loop; where one lasts, the warp waits: it leaves for a fair version, or is suspected."""
        code, kernel = self.code, self.kernel
        if not self._spins():
            if not kernel.in_spin_loop(self.node):
                code.run(f"store i32 {kernel.SPINS}, ptr %spins, align 4")
            return
        go = self._count_down("%spins", 1)
        if not kernel.fair:
            code.jump("suspect")
        elif self.at.full:
            kernel.spin_exits.add(target)
            code.jump(f"F{target}.leave")
        else:
            kernel.leaves_all = True
            code.jump("leave.all")
        code.block(go)

    def _spins(self) -> bool:
        """Does the node end a spin loop?"""
        return bool(self.node.code) and self.node.code[-1] in self.kernel.spinning

    def choose(self, guard: Raw | None, yes: int, no: int) -> None:
        """Branch by a predicate: lanes go to `yes` or to `no`."""
        if guard is None or yes == no:
            self.one(yes)
        elif isinstance(guard, Affine):
            if guard.constant is not None:
                self.one(yes if guard.constant & 1 else no)
                return
            first, second = self.code.label(), self.code.label()
            self.code.branch(text("i1", guard.base), first, second)
            for label, target in ((first, yes), (second, no)):
                with self.code.scope():
                    self.code.block(label)
                    self.one(target)
        else:
            self._diverges(guard)
            bits = self.code.mask_bits(self.at.alg.vector(pred, guard))
            if self.at.full:
                self.divide(bits, yes, no)
            else:
                going = self.code.emit(f"and {self.word} {bits}, {self.at.mask}")
                others = self.code.emit(f"xor {self.word} {bits}, -1")
                staying = self.code.emit(f"and {self.word} {others}, {self.at.mask}")
                self._parted([going, staying])
                self.add_pending(yes, going)
                self.add_pending(no, staying)
                self.chain({yes, no})

    def _parted(self, targets: list[str]) -> None:
        """Count a branch of some lanes, in profiled code, given the lanes that go to each target."""
        if self.at.events is not None and isinstance(self.at.action, Goto | Switch):
            self.at.events.parted(self.kernel.instruction_number(self.node.code[self.node.head - 1]), targets)

    def _diverges(self, guard: Raw) -> None:
        """Note that lanes may diverge; raises DivergenceError if they probably do and meet nowhere, in the straight version."""
        if self.kernel.straight and self.at.full:
            expect_whole(self.kernel, self.node, guard, affine=self.at.alg.surely(guard) is not None)
        if not self._leaves():
            self.kernel.diverges(self.node)

    def _leaves(self) -> bool:
        """Do lanes of the straight version that part at the end of the node go on in the masked one?"""
        return self.kernel.straight and self.at.full and not self.kernel.divergent_regions.hold(self.node)

    def divide(self, bits: str, yes: int, no: int) -> None:
        """Branch with a whole warp, which may diverge."""
        code = self.code
        all_, more, none, some = (code.label() for _ in range(4))
        known = self.at.alg.surely(self.at.guard) if self.at.guard is not None else None
        if known is not None:
            for surely, where in zip(known, (all_, none), strict=True):
                onward = code.label()
                code.branch(surely, where, onward)
                code.block(onward)
        code.branch(code.emit(f"icmp eq i{code.width} {bits}, -1"), all_, more)
        with code.scope():
            code.block(all_)
            self.jump(yes)
        code.block(more)
        code.branch(code.emit(f"icmp eq i{code.width} {bits}, 0"), none, some, likely=True if self._leaves() else None)
        with code.scope():
            code.block(none)
            self.jump(no)
        code.block(some)
        self._parted([bits, code.emit(f"xor {self.word} {bits}, -1")])
        if self._leaves():
            self.kernel.parting[self.node.number] = (yes, no)
            code.run(f"store i{code.width} {bits}, ptr %parting, align 8")
            code.jump(f"F{self.node.number}.part")
            return
        self.kernel.parting.pop(self.node.number, None)
        self._diverged({yes, no})
        self.add_pending(yes, bits)
        self.add_pending(no, code.emit(f"xor {self.word} {bits}, -1"))
        targets = sorted({yes, no} - {EXIT}, key=self.rank)
        if self.kernel.general:
            code.jump("dispatch")
        elif targets:
            self.enter(targets[0])
        else:
            code.jump("done")

    def _diverged(self, targets: set[int]) -> None:
        """Copy the registers that partial warps read at some nodes to their own, where they have any."""
        needed = 0
        for target in targets - {EXIT, BACK}:
            needed |= self.kernel.nodes[target].live_in
        self.kernel.registers.copy(needed, self.at.alg, (self.node.number, True))

    # ── some lanes ──────────────────────────────────────────────────────────────────────

    def rank(self, target: int) -> int:
        """The rank of a node."""
        return self.kernel.nodes[target].rank

    def add_pending(self, target: int, bits: str) -> None:
        """Add lanes to those that wait at a node."""
        if target == EXIT:
            self.ended(bits)
            return
        if target == BACK:
            self.back(bits)
            return
        pending = f"%pending.{target}"
        old = self.code.emit(f"load {self.word}, ptr {pending}, align 4", pure=False)
        self.code.run(f"store {self.word} {self.code.emit(f'or {self.word} {old}, {bits}')}, ptr {pending}, align 4")

    def back(self, bits: str) -> None:
        """Return from a shared function, each lane to its own return node."""
        target = stack.returns_to(self.at)
        for number in self.node.frame.backs:
            here = self.code.mask_bits(self.at.alg.vector(pred, self.at.alg.compare("eq", u32, target, Affine(number))))
            self.add_pending(number, self.code.emit(f"and i32 {here}, {bits}"))

    def switch(self, action: Switch, guard: Raw | None, onward: int) -> None:
        """Each lane goes to the label that its index picks from a list; an index past the end is a fault."""
        at, labels, index = self.at, action.table.targets, action.index.to(u32)
        at.refuse(self.node.code[-1], index.compare("ge", index.lift(len(labels))), NoTarget(action.table.name, len(labels)),
                  [(u32, index.raw)])  # fmt: skip
        lanes: dict[int, Value] = {}
        for n, label in enumerate(labels):
            target = self.node.frame.at.get(label.index, self._end())
            here = index.eq(n)
            lanes[target] = lanes[target] | here if target in lanes else here
        if guard is not None:
            lanes = {target: here & Value(at.alg, pred, guard) for target, here in lanes.items()}
        self.several(guard, [(here.raw, target) for target, here in lanes.items()], onward)

    def several(self, guard: Raw | None, jumps: list[tuple[Raw | None, int]], onward: int) -> None:
        """Lanes go to several targets, each by a predicate; lanes whose guard is false go on."""
        if len(jumps) == 1 and jumps[0][0] is guard:
            self.choose(guard, jumps[0][1], onward)
            return
        if self.kernel.straight and self.at.full:
            raise DivergenceError
        self.kernel.diverges(self.node)
        here = self.at.mask or "-1"
        going = [(target, here if raw is None else self.code.emit(f"and {self.word} {self.at.bits_of(raw)}, {here}"))
                 for raw, target in jumps]  # fmt: skip
        if guard is not None:
            off = self.code.emit(f"xor {self.word} {self.at.bits_of(guard)}, -1")
            going.append((onward, self.code.emit(f"and {self.word} {off}, {here}")))
        self._parted([bits for _, bits in going])
        for target, bits in going:
            self.add_pending(target, bits)
        targets = {target for target, _ in going}
        if self.at.full:
            self._diverged(targets)
        self.chain(targets)

    def ended(self, bits: str) -> None:
        """End lanes, for which barriers may wait."""
        if self.kernel.partial_barriers:
            first = cluster_records(self.kernel)
            self.code.run(f"call void @ptxvm.left(ptr %cta_barriers, ptr {first}, i32 %warp, i32 {bits})")

    def chain(self, targets: set[int], certain: int = EXIT) -> None:
        """Run the node of lowest rank at which lanes wait."""
        code = self.code
        if self.kernel.general:
            if self.kernel.counts_spins:
                self._spun()
            if self._spins():
                left = code.emit("load i32, ptr %ticks, align 4", pure=False)
                less = code.emit(f"add i32 {left}, {1 - self.kernel.SPIN}", pure=False)  # `dispatch` counts one
                code.run(f"store i32 {less}, ptr %ticks, align 4")
            code.jump("dispatch")
            return
        waiting = self.kernel.waiting[self.node.number]
        candidates = sorted((waiting | targets) - {EXIT}, key=self.rank)
        if certain == EXIT and len(candidates) == 1 and EXIT not in targets and not waiting:
            certain = candidates[0]
        for target in candidates:
            if target == certain:
                self.enter(target)
                return
            standing = code.emit(f"load {self.word}, ptr %pending.{target}, align 4", pure=False)
            here, onward = code.label(), code.label()
            code.branch(code.emit(f"icmp eq {self.word} {standing}, 0", pure=False), onward, here)
            with code.scope():
                code.block(here)
                self.enter(target)
            code.block(onward)
        code.jump("done")

    def enter(self, target: int) -> None:
        """Begin a node for the lanes that wait at it."""
        node = self.kernel.nodes[target]
        if node.waits:
            self.stop(node)
        else:
            self.tick(target)
            self.code.jump(f"M{target}")

    def stop(self, node: Node) -> None:
        """Suspend the warp at a barrier; if lanes wait at several nodes, the shapeless version takes over."""
        code, total = self.code, "0"
        for n in sorted(self.kernel.waiting[node.number]):
            standing = code.emit(f"load i32, ptr %pending.{n}, align 4", pure=False)
            total = code.emit(f"or i32 {total}, {standing}", pure=False)
        if total == "0":
            code.jump(f"suspend.M{node.number}")
        else:
            code.branch(code.emit(f"icmp eq i32 {total}, 0", pure=False), f"suspend.M{node.number}", "leave.all", likely=True)
            self.kernel.leaves_all = True

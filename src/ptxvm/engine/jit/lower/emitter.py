"""The emitter: runs the meanings of a node's instructions, whose algebra and ports write LLVM IR."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import partial
from typing import Any

from ptxvm.algebra.types import pred, u32, u64
from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound
from ptxvm.diagnostics.errors import Crash, Unsupported
from ptxvm.engine.carry_flag import CarryFlag
from ptxvm.engine.jit.cfg.nodes import Node, is_barrier, is_collective
from ptxvm.engine.jit.cfg.row_walks import is_quiet
from ptxvm.engine.jit.ir.lane_values import Affine, Raw, Varying, text
from ptxvm.engine.jit.lower import async_copies, barriers, calls, collectives, ports
from ptxvm.engine.jit.lower.conditionals import Conditionals
from ptxvm.engine.jit.lower.predicated_region import PredicatedRegion
from ptxvm.engine.jit.memory import barrier_epochs, cta_clocks, row_windows, stored_pointers, told_order
from ptxvm.engine.jit.memory.joined_stores import JoinedStores
from ptxvm.engine.jit.memory.memory import Memory
from ptxvm.engine.jit.memory.merged_checks import MergedRangeChecks
from ptxvm.engine.jit.node.context import KernelContext
from ptxvm.engine.jit.node.marked_values import MarkedValues
from ptxvm.engine.jit.node.port import Action, Call, Ending, Port, Request
from ptxvm.engine.jit.node.register_shapes import CARRY
from ptxvm.engine.jit.node.unset_check import UnsetCheck
from ptxvm.engine.jit.values.exchange import exchanged, resumed
from ptxvm.engine.operands import OperandValue
from ptxvm.isa.effects import Collective, Verb
from ptxvm.isa.model import PORTS, Decoded


def textures(at: Emitter, bound: Bound) -> Port:
    """The port `tex`."""
    from ptxvm.engine.jit.lower.textures import Textures  # noqa: PLC0415 - few kernels have textures, and it imports much

    return Textures(at, bound)


def tensor_memory(at: Emitter, bound: Bound) -> Port:
    """The port `tmem`."""
    if at.kernel.deferred:
        from ptxvm.engine.jit.lower.deferred_work import DeferredTensorMemory  # noqa: PLC0415

        return DeferredTensorMemory(at, bound)
    from ptxvm.engine.jit.lower.tensor_memory import TensorMemory  # noqa: PLC0415 - few kernels have any, and it imports much

    return TensorMemory(at, bound)


def tasks(at: Emitter, bound: Bound) -> Port:
    """The port `tasks`."""
    if at.kernel.deferred:
        from ptxvm.engine.jit.lower.deferred_work import DeferredTasks  # noqa: PLC0415 - few launches defer work

        return DeferredTasks(at, bound)
    return async_copies.Tasks(at, bound)


PORT: dict[str, Any] = {  # classes and functions that make a port
    "mem": Memory, "warp": ports.Warp, "cta": ports.Cta, "cluster": ports.Cluster, "flow": ports.Flow, "clock": ports.Clock,
    "tex": textures, "tasks": tasks, "tmem": tensor_memory,
}  # fmt: skip


def with_carry(i: Decoded, *operands: OperandValue) -> OperandValue:
    """The results of an instruction, and the carry flag where it writes that; a flag that it reads is the last operand."""
    flag = CarryFlag()
    written: list[Value] = []
    flag.read, flag.write = lambda: operands[-1], written.append
    values = iter(operands)
    made = i.of.meaning(i, *(flag if p == "cc" else next(values) for p in i.of.parameters))
    return (made, *written)


def passes_stores(bound: Bound) -> bool:
    """Does it do nothing but store to memory, or load what no store of the grid changes?"""
    accesses = bound.summary.accesses
    unseen = all(each.verb is Verb.WRITE or (each.verb is Verb.READ and not each.coherent) for each in accesses)
    return bound.i.of.effects == {"mem"} and bool(accesses) and unseen


class Emitter(Conditionals):
    """Writes a node for whole warps (`full`), or for the lanes of a mask."""

    def __init__(self, kernel: KernelContext, node: Node, *, full: bool) -> None:
        super().__init__(kernel, node, full=full)
        self.action: Action | None = None
        self.merged = self.ranges = MergedRangeChecks(self)
        self.stores = JoinedStores(self)
        self._port: Memory | None = None
        self.voted = False  # threads vote at its barrier

    def memory(self, bound: Bound) -> Memory:
        """The port `mem`."""
        return Memory(self, bound)

    def memory_port(self) -> Memory:
        """The port `mem` of the current instruction."""
        if self._port is None:
            self._port = Memory(self, self._bound)
        return self._port

    # ── instructions ────────────────────────────────────────────────────────────────────

    def run(self) -> None:
        """Write all instructions, in order."""
        if self.mask is not None:
            self.code.all_lanes(self.mask)  # here, so that all blocks of the node share it
        if self.node.returns is not None:
            calls.copy_results(self, self.node.returns)
        code, region = self.node.code, self.node.region
        self.instructions(code, 0, self.node.head - (region is not None))
        self.stores.settle()
        if region is not None:
            PredicatedRegion(self, region, partial(self.instructions, code)).run()
            self.stores.settle()  # of blocks that are known to be for all lanes
        self.merged.settle()

    def instructions(self, code: Sequence[Bound], first: int, end: int) -> None:
        """Write some of the instructions of the node, which the same lanes run."""
        self.together_until = end
        for position in range(first, end):
            self.position = position
            self.instruction(code[position])
            self.code.cut()

    def instruction(self, bound: Bound) -> None:
        """Write an instruction."""
        i = bound.i
        guard = self.guard_of(bound)
        if self.kernel.unset_registers is not None and not self.node.waits:
            UnsetCheck(self, bound).guard(guard)
        if self.node.waits:
            guard = None  # the lanes that waited had a true guard
        elif self.events is not None and bound.node.guard is not None:
            self.events.guarded(self.kernel.instruction_number(bound), self.lanes_of(guard))
        effects = i.of.effects
        if effects and (guard is not None or not passes_stores(bound)):
            self.stores.settle()
        if effects and self.kernel.row_walks and not is_quiet(bound):
            row_windows.end_epoch(self.code)
        known = isinstance(guard, Affine) and guard.constant is None
        if known and effects & {"mem", "warp"} and not is_barrier(i) and not (is_collective(i) and self._parts(guard)):
            self.guard = None
            self.conditional(text("i1", guard.base), lambda: self._meaning(bound, i))  # type: ignore[union-attr]
            return
        if isinstance(guard, Affine) and guard.constant is not None and "flow" not in effects and not is_barrier(i):
            if not guard.constant & 1:
                return
            guard = None
        self.guard = guard
        self._meaning(bound, i)

    def _meaning(self, bound: Bound, i: Decoded) -> None:
        """Write an instruction for the lanes of its guard; instrumented code follows undefined values as well."""
        check = UnsetCheck(self, bound) if self.kernel.unset_registers is not None else None
        if check is not None and not self.node.waits:
            check.reads()
        self.given_by = None
        marks = MarkedValues(self, bound).results() if self.kernel.graph.marks else {}
        self._run(bound, i)
        if bound in self.kernel.graph.bounded.loads:
            marks = stored_pointers.loaded(self, bound)
        for key, mark in marks.items():
            self.assign(key, u64, mark)
        if check is not None and self.action is not Ending.WAIT:
            check.writes()

    def _run(self, bound: Bound, i: Decoded) -> None:
        self._port, self._bound = None, bound
        if not i.of.effects - {"cc"}:
            self._compute(bound, i)
            return
        instances = {p: PORT[p](self, bound) for p in i.of.parameters if p in PORT}
        if missing := [p for p in i.of.parameters if p in PORTS and p not in PORT]:
            raise Unsupported(f"'{i.mnemonic}' in the JIT", f"port {missing[0]}")
        self._port = instances.get("mem")
        arguments = [instances[p] if p in instances else self.operand(bound, p) for p in i.of.parameters]
        result: Any = i.of.meaning(i, *arguments)  # the results, None, or a generator that waits and returns them
        if isinstance(result, Generator):
            request: Request = next(result)
            if not self.node.waits and self._arrive(bound, request):
                self.action = Ending.WAIT
                return
            sent = self._outcome(bound, request)
            if isinstance(sent, ports.Peers) and self._only_exchanges(bound):
                result = self._exchanged(bound, sent, arguments)
            else:
                result = resumed(result, sent)
        if "flow" in instances:
            self.action = instances["flow"].action
            if isinstance(self.action, Call) and not calls.call(self, bound, self.action):
                self.action = Ending.NEXT
        self.commit(bound, result)

    def _compute(self, bound: Bound, i: Decoded) -> None:
        """Write an instruction that only computes; the carry flag is one operand more, and one result."""
        operands = [self.operand(bound, p) for p in i.of.parameters if p != "cc"]
        if bound.summary.reads_carry:
            operands.append(self.slot(CARRY, pred))
        meaning = with_carry if "cc" in i.of.effects else i.of.meaning
        made = self.kernel.meanings.result(self.alg, i.mnemonic, partial(meaning, i), operands)
        if "cc" in i.of.effects:
            made, *written = made
            for carry in written:
                self.assign(CARRY, pred, carry)
        self.commit(bound, made)

    def _only_exchanges(self, bound: Bound) -> bool:
        """Does a collective give what follows from its operands, in code that looks at nothing else?"""
        computes = bound.i.of.effects == {"warp", "waits"} and bound.summary.product is None
        return computes and bool(bound.i.destinations()) and self.kernel.shadow is None

    def _exchanged(self, bound: Bound, peers: ports.Peers, arguments: Sequence[Port | Value]) -> OperandValue:
        """Write a collective whose lanes have come together."""
        given = [peers.members, *peers.payload]
        meaning = partial(exchanged, bound.i, len(peers.payload))
        operands = [each for each in arguments if not isinstance(each, Port)]
        return self.kernel.meanings.result(self.alg, bound.i.mnemonic, meaning, [*given, *operands])

    def _parts(self, guard: Raw | None) -> bool:
        """Can some lanes arrive at a collective before others, in a general version?"""
        return self.kernel.general and (not self.full or isinstance(guard, Varying))

    def _arrive(self, bound: Bound, request: Request) -> bool:
        """Arrive at a barrier or a collective; must lanes wait there?"""
        if is_collective(bound.i):
            if self._parts(self.guard):
                collectives.arrive(self, bound.i.mnemonic, request)
            return self._parts(self.guard)
        if bound.summary.collective is Collective.WARPGROUP:
            barriers.wait_for_warpgroup(self, request.values[0])
        elif bound.summary.collective is Collective.COLUMNS:
            barriers.wait_for_columns(self, bound, request.values[1])
        elif "cluster" in bound.i.of.effects:
            barriers.wait_for_cluster(self)
        elif self.kernel.partial_barriers:
            barriers.arrive(self, bound, request)
        else:
            self.kernel.barrier_numbers[id(bound)] = self._barrier_number(bound, request)
            self._vote(request.values[2])
        return True

    def _barrier_number(self, bound: Bound, request: Request) -> int:
        """The number of a barrier for the whole CTA."""
        number = request.values[0]
        known = number.raw.constant if number is not None and isinstance(number.raw, Affine) else None
        if known is None:
            raise Crash(f"'{bound.i.mnemonic}' with a variable number is in a kernel for constant ones; please report this")
        return known

    def _outcome(self, bound: Bound, request: Request) -> barriers.Outcome | ports.Votes | ports.Peers:
        """The outcome of a barrier or a collective."""
        if is_barrier(bound.i):
            voted = self.kernel.partial_barriers and request.values
            return barriers.Outcome(self, bound, request) if voted else ports.Votes(self, bound)
        if not self.node.waits:
            return self._collective(bound, request)
        members, payload = collectives.released_payload(self, bound.i.mnemonic, request)
        return ports.Peers(self, bound, members, payload)

    def _collective(self, bound: Bound, request: Request) -> ports.Peers:
        """The peers of a collective; a side exit is taken to a version that can wait if a member is at another node.

        Several warps abreast have peers only where all lanes of all of them take part.
        """
        members, *payload = request.values
        if self.guard is not None or not self.full or not self._all_lanes(members):
            self.code.one_warp()
        here = self.active_raw()
        collectives.expect_agreement(self, bound.i.mnemonic, request)
        barrier_epochs.lanes_meet(self, members.raw, whole="membermask" not in bound.operands)  # type: ignore[union-attr]
        if not self.full or self.guard is not None:
            others = self._elsewhere()
            if others != "0":
                asked = self.alg.integer("and", u32, members.raw, Affine(others))  # type: ignore[union-attr]
                wrong = self.alg.compare("ne", u32, asked, Affine(0))
                bits = self.code.emit(f"and i32 {self.bits_of(wrong)}, {self.active_text()}")
                good = self.code.label()
                self.code.branch(self.code.emit(f"icmp eq i32 {bits}, 0"), good, self.name("leave"), likely=True)
                self.code.block(good)
                self.leaves = True
        cta_clocks.lanes_synchronise(self, bound, self.alg.vector(u32, members.raw))  # type: ignore[union-attr]
        told_order.lanes_meet(self, bound, members.raw)  # type: ignore[union-attr]
        taking_part = self.alg.integer("and", u32, members.raw, here)  # type: ignore[union-attr]
        return ports.Peers(self, bound, taking_part, tuple(each for each in payload if each))

    def _all_lanes(self, members: Value | None) -> bool:
        """Does a member mask name all lanes?"""
        return members is not None and self.alg.known(u32, members.raw) == (0xFFFF_FFFF,) * self.width

    def _elsewhere(self) -> str:
        """The live lanes at other nodes, as a mask."""
        total = "0"
        for n in sorted(self.kernel.waiting[self.node.number]):
            standing = self.code.emit(f"load i32, ptr %pending.{n}, align 4", pure=False)
            total = self.code.emit(f"or i32 {total}, {standing}")
        if self.guard is not None:
            inactive = self.code.emit(f"xor i32 {self.active_text()}, {self.mask or -1}")
            total = self.code.emit(f"or i32 {total}, {inactive}")
        return total

    def _vote(self, vote: Value | None) -> None:
        """Count the votes of these lanes at a barrier."""
        if vote is None:
            return
        self.voted = True
        self.code.one_warp()
        ayes = self.code.emit(f"and i32 {self.bits_of(vote.raw)}, {self.active_text()}")
        for field, bits in (("ayes", ayes), ("voters", self.active_text())):
            count = self.code.intrinsic("i32", "llvm.ctpop.i32", ("i32", bits))
            counter = self.kernel.launch_field_pointer(self.code, field)
            total = self.code.emit(f"load i32, ptr {counter}, align 4", pure=False)
            self.code.run(f"store i32 {self.code.emit(f'add i32 {total}, {count}')}, ptr {counter}, align 4")

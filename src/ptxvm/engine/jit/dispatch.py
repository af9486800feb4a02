"""Lanes of a warp that stand anywhere: which of them run next, how all of them stop, and how they go on.

Most kernels need none of this: where lanes part, each node knows which nodes others can stand at (`control`).  It is
written for kernels in which lanes wait for lanes that stand at other collectives or barriers, or must not starve
each other; and for the version without shapes, to which a warp goes over when it comes to that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxvm.algebra.types import Type, pred
from ptxvm.algebra.value import Value
from ptxvm.engine.jit import epochs
from ptxvm.engine.jit.code import Code
from ptxvm.engine.jit.raw import WARP, Vec, vector_type
from ptxvm.engine.jit.record import GENERAL, HEADER, RUNNABLE
from ptxvm.engine.jit.registers import CARRY, alignment, place

if TYPE_CHECKING:
    from ptxvm.engine.jit.emitter import Emitter
    from ptxvm.engine.jit.kernel import Kernel
    from ptxvm.engine.jit.plan import Node
    from ptxvm.engine.jit.ports import Request

WORDS = f"<{WARP} x i32>"
PAYLOAD = 512  # bytes of what the lanes of a warp give to a collective
STUCK = 1 << 31  # among the barriers of a warp: lanes that wait for lanes of their own warp


# ── collectives ─────────────────────────────────────────────────────────────────────────


def exchange(kernel: Kernel) -> int:
    """Where in the record of a warp its lanes leave what they give: the masks of members, then the payloads."""
    return HEADER + -(-4 * len(kernel.nodes) // 64) * 64


def exchange_size(kernel: Kernel) -> int:
    """Bytes of that."""
    return 4 * WARP + 2 * PAYLOAD * len(kernel.pools)


def record_size(kernel: Kernel) -> int:
    """Bytes of the record of a warp, whatever shapes its registers have."""
    return exchange(kernel) + exchange_size(kernel) + PAYLOAD * (2 + kernel.order(None))


def _payload(kernel: Kernel, mnemonic: str, number: int) -> int:
    return exchange(kernel) + 4 * WARP + PAYLOAD * (2 * kernel.pools.index(mnemonic) + number)


def _held(type: Type) -> str:
    return f"<{WARP} x i8>" if type is pred else vector_type(type, WARP)


def arrive(at: Emitter, mnemonic: str, request: Request) -> None:
    """Lanes come to a collective: leave what they give where the others find it."""
    at.code.one_warp()
    members, *payload = request.values
    if members is None:
        raise TypeError("a collective without members")
    epochs.lanes_meet(at, None)
    _blend(at, exchange(at.kernel), WORDS, at.alg.vector(members.type, members.raw))
    for number, value in enumerate(p for p in payload if p is not None):
        vector = at.alg.vector(value.type, at.alg.tight(value.type, value.raw))
        if value.type is pred:
            vector = at.code.emit(f"zext <{WARP} x i1> {vector} to {_held(pred)}")
        _blend(at, _payload(at.kernel, mnemonic, number), _held(value.type), vector)


def _blend(at: Emitter, offset: int, llvm: str, vector: str) -> None:
    """Write a vector to the record for the active lanes."""
    where = at.code.emit(f"getelementptr i8, ptr %record, i64 {offset}")
    lanes = at.active_vector()
    if lanes is not None:
        old = at.code.emit(f"load {llvm}, ptr {where}, align 64", pure=False)
        vector = at.code.emit(f"select <{WARP} x i1> {lanes}, {llvm} {vector}, {llvm} {old}")
    at.code.run(f"store {llvm} {vector}, ptr {where}, align 64")


def given(at: Emitter, mnemonic: str, request: Request) -> tuple[Vec, tuple[Value, ...]]:
    """The members of a collective that was released, and what they have given."""
    found = []
    for number, value in enumerate(p for p in request.values[1:] if p is not None):
        name = _read(at.code, _payload(at.kernel, mnemonic, number), _held(value.type))
        if value.type is pred:
            name = at.code.emit(f"icmp ne {_held(pred)} {name}, zeroinitializer")
        found.append(Value(at.alg, value.type, Vec(name)))
    return Vec(_read(at.code, exchange(at.kernel), WORDS)), tuple(found)


def _read(code: Code, offset: int, llvm: str) -> str:
    where = code.emit(f"getelementptr i8, ptr %record, i64 {offset}")
    return code.emit(f"load {llvm}, ptr {where}, align 64", pure=False)


# ── who runs next ───────────────────────────────────────────────────────────────────────


class Dispatcher:
    """Writes the blocks `dispatch`, `yield` and `resume.general` of a warp's function."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.code = kernel, Code(kernel.unit)
        written = [kernel.nodes[n] for n, full in kernel.texts if not full]
        self.seats = sorted((node for node in written if not node.waits), key=lambda node: node.rank)
        self.waits = sorted((node for node in written if node.waits), key=lambda node: node.rank)
        self.everybody = [*self.seats, *self.waits]
        self.bits = f"i{max(64, 1 << (len(self.seats) - 1).bit_length())}"
        needed = 0
        for node in self.everybody:
            needed |= node.live_in
        self.slots = [slot for slot in kernel.registers.slots() if slot[0] == CARRY or needed >> slot[0][0] & 1]
        self.later = ""

    def run(self) -> list[str]:
        """All of it."""
        self._dispatch()
        self._settle("settle", "wake", "idle")
        self._suspend("idle", waiting=True)
        if self.kernel.fair:
            self.code.block("yield")
            self.code.run(f"store i32 {self.kernel.patience}, ptr %ticks, align 4")
            self.code.jump("yield.settle")
            self._settle("yield.settle", "wake", "yielded")
            self._suspend("yielded", waiting=False)
        self._resume()
        return self.code.lines

    def _mask(self, node: Node) -> str:
        return self.code.emit(f"load i32, ptr %pending.{node.number}, align 4", pure=False)

    def _standing(self, nodes: list[Node]) -> str:
        """The lanes that stand at some nodes."""
        total = "0"
        for node in nodes:
            total = self.code.emit(f"or i32 {total}, {self._mask(node)}", pure=False)
        return total

    def _dispatch(self) -> None:
        code = self.code
        code.block("dispatch")
        released = code.emit("load i32, ptr %released, align 4", pure=False)
        code.branch(code.emit(f"icmp eq i32 {released}, 0", pure=False), "seats", "wake", likely=True)
        code.block("wake")
        released = code.emit("load i32, ptr %released, align 4", pure=False)
        for node in self.waits:
            here = code.emit(f"and i32 {self._mask(node)}, {released}", pure=False)
            onward = code.label()
            code.branch(code.emit(f"icmp eq i32 {here}, 0", pure=False), onward, f"M{node.number}")
            code.block(onward)
        code.jump("seats")
        code.block("seats")
        left = code.emit("load i32, ptr %ticks, align 4", pure=False)
        less = code.emit(f"add i32 {left}, -1", pure=False)
        code.run(f"store i32 {less}, ptr %ticks, align 4")
        go = code.label()
        code.branch(code.emit(f"icmp eq i32 {less}, 0", pure=False), self._patience(go), go, likely=False)
        code.block(go)
        self._choose(self._seated(), "settle")

    def _patience(self, go: str) -> str:
        """Where to go when the warp has run for long: let others run, or let the machine look."""
        if self.kernel.fair:
            return "yield"
        self.later = go
        return "look"

    def _seated(self) -> str:
        """A bit for each node at which lanes stand that can run, in their order."""
        code, total = self.code, "0"
        for number, node in enumerate(self.seats):
            there = code.emit(f"icmp ne i32 {self._mask(node)}, 0", pure=False)
            bit = code.emit(f"select i1 {there}, {self.bits} {1 << number}, {self.bits} 0", pure=False)
            total = code.emit(f"or {self.bits} {total}, {bit}", pure=False)
        return total

    def _choose(self, seated: str, nobody: str) -> None:
        """Run the lowest of some seats."""
        code = self.code
        some = code.label()
        code.branch(code.emit(f"icmp eq {self.bits} {seated}, 0", pure=False), nobody, some)
        code.block(some)
        name = f"llvm.cttz.{self.bits}"
        code.unit.declarations[name] = f"declare {self.bits} @{name}({self.bits}, i1 immarg)"
        lowest = code.emit(f"call {self.bits} @{name}({self.bits} {seated}, i1 true)", pure=False)
        if self.kernel.fair:
            where = code.emit("getelementptr i8, ptr %record, i64 4", pure=False)
            narrow = code.emit(f"trunc {self.bits} {lowest} to i32", pure=False)
            code.run(f"store i32 {narrow}, ptr {where}, align 4")
        cases = " ".join(f"{self.bits} {n}, label %M{node.number}" for n, node in enumerate(self.seats))
        code.run(f"switch {self.bits} {lowest}, label %unreachable [ {cases} ]")

    # ── lanes that wait for lanes of their warp ─────────────────────────────────────────

    def _settle(self, label: str, some: str, none: str) -> None:
        """Release those whose partners have all come (PTX 9.7.13.9): all that live and are in the mask."""
        code = self.code
        code.block(label)
        pools: dict[str, list[Node]] = {}
        for node in self.waits:
            if not node.barrier_wait:
                pools.setdefault(node.code[0].i.mnemonic, []).append(node)
        if not pools:
            code.jump(none)
            return
        where = code.emit(f"getelementptr i8, ptr %record, i64 {exchange(self.kernel)}", pure=False)
        alive = self._splat(self._standing(self.everybody))
        freed = "0"
        for nodes in pools.values():
            present = self._standing(nodes)
            members = code.emit(f"load {WORDS}, ptr {where}, align 64", pure=False)
            wanted = code.emit(f"and {WORDS} {members}, {alive}", pure=False)
            absent = code.emit(f"xor {WORDS} {self._splat(present)}, splat (i32 -1)", pure=False)
            missing = code.emit(f"and {WORDS} {wanted}, {absent}", pure=False)
            met = code.emit(f"icmp eq {WORDS} {missing}, zeroinitializer", pure=False)
            bits = code.emit(f"bitcast <{WARP} x i1> {met} to i32", pure=False)
            ready = code.emit(f"and i32 {bits}, {present}", pure=False)
            lanes = code.emit(f"bitcast i32 {ready} to <{WARP} x i1>", pure=False)
            kept = code.emit(f"select <{WARP} x i1> {lanes}, {WORDS} {wanted}, {WORDS} {members}", pure=False)
            code.run(f"store {WORDS} {kept}, ptr {where}, align 64")
            freed = code.emit(f"or i32 {freed}, {ready}", pure=False)
        released = code.emit("load i32, ptr %released, align 4", pure=False)
        more = code.emit(f"or i32 {released}, {freed}", pure=False)
        code.run(f"store i32 {more}, ptr %released, align 4")
        code.branch(code.emit(f"icmp eq i32 {freed}, 0", pure=False), none, some)

    def _splat(self, word: str) -> str:
        one = self.code.emit(f"insertelement {WORDS} poison, i32 {word}, i64 0", pure=False)
        return self.code.emit(f"shufflevector {WORDS} {one}, {WORDS} poison, {WORDS} zeroinitializer", pure=False)

    # ── to stop, and to go on ───────────────────────────────────────────────────────────

    def _suspend(self, label: str, *, waiting: bool) -> None:
        """Keep everything, and return; a warp of which no lane is left has ended."""
        from ptxvm.engine.jit.kernel import SHAPELESS  # noqa: PLC0415

        code, kernel = self.code, self.kernel
        code.block(label)
        some = code.label()
        code.branch(code.emit(f"icmp eq i32 {self._standing(self.everybody)}, 0", pure=False), "done", some)
        code.block(some)
        if waiting and not kernel.meets:
            self._tell_barriers()
            at_barriers = [node for node in self.waits if node.barrier_wait]
            epochs.warp_waits(kernel, code, self._standing(at_barriers))
            epochs.warp_is_apart(kernel, code, [self._mask(node) for node in at_barriers])
        self._move(save=True)
        state = GENERAL + (0 if waiting else RUNNABLE) + (SHAPELESS if kernel.shapeless else 0)
        code.run(f"ret i32 {state}")

    def _tell_barriers(self) -> None:
        """At which barriers of the whole CTA lanes wait."""
        code, kernel = self.code, self.kernel
        where = kernel.field(code, "barriers")
        met = code.emit(f"load i32, ptr {where}, align 8", pure=False)
        for node in self.waits:
            bit = 1 << kernel.barrier_numbers[id(node.code[0])] if node.barrier_wait else STUCK
            there = code.emit(f"icmp ne i32 {self._mask(node)}, 0", pure=False)
            own = code.emit(f"select i1 {there}, i32 {bit}, i32 0", pure=False)
            met = code.emit(f"or i32 {met}, {own}", pure=False)
        code.run(f"store i32 {met}, ptr {where}, align 8")

    def _move(self, *, save: bool) -> None:
        """The masks and the registers to the record, or back."""
        from ptxvm.engine.jit.driver import move  # noqa: PLC0415 - they know each other
        from ptxvm.engine.jit.kernel import size_of  # noqa: PLC0415

        code, kernel = self.code, self.kernel
        for node in self.everybody:
            kept = code.emit(f"getelementptr i8, ptr %record, i64 {HEADER + 4 * node.number}", pure=False)
            source, target = (f"%pending.{node.number}", kept) if save else (kept, f"%pending.{node.number}")
            mask = code.emit(f"load i32, ptr {source}, align 4", pure=False)
            code.run(f"store i32 {mask}, ptr {target}, align 4")
        code.memo.clear()
        at = exchange(kernel) + exchange_size(kernel)
        for key, part, llvm in self.slots:
            at = -(-at // alignment(llvm)) * alignment(llvm)
            move(code, "%record", place(key, part), llvm, at, save=save)
            at += size_of(llvm)
        code.memo.clear()

    def _resume(self) -> None:
        """Go on where the lanes stood."""
        code, kernel = self.code, self.kernel
        code.block("resume.general")
        self._move(save=False)
        if not kernel.meets:  # whose barriers are for the whole CTA: all go on
            freed = self._standing([node for node in self.waits if node.barrier_wait])
            code.run(f"store i32 {freed}, ptr %released, align 4")
        if not kernel.fair:
            code.jump("dispatch")
        else:
            self._rotate()
        if not kernel.fair:
            code.block("look")
            code.run(f"store i32 {kernel.TICKS}, ptr %ticks, align 4")
            kernel.here(code)
            answer = code.emit(f"call i32 {kernel.context(code, 'tick', pure=False)}()", pure=False)
            code.branch(code.emit(f"icmp eq i32 {answer}, 0", pure=False), self.later, "fault", likely=True)
        code.block("unreachable")
        code.run("unreachable")

    def _rotate(self) -> None:
        """After a pause the seat that comes after the last one runs, so that each has its turn."""
        code = self.code
        released = code.emit("load i32, ptr %released, align 4", pure=False)
        turn = code.label()
        code.branch(code.emit(f"icmp eq i32 {released}, 0", pure=False), turn, "wake")
        code.block(turn)
        where = code.emit("getelementptr i8, ptr %record, i64 4", pure=False)
        last = code.emit(f"load i32, ptr {where}, align 4", pure=False)
        last = code.emit(f"and i32 {last}, {int(self.bits[1:]) - 1}", pure=False)
        wide = code.emit(f"zext i32 {last} to {self.bits}", pure=False)
        seated = self._seated()
        beyond = code.emit(f"shl {self.bits} -2, {wide}", pure=False)
        later = code.emit(f"and {self.bits} {seated}, {beyond}", pure=False)
        none = code.emit(f"icmp eq {self.bits} {later}, 0", pure=False)
        self._choose(code.emit(f"select i1 {none}, {self.bits} {seated}, {self.bits} {later}", pure=False), "settle")

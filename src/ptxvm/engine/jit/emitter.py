"""One node of a kernel as LLVM IR: its instructions, what it leaves in registers, and where lanes go next."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from ptxvm.algebra.types import Type, pred, u32, u64
from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound
from ptxvm.analysis.symbols import Register
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.engine.jit import barriers, copies, counting, dispatch, epochs, extremes, inlining as calls, ports
from ptxvm.engine.jit.algebra import LlvmAlgebra
from ptxvm.engine.jit.code import Code, short
from ptxvm.engine.jit.memory import Memory
from ptxvm.engine.jit.operands import Operands
from ptxvm.engine.jit.plan import Node, is_barrier, is_collective
from ptxvm.engine.jit.pressure import Definition
from ptxvm.engine.jit.ranges import Ranges
from ptxvm.engine.jit.raw import WARP, Lin, Raw, Scalar, Vec, scalar_type, text, wrapped
from ptxvm.engine.jit.registers import CARRY, Key
from ptxvm.engine.operands import fitting
from ptxvm.isa.model import PORTS, Decoded

if TYPE_CHECKING:
    from collections.abc import Callable

    from ptxvm.engine.jit.facts import Outside
    from ptxvm.engine.jit.kernel import Kernel


def textures(at: Emitter, bound: Bound) -> Any:
    """The port `tex`."""
    from ptxvm.engine.jit.sampling import Textures  # noqa: PLC0415 - few kernels have textures, and it imports much

    return Textures(at, bound)


PORT: dict[str, Any] = {
    "mem": Memory, "warp": ports.Warp, "cta": ports.Cta, "flow": ports.Flow, "clock": ports.Clock,
    "cc": ports.ConditionCode, "tex": textures, "tasks": copies.Tasks,
}  # fmt: skip
FUNCTIONS = {"sin": 0, "cos": 1, "lg2": 2, "ex2": 3, "tanh": 4}
TRAP = 1  # what the machine is told of
NATIVE = ("i32", "i64", "float", "double")  # elements that the processor gathers


class Emitter(Operands):
    """Writes a node for whole warps (`full`), or for those lanes that stand there."""

    kernel: Kernel

    def __init__(self, kernel: Kernel, node: Node, *, full: bool) -> None:
        self.kernel, self.node, self.full = kernel, node, full
        self.code = Code(kernel.unit)
        self.width = self.code.width
        self.alg = LlvmAlgebra(self.code, self._transcendental, self._extended, self.buffer, fast=kernel.fast)
        self.prologue: list[str] = []
        self.current: dict[Key, Value] = {}
        self.loaded: dict[Key, Value] = {}
        self.written: set[Key] = set()
        self.position = 0
        self.notes: dict[int, str] = {}  # how instructions access memory, by their positions
        self.definitions: list[Definition] = []
        self.light: dict[str, int] = {}  # vectors that take fewer registers than their type says
        self.guard: Raw | None = None
        self.aside: Raw | None = None  # the lanes that do not skip the instructions at the end of the node
        self.mask: str | None = None if full else "%" + self.name("mask")
        self.dirty = False
        self.nested = False
        self.action: ports.Action | None = None
        self.widened: dict[tuple[bool, Lin], Lin] = {}
        self.leaves = False
        self.ranges = Ranges(self)
        self.repeats = kernel.plan.repeats(node)
        self._port: Memory | None = None
        self.keeps_sites = self.repeats and kernel.keeps_sites
        self.bank_size = kernel.bank_size
        self.local_stride = kernel.local_stride

    def name(self, stem: str) -> str:
        """A name of this node."""
        return f"{'F' if self.full else 'M'}{self.node.number}.{stem}"

    # ── instructions ────────────────────────────────────────────────────────────────────

    def run(self) -> None:
        """All instructions, in order."""
        if not self.full:
            self.code.memo[f"bitcast i32 {self.mask} to <{self.width} x i1>"] = "%" + self.name("lanes")
        if self.node.returns is not None:
            calls.hand_back(self, self.node.returns)
        for position, bound in enumerate(self.node.code):
            self.position = position
            if position == self.node.turn:
                self._turn(bound)
                break
            self.instruction(bound)
            self.code.cut()
        self.ranges.settle()

    def _turn(self, bound: Bound) -> None:
        """A branch to the end of the node: what stands before that is for the lanes which do not take it."""
        staying = (~Value(self.alg, pred, self._guard_of(bound))).raw
        self.note("together" if isinstance(staying, Lin) else f"{self.node.aside} aside")
        self.guard = self.aside = staying
        if not any(each.i.of.effects for each in self.node.code[self.node.turn + 1 :]):
            self._beside()
        elif isinstance(staying, Lin):
            self.aside = None
            self._conditional(text("i1", staying.base), self._beside)
        else:
            lanes, word = self.code.mask_bits(self.active_vector() or ""), f"i{self.width}"
            self._conditional(self.code.emit(f"icmp ne {word} {lanes}, 0"), self._beside)
        self.guard = self.aside = None

    def _beside(self) -> None:
        """What only some lanes run."""
        for position in range(self.node.turn + 1, len(self.node.code)):
            self.position = position
            self.instruction(self.node.code[position])
        self.guard = self.aside
        counting.aside(self)

    def instruction(self, bound: Bound) -> None:
        """One instruction."""
        i = bound.i
        guard = self._guard_of(bound)
        if self.node.waits:
            guard = None  # who waited was not held off by it
        effects = i.of.effects
        known = isinstance(guard, Lin) and guard.constant is None
        if known and effects & {"mem", "warp"} and not is_barrier(i) and not (is_collective(i) and self._parts(guard)):
            self.guard = None
            self._conditional(text("i1", guard.base), lambda: self._meaning(bound, i))  # type: ignore[union-attr]
            return
        if isinstance(guard, Lin) and guard.constant is not None and "flow" not in effects and not is_barrier(i):
            if not guard.constant & 1:
                return
            guard = None
        self.guard = guard
        self._meaning(bound, i)

    def _conditional(self, condition: str, meaning: Callable[[], None]) -> None:
        """Something with effects that is jumped over where no lane does it."""
        code, before = self.code, dict(self.current)
        do, skip, merge = code.label(), code.label(), code.label()
        code.branch(condition, do, skip)
        self.nested = True
        with code.scope():
            code.block(do)
            meaning()
            changed = {k: v for k, v in self.current.items() if k in self.written and before.get(k) is not v and self._told(k)}
            olds = {k: before[k] if k in before else self._load(k, v.type) for k, v in changed.items()}
            for key, old in olds.items():
                before.setdefault(key, old)
            plain = {
                k: isinstance(v.raw, Lin) and isinstance(olds[k].raw, Lin) and not v.raw.terms and not olds[k].raw.terms
                for k, v in changed.items()
            }
            new = {k: self._single(v, scalar=plain[k]) for k, v in changed.items()}
            done = code.label()
            code.jump(done)
            code.block(done)
            code.jump(merge)
        with code.scope():
            code.block(skip)
            kept = {k: self._single(v, scalar=plain[k]) for k, v in olds.items()}
            passed = code.label()
            code.jump(passed)
            code.block(passed)
            code.jump(merge)
        code.block(merge)
        for key, value in changed.items():
            llvm = scalar_type(value.type) if plain[key] else self.alg.vector_type(value.type)
            name = code.emit(f"phi {llvm} [ {new[key]}, %{done} ], [ {kept[key]}, %{passed} ]", pure=False)
            raw = Lin(name) if plain[key] else Vec(name)
            self.current[key] = Value(self.alg, value.type, raw)
        self.nested = False

    def _told(self, key: Key) -> bool:
        """Is a register's new value needed after what the instruction at hand is part of?"""
        node = self.node
        return not node.aside or self.position <= node.turn or bool(node.told >> key[0] & 1)

    def _single(self, value: Value, *, scalar: bool) -> str:
        raw = self.alg.tight(value.type, value.raw)
        if scalar and isinstance(raw, Lin):
            return text(scalar_type(value.type), raw.base)
        return self.alg.vector(value.type, raw)

    def _meaning(self, bound: Bound, i: Decoded) -> None:
        given = {p: PORT[p](self, bound) for p in i.of.parameters if p in PORT}
        if missing := [p for p in i.of.parameters if p in PORTS and p not in PORT]:
            raise Unsupported(f"'{i.mnemonic}' in the JIT", f"port {missing[0]}")
        self._port, self._bound = given.get("mem"), bound
        if "cc" in given:
            given["cc"].read = lambda: self.slot(CARRY, pred)
            given["cc"].write = lambda value: self.assign(CARRY, pred, value)
        arguments = [given[p] if p in given else self.operand(bound, p) for p in i.of.parameters]
        result: Any = i.of.meaning(i, *arguments)
        if inspect.isgenerator(result):
            waiting: Any = result
            request: ports.Request = next(waiting)
            if not self.node.waits and self._arrive(bound, request):
                self.action = ports.Action("wait")
                return
            sent = self._outcome(bound, request)
            try:
                waiting.send(sent)
            except StopIteration as end:
                result = end.value
            else:
                raise Unsupported(f"'{i.mnemonic}' in the JIT")
        if "flow" in given:
            self.action = given["flow"].action
            if self.action is not None and self.action.verb == "call":
                calls.call(self, bound, self.action)
        self.commit(bound, result)

    def _parts(self, guard: Raw | None) -> bool:
        """May lanes be elsewhere while some come to a collective, in a kernel in which they wait?"""
        return self.kernel.general and (not self.full or isinstance(guard, Vec))

    def _arrive(self, bound: Bound, request: ports.Request) -> bool:
        """Come to a barrier or a collective; do lanes wait there?"""
        if is_collective(bound.i):
            if self._parts(self.guard):
                dispatch.arrive(self, bound.i.mnemonic, request)
            return self._parts(self.guard)
        if self.kernel.meets:
            barriers.arrive(self, bound, request)
        else:
            self.kernel.barrier(bound, request)
            self._vote(request.values[2])
        return True

    def _outcome(self, bound: Bound, request: ports.Request) -> Any:
        """What an instruction learns of those with whom it met."""
        if is_barrier(bound.i):
            return barriers.Outcome(self, bound, request) if self.kernel.meets else ports.Votes(self, bound)
        if not self.node.waits:
            return self._collective(bound, request)
        members, given = dispatch.given(self, bound.i.mnemonic, request)
        return ports.Peers(self, bound, members, given)

    def _collective(self, bound: Bound, request: ports.Request) -> ports.Peers:
        """The lanes that came; where one of the mask stands elsewhere, the warp goes on in the version that can wait."""
        self.code.one_warp()
        members, *payload = request.values
        here = self.active_raw()
        epochs.lanes_meet(self, members.raw)  # type: ignore[union-attr]
        if not self.full or self.guard is not None:
            others = self._elsewhere()
            if others != "0":
                asked = self.alg.integer("and", u32, members.raw, Lin(others))  # type: ignore[union-attr]
                wrong = self.alg.compare("ne", u32, asked, Lin(0))
                bits = self.code.emit(f"and i32 {self.bits_of(wrong)}, {self.active_text()}")
                good = self.code.label()
                self.code.branch(self.code.emit(f"icmp eq i32 {bits}, 0"), good, self.name("leave"), likely=True)
                self.code.block(good)
                self.leaves = True
        given = tuple(p for p in payload if p)
        return ports.Peers(self, bound, self.alg.integer("and", u32, members.raw, here), given)  # type: ignore[union-attr]

    def _elsewhere(self) -> str:
        """The lanes that have not ended and are not here, as a mask."""
        total = "0"
        for n in sorted(self.node.waiting):
            standing = self.code.emit(f"load i32, ptr %pending.{n}, align 4", pure=False)
            total = self.code.emit(f"or i32 {total}, {standing}")
        if self.guard is not None:
            aside = self.code.emit(f"xor i32 {self.active_text()}, {self.mask or -1}")
            total = self.code.emit(f"or i32 {total}, {aside}")
        return total

    def _vote(self, vote: Value | None) -> None:
        """Count the votes of these lanes at a barrier."""
        if vote is None:
            return
        self.code.one_warp()
        ayes = self.code.emit(f"and i32 {self.bits_of(vote.raw)}, {self.active_text()}")
        for field, bits in (("ayes", ayes), ("voters", self.active_text())):
            count = self.code.intrinsic("i32", "llvm.ctpop.i32", ("i32", bits))
            place = self.kernel.field(self.code, field)
            total = self.code.emit(f"load i32, ptr {place}, align 4", pure=False)
            self.code.run(f"store i32 {self.code.emit(f'add i32 {total}, {count}')}, ptr {place}, align 4")

    def _guard_of(self, bound: Bound) -> Raw | None:
        guard = bound.guard()
        if guard is None:
            return self.aside
        value = self.slot(self.key(guard[0]), pred)
        raw: Raw = (~value).raw if guard[1] else value.raw
        return raw

    # ── registers ───────────────────────────────────────────────────────────────────────

    def key(self, register: Register, part: int = 0) -> Key:
        """A register of this node's function among those of the kernel."""
        return self.kernel.plan.number(register, self.node.frame), part

    def slot(self, key: Key, type: Type) -> Value:
        """What a register holds."""
        if key not in self.current:
            self.current[key] = self._load(key, type)
        return self.current[key]

    def _load(self, key: Key, type: Type) -> Value:
        """What the register held when the node began."""
        if key not in self.loaded:
            raw = self.kernel.registers.load(key, type, self.prologue, self.code, (self.node.number, self.full))
            self.loaded[key] = Value(self.alg, type, raw)
        return self.loaded[key]

    def note(self, said: str) -> None:
        """How the instruction at hand accesses memory, for who looks at it."""
        self.notes[self.position] = said

    def assign(self, key: Key, type: Type, value: Value) -> None:
        """Give a register a new value, where the guard holds."""
        value = fitting(value, type)
        if self.guard is not None and self._told(key):
            old = self.slot(key, type)
            value = Value(self.alg, type, self.alg.select(type, self.guard, value.raw, old.raw))
        self.current[key] = value
        self.written.add(key)
        self.definitions.append((self.position, key, value))

    def store_registers(self) -> None:
        """Leave what is needed later; lanes that are not here keep what they have."""
        for key in sorted(self.written):
            if key != CARRY and not self.node.live_out >> key[0] & 1:
                continue
            value = self.current[key]
            raw = value.raw
            if not self.full and self.kernel.kept_by_others(self.node, key):
                old = self._load(key, value.type)
                raw = self.alg.select(value.type, Vec(self._lanes()), raw, old.raw)
            self.kernel.registers.store(key, value.type, raw, self.alg, (self.node.number, self.full))

    # ── lanes ───────────────────────────────────────────────────────────────────────────

    def _lanes(self) -> str:
        return self.code.emit(f"bitcast i32 {self.mask} to <{self.width} x i1>")

    def active_vector(self) -> str | None:
        """The lanes that commit this instruction as predicates; None for all."""
        guard = self.alg.vector(pred, self.guard) if self.guard is not None else None
        if self.mask is None:
            return guard
        lanes = self._lanes()
        return lanes if guard is None else self.code.emit(f"and <{self.width} x i1> {lanes}, {guard}")

    def active_text(self) -> str:
        """The same as a mask."""
        if self.guard is None:
            return self.mask or "-1"
        self.code.one_warp()
        bits = self.bits_of(self.guard)
        return bits if self.mask is None else self.code.emit(f"and i32 {bits}, {self.mask}")

    def active_raw(self) -> Lin:
        """The same as a value."""
        found = self.active_text()
        return Lin(0xFFFF_FFFF) if found == "-1" else Lin(found)

    def bits_of(self, raw: Raw) -> str:
        """A predicate as a mask."""
        if isinstance(raw, Lin):
            if raw.constant is not None:
                return "-1" if raw.constant & 1 else "0"
            return self.code.emit(f"sext i1 {raw.base} to i32")
        return self.code.mask_bits(raw.name)

    # ── services ────────────────────────────────────────────────────────────────────────

    def memory(self, bound: Bound) -> Memory:
        """The port `mem`."""
        return Memory(self, bound)

    def memory_port(self) -> Memory:
        """That of the instruction at hand."""
        if self._port is None:
            self._port = Memory(self, self._bound)
        return self._port

    def buffer(self, llvm: str, number: int) -> str:
        """Scratch memory of the warp's function."""
        return self.kernel.buffer(llvm, number)

    def context(self, field: str) -> str:
        """A field of the launch's record."""
        return self.kernel.context(self.code, field)

    def site(self, bound: Bound, space: str, size: int, span: int, *, writing: bool) -> int:
        """The number of a place that accesses memory."""
        return self.kernel.site(bound, space, size, span, writing=writing)

    def site_field(self, site: int, n: int) -> str:
        """What it remembers of its last allocation: from memory, or in a loop from a variable, which LLVM keeps at hand."""
        if not self.keeps_sites:
            return self.code.emit(f"load i64, ptr {self._site_place(site, n)}, align 8", pure=False)
        self.kernel.kept_sites.add((site, n))
        return self.code.emit(f"load i64, ptr %site.{site}.{n}, align 8", pure=False)

    def _site_place(self, site: int, n: int) -> str:
        return self.code.emit(f"getelementptr i8, ptr %sites, i64 {site * 32 + 8 * n}")

    def site_again(self, site: int) -> None:
        """It may remember another one now."""
        if self.keeps_sites and self.kernel.shadow is not None:
            self.kernel.kept_sites |= {(site, n) for n in range(4)}  # who watches asks for all of them from here on
        for n in range(4 if self.keeps_sites else 0):
            if (site, n) in self.kernel.kept_sites:
                value = self.code.emit(f"load i64, ptr {self._site_place(site, n)}, align 8", pure=False)
                self.code.run(f"store i64 {value}, ptr %site.{site}.{n}, align 8")

    def walk(self) -> str:
        """A variable of the warp's function for where the access at hand was in the last turn of a loop."""
        self.kernel.walks += 1
        return f"%walk.{self.kernel.walks}"

    def window_size(self, space: str) -> int:
        """Bytes of shared or local memory."""
        return self.kernel.shared_size if space == "shared" else self.kernel.stack_size

    def needs_local(self) -> None:
        """The kernel uses local memory."""
        self.kernel.uses_local = True

    def gather(self, llvm: str, places: str, mask: str | None) -> str:
        """Load from a place of each lane."""
        vector = f"<{self.width} x {llvm}>"
        predicate = mask or "splat (i1 true)"
        size = 8 if llvm in ("i64", "double") else 4
        if llvm not in NATIVE:
            name = self.kernel.loop_helper("gather", llvm)
            parts = [
                self.code.call(f"<{WARP} x {llvm}>", name, *self._of_warp(n, places, mask), pure=False)
                for n in self.code.warps()
            ]
            return self.code.concatenate(llvm, parts, WARP)
        name = f"llvm.masked.gather.v{self.width}{short(llvm)}.v{self.width}p0"
        self.code.unit.declarations[name] = (
            f"declare {vector} @{name}(<{self.width} x ptr>, i32 immarg, <{self.width} x i1>, {vector})"
        )
        given = [
            (f"<{self.width} x ptr>", places),
            ("i32", str(size)),
            (f"<{self.width} x i1>", predicate),
            (vector, "zeroinitializer"),
        ]
        return self.code.emit(f"freeze {vector} {self.code.call(vector, name, *given, pure=False)}", pure=False)

    def _slice(self, llvm: str, vector: str, warp: int) -> str:
        if self.width == WARP:
            return vector
        return self.code.shuffle(llvm, self.width, vector, "poison", list(range(warp * WARP, (warp + 1) * WARP)))

    def _of_warp(self, warp: int, places: str, mask: str | None) -> list[tuple[str, str]]:
        """The places of one warp, and its lanes that are active."""
        bits = "-1" if mask is None else self.code.warp_bits(mask, warp)
        return [(f"<{WARP} x ptr>", self._slice("ptr", places, warp)), ("i32", bits)]

    def scatter(self, llvm: str, value: str, places: str, mask: str | None) -> None:
        """Store to a place of each lane, in their order."""
        vector = f"<{self.width} x {llvm}>"
        size = 8 if llvm in ("i64", "double") else 4
        if llvm not in NATIVE:
            name = self.kernel.loop_helper("scatter", llvm)
            for n in self.code.warps():
                part = (f"<{WARP} x {llvm}>", self._slice(llvm, value, n))
                given = ", ".join(f"{t} {x}" for t, x in (part, *self._of_warp(n, places, mask)))
                self.code.run(f"call void @{name}({given})")
            return
        name = f"llvm.masked.scatter.v{self.width}{short(llvm)}.v{self.width}p0"
        self.code.unit.declarations[name] = (
            f"declare void @{name}({vector}, <{self.width} x ptr>, i32 immarg, <{self.width} x i1>)"
        )
        predicate = mask or "splat (i1 true)"
        self.code.run(
            f"call void @{name}({vector} {value}, <{self.width} x ptr> {places}, i32 {size}, <{self.width} x i1> {predicate})"
        )

    def _transcendental(self, alg: LlvmAlgebra, function: str, type: Type, a: Raw) -> Raw:
        """NumPy computes it, for all lanes."""
        self.code.one_warp()
        uniform = isinstance(a, Lin)
        vector = self.alg.vector_type(type)
        given, made = self.buffer(vector, 7), self.buffer(vector, 8)
        self.code.run(f"store {vector} {alg.vector(type, a)}, ptr {given}, align 64")
        which = FUNCTIONS[function] + (16 if type.bits == 64 else 0)
        self.code.run(f"call void {self.context('function')}(i32 {which}, ptr {given}, ptr {made})")
        result = self.code.emit(f"load {vector}, ptr {made}, align 64", pure=False)
        if not uniform:
            return Vec(result)
        return Lin(self.code.emit(f"extractelement {vector} {result}, i64 0"))

    def outside(
        self, bound: Bound, work: Outside, inputs: list[tuple[Type, Raw]], outputs: list[Type], quick: str | None = None
    ) -> list[Value]:
        """Ask the machine for something: values of all lanes go to Python, and values come back.

        `quick` is a function of the module that does it too, for most values of whole warps.
        """
        code = self.code
        code.one_warp()
        number = self.kernel.outside(bound, work, [t for t, _ in inputs], outputs)
        room = self.buffer(f"[{max(1, len(inputs), len(outputs))} x <{self.width} x i128>]", 6)
        for n, (type, raw) in enumerate(inputs):
            llvm = self.alg.vector_type(type)
            vector = self.alg.vector(type, self.alg.tight(type, raw))
            place = code.emit(f"getelementptr i8, ptr {room}, i64 {16 * WARP * n}")
            if type is pred:
                llvm, vector = f"<{self.width} x i8>", code.emit(f"zext {llvm} {vector} to <{self.width} x i8>")
            code.run(f"store {llvm} {vector}, ptr {place}, align 64")
        good, active = code.label(), self.active_text()
        with code.scope():
            if quick is not None:
                self._try(quick, active, room, good)
            self.kernel.here(code)
            answer = code.emit(
                f"call i32 {self.context('outside')}(i32 {number}, ptr {room}, i32 {active}, i32 %warp)", pure=False
            )
            code.branch(code.emit(f"icmp eq i32 {answer}, 0", pure=False), good, "fault", likely=True)
        code.block(good)
        self.dirty = True
        found = []
        for n, type in enumerate(outputs):
            llvm = self.alg.vector_type(type) if type is not pred else f"<{self.width} x i8>"
            place = code.emit(f"getelementptr i8, ptr {room}, i64 {16 * WARP * n}")
            name = code.emit(f"load {llvm}, ptr {place}, align 64", pure=False)
            if type is pred:
                name = code.emit(f"icmp ne {llvm} {name}, zeroinitializer")
            found.append(Value(self.alg, type, Vec(name)))
        return found

    def _try(self, quick: str, active: str, room: str, good: str) -> None:
        """Let a function do it for a whole warp; go on where it has not."""
        code, whole, ask = self.code, self.code.label(), self.code.label()
        code.branch(code.emit(f"icmp eq i32 {active}, -1"), whole, ask, likely=True)
        code.block(whole)
        done = code.emit(f"call i32 @{quick}(ptr {room})", pure=False)
        code.branch(code.emit(f"icmp ne i32 {done}, 0", pure=False), good, ask, likely=True)
        code.block(ask)

    def refuse(self, bound: Bound, wrong: Value, work: Outside, inputs: list[tuple[Type, Raw]]) -> None:
        """Let Python say what is wrong, if anything is wrong in an active lane."""
        code = self.code
        code.one_warp()
        bits = code.emit(f"and i32 {self.bits_of(wrong.raw)}, {self.active_text()}")
        bad, good = code.label(), code.label()
        code.branch(code.emit(f"icmp eq i32 {bits}, 0"), good, bad, likely=True)
        with code.scope():
            code.block(bad)
            self.outside(bound, work, inputs, [])
            code.jump(good)
        code.block(good)

    def fault(self, kind: int, bits: str) -> None:
        """Tell the machine, and end."""
        index = self.kernel.place_of(self.node.frame.code[self.node.end - 1])
        self.kernel.here(self.code)
        self.code.run(f"call void {self.context('fault')}(i32 {kind}, i32 {bits}, i32 {index}, i32 %warp)")
        self.code.jump("fault")

    # ── linear values that are extended ─────────────────────────────────────────────────

    def _extended(self, alg: LlvmAlgebra, source: Type, a: Lin) -> Lin | None:
        """A linear s32 or u32 as 64 bits, where no lane wraps; where one does, the warp goes on without shapes."""
        if self.kernel.shapeless or self.dirty:
            return None
        known = (source.is_signed, a)
        if known in self.widened:
            return self.widened[known]
        code = self.code

        def wide(u: Scalar, *, signed: bool) -> Scalar:
            if isinstance(u, int):
                return wrapped(u, 32) if signed else u
            return code.emit(f"{'sext' if signed else 'zext'} i32 {u} to i64")

        base = wide(a.base, signed=source.is_signed)
        terms = tuple((k, wide(u, signed=True)) for k, u in a.terms)
        low, high = extremes.ends(alg, source, a)
        tests = []
        for end in (low, high):
            moved = alg.scalar("add", 64, end, 1 << 31) if source.is_signed else end
            tests.append(code.emit(f"icmp ult i64 {text('i64', moved)}, {1 << 32}"))
        good = code.label()
        code.branch(code.emit(f"and i1 {tests[0]}, {tests[1]}"), good, self.name("leave"), likely=True)
        code.block(good)
        self.leaves = True
        made = Lin(base, tuple((k, u & (1 << 64) - 1 if isinstance(u, int) else u) for k, u in terms), shift=a.shift)
        made = Lin(made.base, alg.collect(64, tuple((k, u, 1) for k, u in made.terms)), shift=a.shift)
        if not self.nested:
            self.widened[known] = made
        return made


__all__ = ["Emitter", "is_collective", "u64"]

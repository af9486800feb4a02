"""The builder of one node: register values, active lanes, gathers and scatters, host calls, side exits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Protocol

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type, pred
from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound
from ptxvm.analysis.symbols import Register
from ptxvm.engine import operands
from ptxvm.engine.jit.abi.host import HostCall
from ptxvm.engine.jit.abi.metadata import SITE_SIZE
from ptxvm.engine.jit.abi.operand_room import STEP
from ptxvm.engine.jit.cfg.nodes import Node
from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.ir.builder import SMALL, Code, short
from ptxvm.engine.jit.ir.lane_values import Affine, Raw, Scalar, Varying, text, wrapped
from ptxvm.engine.jit.node import small_elements
from ptxvm.engine.jit.node.context import KernelContext
from ptxvm.engine.jit.node.node_code import ON_HOST, Definition, NodeCode
from ptxvm.engine.jit.node.register_shapes import CARRY, Key
from ptxvm.engine.jit.values import affine_integers, uniform_bounds
from ptxvm.engine.jit.values.algebra import LlvmAlgebra
from ptxvm.engine.operands import fitting
from ptxvm.isa.special_registers import WARP

if TYPE_CHECKING:
    from ptxvm.engine.jit.node.event_counters import NodeCounters


class MergedChecks(Protocol):
    """Bounds checks that several accesses share (`memory.merged_checks`)."""

    def covers(self, low: Raw, size: int, part: tuple[int, int]) -> bool:
        """Does a shared check cover an access?"""


NATIVE = ("i32", "i64", "float", "double")  # elements that the processor gathers
DelayedStore = Callable[[str, list[str]], None]  # takes the LLVM type and the vectors of a store that waits


class StoreQueue(Protocol):
    """Stores that wait for others beside them (`memory.joined_stores`)."""

    def waits(self, space: Space, size: int, raw: Raw, count: int, weak: Bound | None) -> DelayedStore | None:
        """The function that delays a store, or None where it must not wait."""

    def settle(self) -> None:
        """Write the waiting stores."""

    def write_aside(self) -> None:
        """Write the waiting stores on the path of a failed check."""


class NodeBuilder(operands.Operands):
    """Writes a node for whole warps (`full`), or for the lanes of a mask."""

    alg: LlvmAlgebra
    ranges: MergedChecks
    stores: StoreQueue

    def __init__(self, kernel: KernelContext, node: Node, *, full: bool) -> None:
        self.kernel, self.node, self.full = kernel, node, full
        self.code = Code(kernel.unit)
        self.width = self.code.width
        self.alg = LlvmAlgebra(self.code, self._extended, self.buffer, fast=kernel.fast)
        self.prologue: list[str] = []
        self.current: dict[Key, Value] = {}
        self.loaded: dict[Key, Value] = {}
        self.written: set[Key] = set()
        self.position = 0
        self.together_until = 0  # the position up to which the same lanes run the instructions
        self.notes: dict[int, str] = {}  # how each instruction accesses memory, by its position
        self.definitions: list[Definition] = []
        self.light: dict[str, int] = {}  # vectors that take fewer registers than their type says
        self.preloaded: dict[int, list[Value]] = {}  # what a load loads, by its position, where an earlier one loaded it
        self.neighbours: dict[int, dict[int, list[int]]] | None = None  # of its loads: see `memory.joined_loads`
        self.given_by: Raw | None = None  # the lane whose value a collective passes on to each lane; None for its own
        self.guard: Raw | None = None
        self.region_guard: Raw | None = None  # the lanes that run a predicated block (`lower.predicated_region`) ...
        self.escapes: int | None = None  # ... and the registers that it writes and that are read behind it
        self.mask: str | None = None if full else "%" + self.name("mask")
        self.dirty = False
        self.waits_as_one = False  # the lanes that come to its barrier are released at once
        self.nested = False
        self.widened: dict[tuple[bool, Affine], Affine] = {}
        self.leaves = False
        self.repeats = kernel.graph.repeats(node)
        self.caches_bounds = self.repeats and kernel.caches_bounds
        self.events: NodeCounters | None = None  # in profiled code
        if kernel.counters is not None:
            from ptxvm.engine.jit.node.event_counters import NodeCounters  # noqa: PLC0415 - little code is profiled

            self.events = NodeCounters(self.code, kernel.counters, kernel.number, node.number, full=full)
        self.bank_size = kernel.bank_size
        self.local_stride = kernel.local_stride

    def name(self, stem: str) -> str:
        """A name of this node."""
        return f"{'F' if self.full else 'M'}{self.node.number}.{stem}"

    def written_code(self) -> NodeCode:
        """The finished code of the node."""
        first, lines, variables = self.prologue, self.code.lines, dict[str, str]()
        if self.events is not None:
            counted, lines, variables = self.events.finish(lines, leaves=self.leaves)
            first = first + counted
        return NodeCode(
            self.node, self.width, first + lines, self.leaves, self.loaded, self.definitions, self.notes, self.light, variables
        )

    # ── registers ───────────────────────────────────────────────────────────────────────

    def key(self, register: Register, part: int = 0) -> Key:
        """The key of a register of this node's function."""
        return self.kernel.graph.number(register, self.node.frame), part

    def slot(self, key: Key, type: Type) -> Value:
        """The current value of a register."""
        if key not in self.current:
            self.current[key] = self._load(key, type)
        return self.current[key]

    def _load(self, key: Key, type: Type) -> Value:
        """The value of a register when the node begins."""
        if key not in self.loaded:
            raw = self.kernel.registers.load(key, type, self.prologue, self.code, (self.node.number, self.full))
            self.loaded[key] = Value(self.alg, type, raw)
        return self.loaded[key]

    def note(self, said: str) -> None:
        """Note how this instruction accesses memory, or is computed, for `--dump shapes`."""
        self.notes[self.position] = said

    def assign(self, key: Key, type: Type, value: Value) -> None:
        """Give a register a new value, where the guard holds."""
        value = fitting(value, type)
        if self.kernel.scalar and isinstance(value.raw, Varying):  # of an operation that only vectors have
            value = self.of_lane(value, 0)
        if self.guard is not None and self._escapes(key):
            old = self.slot(key, type)
            value = Value(self.alg, type, self.alg.select(type, self.guard, value.raw, old.raw))
        self.current[key] = value
        self.written.add(key)
        self.definitions.append((self.position, key, value))

    def store_registers(self) -> None:
        """Store the registers that are live after the node; inactive lanes keep their values."""
        for key in sorted(self.written):
            if key != CARRY and not self.node.live_out >> key[0] & 1:
                continue
            value = self.current[key]
            raw = value.raw
            if not self.full and self.kernel.needed_by_others(self.node, key):
                old = self._load(key, value.type)
                raw = self.alg.select(value.type, Varying(self._lanes()), raw, old.raw)
            self.kernel.registers.store(key, value.type, raw, self.alg, (self.node.number, self.full))

    # ── lanes ───────────────────────────────────────────────────────────────────────────

    def _lanes(self) -> str:
        return self.code.all_lanes(self.mask or "-1")

    def lone_lane(self) -> int | None:
        """The lane that alone runs the block of a predicated region, where that is known."""
        lanes = self.region_guard.lanes if self.full and isinstance(self.region_guard, Varying) else None
        return lanes.index(1) if lanes is not None and lanes.count(1) == 1 else None

    def of_lane(self, value: Value, lane: int) -> Value:
        """The value of a lane, as that of all lanes."""
        raw, type = value.raw, value.type
        if isinstance(raw, Varying):
            one: Scalar
            if raw.lanes is not None:
                one = raw.lanes[lane]
            else:
                one = self.code.emit(f"extractelement {self.alg.vector_type(type)} {raw.name}, i64 {lane}")
            return Value(self.alg, type, Affine(one, loose=raw.loose))
        if not raw.terms:
            return value
        base = raw.base
        for pattern, u in raw.terms:
            base = self.alg.scalar("add", type.bits, base, self.alg.scalar("mul", type.bits, u, pattern[lane]))
        return Value(self.alg, type, Affine(base))

    def active_vector(self) -> str | None:
        """The active lanes as a vector of predicates; None for all."""
        guard = self.alg.vector(pred, self.guard) if self.guard is not None else None
        if self.mask is None:
            return guard
        lanes = self._lanes()
        return lanes if guard is None else self.code.emit(f"and <{self.width} x i1> {lanes}, {guard}")

    def active_text(self) -> str:
        """The active lanes as a mask."""
        if self.guard is None:
            return self.mask or "-1"
        self.code.one_warp()
        bits = self.bits_of(self.guard)
        return bits if self.mask is None else self.code.emit(f"and i32 {bits}, {self.mask}")

    def active_raw(self) -> Affine:
        """The active lanes as a value."""
        found = self.active_text()
        return Affine(0xFFFF_FFFF) if found == "-1" else Affine(found)

    def bits_of(self, raw: Raw) -> str:
        """A predicate as a mask."""
        if isinstance(raw, Affine):
            if raw.constant is not None:
                return "-1" if raw.constant & 1 else "0"
            return self.code.emit(f"sext i1 {raw.base} to i{self.width}")
        return self.code.mask_bits(raw.name)

    def lanes_of(self, guard: Raw | None) -> str:
        """The active lanes for which a guard holds, as a mask."""
        bits = "-1" if guard is None else self.bits_of(guard)
        return bits if self.mask is None else self.code.emit(f"and i{self.width} {bits}, {self.mask}")

    @contextmanager
    def among(self, chosen: Raw) -> Iterator[None]:
        """Code for those of the active lanes for which a predicate holds."""
        outer = self.guard
        both = chosen if outer is None else self.alg.integer("and", pred, outer, chosen)
        self.guard = Varying(self.alg.vector(pred, both))
        yield
        self.guard = outer

    def _escapes(self, key: Key) -> bool:
        """Is a register that this instruction writes read where not all of its lanes wrote it?"""
        whole = self.escapes is None or self.guard is not self.region_guard or key == CARRY or self.kernel.is_mark(key)
        return whole or bool((self.escapes or 0) >> key[0] & 1)

    def suspect_where(self, wrong: str) -> None:
        """Suspect the warp, in instrumented code, where an answer says so."""
        good = self.code.label()
        self.code.branch(wrong, "suspect", good, likely=False)
        self.code.block(good)

    def suspect_if(self, wrong: Raw) -> None:
        """Suspect the warp, in instrumented code, if a predicate holds in an active lane."""
        if self.kernel.shadow is None or (isinstance(wrong, Affine) and wrong.constant == 0):
            return
        code, lanes = self.code, self.active_vector()
        bits = code.mask_bits(self.alg.vector(pred, wrong))
        if lanes is not None:
            bits = code.emit(f"and i{code.width} {bits}, {code.mask_bits(lanes)}")
        self.suspect_where(code.emit(f"icmp ne i{code.width} {bits}, 0"))

    # ── services ────────────────────────────────────────────────────────────────────────

    def buffer(self, llvm: str, number: int) -> str:
        """Scratch memory of the warp function."""
        return self.kernel.buffer(llvm, number)

    def launch_field(self, field: str) -> str:
        """A field of the launch record."""
        return self.kernel.launch_field(self.code, field)

    def site(self, bound: Bound, space: Space, size: int, span: int, *, writing: bool) -> int:
        """The number of an access site."""
        return self.kernel.site(bound, space, size, span, writing=writing)

    def site_field(self, site: int, n: int) -> str:
        """A field of a site's last allocation: from memory, or in a loop from a variable, which LLVM promotes to a register."""
        if not self.caches_bounds:
            return self.code.emit(f"load i64, ptr {self._site_pointer(site, n)}, align 8", pure=False)
        self.kernel.cached_bounds.add((site, n))
        return self.code.emit(f"load i64, ptr %site.{site}.{n}, align 8", pure=False)

    def _site_pointer(self, site: int, n: int) -> str:
        return self.code.emit(f"getelementptr i8, ptr %sites, i64 {site * SITE_SIZE + 8 * n}")

    def reload_site(self, site: int) -> None:
        """Reload the cached fields of a site, after the slow path may have changed them."""
        if self.caches_bounds and self.kernel.tagged:
            self.kernel.cached_bounds |= {(site, n) for n in range(4)}  # instrumented accesses read all of them from here on
        for n in range(4 if self.caches_bounds else 0):
            if (site, n) in self.kernel.cached_bounds:
                value = self.code.emit(f"load i64, ptr {self._site_pointer(site, n)}, align 8", pure=False)
                self.code.run(f"store i64 {value}, ptr %site.{site}.{n}, align 8")

    def prefetch_variable(self) -> str:
        """A variable of the warp function: the address of this access in the last iteration of a loop."""
        self.kernel.prefetches += 1
        return f"%prefetch.{self.kernel.prefetches}"

    def window_size(self, space: Space) -> int:
        """Bytes of shared or local memory."""
        return self.kernel.shared_size if space is Space.SHARED else self.kernel.stack_size

    def needs_local(self) -> None:
        """The kernel uses local memory."""
        self.kernel.uses_local = True

    def gather(self, llvm: str, pointers: str, mask: str | None) -> str:
        """Load from an address for each lane."""
        if llvm in SMALL and mask is None and cpu.has("avx2"):  # a few lanes are quicker one by one
            words = partial(self.code.masked_gather, "i32", mask="splat (i1 true)")
            return small_elements.gathered(self.code, llvm, self.width, pointers, words)
        if llvm not in NATIVE:
            name = small_elements.loop(self.code.unit, "gather", llvm)
            parts = [
                self.code.call(f"<{WARP} x {llvm}>", name, *self._of_warp(n, pointers, mask), pure=False)
                for n in self.code.warps()
            ]
            return self.code.concatenate(llvm, parts, WARP)
        return self.code.masked_gather(llvm, pointers, mask or "splat (i1 true)")

    def _slice(self, llvm: str, vector: str, warp: int) -> str:
        if self.width == WARP:
            return vector
        return self.code.shuffle(llvm, self.width, vector, "poison", list(range(warp * WARP, (warp + 1) * WARP)))

    def _of_warp(self, warp: int, pointers: str, mask: str | None) -> list[tuple[str, str]]:
        """The addresses of one warp, and the mask of its active lanes."""
        bits = "-1" if mask is None else self.code.warp_bits(mask, warp)
        return [(f"<{WARP} x ptr>", self._slice("ptr", pointers, warp)), ("i32", bits)]

    def scatter(self, llvm: str, value: str, pointers: str, mask: str | None) -> None:
        """Store to an address for each lane, in the order of the lanes."""
        vector = f"<{self.width} x {llvm}>"
        size = 8 if llvm in ("i64", "double") else 4
        if llvm not in NATIVE:
            self.scatter_out_of_line(llvm, value, pointers, mask)
            return
        addresses, predicates = f"<{self.width} x ptr>", f"<{self.width} x i1>"
        name = f"llvm.masked.scatter.v{self.width}{short(llvm)}.v{self.width}p0"
        self.code.unit.declarations[name] = f"declare void @{name}({vector}, {addresses}, i32 immarg, {predicates})"
        if mask is None or cpu.has("avx512f"):
            predicate = mask or "splat (i1 true)"
            self.code.run(f"call void @{name}({vector} {value}, {addresses} {pointers}, i32 {size}, {predicates} {predicate})")
            return
        # LLVM writes a branch for each lane, and for each scatter that it so writes it goes through the function once more

        def write(code: Code) -> str:
            code.run(f"call void @{name}({vector} %v, {addresses} %p, i32 {size}, {predicates} %m)")
            return ""

        piece = self.code.unit.piece(f"ptxvm.{name}", "void", f"{vector} %v, {addresses} %p, {predicates} %m", write)
        self.code.run(f"call void @{piece}({vector} {value}, {addresses} {pointers}, {predicates} {mask})")

    def scatter_out_of_line(self, llvm: str, value: str, pointers: str, mask: str | None = None) -> None:
        """Scatter integers by a function, a warp at a time."""
        name = small_elements.loop(self.code.unit, "scatter", llvm)
        for n in self.code.warps():
            part = (f"<{WARP} x {llvm}>", self._slice(llvm, value, n))
            self.code.perform(name, part, *self._of_warp(n, pointers, mask))

    def host_call(
        self, bound: Bound, work: HostCall, inputs: list[tuple[Type, Raw]], outputs: list[Type], quick: str | None = None,
        quick_arguments: str = "", *, whole: bool = True,
    ) -> list[Value]:  # fmt: skip
        """Call Python with the values of all lanes; returns its results.

        `quick` is a function of the module that is tried first, for `whole` warps or any lanes; it gets the address of the
        values, and then `quick_arguments`.
        """
        if quick is None:
            self.note(ON_HOST)
        return self._call_host(bound, work, inputs, outputs, quick, quick_arguments, whole=whole)

    def _call_host(
        self, bound: Bound, work: HostCall, inputs: list[tuple[Type, Raw]], outputs: list[Type], quick: str | None = None,
        quick_arguments: str = "", *, whole: bool = True,
    ) -> list[Value]:  # fmt: skip
        code = self.code
        code.one_warp()
        number = self.kernel.add_host_call(bound, work, [t for t, _ in inputs], outputs)
        room = self.buffer(f"[{max(1, len(inputs), len(outputs))} x <{self.width} x i128>]", 6)
        for n, (type, raw) in enumerate(inputs):
            llvm = self.alg.vector_type(type)
            vector = self.alg.vector(type, self.alg.tight(type, raw))
            pointer = code.offset(room, STEP * n)
            if type is pred:
                llvm, vector = f"<{self.width} x i8>", code.emit(f"zext {llvm} {vector} to <{self.width} x i8>")
            code.run(f"store {llvm} {vector}, ptr {pointer}, align 64")
        good, active = code.label(), self.active_text()
        with code.scope():
            if active != "-1":  # neither the host nor a function finds operands of no lane
                some = code.label()
                code.branch(code.emit(f"icmp eq i32 {active}, 0"), good, some)
                code.block(some)
            if quick is not None:
                self._try(quick, active if whole else "", f"ptr {room}{quick_arguments}", good)
            self.kernel.record_cta_id(code)
            answer = code.emit(
                f"call i32 {self.launch_field('host_call')}(i32 {number}, ptr {room}, i32 {active}, i32 %warp)", pure=False
            )
            code.branch(code.emit(f"icmp eq i32 {answer}, 0", pure=False), good, "fault", likely=True)
        code.block(good)
        self.dirty = True
        found = []
        for n, type in enumerate(outputs):
            llvm = self.alg.vector_type(type) if type is not pred else f"<{self.width} x i8>"
            name = code.emit(f"load {llvm}, ptr {code.offset(room, STEP * n)}, align 64", pure=False)
            if type is pred:
                name = code.emit(f"icmp ne {llvm} {name}, zeroinitializer")
            found.append(Value(self.alg, type, Varying(name)))
        return found

    def _try(self, quick: str, active: str, arguments: str, good: str) -> None:
        """Try a function of the module, where lanes are given only for a whole warp; go on to the host call where it fails."""
        code, whole, ask = self.code, self.code.label(), self.code.label()
        if active:
            code.branch(code.emit(f"icmp eq i32 {active}, -1"), whole, ask, likely=True)
            code.block(whole)
        done = code.emit(f"call i32 @{quick}({arguments})", pure=False)
        code.branch(code.emit(f"icmp ne i32 {done}, 0", pure=False), good, ask, likely=True)
        code.block(ask)

    def refuse(self, bound: Bound, wrong: Value, work: HostCall, inputs: list[tuple[Type, Raw]]) -> None:
        """Fault by a host call if a predicate holds in an active lane."""
        code = self.code
        code.one_warp()
        bits = code.emit(f"and i32 {self.bits_of(wrong.raw)}, {self.active_text()}")
        bad, good = code.label(), code.label()
        code.branch(code.emit(f"icmp eq i32 {bits}, 0"), good, bad, likely=True)
        with code.scope():
            code.block(bad)
            self._call_host(bound, work, inputs, [])
            code.jump(good)
        code.block(good)

    def trap(self, bits: str) -> None:
        """Report `trap` of some lanes to the host, and end the warp."""
        index = self.kernel.instruction_number(self.node.frame.code[self.node.end - 1])
        self.kernel.record_cta_id(self.code)
        warp = "%warp"
        if self.kernel.scalar:
            bits = self.code.emit(f"shl i32 1, {self.code.emit(f'and i32 %thread, {WARP - 1}')}")
            warp = self.code.emit(f"lshr i32 %thread, {WARP.bit_length() - 1}")
        self.code.run(f"call void {self.launch_field('trap')}(i32 {bits}, i32 {index}, i32 {warp})")
        self.code.jump("fault")

    # ── affine values that are extended ─────────────────────────────────────────────────

    def _extended(self, alg: LlvmAlgebra, source: Type, a: Affine) -> Affine | None:
        """Extend an affine s32 or u32 to 64 bits; a side exit to the shapeless version is taken where a lane wraps."""
        surely = affine_integers.in_range(source, a, self.width)
        if self.kernel.shapeless or (self.dirty and not surely):
            return None
        known = (source.is_signed, a)
        if known in self.widened:
            return self.widened[known]
        if not surely:
            self._leave_where_one_wraps(alg, source, a)

        def wide(u: Scalar, *, signed: bool) -> Scalar:
            if isinstance(u, int):
                return (wrapped(u, 32) if signed else u) & (1 << 64) - 1
            return self.code.emit(f"{'sext' if signed else 'zext'} i32 {u} to i64")

        terms = alg.collect(64, tuple((k, wide(u, signed=True), 1) for k, u in a.terms))
        made = Affine(wide(a.base, signed=source.is_signed), terms, bits=affine_integers.extended_bits(source, a))
        if not self.nested:
            self.widened[known] = made
        return made

    def _leave_where_one_wraps(self, alg: LlvmAlgebra, source: Type, a: Affine) -> None:
        code, tests = self.code, []
        for end in uniform_bounds.ends(alg, source, a):
            moved = alg.scalar("add", 64, end, 1 << 31) if source.is_signed else end
            tests.append(code.emit(f"icmp ult i64 {text('i64', moved)}, {1 << 32}"))
        good = code.label()
        code.branch(code.emit(f"and i1 {tests[0]}, {tests[1]}"), good, self.name("leave"), likely=True)
        code.block(good)
        self.leaves = True

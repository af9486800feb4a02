"""The context of a translation: one version of a kernel, for CTAs of one shape, and what is known of it so far."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, cached_property
from math import prod
from typing import TYPE_CHECKING

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type
from ptxvm.analysis.faint import faint
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.symbols import Variable
from ptxvm.engine.jit.abi import cta_slot
from ptxvm.engine.jit.abi.cta_barriers import CtaBarriers
from ptxvm.engine.jit.abi.host import HostCall
from ptxvm.engine.jit.abi.launch_record import OF_THREAD, POINTERS, TICKS, UNBOUNDED_LOCAL, offset
from ptxvm.engine.jit.abi.metadata import IN_ORDER, LAUNCHING, MOST_WALKS, SITE_SIZE, Site
from ptxvm.engine.jit.abi.specialisation import Specialisation
from ptxvm.engine.jit.cfg import call_stack, control_dependence, divergence_sources, nodes
from ptxvm.engine.jit.cfg.kernel_analysis import KernelAnalysis
from ptxvm.engine.jit.cfg.loop_strides import Stride
from ptxvm.engine.jit.cfg.row_walks import Walk
from ptxvm.engine.jit.cfg.thread_rows import ThreadRows
from ptxvm.engine.jit.cfg.unset_registers import UnsetRegisters
from ptxvm.engine.jit.ir.builder import Code, Unit
from ptxvm.engine.jit.node.access_sites import AccessSites
from ptxvm.engine.jit.node.divergent_regions import DivergentRegions
from ptxvm.engine.jit.node.instrumentation import Shadow
from ptxvm.engine.jit.node.node_code import NodeCode
from ptxvm.engine.jit.node.register_shapes import CARRY, Key, Registers
from ptxvm.engine.jit.node.spill_layout import SpillLayout
from ptxvm.engine.jit.values.shared_meanings import SharedMeanings
from ptxvm.engine.loops import Loop, loops
from ptxvm.isa.cta_barrier import reduction
from ptxvm.isa.mbarrier import BYTES as MBARRIER
from ptxvm.isa.special_registers import WARP
from ptxvm.machine import window
from ptxvm.machine.allocation import GRAIN, Allocation

if TYPE_CHECKING:
    from ptxvm.engine.jit.node.event_counters import CounterWords

SYMBOL, SYMBOL_ALIGNMENT = "%address.", GRAIN  # scalars that are addresses of symbols of the module, and their alignment
MOST_BITS = 64  # nodes at which lanes may wait, for which a word has a bit each
MOST_CACHED = 32  # accesses in loops whose bounds are cached: the processor has no registers for more
WINDOWED = {Space.PARAM, Space.SHARED, Space.LOCAL}  # spaces whose bounds are constant
FEW_BARRIERS = 16  # barriers up to which each has its own code to suspend and resume


class KernelContext:
    """A version of a kernel under translation: inputs, derived facts, and the state that its nodes share.

    A `general` version has a lane scheduler, which runs lanes that are at any node.  The shapeless version is general, and
    so is one with `partial_barriers` (barriers for some threads).  A kernel with spin loops is `fair`: its general version
    lets no spinning lane starve others, and its other versions leave for the general one when a spin loop lasts.  In
    instrumented code that follows CTAs one after the other, a spin loop that lasts is a suspicion instead.
    """

    TICKS = TICKS
    MOST_INSTRUCTIONS = 8 * TICKS  # that a thread of scalar code executes between two checks of the clock
    TIME_SLICE = 1 << 12  # iterations of loops after which a warp of a fair kernel yields ...
    SPIN = 1 << 6  # ... an iteration of a spin loop counts as so many
    SPINS = 1 << 9  # iterations of spin loops after which a warp leaves for the general version, or is suspected

    def __init__(
        self, analysis: KernelAnalysis, wanted: Specialisation, rows: ThreadRows, *, shapeless: bool = False,
        straight: bool = False, width: int = WARP, before: KernelContext | None = None, shadow: Shadow | None = None,
        one_warp: KernelContext | None = None,
    ) -> None:  # fmt: skip
        """`before` is the version that warps leave for this one; `one_warp` is the straight version of one warp at a time."""
        image, function = analysis.image, analysis.function
        self.analysis, self.image, self.function = analysis, image, function
        self.cluster, self.fast, self.trusted = wanted.cluster, wanted.fast, wanted.trusted
        self.metered, self.recorded, self.deferred = wanted.metered, wanted.recorded, wanted.deferred
        self.before, self.one_warp, self.main = before, one_warp, before is None
        self.shapeless, self.straight, self.width = shapeless, straight, width
        self.shared_size = image.shared_size(function, wanted.shared)
        self.constants = {"dynamic_smem_size": wanted.shared, "total_smem_size": self.shared_size}
        self.bank_size = image.parameters(function).size
        self.rows, self.threads, self.warps = rows, rows.count, rows.warps  # lanes without a thread count as threads
        self.shadow, self.counters = shadow, counter_words(before) if wanted.profiled else None
        self.outputs: dict[Bound, Variable] = {}  # stores that may be non-temporal, and their parameters
        self.unit = Unit(width)
        self.device_functions, self.spinning = analysis.device_functions, analysis.spinning
        self.by_fences = wanted.by_fences
        by_warps = self.deferred or self.polls or wanted.by_warps
        self.partial_barriers = by_warps or analysis.partial_barriers(self.cluster_size)
        self.general = self.partial_barriers or shapeless
        self.graph = analysis.graph(general=self.general, bounded=shadow is not None and "memory" in shadow.checks)
        self.nodes = self.graph.nodes
        self.waiting: list[frozenset[int]] = [frozenset()] * len(self.nodes)  # nodes at which other lanes may wait meanwhile
        self.pools = sorted({n.code[0].i.mnemonic for n in self.nodes if n.waits and not n.barrier_wait})
        unbounded_size = image.module_local.size + UNBOUNDED_LOCAL
        self.stack_size = unbounded_size if analysis.unbounded else call_stack.bounded_frames(self.graph)
        self.saved_room = call_stack.unbounded_saved(self.graph) if analysis.unbounded else call_stack.bounded_saved(self.graph)
        self.local_stride = window.stride(Space.LOCAL, self.stack_size)
        self.registers = Registers(width, not shapeless, before is not None, steady=self._steady())
        self.layout = SpillLayout(self.graph, self.registers, self.pools, width)
        self.divergent: set[int] = set()
        self.masked: set[int] = set()
        self.written: dict[tuple[int, bool], NodeCode] = {}  # by the number of a node, and whether it is for whole warps
        self.buffers: dict[str, str] = {}
        self.endings: set[int] = set()  # nodes of the straight version at which the masked one takes over
        self.spin_exits: set[int] = set()  # nodes that whole warps leave to the general version
        self.parting: dict[int, tuple[int, int]] = {}  # nodes of the straight version where lanes diverge, and both targets
        self.cached_bounds: set[tuple[int, int]] = set()  # access sites in loops, and which of their fields
        self.prefetches = 0
        self.pauses: set[int] = set()  # heads of grid-stride loops, at which other CTAs may catch up
        self.uses_local = self.leaves_all = self.writes_along_rows = False
        self.addresses: set[int] = set()
        self.barrier_numbers: dict[int, int] = {}
        self.instructions = [b for frame in self.graph.frames for b in frame.code]
        self._index = {id(b): n for n, b in enumerate(self.instructions)}
        self.host_calls: list[tuple[Bound, HostCall, list[Type], list[Type]]] = before.host_calls if before else []
        self.sites: AccessSites = before.sites if before else AccessSites(function.name, len(self.instructions))

    def _steady(self) -> int:
        """The registers that keep one shape in whole warps: not written on one side of a branch by loaded data.

        Other branches mostly compare the number of a thread with a size: nearly all warps agree on them.
        """
        if self.general or self.straight:
            return 0
        branching = {node.number for node in self.nodes if len(set(node.successors)) > 1 and self._by_data(node)}
        return ~control_dependence.written_apart(self.nodes, branching)

    def _by_data(self, node: nodes.Node) -> bool:
        """Does loaded data decide the branch at its end?"""
        guard = node.code[-1].guard() if node.code else None
        return guard is None or bool(self.memory_dependent(node.frame) >> guard[0].index & 1)

    @cached_property
    def divergent_regions(self) -> DivergentRegions:
        """The regions in which lanes of the straight version diverge."""
        possible = not self.follows_threads and not self.metered
        narrow = self.one_warp.divergent_regions if self.one_warp is not None else None
        return DivergentRegions(self.nodes, self.registers, self.written, possible, narrow, self.counters is not None)

    @cached_property
    def streamed(self) -> list[Variable]:
        """The parameters with a bit in `cached_outputs`, in all versions."""
        return self.before.streamed if self.before is not None else []

    @cached_property
    def meanings(self) -> SharedMeanings:
        """The pieces of code that long instructions share."""
        return SharedMeanings()

    @cached_property
    def faint(self) -> Callable[[Function], frozenset[Bound]]:
        """The instructions of a function whose results no effect depends on."""
        return cache(faint)

    @cached_property
    def number(self) -> int:
        """The number of the version."""
        return self.before.number + 1 if self.before is not None else 0

    # ── services for nodes ──────────────────────────────────────────────────────────────

    def instruction_number(self, bound: Bound) -> int:
        """The number of an instruction among those of all frames."""
        return self._index[id(bound)]

    @property
    def frees(self) -> bool:
        """Can memory be freed while it runs?"""
        return any(name == "free" or name.startswith(LAUNCHING) for name in self.device_functions)

    def add_host_call(self, bound: Bound, work: HostCall, inputs: list[Type], outputs: list[Type]) -> int:
        """Enter a host call; returns its number."""
        self.host_calls.append((bound, work, inputs, outputs))
        return len(self.host_calls) - 1

    @property
    def pending(self) -> set[int]:
        """The nodes at which lanes may wait while others run."""
        return self.masked | self.divergent_regions.joins | {node.number for node in self.nodes if node.waits} | {0}

    @property
    def scans_pending(self) -> bool:
        """Does the lane scheduler search an array of the lane masks?  A few masks are variables instead, with a bit each."""
        return self.general and len(self.pending) > MOST_BITS

    @cached_property
    def fair(self) -> bool:
        """Does it have spin loops, and a general version in which no spinning lane starves others?"""
        return bool(self.spinning) and (not self.follows_threads or self.polls or self.runs_beside)

    @cached_property
    def runs_beside(self) -> bool:
        """Do checks follow CTAs that wait for each other?  Their order then is in what threads tell each other."""
        if not self.follows_threads or not self.spinning or self.clocked or self.cluster_size > 1 or self.logs_copies:
            return False
        return self.shadow is not None and (self.by_fences or not self.shadow.race)

    @cached_property
    def caches_bounds(self) -> bool:
        """Are the bounds of accesses in loops cached in variables?  Not if there are many, or memory can be freed."""
        looping = (b for node in self.nodes if self.graph.repeats(node) for b in node.code)
        if self.scalar:
            return False
        count = sum("mem" in b.i.of.effects and WINDOWED.isdisjoint(b.summary.spaces) for b in looping)
        return count <= MOST_CACHED and not self.frees

    @property
    def yields(self) -> bool:
        """Do its warps yield to each other at the end of a time slice?"""
        return self.fair and self.general

    @property
    def slice_counter(self) -> str:
        """What a warp of a fair kernel counts down to the end of its time slice: the iterations of loops, or of spin loops."""
        return "%ticks" if self.general else "%spins"

    @property
    def counts_spins(self) -> bool:
        """Does a warp that stays in a spin loop leave it: for the general version, or as a suspicion?"""
        return bool(self.spinning) and not self.yields

    @property
    def time_slice(self) -> int:
        """How many iterations of loops a warp runs before it yields, or checks the clock."""
        return self.TIME_SLICE if self.yields else self.MOST_INSTRUCTIONS if self.scalar else self.TICKS

    @cached_property
    def suspends_whole_warps(self) -> bool:
        """Do whole warps of a general version suspend at barriers by code of their own, which spills live registers only?"""
        return self.partial_barriers and sum(node.barrier_wait for node in self.nodes) <= FEW_BARRIERS

    @property
    def scalar(self) -> bool:
        """Does its code run one thread at a time?"""
        return self.width == 1

    @property
    def one_group(self) -> bool:
        """Do all threads of the CTA run as one group?  Its barriers then open at once."""
        return self.straight and self.width == self.threads and not self.tagged and not self.clocked

    @property
    def runs_partial_warps(self) -> bool:
        """Does it run code for some lanes of a warp only?"""
        return not self.straight or bool(self.divergent_regions.regions) or any(node.region is not None for node in self.nodes)

    @property
    def sequential(self) -> bool:
        """Is it the first version of a kernel whose CTAs run one after the other?"""
        return self.main and not self.partial_barriers

    @property
    def cluster_size(self) -> int:
        """CTAs of a cluster."""
        return prod(self.cluster or (1,))

    @cached_property
    def meets_cluster(self) -> bool:
        """Do threads wait for those of their cluster, of one or several CTAs?"""
        return self.cluster_size > 1 or any("cluster" in bound.i.of.effects for bound in self.instructions)

    @property
    def warps_together(self) -> int:
        """The warps of a CTA, or of its cluster: those that checks tell apart."""
        return self.warps * self.cluster_size

    @property
    def warp_among(self) -> str:
        """The number of a warp among them."""
        return "%warp" if self.cluster_size == 1 else "%cluster.warp"

    @property
    def shared_together(self) -> int:
        """Bytes of the shared memory of a CTA, or from that of the first CTA of its cluster to the end of the last one's."""
        return (self.cluster_size - 1) * self.shared_stride + self.shared_size

    @property
    def shared_stride(self) -> int:
        """Bytes from the shared memory of a resident CTA to that of the next."""
        return window.stride(Space.SHARED, self.shared_size)

    @property
    def record_size(self) -> int:
        """Bytes of the record of a warp."""
        return self.layout.record_size

    @property
    def cta_size(self) -> int:
        """Bytes of the records of a resident CTA."""
        if self.partial_barriers:
            return self.warps * self.record_size + CtaBarriers(self.warps).size
        return self.warps * self.record_size + (cta_slot.size(self.warps) if self.fair or self.pauses else 0)

    @property
    def states_offset(self) -> int:
        """The offset of the states of a resident CTA's warps from its number; 0 where CTAs run one after the other."""
        if self.partial_barriers:
            return 4 * CtaBarriers(self.warps).of_warp("state")
        return 4 * cta_slot.STATES if self.fair or self.pauses else 0

    @cached_property
    def grid_strides(self) -> frozenset[Bound]:
        """The branches at the ends of loops that its CTAs may run in step: in the version for whole warps."""
        ordered = not IN_ORDER.isdisjoint(self.device_functions) or self.frees or self.graph.shared
        if not self.straight or not self.main or self.fair or self.metered or self.follows_threads or ordered:
            return frozenset()
        return self.analysis.grid_strides

    @cached_property
    def local_grain(self) -> int:
        """The grain of interleaved local memory in bytes; 0 where each lane has its own in one piece."""
        return 0 if self.threads % WARP or self.scalar else self.analysis.local_grain

    @property
    def unbounded(self) -> bool:
        """Is the depth of its stack unknown?"""
        return self.analysis.unbounded

    @property
    def follows_threads(self) -> bool:
        """Does a check follow what threads do one after the other?"""
        return self.shadow is not None and not self.shadow.bounds_only

    @property
    def tagged(self) -> bool:
        """Are accesses followed by tags, so that those of an instruction must all be in one allocation?"""
        return self.shadow is not None and self.shadow.tags

    @property
    def reaches_local_anywhere(self) -> bool:
        """May a generic address be one of local memory, which has no tags?"""
        return self.tagged and not self.local_grain and self.analysis.makes_local_generic

    @property
    def polls(self) -> bool:
        """Does instrumented code test phases of mbarriers?  Then warps of a CTA yield to each other."""
        return self.shadow is not None and self.analysis.polls

    @property
    def watches_mbarriers(self) -> bool:
        """Does a check look for misuse of mbarriers, and can instrumented code do so?"""
        return self.polls and self.clocked and self.shadow is not None and "sync" in self.shadow.checks

    @property
    def judges_phases(self) -> bool:
        """Do the checks ask if a thread that waits for a phase may come so late that the next one is over as well?"""
        return self.watches_mbarriers and self.tagged and self.shadow is not None and self.shadow.race

    @property
    def mbarriers(self) -> int:
        """The most mbarriers of a CTA."""
        return self.shared_size // MBARRIER + 1

    @cached_property
    def unset_registers(self) -> UnsetRegisters | None:
        """The registers that may be read before they are written; None where nothing asks, or there are none."""
        if self.shadow is None or not self.shadow.init:
            return None
        return self.analysis.unset_registers if self.analysis.unset_registers.number else None

    @cached_property
    def logs_copies(self) -> bool:
        """Is there a log of its asynchronous copies, whose cells are pending until a thread waits for them?"""
        asks = self.shadow is not None and (self.shadow.race or self.shadow.init)
        return asks and any(bound.summary.own_groups for bound in self.instructions)

    @property
    def clocked(self) -> bool:
        """Does each of its warps have a clock of its own, since not all barriers are for the whole CTA?"""
        shadow = self.shadow
        needs = shadow is not None and ((self.polls and shadow.tags) or not shadow.checks.isdisjoint({"race", "sync"}))
        return needs and self.partial_barriers

    @property
    def follows_fences(self) -> bool:
        """Does instrumented code note what threads tell each other by fences and strong accesses?"""
        return self.by_fences and self.shadow is not None and self.shadow.race and not self.clocked

    @cached_property
    def reductions(self) -> tuple[str, ...]:
        """The reductions of its barriers; the threads that arrive at one, whether they wait or not, agree (PTX 9.7.13.1)."""
        return tuple(sorted({reduction(bound.i) for bound in self.instructions if "cta" in bound.i.of.effects}))

    @property
    def marks_local(self) -> bool:
        """Is every byte of local memory marked when it is written, and a read of one without a mark suspected?"""
        kept = self.local_grain > 0 or not self.analysis.grows_stack
        return self.shadow is not None and self.shadow.init and kept

    def launch_field_pointer(self, code: Code, name: str) -> str:
        """The address of a field of the launch record."""
        return code.emit(f"getelementptr i8, ptr %ctx, i64 {offset(name)}")

    def launch_field(self, code: Code, name: str, *, pure: bool = True) -> str:
        """The value of a field of the launch record."""
        llvm = "ptr" if name in POINTERS else "i32"
        where = code.emit(f"getelementptr i8, ptr %ctx, i64 {offset(name)}", pure=pure)
        return code.emit(f"load {llvm}, ptr {where}, align 8", pure=pure)

    def record_cta_id(self, code: Code) -> None:
        """Store the number of the CTA in the launch record, before a host call."""
        code.run("store i32 %ctaid.x, ptr %ctaid.x.pointer, align 8")

    def record_position(self, code: Code, number: str) -> None:
        """Store an instruction's number plus 1, and the warp or thread, in the launch record, before a check of the clock."""
        at = code.emit(f"getelementptr i8, ptr %ctx, i64 {offset('position')}")
        code.run(f"store i32 {int(number) | OF_THREAD if self.scalar else number}, ptr {at}, align 8")
        code.run(f"store i32 {'%thread' if self.scalar else '%warp'}, ptr {code.offset(at, 4)}, align 4")

    def address(self, number: int) -> str:
        """The address of a symbol of the module, which the warp function loads from a table when it begins."""
        self.addresses.add(number)
        return f"{SYMBOL}{number}"

    def variable_at(self, scalar: str) -> Allocation | None:
        """The memory of the variable of the module whose address a scalar is; None if it is none."""
        return self._variables.get(scalar)

    @cached_property
    def _variables(self) -> dict[str, Allocation]:
        """The memory of the variables of the module, by the scalars of their addresses."""
        kept = self.image.allocations
        return {f"{SYMBOL}{self.image.address_number(variable)[0]}": allocation for variable, allocation in kept.items()}

    @property
    def loop_strides(self) -> dict[Bound, Stride]:
        """How far loops move the addresses of accesses."""
        return self.analysis.loop_strides

    @cached_property
    def row_walks(self) -> dict[Bound, Walk]:
        """The loads that walk along rows: none where another lane may run in between, or each access is looked at."""
        seen = self.trusted or self.recorded or self.shadow is not None
        far = self.cluster_size > 1 or self.image.memory.address_bits == 32
        return {} if self.scalar or self.general or seen or far else self.analysis.row_walks

    @cached_property
    def row_windows(self) -> dict[tuple[nodes.Frame, Walk, int], int]:
        """The numbers of the walks along rows that have windows."""
        return {}

    def row_window(self, frame: nodes.Frame, bound: Bound, word: int) -> int | None:
        """The number of the walk, with rows of words of so many bytes, that a load is part of; None where it is of none."""
        walk = self.row_walks.get(bound)
        if walk is None:
            return None
        key = frame, walk, word
        if key not in self.row_windows and len(self.row_windows) == MOST_WALKS:
            return None
        return self.row_windows.setdefault(key, len(self.row_windows))

    def walk_record(self, number: int) -> int:
        """Where, from the records of access sites, a host thread keeps the record of a walk."""
        return SITE_SIZE * (self.sites.most + number)

    def buffer(self, llvm: str, number: int) -> str:
        """Scratch memory of the warp function."""
        name = f"%buffer.{number}." + re.sub(r"\W+", "_", llvm)
        self.buffers[name] = llvm
        return name

    def site(self, bound: Bound, space: Space, size: int, span: int, *, writing: bool) -> int:
        """The number of an access site."""
        return self.sites.number(Site(self.instruction_number(bound), space, size, span, writing))

    def in_spin_loop(self, node: nodes.Node) -> bool:
        """Is a node in a spin loop, or in a function that is inlined in one?"""
        frame, at = node.frame, node.start
        while not any(first <= at <= last for first, last in self._spin_loops[frame.function]):
            if frame.parent is None:
                return False
            frame, at = frame.parent, frame.call_end - 1
        return True

    @cached_property
    def _spin_loops(self) -> dict[Function, list[Loop]]:
        """The spin loops of each function."""
        return {
            function: [each for each in loops(function.instructions) if function.instructions[each[1]] in self.spinning]
            for function in {frame.function for frame in self.graph.frames}
        }

    def is_mark(self, key: Key) -> bool:
        """Is a register that of the mark of a pointer, which all instructions may write?"""
        return key[0] in self._marks

    @cached_property
    def _marks(self) -> frozenset[int]:
        return frozenset(self.graph.marks.values())

    def needed_by_others(self, node: nodes.Node, key: Key) -> bool:
        """Do lanes that wait at other nodes need their value of a register?"""
        if key == CARRY:
            return bool(self.waiting[node.number])
        return any(self.nodes[n].live_in >> key[0] & 1 for n in self.waiting[node.number])

    def diverges(self, node: nodes.Node) -> None:
        """Note that lanes may diverge at the end of a node."""
        self.divergent.add(node.number)

    def memory_dependent(self, frame: nodes.Frame) -> int:
        """The registers of a function that depend on loaded values, as a mask."""
        return self.analysis.memory_dependent(frame)

    def varying_memory_dependent(self, frame: nodes.Frame) -> int:
        """Those that depend on loads which, as far as is known, give the lanes of a warp different values."""
        return divergence_sources.memory_dependent(frame.code, self.registers.varying >> frame.registers)

    def place_dependent(self, frame: nodes.Frame) -> int:
        """The registers of a function that depend on the place of a thread in its CTA, but not on the CTA, as a mask."""
        return self.analysis.place_dependent(frame)

    def pays_off(self) -> bool:
        """Is the straight version worthwhile: does it reach the end, or run a loop?"""
        return not self.endings or any(self.graph.repeats(self.nodes[n]) for n, _ in self.written)


def counter_words(before: KernelContext | None) -> CounterWords:
    """The words in which a profiled version counts: those of the version before it, of which the others may take the rest."""
    from ptxvm.engine.jit.abi.counter_rows import MOST_WORDS  # noqa: PLC0415 - little code is profiled
    from ptxvm.engine.jit.node.event_counters import CounterWords  # noqa: PLC0415

    if before is None or before.counters is None:
        return CounterWords()
    before.counters.most = MOST_WORDS
    return before.counters

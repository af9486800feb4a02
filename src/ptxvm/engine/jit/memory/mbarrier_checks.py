"""Checks of mbarriers in instrumented code: what `checkers.mbarrier_misuse` may report is suspicious (PTX 9.7.13.15).

The table of clocks has three further parts (`runtime/mbarrier_checks.ll`):

    hulls     the first byte of the mbarriers of each CTA of the cluster, and how many bytes they span; 0 where there is none
    flags     a byte for every 8 bytes of shared memory: is there an mbarrier, and has a thread found its last phase over?
    records   for each of them the states that arrivals have returned in the last even phase, and in the last odd one

Arrivals that follow each other mostly return states that differ by one pending arrival.  So a phase has runs of such states, of
which each is known by its first and its last one; a phase of more runs than there is room for is suspicious.
"""

from __future__ import annotations

from ptxvm.algebra.asynchronous import MbarrierStep
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import u32, u64
from ptxvm.engine.jit.abi.launch_record import offset
from ptxvm.engine.jit.ir.lane_values import Raw
from ptxvm.engine.jit.ir.runtime import runtime
from ptxvm.engine.jit.memory.addressing import Addressing
from ptxvm.engine.jit.node.context import KernelContext
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.isa.effects import Access
from ptxvm.isa.mbarrier import BYTES, COUNT, PENDING, TRANSACTION_BITS, TRANSACTIONS
from ptxvm.isa.special_registers import WARP

LANES, STATES = f"<{WARP} x i32>", f"<{WARP} x i64>"
WORD = 4  # bytes of an entry of the table
HELD, UNSEEN = 1, 3  # flags
OF_PHASE = 32  # words, of which the first is the number of runs; from the third one on each run has its first and last state
RUNS = (OF_PHASE - 2) // 4
NOWHERE = 1 << 31  # where a hull begins that is empty
COUNTED = frozenset({MbarrierStep.ARRIVE, MbarrierStep.DROP})


def words(kernel: KernelContext) -> int:
    """The size of these parts of the table; 0 where nothing asks for them."""
    if not kernel.watches_mbarriers:
        return 0
    return (2 + _flag_words(kernel) + 2 * OF_PHASE * kernel.mbarriers) * kernel.cluster_size


def _flag_words(kernel: KernelContext) -> int:
    """The words with the flags of the mbarriers of a CTA."""
    return -(-kernel.mbarriers // WORD)


def functions(kernel: KernelContext, begin: int) -> str:
    """The runtime functions for an instrumented kernel; these parts of the table begin at a word."""
    if not kernel.watches_mbarriers:
        return ""
    flags = begin + 2 * kernel.cluster_size
    kernel.unit.declare("llvm.memset.p0.i64", "void", "ptr", "i8", "i64", "i1 immarg")
    return runtime(
        "mbarrier_checks",
        hulls=begin,
        flags=flags,
        records=flags + _flag_words(kernel) * kernel.cluster_size,
        flag_words=_flag_words(kernel),
        flag_bytes=WORD * _flag_words(kernel),
        mbarriers=kernel.mbarriers,
        record=2 * OF_PHASE,
        of_phase=OF_PHASE,
        runs=RUNS,
        held=HELD,
        unseen=UNSEEN,
        warps=kernel.warps,
        nowhere=NOWHERE,
        bytes=BYTES,
        pending=PENDING,
        one=1 << PENDING,
        below_one=(1 << PENDING) - 1,
        above_transactions=64 - TRANSACTIONS - TRANSACTION_BITS.bit_length(),
        beside_transactions=64 - TRANSACTION_BITS.bit_length(),
        most=TRANSACTION_BITS // 2,
        count=COUNT,
    )


def cta_begins(kernel: KernelContext) -> str:
    """A CTA begins in a slot, which is its rank: it has no mbarriers."""
    if not kernel.watches_mbarriers:
        return ""
    return (
        f"  %clocks.pointer = getelementptr i8, ptr %ctx, i64 {offset('clocks')}\n"
        "  %clocks = load ptr, ptr %clocks.pointer, align 8\n"
        "  %rank = trunc i64 %slot to i32\n"
        "  call void @ptxvm.mbarriers.begin(ptr %clocks, i32 %rank)\n"
    )


def made(at: NodeBuilder, access: Access, offsets: str, states: str) -> None:
    """The active lanes initialise mbarriers with these states, or invalidate them."""
    if at.kernel.watches_mbarriers:
        initialises = str(access.mbarrier is MbarrierStep.INIT).lower()
        _suspect(at, "made", f"{LANES} {offsets}, {STATES} {states}, i1 {initialises}")


def updated(at: NodeBuilder, access: Access, offsets: str, states: tuple[str, str], *, completes: bool) -> None:
    """The active lanes have updated mbarriers, one after the other, whose states were and are now these.

    Without `completes` they must not end a phase.
    """
    if at.kernel.watches_mbarriers:
        before, after = states
        says = (access.mbarrier in COUNTED, access.asynchronous, completes)
        told = ", ".join(f"i1 {str(each).lower()}" for each in says)
        _suspect(at, "updated", f"{LANES} {offsets}, {STATES} {before}, {STATES} {after}, {told}")


def tested(at: NodeBuilder, offsets: str, over: str, state: str | None) -> None:
    """The active lanes test a phase, which is over for some of them, perhaps that of the state that an arrival returned."""
    if at.kernel.watches_mbarriers:
        given = f"{STATES} {state or 'zeroinitializer'}, i1 {str(state is not None).lower()}"
        _suspect(at, "tested", f"{LANES} {offsets}, i32 {over}, {given}")


def spared(at: NodeBuilder, access: Access, space: Space, raw: Raw, addressing: Addressing, size: int) -> None:
    """Suspect an ordinary access of so many bytes if it touches an mbarrier."""
    kernel, code, alg = at.kernel, at.code, at.alg
    if access.mbarrier is not None or not kernel.watches_mbarriers or space not in (Space.SHARED, Space.GENERIC):
        return
    if kernel.cluster_size > 1 and space is Space.GENERIC and kernel.shadow is not None:
        kernel.shadow.doubts.add("an address may be that of an mbarrier of another CTA")
        return
    code.one_warp()
    if space is Space.SHARED:
        type, low = u32, alg.cast("resize", u64, u32, raw, "rn")
    else:
        type, low = u64, alg.integer("sub", u64, raw, addressing.base(Space.SHARED))
    vector, scalar = f"<{WARP} x i{type.bits}>", f"i{type.bits}"
    table = kernel.launch_field(code, "clocks")
    hull = code.emit(f"call i64 @ptxvm.mbarriers.hull(ptr {table}, i32 {kernel.warp_among}, i32 {size})", pure=False)
    first, span = code.emit(f"and i64 {hull}, {(1 << 32) - 1}"), code.emit(f"lshr i64 {hull}, 32")
    if type is u32:
        first, span = (code.emit(f"trunc i64 {each} to i32") for each in (first, span))
    offsets = alg.vector(type, low)
    distances = code.emit(f"sub {vector} {offsets}, {code.splat(scalar, first)}")
    near = code.emit(f"icmp ult {vector} {distances}, {code.splat(scalar, span)}")
    lanes = code.emit(f"and i32 {code.mask_bits(near)}, {at.active_text()}")
    close, good = code.label(), code.label()
    code.branch(code.emit(f"icmp eq i32 {lanes}, 0"), good, close, likely=True)
    with code.scope():
        code.block(close)
        narrow = offsets if type is u32 else code.emit(f"trunc {vector} {offsets} to {LANES}")
        arguments = f"ptr {table}, i32 {kernel.warp_among}, i32 {lanes}, {LANES} {narrow}, i32 {size}"
        wrong = code.emit(f"call i1 @ptxvm.mbarriers.touched({arguments})", pure=False)
        code.branch(wrong, "suspect", good, likely=False)
    code.block(good)


def caller(at: NodeBuilder) -> str:
    """The first arguments of the functions that keep the table: the table, the warp and its active lanes."""
    at.code.one_warp()
    return f"ptr {at.kernel.launch_field(at.code, 'clocks')}, i32 {at.kernel.warp_among}, i32 {at.active_text()}"


def _suspect(at: NodeBuilder, name: str, more: str) -> None:
    """Ask a runtime function about the active lanes, and suspect them if it says so."""
    at.suspect_where(at.code.emit(f"call i1 @ptxvm.mbarriers.{name}({caller(at)}, {more})", pure=False))

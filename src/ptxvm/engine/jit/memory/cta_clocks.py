"""Vector clocks of warps, for the checks of kernels with barriers for some threads of a CTA or for a cluster (PTX 9.7.13).

A warp has a clock, which is the epoch of the tags that it leaves, and a row: up to which clock the accesses of each warp are
ordered before its own.  A barrier has such a row as well.  Warps that arrive add what they know to it, and warps that wait
learn it when it opens.  All of it is in a table of words of 32 bits, one for each launch, since its CTAs, or clusters, run one
after the other.  The warps of a cluster are numbered CTA by CTA.

    0       the address of the field `suspicion` of the launch record
    2       how often all warps have run since one of them arrived or waited successfully
    3       has a CTA of the cluster ended?
    32      the clock of each warp
    64      the row of each warp
    1088    the clock of the last access of each warp in the shared memory of another CTA
    1120    must each warp wait at the barrier of the cluster before it arrives there again?
    1152    the row of the barrier of the cluster
    1184    the row of that barrier when it opened last
    1216    the rows of the barriers of each CTA
    ...     the rows of each of them when it opened last
    ...     the rows of each mbarrier, of 8 bytes of shared memory: of this phase, of the last one, and, where phases may be
            missed, the clock of each warp when it first found the last one over
    ...     what the check `sync` knows of mbarriers (`memory.mbarrier_checks`)

The copies of a warp are accesses of its *agent*, which has the clock of the warp when an mbarrier is to be told of them (PTX
9.7.9.25.4), and a number behind those of the warps: only who knows what this mbarrier passed on comes after these accesses.

An mbarrier passes on what whole warps know that arrive (PTX 9.7.13.15.13), and of some lanes of a warp what all its lanes
know; a warp learns it if all its lanes find the phase over.  `bar.warp.sync` of a whole warp lets its lanes know each other.
"""

from __future__ import annotations

from ptxvm.algebra.asynchronous import MbarrierStep
from ptxvm.algebra.memory_order import Order
from ptxvm.algebra.types import u64
from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound
from ptxvm.engine.jit.abi.cta_barriers import BARRIERS, CtaBarriers
from ptxvm.engine.jit.abi.launch_record import offset
from ptxvm.engine.jit.ir.lane_values import Raw
from ptxvm.engine.jit.ir.runtime import runtime
from ptxvm.engine.jit.memory import mbarrier_checks
from ptxvm.engine.jit.memory.cluster_addresses import ClusterAddresses
from ptxvm.engine.jit.memory.tags import EPOCH, LAST
from ptxvm.engine.jit.node.context import KernelContext
from ptxvm.engine.jit.node.instrumentation import GRAIN
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.isa.effects import Access
from ptxvm.isa.special_registers import WARP
from ptxvm.isa.summary import orders_lanes

LANES = f"<{WARP} x i32>"
ROW = 32  # words: the most warps of a CTA
NOW, KNOWN = ROW, 2 * ROW
CLOCKS = slice(NOW, KNOWN)
REMOTE = KNOWN + ROW * ROW
MUST_WAIT, OF_CLUSTER, OF_CLUSTER_PHASE, OF_BARRIERS = (REMOTE + n * ROW for n in range(1, 5))
MOST_STALLED = 1 << 15  # passes over warps that wait for each other; then they are suspected to wait for another CTA
MOST_GROUPS = 10  # for which a tag has a bit
LOOK = "  call void @ptxvm.clocks.look(ptr %clocks, i32 %warp, i32 %found, <32 x i32> %offsets)"
JUDGE = """\
  %looks = getelementptr i8, ptr %row, i64 256
  %looked = load <32 x i32>, ptr %looks, align 64
  store <32 x i32> zeroinitializer, ptr %looks, align 64
  %unknown = icmp ugt <32 x i32> %looked, %more
  %unknown.bits = bitcast <32 x i1> %unknown to i32
  %late = icmp ne i32 %unknown.bits, 0"""


def words(kernel: KernelContext) -> int:
    """The size of the table."""
    return _of_checks(kernel) + mbarrier_checks.words(kernel)


def _of_checks(kernel: KernelContext) -> int:
    """Where the table of the checks of mbarriers begins."""
    return _of_mbarriers(kernel) + (_mbarrier_words(kernel) * kernel.mbarriers * kernel.cluster_size if kernel.polls else 0)


def _of_phases(kernel: KernelContext) -> int:
    return OF_BARRIERS + BARRIERS * ROW * kernel.cluster_size


def _of_mbarriers(kernel: KernelContext) -> int:
    return _of_phases(kernel) + BARRIERS * ROW * kernel.cluster_size


def _mbarrier_words(kernel: KernelContext) -> int:
    """The words of the rows of an mbarrier."""
    return (3 if kernel.judges_phases else 2) * ROW


def row(at: NodeBuilder) -> str:
    """The address of the row of the warp."""
    words = at.code.emit(f"add i32 {at.code.emit(f'mul i32 {at.kernel.warp_among}, {ROW}')}, {KNOWN}")
    return at.code.emit(f"getelementptr i32, ptr {at.kernel.launch_field(at.code, 'clocks')}, i32 {words}")


def now(at: NodeBuilder) -> str:
    """The clock of the warp; an arrival in the same node may change it."""
    clocks, word = at.kernel.launch_field(at.code, "clocks"), at.code.emit(f"add i32 {at.kernel.warp_among}, {NOW}")
    pointer = at.code.emit(f"getelementptr i32, ptr {clocks}, i32 {word}")
    return at.code.emit(f"load i32, ptr {pointer}, align 4", pure=False)


def everyone(at: NodeBuilder) -> str:
    """The address of a row with the clock of each warp up to which all warps know it."""
    kernel, code = at.kernel, at.code
    kernel.unit.declare("llvm.umin.v32i32", LANES, LANES, LANES)
    name = kernel.unit.helper("ptxvm.clocks.everyone", runtime("clocks_everyone", known=KNOWN, warps=kernel.warps_together))
    least = at.buffer(LANES, 7)
    code.run(f"call void @{name}(ptr {kernel.launch_field(code, 'clocks')}, ptr {least})")
    return least


def has_agents(kernel: KernelContext) -> bool:
    """Is there a clock for the copies of each warp, behind those of the warps?"""
    return 2 * kernel.warps_together <= ROW


def group_bits(warps: int) -> int:
    """The logarithm of the number of warps that share a bit of a tag."""
    return next(bits for bits in range(6) if -(-warps >> bits) <= MOST_GROUPS)


def group_parts(warps: int, count: int) -> dict[str, str | int]:
    """What the runtime functions about tags need to know of the warps, for so many cells."""
    bits, lines, total = group_bits(warps), [], "zeroinitializer"
    for group in range(-(-warps >> bits)):
        least = ""
        for warp in range(group << bits, min((group + 1) << bits, warps)):
            lines.append(f"  %g{group}.w{warp} = extractelement <32 x i32> %all, i64 {warp}")
            if least:
                lines.append(f"  %g{group}.m{warp} = call i32 @llvm.umin.i32(i32 {least}, i32 %g{group}.w{warp})")
            least = f"%g{group}.m{warp}" if least else f"%g{group}.w{warp}"
        own, vector = f"%g{group}", f"<{count} x i32>"
        lines += [
            f"  {own}.one = insertelement {vector} poison, i32 {least}, i64 0",
            f"  {own}.all = shufflevector {vector} {own}.one, {vector} poison, {vector} zeroinitializer",
            f"  {own}.later = icmp ugt {vector} %epochs, {own}.all",
            f"  {own}.bits = and {vector} %tags, splat (i32 {1 << group})",
            f"  {own}.there = icmp ne {vector} {own}.bits, zeroinitializer",
            f"  {own}.wrong = and <{count} x i1> {own}.later, {own}.there",
            f"  {own}.total = or <{count} x i1> {total}, {own}.wrong",
        ]
        total = f"{own}.total"
    absent = ", ".join(f"i32 {0 if warp < warps else -1}" for warp in range(ROW))
    return {"log": 5 + bits, "groups": "\n".join(lines), "some": total, "absent": f"<{absent}>"}


def functions(kernel: KernelContext) -> str:
    """The runtime functions that keep the clocks of an instrumented kernel (`runtime/cta_clocks.ll`)."""
    if not kernel.clocked or kernel.shadow is None:
        return ""
    unit, rest = kernel.unit, kernel.threads % WARP
    for which in ("umax", "umin"):
        unit.declare(f"llvm.vector.reduce.{which}.v32i32", "i32", "<32 x i32>")
        unit.declare(f"llvm.{which}.i32", "i32", "i32", "i32")
    unit.declarations["llvm.cttz.i32"] = "declare i32 @llvm.cttz.i32(i32, i1 immarg)"
    unit.declare("llvm.umax.v32i32", "<32 x i32>", "<32 x i32>", "<32 x i32>")
    barriers = CtaBarriers(kernel.warps)
    checks = kernel.shadow.checks
    parts = dict(
        **barriers.offsets,
        epoch_step=EPOCH,
        epoch_place=offset("epoch"),
        clocks_place=offset("clocks"),
        suspicion_place=offset("suspicion"),
        cells=GRAIN * -(-kernel.shared_together // kernel.shadow.grain[True]),
        ctas=kernel.cluster_size,
        together=kernel.warps_together,
        capacity=kernel.warps * WARP,
        threads=kernel.threads,
        last_warp=kernel.warps - 1,
        last_lanes=(1 << rest) - 1 if rest else -1,
        last_epoch=LAST,
        now=NOW,
        known=KNOWN,
        remote=REMOTE,
        agents=kernel.warps_together if has_agents(kernel) else 0,
        must_wait=MUST_WAIT,
        of_cluster=OF_CLUSTER,
        of_cluster_phase=OF_CLUSTER_PHASE,
        of_barriers=OF_BARRIERS,
        of_phases=_of_phases(kernel),
        of_mbarriers=_of_mbarriers(kernel),
        mbarriers=kernel.mbarriers,
        mbarrier_words=_mbarrier_words(kernel),
        mbarrier_bytes=4 * _mbarrier_words(kernel),
        look=LOOK if kernel.judges_phases else "",
        judge=JUDGE if kernel.judges_phases else "  %late = or i1 false, false",
        most_stalled=MOST_STALLED,
        rows=(_of_mbarriers(kernel) - REMOTE) // ROW,
        cta_size=kernel.cta_size,
        sync="true" if "sync" in checks else "false",
        race="true" if "race" in checks else "false",
    )
    of_cluster = runtime("cluster_clocks", **parts) if kernel.meets_cluster else ""
    looks = runtime("clocks_looks", now=NOW, behind=2 * 4 * ROW) if kernel.judges_phases else ""
    return runtime("cta_clocks", **parts) + of_cluster + looks + mbarrier_checks.functions(kernel, _of_checks(kernel))


def cluster_reached(at: NodeBuilder, raw: Raw) -> None:
    """The active lanes access generic addresses: suspect those in other CTAs of a cluster of which one has ended."""
    kernel, code = at.kernel, at.code
    if kernel.cluster_size == 1 or not kernel.clocked:
        return
    code.one_warp()
    found = at.bits_of(ClusterAddresses(at).of_others(Value(at.alg, u64, raw)).raw)
    there, onward = code.label(), code.label()
    code.branch(code.emit(f"icmp eq i32 {code.emit(f'and i32 {found}, {at.active_text()}')}, 0"), onward, there, likely=None)
    with code.scope():
        code.block(there)
        arguments = f"ptr {kernel.launch_field(code, 'clocks')}, i32 {kernel.warp_among}"
        wrong = code.emit(f"call i1 @ptxvm.clocks.cluster.reach({arguments})", pure=False)
        code.branch(wrong, "suspect", onward, likely=False)
    code.block(onward)


# ── mbarriers, and lanes that meet ──────────────────────────────────────────────────────


def mbarrier_made(at: NodeBuilder, access: Access, offsets: str) -> None:
    """An mbarrier begins, or ends, at the offsets in shared memory of the active lanes: nothing is known through it."""
    if at.kernel.clocked and access.mbarrier is not None:
        at.code.run(f"call void @ptxvm.clocks.made({mbarrier_checks.caller(at)}, {LANES} {offsets})")


def mbarrier_signalled(at: NodeBuilder, access: Access, offsets: str, before: str) -> None:
    """The active lanes have updated mbarriers, which were `before`; those that arrive pass on what they know."""
    if not at.kernel.clocked or access.mbarrier is None:
        return
    arrives = access.mbarrier in (MbarrierStep.ARRIVE, MbarrierStep.DROP) and access.order is Order.RELEASE
    copies = arrives and access.asynchronous
    told = f"i1 {str(arrives and not copies).lower()}, i1 {str(copies).lower()}"
    arguments = f"{mbarrier_checks.caller(at)}, {LANES} {offsets}, <{WARP} x i64> {before}, {told}, ptr %shared"
    at.suspect_where(at.code.emit(f"call i1 @ptxvm.clocks.signal({arguments})", pure=False))


def phase_over(at: NodeBuilder, offsets: str, over: str, *, acquires: bool) -> None:
    """Some active lanes have found a phase over."""
    if at.kernel.clocked:
        arguments = f"{mbarrier_checks.caller(at)}, {LANES} {offsets}, i32 {over}, i1 {str(acquires).lower()}"
        at.code.run(f"call void @ptxvm.clocks.over({arguments})")


def lanes_synchronise(at: NodeBuilder, bound: Bound, members: str) -> None:
    """The active lanes meet at a collective that orders their accesses; `members` is the mask."""
    if at.kernel.clocked and orders_lanes(bound.i):
        at.code.run(f"call void @ptxvm.clocks.warp({mbarrier_checks.caller(at)}, {LANES} {members})")

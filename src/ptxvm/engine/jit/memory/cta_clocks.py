"""Vector clocks of the warps of a CTA, for the checks of kernels with barriers for some of its threads (PTX 9.7.13.1).

A warp has a clock, which is the epoch of the tags that it leaves, and a row: up to which clock the accesses of each warp are
ordered before its own.  A barrier has such a row as well.  Warps that arrive add what they know to it, and warps that wait
learn it when it opens.  All of it is in a table of words of 32 bits, one for each launch, since its CTAs run one after the
other:

    0       the address of the field `suspicion` of the launch record
    32      the clock of each warp
    64      the row of each warp
    1088    the row of each barrier
    1600    the row of each barrier when it opened last
"""

from __future__ import annotations

from ptxvm.engine.jit.abi.cta_barriers import BARRIERS, CtaBarriers
from ptxvm.engine.jit.abi.launch_record import offset
from ptxvm.engine.jit.ir.runtime import runtime
from ptxvm.engine.jit.memory.tags import EPOCH, LAST
from ptxvm.engine.jit.node.context import KernelContext
from ptxvm.engine.jit.node.instrumentation import GRAIN
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.isa.special_registers import WARP

ROW = 32  # words: the most warps of a CTA
NOW, KNOWN = ROW, 2 * ROW
OF_BARRIERS = KNOWN + ROW * ROW
OF_PHASES = OF_BARRIERS + BARRIERS * ROW
WORDS = OF_PHASES + BARRIERS * ROW
MOST_GROUPS = 10  # for which a tag has a bit


def row(at: NodeBuilder) -> str:
    """The address of the row of the warp."""
    words = at.code.emit(f"add i32 {at.code.emit(f'mul i32 %warp, {ROW}')}, {KNOWN}")
    return at.code.emit(f"getelementptr i32, ptr {at.kernel.context(at.code, 'clocks')}, i32 {words}")


def now(at: NodeBuilder) -> str:
    """The clock of the warp; an arrival in the same node may change it."""
    clocks, word = at.kernel.context(at.code, "clocks"), at.code.emit(f"add i32 %warp, {NOW}")
    place = at.code.emit(f"getelementptr i32, ptr {clocks}, i32 {word}")
    return at.code.emit(f"load i32, ptr {place}, align 4", pure=False)


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
    unit.declare("llvm.umax.v32i32", "<32 x i32>", "<32 x i32>", "<32 x i32>")
    barriers = CtaBarriers(kernel.warps)
    checks = kernel.shadow.checks
    return runtime(
        "cta_clocks",
        **barriers.offsets,
        epoch_step=EPOCH,
        epoch_place=offset("epoch"),
        clocks_place=offset("clocks"),
        suspicion_place=offset("suspicion"),
        cells=GRAIN * -(-kernel.shared_size // kernel.shadow.grain[True]),
        capacity=kernel.warps * WARP,
        threads=kernel.threads,
        last_warp=kernel.warps - 1,
        last_lanes=(1 << rest) - 1 if rest else -1,
        last_epoch=LAST,
        now=NOW,
        known=KNOWN,
        of_barriers=OF_BARRIERS,
        of_phases=OF_PHASES,
        rows=2 * BARRIERS,
        sync="true" if "sync" in checks else "false",
    )

"""The entry block of a warp function: its variables, and what it loads from the launch record."""

from __future__ import annotations

from math import prod

from ptxvm.engine.jit.abi.cta_barriers import CtaBarriers
from ptxvm.engine.jit.abi.launch_record import offset
from ptxvm.engine.jit.abi.metadata import SITE_SIZE
from ptxvm.engine.jit.functions.lane_scheduler import LaneScheduler
from ptxvm.engine.jit.memory import row_windows, slow_path
from ptxvm.engine.jit.node import counters
from ptxvm.engine.jit.node.context import KernelContext
from ptxvm.engine.jit.node.register_shapes import CARRY, alignment, slot_name
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.window import RANK

MASKS = 16  # lane masks of an array that are compared at once (`runtime/first_pending.ll`)


def entry(kernel: KernelContext) -> list[str]:
    """The lines of the block, but for the switch over states that ends it."""
    lines = [*counters.begin(), *_registers(kernel)]
    for name, llvm in sorted(kernel.buffers.items()):
        lines.append(f"  {name} = alloca {llvm}, align 64")
    lines += _accesses(kernel)
    lines += _event_counters(kernel)
    lines += [slow_path.begin(), f"  %ctaid.x.pointer = getelementptr i8, ptr %ctx, i64 {offset('ctaid.x')}"]
    lines += _pending(kernel)
    if kernel.straight:
        lines.append(f"  %parting = alloca i{kernel.width}, align 8")
    ticks = "i64" if kernel.scalar else "i32"
    lines += [f"  %ticks = alloca {ticks}, align 8", f"  store {ticks} {kernel.time_slice}, ptr %ticks, align 8"]
    lines += _grid_strides(kernel)
    if kernel.counts_spins:
        lines += ["  %spins = alloca i32, align 4", f"  store i32 {kernel.SPINS}, ptr %spins, align 4"]
    lines += _released(kernel)
    lines += _spill_stack(kernel)
    lines += _launch_fields()
    lines += _cluster(kernel)
    lines += _addresses(kernel)
    lines += [
        f"  %warp.wide = zext i32 %{'thread' if kernel.scalar else 'warp'} to i64",
        f"  %local.offset = mul i64 %warp.wide, {min(WARP, kernel.width) * kernel.local_stride}",
        "  %local.address = add i64 %local.start, %local.offset",
    ]
    return lines


def _registers(kernel: KernelContext) -> list[str]:
    """The registers that live across nodes; those that may be read before they are written begin as zero."""
    lines = []
    for key, part, llvm in kernel.registers.slots():
        lines.append(f"  {slot_name(key, part)} = alloca {llvm}, align {alignment(llvm)}")
        if key == CARRY or kernel.nodes[0].live_in >> key[0] & 1:
            lines.append(f"  store {llvm} zeroinitializer, ptr {slot_name(key, part)}, align {alignment(llvm)}")
    return lines


def _grid_strides(kernel: KernelContext) -> list[str]:
    """How many iterations of grid-stride loops are left until other CTAs catch up, if CTAs run in step."""
    if not kernel.grid_strides:
        return []
    return [
        f"  %in_step.pointer = getelementptr i8, ptr %ctx, i64 {offset('in_step')}",
        "  %in_step = load i32, ptr %in_step.pointer, align 8",
        "  %in_step.none = icmp eq i32 %in_step, 0",
        f"  %strides.first = select i1 %in_step.none, i32 {kernel.TICKS}, i32 %in_step",
        "  %strides = alloca i32, align 4",
        "  store i32 %strides.first, ptr %strides, align 4",
    ]


def _launch_fields() -> list[str]:
    """The fields of the launch record that most warps need."""
    lines = []
    for field, llvm, name in (
        ("params", "i64", "params.address"), ("params", "ptr", "params"), ("shared", "i64", "shared.address"),
        ("shared", "ptr", "shared"), ("local", "i64", "local.start"), ("nctaid.x", "i32", "nctaid.x"),
        ("nctaid.y", "i32", "nctaid.y"), ("nctaid.z", "i32", "nctaid.z"),
    ):  # fmt: skip
        lines.append(f"  %{name}.pointer = getelementptr i8, ptr %ctx, i64 {offset(field)}")
        lines.append(f"  %{name} = load {llvm}, ptr %{name}.pointer, align 8")
    return lines


def _addresses(kernel: KernelContext) -> list[str]:
    """The addresses of the symbols of the module that the code names."""
    lines = []
    if kernel.addresses:
        lines += [f"  %addresses.pointer = getelementptr i8, ptr %ctx, i64 {offset('addresses')}"]
        lines += ["  %addresses = load ptr, ptr %addresses.pointer, align 8"]
    for number in sorted(kernel.addresses):
        lines.append(f"  %address.{number}.pointer = getelementptr i64, ptr %addresses, i64 {number}")
        lines.append(f"  %address.{number} = load i64, ptr %address.{number}.pointer, align 8")
    return lines


def _cluster(kernel: KernelContext) -> list[str]:
    """The rank of the CTA in its cluster, where its shared memory begins in that of the cluster, and where that begins."""
    if kernel.cluster is None or kernel.cluster_size == 1:
        return []
    lines, total = [], "0"
    for axis, size, step in zip("xyz", kernel.cluster, (1, kernel.cluster[0], prod(kernel.cluster[:2])), strict=True):
        lines.append(f"  %cluster.{axis} = urem i32 %ctaid.{axis}, {size}")
        lines.append(f"  %cluster.{axis}.step = mul i32 %cluster.{axis}, {step}")
        lines.append(f"  %cluster.{axis}.sum = add i32 %cluster.{axis}.step, {total}")
        total = f"%cluster.{axis}.sum"
    return [
        *lines,
        f"  %cluster.rank = add i32 {total}, 0",
        "  %cluster.rank.wide = zext i32 %cluster.rank to i64",
        f"  %cluster.base = shl i64 %cluster.rank.wide, {RANK}",
        f"  %cluster.before = mul i64 %cluster.rank.wide, {kernel.shared_stride}",
        "  %cluster.start = sub i64 %shared.address, %cluster.before",
        f"  %cluster.warps.before = mul i32 %cluster.rank, {kernel.warps}",
        "  %cluster.warp = add i32 %cluster.warps.before, %warp",
        f"  %cluster.records.before = mul i32 %cluster.rank, {-kernel.cta_size}",
        "  %cluster.records = getelementptr i8, ptr %cta_barriers, i32 %cluster.records.before",
    ]


def _pending(kernel: KernelContext) -> list[str]:
    """The lane masks of the nodes: variables, or an array in the order of the lane scheduler."""
    lines, word = [], f"i{kernel.width}"
    if not kernel.scans_pending:
        for number in sorted(kernel.pending):
            lines += [f"  %pending.{number} = alloca {word}, align 4", f"  store {word} 0, ptr %pending.{number}, align 4"]
        return lines
    scheduler = LaneScheduler(kernel)
    first, later = ([node.number for node in nodes] for nodes in (scheduler.runnable, scheduler.waits))
    others = [*later, *sorted(kernel.pending.difference(first, later))]
    beyond = -(-len(first) // MASKS) * MASKS
    size = 4 * (beyond + len(others))
    lines += [
        f"  %pending = alloca [{size} x i8], align 64",
        f"  call void @llvm.memset.p0.i64(ptr %pending, i8 0, i64 {size}, i1 false)",
    ]
    cells = (*enumerate(first), *enumerate(others, beyond))
    return [*lines, *(f"  %pending.{number} = getelementptr i32, ptr %pending, i64 {index}" for index, number in cells)]


def _accesses(kernel: KernelContext) -> list[str]:
    """The variables of accesses in loops: cached bounds, addresses of the last iteration, and windows of rows."""
    lines = []
    for site, n in sorted(kernel.cached_bounds):
        lines.append(f"  %site.{site}.{n} = alloca i64, align 8")
        lines.append(f"  %site.{site}.{n}.pointer = getelementptr i8, ptr %sites, i64 {SITE_SIZE * site + 8 * n}")
        lines.append(f"  %site.{site}.{n}.first = load i64, ptr %site.{site}.{n}.pointer, align 8")
        lines.append(f"  store i64 %site.{site}.{n}.first, ptr %site.{site}.{n}, align 8")
    for prefetch in range(1, kernel.prefetches + 1):
        lines += [f"  %prefetch.{prefetch} = alloca i64, align 8", f"  store i64 0, ptr %prefetch.{prefetch}, align 8"]
    if kernel.row_walks:
        lines += row_windows.begin_epochs()
    for number in kernel.row_windows.values():
        lines += row_windows.begin(number, kernel.width)
    return lines


def _event_counters(kernel: KernelContext) -> list[str]:
    """The words in which profiled code counts, and its variables of nodes that have side exits."""
    if kernel.counters is None:
        return []
    from ptxvm.engine.jit.node.event_counters import POINTER  # noqa: PLC0415 - little code is profiled

    variables = {name: llvm for written in kernel.written.values() for name, llvm in written.variables.items()}
    return [
        f"  {POINTER}.pointer = getelementptr i8, ptr %ctx, i64 {offset('counters')}",
        f"  {POINTER} = load ptr, ptr {POINTER}.pointer, align 8",
        *(f"  {name} = alloca {llvm}, align 64" for name, llvm in variables.items()),
    ]


def _spill_stack(kernel: KernelContext) -> list[str]:
    """The address of the spill stack of calls."""
    if not kernel.graph.shared:
        return []
    return [
        f"  %saved.pointer = getelementptr i8, ptr %ctx, i64 {offset('saved')}",
        "  %saved = load ptr, ptr %saved.pointer, align 8",
        "  %saved.wide = zext i32 %warp to i64",
        f"  %saved.warp = mul i64 %saved.wide, {WARP * kernel.saved_room}",
    ]


def _released(kernel: KernelContext) -> list[str]:
    """The address of the mask of released lanes."""
    if kernel.partial_barriers:
        return [
            f"  %cta_barriers.pointer = getelementptr i8, ptr %ctx, i64 {offset('cta_barriers')}",
            "  %cta_barriers = load ptr, ptr %cta_barriers.pointer, align 8",
            f"  %released.at = add i32 %warp, {CtaBarriers(kernel.warps).of_warp('released')}",
            "  %released = getelementptr i32, ptr %cta_barriers, i32 %released.at",
        ]
    return ["  %released = alloca i32, align 4", "  store i32 0, ptr %released, align 4"] if kernel.general else []

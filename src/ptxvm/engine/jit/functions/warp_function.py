"""The warp function, which runs the nodes of a warp and can suspend at barriers; and the module of a version."""

from __future__ import annotations

from ptxvm.engine.jit.abi.cta_barriers import CtaBarriers
from ptxvm.engine.jit.abi.launch_record import offset
from ptxvm.engine.jit.abi.states import ARGUMENTS, GENERAL, MASKED, PARAMETERS, PARTED, RESUME, RUNNABLE, SHAPELESS, STRAIGHT
from ptxvm.engine.jit.cfg.nodes import Node
from ptxvm.engine.jit.functions import (
    deoptimise,
    float_environment,
    grid_in_step,
    grid_interleaved,
    grid_resident,
    grid_sequential,
    reconvergence,
)
from ptxvm.engine.jit.functions.lane_scheduler import LaneScheduler
from ptxvm.engine.jit.functions.warp_entry import entry
from ptxvm.engine.jit.ir.builder import Code
from ptxvm.engine.jit.ir.module_text import module_text
from ptxvm.engine.jit.ir.runtime import runtime
from ptxvm.engine.jit.memory import barrier_epochs, cta_clocks
from ptxvm.engine.jit.node import counters
from ptxvm.engine.jit.node.context import FEW_BARRIERS, KernelContext
from ptxvm.engine.jit.node.register_shapes import move_slot
from ptxvm.engine.jit.node.spill_layout import Slot
from ptxvm.isa import warpgroup
from ptxvm.isa.cta_barrier import reduction

ENDS = ("fault:", "  ret i32 -2", "done:", "  ret i32 -1")


def module(kernel: KernelContext) -> str:
    """The text of the module of a version."""
    warp = warp_function(kernel)
    unit = kernel.unit
    grid = _barrier_functions(kernel) if kernel.partial_barriers else ""
    if kernel.main:
        grid += _grid_function(kernel)
        grid += "\n" + float_environment.grid(unit)
    unit.declare("llvm.memset.p0.i64", "void", "ptr", "i8", "i64", "i1 immarg")
    return module_text(unit, warp, grid)


def _grid_function(kernel: KernelContext) -> str:
    """The function that runs CTAs: interleaved, beside those that they wait for, or one after the other."""
    if kernel.partial_barriers:
        return grid_interleaved.grid_function(kernel)
    if kernel.pauses:
        return grid_in_step.grid_function(kernel)
    return grid_resident.grid_function(kernel) if kernel.fair else grid_sequential.grid_function(kernel)


def _barrier_functions(kernel: KernelContext) -> str:
    """The runtime functions of the barrier record."""
    kernel.unit.declare("llvm.ctpop.i32", "i32", "i32")
    kernel.unit.declare("llvm.umin.i32", "i32", "i32", "i32")
    kernel.unit.declarations["llvm.cttz.i32"] = "declare i32 @llvm.cttz.i32(i32, i1 immarg)"
    sizes = {
        "cluster_warps": kernel.cluster_size * kernel.warps, "cta_size": kernel.cta_size, "warps_of_group": warpgroup.WARPS,
    }  # fmt: skip
    opens = "  call void @ptxvm.clocks.open(ptr %m, i32 %n, i32 %expected)" if kernel.clocked else ""
    more = {"opens": opens, "meets": "", "ends": ""}
    if kernel.clocked and kernel.meets_cluster:
        more["meets"] = "  call void @ptxvm.clocks.cluster.open(ptr %first)"
        more["ends"] = "  call void @ptxvm.clocks.cluster.left(ptr %m)"
    barriers = runtime("cta_barriers", **CtaBarriers(kernel.warps).offsets, **sizes, **more)
    return f"{cta_clocks.functions(kernel)}{barriers}\n"


# ── a warp ──────────────────────────────────────────────────────────────────────────────


def warp_function(kernel: KernelContext) -> str:
    """The warp function: takes a state, and returns the next one, -1 at the end, or -2 after a fault."""
    bodies = _nodes(kernel)
    states = _suspensions(kernel, bodies)
    if kernel.leaves_all:
        bodies += deoptimise.leave_all(kernel)
    if not kernel.main:
        bodies += deoptimise.resume(kernel)
        states.append(f"i32 {RESUME if kernel.shapeless else PARTED}, label %resume.all")
    lines = entry(kernel)
    sums = ", ptr noalias %sums" if kernel.sequential else ""
    parameters = PARAMETERS.replace("%warp", "%thread") if kernel.scalar else PARAMETERS
    start = "F0" if kernel.straight or ((0, True) in kernel.written and not kernel.rows.has_partial_warps) else "start"
    if start == "start":
        bodies += ["start:", *_partial_start(kernel)]
    switch = f"  switch i32 %state, label %{start} [ {' '.join(states)} ]"
    if not kernel.shapeless and not kernel.straight:
        lines += [
            f"  %other = icmp uge i32 %state, {SHAPELESS}",
            "  br i1 %other, label %elsewhere, label %here",
            "elsewhere:",
            f"  %shapeless.pointer = getelementptr i8, ptr %ctx, i64 {offset('shapeless')}",
            "  %shapeless = load ptr, ptr %shapeless.pointer, align 8",
            f"  %shapeless.answer = call i32 %shapeless({ARGUMENTS}, i32 %state)",
            "  ret i32 %shapeless.answer",
            "here:",
        ]
    return "\n".join(
        [
            f"define {'internal ' if kernel.main else ''}i32 @warp({parameters}, i32 %state{sums}) #0 {{",
            "entry:",
            *counters.single_exit([*lines, switch, *bodies, *barrier_epochs.suspect(kernel), *ENDS]),
            *counters.report(kernel),
            "}",
        ]
    )


def _nodes(kernel: KernelContext) -> list[str]:
    """The code of the nodes, whole warps first."""
    bodies: list[str] = []
    for (number, full), written in sorted(kernel.written.items(), key=lambda t: (not t[0][1], t[0][0])):
        node = kernel.nodes[number]
        bodies.append(f"{'F' if full else 'M'}{number}:")
        if not full:
            bodies += _masked_head(kernel, node)
        bodies += written.lines
        if written.leaves or (full and number in kernel.spin_exits):
            bodies += deoptimise.leave(kernel, node, full=full)
        if number in kernel.parting:
            bodies += deoptimise.part(kernel, node)
    for number in sorted(kernel.divergent_regions.joins - kernel.masked):  # all lanes are there, and nothing is to be restored
        bodies += [f"M{number}:", f"  store i{kernel.width} 0, ptr %pending.{number}, align 4", f"  br label %F{number}"]
    return bodies


def _suspensions(kernel: KernelContext, bodies: list[str]) -> list[str]:
    """Write the suspension points and their resumption; returns the cases of the switch over states."""
    states = [_paused(kernel, kernel.nodes[number], bodies) for number in sorted(kernel.pauses)]
    if kernel.general:
        bodies += LaneScheduler(kernel).run()
        known = GENERAL + (SHAPELESS if kernel.shapeless else 0)
        states += [f"i32 {state}, label %resume.general" for state in (known, known + RUNNABLE)]
        if not kernel.suspends_whole_warps:
            return states
    for full in (True,) if kernel.general else (True, False):
        if full and kernel.one_group:
            continue
        waits = [node for node in kernel.nodes if node.waits and (node.number, full) in kernel.written]
        for nodes in _grouped([node for node in waits if node.barrier_wait or not kernel.general], kernel, full=full):
            bodies += suspend(kernel, nodes, full=full)
            resume = f"label %resume.{'F' if full else 'M'}{nodes[0].number}"
            states += [f"i32 {_state(kernel, node, full=full)}, {resume}" for node in nodes]
    return states


def _paused(kernel: KernelContext, node: Node, bodies: list[str]) -> str:
    """Write how a group of warps pauses at the head of a grid-stride loop and goes on; returns the case of the switch."""
    code, saved = Code(kernel.unit), kernel.layout.waiting(node, full=True)
    state = _state(kernel, node, full=True) + RUNNABLE
    code.block(f"pause.F{node.number}")
    _spill_and_return(code, saved, str(state), f"resume.pause.F{node.number}")
    code.jump(f"F{node.number}")
    bodies += code.lines
    return f"i32 {state}, label %resume.pause.F{node.number}"


def _grouped(nodes: list[Node], kernel: KernelContext, *, full: bool) -> list[list[Node]]:
    """The barriers grouped by equal spills, if there are many."""
    if len(nodes) <= FEW_BARRIERS:
        return [[node] for node in nodes]
    found: dict[tuple[tuple[str, str, int], ...], list[Node]] = {}
    for node in nodes:
        found.setdefault(tuple(kernel.layout.waiting(node, full=full)), []).append(node)
    return list(found.values())


def _partial_start(kernel: KernelContext) -> list[str]:
    """Begin a warp, with the lanes that have threads."""
    masks = kernel.rows.masks
    if len(set(masks)) == 1:
        return [f"  store i32 {masks[0]}, ptr %pending.0, align 4", "  br label %M0"]
    table = kernel.unit.table("i32", masks)
    return [
        f"  %live.at = getelementptr i32, ptr @{table}, i32 %warp",
        "  %live = load i32, ptr %live.at, align 4",
        "  store i32 %live, ptr %pending.0, align 4",
        "  br label %M0",
    ]


def _masked_head(kernel: KernelContext, node: Node) -> list[str]:
    """Take the lanes that wait at a node; if these are all, run it for a whole warp."""
    mask, number, word = f"%M{node.number}.mask", node.number, f"i{kernel.width}"
    lines = [f"  {mask} = load {word}, ptr %pending.{number}, align 4", f"  store {word} 0, ptr %pending.{number}, align 4"]
    if kernel.general and node.waits:
        lines = _released_lanes(node, mask)
    lines += reconvergence.whole_again(kernel, node, mask)
    return lines


def _released_lanes(node: Node, mask: str) -> list[str]:
    """Take the released lanes of a node."""
    number = node.number
    return [
        f"  %M{number}.there = load i32, ptr %pending.{number}, align 4",
        f"  %M{number}.free = load i32, ptr %released, align 4",
        f"  {mask} = and i32 %M{number}.there, %M{number}.free",
        f"  %M{number}.stay = xor i32 %M{number}.there, {mask}",
        f"  store i32 %M{number}.stay, ptr %pending.{number}, align 4",
        f"  %M{number}.others = xor i32 %M{number}.free, {mask}",
        f"  store i32 %M{number}.others, ptr %released, align 4",
    ]


# ── barriers ────────────────────────────────────────────────────────────────────────────


def _state(kernel: KernelContext, node: Node, *, full: bool) -> int:
    """The state of a warp that waits."""
    version = SHAPELESS if kernel.shapeless else STRAIGHT if kernel.straight else 0
    return node.number + (0 if full else MASKED) + version


def _spill_and_return(code: Code, saved: list[Slot], state: str, resume: str) -> None:
    """Spill some slots and return a state; and reload them at the label to resume at."""
    for slot, llvm, at in saved:
        move_slot(code, "%record", slot, llvm, at, save=True)
    code.run(f"ret i32 {state}")
    code.memo.clear()
    code.block(resume)
    for slot, llvm, at in saved:
        move_slot(code, "%record", slot, llvm, at, save=False)


def suspend(kernel: KernelContext, nodes: list[Node], *, full: bool) -> list[str]:
    """Spill the registers that are live at some barriers, the same at all, and return; and resume from there."""
    code, letter, first = Code(kernel.unit), "F" if full else "M", nodes[0].number
    saved, state = kernel.layout.waiting(nodes[0], full=full), kernel.buffer("i32", 11)
    for node in nodes:
        _arrive(kernel, code, node, state, full=full)
        code.jump(f"suspended.{letter}{first}")
    code.block(f"suspended.{letter}{first}")
    returned = code.emit(f"load i32, ptr {state}, align 4", pure=False)
    _spill_and_return(code, saved, returned, f"resume.{letter}{first}")
    if not full:
        mask = code.emit("load i32, ptr %record, align 8", pure=False)
    cases = " ".join(f"i32 {_state(kernel, node, full=full)}, label %resumed.{letter}{node.number}" for node in nodes)
    if kernel.partial_barriers:
        code.run("store i32 0, ptr %released, align 4")
    code.run(f"switch i32 %state, label %resumed.{letter}{first} [ {cases} ]")
    for node in nodes:
        code.block(f"resumed.{letter}{node.number}")
        if not full:
            code.run(f"store i32 {mask}, ptr %pending.{node.number}, align 4")
        code.jump(f"{letter}{node.number}")
    return code.lines


def _arrive(kernel: KernelContext, code: Code, node: Node, state: str, *, full: bool) -> None:
    """Record the barrier at which a warp arrives, and the state in which it resumes."""
    code.block(f"suspend.{'F' if full else 'M'}{node.number}")
    if not kernel.partial_barriers:
        bit = 1 << kernel.barrier_numbers.get(id(node.code[0]), 0)
        barriers = kernel.launch_field_pointer(code, "barriers")
        old = code.emit(f"load i32, ptr {barriers}, align 8", pure=False)
        code.run(f"store i32 {code.emit(f'or i32 {old}, {bit}')}, ptr {barriers}, align 8")
    mask = None
    if not full:
        mask = code.emit(f"load i32, ptr %pending.{node.number}, align 4", pure=False)
        code.run(f"store i32 {mask}, ptr %record, align 8")
    barrier_epochs.warp_waits(kernel, code, {reduction(node.code[0].i): mask})
    code.run(f"store i32 {_state(kernel, node, full=full)}, ptr {state}, align 4")
    code.memo.clear()

"""Deoptimisation: side exits, by which a warp continues in a more general version of its kernel.

A side exit stores the lane masks and the registers in the record of the warp; the other version restores them.  There are
three versions.  The *straight* one is for whole warps, one or several abreast; when lanes diverge, the *masked* one takes
over.  When an affine value wraps as it is extended, the *shapeless* one takes over, whose registers are uniform or varying.
"""

from __future__ import annotations

from ptxvm.engine.jit.abi.states import ARGUMENTS, LEFT, RESUME
from ptxvm.engine.jit.cfg.nodes import Node
from ptxvm.engine.jit.ir.builder import Code
from ptxvm.engine.jit.ir.lane_values import Affine, Pattern, scalar_type, text, vector_type
from ptxvm.engine.jit.node.context import KernelContext
from ptxvm.engine.jit.node.register_shapes import CARRY, Key, RegisterShape, alignment, base_key, recoverable_lanes, slot_name
from ptxvm.engine.jit.node.spill_layout import CELL
from ptxvm.engine.jit.values.algebra import LlvmAlgebra
from ptxvm.isa.special_registers import WARP

SCALAR = 16  # bytes of a scalar of an affine register in its cell


# ── leaving ─────────────────────────────────────────────────────────────────────────────


def leave_all(kernel: KernelContext) -> list[str]:
    """The side exit of a warp whose lanes wait at several nodes."""
    code, needed = Code(kernel.unit), 0
    code.block("leave.all")
    standing = sorted(kernel.pending)
    for number in standing:
        needed |= kernel.nodes[number].live_in
    _save(kernel, code, needed, _each_warp(code, _standing(code, standing)), full=False)
    return code.lines


def _standing(code: Code, numbers: list[int]) -> dict[int, str]:
    """The lanes that wait at some nodes, as masks of all lanes."""
    return {n: code.emit(f"load i{code.width}, ptr %pending.{n}, align 4", pure=False) for n in numbers}


def _each_warp(code: Code, masks: dict[int, str]) -> list[dict[int, str]]:
    """The same masks for each warp."""
    return [{number: code.part_of(mask, warp) for number, mask in masks.items()} for warp in code.warps()]


def leave(kernel: KernelContext, node: Node, *, full: bool) -> list[str]:
    """The side exit at the start of a node: the next version runs the node again."""
    code, letter = Code(kernel.unit), "F" if full else "M"
    code.block(f"{letter}{node.number}.leave")
    others = sorted(kernel.waiting[node.number]) if not full else []
    masks = _standing(code, others)
    if not full:
        masks[node.number] = f"%M{node.number}.mask"
    needed = node.live_in
    for number in others:
        needed |= kernel.nodes[number].live_in
    each = [{node.number: "-1"}] * len(code.warps()) if full else _each_warp(code, masks)
    _save(kernel, code, needed, each, full=full)
    return code.lines


def part(kernel: KernelContext, node: Node) -> list[str]:
    """The side exit at divergence: `%parting` has the lanes that go to the first target."""
    code, width = Code(kernel.unit), kernel.width
    code.block(f"F{node.number}.part")
    yes, no = kernel.parting[node.number]
    bits = code.emit(f"load i{width}, ptr %parting, align 8", pure=False)
    needed, masks = 0, []
    for n in code.warps():
        own = code.part_of(bits, n)
        masks.append({yes: own, no: code.emit(f"xor i32 {own}, -1")})
    for target in (yes, no):
        needed |= kernel.nodes[target].live_in if target >= 0 else 0
    _save(kernel, code, needed, masks, full=True)
    return code.lines


def _save(kernel: KernelContext, code: Code, needed: int, masks: list[dict[int, str]], *, full: bool) -> None:
    """Save masks and registers in the records of all warps, and enter the next version."""
    size = kernel.record_size
    for warp, standing in enumerate(masks):
        own = code.emit(f"getelementptr i8, ptr %record, i64 {warp * size}")
        code.run(f"call void @llvm.memset.p0.i64(ptr {own}, i8 0, i64 {4 * len(kernel.nodes)}, i1 false)")
        for number, mask in standing.items():
            if number >= 0:
                where = code.emit(f"getelementptr i8, ptr %record, i64 {warp * size + 4 * number}")
                code.run(f"store i32 {mask}, ptr {where}, align 4")
    _save_registers(kernel, code, needed, full=full)
    if kernel.straight:
        code.run(f"ret i32 {LEFT}")
        return
    kernel.record_cta_id(code)
    shapeless = kernel.launch_field(code, "shapeless", pure=False)
    answer = code.emit(f"call i32 {shapeless}({ARGUMENTS}, i32 {RESUME})", pure=False)
    code.run(f"ret i32 {answer}")


def _save_registers(kernel: KernelContext, code: Code, needed: int, *, full: bool) -> None:
    for key in sorted(kernel.registers.shapes):
        if key == base_key(key) and (key == CARRY or needed >> key[0] & 1):
            _save_register(kernel, code, key, full=full)


def _saved_shape(kernel: KernelContext, key: Key) -> RegisterShape | None:
    """The shape in which a register is saved: that in partial warps, which covers that in whole ones."""
    return kernel.registers.shapes.get(kernel.registers.own(key, full=False))


def _save_register(kernel: KernelContext, code: Code, key: Key, *, full: bool) -> None:
    """Save a register: as scalars if it is affine with the same patterns in all warps, else as a vector."""
    alg, size = LlvmAlgebra(code), kernel.record_size
    type, held = kernel.registers.types[key], kernel.registers.own(key, full=full)
    one = scalar_type(type)
    names = {
        part: code.emit(f"load {llvm}, ptr {slot_name(held, part)}, align {alignment(llvm)}", pure=False)
        for part, llvm in kernel.registers.parts(held)
    }
    raw, shape = alg.tight(type, kernel.registers.raw(held, names)), _saved_shape(kernel, key)
    as_scalars = isinstance(raw, Affine) and shape is not None and warp_patterns(shape) is not None
    vector = "" if as_scalars else alg.vector(type, raw)
    for warp in code.warps():
        at = warp * size + kernel.layout.cell(key)
        if isinstance(raw, Affine) and as_scalars:
            base = raw.base
            for pattern, u in raw.terms:
                base = alg.scalar("add", type.bits, base, alg.scalar("mul", type.bits, u, pattern[warp * WARP]))
            for n, scalar in enumerate((base, *(u for _, u in raw.terms))):
                where = code.emit(f"getelementptr i8, ptr %record, i64 {at + SCALAR * n}")
                code.run(f"store {one} {text(one, scalar)}, ptr {where}, align 16")
            continue
        where = code.emit(f"getelementptr i8, ptr %record, i64 {at}")
        if one == "i1":
            code.run(f"store i32 {code.warp_bits(vector, warp)}, ptr {where}, align 64")
            continue
        own = vector
        if kernel.width > WARP:
            own = code.shuffle(one, kernel.width, vector, "poison", list(range(warp * WARP, (warp + 1) * WARP)))
        code.run(f"store <{WARP} x {one}> {own}, ptr {where}, align 64")


def warp_patterns(shape: RegisterShape) -> list[Pattern] | None:
    """The patterns of an affine register within a warp, if all warps have the same; else None."""
    if shape.varies or len(shape.terms) >= CELL // SCALAR:
        return None
    found: list[Pattern] = []
    for pattern, _ in shape.terms:
        rows = {tuple(n - pattern[first] for n in pattern[first : first + WARP]) for first in range(0, len(pattern), WARP)}
        if len(rows) != 1:
            return None
        found += rows
    return found


# ── resuming ────────────────────────────────────────────────────────────────────────────


def resume(kernel: KernelContext) -> list[str]:
    """Resume a warp that comes from the version before."""
    code = Code(kernel.unit)
    code.block("resume.all")
    for key, part, llvm in kernel.registers.slots(full=False):
        name = _restored_part(kernel, code, key, part)
        code.run(f"store {llvm} {name}, ptr {slot_name(key, part)}, align {alignment(llvm)}")
    for number in sorted(kernel.pending):
        where = code.emit(f"getelementptr i8, ptr %record, i64 {4 * number}")
        mask = code.emit(f"load i32, ptr {where}, align 4", pure=False)
        code.run(f"store i32 {mask}, ptr %pending.{number}, align 4")
    if kernel.general:
        code.jump("dispatch")
        return code.lines
    for node in sorted(kernel.nodes, key=lambda node: node.rank):
        if (node.number, False) not in kernel.written:
            continue
        mask = code.emit(f"load i32, ptr %pending.{node.number}, align 4", pure=False)
        here, onward = code.label(), code.label()
        code.branch(code.emit(f"icmp eq i32 {mask}, 0", pure=False), onward, here)
        code.block(here)
        code.jump(f"suspend.M{node.number}" if node.waits else f"M{node.number}")
        code.block(onward)
    code.jump("done")
    return code.lines


def _restored_part(kernel: KernelContext, code: Code, key: Key, part: str) -> str:
    """A part of a register, computed from its lanes."""
    type = kernel.registers.types[key]
    vector, one = vector_type(type, WARP), scalar_type(type)
    name = _restored_lanes(kernel, code, base_key(key))
    if part == "v":
        return name
    base = code.emit(f"extractelement {vector} {name}, i64 0")
    if part == "b":
        return base
    lanes = recoverable_lanes(kernel.registers.shapes[key]) or []
    other = code.emit(f"extractelement {vector} {name}, i64 {lanes[int(part[1:])]}")
    return code.emit(f"sub {one} {other}, {base}")


def _restored_lanes(kernel: KernelContext, code: Code, key: Key) -> str:
    """All lanes of a register, as the version before saved it."""
    type = kernel.registers.types[key]
    vector, one = vector_type(type, WARP), scalar_type(type)
    shape = _saved_shape(kernel.before, key) if kernel.before is not None else None
    if shape is None:  # it has no value there
        return "zeroinitializer"
    at = kernel.layout.cell(key)
    patterns = warp_patterns(shape)
    if patterns is not None:
        scalars = []
        for n in range(1 + len(patterns)):
            where = code.emit(f"getelementptr i8, ptr %record, i64 {at + SCALAR * n}")
            scalars.append(code.emit(f"load {one}, ptr {where}, align 16", pure=False))
        alg = LlvmAlgebra(code)
        pairs = zip(patterns, scalars[1:], strict=True)
        terms = alg.collect(type.bits, tuple((k, u, 1) for k, u in pairs if any(k)))
        return alg.vector(type, Affine(scalars[0], terms))
    where = code.emit(f"getelementptr i8, ptr %record, i64 {at}")
    if one == "i1":
        bits = code.emit(f"load i32, ptr {where}, align 64", pure=False)
        return code.emit(f"bitcast i32 {bits} to {vector}")
    return code.emit(f"load {vector}, ptr {where}, align 64", pure=False)

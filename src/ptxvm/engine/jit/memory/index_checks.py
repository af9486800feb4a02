"""Bounds checks of indices: whether elements are in an allocation, by the vector of 32 bits that tells them apart.

They compare half as many registers as those of addresses (`gather_checks`), without shifts.  An index that is too far from the
beginning of the allocation, or an allocation that is too large, fails; then the addresses tell.
"""

from __future__ import annotations

from ptxvm.engine.jit.ir.lane_values import Raw, Varying, text
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.engine.jit.values import scaled_integers

FAR = 1 << 30  # elements; twice as many and an index have a sum that 32 bits tell from those in bounds


def inside(at: NodeBuilder, raw: Raw, log: int, low: str, bound: str) -> str | None:
    """Is each active lane surely a multiple of 1 << log from `low`, and within `bound` of them?  None if no index tells."""
    found = at.alg.scaled.get(raw.name) if isinstance(raw, Varying) else None
    steps, rest = divmod(found.factor, 1 << log) if found is not None else (0, 1)
    if found is None or rest or steps & (steps - 1):
        return None
    alg, code, width, lanes = at.alg, at.code, at.width, at.active_vector()
    offset = code.emit(f"sub i64 {text('i64', scaled_integers.base(alg, found))}, {low}")
    if log:  # an offset that is not aligned becomes a large one
        offset = code.intrinsic("i64", "llvm.fshr.i64", ("i64", offset), ("i64", offset), ("i64", str(log)))
    near = code.emit(f"icmp ult i64 {code.emit(f'add i64 {offset}, {FAR}')}, {2 * FAR}")
    room = code.intrinsic("i64", "llvm.umin.i64", ("i64", bound), ("i64", str(FAR)))
    room = code.emit(f"select i1 {near}, i64 {room}, i64 0")
    if steps > 1:
        part = code.emit(f"and i64 {offset}, {steps - 1}")
        left = code.intrinsic("i64", "llvm.usub.sat.i64", ("i64", room), ("i64", part))
        offset = code.emit(f"ashr i64 {offset}, {steps.bit_length() - 1}")
        room = code.emit(f"lshr i64 {code.emit(f'add i64 {left}, {steps - 1}')}, {steps.bit_length() - 1}")
    begin = code.emit(f"sub i64 0, {offset}")
    if not found.signed:
        ahead = code.intrinsic("i64", "llvm.smax.i64", ("i64", offset), ("i64", "0"))
        begin = code.intrinsic("i64", "llvm.smax.i64", ("i64", begin), ("i64", "0"))
        room = code.intrinsic("i64", "llvm.usub.sat.i64", ("i64", room), ("i64", ahead))
    first, count = (code.splat("i32", code.emit(f"trunc i64 {each} to i32")) for each in (begin, room))
    distance = code.emit(f"sub <{width} x i32> {found.root}, {first}")
    wrong = code.mask_bits(code.emit(f"icmp uge <{width} x i32> {distance}, {count}"))
    if lanes is not None:
        wrong = code.emit(f"and i{width} {wrong}, {code.mask_bits(lanes)}")
    return code.emit(f"icmp eq i{width} {wrong}, 0")

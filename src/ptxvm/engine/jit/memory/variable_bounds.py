"""Variable bounds: what is within a variable of the module by its address needs no check.

With the check `memory`, an access must stay within the variable that its address comes from.
"""

from __future__ import annotations

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type, u32, u64
from ptxvm.algebra.value import Value, select
from ptxvm.analysis.program import Bound
from ptxvm.analysis.provenance import SPACES
from ptxvm.engine.jit.ir.lane_values import Affine, Raw, text
from ptxvm.engine.jit.memory.addressing import Addressing
from ptxvm.engine.jit.memory.lane_offsets import LaneOffsets
from ptxvm.engine.jit.node import marked_values, stack
from ptxvm.engine.jit.node.context import SYMBOL_ALIGNMENT
from ptxvm.engine.jit.node.node import NodeBuilder

OFFSETS = (1 << 32) - 1  # in a window


def part(at: NodeBuilder, bound: Bound, space: Space) -> tuple[int, int] | None:
    """The offset of the variable of an access, and its size; None if it is not known.

    It is one in the window of the variable, less the start of the frame where that is a register of the thread.
    """
    variable = at.kernel.graph.bounded.certain.get(bound)
    if variable is None or space not in (Space.GENERIC, variable.space):
        return None
    return marked_values.begin_of(at, variable), variable.size


def certain(at: NodeBuilder, space: Space, raw: Raw, size: int, *, writing: bool) -> bool:
    """Is an access at a constant distance from a variable of the module aligned, and within the variable?

    It is there for as long as the module.
    """
    if not isinstance(raw, Affine) or not isinstance(raw.base, str) or (box := LaneOffsets.of(raw, at.width)) is None:
        return False
    root, distance = at.code.sums.get(raw.base, (raw.base, 0))
    held = at.kernel.variable_at(root)
    if held is None or space not in (Space.GENERIC, held.space) or (writing and not held.writable):
        return False
    first = distance + box.least
    aligned = size <= SYMBOL_ALIGNMENT and first % size == 0 and box.fits(size)
    return aligned and first >= 0 and first + box.span + size <= held.size


def in_own_stack(at: NodeBuilder, addressing: Addressing, space: Space, raw: Raw, size: int) -> bool:
    """Is an access aligned, and at a constant place in the stack of each thread, as a parameter of a call is?

    Then it is allowed; whether it stays within its variable is another question.
    """
    if (
        space not in (Space.GENERIC, Space.PARAM)
        or at.kernel.recorded
        or not isinstance(raw, Affine)
        or not isinstance(raw.base, str)
    ):
        return False
    stack = addressing.base(Space.LOCAL)
    root, distance = at.code.sums.get(raw.base, (raw.base, 0))
    here = isinstance(stack, Affine) and (root, raw.terms) == (stack.base, stack.terms)
    return here and distance % size == 0 and 0 <= distance <= at.kernel.stack_size - size


def check(at: NodeBuilder, addressing: Addressing, bound: Bound, space: Space, raw: Raw, size: int) -> None:
    """Suspect an access that leaves its variable."""
    code, found = at.code, part(at, bound, space)
    if found is None:
        _check_mark(at, addressing, bound, space, raw, size)
        return
    begin, room = found
    variable = at.kernel.graph.bounded.certain[bound]
    if marked_values.in_placed_frame(at, variable):
        raw = at.alg.integer("sub", u64, raw, stack.start(at, at.node.frame).raw)
    if space is Space.GENERIC:
        offset, type = at.alg.integer("sub", u64, raw, addressing.base(variable.space)), u64
    else:
        offset, type = at.alg.cast("resize", u64, u32, raw, "rn"), u32
    good = code.label()
    code.branch(_inside(at, type, offset, begin, room - size), good, "suspect", likely=True)
    code.block(good)


def _check_mark(at: NodeBuilder, addressing: Addressing, bound: Bound, space: Space, raw: Raw, size: int) -> None:
    """Suspect an access that leaves the variable that the mark of its pointer tells of."""
    mark = marked_values.of_access(at, bound)
    if mark is None or not at.kernel.graph.bounded.spaces or space not in (Space.GENERIC, *SPACES):
        return
    own = (mark & marked_values.IN_LOCAL).ne(0)
    if space is Space.GENERIC:
        first = window_offset(at, addressing, Value(at.alg, u64, raw), own)
        good = first <= OFFSETS
    else:
        first = Value(at.alg, u64, at.alg.cast("resize", u32, u64, at.alg.cast("resize", u64, u32, raw, "rn"), "rn"))
        good = own if space is Space.LOCAL else ~own
    begin, end = marked_values.extent(mark)
    within = good & first.compare("ge", begin) & (first + size).compare("le", end)
    free = mark.eq(marked_values.NUMBER) | mark.eq(marked_values.LOST)
    at.suspect_if((~(within | free)).raw)


def window_offset(at: NodeBuilder, addressing: Addressing, address: Value, own: Value) -> Value:
    """How far a generic address lies behind the start of its window: that of the thread's `own` memory, or of shared memory."""
    bases: list[Value] = [Value(at.alg, u64, addressing.base(each)) for each in sorted(at.kernel.graph.bounded.spaces)]
    return address - (bases[0] if len(bases) == 1 else select(own, *bases))


def _inside(at: NodeBuilder, type: Type, offset: Raw, begin: int, last: int) -> str:
    """Is each active lane between `begin` and `begin + last`?"""
    code, width, bits, lanes = at.code, at.code.width, type.bits, at.active_vector()
    if last < 0:
        return "false"
    if lanes is None and isinstance(offset, Affine) and (box := LaneOffsets.of(offset, width)) is not None:
        first = at.alg.scalar("add", bits, offset.base, (box.least - begin) & (1 << bits) - 1)
        return code.emit(f"icmp ult i{bits} {text(f'i{bits}', first)}, {max(last - box.span + 1, 0)}")
    distances = code.emit(f"sub <{width} x i{bits}> {at.alg.vector(type, offset)}, splat (i{bits} {begin})")
    wrong = code.emit(f"icmp ugt <{width} x i{bits}> {distances}, splat (i{bits} {last})")
    if lanes is not None:
        wrong = code.emit(f"and <{width} x i1> {wrong}, {lanes}")
    return code.emit(f"icmp eq i{width} {code.mask_bits(wrong)}, 0")

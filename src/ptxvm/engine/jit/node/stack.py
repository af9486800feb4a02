"""Call stacks of run time: recursion, calls through pointers, and `alloca` (PTX 7, 9.7.17).

The code of such a function stands once.  A call pushes on a spill stack, which no address reaches, the registers that are
live after it, the start of the caller's frame, and the node to return to.  Two registers of a thread hold positions: STACK
the start of its frame in local memory, SAVED the bytes on its spill stack.
"""

from __future__ import annotations

import numpy as np

from ptxvm.algebra.types import Type, pred, u32, u64
from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound
from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.abi.host import Host
from ptxvm.engine.jit.cfg.call_stack import BACK, LEAST_FRAME, entry_size, saved_size
from ptxvm.engine.jit.cfg.nodes import SAVED, STACK, Frame
from ptxvm.engine.jit.ir.lane_values import Affine, Raw, Varying, scalar_type
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.engine.jit.node.register_shapes import Key
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.per_lane import Array, LaneNumbers

STEP = 256  # bytes, in which use of the stacks is counted: the least distance of two stacks


# ── frames ──────────────────────────────────────────────────────────────────────────────


def start(at: NodeBuilder, frame: Frame) -> Value:
    """The address of the outermost frame that a frame is inlined in."""
    if not frame.root.shared:
        return Value(at.alg, u64, Affine(0))
    return at.slot((STACK, 0), u32).to(u64)


def end(at: NodeBuilder, frame: Frame) -> Value:
    """The end of a frame, with what `alloca` has added."""
    fixed = start(at, frame) + frame.end
    return fixed + at.slot((frame.extra, 0), u32).to(u64) if frame.extra is not None else fixed


def set_end(at: NodeBuilder, frame: Frame, value: Value) -> None:
    """Set the end of a frame."""
    if frame.extra is None:
        raise TypeError(f"the frame of '{frame.function.name}' has a fixed size")
    at.assign((frame.extra, 0), u32, (value - (start(at, frame) + frame.end)).to(u32))


def allocate(at: NodeBuilder, bound: Bound, size: Value, alignment: Value | int) -> Value:
    """`alloca`: grow the frame upward; returns the address of the new bytes."""
    frame = at.node.frame
    known = alignment.raw.constant if isinstance(alignment, Value) and isinstance(alignment.raw, Affine) else alignment
    step = max(known if isinstance(known, int) else 8, 8)
    first = (end(at, frame) + (step - 1)) & ((1 << 64) - step)
    last = first + size
    check(at, bound, last, Overflow("alloca", at.kernel.stack_size))
    set_end(at, frame, last)
    return first


@dataclass(frozen=True, slots=True)
class Overflow:
    """Host call: the fault of a stack overflow."""

    cause: str
    room: int

    def __call__(self, host: Host, bound: Bound, threads: LaneNumbers, values: list[Array]) -> None:
        """Raise the fault."""
        raise AccessFault("stack-overflow", f"{self.cause} needs {int(np.max(values[0]))} bytes of a stack of {self.room}")


def check(at: NodeBuilder, bound: Bound, last: Value, work: Overflow) -> None:
    """Fault if an end lies beyond the stack of a lane; keep count of how much of stacks without a bound is in use."""
    if not at.kernel.unbounded:
        _refuse_beyond(at, bound, last, work)
        return
    code = at.code
    code.one_warp()
    counted = at.launch_field("stack_used")
    used = code.emit(f"load i64, ptr {counted}, align 8", pure=False)
    beyond = at.bits_of(last.compare("gt", Value(at.alg, u64, Affine(used))).raw)
    more, enough = code.label(), code.label()
    code.branch(code.emit(f"icmp eq i32 {code.emit(f'and i32 {beyond}, {at.active_text()}')}, 0"), enough, more, likely=True)
    with code.scope():
        code.block(more)
        _refuse_beyond(at, bound, last, work)
        ends, active = at.alg.vector(u64, last.raw), at.active_vector()
        if active is not None:
            ends = code.emit(f"select <{WARP} x i1> {active}, <{WARP} x i64> {ends}, <{WARP} x i64> zeroinitializer")
        most = code.intrinsic("i64", f"llvm.vector.reduce.umax.v{WARP}i64", (f"<{WARP} x i64>", ends))
        step = code.emit(f"add i64 {most}, {STEP - 1}")
        code.run(f"store i64 {code.emit(f'and i64 {step}, {-STEP}')}, ptr {counted}, align 8")
        code.jump(enough)
    code.block(enough)


def _refuse_beyond(at: NodeBuilder, bound: Bound, last: Value, work: Overflow) -> None:
    at.refuse(bound, last.compare("gt", last.lift(work.room)), work, [(u64, last.raw)])


# ── the spill stack ─────────────────────────────────────────────────────────────────────


def _addresses(at: NodeBuilder, offset: int) -> str:
    """The address, in each lane, so many bytes from the top of the spill stack."""
    own = at.slot((SAVED, 0), u32).to(u64) + Value(
        at.alg, u64, Affine("%saved.warp", ((tuple(range(WARP)), at.kernel.saved_room),))
    )
    vector = at.alg.vector(u64, (own + offset).raw)
    return at.code.emit(f"getelementptr i8, ptr %saved, <{WARP} x i64> {vector}")


def _spill(at: NodeBuilder, offset: int, type: Type, raw: Raw) -> None:
    llvm, vector = scalar_type(type), at.alg.vector(type, at.alg.tight(type, raw))
    if type is pred:
        llvm, vector = "i8", at.code.emit(f"zext <{WARP} x i1> {vector} to <{WARP} x i8>")
    at.scatter(llvm, vector, _addresses(at, offset), at.active_vector())


def _reload(at: NodeBuilder, offset: int, type: Type) -> Value:
    llvm = "i8" if type is pred else scalar_type(type)
    vector = at.gather(llvm, _addresses(at, offset), at.active_vector())
    if type is pred:
        vector = at.code.emit(f"icmp ne <{WARP} x i8> {vector}, zeroinitializer")
    return Value(at.alg, type, Varying(vector))


def push(at: NodeBuilder, bound: Bound, spilled: list[tuple[Key, Type]], call: tuple[Frame, int], caller_end: Value) -> None:
    """Spill registers and the return node, and begin the callee's frame after the caller's."""
    callee, back = call
    name, first = callee.function.name, (caller_end + 15) & ((1 << 64) - 16)
    size = max(at.kernel.image.frame_size(callee.function, bound), LEAST_FRAME)
    check(at, bound, first + size, Overflow(f"the call of '{name}'", at.kernel.stack_size))
    offset = 0
    for key, type in spilled:
        _spill(at, offset, type, at.slot(key, type).raw)
        offset += entry_size(type)
    _spill(at, offset, u32, Affine(back))
    _spill(at, offset + 4, u32, at.slot((STACK, 0), u32).raw)
    at.assign((SAVED, 0), u32, at.slot((SAVED, 0), u32) + saved_size(spilled))
    at.assign((STACK, 0), u32, first.to(u32))
    if callee.extra is not None:
        at.assign((callee.extra, 0), u32, Value(at.alg, u32, Affine(0)))


def pop(at: NodeBuilder, spilled: list[tuple[Key, Type]]) -> None:
    """Reload the registers, and go back to the caller's frame."""
    first, offset, values = _reload(at, 4 - BACK, u32), -saved_size(spilled), []
    for key, type in spilled:
        values.append((key, type, _reload(at, offset, type)))
        offset += entry_size(type)
    at.assign((SAVED, 0), u32, at.slot((SAVED, 0), u32) - saved_size(spilled))
    at.assign((STACK, 0), u32, first)
    for key, type, value in values:
        at.assign(key, type, value)


def returns_to(at: NodeBuilder) -> Raw:
    """The node to which each lane returns."""
    number: Raw = _reload(at, -BACK, u32).raw
    return number

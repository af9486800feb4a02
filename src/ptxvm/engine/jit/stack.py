"""The stack of a thread where it is known only when the code runs (PTX 7, 9.7.17).

Functions call themselves, or are called through pointers; and a function may take memory while it runs.  Such a
function stands in the code once.  A call leaves on a second stack, which no address reaches, the registers that the
caller needs afterwards, where its frame begins, and the node to which the callee returns.  The two stacks are measured
in registers of the thread: STACK is where the frame begins, SAVED how much the second one holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxvm.algebra.types import Type, pred, u32, u64
from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound
from ptxvm.engine.jit.plan import SAVED, STACK, Frame
from ptxvm.engine.jit.raw import WARP, Lin, Raw, Vec, scalar_type
from ptxvm.machine.faults import AccessFault

if TYPE_CHECKING:
    from ptxvm.engine.jit.emitter import Emitter
    from ptxvm.engine.jit.plan import Node
    from ptxvm.engine.jit.registers import Key

ROOM = 1 << 18  # bytes of the second stack of a thread
ENTRY = 16  # of a register there; and of the last entry: the node, and where the caller's frame begins
UNBOUNDED = 1 << 16  # bytes of local memory of a thread where the depth of calls has no bound


# ── frames ──────────────────────────────────────────────────────────────────────────────


def start(at: Emitter, frame: Frame) -> Value:
    """Where the outermost of the frames begins that one is part of."""
    if not frame.root.shared:
        return Value(at.alg, u64, Lin(0))
    return at.slot((STACK, 0), u32).to(u64)


def end(at: Emitter, frame: Frame) -> Value:
    """Where a frame ends, with what the function has taken."""
    fixed = start(at, frame) + frame.end
    return fixed + at.slot((frame.extra, 0), u32).to(u64) if frame.extra is not None else fixed


def set_end(at: Emitter, frame: Frame, value: Value) -> None:
    """Let it end elsewhere."""
    if frame.extra is None:
        raise TypeError("a frame that does not grow")
    at.assign((frame.extra, 0), u32, (value - (start(at, frame) + frame.end)).to(u32))


def allocate(at: Emitter, bound: Bound, size: Value, alignment: Value | int) -> Value:
    """`alloca`: the frame grows upward."""
    frame = at.node.frame
    known = alignment.raw.constant if isinstance(alignment, Value) and isinstance(alignment.raw, Lin) else alignment
    step = max(known if isinstance(known, int) else 8, 8)
    first = (end(at, frame) + (step - 1)) & ((1 << 64) - step)
    last = first + size
    check(at, bound, last, Overflow("alloca", at.kernel.stack_size))
    set_end(at, frame, last)
    return first


@dataclass(frozen=True, slots=True)
class Overflow:
    """The stack has too little room."""

    what: str
    room: int

    def __call__(self, machine: Any, bound: Bound, threads: Any, values: list[Any]) -> None:
        """Refuse it."""
        raise AccessFault("stack-overflow", f"{self.what} needs {int(np.max(values[0]))} bytes of a stack of {self.room}")


def check(at: Emitter, bound: Bound, last: Value, work: Overflow) -> None:
    """Refuse what goes beyond the stack of a lane."""
    at.refuse(bound, last.compare("gt", last.lift(work.room)), work, [(u64, last.raw)])


# ── the second stack ────────────────────────────────────────────────────────────────────


def _places(at: Emitter, offset: int) -> str:
    """Where the entry is that many bytes from the end, in each lane."""
    own = at.slot((SAVED, 0), u32).to(u64) + Value(at.alg, u64, Lin("%saved.warp", ((tuple(range(WARP)), ROOM),)))
    vector = at.alg.vector(u64, (own + offset).raw)
    return at.code.emit(f"getelementptr i8, ptr %saved, <{WARP} x i64> {vector}")


def _put(at: Emitter, offset: int, type: Type, raw: Raw) -> None:
    llvm, vector = scalar_type(type), at.alg.vector(type, at.alg.tight(type, raw))
    if type is pred:
        llvm, vector = "i8", at.code.emit(f"zext <{WARP} x i1> {vector} to <{WARP} x i8>")
    at.scatter(llvm, vector, _places(at, offset), at.active_vector())


def _got(at: Emitter, offset: int, type: Type) -> Value:
    llvm = "i8" if type is pred else scalar_type(type)
    vector = at.gather(llvm, _places(at, offset), at.active_vector())
    if type is pred:
        vector = at.code.emit(f"icmp ne <{WARP} x i8> {vector}, zeroinitializer")
    return Value(at.alg, type, Vec(vector))


def push(at: Emitter, bound: Bound, kept: list[tuple[Key, Type]], call: tuple[Frame, int], caller_end: Value) -> None:
    """Leave what is needed after a call, and begin the callee's frame beyond the caller's."""
    callee, back = call
    name, first = callee.function.name, (caller_end + 15) & ((1 << 64) - 16)
    size = max(at.kernel.image.frame_size(callee.function, bound), 16)
    check(at, bound, first + size, Overflow(f"the call of '{name}'", at.kernel.stack_size))
    more = at.slot((SAVED, 0), u32) + ENTRY * (len(kept) + 1)
    check(at, bound, more.to(u64), Overflow(f"the return from '{name}'", ROOM))
    for n, (key, type) in enumerate(kept):
        _put(at, ENTRY * n, type, at.slot(key, type).raw)
    _put(at, ENTRY * len(kept), u32, Lin(back))
    _put(at, ENTRY * len(kept) + 4, u32, at.slot((STACK, 0), u32).raw)
    at.assign((SAVED, 0), u32, more)
    at.assign((STACK, 0), u32, first.to(u32))
    if callee.extra is not None:
        at.assign((callee.extra, 0), u32, Value(at.alg, u32, Lin(0)))


def pop(at: Emitter, kept: list[tuple[Key, Type]]) -> None:
    """Take it back."""
    first = _got(at, 4 - ENTRY, u32)
    values = [_got(at, ENTRY * (n - len(kept) - 1), type) for n, (_, type) in enumerate(kept)]
    at.assign((SAVED, 0), u32, at.slot((SAVED, 0), u32) - ENTRY * (len(kept) + 1))
    at.assign((STACK, 0), u32, first)
    for (key, type), value in zip(kept, values, strict=True):
        at.assign(key, type, value)


def returns_to(at: Emitter) -> Raw:
    """The node to which each lane returns."""
    place: Raw = _got(at, -ENTRY, u32).raw
    return place


def kept_registers(node: Node) -> list[tuple[Key, Type]]:
    """The registers that a call keeps on the second stack, with their types."""
    found: list[tuple[Key, Type]] = []
    frame: Frame | None = node.frame
    while frame is not None:
        for register in frame.function.registers:
            if node.kept >> register.index + frame.registers & 1:
                found += [((register.index + frame.registers, part), register.type) for part in range(register.count)]
        if frame.extra is not None:
            found.append(((frame.extra, 0), u32))
        frame = frame.parent
    return found

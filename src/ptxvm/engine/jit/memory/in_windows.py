"""In which window a generic address lies, by compiled code: it searches a table of the launch (`isspacep`, PTX 9.7.9.18)."""

from __future__ import annotations

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import pred, u64
from ptxvm.algebra.value import Value
from ptxvm.engine.jit.abi.launch_record import REACHED, offset
from ptxvm.engine.jit.ir.lane_values import Varying
from ptxvm.engine.jit.ir.runtime import runtime
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.allocation import NULL_LIMIT
from ptxvm.machine.memory import WINDOWS


def within(at: NodeBuilder, space: Space, address: Value) -> Value:
    """Is an address in a space?  What is in no window is `.global`."""
    code, kernel = at.code, at.kernel
    code.one_warp()
    name = kernel.unit.helper("ptxvm.in_windows", runtime("in_windows", windows=offset("windows")))
    room = at.buffer(f"[1 x <{WARP} x i128>]", 6)
    code.run(f"store <{WARP} x i64> {at.alg.vector(u64, address.raw)}, ptr {room}, align 64")
    asked = sum(REACHED[each] for each in WINDOWS) if space is Space.GLOBAL else REACHED[space]
    found = code.emit(f"call i32 @{name}(ptr %ctx, ptr {room}, i64 {asked})", pure=False)
    answer = Value(at.alg, pred, Varying(code.all_lanes(found)))
    return ~answer & address.compare("ge", address.lift(NULL_LIMIT)) if space is Space.GLOBAL else answer

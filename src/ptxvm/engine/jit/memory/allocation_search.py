"""The search of an access in the table of known allocations, by compiled code, before the host is called."""

from __future__ import annotations

from ptxvm.algebra.state_space import Space
from ptxvm.engine.jit.abi.launch_record import REACHED, WRITABLE, offset
from ptxvm.engine.jit.ir.runtime import runtime
from ptxvm.engine.jit.node.context import KernelContext
from ptxvm.isa.special_registers import WARP

NAME = "ptxvm.search_allocations"


def need(space: Space, *, writing: bool) -> int:
    """The flags that a row of the table needs for an access."""
    return REACHED[space] | (WRITABLE if writing else 0)


def helper(kernel: KernelContext) -> str:
    """Define the search function of a kernel (`runtime/allocation_search.ll`); returns its name."""
    kernel.unit.declare("llvm.cttz.i64", "i64", "i64", "i1 immarg")
    fields = {field: offset(field) for field in ("rows", "row_count", "local", "check")}
    sizes = {"stack_size": kernel.stack_size, "local_stride": kernel.local_stride, "warp_stride": WARP * kernel.local_stride}
    generic = REACHED[Space.GENERIC] | REACHED[Space.PARAM]
    return kernel.unit.helper(NAME, runtime("allocation_search", **fields, **sizes, generic_or_param=generic))

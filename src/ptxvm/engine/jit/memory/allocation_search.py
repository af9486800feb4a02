"""The second look at an access: compiled code that searches the memory which the launch knows, before it asks Python."""

from __future__ import annotations

from ptxvm.engine.jit.abi.launch_record import REACHED, WRITABLE, offset
from ptxvm.engine.jit.ir.runtime import runtime
from ptxvm.engine.jit.node.context import KernelContext
from ptxvm.isa.special_registers import WARP

NAME = "ptxvm.search_allocations"


def need(space: str, *, writing: bool) -> int:
    """The flags that a row must have for an access."""
    return REACHED[space] | (WRITABLE if writing else 0)


def helper(kernel: KernelContext) -> str:
    """The function of a kernel that looks (`runtime/allocation_search.ll`); its name."""
    kernel.unit.declare("llvm.cttz.i64", "i64", "i64", "i1 immarg")
    fields = {field: offset(field) for field in ("rows", "row_count", "local", "check")}
    sizes = {"stack_size": kernel.stack_size, "local_stride": kernel.local_stride, "warp_stride": WARP * kernel.local_stride}
    generic = REACHED["generic"] | REACHED["param"]
    return kernel.unit.helper(NAME, runtime("allocation_search", **fields, **sizes, generic_or_param=generic))

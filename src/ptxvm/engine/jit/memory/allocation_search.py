"""The search of an access in the table of known allocations, by compiled code, before the host is called."""

from __future__ import annotations

from ptxvm.algebra.state_space import Space
from ptxvm.engine.jit.abi.launch_record import NOTED, REACHED, WRITABLE, offset
from ptxvm.engine.jit.ir.runtime import runtime
from ptxvm.engine.jit.node.context import KernelContext
from ptxvm.isa.effects import Verb
from ptxvm.isa.special_registers import WARP

NAME = "ptxvm.search_allocations"
REMEMBER_TAGS = """
  %tags.pointer = getelementptr i8, ptr %ctx, i64 {}
  %tags = load ptr, ptr %tags.pointer, align 8
  %tag.pointer = getelementptr i64, ptr %tags, i64 %r
  %tag = load i64, ptr %tag.pointer, align 8
  %own.tag = getelementptr i8, ptr %own, i64 24
  store i64 %tag, ptr %own.tag, align 8"""


def need(space: Space, verb: Verb, *, noted: bool) -> int:
    """The flags that a row of the table needs for an access, which the host has to have `noted` for the allocation."""
    return REACHED[space] | (WRITABLE if verb is not Verb.READ else 0) | (NOTED[verb] if noted else 0)


def helper(kernel: KernelContext) -> str:
    """Define the search function of a kernel (`runtime/allocation_search.ll`); returns its name."""
    kernel.unit.declare("llvm.cttz.i64", "i64", "i64", "i1 immarg")
    fields = {field: offset(field) for field in ("rows", "row_count", "local", "check")}
    remember_tags = REMEMBER_TAGS.format(offset("row_tags")) if kernel.tagged else ""
    sizes = {"stack_size": kernel.stack_size, "local_stride": kernel.local_stride, "warp_stride": WARP * kernel.local_stride}
    generic = REACHED[Space.GENERIC] | REACHED[Space.PARAM]
    return kernel.unit.helper(
        NAME, runtime("allocation_search", **fields, **sizes, generic_or_param=generic, remember_tags=remember_tags)
    )

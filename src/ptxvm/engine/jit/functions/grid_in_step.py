"""The grid function of kernels with grid-stride loops: CTAs in step where a launch walks far through memory, else in order."""

from __future__ import annotations

from ptxvm.engine.jit.abi.launch_record import offset
from ptxvm.engine.jit.functions import grid_resident, grid_sequential
from ptxvm.engine.jit.functions.float_environment import BODY
from ptxvm.engine.jit.ir.runtime import runtime
from ptxvm.engine.jit.node.context import KernelContext


def grid_function(kernel: KernelContext) -> str:
    """Run some CTAs (`runtime/grid_in_step.ll`)."""
    alone, together = f"{BODY}.in_order", f"{BODY}.in_step"
    return "\n".join(
        [
            grid_sequential.grid_function(kernel, alone),
            grid_resident.grid_function(kernel, together, on_fault="retire"),
            runtime("grid_in_step", name=BODY, alone=alone, together=together, in_step=offset("in_step")),
        ]
    )

"""The loop over the warps of a CTA in the straight version: whole warps abreast, others in the masked version."""

from __future__ import annotations

from ptxvm.engine.jit.abi.launch_record import offset
from ptxvm.engine.jit.abi.states import LEFT, PARTED, STRAIGHT
from ptxvm.engine.jit.ir.runtime import runtime
from ptxvm.engine.jit.node.context import KernelContext
from ptxvm.isa.special_registers import WARP


def rounds(kernel: KernelContext, release: str) -> str:
    """The part of the grid function that runs a CTA; `release` ends a round of warps, if there are barriers."""
    abreast = kernel.width // WARP
    values = {
        "abreast": abreast,
        "last_group": kernel.threads // WARP - abreast,
        "left": LEFT,
        "masked": offset("masked"),
        "parted": PARTED,
        "record_size": kernel.record_size,
        "warps": kernel.warps,
    }
    if not release:
        return runtime("whole_warps", abreast_less_1=abreast - 1, **values)
    return runtime("whole_warps_with_barriers", release=release, states_size=4 * kernel.warps, straight=STRAIGHT, **values)

"""The memory in which compiled code passes operands to the host, and to functions of the module that are tried before it.

Each operand has `STEP` bytes, in which the values of all lanes follow each other; results come to the same place.
"""

from __future__ import annotations

from ptxvm.isa.special_registers import WARP

STEP = 16 * WARP  # bytes from one operand to the next: none is longer than 16 for a lane

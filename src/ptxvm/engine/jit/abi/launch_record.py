"""The launch record, which compiled code and Python share: fields of 8 bytes each.

Each host thread that runs CTAs has its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from ptxvm.algebra.state_space import Space
from ptxvm.isa.effects import Verb

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Record: TypeAlias = "npt.NDArray[np.uint64]"

FIELDS = [
    "params", "shared", "local", "check", "trap", "tick", "shapeless", "nctaid.x", "nctaid.y", "nctaid.z",
    "ayes", "voters", "ayes_then", "voters_then", "row", "ctaid.x", "barriers", "host_call",
    "masked", "rows", "row_count", "addresses", "deadlock", "records", "states", "cta_barriers", "resident", "slot", "saved",
    "stack_used", "windows",
    "instructions", "thread_instructions", "rounds", "cached_outputs", "left", "position", "in_step", "sole", "updating",
    "copy_plans", "tensor_cells", "tensor_products", "texture_plans", "surface_plans", "clock_gettime",
    # of a deferred kernel
    "settle",
    # of an instrumented kernel
    "epoch", "cta_epoch", "grid_epoch", "arrived", "suspicion", "renumber", "shadow", "reads", "local_marks", "clocks",
    "register_masks", "first_masks", "copies", "row_tags", "met", "told", "ask_order", "tells",
    # of a profiled one
    "counters", "places", "place_count",
    # of a recorded one
    "arena", "arena_size", "to_writes", "to_reads",
]  # fmt: skip
POINTERS = {
    "check", "trap", "tick", "shapeless", "masked", "host_call", "rows", "addresses", "renumber", "deadlock", "records",
    "states", "cta_barriers", "saved", "stack_used", "windows", "left", "clocks", "register_masks", "copies",
    "row_tags", "told", "ask_order", "counters", "copy_plans", "tensor_cells", "tensor_products", "texture_plans",
    "surface_plans", "settle", "clock_gettime",
}  # fmt: skip
UNBOUNDED_LOCAL = 1 << 16  # bytes of stack of a thread where the depth of calls has no bound
MOST_STREAMS = 64  # parameters that have a bit in `cached_outputs`: 0 makes stores through them non-temporal
ALL_BITS = (1 << 64) - 1
TICKS = 1 << 20  # iterations of loops between two checks of the clock
OF_THREAD = 1 << 31  # a bit of `position`: its upper half is the number of a thread, not of a warp
AT = {name: number for number, name in enumerate(FIELDS)}

# A row of the table of known allocations: its bounds, and the spaces that reach it.
ROWS = 64
ROW = ("start", "end", "origin", "flags")
REACHED = {Space.GENERIC: 1, Space.GLOBAL: 2, Space.CONST: 4, Space.PARAM: 8, Space.SHARED: 16, Space.LOCAL: 32}
WRITABLE = 64
NOTED = {Verb.READ: 128, Verb.WRITE: 256, Verb.UPDATE: 128 | 256}
"""In instrumented code: the host has noted that the kernel accesses it so; `row_tags` tells where its tags are, if any."""

# Bytes of the record of a suspended warp before the lane masks of its nodes; the second word is the node that ran last.
HEADER = 64


def offset(field: str) -> int:
    """The offset of a field in bytes."""
    return 8 * AT[field]


def cta(record: Record) -> int:
    """The number of the CTA that runs: that of the first CTA of its row, plus `ctaid.x`.

    Compiled code stores `ctaid.x` only before a host call, since a store for each CTA would slow down short kernels.
    """
    return int(record[AT["row"]]) + int(record[AT["ctaid.x"]]) & ALL_BITS  # in clusters, the row may begin below 0


def counted(record: Record | memoryview) -> tuple[int, int]:
    """How many instructions and thread-instructions the CTAs have executed so far."""
    return int(record[AT["instructions"]]), int(record[AT["thread_instructions"]])

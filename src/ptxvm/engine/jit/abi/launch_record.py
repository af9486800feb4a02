"""The record of a launch, which compiled code and Python share: fields of 8 bytes each.

Each thread of the host that runs CTAs has one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Record: TypeAlias = "npt.NDArray[np.uint64]"

FIELDS = [
    "params", "shared", "local", "check", "function", "trap", "tick", "shapeless", "nctaid.x", "nctaid.y", "nctaid.z",
    "ayes", "voters", "ayes_then", "voters_then", "row", "ctaid.x", "barriers", "host_call",
    "masked", "rows", "row_count", "addresses", "deadlock", "records", "states", "cta_barriers", "resident", "slot", "saved",
    "instructions", "thread_instructions", "rounds", "cached_outputs", "left", "position",
    "epoch", "cta_epoch", "arrived", "suspicion", "renumber", "shadow", "reads",  # of a watched kernel
]  # fmt: skip
POINTERS = {
    "check", "function", "trap", "tick", "shapeless", "masked", "host_call", "rows", "addresses", "renumber", "deadlock",
    "records", "states", "cta_barriers", "saved", "left",
}  # fmt: skip
UNBOUNDED_LOCAL = 1 << 16  # bytes of local memory of a thread where the depth of calls has no bound
MOST_STREAMS = 64  # parameters that have a bit in `kept`: 0 where stores through them go past the caches
TICKS = 1 << 20  # turns of loops between two looks at the clock
AT = {name: number for number, name in enumerate(FIELDS)}

# The transcendental functions, by the numbers that compiled code calls them by; DOUBLE is added for f64.
FUNCTIONS = ("sin", "cos", "lg2", "ex2", "tanh")
DOUBLE = 16

# A row of what memory a launch knows: an allocation, and by which spaces it is reached.
ROWS = 64
ROW = ("start", "end", "origin", "flags")
REACHED = {"generic": 1, "global": 2, "const": 4, "param": 8, "shared": 16, "local": 32}
WRITABLE = 64

# Bytes of the record of a suspended warp before the masks of the lanes at each node; the second word is the seat that ran last.
HEADER = 64


def offset(field: str) -> int:
    """Where a field is, in bytes."""
    return 8 * AT[field]


def cta(record: Record) -> int:
    """The number of the CTA that runs: of the first one of its row, and its place there.

    Compiled code writes the latter down only where it asks for something, so that memory is written to by kernels alone.
    """
    return int(record[AT["row"]]) + int(record[AT["ctaid.x"]])


def counted(record: Record | memoryview) -> tuple[int, int]:
    """Instructions and thread-instructions of the CTAs that have run."""
    return int(record[AT["instructions"]]), int(record[AT["thread_instructions"]])

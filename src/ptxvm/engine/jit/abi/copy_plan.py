"""Plans of tensor copies: what compiled code needs to copy boxes of a tensor, which the host finds from the tensor map.

A plan holds for the bytes of the map, and for boxes that are whole in the tensor.  Its words have 64 bits, in the order of
`WORDS`: the address of the map and its 128 bytes; the address of the tensor, the bytes of an element and of a row of the box,
the number of rows, their distance in shared memory, and the bytes of all; the last coordinate of a box along each dimension,
and the strides of the outer dimensions; the bits of an address in shared memory that move (`mask` of those from bit 7 on, and
`by` how far up); the address of the offsets of the rows, the size in shared memory, and 1 where the tensor may be written.
"""

from __future__ import annotations

from ptxvm.isa.tensor_map import SIZE

PLANS = 16  # that a host thread remembers, by the address of the map
MOST_RANK = 5
WORDS = (
    "map", *(f"contents.{n}" for n in range(SIZE // 8)), "base", "element", "row.size", "rows", "pitch", "amount",
    *(f"last.{n}" for n in range(MOST_RANK)), *(f"stride.{n}" for n in range(1, MOST_RANK)),
    "mask.0", "by.0", "mask.1", "by.1", "offsets", "size", "writable",
)  # fmt: skip

"""What compiled code knows of tensor memory: the cells of resident CTAs, and plans of products, which the host enters.

`CELLS` are the words of 64 bits of a resident CTA: its number plus 1, or 0 where nothing is known; where its cells lie, the
`.cta_group` that it uses; and for each 32 columns a byte, which is 0 where they are not allocated, and differs by allocation.

`PRODUCT` are those of a plan: the instruction descriptor with a number of the kind and of where A lies; the descriptors of A
and B without the bits that say where the matrices begin; the function (`abi.tile_product`) with memory that it needs and the
numbers of tiles; the rows of D, and a table of their lanes.  Of a matrix in shared memory there are a table of the offsets of
its pieces, their number, the last offset, and base and mask of the swizzle; of an MN-major one, the memory for its K-major
copy and the pieces that are next to each other along M or N; of A in tensor memory the words of a row.
"""

from __future__ import annotations

from ptxvm.isa.tensor_memory import COLUMNS

UNIT = 32  # columns
CELLS = ("cta", "cells", "ctas", "owners.0", "owners.1")
OWNERS = COLUMNS // UNIT  # bytes
PRODUCTS = 16  # plans that a host thread remembers
OF_MATRIX = ("offsets", "pieces", "last", "base", "mask", "copy", "units")
PRODUCT = (
    "key", "a", "b", "function", "out", "least", "rows.16", "columns.8", "height", "lanes", "words",
    *(f"{matrix}.{word}" for matrix in "ab" for word in OF_MATRIX),
)  # fmt: skip
MOST_PIECES = 512  # of a matrix

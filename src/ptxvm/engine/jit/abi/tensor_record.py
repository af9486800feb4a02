"""What compiled code knows of tensor memory: the cells of resident CTAs, and plans of products, which the host enters.

`CELLS` are the words of 64 bits of a resident CTA: its number plus 1, or 0 where nothing is known; where its cells lie, the
`.cta_group` that it uses; and for each 32 columns a byte, which is 0 where they are not allocated, and differs by allocation.

`PRODUCT` are those of a plan: the instruction descriptor with a number of the kind and of where A lies; the descriptors of A
and B without the bits that say where the matrices begin; the function (`abi.tile_product`) with memory that it needs and the
numbers of tiles; the rows of D, and a table of their lanes.  Where the columns of D lie in several `parts`, the function is
called for each: `part` are the pieces of its columns of B, and `kept` is memory for D as it was before.

Of a matrix in shared memory there are a table of the offsets of its pieces, their number, the last offset, and base, mask and
unit (a power of two) of the swizzle.  What is not multiplied as it lies is copied: of an MN-major matrix, `units` are the
pieces next to each other along M or N; `flip` has the sign bits of negated elements.  Of A in tensor memory there are the
words of a row.  Of a sparse A, `places` is a table of its metadata: of each chunk, the distance of the word in bytes times
8, and which four bits of the word; they take some `meta.columns`.  `filled` is memory for A with its zeros.

Of the scales of a matrix, `table` has for each where it is in the cells, and where in `held` it goes; they take some `columns`.
Bytes are multiplied by them before: `values` and `factors` are tables of what a byte and a scale mean, `exponents` of the
least exponent with a scale, which `least` has for each row; `product` is memory for the products, of bf16.
"""

from __future__ import annotations

from ptxvm.isa.tensor_memory import COLUMNS

UNIT = 32  # columns
CELLS = ("cta", "cells", "ctas", "owners.0", "owners.1")
OWNERS = COLUMNS // UNIT  # bytes
PRODUCTS = 16  # plans that a host thread remembers
OF_SCALES = ("table", "count.all", "columns", "held", "values", "factors", "exponents", "least", "product")
OF_MATRIX = ("offsets", "pieces", "last", "base", "mask", "unit", "copy", "units", "flip")
PRODUCT = (
    "key", "a", "b", "function", "out", "least", "rows.16", "columns.8", "height", "lanes", "words", "parts", "part",
    "kept", "places", "meta.columns", "filled", *(f"{matrix}.{word}" for matrix in "ab" for word in OF_MATRIX),
    *(f"scale_{matrix}.{word}" for matrix in "ab" for word in OF_SCALES),
)  # fmt: skip
MOST_PIECES = 1024  # of a matrix

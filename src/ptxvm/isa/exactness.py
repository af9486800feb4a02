"""Exactness: whether results are exact, the bits that hardware gives, or within a bound.

The ISA defines most results.  Where it gives a bound only, or leaves an order open, a declaration says so (`exact=`) with
one of these, or with several where its variants differ.  Without a word an instruction that only computes is `DEFINED`.
"""

from __future__ import annotations

from ptxvm.named_tuple import NamedTuple


class Exactness(NamedTuple):
    """In a word, and what ptxvm computes and what that was held against."""

    word: str
    said: str


DEFINED = Exactness("exact", "The ISA defines every bit of the result, and ptxvm computes it.")
MOVED = Exactness("exact", "Bits are moved, never changed.")
TRUNCATED = Exactness(
    "exact",
    "The ISA defines the bits: the lower half of the operand is ignored, that of the result is zero, and subnormals are "
    "flushed.",
)
IN_TURN = Exactness("exact", "One operation at a time; in which order threads come is open, and sums of floats depend on it.")
REST = Exactness("exact", "With a rounding modifier, and for .f64 without .approx, the ISA defines every bit.")
FILTERED = Exactness(
    "exact",
    "Without a filter. A linear filter has weights of 9 bits (1.8), as hardware has; the order in which the weighted texels "
    "are added up is not documented.",
)
SILICON = Exactness(
    "as silicon",
    "The ISA bounds the error of .approx only; ptxvm computes the bits that sm_50 to sm_75 give, from coefficients that an "
    "exhaustive sweep of recorded results determines and that random inputs confirm.",
)
ANGLES = Exactness(
    "as silicon",
    f"{SILICON.said} From sm_120 on the reduced angle is rounded, as the one sine that was recorded there shows.",
)
SUMS = Exactness(
    "as silicon",
    "The ISA leaves open how the products are added up; ptxvm does it as the tensor cores of the target do, Volta to "
    "Blackwell, and is held to recorded results. Integers and bits are exact, and f64 is a chain of fused multiply-adds.",
)
SPARSE_SUMS = Exactness(
    "as dense",
    "The stored elements of A and those of B that they meet are added up as the tensor cores add a dense product of half the "
    "depth, as recorded sums of Hopper are. Integers are exact.",
)
DIVISION = Exactness(
    "as silicon",
    ".approx and .full are products with rcp.approx, and scaled, as an H200 computes them; with a rounding modifier the ISA "
    "defines every bit.",
)
SHORTENED = Exactness(
    "as silicon", "The bits of the function of f32, cut off: so an H200 gives them for every input, which was recorded."
)
REFINED = Exactness("as silicon", "One step of refinement from the gross result, as ptxas writes it; an H200 gives these bits.")
BOUNDED = Exactness(
    "within bound",
    "ptxvm rounds the true value, which is within the error that the ISA allows. A GPU may differ in the last bits: an H200 "
    "does, as its recorded results show.",
)

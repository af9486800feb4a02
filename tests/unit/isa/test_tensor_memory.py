"""The descriptors of `tcgen05`: fields that cannot be are named (PTX 9.7.16.4)."""

from __future__ import annotations

import pytest

from ptxvm.algebra.types import e2m1, f16, f32, ue4m3
from ptxvm.isa.shared_matrix import Swizzle
from ptxvm.isa.tensor_memory import InvalidDescriptor, Multiply, instruction_descriptor, shared_descriptor, zero_columns

HALVES = 1 << 4 | 64 // 8 << 17 | 128 // 16 << 24


def test_the_fields_of_an_instruction_descriptor():
    found = instruction_descriptor(Multiply("", kind="f16"), HALVES | 1 << 14 | 1 << 15)
    assert (found.m, found.n, found.k, found.d, found.a) == (128, 64, 16, f32, f16)
    assert (found.negated, found.transposed) == ((False, True), (True, False))
    scaled = 1 << 7 | 1 << 10 | 8 << 17 | 1 << 27 | 2 << 29
    found = instruction_descriptor(Multiply("", kind="mxf4nvf4", blocks=4), scaled)
    assert (found.m, found.k, found.a, found.scales, found.scale_ids) == (128, 64, e2m1, ue4m3, (2, 0))
    assert instruction_descriptor(Multiply("", kind="mxf4nvf4", blocks=4), scaled | 1 << 31).k == 96


@pytest.mark.parametrize(
    ("work", "bits", "said"),
    [
        (Multiply("", kind="f16"), HALVES | 4, "sparse"),
        (Multiply("", kind="f16"), HALVES | 3 << 7, "type of A"),
        (Multiply("", kind="f16"), HALVES ^ 1 << 4 | 1 << 10, "D of .f16 .* not of .bf16"),
        (Multiply("", kind="f16"), HALVES ^ 1 << 4 | 1 << 7, "D of .f16 .* not of .bf16"),
        (Multiply("", kind="tf32"), HALVES ^ 3 << 4 | 2 << 7 | 2 << 10, "type of D"),
        (Multiply("", kind="f16"), HALVES ^ 1 << 27, "shape 0 by 64"),
        (Multiply("", kind="i8"), 2 << 4 | 40 // 8 << 17 | 8 << 24, "shape 128 by 40"),
        (Multiply("", kind="f16", weights=True), 1 << 4 | 32 // 8 << 17 | 8 << 24, "shape 128 by 32"),
        (
            Multiply("", kind="mxf4", blocks=2, sparse=True),
            1 << 2 | 1 << 7 | 1 << 10 | 8 << 17 | 1 << 27 | 1 << 31,
            "depth of 96",
        ),
        (Multiply("", kind="mxf4", blocks=2), 1 << 7 | 1 << 10 | 8 << 17 | 1 << 27, "scales"),
        (Multiply("", kind="i8"), 2 << 4 | 24 // 8 << 17 | 8 << 24 | 1 << 16, "multiple of 16 columns, not 24"),
        (Multiply("", kind="f8f6f4", pairs=True), 1 << 4 | 48 // 8 << 17 | 16 << 24 | 1 << 16, "multiple of 32 columns"),
        (Multiply("", kind="f16"), HALVES | 1 << 3, "bit 3 of .* is 0 for .kind::f16"),
        (Multiply("", kind="f16"), HALVES | 1 << 23, "bit 23 of .* is 0 for .kind::f16"),
        (Multiply("", kind="i8"), 2 << 4 | 8 << 17 | 8 << 24 | 1 << 13, "bit 13 of .* is 0 for .kind::i8"),
        (Multiply("", kind="mxf4", blocks=2), 1 << 7 | 1 << 10 | 8 << 17 | 1 << 23 | 1 << 27 | 1 << 29, "bit 29 of"),
        (Multiply("", kind="mxf4", blocks=2), 1 << 7 | 1 << 10 | 8 << 17 | 1 << 23 | 1 << 27 | 1 << 16, "bit 16 of"),
        (Multiply("", kind="mxf8f6f4", blocks=1), 8 << 17 | 1 << 23 | 1 << 27 | 1 << 26, "bit 26 of"),
    ],
)
def test_fields_that_cannot_be(work, bits, said):
    with pytest.raises(InvalidDescriptor, match=said):
        instruction_descriptor(work, bits)


def test_the_descriptor_of_a_matrix():
    found = shared_descriptor(0x10 | 0x20 << 16 | 0x30 << 32 | 1 << 46 | 3 << 49 | 4 << 61)
    assert (found.start, found.leading, found.stride, found.base, found.swizzle) == (256, 512, 768, 3, Swizzle.BYTES_64)
    assert not found.absolute
    found = shared_descriptor(0x20 << 16 | 1 << 46 | 1 << 52 | 1 << 61)
    assert (found.leading, found.absolute, found.swizzle) == (512, True, Swizzle.BYTES_128_BY_32)


def test_the_bits_of_a_line_that_permute_its_atoms():
    """PTX 9.7.16.10.6: of lines of 128 bytes one in 1, 2, 4 or 8 is alike; of atoms of 32 bytes one in 4."""
    assert [each.mask for each in Swizzle] == [0, 1, 3, 7, 3]


@pytest.mark.parametrize(("bits", "said"), [(0, "46 to 48"), (1 << 46 | 3 << 61, "61 to 63")])
def test_descriptors_of_no_matrix(bits, said):
    with pytest.raises(InvalidDescriptor, match=said):
        shared_descriptor(bits)


@pytest.mark.parametrize(
    ("starts", "firsts", "rows", "masks"),
    [
        ((0, 0, 0, 0), (0, 0, 0, 0), 128, ["...11100001110000"]),
        ((0, 0, 0, 0), (1, 0, 0, 0), 64, ["...1110000111", "...0001110000"]),
        ((0, 1, 2, 1), (1, 1, 0, 0), 32, ["...0000111", "...000011", "...11100", "...111000"]),
    ],
)
def test_columns_that_count_as_zero_are_those_of_the_manual(starts, firsts, rows, masks):
    """Examples 2 to 4 of PTX 9.7.16.4.3; the lowest column is on the right."""
    bits = sum(start << 8 * n for n, start in enumerate(starts)) | sum(first << 32 + n for n, first in enumerate(firsts))
    found = zero_columns(bits | 1 << 39 | 2 << 40 | 3 << 48, rows, 64)
    for n, mask in enumerate(masks):
        digits = mask.strip(".")[::-1]
        part = found[n * 64 // len(masks) :][: len(digits)]
        assert "".join("01"[each] for each in part) == digits
    assert zero_columns(bits, rows, 64) == [False] * 64

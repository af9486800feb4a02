"""`ptxvm explain --descriptor`: fields by the tables of PTX 9.7.15.5.1.2.2 and 9.7.16.4."""

from __future__ import annotations

import pytest


def rows(text: str) -> list[str]:
    """The rows behind the label, with single blanks."""
    return [" ".join(line[13:].split()) for line in text.splitlines()]


def test_a_matrix_of_wgmma(ptxvm):
    done = ptxvm("explain", "--descriptor", "wgmma", "0x4000004000010040")
    assert done.code == 0
    assert rows(done.out) == [
        "start address 0x400", "leading dimension 16 bytes", "stride dimension 1024 bytes", "base offset 0", "swizzle 128 bytes"
    ]  # fmt: skip
    assert rows(ptxvm("explain", "--descriptor", "tcgen05", "0x400000000040").out)[-1] == "swizzle none"


def test_products_of_tcgen05(ptxvm):
    bits = 1 << 4 | 1 << 7 | 1 << 10 | 1 << 13 | 1 << 16 | 64 // 8 << 17 | 128 // 16 << 24
    assert rows(ptxvm("explain", "--descriptor", "f16", hex(bits)).out) == [
        "shape m128n64k16", "D, A and B .f32, .bf16, .bf16", "negated A", "transposed B", "of tcgen05.mma.cta_group::1",
        "tcgen05.mma.cta_group::2", "tcgen05.mma.ws.cta_group::1",
    ]  # fmt: skip
    scaled = rows(ptxvm("explain", "--descriptor", "mxf4", hex(1 << 7 | 1 << 10 | 8 << 17 | 1 << 23 | 1 << 27 | 2 << 29)).out)
    assert scaled[-3] == "scales .ue8m0, from byte 2 of A's words and 0 of B's"
    limited = rows(ptxvm("explain", "--descriptor", "i8", hex(1 << 3 | 2 << 4 | 8 << 17 | 8 << 24)).out)
    assert limited[-4] == "sums are limited to the range of .s32"


@pytest.mark.parametrize(
    ("kind", "bits", "shape", "instructions"),
    [
        ("f16", 1 << 4 | 16 << 17 | 16 << 24, "m256n128k16", ["tcgen05.mma.cta_group::2"]),
        ("f16", 1 << 4 | 16 << 17 | 2 << 24, "m32n128k16", ["tcgen05.mma.ws.cta_group::1"]),
        ("tf32", 1 << 2 | 1 << 4 | 2 << 7 | 2 << 10 | 1 << 17 | 4 << 24, "m64n8k16", ["tcgen05.mma.sp.cta_group::1"]),
        ("mxf8f6f4", 1 << 2 | 2 << 17 | 1 << 23 | 2 << 27, "m256n16k64", ["tcgen05.mma.sp.cta_group::2"]),
    ],
)
def test_descriptors_of_pairs_ws_and_sparse_matrices(ptxvm, kind, bits, shape, instructions):
    """Shapes by table 39: of 256 rows for pairs, of 32 for `.ws`; K of a sparse A is twice that of a dense one."""
    found = rows(ptxvm("explain", "--descriptor", kind, hex(bits)).out)
    assert found[0] == f"shape {shape}"
    assert found[-len(instructions) :] == [f"of {instructions[0]}", *instructions[1:]]
    assert ("sparsity half of A is stored; selector 0" in found) == (".sp" in instructions[0])


@pytest.mark.parametrize(
    ("of", "value", "said", "code"),
    [
        ("tcgen05", "0", "bits 46 to 48", 1),
        ("wgmma", "nothing", "is no number", 2),
        ("wmma", "1", "there are wgmma, tcgen05, f16", 2),
    ],
)
def test_what_is_no_descriptor(ptxvm, of, value, said, code):
    done = ptxvm("explain", "--descriptor", of, value)
    assert done.code == code
    assert said in done.err + done.out

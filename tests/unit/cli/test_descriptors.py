"""`ptxvm explain --descriptor`: fields by the tables of PTX 9.7.15.5.1.2.2 and 9.7.16.4."""

from __future__ import annotations

import numpy as np
import pytest

from ptxvm import Interleave, OobFill, Swizzle, TensorMap, TensorType


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


def test_a_tensor_map(ptxvm):
    """The arguments of cuTensorMapEncodeTiled, from the bytes that it made."""
    made = TensorMap.tiled(
        TensorType.FLOAT16, 0x7000, (32, 8, 2), sizes=(64, 48, 5), strides=(256, 65536), element_strides=(1, 2, 1),
        swizzle=Swizzle.B64, fill=OobFill.NAN,
    )  # fmt: skip
    expected = [
        "mode tile", "tensor 64 x 48 x 5 of .f16, 16 bits each", "address 0x7000", "strides 256, 65536 bytes",
        "box 32 x 8 x 2", "copied 512 bytes", "element strides 1, 2, 1", "interleave none", "swizzle 64 bytes",
        "outside NaN", "L2 promotion none",
    ]  # fmt: skip
    assert rows(ptxvm("explain", "--descriptor", "tensormap", made.hex()).out) == expected
    words = [f"0x{made.hex()[n : n + 8]}" for n in range(0, 256, 8)]
    assert rows(ptxvm("explain", "--descriptor", "tensormap", *words).out) == expected
    assert str(made) == repr(made) == f"<TensorMap {'; '.join(expected)}>"


def test_a_tensor_map_of_images():
    images = np.zeros((2, 9, 8, 64), np.float32)
    made = TensorMap.im2col(
        TensorType.FLOAT32, images, (-1, -2), (1, 0), 32, 16, interleave=Interleave.NONE, swizzle=Swizzle.B128_ATOM_32B
    )
    said = str(made)
    assert "mode im2col; tensor 64 x 8 x 9 x 2 of .f32, 32 bits each;" in said
    assert "channels 32 of each pixel; pixels 16 of each column; corners (-1, -2) and (1, 0);" in said
    assert "swizzle 128 bytes, 32 at once; outside zeros;" in said


@pytest.mark.parametrize(
    ("value", "code", "said"), [("00ff", 2, "is 128 bytes"), ("zz" * 128, 2, "is 128 bytes"), ("ab" * 128, 1, "no tensor map")]
)
def test_what_is_no_tensor_map(ptxvm, value, code, said):
    done = ptxvm("explain", "--descriptor", "tensormap", value)
    assert (done.code, said in done.err) == (code, True)


def test_columns_that_count_as_zero(ptxvm):
    """Example 4 of PTX 9.7.16.4.3: four columns of B and three of zeros in turn."""
    bits = 1 << 39 | 2 << 40 | 3 << 48 | 2 << 56 | 3 << 32 | 0x01020100
    assert rows(ptxvm("explain", "--descriptor", "zero-columns", hex(bits)).out) == [
        "repeated 4 columns of B, 3 of zeros",
        "part 0, of all zeros first, from column 0 on",
        "part 1, of m64 and m32 zeros first, from column 1 on",
        "part 2, of m32 columns of B first, from column 2 on",
        "part 3, of m32 columns of B first, from column 1 on",
        "shifted by 2 columns",
    ]
    assert rows(ptxvm("explain", "--descriptor", "zero-columns", "0").out) == ["columns all of B count"]

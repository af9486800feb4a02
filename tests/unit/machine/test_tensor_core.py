"""The model of the tensor cores, on matrices of bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ptxvm.algebra.types import named_type
from ptxvm.engine.interp import arrays
from ptxvm.isa.fragments import Product, mma_fragment, quarter_fragment, wmma_fragment
from ptxvm.machine.tensor_core import Architecture, architecture_of, multiply
from ptxvm.machine.warp_matrix import matrices, registers_of

VECTORS = Path(__file__).parents[4] / "shared" / "fidelity" / "mma_vectors.npz"
ARCHITECTURES = {
    "Volta": Architecture.VOLTA, "Turing": Architecture.TURING, "Ampere": Architecture.AMPERE,
    "AdaLovelace": Architecture.ADA, "Hopper": Architecture.HOPPER, "Blackwell": Architecture.BLACKWELL,
    "RTXBlackwell": Architecture.RTX_BLACKWELL,
}  # fmt: skip


def fma(rounding, a, b, c):
    return arrays.floating("fma", rounding, arrays.F64, a, b, c)


def product(shape, types, **how):
    """The product of `D.A.B.C` as `mma` computes it."""
    kinds = {m: named_type(t) for m, t in zip("dabc", types.split("."), strict=True)}
    if shape == "m8n8k4" and types != "f64.f64.f64.f64":
        return Product(**{m: quarter_fragment(m, t) for m, t in kinds.items()}, **how)
    return Product(**{m: mma_fragment(m, t, shape) for m, t in kinds.items()}, **how)


@pytest.mark.skipif(not VECTORS.is_file(), reason="the reference data is missing")
def test_all_704_products():
    file = np.load(VECTORS)
    wrong = []
    names = [key.rpartition("|")[0] for key in file.files if key.endswith("|A")]
    for name in names:
        architecture, kind, _ = name.split("|")
        shape, _, types = kind.partition(".")
        a, b, c, d = (file[f"{name}|{m}"] for m in "ABCD")
        got = multiply(product(shape, types), ARCHITECTURES[architecture], a[None], b[None], c[None], fma)[0]
        if got.dtype != d.dtype or not (got == d).all():
            wrong.append(name)
    assert not wrong
    assert len(names) == 704


@pytest.mark.parametrize(
    ("target", "architecture"),
    [
        (50, Architecture.VOLTA), (70, Architecture.VOLTA), (72, Architecture.VOLTA), (75, Architecture.TURING),
        (80, Architecture.AMPERE), (86, Architecture.AMPERE), (87, Architecture.AMPERE), (89, Architecture.ADA),
        (90, Architecture.HOPPER), (100, Architecture.BLACKWELL), (103, Architecture.BLACKWELL),
        (120, Architecture.RTX_BLACKWELL), (121, Architecture.RTX_BLACKWELL),
    ],
)  # fmt: skip
def test_the_architecture_of_a_target(target, architecture):
    assert architecture_of(target) is architecture


def test_a_shape_of_a_later_architecture_is_computed_as_there(rng):
    a, b = (rng.integers(0, 1 << 16, size, np.uint16) for size in ((1, 16, 16), (1, 16, 8)))
    c = np.zeros((1, 16, 8), np.uint32)
    kind = product("m16n8k16", "f32.bf16.bf16.f32")
    volta, ampere = (multiply(kind, a_, a, b, c, fma) for a_ in (Architecture.VOLTA, Architecture.AMPERE))
    assert (volta == ampere).all()


def test_many_matrices_are_computed_as_one_by_one(rng):
    """A large stack is taken in parts, to stay in the caches."""
    a, b = (rng.integers(0, 1 << 16, size, np.uint16) for size in ((50, 16, 16), (50, 16, 8)))
    c = rng.integers(0, 1 << 32, (50, 16, 8), np.uint32)
    kind = product("m16n8k16", "f32.f16.f16.f32")
    whole = multiply(kind, Architecture.AMPERE, a, b, c, fma)
    single = [multiply(kind, Architecture.AMPERE, a[n : n + 1], b[n : n + 1], c[n : n + 1], fma)[0] for n in range(50)]
    assert (whole == np.stack(single)).all()


def test_mixed_accumulators_of_wmma_are_f32_until_the_end():
    """As ptxas makes it: HMMA.F32, then a conversion.  In f16, 2048 + 1 + 1 + … would stay where it is."""
    fragments = {m: wmma_fragment(m, named_type(t), "m16n16k16") for m, t in zip("abcd", ("f16",) * 4, strict=True)}
    wide = fragments | {"c": wmma_fragment("c", named_type("f32"), "m16n16k16")}
    ones = np.ones((1, 16, 16), np.float16)
    start = np.full((1, 16, 16), 2048.0)
    narrow = Product(**fragments), ones.view(np.uint16), ones.view(np.uint16), start.astype(np.float16).view(np.uint16)
    mixed = Product(**wide), ones.view(np.uint16), ones.view(np.uint16), start.astype(np.float32).view(np.uint32)
    for case in (narrow, mixed):
        kind, a, b, c = case
        a, c = a.copy(), c.copy()
        a[:, :, 1:4] = a[:, :, 5:8] = a[:, :, 9:12] = a[:, :, 13:] = 0  # one product in each step of Volta
        got = multiply(kind, Architecture.VOLTA, a, b, c, fma).view(np.float16)
        assert (got == (2048 if case is narrow else 2052)).all()


def test_an_exact_zero_is_positive():
    a, c = np.full((1, 16, 8), -0.0, np.float16), np.full((1, 16, 8), -0.0, np.float32)
    b = np.ones((1, 8, 8), np.float16)
    kind = product("m16n8k8", "f32.f16.f16.f32")
    assert not multiply(kind, Architecture.TURING, a.view(np.uint16), b.view(np.uint16), c.view(np.uint32), fma).any()


FRAGMENTS = {
    "f16 twice": wmma_fragment("a", named_type("f16"), "m16n16k16"),
    "f16 transposed": wmma_fragment("c", named_type("f16"), "m8n32k16"),
    "f32": mma_fragment("c", named_type("f32"), "m16n8k8"),
    "f64": mma_fragment("a", named_type("f64"), "m16n8k16"),
    "bytes": mma_fragment("b", named_type("s8"), "m16n8k32"),
    "four": quarter_fragment("d", named_type("f32")),
}


@pytest.mark.parametrize("fragment", FRAGMENTS.values(), ids=FRAGMENTS)
def test_registers_hold_what_the_matrices_had(fragment, rng):
    stack = rng.integers(0, 1 << min(fragment.width, 63), (3 * fragment.matrices, *fragment.shape)).astype(
        f"u{fragment.width // 8}"
    )
    registers = registers_of(fragment, stack)
    assert len(registers) == fragment.registers
    assert {len(r) for r in registers} == {96}
    assert (matrices(fragment, registers) == stack).all()

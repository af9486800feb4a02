"""Vectors of small elements at any addresses, which are gathered and scattered as words: PTX 9.7.9 (ld.v2, st.v4 ...)."""

from __future__ import annotations

import numpy as np
import pytest
from engines import same_fault

import ptxvm

BLOCK, SIZE = 64, 256
KERNEL = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 from, .param .u64 to, .param .u64 out)
{
    .reg .b32 %r<3>; .reg .REGISTER %v<4>; .reg .b64 %d<6>; .reg .pred %p;
    ld.param.u64 %d0, [data]; ld.param.u64 %d1, [from]; ld.param.u64 %d2, [to]; ld.param.u64 %d3, [out];
    mov.u32 %r0, %tid.x; mul.wide.u32 %d4, %r0, 4; add.u64 %d1, %d1, %d4; add.u64 %d2, %d2, %d4;
    ld.global.u32 %r1, [%d1]; ld.global.u32 %r2, [%d2]; setp.eq.u32 %p, %r2, SIZE; @%p bra E;
    mad.wide.u32 %d0, %r1, BYTES, %d0; mad.wide.u32 %d3, %r2, BYTES, %d3;
    ld.global.vCOUNT.TYPE {NAMES}, [%d0]; st.global.vCOUNT.TYPE [%d3], {NAMES};
E:  ret;
}
"""


def kernel(type: str, count: int) -> ptxvm.Kernel:
    size = int(type[1:]) // 8
    names = ", ".join(f"%v{n}" for n in range(count))
    register = "f32" if type == "f32" else f"b{8 * max(size, 2)}"
    words = {"REGISTER": register, "COUNT": str(count), "TYPE": type, "NAMES": names}
    text = KERNEL.replace("SIZE", str(SIZE)).replace("BYTES", str(size * count))
    for word, value in words.items():
        text = text.replace(word, value)
    return ptxvm.load(text).kernel("k")


@pytest.mark.parametrize(("type", "count"), [("u8", 2), ("u8", 4), ("u16", 2), ("u16", 4), ("f32", 2), ("u32", 4), ("u64", 2)])
def test_vectors_anywhere(type: str, count: int, rng: np.random.Generator) -> None:
    dtype = np.float32 if type == "f32" else np.dtype(f"u{int(type[1:]) // 8}")
    data = rng.integers(1, 255, (SIZE, count)).astype(dtype)
    source, target = rng.permutation(SIZE)[:BLOCK].astype(np.uint32), rng.permutation(SIZE)[:BLOCK].astype(np.uint32)
    target[rng.integers(0, BLOCK, 20)] = SIZE  # lanes that do nothing
    out, wanted = np.zeros_like(data), np.zeros_like(data)
    active = target < SIZE
    wanted[target[active]] = data[source[active]]
    kernel(type, count).launch(1, BLOCK, [data, source, target, out], engine="jit")
    assert np.array_equal(out, wanted)


def test_a_vector_beyond_the_end_is_a_fault_of_its_lane() -> None:
    source, target = np.zeros(BLOCK, np.uint32), np.arange(BLOCK, dtype=np.uint32)
    source[41] = SIZE
    given = [np.zeros(2 * SIZE, np.float32), source, target, np.zeros(2 * SIZE, np.float32)]
    same_fault(kernel("f32", 2), given, block=BLOCK)

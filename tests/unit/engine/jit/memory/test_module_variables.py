"""Variables of the module at constant distances: no check where an access is within, and the interpreter's fault where not."""

from __future__ import annotations

import numpy as np
import pytest
from engines import same, same_fault

import ptxvm
from ptxvm.engine.jit.abi.specialisation import Specialisation

KERNEL = """
.version 7.8
.target sm_80
.address_size 64
.const .align 4 .u32 fixed[8] = {{10, 11, 12, 13, 14, 15, 16, 17}};
.global .align 8 .u32 held[70] = {{20, 21, 22, 23, 24, 25, 26, 27}};
.visible .entry k(.param .u64 out)
{{
    .reg .b32 %r<6>; .reg .b64 %d<4>; .reg .b64 %v<2>;
    ld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.u64 %d2, %d0, %d1; mov.u32 %r1, 5;
    {access}
    st.global.u32 [%d2], %r1;
    ret;
}}
"""
INSIDE = {
    "the first": ("ld.const.u32 %r1, [fixed];", [10] * 64),
    "the last": ("ld.const.u32 %r1, [fixed+28];", [17] * 64),
    "a vector": ("ld.const.v4.u32 {%r1, %r2, %r3, %r4}, [fixed+16];", [14] * 64),
    "behind a register": ("mov.u64 %d3, fixed; add.u64 %d3, %d3, 24; ld.const.u32 %r1, [%d3+-4];", [15] * 64),
    "generic": ("cvta.const.u64 %d3, fixed; ld.u32 %r1, [%d3+8];", [12] * 64),
    "a row": ("mov.u64 %d3, held; add.u64 %d3, %d3, %d1; ld.global.u32 %r1, [%d3+4];", [*range(21, 28), *[0] * 57]),
    "a store": ("st.global.u32 [held+4], 9; ld.global.u32 %r1, [held+4];", [9] * 64),
}
OUTSIDE = {
    "behind": "ld.const.u32 %r1, [fixed+32];",
    "before": "ld.const.u32 %r1, [fixed+-4];",
    "a vector across the end": "ld.const.v2.u32 {%r1, %r2}, [fixed+28];",
    "far": "ld.global.u32 %r1, [held+65536];",
    "not aligned": "ld.const.u32 %r1, [fixed+2];",
    "another space": "mov.u64 %d3, fixed; ld.global.u32 %r1, [%d3];",
    "a store to a constant": "cvta.const.u64 %d3, fixed; st.u32 [%d3], %r1;",
    "a row across the end": "mov.u64 %d3, held; add.u64 %d3, %d3, %d1; ld.global.u32 %r1, [%d3+28];",
}


def kernel(access: str) -> ptxvm.Kernel:
    return ptxvm.load(KERNEL.format(access=access)).kernel()


@pytest.mark.parametrize("name", INSIDE)
def test_inside(name: str) -> None:
    access, wanted = INSIDE[name]
    assert same(kernel(access), [np.zeros(64, np.uint32)], block=64)[0].tolist() == wanted


def test_what_is_inside_has_no_check() -> None:
    texts = []
    for access in ("", *(access for access, _ in INSIDE.values())):
        made = kernel(access)
        jit = made.module.jit
        wanted = Specialisation(jit.image.resolve(made.function), (64, 1, 1))
        texts.append(jit.code_cache.translation(wanted).versions.text)
    assert len({text.count("@ptxvm.slow_path") for text in texts}) == 1


@pytest.mark.parametrize("name", OUTSIDE)
def test_outside(name: str) -> None:
    same_fault(kernel(OUTSIDE[name]), [np.zeros(64, np.uint32)], block=64)

"""Rows that several parts of a warp, or several warps, read: each lane has its element, whichever lanes are active.

The expectations are NumPy's indexing, by what PTX 9.7.9 (ld) and 9.3 (guards) say of each thread.
"""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

BLOCKS = [(32, 4), (32, 8), (16, 8), (8, 8, 2), (4, 64), (64, 3)]
INDICES = {
    "tid.x": lambda x, y, z: x,
    "tid.y": lambda x, y, z: y,
    "tid.x + tid.z": lambda x, y, z: x + z,
    "tid.x & 5": lambda x, y, z: x & 5,
}
LINES = {
    "tid.x": "mov.u32 %i, %x;",
    "tid.y": "mov.u32 %i, %y;",
    "tid.x + tid.z": "add.u32 %i, %x, %z;",
    "tid.x & 5": "and.b32 %i, %x, 5;",
}
KERNEL = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 table, .param .u64 chosen, .param .u64 out)
{
    .shared .align 16 .b32 held[128];
    .reg .b32 %x, %y, %z, %i, %t, %n, %a<6>, %at, %pair; .reg .b64 %table, %chosen, %out, %d; .reg .b16 %h; .reg .pred %p, %q;
    ld.param.u64 %table, [table]; ld.param.u64 %chosen, [chosen]; ld.param.u64 %out, [out];
    mov.u32 %x, %tid.x; mov.u32 %y, %tid.y; mov.u32 %z, %tid.z;
    mov.u32 %n, %ntid.y; mad.lo.u32 %t, %z, %n, %y; mov.u32 %n, %ntid.x; mad.lo.u32 %t, %t, %n, %x;
    setp.lt.u32 %p, %t, 128; mul.wide.u32 %d, %t, 4; add.u64 %d, %d, %table; mov.u32 %at, held; mad.lo.u32 %at, %t, 4, %at;
    @%p ld.global.u32 %n, [%d]; @%p st.shared.u32 [%at], %n;
    bar.sync 0;
    cvt.u64.u32 %d, %t; add.u64 %d, %d, %chosen; ld.global.u8 %h, [%d]; setp.ne.b16 %p, %h, 0;
    INDEX
    mul.wide.u32 %d, %i, 4; add.u64 %d, %d, %table; mov.u32 %at, held; mad.lo.u32 %pair, %i, 8, %at; mad.lo.u32 %at, %i, 4, %at;
    mov.u32 %a0, 7; mov.u32 %a1, 7; mov.u32 %a2, 7; mov.u32 %a3, 7; mov.u32 %a4, 7; mov.u32 %a5, 7; mov.u32 %n, 0;
L:  GUARDED
    add.u32 %n, %n, 1; setp.lt.u32 %q, %n, 2; @%q bra L;
    mul.wide.u32 %d, %t, 24; add.u64 %out, %out, %d;
    st.global.v2.b32 [%out], {%a0, %a1}; st.global.v2.b32 [%out+8], {%a2, %a3}; st.global.v2.b32 [%out+16], {%a4, %a5};
    ret;
}
"""
LOADS = [
    "ld.shared.b32 %a0, [%at];",
    "ld.global.b32 %a1, [%d];",
    "ld.shared.u8 %a2, [%at];",
    "ld.global.s16 %a3, [%d+2];",
    "ld.shared.v2.b32 {%a4, %a5}, [%pair];",
]
STYLES = {
    "guard": "\n".join(f"@%p {line}" for line in LOADS),
    "branch": "\n".join(["@!%p bra E;", *LOADS, "E:"]),
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_rows_of_some_lanes(block: tuple[int, ...], index: str, style: str, rng: np.random.Generator) -> None:
    text = KERNEL.replace("INDEX", LINES[index]).replace("GUARDED", STYLES[style])
    kernel = ptxvm.load(text).kernel("k")
    z, y, x = (each.reshape(-1) for each in np.indices((*(1,) * (3 - len(block)), *block[::-1])))
    at, table = INDICES[index](x, y, z), rng.integers(0, 1 << 32, 128, np.uint32)
    for chosen in (y > 0, x < 3, rng.random(len(x)) < 0.5, np.ones(len(x), bool), np.zeros(len(x), bool)):
        out = np.zeros((len(x), 6), np.uint32)
        kernel.launch(1, block, [table, chosen.astype(np.uint8), out], engine="jit")
        halves = table.view(np.int16)[2 * at + 1].astype(np.int32).view(np.uint32)
        columns = [table[at], table[at], table[at] & 255, halves, table[2 * at % 128], table[(2 * at + 1) % 128]]
        wanted = np.where(chosen[:, None], np.stack(columns, axis=1), 7)
        assert np.array_equal(out, wanted)

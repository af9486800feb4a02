"""The check `memory` on the JIT where a pointer is that of one of several variables: what a run chooses is followed.

What is expected is C's rule for pointers, as in `tests/unit/checkers/test_provenance.py`: an address that is computed from that
of a variable is used for this variable (PTX 5.1.5).
"""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

HEAD = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 data, .param .u32 n)
{
    .shared .align 16 .b8 a[64];
    .shared .align 16 .b8 b[32];
    .shared .align 16 .b8 c[96];
    .local .align 16 .b8 x[16];
    .local .align 16 .b8 y[32];
    .reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %rd<8>, %d<6>;
    ld.param.u64 %rd1, [data]; ld.param.u32 %r9, [n];
    mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 1; setp.gt.u32 %p2, %r9, 5;
    mov.u32 %r3, a; mov.u32 %r4, b;
"""
CHOSEN = "selp.u32 %r5, %r3, %r4, %p1;"  # a for odd lanes, b for even ones
ALIKE = "selp.u32 %r5, %r3, %r4, %p2;"  # b for all, since n is 3
SWAPPED = "mov.u32 %r6, 0; L: mov.u32 %r7, %r3; mov.u32 %r3, %r4; mov.u32 %r4, %r7; st.shared.u32 [%r3+28], %r6;"
SWAPPED += "add.u32 %r6, %r6, 1; setp.lt.u32 %p3, %r6, %r9; @%p3 bra L;"  # n is odd: %r3 has b behind the loop
READ = "ld.shared.u32 %r8, [{}];"
GENERIC = "mov.u64 %d0, a; cvta.shared.u64 %d0, %d0; mov.u64 %d1, b; cvta.shared.u64 %d1, %d1; selp.u64 %d2, %d0, %d1, %p1;"
LOCAL = "mov.u32 %r10, x; mov.u32 %r11, y; selp.u32 %r5, %r10, %r11, %p2;"  # y
FINE = {
    "the last of each": CHOSEN + "@%p1 " + READ.format("%r5+60") + "@!%p1 " + READ.format("%r5+28"),
    "the first of each": CHOSEN + READ.format("%r5"),
    "the same for all": ALIKE + READ.format("%r5+28"),
    "exchanged in a loop": SWAPPED + READ.format("%r3+28") + READ.format("%r4+60"),
    "set on a path": "@!%p2 bra L; mov.u32 %r4, c; L: " + READ.format("%r4+28"),
    "set for some lanes": "@%p1 mov.u32 %r4, c; @%p1 " + READ.format("%r4+92"),
    "beyond it on the way": CHOSEN + "add.u32 %r5, %r5, 64; sub.u32 %r5, %r5, 64;" + READ.format("%r5"),
    "masked": CHOSEN + "add.u32 %r5, %r5, 3; and.b32 %r5, %r5, -4;" + READ.format("%r5"),
    "by a distance": CHOSEN + "sub.u32 %r6, %r4, %r5; add.u32 %r6, %r5, %r6; @!%p1 " + READ.format("%r6+28"),
    "the lower one": "min.u32 %r5, %r3, %r4;" + READ.format("%r5+60"),
    "a generic address": GENERIC + "@%p1 ld.u32 %r8, [%d2+60];",
    "a local one": LOCAL + "ld.local.u32 %r8, [%r5+28];",
    "updated": CHOSEN + "atom.shared.add.u32 %r8, [%r5+28], 1;",
    "a number": "selp.u32 %r5, 96, %r3, %p1;" + READ.format("%r5+16"),
}
WRONG = {
    "behind each": (CHOSEN + READ.format("%r5+32"), "byte 32 of 'b', which has 32 bytes"),
    "before one": (CHOSEN + "@!%p1 " + READ.format("%r5+-4"), "byte -4 of 'b'"),
    "behind, for all": (ALIKE + READ.format("%r5+32"), "byte 32 of 'b'"),
    "exchanged in a loop": (SWAPPED + READ.format("%r3+32"), "byte 32 of 'b'"),
    "set on a path": ("@%p2 bra L; mov.u32 %r4, c; L: " + READ.format("%r4+-4"), "byte -4 of 'c'"),
    "set for some lanes": ("@%p1 mov.u32 %r4, c; " + READ.format("%r4+32"), "byte 32 of 'b'"),
    "a generic address": (GENERIC + "ld.u32 %r8, [%d2+32];", "byte 32 of 'b'"),
    "a local one": (LOCAL + "ld.local.u32 %r8, [%r5+-4];", "byte -4 of 'y'"),
    "updated": (CHOSEN + "atom.shared.add.u32 %r8, [%r5+32], 1;", "byte 32 of 'b'"),
    "wider than what is left": (CHOSEN + "ld.shared.v4.u32 {%r8, %r9, %r10, %r11}, [%r5+32];", "byte 32 of 'b'"),
}


def findings(body, engine="jit", check=("memory",), block=64):
    text = f"{HEAD} {body} st.global.u32 [%rd1], %r8; ret; }}"
    kernel = ptxvm.load(text).kernel()
    return [str(each) for each in kernel.launch(1, block, [np.zeros(1, np.uint32), 3], engine=engine, check=check).findings]


@pytest.mark.parametrize("check", [("memory",), ("memory", "sync")])
@pytest.mark.parametrize("name", FINE)
def test_pointers_to_one_of_several_variables_are_followed(name, check, quick):
    assert findings(FINE[name], check=check) == []
    assert quick()


@pytest.mark.parametrize("block", [32, 64, 72])
@pytest.mark.parametrize("name", WRONG)
def test_what_leaves_its_variable_is_found(name, block, quick):
    body, said = WRONG[name]
    found = findings(body, block=block)
    assert not quick()
    assert any(said in each for each in found), found
    assert found == findings(body, "interp", block=block)


@pytest.mark.parametrize(
    "way",
    [
        "st.shared.u32 [c], %r5; ld.shared.u32 %r5, [c];",  # through memory
        "shfl.sync.idx.b32 %r5, %r5, 0, 31, -1;",  # from another lane
        "alloca.u64 %d3, 16; cvt.u32.u64 %r5, %d3;",
    ],
)
def test_what_marks_do_not_follow_is_left_to_the_exact_checker(way, caplog):
    caplog.set_level("INFO", "ptxvm.jit")
    space = "local" if "alloca" in way else "shared"
    assert findings(f"{CHOSEN} {way} ld.{space}.u32 %r8, [%r5+12];", block=32) == []
    assert f"only a run tells which object the address of 'ld.{space}.u32' belongs to" in caplog.text

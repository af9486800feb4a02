"""The fixed point over the shapes of registers: how often nodes are written."""

from __future__ import annotations

import ptxvm
from ptxvm.engine.jit.abi.specialisation import Specialisation
from ptxvm.engine.jit.translate.fixed_point import FixedPoint
from ptxvm.engine.jit.translate.translation import Translation

LOOP_UNTIL_DATA_SAYS_SO = """
X:  sub.u32 %x, %x, 1; mul.wide.u32 %a2, %x, 4; add.u64 %a2, %a, %a2; ld.global.u32 %y, [%a2];
    setp.gt.s32 %q, %x, %y; @%q bra X;"""


def region(n):
    """A loop that some lanes run, and a register that they write, which is the same in all of them."""
    return f"""
    mov.u32 %u{n}, {n};
    setp.gt.u32 %p1, %t, {n};
    @%p1 bra L{n};
    mov.u32 %k, %t;
M{n}: add.u32 %u{n}, %n, {n}; add.u32 %k, %k, 1; setp.lt.u32 %p2, %k, 40; @%p2 bra M{n};
L{n}:"""


def kernel_of(count):
    """A kernel of so many regions, whose warps are masked, since loaded data decides how often they loop before."""
    return f"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 a, .param .u32 n)
{{
    .reg .b32 %u<{count}>; .reg .b32 %k, %t, %n, %s, %x, %y; .reg .pred %p<3>, %q; .reg .b64 %a, %a2;
    ld.param.u64 %a, [a]; ld.param.u32 %n, [n]; mov.u32 %t, %tid.x;
    mul.wide.u32 %a2, %t, 4; add.u64 %a2, %a, %a2; ld.global.u32 %x, [%a2];
    {LOOP_UNTIL_DATA_SAYS_SO}
    {"".join(region(n) for n in range(count))}
    mov.u32 %s, 0; {"".join(f"xor.b32 %s, %s, %u{n};" for n in range(count))}
    st.global.u32 [%a2], %s;
    ret;
}}"""


def test_a_register_that_partial_warps_copy_has_no_node_written_at_once(monkeypatch):
    # A warp that diverges copies all such registers: a node is written again when all are known, not for each of them.
    written = []
    write = FixedPoint._written

    def counted(self, node, *, full):
        written.append((node.number, full))
        return write(self, node, full=full)

    monkeypatch.setattr(FixedPoint, "_written", counted)
    module = ptxvm.load(kernel_of(40))
    image = module.image
    kernel = Translation(image, Specialisation(image.resolve(module.kernel().function), (64, 1, 1))).versions.kernel
    assert len(kernel.registers.split) > 40
    assert len(written) < 5 * len(kernel.nodes)

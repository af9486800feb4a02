"""A kernel that tests of the driver and of the runtime launch."""

from __future__ import annotations


def scale(factor: str, *more: str) -> str:
    """The kernel `scale(data, n, ...)`: data[i] *= %f1 for i < n.

    `factor` loads %f1; `more` are the parameters after `n`.
    """
    parameters = ", ".join((".param .u64 data", ".param .u32 n", *more))
    return f"""
.visible .entry scale({parameters})
{{
    .reg .pred %p;
    .reg .b32 %r<4>;
    .reg .f32 %f<3>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [data];
    ld.param.u32 %r1, [n];
    {factor}
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mul.lo.s32 %r2, %r2, %r3;
    mov.u32 %r3, %tid.x;
    add.s32 %r2, %r2, %r3;
    setp.ge.u32 %p, %r2, %r1;
    @%p ret;
    mad.wide.u32 %rd2, %r2, 4, %rd1;
    ld.global.f32 %f2, [%rd2];
    mul.f32 %f2, %f2, %f1;
    st.global.f32 [%rd2], %f2;
    ret;
}}
"""

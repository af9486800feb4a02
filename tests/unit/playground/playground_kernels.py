"""Kernels of these tests."""

DOUBLE = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry double(.param .u64 data)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    ld.global.u32 %r2, [%rd2];
    add.u32 %r2, %r2, %r2;
    st.global.u32 [%rd2], %r2;
    ret;
}
"""
"""Doubles an element of 32 bits a thread."""

FOREVER = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry forever() { again: bra again; }
"""

// Kernels to start from.

const HEAD = `.version 8.0
.target sm_80
.address_size 64
`;

export const EXAMPLES = {
  "y = a x + y": {
    args: ["64", "2.5", "f32[64]=arange", "f32[64]=ones"],
    grid: "2",
    checks: ["memory"],
    source: `// y = a * x + y, an element a thread.
${HEAD}
.visible .entry saxpy(.param .u32 n, .param .f32 a, .param .u64 x, .param .u64 y)
{
    .reg .pred %p;
    .reg .f32 %f<5>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<6>;

    ld.param.u32 %r1, [n];
    ld.param.f32 %f1, [a];
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p, %r5, %r1;
    @%p bra done;

    mul.wide.u32 %rd3, %r5, 4;
    add.u64 %rd4, %rd1, %rd3;
    add.u64 %rd5, %rd2, %rd3;
    ld.global.f32 %f2, [%rd4];
    ld.global.f32 %f3, [%rd5];
    fma.rn.f32 %f4, %f1, %f2, %f3;
    st.global.f32 [%rd5], %f4;
done:
    ret;
}
`,
  },
  "a race": {
    args: ["u32[64]=arange", "u32[64]"],
    block: "64",
    checks: ["race"],
    source: `// Reverses 64 numbers through shared memory. Something is missing between the store and the load.
${HEAD}
.visible .entry reverse(.param .u64 in, .param .u64 out)
{
    .reg .b32 %r<6>;
    .reg .b64 %rd<6>;
    .shared .align 4 .b8 tile[256];

    ld.param.u64 %rd1, [in];
    ld.param.u64 %rd2, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.u64 %rd4, %rd1, %rd3;
    add.u64 %rd5, %rd2, %rd3;
    ld.global.u32 %r2, [%rd4];
    mov.u32 %r3, tile;
    mad.lo.u32 %r4, %r1, 4, %r3;
    st.shared.u32 [%r4], %r2;

    xor.b32 %r5, %r1, 63;
    mad.lo.u32 %r5, %r5, 4, %r3;
    ld.shared.u32 %r2, [%r5];
    st.global.u32 [%rd5], %r2;
    ret;
}
`,
  },
};

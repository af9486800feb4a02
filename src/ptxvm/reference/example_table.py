"""The worked examples of the reference, as people write them; `examples` computes what comes out.

An instruction that depends on its operands alone is one line: the declaration, the instruction, and the values of its
registers (`reference.evaluation.bits_of` reads them).  The others run in a small kernel (`examples.Run`).
"""

from __future__ import annotations

# ── one instruction on given values ─────────────────────────────────────────────────────

COMPUTED = """
    integer.add               add.sat.s32 d, a, b;                        a=0x7fffffff b=1
    integer.sub               sub.u16 d, a, b;                            a=1 b=2
    integer.mul               mul.hi.u32 d, a, b;                         a=0x80000000 b=6
    integer.mul_wide          mul.wide.s32 d, a, b;                       a=-3 b=0x40000000
    integer.mad               mad.lo.s32 d, a, b, c;                      a=-7 b=6 c=50
    integer.mad_wide          mad.wide.u32 d, a, b, c;                    a=0xffffffff b=2 c=1
    integer.mul24             mul24.lo.u32 d, a, b;                       a=0xff000003 b=5
    integer.mad24             mad24.hi.s32 d, a, b, c;                    a=0x400000 b=0x400000 c=1
    integer.sad               sad.s32 d, a, b, c;                         a=-5 b=7 c=100
    integer.div               div.s32 d, a, b;                            a=-7 b=2
    integer.rem               rem.s32 d, a, b;                            a=-7 b=2
    integer.clmad             clmad.lo.u64 d, a, b, c;                    a=5 b=3 c=0
    integer.abs_              abs.s32 d, a;                               a=-5
    integer.neg               neg.s32 d, a;                               a=0x80000000
    integer.min_              min.relu.s32 d, a, b;                       a=-5 b=3
    integer.max_              max.u16x2 d, a, b;                          a=1,200 b=100,2
    integer.popc              popc.b32 d, a;                              a=0xf0f00001
    integer.clz               clz.b32 d, a;                               a=0x00010000
    integer.bfind             bfind.s32 d, a;                             a=-256
    integer.fns               fns.b32 d, mask, base, offset;              mask=0b10110100 base=3 offset=2
    integer.brev              brev.b32 d, a;                              a=0x00000013
    integer.bfe               bfe.s32 d, a, b, c;                         a=0x00000f50 b=4 c=8
    integer.bfi               bfi.b32 f, a, b, c, d;                      a=0xff b=0 c=8 d=8
    integer.szext             szext.clamp.s32 d, a, b;                    a=0xff b=8
    integer.bmsk              bmsk.clamp.b32 d, a, b;                     a=4 b=8
    dot.dp4a                  dp4a.s32.s32 d, a, b, c;                    a=0xfc030201 b=0x01010101 c=10
    dot.dp2a                  dp2a.lo.s32.s32 d, a, b, c;                 a=0x00030002 b=0x00000504 c=1
    extended.add_cc           add.cc.u32 d, a, b;                         a=0xffffffff b=2
    extended.addc             addc.u32 d, a, b;                           a=1 b=1 CC.CF=1
    extended.sub_cc           sub.cc.u32 d, a, b;                         a=1 b=2
    extended.subc             subc.u32 d, a, b;                           a=5 b=2 CC.CF=1
    extended.mad_cc           mad.lo.cc.u32 d, a, b, c;                   a=0x10000 b=0xffff c=0x10000
    extended.madc             madc.hi.u32 d, a, b, c;                     a=0x80000000 b=4 c=1 CC.CF=1
    float.testp               testp.subnormal.f32 p, a;                   a=1e-40
    float.copysign            copysign.f32 d, a, b;                       a=-1 b=2.5
    float.add                 add.rp.f32 d, a, b;                         a=1 b=1e-10
    float.sub                 sub.f64 d, a, b;                            a=0.3 b=0.1
    float.mul                 mul.sat.f32 d, a, b;                        a=1.5 b=2
    float.fma                 fma.rn.f32 d, a, b, c;                      a=1.0000001 b=1.0000001 c=-1
    float.mad                 mad.rz.f64 d, a, b, c;                      a=0.1 b=10 c=-1
    float.div                 div.rn.f32 d, a, b;                         a=1 b=3
    float.abs_                abs.ftz.f32 d, a;                           a=-1e-40
    float.neg                 neg.f32 d, a;                               a=0
    float.min_                min.f32 d, a, b;                            a=-0.0 b=0.0
    float.max_                max.NaN.f32 d, a, b;                        a=1 b=nan
    float.rcp                 rcp.approx.ftz.f32 d, a;                    a=3
    float.sqrt                sqrt.rn.f32 d, a;                           a=2
    float.rcp_approx_ftz_f64  rcp.approx.ftz.f64 d, a;                    a=3
    float.rsqrt               rsqrt.approx.f32 d, a;                      a=2
    float.rsqrt_approx_ftz_f64 rsqrt.approx.ftz.f64 d, a;                 a=2
    float.sin                 sin.approx.f32 d, a;                        a=1
    float.cos                 cos.approx.f32 d, a;                        a=1
    float.lg2                 lg2.approx.f32 d, a;                        a=10
    float.ex2                 ex2.approx.f32 d, a;                        a=0.5
    float.tanh                tanh.approx.f32 d, a;                       a=0.5
    half.add                  add.f16x2 d, a, b;                          a=1.5,2 b=0.25,-2
    half.sub                  sub.f16 d, a, b;                            a=1 b=0.0001
    half.mul                  mul.bf16 d, a, b;                           a=0x3f81 b=0x3f81
    half.fma                  fma.rn.relu.f16 d, a, b, c;                 a=2 b=3 c=-7
    half.neg                  neg.f16x2 d, a;                             a=1,-2
    half.abs_                 abs.f16 d, a;                               a=-0.5
    half.min_                 min.f16 d, a, b;                            a=1 b=nan
    half.max_                 max.NaN.f16x2 d, a, b;                      a=1,nan b=2,2
    half.tanh                 tanh.approx.f16 d, a;                       a=0.5
    half.ex2                  ex2.approx.f16 d, a;                        a=0.5
    mixed.add                 add.f32.f16 d, a, c;                        a=1.5 c=0.1
    mixed.sub                 sub.f32.f16 d, a, c;                        a=1.5 c=0.1
    mixed.fma                 fma.rn.f32.f16 d, a, b, c;                  a=1.5 b=2 c=0.1
    compare.set_              set.lt.and.u32.s32 d, a, b, c;              a=-1 b=1 c=true
    compare.set_half          set.gt.f16x2.f16x2 d, a, b;                 a=1,2 b=0,3
    compare.set_packed        set.lt.u16x2 d, a, b;                       a=1,5 b=3,3
    compare.setp              setp.lt.and.s32 p|q, a, b, c;               a=-1 b=1 c=true
    compare.setp_half         setp.gt.f16x2 p|q, a, b;                    a=1,2 b=0,3
    compare.selp              selp.b32 d, a, b, c;                        a=1 b=2 c=false
    compare.slct              slct.u32.s32 d, a, b, c;                    a=1 b=2 c=-1
    logic.and_                and.b32 d, a, b;                            a=0xff00ff00 b=0x0ff00ff0
    logic.or_                 or.b32 d, a, b;                             a=0xff00ff00 b=0x0ff00ff0
    logic.xor                 xor.b32 d, a, b;                            a=0xff00ff00 b=0x0ff00ff0
    logic.not_                not.b32 d, a;                               a=0x0000ffff
    logic.cnot                cnot.b32 d, a;                              a=0
    logic.lop3                lop3.b32 d, a, b, c, 0xCA;                  a=0xff00ff00 b=0x12345678 c=0xabcdef01
    logic.shf                 shf.l.wrap.b32 d, a, b, c;                  a=0xaabbccdd b=0x11223344 c=8
    logic.shl                 shl.b32 d, a, b;                            a=1 b=31
    logic.shr                 shr.s32 d, a, b;                            a=0x80000000 b=40
    logic.prmt                prmt.b32 d, a, b, 0x5A10;                   a=0x33aa1100 b=0x77665544
    move.mov                  mov.b32 {d, e}, a;                          a=0x12345678
    convert.cvt               cvt.rni.s32.f32 d, a;                       a=2.5
    convert.cvt_limited       cvt.rn.satfinite.f16.f32 d, a;              a=1e10
    convert.cvt_pair          cvt.rn.f16x2.f32 d, a, b;                   a=1 b=2
    convert.cvt_pair_rs       cvt.rs.f16x2.f32 d, a, b, rbits;            a=1.0001 b=2 rbits=0xfff
    convert.cvt_tf32          cvt.rna.tf32.f32 d, a;                      a=0x3f801fff
    convert.cvt_small         cvt.rn.satfinite.e4m3x2.f32 d, a, b;        a=1 b=1000
    convert.cvt_small_pair    cvt.rn.satfinite.e5m2x2.f16x2 d, a;         a=1.5,-3
    convert.cvt_from_small    cvt.rn.f16x2.e4m3x2 d, a;                   a=0x387e
    convert.cvt_small_rs      cvt.rs.satfinite.e4m3x4.f32 d, {a, b, e, f}, r; a=1 b=2 e=3 f=4 r=0
    convert.cvt_scale         cvt.rz.ue8m0x2.f32 d, a, b;                 a=1 b=6
    convert.cvt_scale_pair    cvt.rp.ue8m0x2.bf16x2 d, a;                 a=0x40c03f80
    convert.cvt_from_scale    cvt.rn.bf16x2.ue8m0x2 d, a;                 a=0x7f81
    convert.cvt_fixed         cvt.rn.satfinite.s2f6x2.f32 d, a, b;        a=1 b=-0.5
    convert.cvt_fixed_pair    cvt.rn.satfinite.s2f6x2.bf16x2 d, a;        a=0x3f80bf00
    convert.cvt_from_fixed    cvt.rn.bf16x2.s2f6x2 d, a;                  a=0x40e0
    convert_pack.cvt_pack          cvt.pack.sat.s16.s32 d, a, b;               a=100000 b=-5
    convert_pack.cvt_pack_onto     cvt.pack.sat.u8.s32.b32 d, a, b, c;         a=300 b=-5 c=0x1234
    video.vadd                vadd.s32.u32.s32.sat d, a.b0, b.h1;         a=0x000000ff b=0x00100000
    video.vsub                vsub.s32.s32.s32.add d, a.b3, b.b0, c;      a=0x80000000 b=0x01 c=1000
    video.vabsdiff            vabsdiff.u32.s32.s32 d, a, b;               a=-5 b=7
    video.vmin                vmin.s32.s32.s32.max d, a.h0, b.h1, c;      a=0x00000005 b=0x00070000 c=6
    video.vmax                vmax.u32.u32.u32 d.b1, a, b, c;             a=0x12 b=0x34 c=0xffffffff
    video.vshl                vshl.u32.u32.u32.clamp d, a, b;             a=1 b=40
    video.vshr                vshr.u32.u32.u32.wrap d, a, b;              a=0x100 b=36
    video.vmad                vmad.s32.s32.s32.shr7 d, a.h0, b.h0, c;     a=0x100 b=0x80 c=0x40
    video.vset                vset.s32.s32.lt d, a, b;                    a=-1 b=1
    video.vadd2               vadd2.s32.s32.s32.sat d, a, b, c;           a=0x7fff0001 b=0x00010001 c=0
    video.vadd4               vadd4.u32.u32.u32 d, a, b, c;               a=0x01020304 b=0x10101010 c=0
    video.vsub2               vsub2.s32.s32.s32 d, a, b, c;               a=0x00050001 b=0x00020003 c=0
    video.vsub4               vsub4.u32.u32.u32.sat d, a, b, c;           a=0x01020304 b=0x02020202 c=0
    video.vavrg2              vavrg2.u32.u32.u32 d, a, b, c;              a=0x00010004 b=0x00020006 c=0
    video.vavrg4              vavrg4.u32.u32.u32 d, a, b, c;              a=0x01020304 b=0x03040506 c=0
    video.vabsdiff2           vabsdiff2.u32.u32.u32.add d, a, b, c;       a=0x00010009 b=0x00030002 c=100
    video.vabsdiff4           vabsdiff4.u32.u32.u32.add d, a, b, c;       a=0x01020304 b=0x04030201 c=0
    video.vmin2               vmin2.s32.s32.s32 d, a, b, c;               a=0xffff0005 b=0x00010003 c=0
    video.vmin4               vmin4.u32.u32.u32 d, a, b, c;               a=0x01ff0304 b=0x02020202 c=0
    video.vmax2               vmax2.s32.s32.s32 d, a, b, c;               a=0xffff0005 b=0x00010003 c=0
    video.vmax4               vmax4.u32.u32.u32 d, a, b, c;               a=0x01ff0304 b=0x02020202 c=0
    video.vset2               vset2.u32.u32.lt d, a, b, c;                a=0x00010005 b=0x00030003 c=0
    video.vset4               vset4.u32.u32.ge d, a, b, c;                a=0x01020304 b=0x02020202 c=0
"""

# ── small kernels ───────────────────────────────────────────────────────────────────────
#
# A line `== the declaration | threads / how many of them are shown, and the target where it is another | the registers
# that are shown`, then the text.  What stands before a line `---` goes before the kernel.

RUN = """
== move.mov_vector | 4 | %r1 %r2
mov.v4.u32 {%r1, _, _, %r2}, %tid;

== warp.shfl | 32/8 sm_60 | %r1 %p1
shfl.up.b32 %r1|%p1, %r0, 2, 0;

== warp.shfl_sync | 32/8 | %r1 %p1
shfl.sync.down.b32 %r1|%p1, %r0, 2, 0x1807, -1;

== warp.vote | 32/4 sm_60 | %p1 %p2
setp.lt.u32 %p1, %r0, 2;
vote.any.pred %p2, %p1;

== warp.vote_sync | 32/4 | %p1 %r1
setp.lt.u32 %p1, %r0, 2;
vote.sync.ballot.b32 %r1, %p1, -1;

== warp.match_any_sync | 32/6 | %r1 %r2
rem.u32 %r1, %r0, 3;
match.any.sync.b32 %r2, %r1, -1;

== warp.match_all_sync | 32/2 | %r2 %p1 %r3 %p2
match.all.sync.b32 %r2|%p1, 7, -1;
match.all.sync.b32 %r3|%p2, %r0, -1;

== warp.activemask | 8 | %r1
activemask.b32 %r1;

== warp.redux_sync | 32/2 | %r1
redux.sync.add.u32 %r1, %r0, -1;

== warp.redux_sync_bits | 32/2 | %r1
redux.sync.or.b32 %r1, %r0, -1;

== warp.redux_sync_f32 | 32/2 sm_100a | %f2
cvt.rn.f32.u32 %f1, %r0;
redux.sync.max.f32 %f2, %f1, -1;

== warp.elect_sync | 32/4 | %r1 %p1
elect.sync %r1|%p1, -1;

== memory.ld | 4 | %r1 %r2
mad.wide.u32 %rd1, %r0, 8, %rd0;
ld.global.v2.u32 {%r1, %r2}, [%rd1];

== memory.ld_global_nc | 4 | %r1
mad.wide.u32 %rd1, %r0, 4, %rd0;
ld.global.nc.u32 %r1, [%rd1];

== memory.ldu | 4 | %r1
ldu.global.u32 %r1, [%rd0+8];

== memory.st | 4 | %r1
mad.wide.u32 %rd1, %r0, 4, %rd0;
st.global.u8 [%rd1+1], %r0;
ld.global.u32 %r1, [%rd1];

== memory.prefetch | 4 | %r1
prefetch.global.L2 [%rd0];
ld.global.u32 %r1, [%rd0];

== memory.prefetchu | 4 | %r1
prefetchu.L1 [%rd0];
ld.u32 %r1, [%rd0];

== memory.cvta | 4 | %r1
.shared .b32 s[4];
mov.u64 %rd1, s;
cvta.shared.u64 %rd2, %rd1;
mad.wide.u32 %rd3, %r0, 4, %rd2;
st.u32 [%rd3], %r0;
ld.shared.u32 %r1, [s+8];

== memory.cvta_to | 4 | %r1
cvta.to.global.u64 %rd1, %rd0;
mad.wide.u32 %rd1, %r0, 4, %rd1;
ld.global.u32 %r1, [%rd1];

== memory.isspacep | 1 | %p1 %p2
isspacep.global %p1, %rd0;
isspacep.shared %p2, %rd0;

== control.bra | 4 | %r1
mov.u32 %r1, 10;
setp.ge.u32 %p1, %r0, 2;
@%p1 bra skip;
add.u32 %r1, %r1, %r0;
skip:

== control.brx_idx | 4 | %r1
mov.u32 %r1, 0;
min.u32 %r2, %r0, 2;
ts: .branchtargets zero, one, two;
brx.idx %r2, ts;
one: mov.u32 %r1, 11;
bra zero;
two: mov.u32 %r1, 22;
zero:

== control.call | 4 | %r1
.func (.reg .u32 d) square (.reg .u32 a) { mul.lo.u32 d, a, a; ret; }
---
call (%r1), square, (%r0);

== control.call_indirect | 4 | %r1
.func (.reg .u32 d) square (.reg .u32 a) { mul.lo.u32 d, a, a; ret; }
---
mov.u64 %rd1, square;
proto: .callprototype (.reg .u32 d) _ (.reg .u32 a);
call (%r1), %rd1, (%r0), proto;

== control.ret | 4 | %r1
.func (.reg .u32 d) least (.reg .u32 a) {
    .reg .pred p;
    mov.u32 d, a;
setp.lt.u32 p, a, 2;
@p ret;
    mov.u32 d, 2;
ret;
}
---
call (%r1), least, (%r0);

== control.exit_ | 4 | %r1
setp.eq.u32 %p1, %r0, 1;
@%p1 exit;  // thread 1 ends here: nothing is written for it
mov.u32 %r1, 7;

== barrier.bar_sync | 64/4 | %r1
.shared .b32 s[64];
mov.u32 %r2, s;
mad.lo.u32 %r3, %r0, 4, %r2;
st.shared.u32 [%r3], %r0;
bar.sync 0;
xor.b32 %r4, %r0, 63;
mad.lo.u32 %r3, %r4, 4, %r2;
ld.shared.u32 %r1, [%r3];

== barrier.barrier_sync | 64/4 | %r1
.shared .b32 s[64];
mov.u32 %r2, s;
mad.lo.u32 %r3, %r0, 4, %r2;
st.shared.u32 [%r3], %r0;
barrier.sync 0;
xor.b32 %r4, %r0, 63;
mad.lo.u32 %r3, %r4, 4, %r2;
ld.shared.u32 %r1, [%r3];

== barrier.bar_arrive | 64/4 | %r1
.shared .b32 s;
setp.lt.u32 %p1, %r0, 32;
@%p1 bra consume;
st.shared.u32 [s], 42;
bar.arrive 1, 64;  // the second warp produces, and goes on
bra done;
consume: bar.sync 1, 64;  // the first warp waits for it
ld.shared.u32 %r1, [s];
done:

== barrier.barrier_arrive | 64/4 | %r1
.shared .b32 s;
setp.lt.u32 %p1, %r0, 32;
@%p1 bra consume;
st.shared.u32 [s], 42;
barrier.arrive 1, 64;  // the second warp produces, and goes on
bra done;
consume: barrier.sync 1, 64;  // the first warp waits for it
ld.shared.u32 %r1, [s];
done:

== barrier.bar_red | 64/2 | %r1
setp.lt.u32 %p1, %r0, 40;
bar.red.popc.u32 %r1, 0, %p1;

== barrier.barrier_red | 64/2 | %p2
setp.lt.u32 %p1, %r0, 40;
barrier.red.and.pred %p2, 0, %p1;

== barrier.bar_warp_sync | 32/4 | %r1
.shared .b32 s[32];
mov.u32 %r2, s;
mad.lo.u32 %r3, %r0, 4, %r2;
st.shared.u32 [%r3], %r0;
bar.warp.sync -1;
xor.b32 %r4, %r0, 31;
mad.lo.u32 %r3, %r4, 4, %r2;
ld.shared.u32 %r1, [%r3];

== barrier.membar | 1 | %r1
st.global.u32 [%rd0], 1;
membar.gl;
ld.global.u32 %r1, [%rd0];

== barrier.fence | 1 | %r1
st.global.u32 [%rd0], 1;
fence.sc.gpu;
ld.global.u32 %r1, [%rd0];

== barrier.fence_proxy | 1 | %r1
st.global.u32 [%rd0], 7;
fence.proxy.alias;
ld.global.u32 %r1, [%rd0];

== barrier.membar_proxy | 1 | %r1
st.global.u32 [%rd0], 7;
membar.proxy.alias;
ld.global.u32 %r1, [%rd0];

== atomic.atom | 4 | %r2
atom.global.add.u32 %r1, [%rd0], 10;
bar.sync 0;
ld.global.u32 %r2, [%rd0];

== atomic.atom_cas | 4 | %p1 %r2
atom.global.cas.b32 %r1, [%rd0], 100, 7;
setp.eq.u32 %p1, %r1, 100;
bar.sync 0;
ld.global.u32 %r2, [%rd0];

== atomic.red | 4 | %r1
red.global.max.u32 [%rd0], 1000;
bar.sync 0;
ld.global.u32 %r1, [%rd0];

== wmma.wmma_load | 32/8 | %r1 %r2 %r3 %r4
wmma.load.c.sync.aligned.row.m16n16k16.global.s32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd0], 16;

== wmma.wmma_load_f64 | 32/8 | %fd1 %fd2
mad.wide.u32 %rd1, %r0, 16, %rd0;
cvt.rn.f64.u32 %fd3, %r0;
st.global.v2.f64 [%rd1], {%fd3, %fd3};
bar.sync 0;
wmma.load.c.sync.aligned.row.m8n8k4.global.f64 {%fd1, %fd2}, [%rd0], 8;

== wmma.wmma_store | 32/8 | %r1
wmma.store.d.sync.aligned.row.m8n8k32.global.s32 [%rd0], {%r0, %r0}, 8;
bar.sync 0;
mad.wide.u32 %rd1, %r0, 4, %rd0; ld.global.u32 %r1, [%rd1];  // which lane stored word n

== wmma.wmma_store_f64 | 32/8 | %fd2
cvt.rn.f64.u32 %fd1, %r0;
wmma.store.d.sync.aligned.row.m8n8k4.global.f64 [%rd0], {%fd1, %fd1}, 8;
bar.sync 0;
mad.wide.u32 %rd1, %r0, 8, %rd0; ld.global.f64 %fd2, [%rd1];  // which lane stored element n

== wmma.wmma_mma | 32/2 | %f2 %f3
mov.b32 %r1, 0x3c003c00; mov.b32 %r2, 0x40004000;  // A is all ones, B all twos
mov.f32 %f1, 0.5;
wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32
    {%f2, %f3, %f4, %f5, %f6, %f7, %f8, %f9}, {%r1, %r1, %r1, %r1, %r1, %r1, %r1, %r1},
    {%r2, %r2, %r2, %r2, %r2, %r2, %r2, %r2}, {%f1, %f1, %f1, %f1, %f1, %f1, %f1, %f1};

== wmma.wmma_mma_integer | 32/2 | %r3 %r4
mov.b32 %r1, 0x11111111; mov.b32 %r2, 0x22222222;  // A is all ones, B all twos
wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.s4.s32 {%r3, %r4}, {%r1}, {%r2}, {%r0, %r0};

== wmma.wmma_mma_bits | 32/2 | %r3 %r4
mov.b32 %r1, 0x11111111; mov.b32 %r2, 0x33333333;  // one bit in four differs
wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 {%r3, %r4}, {%r1}, {%r2}, {%r0, %r0};

== wmma.wmma_mma_f64 | 32/2 | %fd3 %fd4
mov.f64 %fd1, 0.5;
mov.f64 %fd2, 3.0;
wmma.mma.sync.aligned.row.col.m8n8k4.f64.f64.f64.f64 {%fd3, %fd4}, {%fd1}, {%fd2}, {%fd1, %fd2};

== mma.mma | 32/8 | %f1 %f2 %f3 %f4
.reg .b16 %h<4>;
shr.u32 %r4, %r0, 2; and.b32 %r5, %r0, 3; shl.b32 %r5, %r5, 1;
mad.lo.u32 %r6, %r4, 10, %r5;               // A[r][k] = 10 r + k
cvt.rn.f16.u32 %h0, %r6; add.u32 %r6, %r6, 1; cvt.rn.f16.u32 %h1, %r6; mov.b32 %r1, {%h0, %h1};
add.u32 %r6, %r6, 79; cvt.rn.f16.u32 %h2, %r6; add.u32 %r6, %r6, 1; cvt.rn.f16.u32 %h3, %r6; mov.b32 %r2, {%h2, %h3};
setp.eq.u32 %p1, %r4, %r5; selp.b32 %r3, 0x3c00, 0, %p1;
add.u32 %r5, %r5, 1; setp.eq.u32 %p1, %r4, %r5; selp.b32 %r3, 0x3c000000, %r3, %p1;  // B is the identity
mov.f32 %f0, 0.5;
mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32    // D[r][n] = 10 r + n + 0.5
    {%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r3}, {%f0, %f0, %f0, %f0};

== mma.mma_integer | 32/8 | %r3 %r4
shr.u32 %r1, %r0, 2; mul.lo.u32 %r1, %r1, 0x01010101; mov.b32 %r2, 0;
mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32    // A[r][k] = r and B[k][n] = n: D[r][n] = 16 r n
    {%r3, %r4}, {%r1}, {%r1}, {%r2, %r2};

== mma.mma_bits | 32/2 | %r3 %r4
mov.b32 %r1, 0x11111111;
mov.b32 %r2, 0x33333333;
mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc {%r3, %r4}, {%r1}, {%r2}, {%r0, %r0};

== mma.mma_f64 | 32/8 | %fd3 %fd4
shr.u32 %r1, %r0, 2; cvt.rn.f64.u32 %fd1, %r1; mov.f64 %fd2, 0.5;
mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64    // A[r][k] = r and B[k][n] = n: D[r][n] = 4 r n + 0.5
    {%fd3, %fd4}, {%fd1}, {%fd1}, {%fd2, %fd2};

== matrix.ldmatrix | 32/8 | %r1
.shared .align 16 .b32 s[32];
mov.u32 %r2, s;
mad.lo.u32 %r3, %r0, 4, %r2;
st.shared.u32 [%r3], %r0;
bar.sync 0;
and.b32 %r4, %r0, 7; mad.lo.u32 %r4, %r4, 16, %r2;  // lanes 0 to 7 point to the rows
ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r4];

== matrix.stmatrix | 32/8 | %r1
.shared .align 16 .b32 s[32];
mov.u32 %r2, s;
and.b32 %r4, %r0, 7;
mad.lo.u32 %r4, %r4, 16, %r2;
stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r4], {%r0};
bar.sync 0;
mad.lo.u32 %r3, %r0, 4, %r2;
ld.shared.u32 %r1, [%r3];

== matrix.movmatrix | 32/8 | %r2
mad.lo.u32 %r1, %r0, 0x20002, 0x10000;  // element n of the matrix is n
movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1;

== stack.alloca | 2 | %r1
alloca.u64 %rd1, 16;
st.local.u32 [%rd1], %r0;
ld.local.u32 %r1, [%rd1];

== stack.stacksave | 1 | %p1
stacksave.u64 %rd1;
alloca.u64 %rd2, 16;
stackrestore.u64 %rd1;
stacksave.u64 %rd3;
setp.eq.u64 %p1, %rd1, %rd3;

== stack.stackrestore | 1 | %p1
stacksave.u64 %rd1;
alloca.u64 %rd2, 16;
stackrestore.u64 %rd1;
stacksave.u64 %rd3;
setp.eq.u64 %p1, %rd1, %rd3;

== misc.nanosleep | 1 | %r1
mov.u32 %r1, 5;
nanosleep.u32 20;

== misc.pmevent | 1 | %r1
mov.u32 %r1, 5;
pmevent 7;

== misc.pmevent_mask | 1 | %r1
mov.u32 %r1, 5;
pmevent.mask 3;

== misc.griddepcontrol | 1 | %r1
mov.u32 %r1, 5;
griddepcontrol.wait;

== misc.applypriority | 1 | %r1
applypriority.global.L2::evict_normal [%rd0], 128;
ld.global.u32 %r1, [%rd0];

== misc.discard | 1 | %r1
discard.global.L2 [%rd0], 128;  // what these 128 bytes hold is open until they are written
st.global.u32 [%rd0], 7;
ld.global.u32 %r1, [%rd0];

== misc.createpolicy_cvt | 1 | %r1
createpolicy.cvt.L2.b64 %rd1, 0x16f0000000000000;
ld.global.L2::cache_hint.u32 %r1, [%rd0], %rd1;

== misc.createpolicy_fractional | 1 | %r1
createpolicy.fractional.L2::evict_first.b64 %rd1, 0.5;
ld.global.L2::cache_hint.u32 %r1, [%rd0], %rd1;

== misc.createpolicy_range | 1 | %r1
createpolicy.range.global.L2::evict_last.b64 %rd1, [%rd0], 128, 256;
ld.global.L2::cache_hint.u32 %r1, [%rd0], %rd1;

== texture.tex | 4 | %f2
cvt.rn.f32.u32 %f1, %r0;
mov.f32 %f0, 0f3F000000;  // 0.5 is the middle of the first row
tex.2d.v4.f32.f32 {%f2, %f3, %f4, %f5}, [%rd1, {%f1, %f0}];

== texture.tld4 | 1 | %f2 %f3 %f4 %f5
mov.f32 %f1, 0f40000000;  // the four texels around (2, 1)
mov.f32 %f0, 0f3F800000;
tld4.r.2d.v4.f32.f32 {%f2, %f3, %f4, %f5}, [%rd1, {%f1, %f0}];

== texture.txq | 1 | %r1
txq.width.b32 %r1, [%rd1];

== texture.istypep | 1 | %p1 %p2
istypep.texref %p1, %rd1;
istypep.texref %p2, %rd2;

== surface.suld | 4 | %r2
mov.u32 %r1, 2;
shl.b32 %r3, %r0, 2;  // x counts bytes
suld.b.2d.b32.trap %r2, [%rd2, {%r3, %r1}];

== surface.sust | 4 | %r2
mov.u32 %r1, 2;
shl.b32 %r3, %r0, 2;  // x counts bytes
sust.b.2d.b32.trap [%rd2, {%r3, %r1}], %r0;
suld.b.2d.b32.trap %r2, [%rd2, {%r3, %r1}];

== surface.sured | 4 | %r2
mov.u32 %r1, 0;
sured.b.add.2d.u32.trap [%rd2, {%r1, %r1}], 10;
bar.sync 0;
suld.b.2d.b32.trap %r2, [%rd2, {%r1, %r1}];

== surface.suq | 1 | %r1
suq.height.b32 %r1, [%rd2];

== surface.suld_vector | 2 | %r2 %r3
mov.u32 %r1, 2;
shl.b32 %r4, %r0, 3;  // x counts bytes
suld.b.2d.v2.b32.trap {%r2, %r3}, [%rd2, {%r4, %r1}];

== surface.sust_vector | 2 | %r2
mov.u32 %r1, 2;
shl.b32 %r4, %r0, 3;  // x counts bytes
sust.b.2d.v2.b32.trap [%rd2, {%r4, %r1}], {%r0, %r1};
suld.b.2d.b32.trap %r2, [%rd2, {%r4, %r1}];

== wmma.wmma_mma_alternate | 32/2 | %f2 %f3
mov.b32 %r1, 0x3f803f80;
mov.b32 %r2, 0x40004000;  // A is all ones, B all twos
mov.f32 %f1, 0.5;
wmma.mma.sync.aligned.row.col.m16n16k16.f32.bf16.bf16.f32
    {%f2, %f3, %f4, %f5, %f6, %f7, %f8, %f9}, {%r1, %r1, %r1, %r1},
    {%r2, %r2, %r2, %r2}, {%f1, %f1, %f1, %f1, %f1, %f1, %f1, %f1};

== mma.mma_alternate | 32/8 | %f1 %f2 %f3 %f4
shr.u32 %r4, %r0, 2; cvt.rn.f32.u32 %f5, %r4; add.f32 %f6, %f5, 8.0;
cvt.rn.bf16x2.f32 %r1, %f5, %f5; cvt.rn.bf16x2.f32 %r2, %f6, %f6;
mov.f32 %f0, 0.5;
mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32    // A[r][k] = r and B[k][n] = n: D[r][n] = 8 r n + 0.5
    {%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r1}, {%f0, %f0, %f0, %f0};

== mma.mma_small | 32/8 | %f1 %f2 %f3 %f4
.reg .b16 %h<2>;
shr.u32 %r4, %r0, 2; cvt.rn.f32.u32 %f5, %r4; add.f32 %f6, %f5, 8.0;
cvt.rn.satfinite.e4m3x2.f32 %h0, %f5, %f5; cvt.rn.satfinite.e4m3x2.f32 %h1, %f6, %f6;
mov.b32 %r1, {%h0, %h0}; mov.b32 %r2, {%h1, %h1};
mov.f32 %f0, 0.5;
mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32    // A[r][k] = r and B[k][n] = n: D[r][n] = 32 r n + 0.5
    {%f1, %f2, %f3, %f4}, {%r1, %r2, %r1, %r2}, {%r1, %r1}, {%f0, %f0, %f0, %f0};
"""

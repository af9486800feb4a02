// softmax(Q K^T) V for sm_100a: a warp copies, another multiplies, and a thread of four others has a row.  Scores go to one of two
// places in tensor memory; P goes back there as the operand A of the second product, whose sums are rescaled where they lie.
#include "mbarriers.h"

__device__ u64 descriptor(const void *tile) { return (address(tile) & 0x3FFFF) >> 4 | 1ull << 16 | 1024ull >> 4 << 32 | 1ull << 46 | 2ull << 61; }
__device__ void commit(u64 *bar) { asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(address(bar)) : "memory"); }
__device__ void scores(u32 d, u64 q, u64 k, u32 shape, int adds)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\ntcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n}" ::"r"(d), "l"(q), "l"(k), "r"(shape), "r"(adds) : "memory");
}
__device__ void weigh(u32 d, u32 p, u64 v, u32 shape, int adds)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\ntcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, p;\n}" ::"r"(d), "r"(p), "l"(v), "r"(shape), "r"(adds) : "memory");
}
// 32 columns of the lane of a thread
__device__ void load(float *v, u32 from) { asm volatile("tcgen05.ld.sync.aligned.32x32b.x32.b32 " R32 ", [%32];" : OUT32(v) : "r"(from)); }
__device__ void store(u32 to, float *v) { asm volatile("tcgen05.st.sync.aligned.32x32b.x32.b32 [%32], " R32 ";" : OUT32(v) : "r"(to) : "memory"); }
#define LOADED asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory")
#define STORED asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory")
#define BEFORE asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory")
#define AFTER asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory")

extern "C" __global__ void __launch_bounds__(192) attention_tcgen05(const __grid_constant__ CUtensorMap q, const __grid_constant__ CUtensorMap k, const __grid_constant__ CUtensorMap v, float *out, float scale, int blocks)
{
    __shared__ alignas(1024) half Q[2][TILE], K[2][TILE], V[2][TILE];
    __shared__ u64 q_full, k_full[2], k_empty[2], v_full[2], v_empty[2], s_full[2], p_full, o_full;
    __shared__ u32 base;
    const int thread = threadIdx.x, warp = thread / 32;
    if (warp == 5)
        asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 256;\ntcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::"r"(address(&base)) : "memory");
    if (thread == 0) {
        make(&q_full, 1), make(&p_full, 128), make(&o_full, 1);
        for (int stage = 0; stage < 2; ++stage)
            make(&k_full[stage], 1), make(&v_full[stage], 1), make(&s_full[stage], 1), make(&k_empty[stage], 1), make(&v_empty[stage], 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    BEFORE;
    __syncthreads();
    AFTER;
    const u32 S = base, P = base + 128, O = base + 192;
    if (thread == 128) {
        expect(&q_full, 2 * TILE_BYTES);
        copy(Q[0], &q, blockIdx.x * 128, &q_full), copy(Q[1], &q, blockIdx.x * 128 + 64, &q_full);
#pragma unroll 1
        for (int block = 0; block < blocks; ++block) {
            const int stage = block & 1, parity = block / 2 & 1 ^ 1;
            wait(&k_empty[stage], parity), expect(&k_full[stage], TILE_BYTES), copy(K[stage], &k, block * 64, &k_full[stage]);
            wait(&v_empty[stage], parity), expect(&v_full[stage], TILE_BYTES), copy(V[stage], &v, block * 64, &v_full[stage]);
        }
    } else if (thread == 160) {
        const u32 shape = 1 << 4 | 64 / 8 << 17 | 128 / 16 << 24, transposed = 1 << 16;
        auto multiply = [&](int block) {
            const int stage = block & 1;
            wait(&k_full[stage], block / 2 & 1);
            for (int part = 0; part < 4; ++part)
                scores(S + 64 * stage, descriptor(Q) + 2 * part, descriptor(K[stage]) + 2 * part, shape, part);
            commit(&k_empty[stage]), commit(&s_full[stage]);
        };
        wait(&q_full, 0);
        multiply(0);
#pragma unroll 1
        for (int block = 0; block < blocks; ++block) {
            const int stage = block & 1;
            if (block + 1 < blocks)
                multiply(block + 1);
            wait(&p_full, block & 1), wait(&v_full[stage], block / 2 & 1);
            AFTER;
            for (int part = 0; part < 4; ++part)
                weigh(O, P + 8 * part, descriptor(V[stage]) + 128 * part, shape | transposed, block + part);
            commit(&v_empty[stage]), commit(&o_full);
        }
    } else if (warp < 4) {
        const u32 lanes = warp << 21;
        float most = -INFINITY, sum = 0, o[64];
#pragma unroll 1
        for (int block = 0; block < blocks; ++block) {
            float s[64], p[32];
            wait(&s_full[block & 1], block / 2 & 1);
            AFTER;
            load(s, S + lanes + 64 * (block & 1)), load(s + 32, S + lanes + 64 * (block & 1) + 32);
            LOADED;
            float now = most;
            for (float each : s)
                now = fmaxf(now, each * scale);
            const float factor = exp2f(most - now);
            most = now, sum *= factor;
            for (int at = 0; at < 32; ++at) {
                const float one = exp2f(s[2 * at] * scale - now), other = exp2f(s[2 * at + 1] * scale - now);
                const half2 two = __floats2half2_rn(one, other);
                sum += one + other, p[at] = reinterpret_cast<const float &>(two);
            }
            if (block > 0) {
                wait(&o_full, block - 1 & 1);
                AFTER;
                load(o, O + lanes), load(o + 32, O + lanes + 32);
                LOADED;
                for (float &each : o)
                    each *= factor;
                store(O + lanes, o), store(O + lanes + 32, o + 32);
            }
            store(P + lanes, p);
            STORED;
            BEFORE;
            arrive(&p_full);
        }
        wait(&o_full, blocks - 1 & 1);
        AFTER;
        load(o, O + lanes), load(o + 32, O + lanes + 32);
        LOADED;
        for (int at = 0; at < 64; ++at)
            out[(blockIdx.x * 128 + thread) * 64 + at] = o[at] / sum;
        BEFORE;
    }
    __syncthreads();
    AFTER;
    if (warp == 5)
        asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 256;" ::"r"(base));
}

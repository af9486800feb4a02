// softmax(Q K^T) V for sm_90a, as FlashAttention 3 has it: one warpgroup copies, two multiply, each 64 queries.  The scores of
// the next keys are multiplied while those of the last are weighted, and P is the operand in registers.
#include "mbarriers.h"

__device__ u64 descriptor(const void *tile) { return (address(tile) & 0x3FFFF) >> 4 | 1ull << 16 | 1024ull >> 4 << 32 | 1ull << 62; }
__device__ void scores(float (&s)[32], u64 q, u64 k, int adds)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " R32 ", %32, %33, p, 1, 1, 0, 0;\n}" : OUT32(s) : "l"(q), "l"(k), "r"(adds));
}
__device__ void weigh(float (&o)[32], const u32 (&p)[4], u64 v)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " R32 ", {%32, %33, %34, %35}, %36, 1, 1, 1, 1;" : OUT32(o) : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "l"(v));
}
#define FENCE asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define COMMIT asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
#define WAIT(n) asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(n) : "memory")
#define SETTLED(v) for (auto &each : v) asm volatile("" : "+f"(each)::"memory")

extern "C" __global__ void __launch_bounds__(384) attention_wgmma(const __grid_constant__ CUtensorMap q, const __grid_constant__ CUtensorMap k, const __grid_constant__ CUtensorMap v, float *out, float scale, int blocks)
{
    __shared__ alignas(1024) half Q[2][TILE], K[2][TILE], V[2][TILE];
    __shared__ u64 q_full, k_full[2], k_empty[2], v_full[2], v_empty[2];
    const int group = threadIdx.x / 128, thread = threadIdx.x % 128;
    if (threadIdx.x == 0) {
        make(&q_full, 1);
        for (int stage = 0; stage < 2; ++stage)
            make(&k_full[stage], 1), make(&v_full[stage], 1), make(&k_empty[stage], 2), make(&v_empty[stage], 2);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    if (group == 2) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (thread != 0)
            return;
        expect(&q_full, 2 * TILE_BYTES);
        copy(Q[0], &q, blockIdx.x * 128, &q_full), copy(Q[1], &q, blockIdx.x * 128 + 64, &q_full);
#pragma unroll 1
        for (int block = 0; block < blocks; ++block) {
            const int stage = block & 1, parity = block / 2 & 1 ^ 1;
            wait(&k_empty[stage], parity), expect(&k_full[stage], TILE_BYTES), copy(K[stage], &k, block * 64, &k_full[stage]);
            wait(&v_empty[stage], parity), expect(&v_full[stage], TILE_BYTES), copy(V[stage], &v, block * 64, &v_full[stage]);
        }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    float o[32] = {}, s[32], most[2] = {-INFINITY, -INFINITY}, sum[2] = {}, factor[2];
    u32 p[4][4];
    auto multiply = [&](int block) {
        wait(&k_full[block & 1], block / 2 & 1);
        FENCE;
        for (int part = 0; part < 4; ++part)
            scores(s, descriptor(Q[group]) + 2 * part, descriptor(K[block & 1]) + 2 * part, part);
        COMMIT;
    };
    auto add = [&](int block) {
        wait(&v_full[block & 1], block / 2 & 1);
        for (int part = 0; part < 4; ++part)
            weigh(o, p[part], descriptor(V[block & 1]) + 128 * part);
        COMMIT;
    };
    auto weights = [&](int block) {
        SETTLED(s);
        if (thread == 0)
            arrive(&k_empty[block & 1]);
        for (int half = 0; half < 2; ++half) { // a thread has elements of two rows
            float now = most[half];
            for (int at = 2 * half; at < 32; at += 4)
                now = fmaxf(now, fmaxf(s[at], s[at + 1]) * scale);
            now = fmaxf(now, __shfl_xor_sync(~0u, now, 1)), now = fmaxf(now, __shfl_xor_sync(~0u, now, 2));
            factor[half] = exp2f(most[half] - now), most[half] = now, sum[half] *= factor[half];
            for (int at = 2 * half; at < 32; at += 4)
                s[at] = exp2f(s[at] * scale - now), s[at + 1] = exp2f(s[at + 1] * scale - now), sum[half] += s[at] + s[at + 1];
        }
    };
    auto rescale = [&](int last) {
        WAIT(0);
        SETTLED(o);
        if (thread == 0)
            arrive(&v_empty[last & 1]);
        for (int at = 0; at < 32; ++at)
            o[at] *= factor[at / 2 & 1];
    };
    auto pack = [&] {
        for (int at = 0; at < 16; ++at) {
            const half2 two = __floats2half2_rn(s[2 * at], s[2 * at + 1]);
            p[at / 4][at % 4] = reinterpret_cast<const u32 &>(two);
        }
    };
    wait(&q_full, 0);
    multiply(0);
    WAIT(0);
    weights(0), pack();
#pragma unroll 1
    for (int block = 1; block < blocks; ++block) {
        multiply(block), add(block - 1);
        WAIT(1);
        weights(block), rescale(block - 1), pack();
    }
    FENCE;
    add(blocks - 1);
    factor[0] = factor[1] = 1;
    rescale(blocks - 1);
    for (int half = 0; half < 2; ++half)
        sum[half] += __shfl_xor_sync(~0u, sum[half], 1), sum[half] += __shfl_xor_sync(~0u, sum[half], 2);
    float *const to = out + (blockIdx.x * 128 + group * 64 + thread / 32 * 16 + thread % 32 / 4) * 64 + thread % 4 * 2;
    for (int at = 0; at < 32; ++at)
        to[at / 4 * 8 + at / 2 % 2 * 8 * 64 + at % 2] = o[at] / sum[at / 2 & 1];
}

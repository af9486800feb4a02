// C = A B^T for sm_100a: tensor copies fill a ring of buffers, one thread multiplies by tcgen05 into tensor memory.
//
// A is M by K, B is N by K, both of f16 and row by row; C is M by N, of f32.  A block of 192 threads computes 128 by 32
// elements of C: warp 4 copies, warp 5 multiplies, the first four read the sums.  M is a multiple of 128, N of 32, K of 64.
#include <cuda.h>
#include <cuda_fp16.h>

constexpr int ROWS = 128, COLUMNS = 32, DEPTH = 64, STAGES = 2, BYTES = (ROWS + COLUMNS) * DEPTH * 2;

__device__ unsigned address(const void *shared) { return static_cast<unsigned>(__cvta_generic_to_shared(shared)); }

__device__ void wait(unsigned long long *bar, unsigned parity)
{
    asm volatile("{\n.reg .pred over;\n"
                 "again: mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n"
                 "@!over bra again;\n}" ::"r"(address(bar)), "r"(parity) : "memory");
}

__device__ void copy(void *to, const CUtensorMap *map, int x, int y, unsigned long long *bar)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
                     address(to)),
                 "l"(map), "r"(x), "r"(y), "r"(address(bar)) : "memory");
}

// A tile whose rows of 128 bytes are swizzled; eight rows are 1024 bytes.
__device__ unsigned long long descriptor(const void *tile)
{
    return (address(tile) & 0x3FFFF) >> 4 | 1ull << 16 | 1024ull >> 4 << 32 | 1ull << 46 | 2ull << 61;
}

__device__ void commit(unsigned long long *bar)
{
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(address(bar)) : "memory");
}

extern "C" __global__ void gemm_tcgen05(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float *c,
                                        int n, int k)
{
    __shared__ alignas(1024) half left[STAGES][ROWS * DEPTH], right[STAGES][COLUMNS * DEPTH];
    __shared__ unsigned long long full[STAGES], empty[STAGES], done;
    __shared__ unsigned base;
    const int thread = threadIdx.x, warp = thread / 32, steps = k / DEPTH;
    if (warp == 0) {
        asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" ::"r"(address(&base)) : "memory");
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
    }
    if (thread == 32) {
        for (int stage = 0; stage < STAGES; ++stage)
            for (unsigned long long *bar : {&full[stage], &empty[stage]})
                asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(bar)) : "memory");
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(&done)) : "memory");
        asm volatile("fence.proxy.async;" ::: "memory");
    }
    asm volatile("tcgen05.fence::before_thread_sync;");
    __syncthreads();
    asm volatile("tcgen05.fence::after_thread_sync;");
    const unsigned d = base;
    if (thread == 128) {
        for (int step = 0; step < steps; ++step) {
            const int stage = step % STAGES;
            wait(&empty[stage], step / STAGES & 1 ^ 1);
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(&full[stage])), "r"(BYTES)
                         : "memory");
            copy(left[stage], &a, step * DEPTH, blockIdx.y * ROWS, &full[stage]);
            copy(right[stage], &b, step * DEPTH, blockIdx.x * COLUMNS, &full[stage]);
        }
    } else if (thread == 160) {
        const unsigned shape = 1 << 4 | COLUMNS / 8 << 17 | ROWS / 16 << 24; // f32 = f16 * f16
        for (int step = 0; step < steps; ++step) {
            const int stage = step % STAGES;
            wait(&full[stage], step / STAGES & 1);
            for (int part = 0; part < DEPTH / 16; ++part)
                asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %4, 0;\n"
                             "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, adds;\n}" ::"r"(d),
                             "l"(descriptor(left[stage]) + 2 * part), "l"(descriptor(right[stage]) + 2 * part), "r"(shape),
                             "r"(step + part) : "memory");
            commit(&empty[stage]);
        }
        commit(&done);
    }
    if (warp < 4) {
        wait(&done, 0);
        asm volatile("tcgen05.fence::after_thread_sync;");
        float *const to = c + (blockIdx.y * ROWS + thread) * n + blockIdx.x * COLUMNS;
        for (int column = 0; column < COLUMNS; column += 8) {
            float sum[8];
            asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];\n"
                         "tcgen05.wait::ld.sync.aligned;"
                         : "=f"(sum[0]), "=f"(sum[1]), "=f"(sum[2]), "=f"(sum[3]), "=f"(sum[4]), "=f"(sum[5]), "=f"(sum[6]),
                           "=f"(sum[7])
                         : "r"(d + (warp << 21) + column));
            for (int n = 0; n < 8; ++n)
                to[column + n] = sum[n];
        }
        asm volatile("tcgen05.fence::before_thread_sync;");
    }
    __syncthreads();
    if (warp == 0)
        asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 32;" ::"r"(d));
}

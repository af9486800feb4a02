// C = A B^T for sm_90a: tensor copies fill a ring of buffers, mbarriers hand them over, and a warpgroup multiplies by wgmma.
//
// A is M by K, B is N by K, both of f16 and row by row; C is M by N, of f32.  A block of 160 threads computes 64 by 64
// elements of C: its last warp copies, and the other four multiply.  M, N and K are multiples of 64.
#include <cuda.h>
#include <cuda_fp16.h>

constexpr int TILE = 64, STAGES = 2, CONSUMERS = 128, BYTES = TILE * TILE * 2;

__device__ unsigned address(const void *shared) { return static_cast<unsigned>(__cvta_generic_to_shared(shared)); }

__device__ void expect(unsigned long long *bar, unsigned count, unsigned bytes)
{
    if (bytes)
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(bar)), "r"(bytes) : "memory");
    else
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(bar)), "r"(count) : "memory");
}

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
    return (address(tile) & 0x3FFFF) >> 4 | 1ull << 16 | 1024ull >> 4 << 32 | 1ull << 62;
}

__device__ void multiply(float (&d)[32], unsigned long long a, unsigned long long b)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, "
                 "%13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, "
                 "1, 1, 1, 0, 0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                   "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
                   "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
                   "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
                 : "l"(a), "l"(b));
}

extern "C" __global__ void gemm_wgmma(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float *c,
                                      int n, int k)
{
    __shared__ alignas(1024) half tiles[STAGES][2][TILE * TILE];
    __shared__ unsigned long long full[STAGES], empty[STAGES];
    const int thread = threadIdx.x, steps = k / TILE;
    if (thread == 0) {
        for (int stage = 0; stage < STAGES; ++stage)
            expect(&full[stage], 1, 0), expect(&empty[stage], CONSUMERS, 0);
        asm volatile("fence.proxy.async;" ::: "memory");
    }
    __syncthreads();
    if (thread >= CONSUMERS) {
        if (thread == CONSUMERS)
            for (int step = 0; step < steps; ++step) {
                const int stage = step % STAGES;
                wait(&empty[stage], step / STAGES & 1 ^ 1);
                expect(&full[stage], 0, 2 * BYTES);
                copy(tiles[stage][0], &a, step * TILE, blockIdx.y * TILE, &full[stage]);
                copy(tiles[stage][1], &b, step * TILE, blockIdx.x * TILE, &full[stage]);
            }
        return;
    }
    float d[32] = {};
    for (int step = 0; step < steps; ++step) {
        const int stage = step % STAGES;
        wait(&full[stage], step / STAGES & 1);
        const unsigned long long left = descriptor(tiles[stage][0]), right = descriptor(tiles[stage][1]);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        for (int part = 0; part < TILE / 16; ++part)
            multiply(d, left + 2 * part, right + 2 * part);
        asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
        for (float &each : d)
            asm volatile("" : "+f"(each)::"memory");
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(&empty[stage])) : "memory");
    }
    const int row = blockIdx.y * TILE + thread / 32 * 16 + thread % 32 / 4, column = blockIdx.x * TILE + thread % 4 * 2;
    for (int part = 0; part < 32; part += 4) {
        float *const to = c + row * n + column + 2 * part;
        to[0] = d[part], to[1] = d[part + 1], to[8 * n] = d[part + 2], to[8 * n + 1] = d[part + 3];
    }
}

// row_sums[i] = the sum of row i of a matrix of 64 columns, by a cluster of two blocks.
//
// One thread of each block keeps tensor copies (TMA) under way in a ring of buffers: it loads half of the next 16 rows and
// multicasts them to both blocks, whose mbarriers count the bytes.  The other four warps add up rows, block 0 the even ones,
// and tell both blocks when a buffer is free.
#include <cuda.h>

#include <cstdint>

constexpr int STAGES = 3, ROWS = 16, COLUMNS = 64, WARPS = 4;

__device__ uint32_t shared(const void *p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ void wait(uint64_t *barrier, uint32_t parity) {
    uint32_t over;
    do {
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;"
                     "  selp.u32 %0, 1, 0, p; }" : "=r"(over) : "r"(shared(barrier)), "r"(parity) : "memory");
    } while (!over);
}

__device__ void meet() { asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory"); }

extern "C" __global__ void __cluster_dims__(2, 1, 1)
row_sums(const __grid_constant__ CUtensorMap map, float *sums, int tiles) {
    __shared__ alignas(128) float tile[STAGES][ROWS][COLUMNS];
    __shared__ uint64_t full[STAGES], empty[STAGES];
    uint32_t rank, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared(&full[s])));
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared(&empty[s])), "r"(2 * WARPS));
        }
        asm volatile("fence.mbarrier_init.release.cluster;");
    }
    meet();
    if (warp == WARPS && lane == 0) {
        for (int n = 0; n < tiles; n++) {
            int s = n % STAGES, row = n * ROWS + rank * ROWS / 2;
            wait(&empty[s], n / STAGES + 1 & 1);
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared(&full[s])), "n"(ROWS * COLUMNS * 4));
            asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
                         " [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared(&tile[s][rank * ROWS / 2][0])), "l"(&map), "r"(0),
                         "r"(row), "r"(shared(&full[s])), "h"(static_cast<uint16_t>(3)) : "memory");
        }
    } else if (warp < WARPS) {
        for (int n = 0; n < tiles; n++) {
            int s = n % STAGES;
            wait(&full[s], n / STAGES & 1);
            for (int row = warp; row < ROWS; row += WARPS) {
                float sum = tile[s][row][lane] + tile[s][row][lane + 32];
                for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
                if (lane == 0 && row % 2 == rank) sums[n * ROWS + row] = sum;
            }
            __syncwarp();
            if (lane < 2)
                asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1;"
                             "  mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there]; }"
                             ::"r"(shared(&empty[s])), "r"(lane) : "memory");
        }
    }
    meet();
}

// Cooperative grids: sums over several arrays in one launch, an iteration to convergence, and barriers of parts of blocks.
#include "check.h"
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <vector>

namespace cg = cooperative_groups;

__global__ void reduce(const double *data, int n, double *partial) {
    cg::grid_group grid = cg::this_grid();
    cg::thread_block block = cg::this_thread_block();
    extern __shared__ double sums[];
    auto warp = cg::tiled_partition<32>(block);
    double sum = 0;
    for (unsigned long long i = grid.thread_rank(); i < n; i += grid.size()) sum += data[i];
    sum = cg::reduce(warp, sum, cg::plus<double>());
    if (warp.thread_rank() == 0) sums[warp.meta_group_rank()] = sum;
    block.sync();
    if (block.thread_rank() == 0) {
        double total = 0;
        for (int i = 0; i < warp.meta_group_size(); i++) total += sums[i];
        partial[block.group_index().x] = total;
    }
    grid.sync();
    for (int left = grid.num_blocks(); left > 1; left = (left + 1) / 2) {  // a tree over the blocks
        int half = (left + 1) / 2;
        if (grid.block_rank() + half < left && block.thread_rank() == 0)
            partial[grid.block_rank()] += partial[grid.block_rank() + half];
        grid.sync();
    }
}

// Jacobi's iteration until no cell changes by more than a bound: all blocks agree when that is.
__global__ void relax(float *a, float *b, int n, float bound, int *steps, unsigned *change) {
    cg::grid_group grid = cg::this_grid();
    for (int step = 0;; step++) {
        unsigned mine = 0;
        for (unsigned i = grid.thread_rank() + 1; i + 1 < n; i += grid.size()) {
            b[i] = (a[i - 1] + a[i + 1]) / 2;
            mine = max(mine, __float_as_uint(fabsf(b[i] - a[i])));
        }
        atomicMax(change + step % 2, mine);
        if (grid.thread_rank() == 0) change[(step + 1) % 2] = 0;
        auto token = grid.barrier_arrive();
        float *other = a;
        a = b, b = other;
        grid.barrier_wait(std::move(token));
        float most = __uint_as_float(*(volatile unsigned *)(change + step % 2));
        if (most <= bound) {
            if (grid.thread_rank() == 0) *steps = step + 1;
            return;
        }
        grid.sync();
    }
}

// Half of the block produces and half consumes, by barriers of their own and atomics of a scope.
__global__ void halves(const int *from, int *to, int n) {
    __shared__ int tile[2][64];
    __shared__ cuda::barrier<cuda::thread_scope_block> full[2], empty[2];
    cg::thread_block block = cg::this_thread_block();
    if (block.thread_rank() == 0)
        for (int i = 0; i < 2; i++) init(full + i, block.size()), init(empty + i, block.size());
    block.sync();
    bool produces = block.thread_rank() < 64;
    int lane = block.thread_rank() % 64;
    if (!produces)
        for (int i = 0; i < 2; i++) (void)empty[i].arrive();
    for (int i = 0; i < n / 64; i++) {
        int which = i % 2;
        if (produces) {
            empty[which].arrive_and_wait();
            tile[which][lane] = from[i * 64 + lane] * 2;
            (void)full[which].arrive();
        } else {
            full[which].arrive_and_wait();
            to[i * 64 + lane] = tile[which][63 - lane] + 1;
            (void)empty[which].arrive();
        }
    }
}

__global__ void tickets(cuda::atomic<int, cuda::thread_scope_device> *next, int *order) {
    int mine = next->fetch_add(1, cuda::memory_order_relaxed);
    order[mine] = blockIdx.x * blockDim.x + threadIdx.x;
    cuda::atomic_ref<int, cuda::thread_scope_device> sum(order[1024]);
    sum.fetch_max(mine);
}

int main() {
    const int N = 20000, BLOCK = 128;
    int per, supported;
    CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrCooperativeLaunch, 0));
    EXPECT(supported);
    size_t shared = BLOCK / 32 * sizeof(double);
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per, reduce, BLOCK, shared));
    EXPECT(per >= 1);
    int blocks = 13;
    double *data, *partial, wanted = 0;
    CHECK(cudaMallocManaged(&data, N * sizeof(double)));
    CHECK(cudaMallocManaged(&partial, blocks * sizeof(double)));
    for (int i = 0; i < N; i++) wanted += data[i] = (i % 37) * 0.5;
    int n = N;
    void *arguments[] = {&data, &n, &partial};
    CHECK(cudaLaunchCooperativeKernel(reduce, dim3(blocks), dim3(BLOCK), arguments, shared, 0));
    CHECK(cudaDeviceSynchronize());
    EXPECT(*partial == wanted);  // halves are exact
    EXPECT(cudaLaunchCooperativeKernel(reduce, dim3(1 << 20), dim3(BLOCK), arguments, shared, 0) ==
           cudaErrorCooperativeLaunchTooLarge);
    EXPECT(cudaGetLastError() == cudaErrorCooperativeLaunchTooLarge);

    float *a, *b, bound = 1e-3f;
    int *steps, cells = 40;
    unsigned *change;
    CHECK(cudaMallocManaged(&a, cells * sizeof(float)));
    CHECK(cudaMallocManaged(&b, cells * sizeof(float)));
    CHECK(cudaMallocManaged(&steps, sizeof(int)));
    CHECK(cudaMallocManaged(&change, 2 * sizeof(unsigned)));
    std::vector<float> mine(cells, 0.f), next;
    mine[0] = 1;
    for (int i = 0; i < cells; i++) a[i] = b[i] = mine[i];
    change[0] = change[1] = 0;
    int count = 0;
    for (float most = 1; most > bound; count++, mine = next) {
        next = mine, most = 0;
        for (int i = 1; i + 1 < cells; i++) {
            next[i] = (mine[i - 1] + mine[i + 1]) / 2;
            most = std::fmax(most, std::fabs(next[i] - mine[i]));
        }
    }
    void *relaxed[] = {&a, &b, &cells, &bound, &steps, &change};
    CHECK(cudaLaunchCooperativeKernel(relax, dim3(3), dim3(32), relaxed, 0, 0));
    CHECK(cudaDeviceSynchronize());
    EXPECT(*steps == count);
    float *last = count % 2 ? b : a;
    for (int i = 0; i < cells; i++) EXPECT(last[i] == mine[i]);

    int *from, *to;
    CHECK(cudaMallocManaged(&from, 1025 * sizeof(int)));
    CHECK(cudaMallocManaged(&to, 1025 * sizeof(int)));
    for (int i = 0; i < 1024; i++) from[i] = i;
    halves<<<1, 128>>>(from, to, 1024);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 1024; i++) EXPECT(to[i] == 2 * (i / 64 * 64 + 63 - i % 64) + 1);

    *from = 0, to[1024] = 0;
    tickets<<<8, 128>>>((cuda::atomic<int, cuda::thread_scope_device> *)from, to);
    CHECK(cudaDeviceSynchronize());
    EXPECT(*from == 1024 && to[1024] == 1023);
    std::vector<bool> seen(1024);
    for (int i = 0; i < 1024; i++) seen[to[i]] = true;
    for (bool each : seen) EXPECT(each);
    return passed();
}

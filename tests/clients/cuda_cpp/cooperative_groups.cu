// Cooperative groups: tiles of warps, coalesced threads, and a grid whose blocks wait for each other.
#include "check.h"
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

__global__ void tiles(const int *in, int *sums, int *scans, int *evens) {
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<8>(block);
    int value = in[block.thread_rank()];
    int sum = cg::reduce(tile, value, cg::plus<int>());
    scans[block.thread_rank()] = cg::inclusive_scan(tile, value);
    if (!tile.thread_rank()) sums[block.thread_rank() / 8] = sum;
    if (value % 2 == 0) {
        auto active = cg::coalesced_threads();
        if (!active.thread_rank()) atomicAdd(evens, int(active.size()));
    }
}

__global__ void waves(int *data, int n, int rounds) {
    auto grid = cg::this_grid();
    for (int round = 0; round < rounds; round++) {
        int i = int(grid.thread_rank());
        int left = data[(i + n - 1) % n], right = data[(i + 1) % n];
        grid.sync();
        data[i] = left + right;
        grid.sync();
    }
}

int main() {
    const int threads = 96;
    int host[threads], wanted = 0, *data;
    for (int i = 0; i < threads; i++) wanted += (host[i] = i * i % 23) % 2 == 0;
    CHECK(cudaMallocManaged(&data, 4 * threads * sizeof(int)));
    for (int i = 0; i < threads; i++) data[i] = host[i];
    data[3 * threads] = 0;
    tiles<<<1, threads>>>(data, data + threads, data + 2 * threads, data + 3 * threads);
    CHECK(cudaDeviceSynchronize());
    for (int t = 0; t < threads / 8; t++) {
        int sum = 0;
        for (int i = 0; i < 8; i++) {
            sum += host[8 * t + i];
            EXPECT(data[2 * threads + 8 * t + i] == sum);
        }
        EXPECT(data[threads + t] == sum);
    }
    EXPECT(data[3 * threads] == wanted);

    int n = 256, rounds = 5, *ring, supported = 0;
    CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrCooperativeLaunch, 0));
    EXPECT(supported);
    CHECK(cudaMallocManaged(&ring, n * sizeof(int)));
    long now[256], then[256];
    for (int i = 0; i < n; i++) now[i] = ring[i] = i % 5;
    void *arguments[] = {&ring, &n, &rounds};
    CHECK(cudaLaunchCooperativeKernel((void *)waves, dim3(8), dim3(32), arguments, 0, nullptr));
    CHECK(cudaDeviceSynchronize());
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < n; i++) then[i] = now[(i + n - 1) % n] + now[(i + 1) % n];
        for (int i = 0; i < n; i++) now[i] = then[i];
    }
    for (int i = 0; i < n; i++) EXPECT(ring[i] == now[i]);
    EXPECT(cudaLaunchCooperativeKernel((void *)waves, dim3(1 << 20), dim3(1024), arguments, 0, nullptr) ==
           cudaErrorCooperativeLaunchTooLarge);
    return passed();
}

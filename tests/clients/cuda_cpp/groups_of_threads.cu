// flags: -arch=compute_90
// device: sm_90
// Groups of every kind: tiles of several warps, labelled and binary partitions, scans and reductions, clusters, one of a group.
#include "check.h"
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

__global__ void partitions(int *out) {
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    int t = block.thread_rank();
    auto labelled = cg::labeled_partition(warp, t % 3);
    out[t] = cg::reduce(labelled, t, cg::plus<int>());
    auto halves = cg::binary_partition(warp, t % 5 == 0);
    out[256 + t] = halves.size() * 100 + halves.thread_rank();
    auto tile8 = cg::tiled_partition<8>(warp);
    out[512 + t] = cg::exclusive_scan(tile8, t, cg::plus<int>());
    out[768 + t] = cg::inclusive_scan(tile8, t, cg::greater<int>());
    out[1024 + t] = tile8.meta_group_rank() * 1000 + tile8.shfl(t, 3) + tile8.any(t == 9) * 10000;
    if (t % 2) {
        auto c = cg::coalesced_threads();
        out[1280 + t] = c.size() * 100 + c.thread_rank() + c.shfl_down(t, 1) * 10000;
    } else
        out[1280 + t] = -1;
    out[1536 + t] = 0;
    block.sync();
    cg::invoke_one(tile8, [&] { out[1536 + t] = 7; });
    auto v = cg::invoke_one_broadcast(tile8, [&] { return t; });
    out[1792 + t] = v / 8;
}

__global__ void wide(int *out) {
    __shared__ cg::block_tile_memory<256> shared;
    auto block = cg::this_thread_block(shared);
    auto tile = cg::tiled_partition<64>(block);
    int t = block.thread_rank();
    out[t] = cg::reduce(tile, t, cg::plus<int>());
    out[256 + t] = cg::inclusive_scan(tile, 1);
    out[512 + t] = tile.shfl(t, 63) + tile.all(t >= 0) * 1000;
    tile.sync();
}

__global__ void __cluster_dims__(4, 1, 1) clusters(int *out) {
    extern __shared__ int mine[];
    auto cluster = cg::this_cluster();
    int r = cluster.block_rank(), t = threadIdx.x;
    mine[t] = r * 100 + t;
    auto token = cluster.barrier_arrive();
    cluster.barrier_wait(std::move(token));
    int *other = cluster.map_shared_rank(mine, (r + 1) % 4);
    out[blockIdx.x * 32 + t] = other[t] + cluster.query_shared_rank(other) * 100000;
    cluster.sync();
}

__global__ void grid_wide(int *data, int *out) {
    auto grid = cg::this_grid();
    int i = grid.thread_rank();
    for (int s = 0; s < 5; s++) {
        atomicAdd(&data[(i * 7 + s) % grid.size()], 1);
        grid.sync();
    }
    auto token = grid.barrier_arrive();
    grid.barrier_wait(std::move(token));
    if (i == 0) {
        int sum = 0;
        for (int k = 0; k < grid.size(); k++) sum += data[k];
        *out = sum;
    }
}

__global__ void staged(const int *in, int *out, int n) {
    extern __shared__ int tile[];
    auto block = cg::this_thread_block();
    for (int at = blockIdx.x * 128; at < n; at += gridDim.x * 128) {
        int k = min(128, n - at);
        cg::memcpy_async(block, tile, in + at, sizeof(int) * k);
        cg::wait(block);
        if (threadIdx.x < k) out[at + threadIdx.x] = tile[k - 1 - threadIdx.x];
        block.sync();
    }
}

int main() {
    int *o;
    CHECK(cudaMallocManaged(&o, 1 << 16));
    partitions<<<1, 256>>>(o);
    CHECK(cudaDeviceSynchronize());
    for (int t = 0; t < 256; t++) {
        int w = t / 32 * 32, s = 0, five = 0, before5 = 0, ex = 0;
        for (int k = w; k < w + 32; k++) {
            if (k % 3 == t % 3) s += k;
            if ((k % 5 == 0) == (t % 5 == 0)) {
                five++;
                before5 += k < t;
            }
        }
        for (int k = t / 8 * 8; k < t; k++) ex += k;
        EXPECT(o[t] == s);
        EXPECT(o[256 + t] == five * 100 + before5);
        EXPECT(o[512 + t] == ex);
        EXPECT(o[768 + t] == t);
        EXPECT(o[1024 + t] == t % 32 / 8 * 1000 + t / 8 * 8 + 3 + (t / 8 == 1) * 10000);
        if (t % 2 && t % 32 != 31) EXPECT(o[1280 + t] == 1600 + t % 32 / 2 + (t + 2) * 10000);
        EXPECT(o[1792 + t] == t / 8);
    }
    int sevens = 0;
    for (int t = 0; t < 256; t++) sevens += o[1536 + t] == 7;
    EXPECT(sevens == 32);
    wide<<<1, 256>>>(o);
    CHECK(cudaDeviceSynchronize());
    for (int t = 0; t < 256; t++) {
        int b = t / 64 * 64;
        EXPECT(o[t] == 64 * b + 2016);
        EXPECT(o[256 + t] == t - b + 1);
        EXPECT(o[512 + t] == b + 63 + 1000);
    }
    clusters<<<8, 32, 256>>>(o);
    CHECK(cudaDeviceSynchronize());
    for (int b = 0; b < 8; b++)
        for (int t = 0; t < 32; t++) EXPECT(o[b * 32 + t] == (b + 1) % 4 * 100 + t + (b + 1) % 4 * 100000);
    int *data, *sum;
    CHECK(cudaMallocManaged(&data, 4096));
    CHECK(cudaMallocManaged(&sum, 4));
    CHECK(cudaMemset(data, 0, 4096));
    void *args[] = {&data, &sum};
    CHECK(cudaLaunchCooperativeKernel((void *)grid_wide, 8, 64, args, 0, 0));
    CHECK(cudaDeviceSynchronize());
    EXPECT(*sum == 5 * 512);
    int *in;
    CHECK(cudaMallocManaged(&in, 4000));
    for (int i = 0; i < 1000; i++) in[i] = i;
    staged<<<3, 128, 512>>>(in, o, 1000);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 1000; i++) {
        int b = i / 128 * 128, k = 1000 - b < 128 ? 1000 - b : 128;
        EXPECT(o[i] == b + k - 1 - (i - b));
    }
    return passed();
}

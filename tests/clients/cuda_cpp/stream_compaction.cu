// Stream compaction: threads that keep their element claim places by one atomic operation for each group of lanes.
#include "check.h"
#include <algorithm>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <numeric>
#include <vector>

namespace cg = cooperative_groups;

__device__ int claimed_by_group(int *counter) {
    cg::coalesced_group active = cg::coalesced_threads();
    int first;
    if (active.thread_rank() == 0) first = atomicAdd(counter, active.size());
    return active.shfl(first, 0) + active.thread_rank();
}

__device__ int claimed_by_mask(int *counter) {
    unsigned mask = __activemask(), lane = threadIdx.x % 32;
    int leader = __ffs(mask) - 1, first;
    if (lane == leader) first = atomicAdd(counter, __popc(mask));
    return __shfl_sync(mask, first, leader) + __popc(mask & ((1u << lane) - 1));
}

template <int Way> __global__ void keep_odd(const int *from, int n, int *to, int *counter) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        if (from[i] % 2) to[Way ? claimed_by_mask(counter) : claimed_by_group(counter)] = from[i];
}

// In order: each block scans its flags, and the blocks' sums come from an earlier pass.
__global__ void keep_in_order(const int *from, int n, int *to, int *sums, bool write) {
    cg::thread_block block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    __shared__ int of_warps[8];
    int i = blockIdx.x * blockDim.x + threadIdx.x, keeps = i < n && from[i] % 2;
    int before = cg::exclusive_scan(warp, keeps);
    if (warp.thread_rank() == 31) of_warps[warp.meta_group_rank()] = before + keeps;
    block.sync();
    if (warp.meta_group_rank() == 0) {
        auto first = cg::tiled_partition<8>(warp);
        if (first.meta_group_rank() == 0) {
            int sum = of_warps[first.thread_rank()], start = cg::exclusive_scan(first, sum);
            of_warps[first.thread_rank()] = start;
            if (!write && first.thread_rank() == 7) sums[blockIdx.x] = start + sum;
        }
    }
    block.sync();
    if (write && keeps) to[sums[blockIdx.x] + of_warps[warp.meta_group_rank()] + before] = from[i];
}

// One atomic for each bucket that a warp meets.
__global__ void buckets(const int *from, int n, int *counts) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    auto alike = cg::labeled_partition(cg::coalesced_threads(), from[i] % 7);
    int sum = cg::reduce(alike, 1, cg::plus<int>());
    if (alike.thread_rank() == 0) atomicAdd(counts + from[i] % 7, sum);
    if (__match_any_sync(__activemask(), from[i] % 7) == 0) atomicAdd(counts, 1000);
    (void)warp;
}

int main() {
    const int N = 5000, BLOCK = 256, BLOCKS = (N + BLOCK - 1) / BLOCK;
    std::vector<int> data(N), wanted, found(N);
    unsigned state = 1;
    for (int &each : data) each = (state = state * 1664525u + 1013904223u) >> 8 & 0xffff;
    std::copy_if(data.begin(), data.end(), std::back_inserter(wanted), [](int each) { return each % 2; });
    int *from, *to, *counter;
    CHECK(cudaMalloc(&from, N * sizeof(int)));
    CHECK(cudaMalloc(&to, N * sizeof(int)));
    CHECK(cudaMalloc(&counter, 64 * sizeof(int)));
    CHECK(cudaMemcpy(from, data.data(), N * sizeof(int), cudaMemcpyHostToDevice));

    std::vector<int> sorted = wanted;
    std::sort(sorted.begin(), sorted.end());
    for (int way = 0; way < 2; way++) {
        CHECK(cudaMemset(counter, 0, sizeof(int)));
        (way ? keep_odd<1> : keep_odd<0>)<<<6, 96>>>(from, N, to, counter);
        CHECK(cudaGetLastError());
        int count;
        CHECK(cudaMemcpy(&count, counter, sizeof(int), cudaMemcpyDeviceToHost));
        EXPECT(count == (int)wanted.size());
        CHECK(cudaMemcpy(found.data(), to, count * sizeof(int), cudaMemcpyDeviceToHost));
        std::sort(found.begin(), found.begin() + count);
        EXPECT(std::equal(sorted.begin(), sorted.end(), found.begin()));
    }

    keep_in_order<<<BLOCKS, BLOCK>>>(from, N, to, counter, false);
    std::vector<int> sums(BLOCKS), starts(BLOCKS);
    CHECK(cudaMemcpy(sums.data(), counter, BLOCKS * sizeof(int), cudaMemcpyDeviceToHost));
    std::exclusive_scan(sums.begin(), sums.end(), starts.begin(), 0);
    CHECK(cudaMemcpy(counter, starts.data(), BLOCKS * sizeof(int), cudaMemcpyHostToDevice));
    keep_in_order<<<BLOCKS, BLOCK>>>(from, N, to, counter, true);
    CHECK(cudaMemcpy(found.data(), to, wanted.size() * sizeof(int), cudaMemcpyDeviceToHost));
    EXPECT(std::equal(wanted.begin(), wanted.end(), found.begin()));

    int counts[7], mine[7] = {};
    CHECK(cudaMemset(counter, 0, sizeof counts));
    buckets<<<BLOCKS, BLOCK>>>(from, N, counter);
    CHECK(cudaMemcpy(counts, counter, sizeof counts, cudaMemcpyDeviceToHost));
    for (int each : data) mine[each % 7]++;
    EXPECT(std::equal(counts, counts + 7, mine));
    return passed();
}

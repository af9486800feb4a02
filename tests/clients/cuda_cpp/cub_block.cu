// Collectives of CUB for warps and blocks, with the arrangements of items, in templates of kernels.
// flags: -std=c++17
#include "check.h"
#include <cub/cub.cuh>
#include <cuda/functional>

template <int BLOCK, int ITEMS, cub::BlockScanAlgorithm SCAN, cub::BlockReduceAlgorithm REDUCE>
__global__ void __launch_bounds__(BLOCK) collectives(const int *in, int *scanned, int *sorted, int *sums, int *runs) {
    using Load = cub::BlockLoad<int, BLOCK, ITEMS, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
    using Store = cub::BlockStore<int, BLOCK, ITEMS, cub::BLOCK_STORE_TRANSPOSE>;
    using Scan = cub::BlockScan<int, BLOCK, SCAN>;
    using Sort = cub::BlockRadixSort<int, BLOCK, ITEMS>;
    using Reduce = cub::BlockReduce<int, BLOCK, REDUCE>;
    using Edges = cub::BlockDiscontinuity<int, BLOCK>;
    __shared__ union {
        typename Load::TempStorage load;
        typename Store::TempStorage store;
        typename Scan::TempStorage scan;
        typename Sort::TempStorage sort;
        typename Reduce::TempStorage reduce;
        typename Edges::TempStorage edges;
    } s;
    const int base = blockIdx.x * BLOCK * ITEMS;
    int mine[ITEMS], prefix[ITEMS], heads[ITEMS], total;
    Load(s.load).Load(in + base, mine);
    __syncthreads();
    Scan(s.scan).ExclusiveSum(mine, prefix, total);
    __syncthreads();
    Store(s.store).Store(scanned + base, prefix);
    __syncthreads();
    int sum = Reduce(s.reduce).Sum(mine);
    __syncthreads();
    if (threadIdx.x == 0) sums[blockIdx.x] = sum == total ? sum : -1;
    Sort(s.sort).Sort(mine);
    __syncthreads();
    Edges(s.edges).FlagHeads(heads, mine, cuda::std::not_equal_to<>());
    __syncthreads();
    int count = Reduce(s.reduce).Sum(heads);
    __syncthreads();
    if (threadIdx.x == 0) runs[blockIdx.x] = count;
    Store(s.store).Store(sorted + base, mine);
}

__global__ void warps(const int *in, int *scanned, int *largest, int *exchanged) {
    using Scan = cub::WarpScan<int>;
    using Reduce = cub::WarpReduce<int, 16>;
    using Exchange = cub::WarpExchange<int, 4, 32>;
    __shared__ typename Scan::TempStorage scan[4];
    __shared__ typename Reduce::TempStorage reduce[8];
    __shared__ typename Exchange::TempStorage exchange[4];
    int warp = threadIdx.x / 32, x = in[threadIdx.x], y;
    Scan(scan[warp]).InclusiveSum(x, y);
    scanned[threadIdx.x] = y;
    int m = Reduce(reduce[threadIdx.x / 16]).Reduce(x, cuda::maximum<>());
    if (threadIdx.x % 16 == 0) largest[threadIdx.x / 16] = m;
    int items[4], back[4];
    for (int i = 0; i < 4; i++) items[i] = (threadIdx.x % 32) * 4 + i;
    Exchange(exchange[warp]).BlockedToStriped(items, back);
    for (int i = 0; i < 4; i++) exchanged[threadIdx.x * 4 + i] = back[i];
}

template <int BLOCK, int ITEMS, cub::BlockScanAlgorithm SCAN, cub::BlockReduceAlgorithm REDUCE> void check() {
    const int blocks = 3, n = blocks * BLOCK * ITEMS;
    int *in, *scanned, *sorted, *sums, *runs;
    for (int **each : {&in, &scanned, &sorted, &sums, &runs}) CHECK(cudaMallocManaged(each, n * sizeof(int)));
    for (int i = 0; i < n; i++) in[i] = (i * 7919) % 101 - 50;
    collectives<BLOCK, ITEMS, SCAN, REDUCE><<<blocks, BLOCK>>>(in, scanned, sorted, sums, runs);
    CHECK(cudaDeviceSynchronize());
    for (int b = 0; b < blocks; b++) {
        int counts[101] = {}, total = 0, different = 0;
        for (int i = b * BLOCK * ITEMS; i < (b + 1) * BLOCK * ITEMS; i++) {
            EXPECT(scanned[i] == total);
            total += in[i];
            different += !counts[in[i] + 50]++;
        }
        EXPECT(sums[b] == total && runs[b] == different);
        int *p = sorted + b * BLOCK * ITEMS;
        for (int v = 0; v < 101; v++)
            while (counts[v]--) EXPECT(*p++ == v - 50);
    }
    for (int *each : {in, scanned, sorted, sums, runs}) CHECK(cudaFree(each));
}

int main() {
    check<128, 4, cub::BLOCK_SCAN_WARP_SCANS, cub::BLOCK_REDUCE_WARP_REDUCTIONS>();
    check<64, 7, cub::BLOCK_SCAN_RAKING, cub::BLOCK_REDUCE_RAKING>();
    check<96, 3, cub::BLOCK_SCAN_RAKING_MEMOIZE, cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY>();
    int *in, *scanned, *largest, *exchanged;
    for (int **each : {&in, &scanned, &largest, &exchanged}) CHECK(cudaMallocManaged(each, 512 * sizeof(int)));
    for (int i = 0; i < 128; i++) in[i] = (i * 37) % 91;
    warps<<<1, 128>>>(in, scanned, largest, exchanged);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0, s = 0; i < 128; i++) EXPECT(scanned[i] == (s = (i % 32 ? s : 0) + in[i]));
    for (int i = 0; i < 8; i++) {
        int m = 0;
        for (int k = 0; k < 16; k++) m = in[16 * i + k] > m ? in[16 * i + k] : m;
        EXPECT(largest[i] == m);
    }
    for (int i = 0; i < 128; i++)
        for (int k = 0; k < 4; k++) EXPECT(exchanged[4 * i + k] == k * 32 + i % 32);
    return passed();
}

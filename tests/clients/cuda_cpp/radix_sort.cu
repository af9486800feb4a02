// A radix sort by 4 bits at a time: ballots count the digits of a warp, and one block keeps their order.
#include "check.h"
#include <algorithm>
#include <vector>

const int THREADS = 256, WARPS = THREADS / 32;

__global__ void sort_by(const unsigned *in, unsigned *out, int n, int shift) {
    __shared__ int counts[16][WARPS], starts[16];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (threadIdx.x < 16) starts[threadIdx.x] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += THREADS) atomicAdd(&starts[in[i] >> shift & 15], 1);
    __syncthreads();
    if (!threadIdx.x) {
        int sum = 0;
        for (int digit = 0; digit < 16; digit++) {
            int count = starts[digit];
            starts[digit] = sum;
            sum += count;
        }
    }
    for (int base = 0; base < n; base += THREADS) {
        int i = base + threadIdx.x;
        unsigned key = i < n ? in[i] : 0;
        int digit = i < n ? key >> shift & 15 : -1, before = 0;
        for (int d = 0; d < 16; d++) {
            unsigned same = __ballot_sync(0xffffffff, digit == d);
            if (digit == d) before = __popc(same & ((1u << lane) - 1));
            if (!lane) counts[d][warp] = __popc(same);
        }
        __syncthreads();
        if (i < n) {
            int at = starts[digit] + before;
            for (int w = 0; w < warp; w++) at += counts[digit][w];
            out[at] = key;
        }
        __syncthreads();
        if (threadIdx.x < 16)
            for (int w = 0; w < WARPS; w++) starts[threadIdx.x] += counts[threadIdx.x][w];
        __syncthreads();
    }
}

int main() {
    const int n = 3001;
    std::vector<unsigned> host(n), found(n);
    unsigned state = 12345;
    for (auto &each : host) each = state = state * 1664525u + 1013904223u;
    unsigned *a, *b;
    CHECK(cudaMalloc(&a, n * 4));
    CHECK(cudaMalloc(&b, n * 4));
    CHECK(cudaMemcpy(a, host.data(), n * 4, cudaMemcpyHostToDevice));
    for (int shift = 0; shift < 32; shift += 4) {
        sort_by<<<1, THREADS>>>(a, b, n, shift);
        std::swap(a, b);
    }
    CHECK(cudaMemcpy(found.data(), a, n * 4, cudaMemcpyDeviceToHost));
    std::sort(host.begin(), host.end());
    EXPECT(host == found);
    return passed();
}

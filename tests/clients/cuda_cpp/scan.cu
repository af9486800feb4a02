// The running sums of an array: scans of blocks, of their sums, and their addition.
#include "check.h"
#include <vector>

const int BLOCK = 128;

__global__ void scan_blocks(const unsigned *in, unsigned *out, unsigned *sums, int n) {
    __shared__ unsigned both[2][BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x, from = 0;
    both[0][threadIdx.x] = i < n ? in[i] : 0;
    for (int step = 1; step < BLOCK; step *= 2, from = 1 - from) {
        __syncthreads();
        unsigned value = both[from][threadIdx.x];
        if (threadIdx.x >= step) value += both[from][threadIdx.x - step];
        both[1 - from][threadIdx.x] = value;
    }
    __syncthreads();
    if (i < n) out[i] = both[from][threadIdx.x];
    if (threadIdx.x == BLOCK - 1 && sums) sums[blockIdx.x] = both[from][threadIdx.x];
}

__global__ void add_sums(unsigned *out, const unsigned *sums, int n) {
    int i = (blockIdx.x + 1) * BLOCK + threadIdx.x;
    if (i < n) out[i] += sums[blockIdx.x];
}

int main() {
    const int n = 10000, blocks = (n + BLOCK - 1) / BLOCK;
    static_assert(blocks <= BLOCK, "one block scans the sums");
    std::vector<unsigned> host(n), found(n);
    for (int i = 0; i < n; i++) host[i] = (i * 2654435761u) >> 20;
    unsigned *in, *out, *sums;
    CHECK(cudaMalloc(&in, n * 4));
    CHECK(cudaMalloc(&out, n * 4));
    CHECK(cudaMalloc(&sums, blocks * 4));
    CHECK(cudaMemcpy(in, host.data(), n * 4, cudaMemcpyHostToDevice));
    scan_blocks<<<blocks, BLOCK>>>(in, out, sums, n);
    scan_blocks<<<1, BLOCK>>>(sums, sums, nullptr, blocks);
    add_sums<<<blocks - 1, BLOCK>>>(out, sums, n);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(found.data(), out, n * 4, cudaMemcpyDeviceToHost));
    unsigned sum = 0;
    for (int i = 0; i < n; i++) EXPECT(found[i] == (sum += host[i]));
    return passed();
}

// A histogram of bytes: each block counts in shared memory, then adds its counts to those of all.
#include "check.h"
#include <vector>

__global__ void histogram(const unsigned char *data, int n, unsigned *bins) {
    __shared__ unsigned own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&own[data[i]], 1u);
    __syncthreads();
    if (own[threadIdx.x]) atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

int main() {
    const int n = 1 << 16;
    std::vector<unsigned char> host(n);
    unsigned wanted[256] = {}, found[256];
    for (int i = 0; i < n; i++) wanted[host[i] = (i * i * 31 + i) >> 7 & 255]++;
    unsigned char *data;
    unsigned *bins;
    CHECK(cudaMalloc(&data, n));
    CHECK(cudaMalloc(&bins, sizeof(found)));
    CHECK(cudaMemcpy(data, host.data(), n, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(bins, 0, sizeof(found)));
    histogram<<<8, 256>>>(data, n, bins);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(found, bins, sizeof(found), cudaMemcpyDeviceToHost));
    for (int i = 0; i < 256; i++) EXPECT(found[i] == wanted[i]);
    return passed();
}

// The sum, minimum and maximum of an array: in shared memory, by shuffles within warps, and by atomics.
#include "check.h"
#include <vector>

__global__ void sum_shared(const int *data, int n, int *out) {
    extern __shared__ int part[];
    int value = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) value += data[i];
    part[threadIdx.x] = value;
    __syncthreads();
    for (int half = blockDim.x / 2; half; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (!threadIdx.x) out[blockIdx.x] = part[0];
}

template <typename T, typename F> __device__ T over_warp(T value, F combine) {
    for (int lane = 16; lane; lane /= 2) value = combine(value, __shfl_down_sync(0xffffffff, value, lane));
    return value;
}

__global__ void extremes(const int *data, int n, int *least, int *most) {
    int low = 0x7fffffff, high = -0x7fffffff;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        low = min(low, data[i]);
        high = max(high, data[i]);
    }
    low = over_warp(low, [](int a, int b) { return min(a, b); });
    high = over_warp(high, [](int a, int b) { return max(a, b); });
    if (threadIdx.x % 32 == 0) {
        atomicMin(least, low);
        atomicMax(most, high);
    }
}

int main() {
    const int n = 100003, blocks = 16;
    std::vector<int> host(n);
    long sum = 0;
    int low = 0x7fffffff, high = -0x7fffffff;
    for (int i = 0; i < n; i++) {
        host[i] = (i * 7919) % 10007 - 5000;
        sum += host[i];
        low = host[i] < low ? host[i] : low;
        high = host[i] > high ? host[i] : high;
    }
    int *data, *parts, *both;
    CHECK(cudaMalloc(&data, n * sizeof(int)));
    CHECK(cudaMalloc(&parts, blocks * sizeof(int)));
    CHECK(cudaMalloc(&both, 2 * sizeof(int)));
    CHECK(cudaMemcpy(data, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    int begin[2] = {0x7fffffff, -0x7fffffff};
    CHECK(cudaMemcpy(both, begin, sizeof(begin), cudaMemcpyHostToDevice));
    sum_shared<<<blocks, 256, 256 * sizeof(int)>>>(data, n, parts);
    CHECK(cudaGetLastError());
    extremes<<<blocks, 256>>>(data, n, both, both + 1);
    CHECK(cudaDeviceSynchronize());
    int found[blocks], ends[2];
    CHECK(cudaMemcpy(found, parts, sizeof(found), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(ends, both, sizeof(ends), cudaMemcpyDeviceToHost));
    long total = 0;
    for (int each : found) total += each;
    EXPECT(total == sum);
    EXPECT(ends[0] == low && ends[1] == high);
    CHECK(cudaFree(data));
    CHECK(cudaFree(parts));
    CHECK(cudaFree(both));
    return passed();
}

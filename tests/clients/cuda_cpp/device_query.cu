// What the runtime says of devices, kernels and occupancy.
#include "check.h"
#include <cstring>

__global__ void __launch_bounds__(128) small(float *data) {
    __shared__ float own[100];
    own[threadIdx.x % 100] = data[threadIdx.x];
    __syncthreads();
    data[threadIdx.x] = own[99 - threadIdx.x % 100];
}

__global__ void large(float *data) {
    extern __shared__ float own[];
    own[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    data[threadIdx.x] = own[blockDim.x - 1 - threadIdx.x];
}

int main() {
    int count = 0, device = -1, value = 0, version = 0;
    CHECK(cudaGetDeviceCount(&count));
    EXPECT(count >= 1);
    CHECK(cudaGetDevice(&device));
    EXPECT(device == 0);
    cudaDeviceProp p;
    CHECK(cudaGetDeviceProperties(&p, 0));
    EXPECT(std::strstr(p.name, "ptxvm") && p.warpSize == 32 && p.maxThreadsPerBlock == 1024 && p.major >= 7);
    EXPECT(p.totalGlobalMem > 0 && p.multiProcessorCount > 0 && p.maxThreadsDim[2] == 64 && p.maxGridSize[0] == 2147483647);
    EXPECT(p.unifiedAddressing && p.managedMemory && p.cooperativeLaunch && p.sharedMemPerBlock == 49152);
    CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
    EXPECT(value == p.multiProcessorCount);
    CHECK(cudaRuntimeGetVersion(&version));
    EXPECT(version / 1000 == CUDART_VERSION / 1000);
    size_t available, total;
    CHECK(cudaMemGetInfo(&available, &total));
    EXPECT(available <= total && total == p.totalGlobalMem);
    cudaFuncAttributes a;
    CHECK(cudaFuncGetAttributes(&a, small));
    EXPECT(a.sharedSizeBytes == 400 && a.maxThreadsPerBlock == 128 && a.ptxVersion >= 50);
    int blocks = 0, grid = 0, block = 0;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, small, 128, 0));
    EXPECT(blocks >= 1 && blocks <= p.maxBlocksPerMultiProcessor);
    CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, small));
    EXPECT(block == 128 && grid >= p.multiProcessorCount);
    float *data;
    CHECK(cudaMalloc(&data, 1024 * sizeof(float)));
    size_t much = 60 * 1024;
    large<<<1, 64, much>>>(data);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
    CHECK(cudaFuncSetAttribute(large, cudaFuncAttributeMaxDynamicSharedMemorySize, int(much)));
    large<<<1, 64, much>>>(data);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    small<<<1, 256>>>(data);
    EXPECT(cudaGetLastError() != cudaSuccess);
    CHECK(cudaDeviceSynchronize());
    return passed();
}

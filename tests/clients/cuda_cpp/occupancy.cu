// flags: -arch=sm_90
// device: sm_90
// What fits on a multiprocessor: large dynamic shared memory, launch bounds, clusters, and launches that are refused.
#include "check.h"
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__global__ void reverse(const float *from, float *to, int n) {
    extern __shared__ float tile[];
    for (int i = threadIdx.x; i < n; i += blockDim.x) tile[i] = from[i];
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) to[i] = tile[n - 1 - i];
}

__global__ void __launch_bounds__(128, 4) bounded(int *to) { to[threadIdx.x] = threadIdx.x; }

__global__ void __cluster_dims__(2, 1, 1) pairs(int *to) {
    __shared__ int mine;
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x == 0) mine = blockIdx.x + 1;
    cluster.sync();
    int *other = cluster.map_shared_rank(&mine, cluster.block_rank() ^ 1);
    if (threadIdx.x == 0) to[blockIdx.x] = *other * 10 + cluster.num_blocks();
    cluster.sync();
}

__global__ void any_cluster(int *to) {
    cg::cluster_group cluster = cg::this_cluster();
    extern __shared__ int numbers[];
    numbers[threadIdx.x] = 0;
    cluster.sync();
    for (unsigned rank = 0; rank < cluster.num_blocks(); rank++)
        atomicAdd(cluster.map_shared_rank(numbers, rank) + threadIdx.x, cluster.block_rank() + 1);
    cluster.sync();
    to[blockIdx.x * blockDim.x + threadIdx.x] = numbers[threadIdx.x];
}

size_t shared_of(int block) { return block * 64; }

int main() {
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    int most, fits;
    CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    EXPECT(most == (int)properties.sharedMemPerBlockOptin && most > 48 << 10);
    float *from, *to;
    int n = most / sizeof(float);
    CHECK(cudaMallocManaged(&from, most));
    CHECK(cudaMallocManaged(&to, most));
    for (int i = 0; i < n; i++) from[i] = i;
    reverse<<<1, 256, most>>>(from, to, n);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
    EXPECT(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, most + 1) == cudaErrorInvalidValue);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
    CHECK(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, most));
    CHECK(cudaFuncSetAttribute(reverse, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared));
    CHECK(cudaFuncSetCacheConfig(reverse, cudaFuncCachePreferShared));
    cudaFuncAttributes attributes;
    CHECK(cudaFuncGetAttributes(&attributes, reverse));
    EXPECT(attributes.maxDynamicSharedSizeBytes == most && attributes.preferredShmemCarveout == 100);
    reverse<<<1, 256, most>>>(from, to, n);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < n; i++) EXPECT(to[i] == n - 1 - i);

    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fits, reverse, 256, most));
    EXPECT(fits == 1);
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&fits, reverse, 1024, 0, cudaOccupancyDefault));
    EXPECT(fits == properties.maxThreadsPerMultiProcessor / 1024);
    size_t left;
    CHECK(cudaOccupancyAvailableDynamicSMemPerBlock(&left, reverse, 2, 128));
    EXPECT(left > 0 && left <= properties.sharedMemPerMultiprocessor / 2);
    int grid, block;
    CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, reverse, 0, 0));
    EXPECT(grid >= properties.multiProcessorCount && block % 32 == 0);
    CHECK(cudaOccupancyMaxPotentialBlockSizeVariableSMem(&grid, &block, reverse, shared_of, 512));
    EXPECT(block % 32 == 0 && block <= 512);

    int *numbers;
    CHECK(cudaMallocManaged(&numbers, 4096 * sizeof(int)));
    CHECK(cudaFuncGetAttributes(&attributes, bounded));
    EXPECT(attributes.maxThreadsPerBlock == 128 && attributes.binaryVersion >= 90 && attributes.ptxVersion == 90);
    bounded<<<1, 256>>>(numbers);  // more threads than its bounds say
    EXPECT(cudaGetLastError() != cudaSuccess);
    bounded<<<1, 128>>>(numbers);
    CHECK(cudaDeviceSynchronize());
    EXPECT(numbers[127] == 127);
    bounded<<<dim3(1, 70000), 1>>>(numbers);
    EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
    bounded<<<0, 1>>>(numbers);
    EXPECT(cudaPeekAtLastError() == cudaErrorInvalidConfiguration && cudaGetLastError() == cudaErrorInvalidConfiguration);
    EXPECT(cudaGetLastError() == cudaSuccess);

    pairs<<<4, 32>>>(numbers);
    CHECK(cudaDeviceSynchronize());
    EXPECT(numbers[0] == 22 && numbers[1] == 12 && numbers[2] == 42 && numbers[3] == 32);
    pairs<<<3, 32>>>(numbers);  // no whole number of clusters
    EXPECT(cudaGetLastError() != cudaSuccess);

    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute chosen[2] = {};
    chosen[0].id = cudaLaunchAttributeClusterDimension, chosen[0].val.clusterDim = {4, 1, 1};
    chosen[1].id = cudaLaunchAttributePriority, chosen[1].val.priority = 0;
    config.gridDim = dim3(8), config.blockDim = dim3(64), config.dynamicSmemBytes = 256;
    config.attrs = chosen, config.numAttrs = 2;
    int clusters, size;
    CHECK(cudaOccupancyMaxPotentialClusterSize(&size, any_cluster, &config));
    EXPECT(size >= 8);
    CHECK(cudaOccupancyMaxActiveClusters(&clusters, any_cluster, &config));
    EXPECT(clusters >= 1);
    CHECK(cudaLaunchKernelEx(&config, any_cluster, numbers));
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 512; i++) EXPECT(numbers[i] == 1 + 2 + 3 + 4);
    chosen[0].val.clusterDim.x = 16;
    config.gridDim = dim3(16);
    EXPECT(cudaLaunchKernelEx(&config, any_cluster, numbers) == cudaErrorInvalidClusterSize);
    cudaGetLastError();
    CHECK(cudaFuncSetAttribute(any_cluster, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    CHECK(cudaLaunchKernelEx(&config, any_cluster, numbers));
    CHECK(cudaDeviceSynchronize());
    EXPECT(numbers[5] == 136);
    EXPECT(cudaFuncSetAttribute(pairs, cudaFuncAttributeRequiredClusterWidth, 4) == cudaErrorNotPermitted);
    CHECK(cudaFuncGetAttributes(&attributes, pairs));
    EXPECT(attributes.requiredClusterWidth == 2 && attributes.requiredClusterHeight == 1);
    cudaFuncAttribute extents[] = {cudaFuncAttributeRequiredClusterWidth, cudaFuncAttributeRequiredClusterHeight,
                                   cudaFuncAttributeRequiredClusterDepth};
    for (int axis = 0; axis < 3; axis++) CHECK(cudaFuncSetAttribute(any_cluster, extents[axis], axis ? 1 : 2));
    any_cluster<<<4, 64, 256>>>(numbers);
    CHECK(cudaDeviceSynchronize());
    EXPECT(numbers[200] == 3);
    return passed();
}

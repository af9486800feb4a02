// Launches by cudaLaunchKernelExC with every attribute, facts of kernels, parameters by offset, clusters, dependent launches.
// flags: -std=c++17 -arch=sm_90
// device: sm_90
#include "check.h"
#include <cooperative_groups.h>
#include <cstring>
namespace cg = cooperative_groups;

struct Big {
    int v[200];
};
__global__ void scale(float *p, int n, float f, const __grid_constant__ Big big) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] = p[i] * f + big.v[i % 200];
}
__global__ void __cluster_dims__(4, 1, 1) ranks(int *out) {
    __shared__ int mine;
    auto cluster = cg::this_cluster();
    if (threadIdx.x == 0) mine = blockIdx.x * 10;
    cluster.sync();
    int next = *cluster.map_shared_rank(&mine, (cluster.block_rank() + 1) % cluster.num_blocks());
    if (threadIdx.x == 0) out[blockIdx.x] = next * 100 + cluster.block_rank() * 10 + cluster.num_blocks();
    cluster.sync();
}
__global__ void free_ranks(int *out) {
    auto cluster = cg::this_cluster();
    if (threadIdx.x == 0) atomicAdd(out, int(cluster.num_blocks() * 1000 + cluster.block_rank()));
}
__global__ void first(int *p) {
    p[threadIdx.x] = threadIdx.x * 3;
    cudaTriggerProgrammaticLaunchCompletion();
}
__global__ void second(const int *p, int *q) {
    cudaGridDependencySynchronize();
    q[threadIdx.x] = p[threadIdx.x] + 1;
}

int main() {
    const int n = 1000;
    float *p;
    int *out;
    CHECK(cudaMallocManaged(&p, n * sizeof(float)));
    CHECK(cudaMallocManaged(&out, n * sizeof(int)));
    for (int i = 0; i < n; i++) p[i] = float(i);
    Big big;
    for (int i = 0; i < 200; i++) big.v[i] = i;
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -1));
    cudaLaunchAttribute a[4] = {};
    a[0].id = cudaLaunchAttributePriority, a[0].val.priority = -2;
    a[1].id = cudaLaunchAttributeAccessPolicyWindow;
    a[2].id = cudaLaunchAttributeMemSyncDomain, a[2].val.memSyncDomain = cudaLaunchMemSyncDomainRemote;
    a[3].id = cudaLaunchAttributeCooperative, a[3].val.cooperative = 0;
    cudaLaunchConfig_t c = {};
    c.gridDim = 8, c.blockDim = 128, c.stream = stream, c.attrs = a, c.numAttrs = 4;
    CHECK(cudaLaunchKernelEx(&c, scale, p, n, 2.f, big));
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < n; i++) EXPECT(p[i] == 2 * i + i % 200);

    size_t offset, size;
    CHECK(cudaFuncGetParamInfo((const void *)scale, 3, &offset, &size));
    EXPECT(offset == 16 && size == sizeof(Big));
    EXPECT(cudaFuncGetParamInfo((const void *)scale, 4, &offset, &size) == cudaErrorInvalidValue);
    cudaGetLastError();
    const char *name;
    CHECK(cudaFuncGetName(&name, (const void *)scale));
    EXPECT(!std::strncmp(name, "_Z5scale", 8));

    ranks<<<8, 32>>>(out);
    CHECK(cudaDeviceSynchronize());
    for (int b = 0; b < 8; b++) EXPECT(out[b] == (b / 4 * 4 + (b + 1) % 4) * 1000 + b % 4 * 10 + 4);
    EXPECT((ranks<<<6, 32>>>(out), cudaGetLastError()) != cudaSuccess);  // no multiple of the cluster

    a[0].id = cudaLaunchAttributeClusterDimension, a[0].val.clusterDim = {2, 2, 1};
    c.gridDim = dim3(4, 4), c.blockDim = 32, c.numAttrs = 1;
    out[0] = 0;
    int clusters;
    CHECK(cudaOccupancyMaxActiveClusters(&clusters, free_ranks, &c));
    EXPECT(clusters > 0);
    CHECK(cudaOccupancyMaxPotentialClusterSize(&clusters, free_ranks, &c));
    EXPECT(clusters == 8);
    CHECK(cudaLaunchKernelEx(&c, free_ranks, out));
    CHECK(cudaStreamSynchronize(stream));
    EXPECT(out[0] == 16 * 4000 + 4 * 6);
    CHECK(cudaFuncSetAttribute(free_ranks, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    a[0].val.clusterDim = {16, 1, 1};
    c.gridDim = 16;
    out[0] = 0;
    CHECK(cudaLaunchKernelEx(&c, free_ranks, out));
    CHECK(cudaStreamSynchronize(stream));
    EXPECT(out[0] == 16 * 16000 + 120);

    a[0].id = cudaLaunchAttributeProgrammaticStreamSerialization, a[0].val.programmaticStreamSerializationAllowed = 1;
    for (int round = 0; round < 20; round++) {
        c.gridDim = 1, c.blockDim = 256;
        first<<<1, 256, 0, stream>>>(out);
        CHECK(cudaLaunchKernelEx(&c, second, (const int *)out, out + 512));
        CHECK(cudaStreamSynchronize(stream));
        for (int i = 0; i < 256; i++) EXPECT(out[512 + i] == 3 * i + 1);
    }
    CHECK(cudaStreamDestroy(stream));
    return passed();
}

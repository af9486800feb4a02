// Memory in the order of streams: pools, their attributes and limits, and memory that belongs to a graph.
#include "check.h"
#include <vector>

__global__ void fill(int *data, int n, int value) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) data[i] = value + i;
}
__global__ void sum(const int *data, int n, unsigned long long *to) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(to, (unsigned long long)data[i]);
}

const int N = 10000;

unsigned long long attribute(cudaMemPool_t pool, cudaMemPoolAttr which) {
    unsigned long long value = 0;
    CHECK(cudaMemPoolGetAttribute(pool, which, &value));
    return value;
}

int main() {
    int supported;
    CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, 0));
    EXPECT(supported);
    cudaStream_t stream, other;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    unsigned long long *total;
    CHECK(cudaMallocManaged(&total, sizeof *total));

    cudaMemPool_t pool, current;
    CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
    CHECK(cudaDeviceGetMemPool(&current, 0));
    EXPECT(pool == current);
    unsigned long long keep = ~0ull;
    CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
    EXPECT(attribute(pool, cudaMemPoolAttrReleaseThreshold) == keep);
    for (int round = 0; round < 3; round++) {
        int *data;
        *total = 0;
        CHECK(cudaMallocAsync(&data, N * sizeof(int), stream));
        fill<<<4, 128, 0, stream>>>(data, N, round);
        sum<<<1, 256, 0, stream>>>(data, N, total);
        EXPECT(attribute(pool, cudaMemPoolAttrUsedMemCurrent) >= N * sizeof(int));
        CHECK(cudaFreeAsync(data, stream));
        CHECK(cudaStreamSynchronize(stream));
        EXPECT(*total == (unsigned long long)N * (N - 1) / 2 + (unsigned long long)N * round);
    }
    EXPECT(attribute(pool, cudaMemPoolAttrUsedMemCurrent) == 0);
    EXPECT(attribute(pool, cudaMemPoolAttrUsedMemHigh) >= N * sizeof(int));
    EXPECT(attribute(pool, cudaMemPoolAttrReservedMemCurrent) >= N * sizeof(int));
    CHECK(cudaMemPoolTrimTo(pool, 0));
    EXPECT(attribute(pool, cudaMemPoolAttrReservedMemCurrent) == 0);

    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = 0;
    cudaMemPool_t own;
    CHECK(cudaMemPoolCreate(&own, &properties));
    int *a, *b;
    CHECK(cudaMallocFromPoolAsync(&a, N * sizeof(int), own, stream));
    fill<<<4, 128, 0, stream>>>(a, N, 7);
    cudaEvent_t ready;
    CHECK(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
    CHECK(cudaEventRecord(ready, stream));
    CHECK(cudaStreamWaitEvent(other, ready));
    CHECK(cudaMallocFromPoolAsync(&b, N * sizeof(int), own, other));
    CHECK(cudaMemcpyAsync(b, a, N * sizeof(int), cudaMemcpyDeviceToDevice, other));
    CHECK(cudaFreeAsync(a, other));
    std::vector<int> host(N);
    CHECK(cudaMemcpyAsync(host.data(), b, N * sizeof(int), cudaMemcpyDeviceToHost, other));
    CHECK(cudaFreeAsync(b, other));
    CHECK(cudaStreamSynchronize(other));
    for (int i = 0; i < N; i++) EXPECT(host[i] == 7 + i);
    cudaPointerAttributes of;
    CHECK(cudaMallocFromPoolAsync(&a, 64, own, stream));
    CHECK(cudaPointerGetAttributes(&of, a));
    EXPECT(of.type == cudaMemoryTypeDevice && of.device == 0 && of.devicePointer == a);
    CHECK(cudaFree(a));
    cudaMemAccessFlags access;
    cudaMemLocation here = {};
    here.type = cudaMemLocationTypeDevice, here.id = 0;
    CHECK(cudaMemPoolGetAccess(&access, own, &here));
    EXPECT(access == cudaMemAccessFlagsProtReadWrite);
    CHECK(cudaDeviceSetMemPool(0, own));
    CHECK(cudaMallocAsync(&a, 64, stream));
    EXPECT(attribute(own, cudaMemPoolAttrUsedMemCurrent) >= 64);
    CHECK(cudaFreeAsync(a, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaDeviceSetMemPool(0, pool));
    CHECK(cudaMemPoolDestroy(own));

    // Memory of a graph: its nodes allocate and free it, or a capture does.
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CHECK(cudaMallocAsync(&a, N * sizeof(int), stream));
    fill<<<4, 128, 0, stream>>>(a, N, 1);
    CHECK(cudaMemsetAsync(total, 0, sizeof *total, stream));
    sum<<<1, 256, 0, stream>>>(a, N, total);
    CHECK(cudaFreeAsync(a, stream));
    CHECK(cudaStreamEndCapture(stream, &graph));
    size_t count = 0;
    CHECK(cudaGraphGetNodes(graph, nullptr, &count));
    EXPECT(count == 5);
    std::vector<cudaGraphNode_t> nodes(count);
    CHECK(cudaGraphGetNodes(graph, nodes.data(), &count));
    int allocations = 0;
    for (cudaGraphNode_t node : nodes) {
        cudaGraphNodeType type;
        CHECK(cudaGraphNodeGetType(node, &type));
        if (type != cudaGraphNodeTypeMemAlloc) continue;
        allocations++;
        cudaMemAllocNodeParams parameters;
        CHECK(cudaGraphMemAllocNodeGetParams(node, &parameters));
        EXPECT(parameters.dptr == a && parameters.bytesize == N * sizeof(int));
    }
    EXPECT(allocations == 1);
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    for (int i = 0; i < 3; i++) {
        CHECK(cudaGraphLaunch(executable, stream));
        CHECK(cudaStreamSynchronize(stream));
        EXPECT(*total == (unsigned long long)N * (N - 1) / 2 + N);
    }
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));

    // Memory that outlives its graph: each launch needs the last block freed, here by the launch itself.
    CHECK(cudaGraphCreate(&graph, 0));
    cudaMemAllocNodeParams wanted = {};
    wanted.poolProps = properties, wanted.bytesize = 4096;
    cudaGraphNode_t allocation, filling;
    CHECK(cudaGraphAddMemAllocNode(&allocation, graph, nullptr, 0, &wanted));
    EXPECT(wanted.dptr != nullptr);
    cudaKernelNodeParams kernel = {};
    int *block = (int *)wanted.dptr, n = 1024, value = 3;
    void *arguments[] = {&block, &n, &value};
    kernel.func = (void *)fill, kernel.gridDim = dim3(1), kernel.blockDim = dim3(32), kernel.kernelParams = arguments;
    CHECK(cudaGraphAddKernelNode(&filling, graph, &allocation, 1, &kernel));
    CHECK(cudaGraphInstantiate(&executable, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
    for (int i = 0; i < 2; i++) CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaMemcpyAsync(host.data(), block, 4096, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    EXPECT(host[1023] == 1026);
    CHECK(cudaFreeAsync(block, stream));
    CHECK(cudaStreamSynchronize(stream));
    size_t used = 0;
    CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &used));
    EXPECT(used >= 4096);  // the graph still has it
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaDeviceGraphMemTrim(0));
    CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &used));
    EXPECT(used == 0);
    return passed();
}

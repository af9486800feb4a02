// Graphs: built node by node, captured from two streams, launched again and again, and changed in between.
#include "check.h"

__global__ void add(int *data, int value) { atomicAdd(data + threadIdx.x, value); }
__global__ void multiply(int *data, int factor) { data[threadIdx.x] *= factor; }

static void count(void *number) { ++*(int *)number; }

const int N = 64;

int main() {
    int *data, *host, calls = 0;
    CHECK(cudaMalloc(&data, N * sizeof(int)));
    CHECK(cudaMallocHost(&host, N * sizeof(int)));
    cudaStream_t stream, other;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamCreate(&other));

    cudaGraph_t graph;
    CHECK(cudaGraphCreate(&graph, 0));
    cudaGraphNode_t clear, adding, multiplying, copying, calling;
    cudaMemsetParams fill = {};
    fill.dst = data, fill.value = 0, fill.elementSize = 4, fill.width = N, fill.height = 1;
    CHECK(cudaGraphAddMemsetNode(&clear, graph, nullptr, 0, &fill));
    int value = 5, factor = 3;
    void *add_arguments[] = {&data, &value}, *multiply_arguments[] = {&data, &factor};
    cudaKernelNodeParams kernel = {};
    kernel.func = (void *)add, kernel.gridDim = dim3(2), kernel.blockDim = dim3(N), kernel.kernelParams = add_arguments;
    CHECK(cudaGraphAddKernelNode(&adding, graph, &clear, 1, &kernel));
    kernel.func = (void *)multiply, kernel.gridDim = dim3(1), kernel.kernelParams = multiply_arguments;
    CHECK(cudaGraphAddKernelNode(&multiplying, graph, &adding, 1, &kernel));
    CHECK(cudaGraphAddMemcpyNode1D(&copying, graph, &multiplying, 1, host, data, N * sizeof(int), cudaMemcpyDeviceToHost));
    cudaHostNodeParams call = {count, &calls};
    CHECK(cudaGraphAddHostNode(&calling, graph, &copying, 1, &call));
    size_t nodes = 0;
    CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
    EXPECT(nodes == 5);
    cudaGraphExec_t executable;
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    for (int i = 0; i < 3; i++) {
        CHECK(cudaGraphLaunch(executable, stream));
        CHECK(cudaStreamSynchronize(stream));
        for (int k = 0; k < N; k++) EXPECT(host[k] == 30);
    }
    EXPECT(calls == 3);
    factor = 100;
    CHECK(cudaGraphExecKernelNodeSetParams(executable, multiplying, &kernel));
    CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaStreamSynchronize(stream));
    EXPECT(host[N - 1] == 1000 && calls == 4);
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));

    cudaEvent_t fork, join;
    CHECK(cudaEventCreate(&fork));
    CHECK(cudaEventCreate(&join));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(cudaMemsetAsync(data, 0, N * sizeof(int), stream));
    CHECK(cudaEventRecord(fork, stream));
    CHECK(cudaStreamWaitEvent(other, fork, 0));
    add<<<1, N, 0, stream>>>(data, 1);
    add<<<1, N, 0, other>>>(data, 10);
    CHECK(cudaEventRecord(join, other));
    CHECK(cudaStreamWaitEvent(stream, join, 0));
    multiply<<<1, N, 0, stream>>>(data, 2);
    CHECK(cudaMemcpyAsync(host, data, N * sizeof(int), cudaMemcpyDeviceToHost, stream));
    cudaStreamCaptureStatus status;
    CHECK(cudaStreamIsCapturing(other, &status));
    EXPECT(status == cudaStreamCaptureStatusActive);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    host[0] = -1;
    for (int i = 0; i < 2; i++) CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaStreamSynchronize(stream));
    for (int k = 0; k < N; k++) EXPECT(host[k] == 22);
    return passed();
}

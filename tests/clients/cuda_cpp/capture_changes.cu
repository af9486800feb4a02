// Captures that are asked about and changed while they go on: dependencies, nodes added by hand, modes of threads, into graphs.
#include "check.h"
#include <thread>
#include <vector>
__global__ void append(int *log, int *count, int value) { log[atomicAdd(count, 1)] = value; }
int main() {
    int *log, *count, got[16], n;
    CHECK(cudaMalloc(&log, 64));
    CHECK(cudaMalloc(&count, 4));
    CHECK(cudaMemset(count, 0, 4));
    cudaStream_t s, t;
    CHECK(cudaStreamCreate(&s));
    CHECK(cudaStreamCreate(&t));
    cudaStreamCaptureStatus status;
    unsigned long long id = 0, id2 = 0;
    cudaGraph_t graph = nullptr;
    const cudaGraphNode_t *deps;
    size_t many = 9;
    CHECK(cudaStreamGetCaptureInfo(s, &status, &id, &graph, &deps, nullptr, &many));
    EXPECT(status == cudaStreamCaptureStatusNone);
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    append<<<1, 1, 0, s>>>(log, count, 1);
    CHECK(cudaStreamGetCaptureInfo(s, &status, &id, &graph, &deps, nullptr, &many));
    EXPECT(status == cudaStreamCaptureStatusActive && graph && many == 1 && id);
    cudaGraphNode_t first = deps[0];
    // a node by hand, which the next captured one waits for
    cudaKernelNodeParams k = {};
    int two = 2;
    void *args[] = {&log, &count, &two};
    k.func = (void *)append, k.gridDim = k.blockDim = dim3(1), k.kernelParams = args;
    cudaGraphNode_t hand;
    CHECK(cudaGraphAddKernelNode(&hand, graph, &first, 1, &k));
    CHECK(cudaStreamUpdateCaptureDependencies(s, &hand, nullptr, 1, cudaStreamSetCaptureDependencies));
    append<<<1, 1, 0, s>>>(log, count, 3);
    // another stream joins, and comes back
    cudaEvent_t fork, join;
    CHECK(cudaEventCreate(&fork));
    CHECK(cudaEventCreate(&join));
    CHECK(cudaEventRecord(fork, s));
    CHECK(cudaStreamWaitEvent(t, fork));
    append<<<1, 1, 0, t>>>(log, count, 4);
    CHECK(cudaStreamGetCaptureInfo(t, &status, &id2, nullptr, nullptr, nullptr, nullptr));
    EXPECT(status == cudaStreamCaptureStatusActive && id2 == id);
    CHECK(cudaEventRecord(join, t));
    CHECK(cudaStreamWaitEvent(s, join));
    append<<<1, 1, 0, s>>>(log, count, 5);
    cudaGraph_t made;
    CHECK(cudaStreamEndCapture(s, &made));
    size_t nodes, edges;
    CHECK(cudaGraphGetNodes(made, nullptr, &nodes));
    CHECK(cudaGraphGetEdges(made, nullptr, nullptr, nullptr, &edges));
    EXPECT(nodes == 5);
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, made, 0));
    CHECK(cudaGraphLaunch(exec, s));
    CHECK(cudaStreamSynchronize(s));
    CHECK(cudaMemcpy(&n, count, 4, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(got, log, 4 * n, cudaMemcpyDeviceToHost));
    EXPECT(n == 5);
    for (int i = 0; i < 5; i++) EXPECT(got[i] == i + 1);

    // a stream whose work was not joined: the capture fails
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    append<<<1, 1, 0, s>>>(log, count, 1);
    CHECK(cudaEventRecord(fork, s));
    CHECK(cudaStreamWaitEvent(t, fork));
    append<<<1, 1, 0, t>>>(log, count, 4);
    EXPECT(cudaStreamEndCapture(t, &made) == cudaErrorStreamCaptureUnmatched);
    cudaGetLastError();
    EXPECT(cudaStreamEndCapture(s, &made) == cudaErrorStreamCaptureUnjoined);
    cudaGetLastError();
    // asking for an event of a capture invalidates it
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    CHECK(cudaEventRecord(fork, s));
    EXPECT(cudaEventQuery(fork) == cudaErrorCapturedEvent);
    cudaGetLastError();
    EXPECT(cudaStreamEndCapture(s, &made) == cudaErrorStreamCaptureInvalidated);
    cudaGetLastError();
    // synchronising a captured stream invalidates it
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    append<<<1, 1, 0, s>>>(log, count, 1);
    EXPECT(cudaStreamSynchronize(s) == cudaErrorStreamCaptureUnsupported);
    cudaGetLastError();
    CHECK(cudaStreamIsCapturing(s, &status));
    EXPECT(status == cudaStreamCaptureStatusInvalidated);
    EXPECT(cudaStreamEndCapture(s, &made) == cudaErrorStreamCaptureInvalidated);
    cudaGetLastError();
    EXPECT(made == nullptr);

    // unsafe calls: forbidden while a capture goes on in global mode, unless the thread has another mode
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
    EXPECT(mode == cudaStreamCaptureModeGlobal);
    void *p;
    CHECK(cudaMalloc(&p, 100));
    CHECK(cudaFree(p));
    CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
    EXPECT(mode == cudaStreamCaptureModeRelaxed);
    append<<<1, 1, 0, s>>>(log, count, 6);
    CHECK(cudaStreamEndCapture(s, &made));
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    EXPECT(cudaMalloc(&p, 100) == cudaErrorStreamCaptureUnsupported);
    cudaGetLastError();
    EXPECT(cudaStreamEndCapture(s, &made) == cudaErrorStreamCaptureInvalidated);
    cudaGetLastError();
    // another thread may not end it, one in relaxed mode may
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    cudaError_t other;
    std::thread([&] { other = cudaStreamEndCapture(s, &made); }).join();
    EXPECT(other == cudaErrorStreamCaptureWrongThread);
    CHECK(cudaStreamEndCapture(s, &made));
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    std::thread([&] { other = cudaStreamEndCapture(s, &made); }).join();
    EXPECT(other == cudaSuccess);

    // into a graph that exists
    CHECK(cudaGraphCreate(&graph, 0));
    cudaGraphNode_t root;
    int eight = 8;
    args[2] = &eight;
    CHECK(cudaGraphAddKernelNode(&root, graph, nullptr, 0, &k));
    CHECK(cudaStreamBeginCaptureToGraph(s, graph, &root, nullptr, 1, cudaStreamCaptureModeThreadLocal));
    append<<<1, 1, 0, s>>>(log, count, 9);
    CHECK(cudaStreamEndCapture(s, &made));
    EXPECT(made == graph);
    CHECK(cudaMemset(count, 0, 4));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphLaunch(exec, s));
    CHECK(cudaStreamSynchronize(s));
    CHECK(cudaMemcpy(got, log, 8, cudaMemcpyDeviceToHost));
    EXPECT(got[0] == 8 && got[1] == 9);
    return passed();
}

// Streams, events, graphs and memory that a program destroys while work of them is pending: all of that work is done.
#include "check.h"

__global__ void wait_for(volatile int *flag) {
    while (!*flag) {}
}

__global__ void add(int *to, int value) { atomicAdd(to, value); }

int main() {
    int *shared;
    CHECK(cudaMallocManaged(&shared, 64));
    volatile int *flag = shared + 8;
    for (int i = 0; i < 16; i++) shared[i] = 0;
    cudaStream_t first, second, third;
    for (cudaStream_t *each : {&first, &second, &third}) CHECK(cudaStreamCreateWithFlags(each, cudaStreamNonBlocking));

    // The second stream follows the first by an event; both the event and the first stream are destroyed at once.
    cudaEvent_t event;
    CHECK(cudaEventCreate(&event));
    wait_for<<<1, 1, 0, first>>>(flag);
    add<<<1, 32, 0, first>>>(shared, 1);
    CHECK(cudaEventRecord(event, first));
    CHECK(cudaStreamWaitEvent(second, event));
    CHECK(cudaEventDestroy(event));
    CHECK(cudaStreamDestroy(first));
    add<<<1, 32, 0, second>>>(shared + 1, 2);
    EXPECT(cudaStreamQuery(second) == cudaErrorNotReady);

    // Memory is freed in the order of the stream.
    int *pooled;
    CHECK(cudaMallocAsync(&pooled, sizeof(int), second));
    CHECK(cudaMemsetAsync(pooled, 0, sizeof(int), second));
    add<<<1, 32, 0, second>>>(pooled, 3);
    CHECK(cudaMemcpyAsync(shared + 2, pooled, sizeof(int), cudaMemcpyDeviceToHost, second));
    CHECK(cudaFreeAsync(pooled, second));

    // A graph, and what is instantiated of it.
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CHECK(cudaStreamBeginCapture(third, cudaStreamCaptureModeThreadLocal));
    add<<<1, 1, 0, third>>>(shared + 3, 7);
    CHECK(cudaStreamEndCapture(third, &graph));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaGraphLaunch(executable, second));
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaStreamDestroy(third));

    EXPECT(shared[0] == 0 && shared[3] == 0);
    *flag = 1;
    CHECK(cudaStreamSynchronize(second));
    EXPECT(shared[0] == 32 && shared[1] == 64 && shared[2] == 96 && shared[3] == 7);
    CHECK(cudaStreamDestroy(second));
    return passed();
}

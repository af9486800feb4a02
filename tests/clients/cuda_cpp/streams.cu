// Pieces of an array go through streams of their own; events order the streams, and host functions run in order.
#include "check.h"
#include <vector>

__global__ void scale(float *data, int n, float factor) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] *= factor;
}

__global__ void add(float *to, const float *from, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] += from[i];
}

static void append(void *list) { ((std::vector<int> *)list)->push_back(int(((std::vector<int> *)list)->size())); }

static void CUDART_CB called(cudaStream_t, cudaError_t status, void *count) { *(int *)count += status == cudaSuccess; }

int main() {
    const int pieces = 4, n = 1000;
    float *host, *device;
    CHECK(cudaMallocHost(&host, pieces * n * sizeof(float)));
    CHECK(cudaMalloc(&device, pieces * n * sizeof(float)));
    for (int i = 0; i < pieces * n; i++) host[i] = float(i);
    cudaStream_t streams[pieces], last;
    cudaEvent_t done[pieces];
    int low, high;
    CHECK(cudaDeviceGetStreamPriorityRange(&low, &high));
    EXPECT(high <= low);
    CHECK(cudaStreamCreateWithPriority(&last, cudaStreamNonBlocking, high));
    std::vector<int> order;
    int calls = 0;
    for (int p = 0; p < pieces; p++) {
        CHECK(cudaStreamCreate(&streams[p]));
        CHECK(cudaEventCreateWithFlags(&done[p], cudaEventDisableTiming));
        float *piece = device + p * n;
        CHECK(cudaMemcpyAsync(piece, host + p * n, n * sizeof(float), cudaMemcpyHostToDevice, streams[p]));
        scale<<<(n + 127) / 128, 128, 0, streams[p]>>>(piece, n, float(p + 1));
        CHECK(cudaEventRecord(done[p], streams[p]));
        CHECK(cudaStreamWaitEvent(last, done[p], 0));
    }
    for (int p = 1; p < pieces; p++) add<<<(n + 127) / 128, 128, 0, last>>>(device, device + p * n, n);
    CHECK(cudaMemcpyAsync(host, device, n * sizeof(float), cudaMemcpyDeviceToHost, last));
    for (int i = 0; i < 5; i++) CHECK(cudaLaunchHostFunc(last, append, &order));
    CHECK(cudaStreamAddCallback(last, called, &calls, 0));
    CHECK(cudaStreamSynchronize(last));
    EXPECT(cudaStreamQuery(last) == cudaSuccess);
    EXPECT(order == (std::vector<int>{0, 1, 2, 3, 4}) && calls == 1);
    for (int i = 0; i < n; i++) {
        float wanted = 0;
        for (int p = 0; p < pieces; p++) wanted += float(p * n + i) * float(p + 1);
        EXPECT(host[i] == wanted);
    }
    for (int p = 0; p < pieces; p++) {
        CHECK(cudaStreamDestroy(streams[p]));
        CHECK(cudaEventDestroy(done[p]));
    }
    CHECK(cudaStreamDestroy(last));
    CHECK(cudaFreeHost(host));
    CHECK(cudaFree(device));
    return passed();
}

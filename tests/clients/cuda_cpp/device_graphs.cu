// Graphs that kernels launch: a scheduler that picks the next graph, loops by tail launches, and work beside the graph.
// flags: -rdc=true
#include "check.h"
#include <vector>

enum { STEPS, SUM, BESIDE, ERRORS, DATA }; // words of `data`, and numbers behind them
const int N = 1024;

__global__ void halve(int *data) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) data[DATA + i] /= 2;
}
__global__ void add_up(int *data) {
    __shared__ int sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < N; i += blockDim.x) atomicAdd(&sum, data[DATA + i]);
    __syncthreads();
    if (threadIdx.x == 0) data[SUM] = sum;
}
// Runs the step again until the sum is small, and then the last graph.
__global__ void decide(int *data, int small, cudaGraphExec_t last) {
    data[STEPS]++;
    cudaGraphExec_t next = data[SUM] > small ? cudaGetCurrentGraphExec() : last;
    if (cudaGraphLaunch(next, cudaStreamGraphTailLaunch) != cudaSuccess) data[ERRORS]++;
}
__global__ void finish(int *data) { data[SUM] = -data[SUM]; }
__global__ void beside(int *data) { atomicAdd(data + BESIDE, 1); }
__global__ void begin(int *data, const cudaGraphExec_t *workers, cudaGraphExec_t loop) {
    int i = threadIdx.x;
    if (cudaGraphLaunch(workers[i], i % 2 ? cudaStreamGraphFireAndForget : cudaStreamGraphFireAndForgetAsSibling) != cudaSuccess)
        atomicAdd(data + ERRORS, 1);
    if (i == 0 && cudaGraphLaunch(loop, cudaStreamGraphTailLaunch) != cudaSuccess) atomicAdd(data + ERRORS, 1);
}

template <typename Record> cudaGraphExec_t captured(cudaStream_t stream, unsigned flags, Record record) {
    cudaGraph_t graph;
    cudaGraphExec_t made;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    record();
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiateWithFlags(&made, graph, flags));
    CHECK(cudaGraphDestroy(graph));
    if (flags) CHECK(cudaGraphUpload(made, stream));
    return made;
}

int main() {
    const int workers = 8;
    int *data;
    cudaGraphExec_t *handles;
    cudaStream_t stream;
    CHECK(cudaMallocManaged(&data, (DATA + N) * sizeof(int)));
    CHECK(cudaMallocManaged(&handles, workers * sizeof(cudaGraphExec_t)));
    CHECK(cudaStreamCreate(&stream));
    const unsigned device = cudaGraphInstantiateFlagDeviceLaunch;

    cudaGraphExec_t last = captured(stream, device, [&] { finish<<<1, 1, 0, stream>>>(data); });
    cudaGraphExec_t loop = captured(stream, device, [&] {
        halve<<<4, 256, 0, stream>>>(data);
        add_up<<<1, 128, 0, stream>>>(data);
        decide<<<1, 1, 0, stream>>>(data, 2000, last);
    });
    for (int i = 0; i < workers; i++)
        handles[i] = captured(stream, device, [&] { beside<<<1, 32, 0, stream>>>(data); });
    cudaGraphExec_t graph = captured(stream, 0, [&] {
        CHECK(cudaMemsetAsync(data, 0, DATA * sizeof(int), stream));
        begin<<<1, workers, 0, stream>>>(data, handles, loop);
    });

    for (int times = 0; times < 2; times++) {
        for (int i = 0; i < N; i++) data[DATA + i] = i;
        CHECK(cudaGraphLaunch(graph, stream));
        CHECK(cudaStreamSynchronize(stream));
        int steps = 0, sum = 0;
        std::vector<int> numbers(N);
        for (int i = 0; i < N; i++) numbers[i] = i;
        do {
            sum = 0, steps++;
            for (int &each : numbers) each /= 2, sum += each;
        } while (sum > 2000);
        EXPECT(data[ERRORS] == 0);
        EXPECT(data[STEPS] == steps);
        EXPECT(data[SUM] == -sum);
        EXPECT(data[BESIDE] == 32 * workers);
    }
    return passed();
}

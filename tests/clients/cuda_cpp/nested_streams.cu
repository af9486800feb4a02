// flags: -rdc=true
// output: cudaErrorInvalidConfiguration: invalid argument, unrecognized error code|passed
// Dynamic parallelism with what a kernel has of the runtime: its own streams and events, errors, attributes, boxes.
#include "check.h"

__global__ void add(int *to, int value) { atomicAdd(to + threadIdx.x % 4, value); }
__global__ void scale(int *to, int factor) { to[threadIdx.x] *= factor; }
__global__ void copy(const int *from, int *to) { to[threadIdx.x] = from[threadIdx.x]; }

__global__ void streams(int *data, int *errors) {
    cudaStream_t streams[2];
    cudaEvent_t event;
    for (auto &each : streams) errors[0] |= cudaStreamCreateWithFlags(&each, cudaStreamNonBlocking);
    errors[1] = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    add<<<2, 4, 0, streams[0]>>>(data, 5);
    errors[2] = cudaEventRecord(event, streams[0]);
    errors[3] = cudaStreamWaitEvent(streams[1], event, 0);
    scale<<<1, 4, 0, streams[1]>>>(data, 3);
    errors[4] = cudaGetLastError();
    add<<<1, 2048>>>(data, 1);  // too many threads
    errors[5] = cudaPeekAtLastError();
    errors[6] = cudaGetLastError();
    errors[7] = cudaGetLastError();
    for (auto each : streams) cudaStreamDestroy(each);
    cudaEventDestroy(event);
}

__global__ void questions(int *told) {
    told[0] = cudaGetDevice(&told[1]);
    told[2] = cudaGetDeviceCount(&told[3]);
    told[4] = cudaDeviceGetAttribute(&told[5], cudaDevAttrMaxThreadsPerBlock, 0);
    told[6] = cudaRuntimeGetVersion(&told[7]);
    told[8] = cudaDeviceGetAttribute(&told[9], cudaDevAttrWarpSize, 77);
    told[9] = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&told[10], add, 256, 1024);
    cudaFuncAttributes attributes;
    told[11] = cudaFuncGetAttributes(&attributes, add);
    told[12] = attributes.maxThreadsPerBlock, told[13] = attributes.numRegs, told[14] = attributes.binaryVersion;
    const char *name = cudaGetErrorName(cudaErrorInvalidConfiguration), *said = cudaGetErrorString(cudaErrorInvalidValue);
    printf("%s: %s, %s\n", name, said, cudaGetErrorString((cudaError_t)12345));
}

// A sum over a tree: each level launches the next one in its own stream, and the last block of all adds up.
__global__ void tree(int *sums, int level, int depth) {
    if (threadIdx.x == 0) atomicAdd(sums + level, 1);
    if (level < depth && threadIdx.x < 2) {
        cudaStream_t own;
        cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
        tree<<<1, 2, 0, own>>>(sums, level + 1, depth);
        cudaStreamDestroy(own);
    }
}

__global__ void memory(int *to, int *errors) {
    int *own;
    errors[0] = cudaMalloc(&own, 64 * sizeof(int));
    errors[1] = cudaMemsetAsync(own, 0, 64 * sizeof(int), 0);
    add<<<4, 64>>>(own, 2);
    copy<<<1, 64, 0>>>(own, to);
    errors[2] = cudaMemcpyAsync(to + 64, own, 16, cudaMemcpyDeviceToDevice, 0);
    cudaMemcpy3DParms box = {};
    box.srcPtr = {own, 16, 4, 2}, box.dstPtr = {to + 80, 16, 4, 2};
    box.extent = {16, 1, 1}, box.kind = cudaMemcpyDeviceToDevice;
    errors[3] = cudaMemcpy3DAsync(&box, 0);
    errors[4] = cudaMemcpy2DAsync(to + 100, 8, own, 16, 8, 1, cudaMemcpyDeviceToDevice, 0);
}

int main() {
    int *data, *errors;
    CHECK(cudaMallocManaged(&data, 256 * sizeof(int)));
    CHECK(cudaMallocManaged(&errors, 256 * sizeof(int)));
    CHECK(cudaMemset(data, 0, 256 * sizeof(int)));
    CHECK(cudaMemset(errors, 0, 256 * sizeof(int)));
    streams<<<1, 1>>>(data, errors);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 4; i++) EXPECT(data[i] == 30);
    for (int i = 0; i < 5; i++) EXPECT(errors[i] == 0);
    EXPECT(errors[5] == cudaErrorInvalidConfiguration && errors[6] == errors[5] && errors[7] == 0);

    questions<<<1, 1>>>(errors);
    CHECK(cudaDeviceSynchronize());
    int count, most, version;
    CHECK(cudaGetDeviceCount(&count));
    CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxThreadsPerBlock, 0));
    CHECK(cudaRuntimeGetVersion(&version));
    EXPECT(errors[0] == 0 && errors[1] == 0 && errors[2] == 0 && errors[3] == count && errors[4] == 0 && errors[5] == most);
    EXPECT(errors[6] == 0 && errors[7] / 1000 == version / 1000 && errors[8] == cudaErrorInvalidDevice);
    cudaFuncAttributes attributes;
    int fits;
    CHECK(cudaFuncGetAttributes(&attributes, add));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fits, add, 256, 1024));
    EXPECT(errors[9] == 0 && errors[10] == fits && errors[11] == 0 && errors[12] == most);
    EXPECT(errors[13] == attributes.numRegs && errors[14] == attributes.binaryVersion);

    CHECK(cudaMemset(data, 0, 256 * sizeof(int)));
    tree<<<1, 2>>>(data, 0, 4);
    CHECK(cudaDeviceSynchronize());
    for (int level = 0; level <= 4; level++) EXPECT(data[level] == 1 << level);

    CHECK(cudaMemset(data, 0, 256 * sizeof(int)));
    memory<<<1, 1>>>(data, errors);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 5; i++) EXPECT(errors[i] == 0);
    for (int i = 0; i < 4; i++) EXPECT(data[i] == 4 * 16 * 2 && data[64 + i] == data[i] && data[80 + i] == data[i]);
    EXPECT(data[4] == 0 && data[84] == 0 && data[100] == data[0] && data[102] == 0);
    return passed();
}

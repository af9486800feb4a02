// flags: -rdc=true
// What kernels call of the runtime: copies, fills, memory, streams and events; tail launches and fire-and-forget ones.
#include "check.h"

__global__ void count(int *at) { atomicAdd(at, 1); }

__global__ void tree(int *nodes, int depth) {
    if (threadIdx.x == 0) atomicAdd(nodes, 1);
    if (depth > 0) tree<<<1, 2>>>(nodes, depth - 1);
}

__global__ void launches(int *data) {
    count<<<4, 32>>>(data);
    count<<<1, 1, 0, cudaStreamTailLaunch>>>(data + 1);
    count<<<1, 8, 0, cudaStreamFireAndForget>>>(data + 2);
}

__global__ void memory(int *data, int *errors) {
    cudaStream_t stream;
    cudaEvent_t event;
    errors[0] = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    errors[1] = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    errors[2] = cudaMemsetAsync(data, 1, 16, 0);
    errors[3] = cudaEventRecord(event, 0);
    errors[4] = cudaStreamWaitEvent(stream, event, 0);
    errors[5] = cudaMemcpyAsync(data + 4, data + 1, 12, cudaMemcpyDeviceToDevice, stream);
    errors[6] = cudaMemset2DAsync(data + 8, 16, 2, 8, 2, stream);
    errors[7] = cudaMemcpy2DAsync(data + 16, 8, data + 8, 16, 8, 2, cudaMemcpyDefault, stream);
    count<<<1, 5, 0, stream>>>(data + 7);
    int *block, device = -1;
    errors[8] = cudaMalloc((void **)&block, 64);
    block[15] = 3;
    data[24] = block[15];
    errors[9] = cudaFree(block);
    errors[10] = cudaGetDevice(&device);
    data[25] = device;
    errors[11] = cudaEventDestroy(event);
    errors[12] = cudaStreamDestroy(stream);
    errors[13] = cudaGetLastError();
}

int main() {
    int *data, *errors;
    CHECK(cudaMallocManaged(&data, 32 * sizeof(int)));
    CHECK(cudaMallocManaged(&errors, 14 * sizeof(int)));
    for (int i = 0; i < 32; i++) data[i] = 0;
    tree<<<1, 2>>>(data, 4);
    launches<<<1, 1>>>(data + 1);
    CHECK(cudaDeviceSynchronize());
    EXPECT(data[0] == 31 && data[1] == 128 && data[2] == 1 && data[3] == 8);
    for (int i = 0; i < 4; i++) data[i] = 0;
    memory<<<1, 1>>>(data, errors);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 14; i++) EXPECT(errors[i] == cudaSuccess);
    const int expected[26] = {0x1010101, 0x1010101, 0x1010101, 0x1010101, 0x1010101, 0x1010101, 0x1010101, 5, 0x2020202, 0x2020202, 0, 0, 0x2020202,
                              0x2020202, 0, 0, 0x2020202, 0x2020202, 0x2020202, 0x2020202, 0, 0, 0, 0, 3, 0};
    for (int i = 0; i < 26; i++) EXPECT(data[i] == expected[i]);
    return passed();
}

// What a program sees of faults: errors of calls, of launches, and of kernels, which stay until the device is reset.
#include "check.h"
#include <cassert>
#include <cstring>

__global__ void good(int *to) { to[threadIdx.x] = threadIdx.x; }
__global__ void wild(int *to) { to[1 << 28] = 1; }
__global__ void crooked(char *to) { *(int *)(to + 1) = 1; }
__global__ void trap() { asm volatile("trap;"); }
__global__ void asserts(int n) { assert(n < 10 && "n is small"); }
__global__ void deep(int *to, int depth) {
    volatile int here[2000];
    here[threadIdx.x] = depth;
    to[threadIdx.x] = here[threadIdx.x];
}

bool sticks(cudaError_t error) {
    int *other;
    return cudaDeviceSynchronize() == error && cudaMalloc(&other, 4) == error && cudaGetLastError() == error &&
           cudaPeekAtLastError() == error && cudaGetLastError() == error;
}

int *fresh() {
    CHECK(cudaDeviceReset());
    EXPECT(cudaGetLastError() == cudaSuccess);
    int *data;
    CHECK(cudaMalloc(&data, 64 * sizeof(int)));
    good<<<1, 64>>>(data);
    int host[64];
    CHECK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
    EXPECT(host[63] == 63);
    return data;
}

int main() {
    // Errors of calls do not stay: the last one is told once.
    void *pointer;
    EXPECT(cudaMalloc(&pointer, size_t(1) << 50) == cudaErrorMemoryAllocation);
    EXPECT(cudaPeekAtLastError() == cudaErrorMemoryAllocation);
    EXPECT(cudaGetLastError() == cudaErrorMemoryAllocation);
    EXPECT(cudaGetLastError() == cudaSuccess);
    EXPECT(cudaSetDevice(77) == cudaErrorInvalidDevice);
    EXPECT(cudaMemcpy(nullptr, &pointer, 8, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    EXPECT(cudaFree(&pointer) == cudaErrorInvalidValue);
    EXPECT(cudaEventQuery((cudaEvent_t)0) == cudaErrorInvalidResourceHandle);
    EXPECT(cudaGetLastError() == cudaErrorInvalidResourceHandle);
    EXPECT(std::strcmp(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress") == 0);
    EXPECT(std::strcmp(cudaGetErrorString(cudaErrorInvalidValue), "invalid argument") == 0);
    EXPECT(std::strcmp(cudaGetErrorString(cudaErrorNoKernelImageForDevice),
                       "no kernel image is available for execution on the device") == 0);
    EXPECT(std::strcmp(cudaGetErrorString((cudaError_t)12345), "unrecognized error code") == 0);
    good<<<1, 4096>>>((int *)pointer);
    EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
    EXPECT(cudaDeviceSynchronize() == cudaSuccess);
    cudaEvent_t early, late;
    CHECK(cudaEventCreate(&early));
    CHECK(cudaEventCreateWithFlags(&late, cudaEventDisableTiming));
    float time;
    EXPECT(cudaEventElapsedTime(&time, early, late) == cudaErrorInvalidResourceHandle);
    EXPECT(cudaGetLastError() == cudaErrorInvalidResourceHandle);

    // Errors of kernels stay.
    int *data = fresh();
    wild<<<1, 1>>>(data);
    EXPECT(sticks(cudaErrorIllegalAddress));
    data = fresh();
    crooked<<<1, 1>>>((char *)data);
    EXPECT(sticks(cudaErrorMisalignedAddress));
    fresh();
    trap<<<1, 1>>>();
    EXPECT(sticks(cudaErrorLaunchFailure));
    fresh();
    asserts<<<1, 1>>>(5);
    CHECK(cudaDeviceSynchronize());
    asserts<<<2, 4>>>(12);
    EXPECT(sticks(cudaErrorAssert));

    // Limits of the device.
    data = fresh();
    size_t value;
    CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 16 << 10));
    CHECK(cudaDeviceGetLimit(&value, cudaLimitStackSize));
    EXPECT(value == 16 << 10);
    deep<<<1, 64>>>(data, 7);
    int host[64];
    CHECK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
    EXPECT(host[63] == 7);
    CHECK(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 4 << 20));
    CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 16 << 20));
    CHECK(cudaDeviceGetLimit(&value, cudaLimitMallocHeapSize));
    EXPECT(value >= 16 << 20);
    EXPECT(cudaDeviceSetLimit((cudaLimit)99, 1) == cudaErrorUnsupportedLimit || cudaGetLastError() == cudaErrorInvalidValue);
    cudaGetLastError();
    return passed();
}

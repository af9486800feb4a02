// Errors: of calls, which are forgotten when they were read, and of kernels, which stay until the device is reset.
#include "check.h"
#include <cstring>

__global__ void wild(int *data) { data[threadIdx.x] = 1; }
__global__ void fine(int *data) { data[threadIdx.x] = 2; }
__device__ int variable = 7;

int main() {
    int *data = nullptr, value = 0;
    EXPECT(cudaMalloc(&data, size_t(1) << 60) == cudaErrorMemoryAllocation);
    EXPECT(cudaPeekAtLastError() == cudaErrorMemoryAllocation && cudaGetLastError() == cudaErrorMemoryAllocation);
    EXPECT(cudaGetLastError() == cudaSuccess);
    EXPECT(cudaSetDevice(99) == cudaErrorInvalidDevice);
    EXPECT(cudaMemcpyFromSymbol(&value, variable, 400) == cudaErrorInvalidValue);
    EXPECT(!std::strcmp(cudaGetErrorName(cudaErrorInvalidDevice), "cudaErrorInvalidDevice"));
    EXPECT(!std::strcmp(cudaGetErrorString(cudaSuccess), "no error"));
    void *pointer;
    CHECK(cudaMalloc(&pointer, 16));
    EXPECT(cudaFreeHost(pointer) == cudaErrorInvalidValue);
    CHECK(cudaFree(pointer));
    cudaArray_t array;
    cudaChannelFormatDesc three = cudaCreateChannelDesc(8, 8, 8, 0, cudaChannelFormatKindUnsigned), bytes = cudaCreateChannelDesc<uchar4>();
    EXPECT(cudaMallocArray(&array, &three, 4, 4) == cudaErrorInvalidChannelDescriptor);
    CHECK(cudaMallocArray(&array, &bytes, 4, 4));
    cudaResourceDesc resource = {};
    resource.res.array.array = array;
    cudaTextureDesc smooth = {};
    smooth.filterMode = cudaFilterModeLinear;
    cudaTextureObject_t texture;
    EXPECT(cudaCreateTextureObject(&texture, &resource, &smooth, nullptr) == cudaErrorInvalidFilterSetting);
    EXPECT(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&value, fine, 0, 0) == cudaErrorInvalidValue);
    cudaGetLastError();
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamDestroy(stream));
    EXPECT(cudaStreamSynchronize(stream) != cudaSuccess);
    cudaGetLastError();
    fine<<<1, 2000>>>(data);
    EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
    wild<<<1, 32>>>((int *)16);
    EXPECT(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
    EXPECT(cudaMalloc(&data, 4) == cudaErrorIllegalAddress);
    EXPECT(cudaGetLastError() == cudaErrorIllegalAddress && cudaGetLastError() == cudaErrorIllegalAddress);
    CHECK(cudaDeviceReset());
    CHECK(cudaMalloc(&data, 32 * 4));
    fine<<<1, 32>>>(data);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(&value, data + 31, 4, cudaMemcpyDeviceToHost));
    EXPECT(value == 2);
    CHECK(cudaMemcpyFromSymbol(&value, variable, 4));
    EXPECT(value == 7);
    return passed();
}

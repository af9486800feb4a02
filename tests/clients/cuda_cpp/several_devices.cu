// devices: 2
// Two devices: each has a variable of its own, and memory goes from one to the other.
#include "check.h"
#include <thread>

__device__ int variable = 1;
__global__ void add(int *data, int value) {
    data[threadIdx.x] += value;
    if (!threadIdx.x) variable += value;
}

int main() {
    int count, can, *data[2], value;
    CHECK(cudaGetDeviceCount(&count));
    EXPECT(count == 2);
    CHECK(cudaDeviceCanAccessPeer(&can, 0, 1));
    EXPECT(can);
    for (int device = 0; device < 2; device++) {
        CHECK(cudaSetDevice(device));
        CHECK(cudaMalloc(&data[device], 32 * 4));
        CHECK(cudaMemset(data[device], 0, 32 * 4));
        add<<<1, 32>>>(data[device], 10 + device);
        CHECK(cudaDeviceSynchronize());
    }
    CHECK(cudaDeviceEnablePeerAccess(0, 0));
    EXPECT(cudaDeviceEnablePeerAccess(0, 0) == cudaErrorPeerAccessAlreadyEnabled);
    add<<<1, 32>>>(data[0], 100);  // memory of device 0, variable of device 1
    CHECK(cudaMemcpyPeer(data[1], 1, data[0], 0, 32 * 4));
    CHECK(cudaMemcpy(&value, data[1] + 5, 4, cudaMemcpyDeviceToHost));
    EXPECT(value == 110);
    CHECK(cudaMemcpyFromSymbol(&value, variable, 4));
    EXPECT(value == 112);
    int elsewhere = -1;
    std::thread([&] {
        CHECK(cudaGetDevice(&elsewhere));  // a new thread begins with device 0
        CHECK(cudaMemcpyFromSymbol(&value, variable, 4));
    }).join();
    EXPECT(elsewhere == 0 && value == 11);
    return passed();
}

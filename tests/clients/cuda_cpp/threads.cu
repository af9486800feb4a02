// Threads of the host that launch kernels at the same time, and a child process that ends while its parent goes on.
#include "check.h"
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

__global__ void add(int *data, int value) { atomicAdd(data, value + threadIdx.x); }

int main() {
    int *data, value = 0;
    CHECK(cudaMalloc(&data, 4));
    CHECK(cudaMemset(data, 0, 4));
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++)
        threads.emplace_back([=] {
            cudaStream_t stream;
            CHECK(cudaStreamCreate(&stream));
            for (int i = 0; i < 10; i++) add<<<1, 32, 0, stream>>>(data, t);
            EXPECT(cudaGetLastError() == cudaSuccess);
            CHECK(cudaStreamSynchronize(stream));
            CHECK(cudaStreamDestroy(stream));
        });
    for (auto &each : threads) each.join();
    CHECK(cudaMemcpy(&value, data, 4, cudaMemcpyDeviceToHost));
    EXPECT(value == 10 * (32 * (0 + 1 + 2 + 3) + 4 * 496));
    pid_t child = fork();
    if (!child) _exit(cudaMalloc(&data, 4) == cudaSuccess);  // CUDA is of no use in a child
    int status = -1;
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    add<<<1, 32>>>(data, 0);
    CHECK(cudaDeviceSynchronize());
    return passed();
}

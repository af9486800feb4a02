// flags: --default-stream per-thread
// Each thread of the host has a default stream of its own: a kernel of one waits for a kernel of another.
#include "check.h"
#include <atomic>
#include <thread>

__global__ void wait_for(volatile int *flag, int *done) {
    while (!*flag) {}
    *done = 1;
}

__global__ void set(volatile int *flag) { *flag = 1; }

int main() {
    int *flag, *done;
    CHECK(cudaMallocManaged(&flag, sizeof(int)));
    CHECK(cudaMallocManaged(&done, sizeof(int)));
    *flag = *done = 0;
    std::atomic<bool> launched{false};
    std::thread first([&] {
        wait_for<<<1, 1>>>(flag, done);
        launched = true;
        CHECK(cudaStreamSynchronize(0));
        EXPECT(*done == 1);
    });
    std::thread second([&] {
        while (!launched) std::this_thread::yield();
        set<<<1, 1>>>(flag);
        CHECK(cudaStreamSynchronize(cudaStreamPerThread));
    });
    first.join();
    second.join();
    return passed();
}

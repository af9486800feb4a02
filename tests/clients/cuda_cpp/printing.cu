// output: before|thread 0 of 4 says 1.50|thread 1 of 4 says 2.50|thread 2 of 4 says 3.50|thread 3 of 4 says 4.50|after|passed
// What kernels print comes between what the host prints before the launch and after it waited.
#include "check.h"

__global__ void say(const char *word) { printf("thread %d of %u %s %.2f\n", threadIdx.x, blockDim.x, "says", threadIdx.x + 1.5); }

int main() {
    std::printf("before\n");
    say<<<1, 4>>>(nullptr);
    CHECK(cudaDeviceSynchronize());
    std::printf("after\n");
    return passed();
}

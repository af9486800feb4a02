// nvcc --ptx --gpu-architecture=compute_75 collatz.cu
// How many steps of the Collatz sequence each number takes to reach 1: every lane of a warp leaves the loop when it likes.
extern "C" __global__ void collatz(const unsigned *start, unsigned *steps, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = start[i], count = 0;
    while (x > 1) {
        x = x & 1 ? 3 * x + 1 : x / 2;
        count++;
    }
    steps[i] = count;
}

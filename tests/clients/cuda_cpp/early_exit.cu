// A program that ends while its kernels run, and while code for them is still compiled: its status is that of `main`.
#include "check.h"
__global__ void work(float *p, int n, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = p[i % n];
    for (int k = 0; k < rounds; k++) {
        v = v * 0.999f + sinf(v);
        if (v > 3) v -= __shfl_xor_sync(~0u, v, 1) * 0.5f;
        v += p[(i + k) % n];
    }
    p[i % n] = v;
}
int main() {
    const int n = 4096;
    float *p;
    cudaStream_t s, t;
    CHECK(cudaMalloc(&p, 4 * n));
    CHECK(cudaMemset(p, 0, 4 * n));
    CHECK(cudaStreamCreate(&s));
    CHECK(cudaStreamCreate(&t));
    for (int i = 0; i < 40; i++) {
        work<<<64, 256, 0, s>>>(p, n, 200);
        work<<<64, 256, 0, t>>>(p, n, 200);
        if (i < 20) CHECK(cudaStreamSynchronize(s));
    }
    return passed();
}

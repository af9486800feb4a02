// Error codes: those that end a context and those that do not, and what works after a reset.
#include "check.h"
#include <cassert>
__global__ void good(int *p) {
    *p = 5;
}
__global__ void traps() {
    __trap();
}
__global__ void asserts(int x) {
    assert(x == 3);
}
__global__ void misaligned(char *p) {
    *(int *)(p + 1) = 1;
}
__global__ void wild() {
    *(volatile int *)64 = 1;
}
__global__ void __launch_bounds__(64) bounded() {}
__global__ void mall(int **p) {
    p[threadIdx.x] = (int *)malloc(1 << 30);
}
static bool works() {
    int *p, v = 0;
    if (cudaMalloc(&p, 4)) return false;
    good<<<1, 1>>>(p);
    return !cudaMemcpy(&v, p, 4, cudaMemcpyDefault) && v == 5;
}
#define STICKY(launch, want)                                                                                           \
    do {                                                                                                               \
        int *m;                                                                                                        \
        CHECK(cudaMalloc(&m, 64));                                                                                     \
        launch;                                                                                                        \
        EXPECT(cudaGetLastError() == cudaSuccess);                                                                     \
        cudaError_t e = cudaDeviceSynchronize();                                                                       \
        if (e != want) {                                                                                               \
            std::printf("%s: %s\n", #launch, cudaGetErrorName(e));                                                     \
            return 1;                                                                                                  \
        }                                                                                                              \
        EXPECT(cudaGetLastError() == want);                                                                            \
        EXPECT(cudaMalloc(&m, 4) == want);                                                                             \
        EXPECT(!works());                                                                                              \
        CHECK(cudaDeviceReset());                                                                                      \
        cudaGetLastError();                                                                                            \
        EXPECT(works());                                                                                               \
    } while (0)
#define PLAIN(launch, want)                                                                                            \
    do {                                                                                                               \
        launch;                                                                                                        \
        EXPECT(cudaPeekAtLastError() == want);                                                                         \
        EXPECT(cudaGetLastError() == want);                                                                            \
        EXPECT(cudaGetLastError() == cudaSuccess);                                                                     \
        EXPECT(works());                                                                                               \
    } while (0)
int main() {
    EXPECT(works());
    STICKY((traps<<<1, 1>>>()), cudaErrorLaunchFailure);
    STICKY((asserts<<<1, 1>>>(4)), cudaErrorAssert);
    STICKY((misaligned<<<1, 1>>>((char *)m)), cudaErrorMisalignedAddress);
    STICKY((wild<<<1, 1>>>()), cudaErrorIllegalAddress);
    asserts<<<1, 32>>>(3);
    CHECK(cudaDeviceSynchronize());
    PLAIN((bounded<<<1, 65>>>()), cudaErrorInvalidConfiguration);
    PLAIN((good<<<0, 1>>>(nullptr)), cudaErrorInvalidConfiguration);
    PLAIN((good<<<1, 1025>>>(nullptr)), cudaErrorInvalidConfiguration);
    PLAIN((good<<<1, dim3(1, 1, 65)>>>(nullptr)), cudaErrorInvalidConfiguration);
    PLAIN((good<<<dim3(1, 65536), 1>>>(nullptr)), cudaErrorInvalidConfiguration);
    PLAIN((good<<<1, 1, 200 << 10>>>(nullptr)), cudaErrorInvalidValue);
    int *p;
    EXPECT(cudaMalloc(&p, (size_t)1 << 50) == cudaErrorMemoryAllocation);
    EXPECT(cudaGetLastError() == cudaErrorMemoryAllocation);
    EXPECT(cudaFree((void *)0x1234) == cudaErrorInvalidValue);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
    EXPECT(cudaSetDevice(7) == cudaErrorInvalidDevice);
    cudaGetLastError();
    EXPECT(cudaMemcpy(nullptr, nullptr, 4, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
    cudaGetLastError();
    EXPECT(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyDeviceToHost) == cudaSuccess);
    EXPECT(cudaMemcpy(&p, &p, 4, (cudaMemcpyKind)9) == cudaErrorInvalidMemcpyDirection);
    cudaGetLastError();
    EXPECT(cudaStreamQuery((cudaStream_t)0x1234560) != cudaSuccess);
    cudaGetLastError();
    int **q;
    CHECK(cudaMallocManaged(&q, 64));
    mall<<<1, 4>>>(q);
    CHECK(cudaDeviceSynchronize());
    EXPECT(!q[3]);
    std::printf("%s\n", cudaGetErrorString(cudaErrorAssert));
    EXPECT(works());
    return passed();
}

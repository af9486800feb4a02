// Atomic operations of every type and scope, in global, shared and generic memory; the results do not depend on the order.
// flags: -arch=compute_90 -std=c++17
// device: sm_90
#include "check.h"
#include <cstring>
#include <cuda/atomic>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

const int N = 512;

struct Results {
    int add, sub, min, max, band, bor, bxor, exchanged, swapped;
    unsigned inc, dec, umin, umax;
    unsigned long long wide_add, wide_min, wide_max, wide_and, wide_or;
    long long signed_min;
    float f;
    double d;
    __half2 halves;
    __half half;
    __nv_bfloat16 bfloat;
    float4 vector;
    unsigned short narrow;
};

__global__ void update(Results *r) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&r->add, i), atomicAdd_block(&r->add, 1), atomicAdd_system(&r->add, -1), atomicSub(&r->sub, i);
    atomicMin(&r->min, -i), atomicMax(&r->max, i);
    atomicAnd(&r->band, ~(1 << i % 20)), atomicOr(&r->bor, 1 << i % 31), atomicXor(&r->bxor, i);
    atomicInc(&r->inc, 99), atomicDec(&r->dec, 99), atomicExch(&r->exchanged, 5), atomicCAS(&r->swapped, 0, 77);
    atomicMin(&r->umin, 4000000000u - i), atomicMax(&r->umax, 3000000000u + i);
    atomicAdd(&r->wide_add, 1ull << 33), atomicMin(&r->wide_min, (1ull << 40) - i), atomicMax(&r->wide_max, (1ull << 40) + i);
    atomicAnd(&r->wide_and, ~(1ull << i % 60)), atomicOr(&r->wide_or, 1ull << i % 63), atomicMin(&r->signed_min, -(long long)i);
    atomicAdd(&r->f, .5f), atomicAdd(&r->d, .25), atomicAdd(&r->halves, __floats2half2_rn(1, 2));
    atomicAdd(&r->half, __float2half(1)), atomicAdd(&r->bfloat, __float2bfloat16(1));
    atomicAdd(&r->vector, make_float4(1, 2, 3, 4)), atomicCAS(&r->narrow, (unsigned short)0, (unsigned short)9);
}

__global__ void in_shared(int *out, int *most) {
    __shared__ int bins[16];
    __shared__ unsigned long long sum;
    __shared__ float f;
    int t = threadIdx.x;
    if (t < 16) bins[t] = 0;
    if (!t) sum = 0, f = 0;
    __syncthreads();
    atomicAdd(&bins[t % 16], 1), atomicAdd(&sum, (unsigned long long)t << 30), atomicAdd(&f, 2.f);
    __syncthreads();
    atomicMax(t & 1 ? &bins[3] : most, t); // at a generic address, of either space
    __syncthreads();
    if (t < 16) out[t] = bins[t];
    if (!t) out[16] = int(sum >> 30), out[17] = int(f);
}

__global__ void spin_lock(int *lock, int *count, int *order) {
    for (bool done = false; !done;)
        if (atomicCAS(lock, 0, 1) == 0) {
            __threadfence();
            int n = *(volatile int *)count;
            order[n] = blockIdx.x * blockDim.x + threadIdx.x;
            *(volatile int *)count = n + 1;
            __threadfence();
            atomicExch(lock, 0), done = true;
        }
}

__global__ void references(int *of_block, double *of_system, int *most, unsigned char *byte) {
    cuda::atomic_ref<int, cuda::thread_scope_block>(of_block[blockIdx.x]).fetch_add(2, cuda::memory_order_relaxed);
    cuda::atomic_ref<double, cuda::thread_scope_system>(*of_system).fetch_add(.5);
    cuda::atomic_ref<int>(*most).fetch_max(int(threadIdx.x));
    reinterpret_cast<cuda::atomic<unsigned char> *>(byte)->fetch_add(1);
}

void in_global() {
    Results *r;
    CHECK(cudaMallocManaged(&r, sizeof *r));
    std::memset((void *)r, 0, sizeof *r);
    r->band = -1, r->umin = ~0u, r->wide_min = r->wide_and = ~0ull;
    update<<<4, N / 4>>>(r);
    CHECK(cudaDeviceSynchronize());
    int some_or = 0, some_xor = 0;
    unsigned dec = 0;
    for (int i = 0; i < N; i++) some_or |= 1 << i % 31, some_xor ^= i, dec = dec == 0 || dec > 99 ? 99 : dec - 1;
    EXPECT(r->add == N * (N - 1) / 2 && r->sub == -r->add && r->min == 1 - N && r->max == N - 1);
    EXPECT(r->band == ~((1 << 20) - 1) && r->bor == some_or && r->bxor == some_xor);
    EXPECT(r->inc == N % 100 && r->dec == dec && r->exchanged == 5 && r->swapped == 77);
    EXPECT(r->umin == 4000000001u - N && r->umax == 2999999999u + N);
    EXPECT(r->wide_add == (1ull << 33) * N && r->wide_min == (1ull << 40) - N + 1 && r->wide_max == (1ull << 40) + N - 1);
    EXPECT(r->wide_and == ~((1ull << 60) - 1) && r->wide_or == (1ull << 63) - 1 && r->signed_min == 1 - N);
    EXPECT(r->f == N / 2 && r->d == N / 4 && __low2float(r->halves) == N && __high2float(r->halves) == 2 * N);
    EXPECT(__half2float(r->half) == N && __bfloat162float(r->bfloat) == 256); // where 1 is half a unit, and ties go to even
    EXPECT(r->vector.x == N && r->vector.y == 2 * N && r->vector.z == 3 * N && r->vector.w == 4 * N && r->narrow == 9);
}

int main() {
    in_global();
    int *p;
    CHECK(cudaMallocManaged(&p, 4096));
    std::memset(p, 0, 4096);
    in_shared<<<1, 320>>>(p, p + 40);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 16; i++) EXPECT(p[i] == (i == 3 ? 319 : 20));
    EXPECT(p[16] == 319 * 320 / 2 && p[17] == 640 && p[40] == 318);

    std::memset(p, 0, 4096);
    spin_lock<<<4, 32>>>(p, p + 1, p + 2);
    CHECK(cudaDeviceSynchronize());
    bool seen[128] = {};
    EXPECT(p[0] == 0 && p[1] == 128);
    for (int i = 0; i < 128; i++) {
        EXPECT(!seen[p[2 + i]]);
        seen[p[2 + i]] = true;
    }

    std::memset(p, 0, 4096);
    double *sum = reinterpret_cast<double *>(p + 100);
    unsigned char *byte = reinterpret_cast<unsigned char *>(p + 200);
    references<<<8, 64>>>(p, sum, p + 8, byte);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 8; i++) EXPECT(p[i] == 128);
    EXPECT(*sum == 256 && p[8] == 63 && *byte == 0);
    return passed();
}

// Types of few bits from the toolkit's headers: half, bfloat16, FP8, FP6, FP4, and packed pairs, on the device and on the host.
// flags: -std=c++17
#include "check.h"
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

const int N = 4096;
struct Results {
    __half h[8];
    __half2 h2[4];
    __nv_bfloat16 b[6];
    __nv_bfloat162 b2[2];
    __nv_fp8_e4m3 e4;
    __nv_fp8_e5m2 e5;
    __nv_fp8_e8m0 e8;
    __nv_fp6_e2m3 e23;
    __nv_fp6_e3m2 e32;
    __nv_fp4_e2m1 e21;
    float back[6];
    int compared;
};

__host__ __device__ void compute(float x, float y, Results &r) {
    __half a = __float2half(x), b = __float2half_rz(y);
    r.h[0] = __hadd(a, b);
    r.h[1] = __hmul(a, b);
    r.h[2] = __hdiv(a, b);
    r.h[3] = __hsub(a, b);
    r.h[4] = __hmax(a, b);
    r.h[5] = __habs(__hneg(b));
    r.h[6] = __int2half_rn(int(y));
    r.h[7] = __hadd_sat(a, b);
    __half2 p = __floats2half2_rn(x, y), q = __halves2half2(b, a);
    r.h2[0] = __hadd2(p, q);
    r.h2[1] = __hmul2(p, q);
    r.h2[2] = __lowhigh2highlow(p);
    r.h2[3] = __hmin2(p, q);
    __nv_bfloat16 c = __float2bfloat16(x), d = __float2bfloat16_rn(y);
    r.b[0] = __hadd(c, d);
    r.b[1] = __hmul(c, d);
    r.b[2] = __hdiv(c, d);
    r.b[3] = __hmin(c, d);
    r.b[4] = __int2bfloat16_rn(int(y));
    r.b[5] = c - d;
    r.b2[0] = __floats2bfloat162_rn(x, y);
    r.b2[1] = __hmul2(r.b2[0], __halves2bfloat162(d, c));
    r.e4 = __nv_fp8_e4m3(x);
    r.e5 = __nv_fp8_e5m2(x);
    r.e8 = __nv_fp8_e8m0(fabsf(x));
    r.e23 = __nv_fp6_e2m3(y);
    r.e32 = __nv_fp6_e3m2(y);
    r.e21 = __nv_fp4_e2m1(y);
    r.back[0] = float(r.e4), r.back[1] = float(r.e5), r.back[2] = float(r.e8);
    r.back[3] = float(r.e23), r.back[4] = float(r.e32), r.back[5] = float(r.e21);
    r.compared = __hlt(a, b) | __heq(c, d) << 1 | __hgtu(a, b) << 2 | __hbeq2(p, q) << 3 | __hisnan(a) << 4 | (c >= d) << 5;
}

__global__ void on_device(const float *x, const float *y, Results *r) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    memset(&r[i], 0, sizeof(Results));
    compute(x[i], y[i], r[i]);
}

int main() {
    float *x, *y;
    Results *r;
    CHECK(cudaMallocManaged(&x, N * sizeof(float)));
    CHECK(cudaMallocManaged(&y, N * sizeof(float)));
    CHECK(cudaMallocManaged(&r, N * sizeof(Results)));
    unsigned s = 1;
    for (int i = 0; i < N; i++) {
        auto next = [&] { return float(int((s = s * 1664525 + 1013904223) >> 8) - (1 << 23)); };
        x[i] = std::ldexp(next(), -23 + int((s >> 9) % 16) - 4), y[i] = std::ldexp(next(), -23 + int((s >> 13) % 12) - 2);
        if (i % 61 == 0) x[i] = i % 122 ? INFINITY : -0.f;
    }
    on_device<<<N / 128, 128>>>(x, y, r);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < N; i++) {
        Results wanted;
        memset(&wanted, 0, sizeof wanted);
        compute(x[i], y[i], wanted);
        const unsigned char *a = (const unsigned char *)&wanted, *b = (const unsigned char *)&r[i];
        for (size_t k = 0; k < sizeof wanted; k++)
            if (a[k] != b[k]) {
                std::printf("%d: x = %a, y = %a: byte %zu is %02x, and %02x on the host\n", i, x[i], y[i], k, b[k], a[k]);
                return 1;
            }
    }
    return passed();
}

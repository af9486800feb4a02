// flags: -arch=compute_80
// A product of matrices of half precision on tensor cores, by the functions of `mma.h`; and arithmetic of pairs.
#include "check.h"
#include <cuda_fp16.h>
#include <mma.h>
#include <vector>

using namespace nvcuda;

__global__ void product(const half *a, const half *b, float *c, int n, int k) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int at = 0; at < k; at += 16) {
        wmma::load_matrix_sync(fa, a + blockIdx.y * 16 * k + at, k);
        wmma::load_matrix_sync(fb, b + blockIdx.x * 16 * k + at, k);
        wmma::mma_sync(sum, fa, fb, sum);
    }
    wmma::store_matrix_sync(c + blockIdx.y * 16 * n + blockIdx.x * 16, sum, n, wmma::mem_row_major);
}

__global__ void pairs(const half2 *a, const half2 *b, half2 *c) { c[threadIdx.x] = __hfma2(a[threadIdx.x], b[threadIdx.x], b[threadIdx.x]); }

int main() {
    const int m = 32, n = 48, k = 64;
    std::vector<half> a(m * k), b(n * k), c(m * k);
    std::vector<float> found(m * n);
    for (int i = 0; i < m * k; i++) a[i] = __float2half(float(i % 9 - 4));
    for (int i = 0; i < n * k; i++) b[i] = __float2half(float(i % 5 - 2));
    half *da, *db, *dc;
    float *out;
    CHECK(cudaMalloc(&da, m * k * 2));
    CHECK(cudaMalloc(&db, n * k * 2));
    CHECK(cudaMalloc(&dc, m * k * 2));
    CHECK(cudaMalloc(&out, m * n * 4));
    CHECK(cudaMemcpy(da, a.data(), m * k * 2, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(db, b.data(), n * k * 2, cudaMemcpyHostToDevice));
    product<<<dim3(n / 16, m / 16), 32>>>(da, db, out, n, k);
    CHECK(cudaMemcpy(found.data(), out, m * n * 4, cudaMemcpyDeviceToHost));
    for (int row = 0; row < m; row++)
        for (int column = 0; column < n; column++) {
            float sum = 0;
            for (int i = 0; i < k; i++) sum += __half2float(a[row * k + i]) * __half2float(b[column * k + i]);
            EXPECT(found[row * n + column] == sum);
        }
    pairs<<<1, 128>>>((half2 *)da, (half2 *)db, (half2 *)dc);
    CHECK(cudaMemcpy(c.data(), dc, 512, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 256; i++) EXPECT(__half2float(c[i]) == (__half2float(a[i]) + 1) * __half2float(b[i]));
    return passed();
}

// Surfaces: writes and reads with each boundary mode, of arrays of one to three dimensions and layers, of bytes to four
// floats; a game of life; a write outside is a fault.
#include "check.h"
#include <vector>
template <class T> __global__ void w1(cudaSurfaceObject_t s, int n) {
    int i = threadIdx.x;
    if (i < n) surf1Dwrite((T)(i * 3 + 1), s, i * (int)sizeof(T));
}
__global__ void w3(cudaSurfaceObject_t s) {
    surf3Dwrite(make_float4(threadIdx.x, threadIdx.y, threadIdx.z, 1), s, threadIdx.x * 16, threadIdx.y, threadIdx.z);
}
__global__ void wl(cudaSurfaceObject_t s) {
    surf2DLayeredwrite((short)(threadIdx.x + 100 * threadIdx.y + 1000 * blockIdx.x), s, threadIdx.x * 2, threadIdx.y,
                       blockIdx.x);
}
__global__ void bounds(cudaSurfaceObject_t s, int *o) {
    int i = (int)threadIdx.x - 4;
    o[threadIdx.x] = surf2Dread<int>(s, i * 4, 1, cudaBoundaryModeZero);
    o[32 + threadIdx.x] = surf2Dread<int>(s, i * 4, 1, cudaBoundaryModeClamp);
    if (i >= 0 && i < 8) surf2Dwrite(-i, s, i * 4, 2 + (i == 7) * 100, cudaBoundaryModeZero);
}
__global__ void life(cudaSurfaceObject_t a, cudaSurfaceObject_t b, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= n) return;
    int c = 0;
    for (int j = -1; j < 2; ++j)
        for (int i = -1; i < 2; ++i)
            if (i || j) c += surf2Dread<unsigned char>(a, x + i, y + j, cudaBoundaryModeZero);
    unsigned char me;
    surf2Dread(&me, a, x, y);
    surf2Dwrite((unsigned char)(c == 3 || (me && c == 2)), b, x, y);
}
__global__ void trap(cudaSurfaceObject_t s) {
    surf2Dwrite(1, s, 400, 0);
}
static cudaSurfaceObject_t surface(cudaArray_t a) {
    cudaResourceDesc r = {};
    r.resType = cudaResourceTypeArray;
    r.res.array.array = a;
    cudaSurfaceObject_t s;
    CHECK(cudaCreateSurfaceObject(&s, &r));
    return s;
}
template <class T> void one() {
    cudaChannelFormatDesc c = cudaCreateChannelDesc<T>();
    cudaArray_t a;
    CHECK(cudaMallocArray(&a, &c, 40, 0, cudaArraySurfaceLoadStore));
    w1<T><<<1, 64>>>(surface(a), 40);
    T h[40];
    CHECK(cudaMemcpy2DFromArray(h, sizeof h, a, 0, 0, sizeof h, 1, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 40; ++i) EXPECT(h[i] == (T)(i * 3 + 1));
    CHECK(cudaFreeArray(a));
}
int main() {
    one<unsigned char>();
    one<short>();
    one<int>();
    one<float>();
    cudaChannelFormatDesc c4 = cudaCreateChannelDesc<float4>();
    cudaArray_t a3;
    CHECK(cudaMalloc3DArray(&a3, &c4, make_cudaExtent(5, 4, 3), cudaArraySurfaceLoadStore));
    w3<<<1, dim3(5, 4, 3)>>>(surface(a3));
    std::vector<float4> h(60);
    cudaMemcpy3DParms p = {};
    p.srcArray = a3;
    p.dstPtr = make_cudaPitchedPtr(h.data(), 80, 5, 4);
    p.extent = make_cudaExtent(5, 4, 3);
    p.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3D(&p));
    for (int i = 0; i < 60; ++i) EXPECT(h[i].x == i % 5 && h[i].y == i / 5 % 4 && h[i].z == i / 20 && h[i].w == 1);
    cudaChannelFormatDesc cs = cudaCreateChannelDesc<short>();
    cudaArray_t al;
    CHECK(cudaMalloc3DArray(&al, &cs, make_cudaExtent(6, 3, 2), cudaArrayLayered | cudaArraySurfaceLoadStore));
    wl<<<2, dim3(6, 3)>>>(surface(al));
    std::vector<short> hl(36);
    p = {};
    p.srcArray = al;
    p.dstPtr = make_cudaPitchedPtr(hl.data(), 12, 6, 3);
    p.extent = make_cudaExtent(6, 3, 2);
    p.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3D(&p));
    for (int i = 0; i < 36; ++i) EXPECT(hl[i] == i % 6 + 100 * (i / 6 % 3) + 1000 * (i / 18));
    cudaChannelFormatDesc ci = cudaCreateChannelDesc<int>();
    cudaArray_t ai;
    CHECK(cudaMallocArray(&ai, &ci, 8, 4, cudaArraySurfaceLoadStore));
    int v[32];
    for (int i = 0; i < 32; ++i) v[i] = 50 + i;
    CHECK(cudaMemcpy2DToArray(ai, 0, 0, v, 32, 32, 4, cudaMemcpyHostToDevice));
    int *o;
    CHECK(cudaMallocManaged(&o, 256));
    bounds<<<1, 16>>>(surface(ai), o);
    CHECK(cudaDeviceSynchronize());
    for (int t = 0; t < 16; ++t) {
        int i = t - 4;
        EXPECT(o[t] == (i >= 0 && i < 8 ? 58 + i : 0));
        EXPECT(o[32 + t] == 58 + (i < 0 ? 0 : i > 7 ? 7 : i));
    }
    CHECK(cudaMemcpy2DFromArray(v, 32, ai, 0, 0, 32, 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 8; ++i) EXPECT(v[16 + i] == (i == 7 ? 50 + 23 : -i));
    const int n = 40;
    cudaChannelFormatDesc cb = cudaCreateChannelDesc<unsigned char>();
    cudaArray_t x, y;
    CHECK(cudaMallocArray(&x, &cb, n, n, cudaArraySurfaceLoadStore));
    CHECK(cudaMallocArray(&y, &cb, n, n, cudaArraySurfaceLoadStore));
    std::vector<unsigned char> b(n * n), w(n * n);
    for (auto &e : b) e = rand() % 3 == 0;
    CHECK(cudaMemcpy2DToArray(x, 0, 0, b.data(), n, n, n, cudaMemcpyHostToDevice));
    auto sx = surface(x), sy = surface(y);
    for (int k = 0; k < 10; ++k) {
        life<<<dim3(3, 3), dim3(16, 16)>>>(k & 1 ? sy : sx, k & 1 ? sx : sy, n);
        for (int j = 0; j < n; ++j)
            for (int i = 0; i < n; ++i) {
                int c = 0;
                for (int dj = -1; dj < 2; ++dj)
                    for (int di = -1; di < 2; ++di)
                        if ((di || dj) && i + di >= 0 && i + di < n && j + dj >= 0 && j + dj < n)
                            c += b[(j + dj) * n + i + di];
                w[j * n + i] = c == 3 || (b[j * n + i] && c == 2);
            }
        b = w;
    }
    CHECK(cudaMemcpy2DFromArray(w.data(), n, x, 0, 0, n, n, cudaMemcpyDeviceToHost));
    EXPECT(w == b);
    trap<<<1, 1>>>(surface(ai));
    cudaError_t e = cudaDeviceSynchronize();
    EXPECT(e == cudaErrorIllegalAddress);
    return passed();
}

// Surfaces of all element types and of one, two and three dimensions, layers and cubes; writes beyond the border.
#include "check.h"
#include <cstring>
#include <vector>
template <typename T> __device__ T value(int i);
#define SCALAR(T) template <> __device__ T value<T>(int i) { return (T)(i); }
SCALAR(char) SCALAR(unsigned char) SCALAR(short) SCALAR(unsigned short) SCALAR(int) SCALAR(unsigned) SCALAR(float) SCALAR(long long) SCALAR(unsigned long long)
#define TWO(T, S) template <> __device__ T value<T>(int i) { return T{(S)(i), (S)(i + 1)}; }
#define FOUR(T, S) template <> __device__ T value<T>(int i) { return T{(S)(i), (S)(i + 1), (S)(i + 2), (S)(i + 3)}; }
TWO(char2, char) TWO(uchar2, unsigned char) TWO(short2, short) TWO(ushort2, unsigned short) TWO(int2, int) TWO(uint2, unsigned) TWO(float2, float)
FOUR(char4, char) FOUR(uchar4, unsigned char) FOUR(short4, short) FOUR(ushort4, unsigned short) FOUR(int4, int) FOUR(uint4, unsigned) FOUR(float4, float)

template <typename T> __global__ void copy1(cudaSurfaceObject_t s, T *out, int w) {
    int x = threadIdx.x;
    if (x < w) {
        surf1Dwrite(value<T>(x), s, x * int(sizeof(T)));
        out[x] = surf1Dread<T>(s, x * int(sizeof(T)));
    }
}
template <typename T> __global__ void write2(cudaSurfaceObject_t s, int w, int h) {
    int x = threadIdx.x - 1, y = blockIdx.x - 1;
    surf2Dwrite(value<T>(y * w + x), s, x * int(sizeof(T)), y, cudaBoundaryModeZero);
}
template <typename T> __global__ void read2(cudaSurfaceObject_t s, T *out, int w) {
    int x = threadIdx.x, y = blockIdx.x;
    out[y * (w + 2) + x] = surf2Dread<T>(s, (x - 1) * int(sizeof(T)), y - 1, x & 1 ? cudaBoundaryModeZero : cudaBoundaryModeZero);
}
template <typename T> __global__ void clamped(cudaSurfaceObject_t s, T *out, int w) {
    int x = threadIdx.x, y = blockIdx.x;
    out[y * (w + 2) + x] = surf2Dread<T>(s, (x - 1) * int(sizeof(T)), y - 1, cudaBoundaryModeClamp);
}
template <typename T> __global__ void write3(cudaSurfaceObject_t s, int w, int h) {
    int x = threadIdx.x, y = blockIdx.x, z = blockIdx.y;
    surf3Dwrite(value<T>((z * h + y) * w + x), s, x * int(sizeof(T)), y, z);
}
template <typename T> __global__ void layered(cudaSurfaceObject_t s, int w, int h) {
    int x = threadIdx.x, y = blockIdx.x, z = blockIdx.y;
    surf2DLayeredwrite(value<T>((z * h + y) * w + x), s, x * int(sizeof(T)), y, z);
}
template <typename T> __global__ void cube(cudaSurfaceObject_t s, int w) {
    int x = threadIdx.x, y = blockIdx.x, face = blockIdx.y;
    surfCubemapwrite(value<T>((face * w + y) * w + x), s, x * int(sizeof(T)), y, face);
}
template <typename T> __global__ void expected(T *out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = value<T>(i);
}
static cudaSurfaceObject_t surface(cudaArray_t a) {
    cudaResourceDesc r = {};
    r.resType = cudaResourceTypeArray;
    r.res.array.array = a;
    cudaSurfaceObject_t s;
    CHECK(cudaCreateSurfaceObject(&s, &r));
    return s;
}
template <typename T> std::vector<T> wanted(int n) {
    T *d;
    CHECK(cudaMalloc(&d, n * sizeof(T)));
    expected<T><<<1, 64>>>(d, n);
    std::vector<T> v(n);
    CHECK(cudaMemcpy(v.data(), d, n * sizeof(T), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(d));
    return v;
}
template <typename T> void test(cudaChannelFormatDesc f = cudaCreateChannelDesc<T>()) {
    const int w = 6, h = 4, d = 3;
    cudaArray_t a;
    T *out;
    CHECK(cudaMalloc(&out, (w + 2) * (h + 2) * sizeof(T)));
    std::vector<T> got(w * h * d), v = wanted<T>(6 * w * w);
    CHECK(cudaMallocArray(&a, &f, w, 0, cudaArraySurfaceLoadStore));
    cudaSurfaceObject_t s = surface(a);
    copy1<T><<<1, 32>>>(s, out, w);
    CHECK(cudaMemcpy(got.data(), out, w * sizeof(T), cudaMemcpyDeviceToHost));
    EXPECT(!memcmp(got.data(), v.data(), w * sizeof(T)));
    CHECK(cudaDestroySurfaceObject(s));
    CHECK(cudaFreeArray(a));

    CHECK(cudaMallocArray(&a, &f, w, h, cudaArraySurfaceLoadStore));
    s = surface(a);
    write2<T><<<h + 2, w + 2>>>(s, w, h);
    CHECK(cudaMemcpy2DFromArray(got.data(), w * sizeof(T), a, 0, 0, w * sizeof(T), h, cudaMemcpyDeviceToHost));
    EXPECT(!memcmp(got.data(), v.data(), w * h * sizeof(T)));
    std::vector<T> border((w + 2) * (h + 2));
    T zero;
    memset(&zero, 0, sizeof zero);
    read2<T><<<h + 2, w + 2>>>(s, out, w);
    CHECK(cudaMemcpy(border.data(), out, border.size() * sizeof(T), cudaMemcpyDeviceToHost));
    for (int y = 0; y < h + 2; y++) for (int x = 0; x < w + 2; x++) {
        bool in = x && y && x <= w && y <= h;
        EXPECT(!memcmp(&border[y * (w + 2) + x], in ? &v[(y - 1) * w + x - 1] : &zero, sizeof(T)));
    }
    clamped<T><<<h + 2, w + 2>>>(s, out, w);
    CHECK(cudaMemcpy(border.data(), out, border.size() * sizeof(T), cudaMemcpyDeviceToHost));
    for (int y = 0; y < h + 2; y++) for (int x = 0; x < w + 2; x++) {
        int cx = x < 1 ? 0 : x > w ? w - 1 : x - 1, cy = y < 1 ? 0 : y > h ? h - 1 : y - 1;
        EXPECT(!memcmp(&border[y * (w + 2) + x], &v[cy * w + cx], sizeof(T)));
    }
    CHECK(cudaDestroySurfaceObject(s));
    CHECK(cudaFreeArray(a));

    for (unsigned flags : {0u, (unsigned)cudaArrayLayered}) {
        CHECK(cudaMalloc3DArray(&a, &f, make_cudaExtent(w, h, d), flags | cudaArraySurfaceLoadStore));
        s = surface(a);
        if (flags) layered<T><<<dim3(h, d), w>>>(s, w, h);
        else write3<T><<<dim3(h, d), w>>>(s, w, h);
        cudaMemcpy3DParms p = {};
        p.srcArray = a, p.dstPtr = make_cudaPitchedPtr(got.data(), w * sizeof(T), w, h), p.extent = make_cudaExtent(w, h, d), p.kind = cudaMemcpyDeviceToHost;
        CHECK(cudaMemcpy3D(&p));
        EXPECT(!memcmp(got.data(), v.data(), w * h * d * sizeof(T)));
        CHECK(cudaDestroySurfaceObject(s));
        CHECK(cudaFreeArray(a));
    }
    got.resize(6 * w * w);
    CHECK(cudaMalloc3DArray(&a, &f, make_cudaExtent(w, w, 6), cudaArrayCubemap | cudaArraySurfaceLoadStore));
    s = surface(a);
    cube<T><<<dim3(w, 6), w>>>(s, w);
    cudaMemcpy3DParms p = {};
    p.srcArray = a, p.dstPtr = make_cudaPitchedPtr(got.data(), w * sizeof(T), w, w), p.extent = make_cudaExtent(w, w, 6), p.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3D(&p));
    EXPECT(!memcmp(got.data(), v.data(), v.size() * sizeof(T)));
    CHECK(cudaDestroySurfaceObject(s));
    CHECK(cudaFreeArray(a));
    CHECK(cudaFree(out));
}
int main() {
    test<char>(); test<unsigned char>(); test<short>(); test<unsigned short>(); test<int>(); test<unsigned>(); test<float>();
    test<char2>(); test<uchar2>(); test<short2>(); test<ushort2>(); test<int2>(); test<uint2>(); test<float2>();
    test<char4>(); test<uchar4>(); test<short4>(); test<ushort4>(); test<int4>(); test<uint4>(); test<float4>();
    test<long long>(cudaCreateChannelDesc(32, 32, 0, 0, cudaChannelFormatKindSigned));
    return passed();
}

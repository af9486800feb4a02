// Layered and cube-map textures, surfaces of both, and mipmaps of a cube, against what the host computes.
#include "check.h"
#include <cmath>
#include <vector>

__global__ void layers(cudaTextureObject_t t, float *out, int w, int h, int n) {
    int x = threadIdx.x + blockIdx.x * blockDim.x, y = blockIdx.y, l = blockIdx.z;
    if (x < w) out[(l * h + y) * w + x] = tex2DLayered<float>(t, x + .5f, y + .5f, l);
}

__global__ void row_layers(cudaTextureObject_t t, float2 *out, int w, int n) {
    int x = threadIdx.x, l = blockIdx.x;
    if (x < w) out[l * w + x] = tex1DLayered<float2>(t, (x + .5f) / w, l);
}

__global__ void cube(cudaTextureObject_t t, float *out, const float3 *d, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < n) out[i] = texCubemap<float>(t, d[i].x, d[i].y, d[i].z);
}

__global__ void cubes(cudaTextureObject_t t, float *out, const float3 *d, int n, int layer) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < n) out[i] = texCubemapLayered<float>(t, d[i].x, d[i].y, d[i].z, layer);
}

__global__ void paint(cudaSurfaceObject_t s, int w, int faces) {
    int x = threadIdx.x, y = blockIdx.x, f = blockIdx.y;
    if (x < w && f < faces) surf2DLayeredwrite<float>(1000.f * f + 10.f * y + x, s, x * 4, y, f);
}

__global__ void paint_cube(cudaSurfaceObject_t s, int w) {
    int x = threadIdx.x, y = blockIdx.x, f = blockIdx.y;
    surfCubemapwrite<float>(1000.f * f + 10.f * y + x, s, x * 4, y, f);
}

__global__ void paint_cubes(cudaSurfaceObject_t s, int w) {
    int x = threadIdx.x, y = blockIdx.x, f = blockIdx.y % 6, l = blockIdx.y / 6;
    surfCubemapLayeredwrite<float>(10000.f * l + 1000.f * f + 10.f * y + x, s, x * 4, y, l * 6 + f);
}

__global__ void read_back(cudaSurfaceObject_t s, float *out, int w) {
    int x = threadIdx.x, y = blockIdx.x, f = blockIdx.y;
    out[(f * w + y) * w + x] = surf2DLayeredread<float>(s, x * 4, y, f, cudaBoundaryModeZero);
}

cudaTextureObject_t texture(cudaArray_t a, cudaTextureFilterMode f, bool normal,
                            cudaTextureAddressMode m = cudaAddressModeClamp) {
    cudaResourceDesc r{};
    r.resType = cudaResourceTypeArray;
    r.res.array.array = a;
    cudaTextureDesc d{};
    d.filterMode = f;
    d.normalizedCoords = normal;
    d.addressMode[0] = d.addressMode[1] = d.addressMode[2] = m;
    cudaTextureObject_t t;
    CHECK(cudaCreateTextureObject(&t, &r, &d, nullptr));
    return t;
}

cudaSurfaceObject_t surface(cudaArray_t a) {
    cudaResourceDesc r{};
    r.resType = cudaResourceTypeArray;
    r.res.array.array = a;
    cudaSurfaceObject_t s;
    CHECK(cudaCreateSurfaceObject(&s, &r));
    return s;
}

int main() {
    const int w = 24, h = 7, n = 5;
    auto format = cudaCreateChannelDesc<float>();
    { // layers of two dimensions
        std::vector<float> host(w * h * n);
        for (size_t i = 0; i < host.size(); i++) host[i] = float(i) * .25f;
        cudaArray_t a;
        CHECK(cudaMalloc3DArray(&a, &format, make_cudaExtent(w, h, n), cudaArrayLayered));
        cudaMemcpy3DParms p{};
        p.srcPtr = make_cudaPitchedPtr(host.data(), w * 4, w, h);
        p.dstArray = a;
        p.extent = make_cudaExtent(w, h, n);
        p.kind = cudaMemcpyHostToDevice;
        CHECK(cudaMemcpy3D(&p));
        float *out;
        CHECK(cudaMallocManaged(&out, host.size() * 4));
        auto t = texture(a, cudaFilterModePoint, false);
        layers<<<dim3(1, h, n), 32>>>(t, out, w, h, n);
        CHECK(cudaDeviceSynchronize());
        for (size_t i = 0; i < host.size(); i++) EXPECT(out[i] == host[i]);
        unsigned flags;
        cudaExtent e;
        cudaChannelFormatDesc f;
        CHECK(cudaArrayGetInfo(&f, &e, &flags, a));
        EXPECT(e.depth == n && flags == cudaArrayLayered && f.x == 32);
        CHECK(cudaDestroyTextureObject(t));
        CHECK(cudaFreeArray(a));
    }
    { // layers of rows
        auto two = cudaCreateChannelDesc<float2>();
        std::vector<float2> host(w * n);
        for (size_t i = 0; i < host.size(); i++) host[i] = make_float2(i, -float(i));
        cudaArray_t a;
        CHECK(cudaMalloc3DArray(&a, &two, make_cudaExtent(w, 0, n), cudaArrayLayered));
        cudaMemcpy3DParms p{};
        p.srcPtr = make_cudaPitchedPtr(host.data(), w * 8, w, 1);
        p.dstArray = a;
        p.extent = make_cudaExtent(w, 1, n);
        p.kind = cudaMemcpyHostToDevice;
        CHECK(cudaMemcpy3D(&p));
        float2 *out;
        CHECK(cudaMallocManaged(&out, host.size() * 8));
        auto t = texture(a, cudaFilterModeLinear, true);
        row_layers<<<n, 32>>>(t, out, w, n);
        CHECK(cudaDeviceSynchronize());
        for (size_t i = 0; i < host.size(); i++) EXPECT(out[i].x == host[i].x && out[i].y == host[i].y);
    }
    { // a cube, painted by a surface, and read in directions through the middles of its texels
        const int k = 8;
        cudaArray_t a;
        CHECK(cudaMalloc3DArray(&a, &format, make_cudaExtent(k, k, 6), cudaArrayCubemap | cudaArraySurfaceLoadStore));
        auto s = surface(a);
        paint_cube<<<dim3(k, 6), k>>>(s, k);
        float *back;
        CHECK(cudaMallocManaged(&back, k * k * 6 * 4));
        read_back<<<dim3(k, 6), k>>>(s, back, k);
        CHECK(cudaDeviceSynchronize());
        for (int f = 0; f < 6; f++)
            for (int y = 0; y < k; y++)
                for (int x = 0; x < k; x++) EXPECT(back[(f * k + y) * k + x] == 1000 * f + 10 * y + x);
        std::vector<float3> d;
        std::vector<float> want;
        for (int f = 0; f < 6; f++)
            for (int y = 0; y < k; y++)
                for (int x = 0; x < k; x++) {
                    float sc = 2 * (x + .5f) / k - 1, tc = 2 * (y + .5f) / k - 1;
                    float3 v[6] = {{1, -tc, -sc}, {-1, -tc, sc}, {sc, 1, tc}, {sc, -1, -tc}, {sc, -tc, 1}, {-sc, -tc, -1}};
                    d.push_back(v[f]);
                    want.push_back(1000 * f + 10 * y + x);
                }
        float3 *dd;
        float *out;
        CHECK(cudaMalloc(&dd, d.size() * 12));
        CHECK(cudaMallocManaged(&out, d.size() * 4));
        CHECK(cudaMemcpy(dd, d.data(), d.size() * 12, cudaMemcpyHostToDevice));
        auto t = texture(a, cudaFilterModePoint, true);
        cube<<<(d.size() + 63) / 64, 64>>>(t, out, dd, d.size());
        CHECK(cudaDeviceSynchronize());
        for (size_t i = 0; i < d.size(); i++) EXPECT(out[i] == want[i]);
        // layers of cubes
        cudaArray_t b;
        CHECK(cudaMalloc3DArray(&b, &format, make_cudaExtent(k, k, 12),
                                cudaArrayCubemap | cudaArrayLayered | cudaArraySurfaceLoadStore));
        auto sb = surface(b);
        paint_cubes<<<dim3(k, 12), k>>>(sb, k);
        auto tb = texture(b, cudaFilterModePoint, true);
        for (int layer = 0; layer < 2; layer++) {
            cubes<<<(d.size() + 63) / 64, 64>>>(tb, out, dd, d.size(), layer);
            CHECK(cudaDeviceSynchronize());
            for (size_t i = 0; i < d.size(); i++) EXPECT(out[i] == want[i] + 10000 * layer);
        }
    }
    { // what cannot be: a cube that is none, layers of which there are too many
        cudaArray_t a;
        EXPECT(cudaMalloc3DArray(&a, &format, make_cudaExtent(8, 9, 6), cudaArrayCubemap) == cudaErrorInvalidValue);
        EXPECT(cudaMalloc3DArray(&a, &format, make_cudaExtent(8, 8, 5), cudaArrayCubemap) == cudaErrorInvalidValue);
        EXPECT(cudaMalloc3DArray(&a, &format, make_cudaExtent(8, 8, 13), cudaArrayCubemap | cudaArrayLayered) ==
               cudaErrorInvalidValue);
        cudaGetLastError();
    }
    return passed();
}

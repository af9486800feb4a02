// Mipmaps: drawn level by level, whole and in views of some levels; sparse arrays and what they need.
#include "check.h"
#include <vector>
__global__ void look(cudaTextureObject_t t, float *out, int n, float level) {
    int i = threadIdx.x;
    if (i < n) out[i] = tex2DLod<float>(t, (i + 0.5f) / n, 0.5f, level);
}
__global__ void draw(cudaSurfaceObject_t s, int w, int h, float scale) {
    int x = threadIdx.x, y = blockIdx.x;
    if (x < w && y < h) surf2Dwrite(scale * (y * w + x), s, x * 4, y);
}
int main() {
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaMipmappedArray_t mipmap;
    CHECK(cudaMallocMipmappedArray(&mipmap, &format, make_cudaExtent(16, 16, 0), 5, cudaArraySurfaceLoadStore));
    float *out, host[16];
    CHECK(cudaMalloc(&out, 64));
    for (int level = 0; level < 5; level++) {
        cudaArray_t array;
        CHECK(cudaGetMipmappedArrayLevel(&array, mipmap, level));
        cudaChannelFormatDesc f;
        cudaExtent e;
        unsigned flags;
        CHECK(cudaArrayGetInfo(&f, &e, &flags, array));
        EXPECT(int(e.width) == 16 >> level && int(e.height) == 16 >> level && f.x == 32 && f.f == cudaChannelFormatKindFloat);
        cudaChannelFormatDesc g;
        CHECK(cudaGetChannelDesc(&g, array));
        EXPECT(g.x == 32 && g.y == 0 && g.f == cudaChannelFormatKindFloat);
        cudaResourceDesc r = {};
        r.resType = cudaResourceTypeArray;
        r.res.array.array = array;
        cudaSurfaceObject_t s;
        CHECK(cudaCreateSurfaceObject(&s, &r));
        cudaResourceDesc back = {};
        CHECK(cudaGetSurfaceObjectResourceDesc(&back, s));
        EXPECT(back.resType == cudaResourceTypeArray && back.res.array.array == array);
        draw<<<16, 32>>>(s, 16 >> level, 16 >> level, level + 1);
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaDestroySurfaceObject(s));
    }
    cudaArray_t none;
    EXPECT(cudaGetMipmappedArrayLevel(&none, mipmap, 5) == cudaErrorInvalidValue);
    cudaGetLastError();
    cudaResourceDesc r = {};
    r.resType = cudaResourceTypeMipmappedArray;
    r.res.mipmap.mipmap = mipmap;
    cudaTextureDesc t = {};
    t.normalizedCoords = 1, t.filterMode = cudaFilterModePoint, t.mipmapFilterMode = cudaFilterModePoint, t.maxMipmapLevelClamp = 10;
    cudaTextureObject_t whole, part;
    CHECK(cudaCreateTextureObject(&whole, &r, &t, nullptr));
    look<<<1, 16>>>(whole, out, 16, 0);
    CHECK(cudaMemcpy(host, out, 64, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 16; i++) EXPECT(host[i] == 8 * 16 + i);
    look<<<1, 16>>>(whole, out, 4, 2);
    CHECK(cudaMemcpy(host, out, 64, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 4; i++) EXPECT(host[i] == 3 * (2 * 4 + i));
    // a view of levels 1 to 3
    cudaResourceViewDesc v = {};
    v.format = cudaResViewFormatFloat1, v.width = 8, v.height = 8, v.firstMipmapLevel = 1, v.lastMipmapLevel = 3;
    CHECK(cudaCreateTextureObject(&part, &r, &t, &v));
    cudaResourceViewDesc back = {};
    CHECK(cudaGetTextureObjectResourceViewDesc(&back, part));
    EXPECT(back.firstMipmapLevel == 1 && back.lastMipmapLevel == 3 && back.format == cudaResViewFormatFloat1);
    look<<<1, 16>>>(part, out, 8, 0);
    CHECK(cudaMemcpy(host, out, 64, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 8; i++) EXPECT(host[i] == 2 * (4 * 8 + i));
    look<<<1, 16>>>(part, out, 2, 9);
    CHECK(cudaMemcpy(host, out, 64, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 2; i++) EXPECT(host[i] == 4 * (1 * 2 + i));
    EXPECT(cudaGetTextureObjectResourceViewDesc(&back, whole) == cudaErrorInvalidValue);  // it was made without a view
    cudaGetLastError();
    CHECK(cudaDestroyTextureObject(whole));
    CHECK(cudaDestroyTextureObject(part));
    CHECK(cudaFreeMipmappedArray(mipmap));

    // sparse and deferred arrays
    int sparse;
    CHECK(cudaDeviceGetAttribute(&sparse, cudaDevAttrSparseCudaArraySupported, 0));
    cudaArray_t plain;
    CHECK(cudaMallocArray(&plain, &format, 256, 256));
    cudaArraySparseProperties sp;
    EXPECT(cudaArrayGetSparseProperties(&sp, plain) == cudaErrorInvalidValue);
    cudaGetLastError();
    if (sparse) {
        cudaArray_t tiles;
        CHECK(cudaMallocArray(&tiles, &format, 1024, 1024, cudaArraySparse));
        CHECK(cudaArrayGetSparseProperties(&sp, tiles));
        EXPECT(sp.tileExtent.width * sp.tileExtent.height * 4 == 65536 && sp.tileExtent.depth == 1);
        cudaArrayMemoryRequirements need;
        CHECK(cudaArrayGetMemoryRequirements(&need, tiles, 0));
        EXPECT(need.size >= 4u << 20 && need.alignment >= 65536);
        CHECK(cudaFreeArray(tiles));
        cudaMipmappedArray_t pyramid;
        CHECK(cudaMallocMipmappedArray(&pyramid, &format, make_cudaExtent(1024, 1024, 0), 11, cudaArraySparse));
        CHECK(cudaMipmappedArrayGetSparseProperties(&sp, pyramid));
        EXPECT(sp.miptailFirstLevel > 0 && sp.miptailFirstLevel < 11 && sp.miptailSize > 0);
        CHECK(cudaMipmappedArrayGetMemoryRequirements(&need, pyramid, 0));
        EXPECT(need.size >= 4u << 20);
        CHECK(cudaFreeMipmappedArray(pyramid));
    }
    return passed();
}

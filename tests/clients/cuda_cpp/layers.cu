// Textures and surfaces of many images: layers, cube maps, mipmaps, gathers, and surfaces that kernels write.
#include "check.h"
#include <algorithm>
#include <vector>

const int N = 16, LAYERS = 3, FACES = 6;

cudaTextureObject_t texture_of(cudaArray_t array, cudaTextureFilterMode filter, bool normalized) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray, resource.res.array.array = array;
    cudaTextureDesc how = {};
    how.filterMode = filter, how.normalizedCoords = normalized, how.readMode = cudaReadModeElementType;
    for (auto &each : how.addressMode) each = cudaAddressModeClamp;
    cudaTextureObject_t made;
    CHECK(cudaCreateTextureObject(&made, &resource, &how, nullptr));
    return made;
}

cudaSurfaceObject_t surface_of(cudaArray_t array) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray, resource.res.array.array = array;
    cudaSurfaceObject_t made;
    CHECK(cudaCreateSurfaceObject(&made, &resource));
    return made;
}

__global__ void write_layers(cudaSurfaceObject_t layers) {
    int x = threadIdx.x, y = threadIdx.y, layer = blockIdx.x;
    surf2DLayeredwrite(1000.f * layer + 20.f * y + x, layers, x * sizeof(float), y, layer);
}
__global__ void read_layers(cudaTextureObject_t layers, float *to) {
    int x = threadIdx.x, y = threadIdx.y, layer = blockIdx.x;
    to[(layer * N + y) * N + x] = tex2DLayered<float>(layers, x + 1.f, y + 1.f, layer);
}
__global__ void faces(cudaTextureObject_t cube, float *to) {
    const float axes[6][3] = {{1, 0, 0}, {-1, 0, 0}, {0, 1, 0}, {0, -1, 0}, {0, 0, 1}, {0, 0, -1}};
    const float *axis = axes[threadIdx.x];
    to[threadIdx.x] = texCubemap<float>(cube, axis[0], axis[1], axis[2]);
}
__global__ void layered_faces(cudaTextureObject_t cubes, float *to) {
    to[threadIdx.x] = texCubemapLayered<float>(cubes, threadIdx.x % 2 ? -1.f : 1.f, 0.25f, -0.25f, threadIdx.x / 2);
}
__global__ void write_faces(cudaSurfaceObject_t cube) {
    surfCubemapwrite(10.f * blockIdx.x + 0.5f, cube, threadIdx.x * sizeof(float), threadIdx.y, blockIdx.x);
}
__global__ void levels(cudaTextureObject_t mipmaps, float *to) {
    to[threadIdx.x] = tex2DLod<float>(mipmaps, 0.5f, 0.5f, threadIdx.x * 0.5f);
}
__global__ void gathered(cudaTextureObject_t image, float4 *to) { *to = tex2Dgather<float4>(image, 3.f, 5.f, 0); }
__global__ void line_of_layers(cudaTextureObject_t lines, float *to) {
    to[blockIdx.x * blockDim.x + threadIdx.x] = tex1DLayered<float>(lines, threadIdx.x + 0.5f, blockIdx.x);
}
__global__ void doubled(cudaSurfaceObject_t from, cudaSurfaceObject_t to) {
    uchar4 value;
    surf2Dread(&value, from, threadIdx.x * 4, threadIdx.y);
    surf2Dwrite(make_uchar4(value.x * 2, value.y + 1, value.z, 255 - value.w), to, threadIdx.x * 4, threadIdx.y, cudaBoundaryModeTrap);
}

int main() {
    float *to;
    CHECK(cudaMallocManaged(&to, 4096 * sizeof(float)));
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();

    cudaArray_t layers;
    CHECK(cudaMalloc3DArray(&layers, &format, make_cudaExtent(N, N, LAYERS), cudaArrayLayered | cudaArraySurfaceLoadStore));
    write_layers<<<LAYERS, dim3(N, N)>>>(surface_of(layers));
    read_layers<<<LAYERS, dim3(N, N)>>>(texture_of(layers, cudaFilterModeLinear, false), to);
    CHECK(cudaDeviceSynchronize());
    for (int layer = 0; layer < LAYERS; layer++)  // halfway between four texels
        for (int y = 0; y < N - 1; y++)
            for (int x = 0; x < N - 1; x++)
                EXPECT(close(to[(layer * N + y) * N + x], 1000 * layer + 20 * (y + .5) + x + .5, 1e-6));

    cudaArray_t lines;
    CHECK(cudaMalloc3DArray(&lines, &format, make_cudaExtent(N, 0, LAYERS), cudaArrayLayered));
    std::vector<float> host(4096);
    for (int i = 0; i < 4096; i++) host[i] = i;
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(host.data(), N * sizeof(float), N, 1), copy.dstArray = lines;
    copy.extent = make_cudaExtent(N, 1, LAYERS), copy.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&copy));
    line_of_layers<<<LAYERS, N>>>(texture_of(lines, cudaFilterModePoint, false), to);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < N * LAYERS; i++) EXPECT(to[i] == i);

    cudaArray_t cube, cubes;
    CHECK(cudaMalloc3DArray(&cube, &format, make_cudaExtent(N, N, FACES), cudaArrayCubemap | cudaArraySurfaceLoadStore));
    write_faces<<<FACES, dim3(N, N)>>>(surface_of(cube));
    faces<<<1, FACES>>>(texture_of(cube, cudaFilterModeLinear, true), to);
    CHECK(cudaDeviceSynchronize());
    for (int face = 0; face < FACES; face++) EXPECT(to[face] == 10 * face + .5f);
    unsigned flags = cudaArrayCubemap | cudaArrayLayered;
    CHECK(cudaMalloc3DArray(&cubes, &format, make_cudaExtent(4, 4, 2 * FACES), flags));
    for (int i = 0; i < 4 * 4 * 2 * FACES; i++) host[i] = i / 16;
    copy.srcPtr = make_cudaPitchedPtr(host.data(), 4 * sizeof(float), 4, 4), copy.dstArray = cubes;
    copy.extent = make_cudaExtent(4, 4, 2 * FACES);
    CHECK(cudaMemcpy3D(&copy));
    layered_faces<<<1, 4>>>(texture_of(cubes, cudaFilterModePoint, true), to);
    CHECK(cudaDeviceSynchronize());
    EXPECT(to[0] == 0 && to[1] == 1 && to[2] == 6 && to[3] == 7);

    cudaMipmappedArray_t mipmaps;
    CHECK(cudaMallocMipmappedArray(&mipmaps, &format, make_cudaExtent(N, N, 0), 4));
    for (unsigned level = 0; level < 4; level++) {
        cudaArray_t image;
        CHECK(cudaGetMipmappedArrayLevel(&image, mipmaps, level));
        cudaExtent size;
        CHECK(cudaArrayGetInfo(nullptr, &size, nullptr, image));
        EXPECT(size.width == size_t(N >> level));
        std::vector<float> pixels(size.width * size.height, 8.f * level);
        CHECK(cudaMemcpy2DToArray(image, 0, 0, pixels.data(), size.width * 4, size.width * 4, size.height, cudaMemcpyHostToDevice));
    }
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeMipmappedArray, resource.res.mipmap.mipmap = mipmaps;
    cudaTextureDesc how = {};
    how.normalizedCoords = 1, how.filterMode = how.mipmapFilterMode = cudaFilterModeLinear, how.maxMipmapLevelClamp = 2.5f;
    cudaTextureObject_t pyramid;
    CHECK(cudaCreateTextureObject(&pyramid, &resource, &how, nullptr));
    levels<<<1, 8>>>(pyramid, to);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 8; i++) EXPECT(to[i] == 8 * std::min(i * .5f, 2.5f));
    cudaResourceDesc told;
    cudaTextureDesc told_how;
    CHECK(cudaGetTextureObjectResourceDesc(&told, pyramid));
    CHECK(cudaGetTextureObjectTextureDesc(&told_how, pyramid));
    EXPECT(told.resType == cudaResourceTypeMipmappedArray && told_how.maxMipmapLevelClamp == 2.5f);

    cudaArray_t image;
    CHECK(cudaMallocArray(&image, &format, N, N, cudaArrayTextureGather));
    for (int i = 0; i < N * N; i++) host[i] = i;
    CHECK(cudaMemcpy2DToArray(image, 0, 0, host.data(), N * 4, N * 4, N, cudaMemcpyHostToDevice));
    gathered<<<1, 1>>>(texture_of(image, cudaFilterModePoint, false), (float4 *)to);
    CHECK(cudaDeviceSynchronize());
    float at = 4 * N + 2;  // texels (2, 5), (3, 5), (3, 4), (2, 4)
    EXPECT(to[0] == at + N && to[1] == at + N + 1 && to[2] == at + 1 && to[3] == at);

    cudaArray_t a, b;
    cudaChannelFormatDesc colours = cudaCreateChannelDesc<uchar4>();
    CHECK(cudaMallocArray(&a, &colours, N, N, cudaArraySurfaceLoadStore));
    CHECK(cudaMallocArray(&b, &colours, N, N, cudaArraySurfaceLoadStore));
    std::vector<uchar4> pixels(N * N), results(N * N);
    for (int i = 0; i < N * N; i++) pixels[i] = make_uchar4(i, 2, 3, i);
    CHECK(cudaMemcpy2DToArray(a, 0, 0, pixels.data(), N * 4, N * 4, N, cudaMemcpyHostToDevice));
    doubled<<<1, dim3(N, N)>>>(surface_of(a), surface_of(b));
    CHECK(cudaMemcpy2DFromArray(results.data(), N * 4, b, 0, 0, N * 4, N, cudaMemcpyDeviceToHost));
    for (int i = 0; i < N * N; i++)
        EXPECT(results[i].x == (i * 2 & 255) && results[i].y == 3 && results[i].z == 3 && results[i].w == 255 - (i & 255));
    return passed();
}

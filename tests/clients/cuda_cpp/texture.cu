// Textures of arrays: filtered and not, of one to three dimensions, layered, of rows in memory; and a surface to write to.
#include "check.h"
#include <vector>

__global__ void read_2d(cudaTextureObject_t texture, float *out, int width, int height, float dx, float dy) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) out[y * width + x] = tex2D<float>(texture, x + dx, y + dy);
}

__global__ void fetch(cudaTextureObject_t texture, float4 *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex1Dfetch<float4>(texture, i);
}

__global__ void read_3d(cudaTextureObject_t texture, float *out) {
    out[(threadIdx.z * 4 + threadIdx.y) * 4 + threadIdx.x] = tex3D<float>(texture, threadIdx.x + 0.5f, threadIdx.y + 0.5f, threadIdx.z + 0.5f);
}

__global__ void read_layers(cudaTextureObject_t texture, float *out, int width) {
    out[blockIdx.x * width + threadIdx.x] = tex1DLayered<float>(texture, (threadIdx.x + 0.5f) / width, blockIdx.x);
}

__global__ void invert(cudaSurfaceObject_t surface, int width) {
    int x = threadIdx.x, y = blockIdx.x;
    uchar4 pixel;
    surf2Dread(&pixel, surface, x * 4, y);
    surf2Dwrite(make_uchar4(255 - pixel.x, 255 - pixel.y, 255 - pixel.z, pixel.w), surface, x * 4, y);
}

static cudaTextureObject_t texture_of(cudaResourceDesc resource, cudaTextureFilterMode filter, cudaTextureReadMode read, bool normalized,
                                      cudaTextureAddressMode mode) {
    cudaTextureDesc how = {};
    how.addressMode[0] = how.addressMode[1] = how.addressMode[2] = mode;
    how.filterMode = filter, how.readMode = read, how.normalizedCoords = normalized;
    cudaTextureObject_t made;
    CHECK(cudaCreateTextureObject(&made, &resource, &how, nullptr));
    return made;
}

static cudaResourceDesc of_array(cudaArray_t array) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    return resource;
}

int main() {
    const int width = 40, height = 24;
    std::vector<float> image(width * height), found(width * height);
    for (int i = 0; i < width * height; i++) image[i] = float((i * 7) % 64);
    float *out;
    CHECK(cudaMalloc(&out, width * height * 16));
    cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    CHECK(cudaMallocArray(&array, &floats, width, height));
    CHECK(cudaMemcpy2DToArray(array, 0, 0, image.data(), width * 4, width * 4, height, cudaMemcpyHostToDevice));
    dim3 block(16, 8), grid(3, 3);
    auto texture = texture_of(of_array(array), cudaFilterModePoint, cudaReadModeElementType, false, cudaAddressModeClamp);
    read_2d<<<grid, block>>>(texture, out, width, height, 0.5f, 1.5f);  // one row further down, the last one again
    CHECK(cudaMemcpy(found.data(), out, width * height * 4, cudaMemcpyDeviceToHost));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) EXPECT(found[y * width + x] == image[(y + 1 < height ? y + 1 : y) * width + x]);
    CHECK(cudaDestroyTextureObject(texture));
    texture = texture_of(of_array(array), cudaFilterModeLinear, cudaReadModeElementType, false, cudaAddressModeBorder);
    read_2d<<<grid, block>>>(texture, out, width, height, 1.0f, 0.5f);  // halfway to the pixel on the right
    CHECK(cudaMemcpy(found.data(), out, width * height * 4, cudaMemcpyDeviceToHost));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            EXPECT(close(found[y * width + x], (image[y * width + x] + (x + 1 < width ? image[y * width + x + 1] : 0)) / 2, 1e-6));
    CHECK(cudaDestroyTextureObject(texture));

    cudaResourceDesc rows = {};
    rows.resType = cudaResourceTypePitch2D;
    float *memory;
    size_t pitch;
    CHECK(cudaMallocPitch(&memory, &pitch, width * 4, height));
    CHECK(cudaMemcpy2DFromArray(memory, pitch, array, 0, 0, width * 4, height, cudaMemcpyDeviceToDevice));
    rows.res.pitch2D = {memory, floats, width, height, pitch};
    texture = texture_of(rows, cudaFilterModePoint, cudaReadModeElementType, false, cudaAddressModeClamp);
    read_2d<<<grid, block>>>(texture, out, width, height, 0.5f, 0.5f);
    CHECK(cudaMemcpy(found.data(), out, width * height * 4, cudaMemcpyDeviceToHost));
    EXPECT(found == image);

    cudaResourceDesc linear = {};
    linear.resType = cudaResourceTypeLinear;
    unsigned char *bytes;
    CHECK(cudaMalloc(&bytes, 64));
    unsigned char levels[64];
    for (int i = 0; i < 64; i++) levels[i] = i * 4;
    CHECK(cudaMemcpy(bytes, levels, 64, cudaMemcpyHostToDevice));
    linear.res.linear = {bytes, cudaCreateChannelDesc<uchar4>(), 64};
    texture = texture_of(linear, cudaFilterModePoint, cudaReadModeNormalizedFloat, false, cudaAddressModeClamp);
    fetch<<<1, 32>>>(texture, (float4 *)out, 16);
    CHECK(cudaMemcpy(found.data(), out, 64 * 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 64; i++) EXPECT(close(found[i], levels[i] / 255.0, 1e-6));

    cudaArray_t volume, layers;
    CHECK(cudaMalloc3DArray(&volume, &floats, make_cudaExtent(4, 4, 4)));
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(image.data(), 16, 4, 4);
    copy.dstArray = volume, copy.extent = make_cudaExtent(4, 4, 4), copy.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&copy));
    texture = texture_of(of_array(volume), cudaFilterModePoint, cudaReadModeElementType, false, cudaAddressModeClamp);
    read_3d<<<1, dim3(4, 4, 4)>>>(texture, out);
    CHECK(cudaMemcpy(found.data(), out, 64 * 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 64; i++) EXPECT(found[i] == image[i]);
    CHECK(cudaMalloc3DArray(&layers, &floats, make_cudaExtent(8, 0, 3), cudaArrayLayered));
    copy.srcPtr = make_cudaPitchedPtr(image.data(), 32, 8, 1);
    copy.dstArray = layers, copy.extent = make_cudaExtent(8, 1, 3);
    CHECK(cudaMemcpy3D(&copy));
    texture = texture_of(of_array(layers), cudaFilterModePoint, cudaReadModeElementType, true, cudaAddressModeWrap);
    read_layers<<<3, 8>>>(texture, out, 8);
    CHECK(cudaMemcpy(found.data(), out, 24 * 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 24; i++) EXPECT(found[i] == image[i]);

    cudaChannelFormatDesc pixels = cudaCreateChannelDesc<uchar4>();
    cudaArray_t picture;
    CHECK(cudaMallocArray(&picture, &pixels, 16, 4, cudaArraySurfaceLoadStore));
    std::vector<uchar4> colours(64), inverse(64);
    for (int i = 0; i < 64; i++) colours[i] = make_uchar4(i, 2 * i, 3 * i, 9);
    CHECK(cudaMemcpy2DToArray(picture, 0, 0, colours.data(), 64, 64, 4, cudaMemcpyHostToDevice));
    cudaSurfaceObject_t surface;
    cudaResourceDesc of = of_array(picture);
    CHECK(cudaCreateSurfaceObject(&surface, &of));
    invert<<<4, 16>>>(surface, 16);
    CHECK(cudaMemcpy2DFromArray(inverse.data(), 64, picture, 0, 0, 64, 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 64; i++) EXPECT(inverse[i].x == 255 - i && inverse[i].y == 255 - 2 * i && inverse[i].w == 9);
    CHECK(cudaDestroySurfaceObject(surface));
    for (cudaArray_t each : {array, volume, layers, picture}) CHECK(cudaFreeArray(each));
    return passed();
}

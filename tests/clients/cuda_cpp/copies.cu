// Copies of boxes: pitched memory, arrays and host memory, in two and three dimensions, synchronous and in streams.
#include "check.h"
#include <cstring>
#include <vector>

const int W = 37, H = 11, D = 5;

__global__ void number(cudaPitchedPtr box, int w, int h, int d) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, z = blockIdx.z;
    if (x < w) ((short *)((char *)box.ptr + (z * box.ysize + y) * box.pitch))[x] = x + 100 * y + 2000 * z;
}

__global__ void add_texels(cudaTextureObject_t volume, int *sum, int w, int h, int d) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, z = blockIdx.z;
    if (x < w) atomicAdd(sum, tex3D<short>(volume, x, y, z));
}

short value(int x, int y, int z) { return x + 100 * y + 2000 * z; }

cudaMemcpy3DParms between(cudaPitchedPtr from, cudaPitchedPtr to, cudaExtent extent, cudaMemcpyKind kind) {
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = from, copy.dstPtr = to, copy.extent = extent, copy.kind = kind;
    return copy;
}

int main() {
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    cudaPitchedPtr box;
    cudaExtent bytes = make_cudaExtent(W * sizeof(short), H, D), elements = make_cudaExtent(W, H, D);
    CHECK(cudaMalloc3D(&box, bytes));
    EXPECT(box.pitch >= W * sizeof(short) && box.pitch % 32 == 0 && box.xsize == W * sizeof(short) && box.ysize == H);
    CHECK(cudaMemset3D(box, 0x55, bytes));
    number<<<dim3(2, H, D), 32>>>(box, W, H, D);
    CHECK(cudaGetLastError());

    std::vector<short> host(W * H * D, -1);
    cudaPitchedPtr here = make_cudaPitchedPtr(host.data(), W * sizeof(short), W, H);
    cudaMemcpy3DParms out = between(box, here, bytes, cudaMemcpyDeviceToHost);
    CHECK(cudaMemcpy3D(&out));
    for (int z = 0; z < D; z++)
        for (int y = 0; y < H; y++)
            for (int x = 0; x < W; x++) EXPECT(host[(z * H + y) * W + x] == value(x, y, z));

    // A box inside of the box, with positions on both sides.
    std::vector<short> part(8 * 4 * 3, -1);
    cudaMemcpy3DParms inner = between(box, make_cudaPitchedPtr(part.data(), 16, 8, 4), make_cudaExtent(5 * sizeof(short), 3, 2),
                                      cudaMemcpyDefault);
    inner.srcPos = make_cudaPos(4 * sizeof(short), 2, 1), inner.dstPos = make_cudaPos(sizeof(short), 1, 1);
    CHECK(cudaMemcpy3DAsync(&inner, stream));
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < 96; i++) {
        int x = i % 8 - 1, y = i / 8 % 4 - 1, z = i / 32 - 1;
        bool copied = x >= 0 && x < 5 && y >= 0 && y < 3 && z >= 0 && z < 2;
        EXPECT(part[i] == (copied ? value(x + 4, y + 2, z + 1) : -1));
    }

    // An array of three dimensions: from pitched memory, to another array, into a texture, and back.
    cudaChannelFormatDesc format = cudaCreateChannelDesc<short>();
    cudaArray_t array, other;
    CHECK(cudaMalloc3DArray(&array, &format, elements));
    CHECK(cudaMalloc3DArray(&other, &format, elements));
    cudaMemcpy3DParms in = {};
    in.srcPtr = box, in.dstArray = array, in.extent = elements, in.kind = cudaMemcpyDeviceToDevice;
    CHECK(cudaMemcpy3D(&in));
    cudaMemcpy3DParms across = {};
    across.srcArray = array, across.dstArray = other, across.extent = elements, across.kind = cudaMemcpyDeviceToDevice;
    CHECK(cudaMemcpy3DAsync(&across, stream));
    CHECK(cudaStreamSynchronize(stream));
    cudaChannelFormatDesc told;
    cudaExtent size;
    unsigned flags;
    CHECK(cudaArrayGetInfo(&told, &size, &flags, other));
    EXPECT(told.x == 16 && told.y == 0 && told.f == cudaChannelFormatKindSigned && flags == 0);
    EXPECT(size.width == W && size.height == H && size.depth == D);
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray, resource.res.array.array = other;
    cudaTextureDesc how = {};
    how.readMode = cudaReadModeElementType;
    cudaTextureObject_t texture;
    CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
    int *sum, wanted = 0, found;
    CHECK(cudaMalloc(&sum, sizeof *sum));
    CHECK(cudaMemset(sum, 0, sizeof *sum));
    add_texels<<<dim3(2, H, D), 32>>>(texture, sum, W, H, D);
    CHECK(cudaMemcpy(&found, sum, sizeof found, cudaMemcpyDeviceToHost));
    for (short each : host) wanted += each;
    EXPECT(found == wanted);
    CHECK(cudaDestroyTextureObject(texture));
    std::fill(host.begin(), host.end(), -1);
    cudaMemcpy3DParms back = {};
    back.srcArray = other, back.dstPtr = here, back.extent = elements, back.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3D(&back));
    EXPECT(host[0] == 0 && host[W * H * D - 1] == value(W - 1, H - 1, D - 1));

    // Two dimensions.
    char *rows;
    size_t pitch;
    CHECK(cudaMallocPitch(&rows, &pitch, 50, 20));
    CHECK(cudaMemset2D(rows, pitch, 7, 50, 20));
    CHECK(cudaMemset2DAsync(rows + 3 * pitch + 10, pitch, 9, 5, 4, stream));
    std::vector<char> flat(50 * 20);
    CHECK(cudaMemcpy2DAsync(flat.data(), 50, rows, pitch, 50, 20, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < 1000; i++)
        EXPECT(flat[i] == (i / 50 >= 3 && i / 50 < 7 && i % 50 >= 10 && i % 50 < 15 ? 9 : 7));
    EXPECT(cudaMemcpy2D(flat.data(), 40, rows, pitch, 50, 20, cudaMemcpyDeviceToHost) == cudaErrorInvalidPitchValue);
    EXPECT(cudaGetLastError() == cudaErrorInvalidPitchValue);
    cudaArray_t plane, copy_of;
    cudaChannelFormatDesc letters = cudaCreateChannelDesc<char>();
    CHECK(cudaMallocArray(&plane, &letters, 50, 20));
    CHECK(cudaMallocArray(&copy_of, &letters, 50, 20));
    for (int i = 0; i < 1000; i++) flat[i] = i % 101;
    CHECK(cudaMemcpy2DToArray(plane, 0, 0, flat.data(), 50, 50, 20, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy2DArrayToArray(copy_of, 0, 0, plane, 0, 0, 50, 20));
    CHECK(cudaMemcpy2DArrayToArray(copy_of, 10, 5, plane, 0, 0, 8, 3));
    CHECK(cudaMemcpy2DFromArray(rows, pitch, copy_of, 0, 0, 50, 20, cudaMemcpyDeviceToDevice));
    std::vector<char> got(1000);
    CHECK(cudaMemcpy2D(got.data(), 50, rows, pitch, 50, 20, cudaMemcpyDeviceToHost));
    for (int y = 0; y < 3; y++) std::memcpy(&flat[(y + 5) * 50 + 10], std::vector<char>(flat.begin() + y * 50, flat.begin() + y * 50 + 8).data(), 8);
    EXPECT(got == flat);
    CHECK(cudaFreeArray(plane));
    CHECK(cudaFreeArray(copy_of));
    CHECK(cudaFreeArray(array));
    CHECK(cudaFreeArray(other));
    CHECK(cudaFree(rows));
    CHECK(cudaFree(box.ptr));
    return passed();
}

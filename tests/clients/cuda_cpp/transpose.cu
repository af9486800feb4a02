// A transposed image through shared memory, with rows of a pitch, and copies and fills of parts of them.
#include "check.h"
#include <vector>

const int TILE = 32, ROWS = 8;

__global__ void transpose(const int *in, size_t in_pitch, int *out, size_t out_pitch, int width, int height) {
    __shared__ int tile[TILE][TILE + 1];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS)
        if (x < width && y + j < height) tile[threadIdx.y + j][threadIdx.x] = ((const int *)((const char *)in + (y + j) * in_pitch))[x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS)
        if (x < height && y + j < width) ((int *)((char *)out + (y + j) * out_pitch))[x] = tile[threadIdx.x][threadIdx.y + j];
}

int main() {
    const int width = 100, height = 50;
    std::vector<int> host(width * height), found(width * height);
    for (int i = 0; i < width * height; i++) host[i] = i;
    int *in, *out;
    size_t in_pitch, out_pitch;
    CHECK(cudaMallocPitch(&in, &in_pitch, width * 4, height));
    CHECK(cudaMallocPitch(&out, &out_pitch, height * 4, width));
    EXPECT(in_pitch % 512 == 0 && in_pitch >= width * 4);
    CHECK(cudaMemset2D(out, out_pitch, 0xff, height * 4, width));
    CHECK(cudaMemcpy2D(in, in_pitch, host.data(), width * 4, width * 4, height, cudaMemcpyHostToDevice));
    transpose<<<dim3(4, 2), dim3(TILE, ROWS)>>>(in, in_pitch, out, out_pitch, width, height);
    CHECK(cudaMemcpy2D(found.data(), height * 4, out, out_pitch, height * 4, width, cudaMemcpyDeviceToHost));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) EXPECT(found[x * height + y] == host[y * width + x]);
    cudaPitchedPtr volume;
    CHECK(cudaMalloc3D(&volume, make_cudaExtent(40, 5, 3)));
    CHECK(cudaMemset3D(volume, 7, make_cudaExtent(40, 5, 3)));
    std::vector<char> bytes(20 * 4 * 2);
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = volume;
    copy.srcPos = make_cudaPos(10, 1, 1);
    copy.dstPtr = make_cudaPitchedPtr(bytes.data(), 20, 20, 4);
    copy.extent = make_cudaExtent(20, 4, 2);
    copy.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3D(&copy));
    for (char each : bytes) EXPECT(each == 7);
    return passed();
}

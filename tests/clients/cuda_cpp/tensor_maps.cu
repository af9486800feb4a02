// Tiles of a matrix by tensor maps: the runtime's way to the driver's encoder, copies in and out, swizzled, and past the edges.
// flags: -std=c++17 -arch=sm_90
// device: sm_90
#include "check.h"
#include <cuda.h>
#include <cuda/barrier>
#include <cuda/ptx>

namespace ptx = cuda::ptx;
using barrier = cuda::barrier<cuda::thread_scope_block>;
const int TILE = 32, ROWS = 100, COLUMNS = 80;

__global__ void add_one(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap to) {
    __shared__ alignas(128) int tile[TILE][TILE];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ barrier full;
    if (threadIdx.x == 0) {
        init(&full, blockDim.x);
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();
    barrier::arrival_token token;
    const int at[2] = {int(blockIdx.x) * TILE, int(blockIdx.y) * TILE};
    if (threadIdx.x == 0) {
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, &from, at, cuda::device::barrier_native_handle(full));
        token = cuda::device::barrier_arrive_tx(full, 1, sizeof(tile));
    } else {
        token = full.arrive();
    }
    full.wait(std::move(token));
    for (int i = threadIdx.x; i < TILE * TILE; i += blockDim.x) (&tile[0][0])[i] += 1;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &to, at, tile);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    }
}

int main() {
    void *found;
    cudaDriverEntryPointQueryResult status;
    CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &status));
    EXPECT(status == cudaDriverEntryPointSuccess);
    auto encode = (decltype(&cuTensorMapEncodeTiled))found;
    int *in, *out;
    CHECK(cudaMallocManaged(&in, ROWS * COLUMNS * sizeof(int)));
    CHECK(cudaMallocManaged(&out, ROWS * COLUMNS * sizeof(int)));
    for (int swizzle : {0, 3}) {
        for (int i = 0; i < ROWS * COLUMNS; i++) in[i] = i * 5, out[i] = -1;
        CUtensorMap maps[2];
        for (int k = 0; k < 2; k++) {
            cuuint64_t extents[] = {COLUMNS, ROWS}, strides[] = {COLUMNS * sizeof(int)};
            cuuint32_t box[] = {TILE, TILE}, steps[] = {1, 1};
            EXPECT(encode(&maps[k], CU_TENSOR_MAP_DATA_TYPE_INT32, 2, k ? out : in, extents, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                          CUtensorMapSwizzle(swizzle), CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
        }
        add_one<<<dim3((COLUMNS + TILE - 1) / TILE, (ROWS + TILE - 1) / TILE), 128>>>(maps[0], maps[1]);
        CHECK(cudaDeviceSynchronize());
        for (int i = 0; i < ROWS * COLUMNS; i++) EXPECT(out[i] == i * 5 + 1);
    }
    return passed();
}

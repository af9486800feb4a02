// flags: -arch=compute_80
// Copies to shared memory that go on while threads compute: `cuda::memcpy_async` with a barrier and with a pipeline.
#include "check.h"
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <vector>

namespace cg = cooperative_groups;
const int BLOCK = 64, TILES = 8;

__global__ void with_barrier(const int *in, int *out) {
    __shared__ int tile[BLOCK];
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    auto block = cg::this_thread_block();
    if (!block.thread_rank()) init(&barrier, block.size());
    block.sync();
    int sum = 0;
    for (int t = 0; t < TILES; t++) {
        cuda::memcpy_async(block, tile, in + t * BLOCK, sizeof(tile), barrier);
        barrier.arrive_and_wait();
        sum += tile[(block.thread_rank() + t) % BLOCK];
        block.sync();
    }
    out[block.thread_rank()] = sum;
}

__global__ void with_pipeline(const int *in, int *out) {
    __shared__ int tiles[2][BLOCK];
    auto pipeline = cuda::make_pipeline();
    int lane = threadIdx.x, sum = 0;
    for (int t = 0, loaded = 0; t < TILES; t++) {
        for (; loaded < TILES && loaded < t + 2; loaded++) {
            pipeline.producer_acquire();
            cuda::memcpy_async(&tiles[loaded % 2][lane], in + loaded * BLOCK + lane, sizeof(int), pipeline);
            pipeline.producer_commit();
        }
        pipeline.consumer_wait();
        sum = sum * 3 + tiles[t % 2][lane];
        pipeline.consumer_release();
    }
    out[lane] = sum;
}

int main() {
    std::vector<int> host(BLOCK * TILES), found(BLOCK);
    for (int i = 0; i < BLOCK * TILES; i++) host[i] = i * i % 101;
    int *in, *out;
    CHECK(cudaMalloc(&in, host.size() * 4));
    CHECK(cudaMalloc(&out, BLOCK * 4));
    CHECK(cudaMemcpy(in, host.data(), host.size() * 4, cudaMemcpyHostToDevice));
    with_barrier<<<1, BLOCK>>>(in, out);
    CHECK(cudaMemcpy(found.data(), out, BLOCK * 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < BLOCK; i++) {
        int sum = 0;
        for (int t = 0; t < TILES; t++) sum += host[t * BLOCK + (i + t) % BLOCK];
        EXPECT(found[i] == sum);
    }
    with_pipeline<<<1, BLOCK>>>(in, out);
    CHECK(cudaMemcpy(found.data(), out, BLOCK * 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < BLOCK; i++) {
        int sum = 0;
        for (int t = 0; t < TILES; t++) sum = sum * 3 + host[t * BLOCK + i];
        EXPECT(found[i] == sum);
    }
    return passed();
}

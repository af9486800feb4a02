// total += the sum of x: each thread adds up its share, each warp folds its lanes with shuffles, and one lane a warp adds
// the warp's part to the total with an atomic.
extern "C" __global__ void total(const float *__restrict__ x, int n, float *total) {
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(~0u, sum, distance);
    if (threadIdx.x % 32 == 0) atomicAdd(total, sum);
}

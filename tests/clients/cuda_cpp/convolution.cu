// A separable convolution: the weights are in constant memory, each block loads its pixels with a halo.
#include "check.h"
#include <vector>

const int R = 4, TILE = 16, WIDTH = 100, HEIGHT = 75;
__constant__ float weights[2 * R + 1];

template <bool across> __global__ void convolve(const float *in, float *out, int width, int height) {
    __shared__ float tile[TILE + 2 * R][TILE + 1];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    int along = across ? threadIdx.x : threadIdx.y, other = across ? threadIdx.y : threadIdx.x;
    for (int k = along; k < TILE + 2 * R; k += TILE) {
        int px = across ? blockIdx.x * TILE + k - R : x, py = across ? y : blockIdx.y * TILE + k - R;
        tile[k][other] = px >= 0 && px < width && py >= 0 && py < height ? in[py * width + px] : 0;
    }
    __syncthreads();
    if (x >= width || y >= height) return;
    float sum = 0;
    for (int k = 0; k <= 2 * R; k++) sum += weights[k] * tile[along + k][other];
    out[y * width + x] = sum;
}

int main() {
    float w[2 * R + 1];
    for (int k = 0; k <= 2 * R; k++) w[k] = std::exp(-(k - R) * (k - R) / 8.0f);
    std::vector<float> image(WIDTH * HEIGHT), half(WIDTH * HEIGHT), wanted(WIDTH * HEIGHT), found(WIDTH * HEIGHT);
    for (int i = 0; i < WIDTH * HEIGHT; i++) image[i] = float((i * 37) % 101) / 101;
    for (int pass = 0; pass < 2; pass++)
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++) {
                float sum = 0;
                for (int k = -R; k <= R; k++) {
                    int px = pass ? x : x + k, py = pass ? y + k : y;
                    if (px >= 0 && px < WIDTH && py >= 0 && py < HEIGHT) sum += w[k + R] * (pass ? half : image)[py * WIDTH + px];
                }
                (pass ? wanted : half)[y * WIDTH + x] = sum;
            }
    CHECK(cudaMemcpyToSymbol(weights, w, sizeof(w)));
    float *in, *between, *out;
    for (float **each : {&in, &between, &out}) CHECK(cudaMalloc(each, WIDTH * HEIGHT * 4));
    CHECK(cudaMemcpy(in, image.data(), WIDTH * HEIGHT * 4, cudaMemcpyHostToDevice));
    dim3 block(TILE, TILE), grid((WIDTH + TILE - 1) / TILE, (HEIGHT + TILE - 1) / TILE);
    convolve<true><<<grid, block>>>(in, between, WIDTH, HEIGHT);
    convolve<false><<<grid, block>>>(between, out, WIDTH, HEIGHT);
    CHECK(cudaMemcpy(found.data(), out, WIDTH * HEIGHT * 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < WIDTH * HEIGHT; i++) EXPECT(close(found[i], wanted[i], 1e-5));
    return passed();
}

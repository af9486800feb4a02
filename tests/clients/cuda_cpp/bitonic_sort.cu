// A bitonic sort of keys with their values, of as many launches as it has steps.
#include "check.h"
#include <algorithm>
#include <vector>

__global__ void step(float *keys, int *values, int distance, int size) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, other = i ^ distance;
    if (other <= i) return;
    bool ascending = (i & size) == 0;
    if ((keys[i] > keys[other]) == ascending) {
        float key = keys[i];
        keys[i] = keys[other];
        keys[other] = key;
        int value = values[i];
        values[i] = values[other];
        values[other] = value;
    }
}

int main() {
    const int n = 1024;
    std::vector<float> keys(n), sorted(n);
    std::vector<int> values(n), found(n);
    for (int i = 0; i < n; i++) {
        keys[i] = std::sin(float(i) * 12.9898f) * 43758.5453f;
        values[i] = i;
    }
    float *k;
    int *v;
    CHECK(cudaMalloc(&k, n * sizeof(float)));
    CHECK(cudaMalloc(&v, n * sizeof(int)));
    CHECK(cudaMemcpy(k, keys.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(v, values.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    for (int size = 2; size <= n; size *= 2)
        for (int distance = size / 2; distance; distance /= 2) step<<<n / 128, 128>>>(k, v, distance, size);
    CHECK(cudaMemcpy(sorted.data(), k, n * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(found.data(), v, n * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) EXPECT(keys[found[i]] == sorted[i]);
    std::sort(keys.begin(), keys.end());
    EXPECT(keys == sorted);
    return passed();
}

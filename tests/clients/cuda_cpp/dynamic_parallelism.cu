// flags: -rdc=true
// Kernels that launch kernels: a quicksort whose parts sort themselves.
#include "check.h"
#include <algorithm>
#include <vector>

__global__ void quicksort(int *data, int left, int right, int depth) {
    if (right - left < 8 || depth == 0) {
        for (int i = left + 1; i <= right; i++) {
            int value = data[i], at = i;
            for (; at > left && data[at - 1] > value; at--) data[at] = data[at - 1];
            data[at] = value;
        }
        return;
    }
    int i = left, j = right, pivot = data[(left + right) / 2];
    while (i <= j) {
        while (data[i] < pivot) i++;
        while (data[j] > pivot) j--;
        if (i <= j) {
            int value = data[i];
            data[i++] = data[j];
            data[j--] = value;
        }
    }
    if (left < j) quicksort<<<1, 1>>>(data, left, j, depth - 1);
    if (i < right) quicksort<<<1, 1>>>(data, i, right, depth - 1);
}

__global__ void fill(int *data, int value) { data[blockIdx.x * blockDim.x + threadIdx.x] += value; }

__global__ void parent(int *data, int n) {
    if (threadIdx.x == 0) fill<<<n / 32, 32>>>(data, 5);
}

int main() {
    const int n = 256;
    int *data;
    CHECK(cudaMallocManaged(&data, n * sizeof(int)));
    std::vector<int> host(n);
    for (int i = 0; i < n; i++) host[i] = data[i] = (i * 7919) % 1009;
    quicksort<<<1, 1>>>(data, 0, n - 1, 10);
    CHECK(cudaDeviceSynchronize());
    std::sort(host.begin(), host.end());
    EXPECT(std::equal(host.begin(), host.end(), data));
    parent<<<1, 64>>>(data, n);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < n; i++) EXPECT(data[i] == host[i] + 5);
    return passed();
}

// Managed memory in batches: prefetched, discarded, advised, asked about, several attributes at once.
#include "check.h"
#include <cstring>
__global__ void twice(int *p, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] *= 2;
}
int main() {
    const int n = 1 << 16;
    int concurrent;
    CHECK(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0));
    EXPECT(concurrent);
    int *a, *b;
    cudaStream_t s;
    CHECK(cudaStreamCreate(&s));
    CHECK(cudaMallocManaged(&a, 4 * n));
    CHECK(cudaMallocManaged(&b, 4 * n));
    for (int i = 0; i < n; i++) a[i] = i, b[i] = -i;
    void *ptrs[] = {a, b};
    size_t sizes[] = {4 * n, 4 * n}, from[] = {0, 1};
    cudaMemLocation to[] = {{cudaMemLocationTypeDevice, 0}, {cudaMemLocationTypeHost, 0}};
    CHECK(cudaMemPrefetchBatchAsync(ptrs, sizes, 2, to, from, 2, 0, s));
    CHECK(cudaStreamSynchronize(s));
    twice<<<n / 256, 256, 0, s>>>(a, n);
    twice<<<n / 256, 256, 0, s>>>(b, n);
    CHECK(cudaStreamSynchronize(s));
    for (int i = 0; i < n; i++) EXPECT(a[i] == 2 * i && b[i] == -2 * i);
    cudaMemLocationType type;
    CHECK(cudaMemRangeGetAttribute(&type, sizeof type, cudaMemRangeAttributeLastPrefetchLocationType, a, 4 * n));
    EXPECT(type == cudaMemLocationTypeDevice);
    int id = -9;
    CHECK(cudaMemRangeGetAttribute(&id, sizeof id, cudaMemRangeAttributeLastPrefetchLocationId, a, 4 * n));
    EXPECT(id == 0);
    CHECK(cudaMemRangeGetAttribute(&type, sizeof type, cudaMemRangeAttributeLastPrefetchLocationType, b, 4 * n));
    EXPECT(type == cudaMemLocationTypeHost);

    CHECK(cudaMemAdvise(a, 4 * n, cudaMemAdviseSetReadMostly, to[0]));
    CHECK(cudaMemAdvise(a, 4 * n, cudaMemAdviseSetPreferredLocation, to[0]));
    CHECK(cudaMemAdvise(a, 2 * n, cudaMemAdviseSetAccessedBy, to[0]));
    int read_mostly = 9, preferred = 9, by[3] = {9, 9, 9};
    void *data[] = {&read_mostly, &preferred, by};
    size_t data_sizes[] = {4, 4, 12};
    cudaMemRangeAttribute which[] = {cudaMemRangeAttributeReadMostly, cudaMemRangeAttributePreferredLocation, cudaMemRangeAttributeAccessedBy};
    CHECK(cudaMemRangeGetAttributes(data, data_sizes, which, 3, a, 4 * n));
    EXPECT(read_mostly == 1 && preferred == 0 && by[0] == cudaInvalidDeviceId && by[1] == cudaInvalidDeviceId);  // of half of it
    CHECK(cudaMemRangeGetAttributes(data, data_sizes, which, 3, a, 2 * n));
    EXPECT(by[0] == 0 && by[1] == cudaInvalidDeviceId && by[2] == cudaInvalidDeviceId);
    CHECK(cudaMemAdvise(a, 4 * n, cudaMemAdviseUnsetReadMostly, to[0]));
    CHECK(cudaMemAdvise(a, 4 * n, cudaMemAdviseUnsetPreferredLocation, to[0]));
    CHECK(cudaMemRangeGetAttributes(data, data_sizes, which, 3, a, 2 * n));
    EXPECT(read_mostly == 0 && preferred == cudaInvalidDeviceId);
    // advice on what is not managed
    int *plain;
    CHECK(cudaMalloc(&plain, 4 * n));
    EXPECT(cudaMemAdvise(plain, 4 * n, cudaMemAdviseSetReadMostly, to[0]) == cudaErrorInvalidValue);
    cudaGetLastError();
    EXPECT(cudaMemPrefetchAsync(plain, 4 * n, to[0], 0, s) == cudaErrorInvalidValue);
    cudaGetLastError();
    cudaMemLocation nowhere = {cudaMemLocationTypeDevice, 5};
    EXPECT(cudaMemPrefetchAsync(a, 4 * n, nowhere, 0, s) == cudaErrorInvalidDevice);
    cudaGetLastError();
    // thrown away, and written anew
    CHECK(cudaMemDiscardBatchAsync(ptrs, sizes, 2, 0, s));
    CHECK(cudaMemsetAsync(a, 0, 4 * n, s));
    CHECK(cudaStreamSynchronize(s));
    for (int i = 0; i < n; i++) EXPECT(a[i] == 0);
    CHECK(cudaMemDiscardAndPrefetchBatchAsync(ptrs, sizes, 2, to, from, 1, 0, s));
    CHECK(cudaMemsetAsync(b, 1, 4 * n, s));
    CHECK(cudaStreamSynchronize(s));
    EXPECT(b[5] == 0x01010101);
    CHECK(cudaMemRangeGetAttribute(&type, sizeof type, cudaMemRangeAttributeLastPrefetchLocationType, b, 4 * n));
    EXPECT(type == cudaMemLocationTypeDevice);
    EXPECT(cudaMemDiscardBatchAsync(ptrs, sizes, 2, 1, s) == cudaErrorInvalidValue);
    cudaGetLastError();
    return passed();
}

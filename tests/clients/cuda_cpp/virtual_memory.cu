// Virtual memory: a vector that grows in place, a ring of the same memory twice, access and handles, a fault after an unmap.
#include "check.h"
#include <cuda.h>
#include <vector>
template <class F> F entry(const char *name) {
    void *p;
    cudaDriverEntryPointQueryResult r;
    CHECK(cudaGetDriverEntryPointByVersion(name, &p, CUDA_VERSION, cudaEnableDefault, &r));
    EXPECT(p);
    return (F)p;
}
#define E(n) auto p##n = entry<decltype(&n)>(#n)
#define OK(x) EXPECT((x) == CUDA_SUCCESS)
__global__ void fill(int *p, int n, int v) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) p[i] = v + i;
}
__global__ void sum(const int *p, int n, unsigned long long *out) {
    unsigned long long s = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) s += p[i];
    atomicAdd(out, s);
}
int main() {
    CHECK(cudaFree(0));
    E(cuMemGetAllocationGranularity);
    E(cuMemCreate);
    E(cuMemAddressReserve);
    E(cuMemMap);
    E(cuMemSetAccess);
    E(cuMemUnmap);
    E(cuMemRelease);
    E(cuMemAddressFree);
    E(cuMemGetAccess);
    E(cuMemRetainAllocationHandle);
    E(cuMemGetAllocationPropertiesFromHandle);
    CUmemAllocationProp prop = {};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = 0;
    size_t g;
    OK(pcuMemGetAllocationGranularity(&g, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    EXPECT(g && g % 4096 == 0);
    CUdeviceptr va;
    OK(pcuMemAddressReserve(&va, 8 * g, 0, 0, 0));
    std::vector<CUmemGenericAllocationHandle> hs;
    CUmemAccessDesc acc = {};
    acc.location = prop.location;
    acc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    unsigned long long *out;
    CHECK(cudaMallocManaged(&out, 8));
    for (int k = 0; k < 4; ++k) { // a vector that grows in place
        CUmemGenericAllocationHandle h;
        OK(pcuMemCreate(&h, g, &prop, 0));
        OK(pcuMemMap(va + k * g, g, 0, h, 0));
        OK(pcuMemSetAccess(va + k * g, g, &acc, 1));
        hs.push_back(h);
        int n = (k + 1) * g / 4;
        fill<<<8, 128>>>((int *)va, n, k);
        *out = 0;
        CHECK(cudaDeviceSynchronize());
        sum<<<1, 256>>>((int *)va, n, out);
        CHECK(cudaDeviceSynchronize());
        EXPECT(*out == (unsigned long long)n * (n - 1) / 2 + (unsigned long long)k * n);
    }
    unsigned long long fl;
    OK(pcuMemGetAccess(&fl, &acc.location, va));
    EXPECT(fl == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CUmemGenericAllocationHandle again;
    OK(pcuMemRetainAllocationHandle(&again, (void *)(va + g)));
    EXPECT(again == hs[1]);
    OK(pcuMemRelease(again));
    CUmemAllocationProp q;
    OK(pcuMemGetAllocationPropertiesFromHandle(&q, hs[2]));
    EXPECT(q.location.id == 0 && q.type == CU_MEM_ALLOCATION_TYPE_PINNED);
    // the same physical memory at a second address: a ring buffer
    CUdeviceptr ring;
    OK(pcuMemAddressReserve(&ring, 2 * g, 0, 0, 0));
    OK(pcuMemMap(ring, g, 0, hs[0], 0));
    OK(pcuMemMap(ring + g, g, 0, hs[0], 0));
    OK(pcuMemSetAccess(ring, 2 * g, &acc, 1));
    int n = g / 4;
    fill<<<4, 64>>>((int *)ring + n / 2, n, 7);
    CHECK(cudaDeviceSynchronize());
    std::vector<int> h(n);
    CHECK(cudaMemcpy(h.data(), (void *)va, g, cudaMemcpyDefault));
    for (int i = 0; i < n; ++i) EXPECT(h[i] == 7 + (i >= n / 2 ? i - n / 2 : i + n / 2));
    OK(pcuMemUnmap(ring, 2 * g));
    OK(pcuMemAddressFree(ring, 2 * g));
    // unmapped memory faults
    EXPECT(pcuMemMap(va, g, 0, hs[0], 0) != CUDA_SUCCESS);
    OK(pcuMemUnmap(va + g, g));
    fill<<<1, 1>>>((int *)(va + g), 1, 0);
    EXPECT(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
    return passed();
}

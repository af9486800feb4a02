// What other interfaces share is refused by a result, at once, and harms nothing: external memory and semaphores, graphics, private tables.
#include "check.h"
#include <cstring>
__global__ void one(int *p) { *p = 1; }
int main() {
    int *d, result = 0;
    CHECK(cudaMalloc(&d, 4));
    cudaExternalSemaphore_t semaphore;
    cudaExternalSemaphoreHandleDesc sd = {};
    sd.type = cudaExternalSemaphoreHandleTypeOpaqueFd;
    sd.handle.fd = -1;
    EXPECT(cudaImportExternalSemaphore(&semaphore, &sd) != cudaSuccess);
    EXPECT(cudaGetLastError() != cudaSuccess);
    cudaExternalMemory_t memory;
    cudaExternalMemoryHandleDesc md = {};
    md.type = cudaExternalMemoryHandleTypeOpaqueFd;
    md.handle.fd = -1;
    md.size = 4096;
    EXPECT(cudaImportExternalMemory(&memory, &md) != cudaSuccess);
    EXPECT(cudaGetLastError() != cudaSuccess);
    cudaStream_t s;
    CHECK(cudaStreamCreate(&s));
    cudaGraphicsResource_t resource = nullptr;
    EXPECT(cudaGraphicsMapResources(1, &resource, s) != cudaSuccess);
    EXPECT(cudaGraphicsUnmapResources(1, &resource, s) != cudaSuccess);
    void *p;
    size_t size;
    EXPECT(cudaGraphicsResourceGetMappedPointer(&p, &size, resource) != cudaSuccess);
    cudaGetLastError();
    const void *table;
    cudaUUID_t id = {};
    EXPECT(cudaGetExportTable(&table, &id) != cudaSuccess);
    cudaGetLastError();
    char list[64];
    EXPECT(cudaDeviceGetNvSciSyncAttributes(list, 0, cudaNvSciSyncAttrSignal) != cudaSuccess);
    cudaGetLastError();
    cudaError_t flush = cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTargetCurrentDevice, cudaFlushGPUDirectRDMAWritesToOwner);
    EXPECT(flush == cudaErrorNotSupported || flush == cudaSuccess);
    cudaGetLastError();
    one<<<1, 1, 0, s>>>(d);
    CHECK(cudaStreamSynchronize(s));
    CHECK(cudaMemcpy(&result, d, 4, cudaMemcpyDeviceToHost));
    EXPECT(result == 1);
    return passed();
}

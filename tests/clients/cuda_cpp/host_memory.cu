// Memory of the host that kernels use: mapped, registered and managed memory, advice and prefetches, and what pointers are.
#include "check.h"
#include <cstdlib>
#include <vector>

__global__ void increment(int *data, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) data[i]++;
}
__global__ void handshake(volatile int *flag, volatile int *data) {
    *data = 42;
    __threadfence_system();
    *flag = 1;
    while (*flag != 2) {}
    *data = *data + 1;
}
__managed__ int numbers[256];

const int N = 3000;

int main() {
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaSetDeviceFlags(cudaDeviceMapHost | cudaDeviceScheduleAuto));
    unsigned flags;
    CHECK(cudaGetDeviceFlags(&flags));
    EXPECT(flags & cudaDeviceMapHost);

    int *mapped, *on_device;
    CHECK(cudaHostAlloc(&mapped, N * sizeof(int), cudaHostAllocMapped | cudaHostAllocPortable));
    CHECK(cudaHostGetDevicePointer(&on_device, mapped, 0));
    CHECK(cudaHostGetFlags(&flags, mapped));
    EXPECT(flags & cudaHostAllocMapped);
    for (int i = 0; i < N; i++) mapped[i] = i;
    increment<<<4, 128, 0, stream>>>(on_device, N);
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < N; i++) EXPECT(mapped[i] == i + 1);

    int *combined;
    CHECK(cudaHostAlloc(&combined, N * sizeof(int), cudaHostAllocWriteCombined | cudaHostAllocMapped));
    for (int i = 0; i < N; i++) combined[i] = 5;
    increment<<<4, 128, 0, stream>>>(combined, N);
    CHECK(cudaStreamSynchronize(stream));
    EXPECT(combined[N - 1] == 6);

    std::vector<int> own(N, 1);
    CHECK(cudaHostRegister(own.data(), N * sizeof(int), cudaHostRegisterMapped));
    EXPECT(cudaHostRegister(own.data(), N * sizeof(int), 0) == cudaErrorHostMemoryAlreadyRegistered);
    cudaGetLastError();
    CHECK(cudaHostGetDevicePointer(&on_device, own.data(), 0));
    increment<<<4, 128, 0, stream>>>(on_device + 10, N - 10);
    CHECK(cudaStreamSynchronize(stream));
    EXPECT(own[9] == 1 && own[10] == 2 && own[N - 1] == 2);
    cudaPointerAttributes what;
    CHECK(cudaPointerGetAttributes(&what, own.data() + 100));
    EXPECT(what.type == cudaMemoryTypeHost && what.devicePointer == on_device + 100 && what.hostPointer == own.data() + 100);
    CHECK(cudaHostUnregister(own.data()));
    EXPECT(cudaHostUnregister(own.data()) == cudaErrorHostMemoryNotRegistered);
    cudaGetLastError();
    CHECK(cudaPointerGetAttributes(&what, own.data()));
    EXPECT(what.type == cudaMemoryTypeUnregistered);

    // A kernel and the host that wait for each other.
    volatile int *flag = mapped, *data = mapped + 1;
    *flag = 0;
    handshake<<<1, 1, 0, stream>>>(flag, data);
    while (*flag != 1) {}
    EXPECT(*data == 42);
    *data = 100;
    *flag = 2;
    CHECK(cudaStreamSynchronize(stream));
    EXPECT(*data == 101);

    // Managed memory: where it is, and where it should be.
    int *managed, value;
    CHECK(cudaMallocManaged(&managed, N * sizeof(int), cudaMemAttachGlobal));
    for (int i = 0; i < N; i++) managed[i] = 0;
    CHECK(cudaPointerGetAttributes(&what, managed));
    EXPECT(what.type == cudaMemoryTypeManaged && what.devicePointer == managed && what.hostPointer == managed);
    cudaMemLocation device = {}, host = {};
    device.type = cudaMemLocationTypeDevice, device.id = 0, host.type = cudaMemLocationTypeHost;
    CHECK(cudaMemAdvise(managed, N * sizeof(int), cudaMemAdviseSetReadMostly, device));
    CHECK(cudaMemRangeGetAttribute(&value, sizeof value, cudaMemRangeAttributeReadMostly, managed, N * sizeof(int)));
    EXPECT(value == 1);
    CHECK(cudaMemAdvise(managed, N * sizeof(int), cudaMemAdviseUnsetReadMostly, device));
    CHECK(cudaMemAdvise(managed, N * sizeof(int), cudaMemAdviseSetPreferredLocation, host));
    CHECK(cudaMemRangeGetAttribute(&value, sizeof value, cudaMemRangeAttributePreferredLocation, managed, N * sizeof(int)));
    EXPECT(value == cudaCpuDeviceId);
    CHECK(cudaMemAdvise(managed, N * sizeof(int), cudaMemAdviseSetAccessedBy, device));
    int users[3];
    CHECK(cudaMemRangeGetAttribute(users, sizeof users, cudaMemRangeAttributeAccessedBy, managed, N * sizeof(int)));
    EXPECT(users[0] == 0 && users[1] == cudaInvalidDeviceId && users[2] == cudaInvalidDeviceId);
    CHECK(cudaMemPrefetchAsync(managed, N * sizeof(int), device, 0, stream));
    increment<<<4, 128, 0, stream>>>(managed, N);
    CHECK(cudaMemPrefetchAsync(managed, N * sizeof(int), host, 0, stream));
    CHECK(cudaMemRangeGetAttribute(&value, sizeof value, cudaMemRangeAttributeLastPrefetchLocation, managed, N * sizeof(int)));
    EXPECT(value == cudaCpuDeviceId);
    CHECK(cudaStreamSynchronize(stream));
    EXPECT(managed[0] == 1 && managed[N - 1] == 1);
    CHECK(cudaStreamAttachMemAsync(stream, managed, 0, cudaMemAttachSingle));
    CHECK(cudaStreamSynchronize(stream));
    increment<<<1, 32, 0, stream>>>(managed, N);
    CHECK(cudaStreamSynchronize(stream));
    EXPECT(managed[5] == 2);
    for (int i = 0; i < 256; i++) numbers[i] = i;
    increment<<<1, 256>>>(numbers, 256);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 256; i++) EXPECT(numbers[i] == i + 1);
    CHECK(cudaFree(managed));
    CHECK(cudaFreeHost(mapped));
    CHECK(cudaFreeHost(combined));
    return passed();
}

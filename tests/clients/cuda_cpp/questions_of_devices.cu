// What devices say of atomics across their links, of notifications, limits; peers let in and out; the last error of a thread.
// devices: 2
#include "check.h"
#include <cstring>
#include <thread>
__global__ void bump(int *p) { atomicAdd_system(p, 1); }
static void budget(cudaAsyncNotificationInfo_t *, void *, cudaAsyncCallbackHandle_t) {}
int main() {
    cudaAtomicOperation ops[] = {cudaAtomicOperationIntegerAdd, cudaAtomicOperationCAS, cudaAtomicOperationFloatAdd};
    unsigned of_host[3] = {9, 9, 9}, of_peer[3] = {9, 9, 9};
    CHECK(cudaDeviceGetHostAtomicCapabilities(of_host, ops, 3, 0));
    CHECK(cudaDeviceGetP2PAtomicCapabilities(of_peer, ops, 3, 0, 1));
    int native;
    CHECK(cudaDeviceGetAttribute(&native, cudaDevAttrHostNativeAtomicSupported, 0));
    EXPECT(!native || (of_host[0] & (cudaAtomicCapabilitySigned | cudaAtomicCapabilityScalar32)));
    EXPECT(cudaDeviceGetHostAtomicCapabilities(of_host, ops, 0, 0) == cudaErrorInvalidValue);
    cudaGetLastError();
    EXPECT(cudaDeviceGetP2PAtomicCapabilities(of_peer, ops, 3, 0, 0) == cudaErrorInvalidDevice);
    cudaGetLastError();
    cudaAsyncCallbackHandle_t handle;
    cudaError_t registered = cudaDeviceRegisterAsyncNotification(0, budget, nullptr, &handle);
    EXPECT(registered == cudaSuccess || registered == cudaErrorNotSupported);
    if (!registered) CHECK(cudaDeviceUnregisterAsyncNotification(0, handle));
    cudaGetLastError();

    int can, value;
    CHECK(cudaDeviceCanAccessPeer(&can, 0, 1));
    EXPECT(can);
    CHECK(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 0, 1));
    EXPECT(value == 1);
    int *there;
    CHECK(cudaSetDevice(1));
    CHECK(cudaMalloc(&there, 4));
    CHECK(cudaMemset(there, 0, 4));
    CHECK(cudaSetDevice(0));
    CHECK(cudaDeviceEnablePeerAccess(1, 0));
    EXPECT(cudaDeviceEnablePeerAccess(1, 0) == cudaErrorPeerAccessAlreadyEnabled);
    EXPECT(cudaGetLastError() == cudaErrorPeerAccessAlreadyEnabled);
    bump<<<2, 8>>>(there);
    CHECK(cudaDeviceSynchronize());
    int got;
    CHECK(cudaMemcpy(&got, there, 4, cudaMemcpyDefault));
    EXPECT(got == 16);
    CHECK(cudaDeviceDisablePeerAccess(1));
    EXPECT(cudaDeviceDisablePeerAccess(1) == cudaErrorPeerAccessNotEnabled);
    cudaGetLastError();
    EXPECT(cudaDeviceEnablePeerAccess(0, 0) == cudaErrorInvalidDevice);
    cudaGetLastError();
    EXPECT(cudaDeviceEnablePeerAccess(1, 5) == cudaErrorInvalidValue);
    cudaGetLastError();

    size_t size;
    for (cudaLimit limit : {cudaLimitStackSize, cudaLimitPrintfFifoSize, cudaLimitMallocHeapSize, cudaLimitDevRuntimePendingLaunchCount}) {
        CHECK(cudaDeviceGetLimit(&size, limit));
        EXPECT(size > 0);
        CHECK(cudaDeviceSetLimit(limit, 2 * size));
        size_t now;
        CHECK(cudaDeviceGetLimit(&now, limit));
        EXPECT(now >= 2 * size);
    }
    EXPECT(cudaDeviceSetLimit((cudaLimit)99, 1) != cudaSuccess);
    cudaGetLastError();
    // errors belong to a thread
    EXPECT(cudaMalloc(nullptr, 4) == cudaErrorInvalidValue);
    cudaError_t other = cudaErrorUnknown;
    int device = -1;
    CHECK(cudaSetDevice(1) == cudaSuccess ? cudaSuccess : cudaErrorUnknown);
    std::thread([&] { other = cudaGetLastError(); cudaGetDevice(&device); }).join();
    EXPECT(other == cudaSuccess && device == 0);
    EXPECT(cudaPeekAtLastError() == cudaErrorInvalidValue);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue && cudaGetLastError() == cudaSuccess);
    return passed();
}

// Attributes of streams, asked, set and copied; their devices; events with flags; host functions; older names of calls.
// devices: 2
#include "check.h"
#include <atomic>
#include <cstring>
extern "C" cudaError_t cudaProfilerStart();
extern "C" cudaError_t cudaProfilerStop();
__global__ void work(int *p, int n) {
    for (int i = 0; i < n; i++) atomicAdd(p, 1);
}
static void add(void *p) { ++*(std::atomic<int> *)p; }
int main() {
    int *d, result;
    CHECK(cudaMalloc(&d, 4));
    CHECK(cudaMemset(d, 0, 4));
    cudaStream_t s, t;
    int low, high;
    CHECK(cudaDeviceGetStreamPriorityRange(&low, &high));
    EXPECT(high < low);
    CHECK(cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, high));
    CHECK(cudaStreamCreate(&t));
    cudaStreamAttrValue v = {}, w = {};
    CHECK(cudaStreamGetAttribute(s, cudaStreamAttributePriority, &v));
    EXPECT(v.priority == high);
    CHECK(cudaStreamGetAttribute(t, cudaStreamAttributePriority, &v));
    EXPECT(v.priority == low);
    v.priority = high;
    CHECK(cudaStreamSetAttribute(t, cudaStreamAttributePriority, &v));
    int p;
    CHECK(cudaStreamGetPriority(t, &p));
    EXPECT(p == high);
    v = {};
    v.syncPolicy = cudaSyncPolicyBlockingSync;
    CHECK(cudaStreamSetAttribute(s, cudaStreamAttributeSynchronizationPolicy, &v));
    CHECK(cudaStreamCopyAttributes(t, s));
    CHECK(cudaStreamGetAttribute(t, cudaStreamAttributeSynchronizationPolicy, &w));
    EXPECT(w.syncPolicy == cudaSyncPolicyBlockingSync);
    cudaDeviceProp prop;
    CHECK(cudaGetDeviceProperties(&prop, 0));
    if (prop.accessPolicyMaxWindowSize) {
        v = {};
        v.accessPolicyWindow.base_ptr = d;
        v.accessPolicyWindow.num_bytes = 4;
        v.accessPolicyWindow.hitRatio = 0.5f;
        v.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
        v.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
        CHECK(cudaStreamSetAttribute(s, cudaStreamAttributeAccessPolicyWindow, &v));
        CHECK(cudaStreamGetAttribute(s, cudaStreamAttributeAccessPolicyWindow, &w));
        EXPECT(w.accessPolicyWindow.base_ptr == d && w.accessPolicyWindow.hitRatio == 0.5f);
        v.accessPolicyWindow.missProp = cudaAccessPropertyPersisting;  // not allowed for misses
        EXPECT(cudaStreamSetAttribute(s, cudaStreamAttributeAccessPolicyWindow, &v) == cudaErrorInvalidValue);
        cudaGetLastError();
        CHECK(cudaCtxResetPersistingL2Cache());
    }
    int device = -1;
    CHECK(cudaSetDevice(1));
    cudaStream_t other;
    CHECK(cudaStreamCreate(&other));
    CHECK(cudaStreamGetDevice(s, &device));
    EXPECT(device == 0);
    CHECK(cudaStreamGetDevice(other, &device));
    EXPECT(device == 1);
    CHECK(cudaStreamGetDevice(0, &device));
    EXPECT(device == 1);
    work<<<1, 1, 0, s>>>(d, 1);  // a stream of another device
    cudaError_t error = cudaGetLastError();
    EXPECT(error == cudaErrorInvalidResourceHandle || error == cudaSuccess);
    CHECK(cudaSetDevice(0));
    CHECK(cudaMemset(d, 0, 4));
    cudaEvent_t e, timed;
    CHECK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    CHECK(cudaEventCreate(&timed));
    work<<<4, 64, 0, s>>>(d, 10);
    CHECK(cudaEventRecordWithFlags(e, s, cudaEventRecordDefault));
    CHECK(cudaStreamWaitEvent(t, e, cudaEventWaitDefault));
    work<<<1, 1, 0, t>>>(d, 1);
    CHECK(cudaEventRecord(timed, t));
    CHECK(cudaEventSynchronize(timed));
    CHECK(cudaMemcpy(&result, d, 4, cudaMemcpyDeviceToHost));
    EXPECT(result == 2561);
    float ms;
    EXPECT(cudaEventElapsedTime(&ms, e, timed) == cudaErrorInvalidResourceHandle);  // one without times
    cudaGetLastError();
    EXPECT(cudaEventRecordWithFlags(e, s, 77) == cudaErrorInvalidValue);
    cudaGetLastError();
    std::atomic<int> called{0};
    CHECK(cudaLaunchHostFunc_v2(s, add, &called, cudaHostTaskSpinWait));
    CHECK(cudaLaunchHostFunc_v2(s, add, &called, cudaHostTaskBlocking));
    CHECK(cudaLaunchHostFunc(s, add, &called));
    CHECK(cudaStreamSynchronize(s));
    EXPECT(called == 3);
    EXPECT(cudaLaunchHostFunc_v2(s, add, &called, 9) == cudaErrorInvalidValue);
    cudaGetLastError();
    unsigned flags;
    CHECK(cudaStreamGetFlags(s, &flags));
    EXPECT(flags == cudaStreamNonBlocking);
    unsigned long long id, id2;
    CHECK(cudaStreamGetId(s, &id));
    CHECK(cudaStreamGetId(t, &id2));
    EXPECT(id != id2);

    CHECK(cudaProfilerStart());
    CHECK(cudaProfilerStop());
    int version;
    CHECK(cudaDriverGetVersion(&version));
    EXPECT(version >= 12000);
    cudaDeviceProp want;
    memset(&want, 0, sizeof want);
    want.major = 6;
    CHECK(cudaChooseDevice(&device, &want));
    EXPECT(device == 0 || device == 1);
    CHECK(cudaInitDevice(1, 0, 0));
    CHECK(cudaGetDevice(&device));
    EXPECT(device == 0);
    CHECK(cudaInitDevice(1, cudaDeviceScheduleYield, cudaInitDeviceFlagsAreValid));
    unsigned how;
    CHECK(cudaGetDeviceFlags(&how));
    EXPECT((how & cudaDeviceScheduleMask) == cudaDeviceScheduleAuto);
    CHECK(cudaSetDevice(1));
    CHECK(cudaGetDeviceFlags(&how));
    EXPECT((how & cudaDeviceScheduleMask) == cudaDeviceScheduleYield);
    CHECK(cudaSetDevice(0));
    EXPECT(cudaInitDevice(1, 0, 64) == cudaErrorInvalidValue);
    cudaGetLastError();
    EXPECT(cudaInitDevice(7, 0, 0) == cudaErrorInvalidDevice);
    cudaGetLastError();
    int valid[] = {1, 0};
    CHECK(cudaSetValidDevices(valid, 2));
    char bus[32];
    CHECK(cudaDeviceGetPCIBusId(bus, 32, 1));
    CHECK(cudaDeviceGetByPCIBusId(&device, bus));
    EXPECT(device == 1);
    EXPECT(cudaDeviceGetByPCIBusId(&device, "ffff:ff:ff.0") == cudaErrorInvalidValue || cudaGetLastError() != cudaSuccess);
    cudaGetLastError();
    cudaFuncCache cache;
    CHECK(cudaDeviceSetCacheConfig(cudaFuncCachePreferShared));
    CHECK(cudaDeviceGetCacheConfig(&cache));
    EXPECT(cache == cudaFuncCachePreferShared);
    return passed();
}

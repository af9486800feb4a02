// Calls in unusual orders and corners: callbacks that wait, callbacks with errors, pools trimmed, memory ranges asked, batches,
// attributes.
#include "check.h"
#include <atomic>
#include <chrono>
#include <cuda.h>
#include <string>
#include <thread>
#include <vector>

__global__ void set(int *p, int v) { *p = v; }

__global__ void spin(volatile int *p) {
    while (!*p) {}
    p[1] = 9;
}

__global__ void big(int *p) {
    extern __shared__ int s[];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    p[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}

__global__ void heap(int **p, int n) {
    int *q = (int *)malloc(n * 4);
    for (int i = 0; i < n; i++) q[i] = i + threadIdx.x;
    p[threadIdx.x] = q;
}

__global__ void heap_sum(int **p, int n, int *out) {
    int s = 0;
    for (int i = 0; i < n; i++) s += p[threadIdx.x][i];
    out[threadIdx.x] = s;
    free(p[threadIdx.x]);
}

__global__ void huge(void **p) { *p = malloc(1ull << 40); }

static std::atomic<int> order{0};

void CUDART_CB step(void *at) { *(int *)at = ++order; }

void CUDART_CB old(cudaStream_t, cudaError_t e, void *at) { *(int *)at = e == cudaSuccess ? ++order : -1; }

int main() {
    int *m;
    CHECK(cudaMallocManaged(&m, 4096));
    m[0] = m[1] = 0;
    cudaStream_t a, b;
    int low, high;
    CHECK(cudaDeviceGetStreamPriorityRange(&low, &high));
    EXPECT(low == 0 && high < 0);
    CHECK(cudaStreamCreateWithPriority(&a, cudaStreamNonBlocking, high));
    CHECK(cudaStreamCreate(&b));
    int pr;
    CHECK(cudaStreamGetPriority(a, &pr));
    EXPECT(pr == high);
    unsigned fl;
    CHECK(cudaStreamGetFlags(a, &fl));
    EXPECT(fl == cudaStreamNonBlocking);
    unsigned long long ia, ib;
    CHECK(cudaStreamGetId(a, &ia));
    CHECK(cudaStreamGetId(b, &ib));
    EXPECT(ia != ib);
    // host functions between kernels
    int at[4] = {};
    spin<<<1, 1, 0, a>>>(m);
    CHECK(cudaLaunchHostFunc(a, step, at));
    CHECK(cudaStreamAddCallback(a, old, at + 1, 0));
    EXPECT(cudaStreamQuery(a) == cudaErrorNotReady);
    set<<<1, 1, 0, b>>>(m + 5, 7);
    CHECK(cudaStreamSynchronize(b));
    EXPECT(m[5] == 7 && !at[0]);
    *(volatile int *)m = 1;
    CHECK(cudaStreamSynchronize(a));
    EXPECT(at[0] == 1 && at[1] == 2 && m[1] == 9);
    // a host thread that waits for an event
    cudaEvent_t e, f;
    CHECK(cudaEventCreate(&e));
    CHECK(cudaEventCreateWithFlags(&f, cudaEventBlockingSync));
    CHECK(cudaEventRecord(e, a));
    std::thread t([&] {
        CHECK(cudaEventSynchronize(e));
        at[2] = 1;
    });
    t.join();
    EXPECT(at[2]);
    float ms;
    CHECK(cudaEventRecord(f, a));
    CHECK(cudaEventSynchronize(f));
    CHECK(cudaEventElapsedTime(&ms, e, f));
    EXPECT(ms >= 0);
    // dynamic shared memory beyond 48 KB
    big<<<1, 32, 60000>>>(m);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
    CHECK(cudaFuncSetAttribute(big, cudaFuncAttributeMaxDynamicSharedMemorySize, 60000));
    big<<<1, 32, 60000>>>(m);
    CHECK(cudaDeviceSynchronize());
    EXPECT(m[0] == 31 && m[31] == 0);
    EXPECT(cudaFuncSetAttribute(big, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20) == cudaErrorInvalidValue);
    cudaGetLastError();
    cudaFuncAttributes fa;
    CHECK(cudaFuncGetAttributes(&fa, big));
    EXPECT(fa.maxDynamicSharedSizeBytes == 60000 && fa.maxThreadsPerBlock == 1024);
    set<<<0, 1>>>(m, 1);
    EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
    set<<<1, 2048>>>(m, 1);
    EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
    set<<<dim3(1, 70000), 1>>>(m, 1);
    EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
    // the heap of the device
    size_t size;
    CHECK(cudaDeviceGetLimit(&size, cudaLimitMallocHeapSize));
    EXPECT(size == 8 << 20);
    int **p;
    CHECK(cudaMalloc(&p, 8 * 32));
    heap<<<1, 32>>>(p, 100);
    heap_sum<<<1, 32>>>(p, 100, m);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 32; i++) EXPECT(m[i] == 4950 + 100 * i);
    void **h;
    CHECK(cudaMallocManaged(&h, 8));
    *h = (void *)1;
    huge<<<1, 1>>>(h);
    CHECK(cudaDeviceSynchronize());
    EXPECT(*h == nullptr);
    // pools
    cudaMemPool_t pool;
    CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
    uint64_t keep = UINT64_MAX, used;
    CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
    void *x, *y;
    CHECK(cudaMallocAsync(&x, 1 << 20, a));
    CHECK(cudaMallocAsync(&y, 1 << 20, a));
    CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    EXPECT(used == 2 << 20);
    CHECK(cudaFreeAsync(x, a));
    CHECK(cudaFreeAsync(y, a));
    CHECK(cudaStreamSynchronize(a));
    CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &used));
    EXPECT(used >= 2 << 20);
    CHECK(cudaMemPoolTrimTo(pool, 0));
    cudaMemPoolProps props{};
    props.allocType = cudaMemAllocationTypePinned;
    props.location = {cudaMemLocationTypeDevice, 0};
    props.maxSize = 1 << 21;
    cudaMemPool_t mine;
    CHECK(cudaMemPoolCreate(&mine, &props));
    CHECK(cudaMallocFromPoolAsync(&x, 1 << 20, mine, b));
    EXPECT(cudaMallocFromPoolAsync(&y, 1 << 22, mine, b) == cudaErrorMemoryAllocation);
    cudaGetLastError();
    CHECK(cudaFree(x));
    CHECK(cudaMemPoolDestroy(mine));
    // managed memory
    int *r;
    CHECK(cudaMallocManaged(&r, 1 << 20));
    cudaMemLocation dev{cudaMemLocationTypeDevice, 0}, cpu{cudaMemLocationTypeHost, 0};
    CHECK(cudaMemAdvise(r, 1 << 20, cudaMemAdviseSetReadMostly, dev));
    CHECK(cudaMemAdvise(r, 1 << 20, cudaMemAdviseSetPreferredLocation, cpu));
    CHECK(cudaMemPrefetchAsync(r, 1 << 20, dev, 0, a));
    CHECK(cudaStreamSynchronize(a));
    int q;
    CHECK(cudaMemRangeGetAttribute(&q, 4, cudaMemRangeAttributeReadMostly, r, 1 << 20));
    EXPECT(q == 1);
    CHECK(cudaMemRangeGetAttribute(&q, 4, cudaMemRangeAttributeLastPrefetchLocation, r, 4096));
    EXPECT(q == 0);
    CHECK(cudaMemRangeGetAttribute(&q, 4, cudaMemRangeAttributePreferredLocation, r, 4096));
    EXPECT(q == cudaCpuDeviceId);
    EXPECT(cudaMemPrefetchAsync(p, 16, dev, 0, a) == cudaErrorInvalidValue);
    cudaGetLastError();
    CHECK(cudaStreamAttachMemAsync(a, r, 0, cudaMemAttachSingle));
    CHECK(cudaStreamSynchronize(a));
    // registered and mapped memory
    std::vector<int> v(5000);
    CHECK(cudaHostRegister(v.data(), 20000, cudaHostRegisterMapped | cudaHostRegisterPortable));
    int *dp;
    CHECK(cudaHostGetDevicePointer(&dp, v.data(), 0));
    set<<<1, 1>>>(dp + 4999, 77);
    CHECK(cudaDeviceSynchronize());
    EXPECT(v[4999] == 77);
    EXPECT(cudaHostRegister(v.data(), 4, 0) == cudaErrorHostMemoryAlreadyRegistered);
    cudaGetLastError();
    CHECK(cudaHostUnregister(v.data()));
    EXPECT(cudaHostUnregister(v.data()) == cudaErrorHostMemoryNotRegistered);
    cudaGetLastError();
    // the driver beside the runtime
    void *entry;
    cudaDriverEntryPointQueryResult res;
    CHECK(cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", &entry, 12000, cudaEnableDefault, &res));
    CUcontext c;
    EXPECT(((decltype(&cuCtxGetCurrent))entry)(&c) == CUDA_SUCCESS && c);
    cudaFunction_t fn;
    CHECK(cudaGetFuncBySymbol(&fn, (void *)set));
    void *args[] = {&m, &q};
    q = 55;
    CHECK(cudaGetDriverEntryPointByVersion("cuLaunchKernel", &entry, 12000, cudaEnableDefault, &res));
    EXPECT(((decltype(&cuLaunchKernel))entry)((CUfunction)fn, 1, 1, 1, 1, 1, 1, 0, b, args, nullptr) == CUDA_SUCCESS);
    CHECK(cudaStreamSynchronize(b));
    EXPECT(m[0] == 55);
    const char *name;
    CHECK(cudaGetDriverEntryPointByVersion("cuFuncGetName", &entry, 12030, cudaEnableDefault, &res));
    EXPECT(((decltype(&cuFuncGetName))entry)(&name, (CUfunction)fn) == CUDA_SUCCESS && std::string(name) == "_Z3setPii");
    CHECK(cudaGetDriverEntryPointByVersion("cuMemAlloc", &entry, 12000, cudaEnableDefault, &res));
    EXPECT(entry && res == cudaDriverEntryPointSuccess);
    // copies in two dimensions, of overlapping kinds, and wrong ones
    CHECK(cudaMemcpy2D(m, 64, v.data(), 40, 40, 10, cudaMemcpyDefault));
    EXPECT(cudaMemcpy2D(m, 32, v.data(), 40, 40, 10, cudaMemcpyDefault) == cudaErrorInvalidPitchValue);
    cudaGetLastError();
    EXPECT(cudaMemcpy(m, v.data(), 4, (cudaMemcpyKind)77) == cudaErrorInvalidMemcpyDirection);
    cudaGetLastError();
    CHECK(cudaStreamDestroy(a));
    CHECK(cudaEventDestroy(e));
    EXPECT(cudaStreamSynchronize(a) != cudaSuccess);
    cudaGetLastError();
    CHECK(cudaDeviceReset());
    CHECK(cudaMallocManaged(&m, 4));
    set<<<1, 1>>>(m, 3);
    CHECK(cudaDeviceSynchronize());
    EXPECT(*m == 3);
    return passed();
}

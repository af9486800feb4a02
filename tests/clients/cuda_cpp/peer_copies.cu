// devices: 2
// Two devices: copies between them in every form, memory of the other in kernels, waits for each other's events.
#include "check.h"
#include <vector>

__global__ void fill(int *to, int n, int v) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = v + i;
}

__global__ void add(const int *from, int *to, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] += from[i];
}

__device__ int where = 5;

__global__ void bump() { where += 1; }

__constant__ int factor;

__global__ void scaled(int *to) { to[threadIdx.x] = factor * threadIdx.x; }

int main() {
    int count;
    CHECK(cudaGetDeviceCount(&count));
    EXPECT(count == 2);
    const int n = 1000;
    int *a[2], can;
    cudaStream_t s[2];
    cudaEvent_t e[2];
    for (int d = 0; d < 2; d++) {
        CHECK(cudaSetDevice(d));
        CHECK(cudaMalloc(&a[d], n * 4));
        CHECK(cudaStreamCreateWithFlags(&s[d], cudaStreamNonBlocking));
        CHECK(cudaEventCreateWithFlags(&e[d], cudaEventDisableTiming));
        CHECK(cudaDeviceCanAccessPeer(&can, d, 1 - d));
        EXPECT(can == 1);
        fill<<<4, 256, 0, s[d]>>>(a[d], n, 1000 * d);
        CHECK(cudaEventRecord(e[d], s[d]));
    }
    CHECK(cudaSetDevice(0));
    CHECK(cudaDeviceEnablePeerAccess(1, 0));
    EXPECT(cudaDeviceEnablePeerAccess(1, 0) == cudaErrorPeerAccessAlreadyEnabled);
    cudaGetLastError();
    EXPECT(cudaDeviceEnablePeerAccess(0, 0) == cudaErrorInvalidDevice);
    cudaGetLastError();
    CHECK(cudaStreamWaitEvent(s[0], e[1], 0));
    add<<<4, 256, 0, s[0]>>>(a[1], a[0], n);
    CHECK(cudaStreamSynchronize(s[0]));
    std::vector<int> h(n);
    CHECK(cudaMemcpy(h.data(), a[0], n * 4, cudaMemcpyDefault));
    for (int i = 0; i < n; i++) EXPECT(h[i] == 1000 + 2 * i);
    EXPECT(cudaEventRecord(e[1], s[0]) != cudaSuccess);
    cudaGetLastError(); // an event of another device
    // copies
    CHECK(cudaMemcpyPeer(a[1], 1, a[0], 0, n * 4));
    CHECK(cudaMemcpy(h.data(), a[1], n * 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) EXPECT(h[i] == 1000 + 2 * i);
    CHECK(cudaMemsetAsync(a[0], 0, n * 4, s[0]));
    CHECK(cudaMemcpyPeerAsync(a[1] + 10, 1, a[0], 0, 40, s[0]));
    CHECK(cudaStreamSynchronize(s[0]));
    CHECK(cudaMemcpy(h.data(), a[1], n * 4, cudaMemcpyDeviceToHost));
    EXPECT(h[9] == 1018 && h[10] == 0 && h[19] == 0 && h[20] == 1040);
    cudaPitchedPtr p[2];
    for (int d = 0; d < 2; d++) {
        CHECK(cudaSetDevice(d));
        CHECK(cudaMalloc3D(&p[d], make_cudaExtent(40, 6, 3)));
        CHECK(cudaMemset3D(p[d], d + 1, make_cudaExtent(40, 6, 3)));
    }
    cudaMemcpy3DPeerParms q{};
    q.srcDevice = 1;
    q.dstDevice = 0;
    q.srcPtr = p[1];
    q.dstPtr = p[0];
    q.dstPos = make_cudaPos(8, 1, 1);
    q.extent = make_cudaExtent(16, 3, 2);
    CHECK(cudaMemcpy3DPeer(&q));
    std::vector<unsigned char> b(40 * 6 * 3);
    cudaMemcpy3DParms r{};
    r.srcPtr = p[0];
    r.dstPtr = make_cudaPitchedPtr(b.data(), 40, 40, 6);
    r.extent = make_cudaExtent(40, 6, 3);
    r.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3D(&r));
    for (int z = 0; z < 3; z++)
        for (int y = 0; y < 6; y++)
            for (int x = 0; x < 40; x++)
                EXPECT(b[(z * 6 + y) * 40 + x] == ((z >= 1 && y >= 1 && y < 4 && x >= 8 && x < 24) ? 2 : 1));
    // variables of each device
    for (int d = 0; d < 2; d++) {
        CHECK(cudaSetDevice(d));
        for (int i = 0; i <= d; i++) bump<<<1, 1>>>();
        int f = d + 3;
        CHECK(cudaMemcpyToSymbol(factor, &f, 4));
    }
    for (int d = 0; d < 2; d++) {
        CHECK(cudaSetDevice(d));
        int v;
        CHECK(cudaMemcpyFromSymbol(&v, where, 4));
        EXPECT(v == 6 + d);
        scaled<<<1, 8>>>(a[d]);
        CHECK(cudaMemcpy(h.data(), a[d], 32, cudaMemcpyDeviceToHost));
        EXPECT(h[7] == 7 * (d + 3));
        void *at;
        CHECK(cudaGetSymbolAddress(&at, where));
        cudaPointerAttributes t;
        CHECK(cudaPointerGetAttributes(&t, at));
        EXPECT(t.device == d && t.type == cudaMemoryTypeDevice);
        CHECK(cudaPointerGetAttributes(&t, a[1 - d]));
        EXPECT(t.device == 1 - d);
    }
    // a launch in a stream of the other device
    CHECK(cudaSetDevice(1));
    fill<<<1, 1, 0, s[0]>>>(a[0], 1, 3);
    EXPECT(cudaGetLastError() == cudaErrorInvalidResourceHandle);
    CHECK(cudaDeviceReset());
    CHECK(cudaSetDevice(0));
    int attr;
    CHECK(cudaDeviceGetP2PAttribute(&attr, cudaDevP2PAttrAccessSupported, 0, 1));
    EXPECT(attr == 1);
    CHECK(cudaMemcpy(h.data(), a[0], 4, cudaMemcpyDeviceToHost));
    // pools of a device that the other may access
    cudaMemPool_t pool;
    CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
    cudaMemAccessDesc access{{cudaMemLocationTypeDevice, 1}, cudaMemAccessFlagsProtReadWrite};
    CHECK(cudaMemPoolSetAccess(pool, &access, 1));
    cudaMemAccessFlags flags;
    cudaMemLocation l{cudaMemLocationTypeDevice, 1};
    CHECK(cudaMemPoolGetAccess(&flags, pool, &l));
    EXPECT(flags == cudaMemAccessFlagsProtReadWrite);
    int *m;
    CHECK(cudaMallocAsync(&m, 4096, s[0]));
    CHECK(cudaStreamSynchronize(s[0]));
    CHECK(cudaSetDevice(1));
    fill<<<4, 256>>>(m, n, 9);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(h.data(), m, n * 4, cudaMemcpyDefault));
    EXPECT(h[999] == 1008);
    CHECK(cudaSetDevice(0));
    CHECK(cudaFreeAsync(m, s[0]));
    CHECK(cudaStreamSynchronize(s[0]));
    return passed();
}

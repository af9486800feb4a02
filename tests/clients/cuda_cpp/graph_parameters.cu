// Graphs whose nodes get other parameters: copies, fills, kernels, host functions, children, nodes that are skipped; whole
// updates, of the same shape and of another.
#include "check.h"
#include <vector>
__global__ void axpy(float *y, const float *x, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
static void host_add(void *p) {
    ++*(int *)p;
}
int main() {
    const int n = 1000;
    float *x, *y, *hx = (float *)malloc(4 * n), *hy = (float *)malloc(4 * n), *hz = (float *)malloc(4 * n);
    int calls = 0, calls2 = 0;
    CHECK(cudaMalloc(&x, 4 * n));
    CHECK(cudaMalloc(&y, 4 * n));
    for (int i = 0; i < n; ++i) hx[i] = i % 17, hz[i] = i % 5;
    cudaGraph_t g;
    CHECK(cudaGraphCreate(&g, 0));
    cudaGraphNode_t in, set, k, out, host, child;
    CHECK(cudaGraphAddMemcpyNode1D(&in, g, nullptr, 0, x, hx, 4 * n, cudaMemcpyHostToDevice));
    cudaMemsetParams m = {};
    m.dst = y;
    m.elementSize = 4;
    m.value = 0x3f800000;
    m.width = n;
    m.height = 1;
    CHECK(cudaGraphAddMemsetNode(&set, g, nullptr, 0, &m));
    float a = 2;
    int nn = n;
    void *args[] = {&y, &x, &a, &nn};
    cudaKernelNodeParams kp = {};
    kp.func = (void *)axpy;
    kp.gridDim = dim3(8);
    kp.blockDim = dim3(128);
    kp.kernelParams = args;
    cudaGraphNode_t deps[] = {in, set};
    CHECK(cudaGraphAddKernelNode(&k, g, deps, 2, &kp));
    cudaGraph_t cg;
    CHECK(cudaGraphCreate(&cg, 0));
    cudaGraphNode_t ck, ch;
    a = 10;
    CHECK(cudaGraphAddKernelNode(&ck, cg, nullptr, 0, &kp));
    cudaHostNodeParams hp = {host_add, &calls};
    CHECK(cudaGraphAddHostNode(&ch, cg, &ck, 1, &hp));
    CHECK(cudaGraphAddChildGraphNode(&child, g, &k, 1, cg));
    CHECK(cudaGraphAddMemcpyNode1D(&out, g, &child, 1, hy, y, 4 * n, cudaMemcpyDeviceToHost));
    CHECK(cudaGraphAddHostNode(&host, g, &out, 1, &hp));
    size_t nodes, edges;
    CHECK(cudaGraphGetNodes(g, nullptr, &nodes));
    CHECK(cudaGraphGetEdges(g, nullptr, nullptr, nullptr, &edges));
    EXPECT(nodes == 6 && edges == 5);
    size_t roots = 10;
    cudaGraphNode_t rs[10];
    CHECK(cudaGraphGetRootNodes(g, rs, &roots));
    EXPECT(roots == 2 && !rs[2]);
    cudaGraphNodeType t;
    CHECK(cudaGraphNodeGetType(child, &t));
    EXPECT(t == cudaGraphNodeTypeGraph);
    cudaGraphExec_t e;
    CHECK(cudaGraphInstantiate(&e, g, 0));
    cudaStream_t s;
    CHECK(cudaStreamCreate(&s));
    CHECK(cudaGraphLaunch(e, s));
    CHECK(cudaStreamSynchronize(s));
    EXPECT(calls == 2);
    for (int i = 0; i < n; ++i) EXPECT(hy[i] == 1 + 12 * hx[i]);
    // parameters of single nodes
    CHECK(cudaGraphExecMemcpyNodeSetParams1D(e, in, x, hz, 4 * n, cudaMemcpyHostToDevice));
    m.value = 0;
    CHECK(cudaGraphExecMemsetNodeSetParams(e, set, &m));
    a = 3;
    CHECK(cudaGraphExecKernelNodeSetParams(e, k, &kp));
    hp.userData = &calls2;
    CHECK(cudaGraphExecHostNodeSetParams(e, host, &hp));
    CHECK(cudaGraphLaunch(e, s));
    CHECK(cudaStreamSynchronize(s));
    EXPECT(calls == 3 && calls2 == 1);
    for (int i = 0; i < n; ++i) EXPECT(hy[i] == 13 * hz[i]);
    // disable a node
    CHECK(cudaGraphNodeSetEnabled(e, k, 0));
    CHECK(cudaGraphLaunch(e, s));
    CHECK(cudaStreamSynchronize(s));
    for (int i = 0; i < n; ++i) EXPECT(hy[i] == 10 * hz[i]);
    unsigned on;
    CHECK(cudaGraphNodeGetEnabled(e, k, &on));
    EXPECT(!on);
    CHECK(cudaGraphNodeSetEnabled(e, k, 1));
    // child graph's parameters
    cudaGraph_t cg2;
    CHECK(cudaGraphClone(&cg2, cg));
    cudaGraphNode_t in2;
    CHECK(cudaGraphNodeFindInClone(&in2, ck, cg2));
    a = 100;
    CHECK(cudaGraphKernelNodeSetParams(in2, &kp));
    CHECK(cudaGraphExecChildGraphNodeSetParams(e, child, cg2));
    CHECK(cudaGraphLaunch(e, s));
    CHECK(cudaStreamSynchronize(s));
    for (int i = 0; i < n; ++i) EXPECT(hy[i] == 103 * hz[i]);
    // whole update by a captured graph of the same and of another shape
    cudaGraph_t cap;
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    CHECK(cudaMemsetAsync(y, 0, 4 * n, s));
    axpy<<<8, 128, 0, s>>>(y, x, 5.f, n);
    CHECK(cudaMemcpyAsync(hy, y, 4 * n, cudaMemcpyDeviceToHost, s));
    CHECK(cudaStreamEndCapture(s, &cap));
    cudaGraphExecUpdateResultInfo info;
    EXPECT(cudaGraphExecUpdate(e, cap, &info) == cudaErrorGraphExecUpdateFailure &&
           info.result == cudaGraphExecUpdateErrorTopologyChanged);
    cudaGetLastError();
    cudaGraphExec_t ce;
    CHECK(cudaGraphInstantiate(&ce, cap, 0));
    CHECK(cudaGraphLaunch(ce, s));
    CHECK(cudaStreamSynchronize(s));
    for (int i = 0; i < n; ++i) EXPECT(hy[i] == 5 * hz[i]);
    cudaGraph_t cap2;
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    CHECK(cudaMemsetAsync(y, 0, 4 * n, s));
    axpy<<<4, 256, 0, s>>>(y, x, 6.f, n);
    CHECK(cudaMemcpyAsync(hy, y, 4 * n, cudaMemcpyDeviceToHost, s));
    CHECK(cudaStreamEndCapture(s, &cap2));
    CHECK(cudaGraphExecUpdate(ce, cap2, &info));
    EXPECT(info.result == cudaGraphExecUpdateSuccess);
    CHECK(cudaGraphLaunch(ce, s));
    CHECK(cudaStreamSynchronize(s));
    for (int i = 0; i < n; ++i) EXPECT(hy[i] == 6 * hz[i]);
    // 3D memcpy node into an array and back, 2D memset with a pitch
    cudaChannelFormatDesc d = cudaCreateChannelDesc<int>();
    cudaArray_t arr;
    CHECK(cudaMalloc3DArray(&arr, &d, make_cudaExtent(8, 4, 3), 0));
    int src[96], dst[96] = {};
    for (int i = 0; i < 96; ++i) src[i] = i * i;
    cudaMemcpy3DParms p3 = {};
    p3.srcPtr = make_cudaPitchedPtr(src, 32, 8, 4);
    p3.dstArray = arr;
    p3.extent = make_cudaExtent(8, 4, 3);
    p3.kind = cudaMemcpyHostToDevice;
    cudaGraph_t g3;
    CHECK(cudaGraphCreate(&g3, 0));
    cudaGraphNode_t n1, n2, n3;
    CHECK(cudaGraphAddMemcpyNode(&n1, g3, nullptr, 0, &p3));
    cudaMemcpy3DParms q3 = {};
    q3.srcArray = arr;
    q3.srcPos = make_cudaPos(2, 1, 1);
    q3.dstPtr = make_cudaPitchedPtr(dst, 32, 8, 4);
    q3.dstPos = make_cudaPos(4, 0, 0);
    q3.extent = make_cudaExtent(5, 2, 2);
    q3.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaGraphAddMemcpyNode(&n2, g3, &n1, 1, &q3));
    float *pp;
    size_t pitch;
    CHECK(cudaMallocPitch(&pp, &pitch, 40, 6));
    cudaMemsetParams mp = {};
    mp.dst = pp;
    mp.pitch = pitch;
    mp.elementSize = 2;
    mp.value = 0xabcd;
    mp.width = 20;
    mp.height = 6;
    CHECK(cudaGraphAddMemsetNode(&n3, g3, nullptr, 0, &mp));
    cudaGraphExec_t e3;
    CHECK(cudaGraphInstantiate(&e3, g3, 0));
    CHECK(cudaGraphLaunch(e3, s));
    CHECK(cudaStreamSynchronize(s));
    for (int z = 0; z < 2; ++z)
        for (int y2 = 0; y2 < 2; ++y2)
            for (int x2 = 0; x2 < 5; ++x2) {
                int v = (z + 1) * 32 + (y2 + 1) * 8 + x2 + 2;
                EXPECT(dst[z * 32 + y2 * 8 + x2 + 1] == v * v);
            }
    unsigned short row[20];
    CHECK(cudaMemcpy(row, (char *)pp + 5 * pitch, 40, cudaMemcpyDefault));
    for (auto v : row) EXPECT(v == 0xabcd);
    return passed();
}

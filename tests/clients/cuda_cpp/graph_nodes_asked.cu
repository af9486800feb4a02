// Nodes that are asked for their parameters and get others: kernels with attributes, fills, host functions, events, allocations.
#include "check.h"
#include <cstring>
#include <vector>
__global__ void scale(float *x, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= a;
}
static void add(void *p) { ++*(int *)p; }
int main() {
    const int n = 1000;
    float *x, *y;
    CHECK(cudaMalloc(&x, 4 * n));
    CHECK(cudaMalloc(&y, 4 * n));
    cudaGraph_t graph;
    CHECK(cudaGraphCreate(&graph, 0));
    cudaGraphNode_t set, kernel, host, copy, record, wait;
    cudaMemsetParams m = {};
    m.dst = x, m.elementSize = 4, m.value = 0x3f800000, m.width = n, m.height = 1;
    CHECK(cudaGraphAddMemsetNode(&set, graph, nullptr, 0, &m));
    cudaMemsetParams m2 = {};
    CHECK(cudaGraphMemsetNodeGetParams(set, &m2));
    EXPECT(m2.dst == x && m2.elementSize == 4 && m2.value == 0x3f800000 && m2.width == size_t(n) && m2.height == 1);
    float a = 3;
    int count = n;
    void *args[] = {&x, &a, &count};
    cudaKernelNodeParams k = {};
    k.func = (void *)scale, k.gridDim = dim3(8), k.blockDim = dim3(128), k.kernelParams = args, k.sharedMemBytes = 64;
    CHECK(cudaGraphAddKernelNode(&kernel, graph, &set, 1, &k));
    a = 7;  // the node has copied its arguments
    cudaKernelNodeParams k2 = {};
    CHECK(cudaGraphKernelNodeGetParams(kernel, &k2));
    EXPECT(k2.func == (void *)scale && k2.gridDim.x == 8 && k2.blockDim.x == 128 && k2.sharedMemBytes == 64);
    EXPECT(*(float **)k2.kernelParams[0] == x && *(float *)k2.kernelParams[1] == 3 && *(int *)k2.kernelParams[2] == n);
    int one = 0, two = 0;
    cudaHostNodeParams h = {add, &one}, h2 = {};
    CHECK(cudaGraphAddHostNode(&host, graph, &kernel, 1, &h));
    CHECK(cudaGraphHostNodeGetParams(host, &h2));
    EXPECT(h2.fn == add && h2.userData == &one);
    cudaEvent_t e1, e2, e3;
    CHECK(cudaEventCreate(&e1)); CHECK(cudaEventCreate(&e2)); CHECK(cudaEventCreate(&e3));
    CHECK(cudaGraphAddEventRecordNode(&record, graph, &kernel, 1, e1));
    CHECK(cudaEventRecord(e2));
    CHECK(cudaGraphAddEventWaitNode(&wait, graph, &kernel, 1, e2));
    cudaEvent_t got;
    CHECK(cudaGraphEventRecordNodeGetEvent(record, &got));
    EXPECT(got == e1);
    CHECK(cudaGraphEventWaitNodeGetEvent(wait, &got));
    EXPECT(got == e2);
    CHECK(cudaGraphAddMemcpyNode1D(&copy, graph, &kernel, 1, y, x, 4 * n, cudaMemcpyDeviceToDevice));
    cudaMemcpy3DParms c = {};
    CHECK(cudaGraphMemcpyNodeGetParams(copy, &c));
    EXPECT(c.extent.width == 4u * n && c.extent.height == 1 && c.extent.depth == 1 && c.dstPtr.ptr == y && c.srcPtr.ptr == x);

    cudaGraphInstantiateParams ip = {};
    ip.flags = cudaGraphInstantiateFlagUpload;
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    ip.uploadStream = stream;
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiateWithParams(&exec, graph, &ip));
    EXPECT(ip.result_out == cudaGraphInstantiateSuccess);
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    std::vector<float> out(n);
    CHECK(cudaMemcpy(out.data(), y, 4 * n, cudaMemcpyDeviceToHost));
    for (float v : out) EXPECT(v == 3);
    EXPECT(one == 1 && cudaEventQuery(e1) == cudaSuccess);

    // of the executable graph only
    k.kernelParams = args;
    CHECK(cudaGraphExecKernelNodeSetParams(exec, kernel, &k));
    h.userData = &two;
    CHECK(cudaGraphExecHostNodeSetParams(exec, host, &h));
    CHECK(cudaGraphExecEventRecordNodeSetEvent(exec, record, e3));
    CHECK(cudaGraphExecEventWaitNodeSetEvent(exec, wait, e1));
    cudaMemcpy3DParms c2 = c;
    c2.extent.width = 4 * 10;
    CHECK(cudaGraphExecMemcpyNodeSetParams(exec, copy, &c2));
    CHECK(cudaMemset(y, 0, 4 * n));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(out.data(), y, 4 * n, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) EXPECT(out[i] == (i < 10 ? 7 : 0));
    EXPECT(one == 1 && two == 1 && cudaEventQuery(e3) == cudaSuccess);
    CHECK(cudaGraphEventRecordNodeGetEvent(record, &got));
    EXPECT(got == e1);  // the graph is as it was
    // of the graph: the executable one stays
    m.value = 0x40000000;
    CHECK(cudaGraphMemsetNodeSetParams(set, &m));
    CHECK(cudaGraphHostNodeSetParams(host, &h));
    CHECK(cudaGraphEventRecordNodeSetEvent(record, e3));
    CHECK(cudaGraphEventWaitNodeSetEvent(wait, e3));
    cudaGraphNodeParams any = {};
    any.type = cudaGraphNodeTypeKernel;
    any.kernel.func = (void *)scale;
    any.kernel.gridDim = dim3(4), any.kernel.blockDim = dim3(256), any.kernel.kernelParams = args;
    a = 5;
    CHECK(cudaGraphNodeSetParams(kernel, &any));
    CHECK(cudaGraphKernelNodeGetParams(kernel, &k2));
    EXPECT(k2.gridDim.x == 4 && *(float *)k2.kernelParams[1] == 5);
    cudaGraphExecUpdateResultInfo info;
    CHECK(cudaGraphExecUpdate(exec, graph, &info));
    EXPECT(info.result == cudaGraphExecUpdateSuccess);
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(out.data(), y, 4 * n, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) EXPECT(out[i] == 10);
    EXPECT(two == 2);
    a = 11;
    CHECK(cudaGraphExecNodeSetParams(exec, kernel, &any));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(out.data(), y, 4 * n, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) EXPECT(out[i] == 22);

    // attributes of kernel nodes, which can be copied
    cudaGraphNode_t other;
    CHECK(cudaGraphAddKernelNode(&other, graph, &kernel, 1, &k));
    cudaKernelNodeAttrValue v = {}, w = {};
    v.priority = -1;
    CHECK(cudaGraphKernelNodeSetAttribute(kernel, cudaLaunchAttributePriority, &v));
    CHECK(cudaGraphKernelNodeCopyAttributes(other, kernel));
    CHECK(cudaGraphKernelNodeGetAttribute(other, cudaLaunchAttributePriority, &w));
    EXPECT(w.priority == -1);

    // memory of a graph
    cudaGraph_t mg;
    CHECK(cudaGraphCreate(&mg, 0));
    cudaGraphNode_t alloc, use, release;
    cudaMemAllocNodeParams ap = {};
    ap.poolProps.allocType = cudaMemAllocationTypePinned;
    ap.poolProps.location.type = cudaMemLocationTypeDevice;
    ap.bytesize = 4 * n;
    CHECK(cudaGraphAddMemAllocNode(&alloc, mg, nullptr, 0, &ap));
    EXPECT(ap.dptr);
    m.dst = ap.dptr, m.value = 0x3f800000;
    cudaGraphNode_t fill;
    CHECK(cudaGraphAddMemsetNode(&fill, mg, &alloc, 1, &m));
    float *mine = (float *)ap.dptr;
    void *margs[] = {&mine, &a, &count};
    k.kernelParams = margs;
    CHECK(cudaGraphAddKernelNode(&use, mg, &fill, 1, &k));
    CHECK(cudaGraphAddMemcpyNode1D(&copy, mg, &use, 1, y, mine, 4 * n, cudaMemcpyDeviceToDevice));
    CHECK(cudaGraphAddMemFreeNode(&release, mg, &copy, 1, ap.dptr));
    void *freed;
    CHECK(cudaGraphMemFreeNodeGetParams(release, &freed));
    EXPECT(freed == ap.dptr);
    CHECK(cudaGraphInstantiate(&exec, mg, 0));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(out.data(), y, 4 * n, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) EXPECT(out[i] == 11);
    unsigned long long used = 1, high = 0, zero = 0;
    CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &used));
    CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &high));
    EXPECT(used <= high && high >= 4u * n);
    CHECK(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &zero));
    CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &high));
    EXPECT(high == used);
    CHECK(cudaDeviceGraphMemTrim(0));
    CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemCurrent, &used));
    // a copy of a graph with memory of its own is refused, and nodes of it cannot be destroyed
    cudaGraph_t clone;
    EXPECT(cudaGraphClone(&clone, mg) == cudaErrorNotSupported);
    cudaGetLastError();
    EXPECT(cudaGraphDestroyNode(alloc) != cudaSuccess);
    cudaGetLastError();
    return passed();
}

// Graphs that decide while they run: loops, branches and choices by conditional nodes; child graphs, updates and events.
#include "check.h"
#include <vector>

__global__ void begin(int *n, int value) { *n = value; }
__global__ void collatz(int *n, int *steps, cudaGraphConditionalHandle loop) {
    *n = *n % 2 ? 3 * *n + 1 : *n / 2;
    ++*steps;
    cudaGraphSetConditional(loop, *n != 1);
}
__global__ void decide(const int *steps, int than, cudaGraphConditionalHandle branch) {
    cudaGraphSetConditional(branch, *steps > than);
}
__global__ void choose(const int *which, cudaGraphConditionalHandle choice) { cudaGraphSetConditional(choice, *which); }
__global__ void add(int *to, int value) { atomicAdd(to, value); }

cudaGraphNode_t kernel_node(cudaGraph_t graph, std::vector<cudaGraphNode_t> after, void *function, std::vector<void *> arguments) {
    cudaGraphNodeParams parameters = {};
    parameters.type = cudaGraphNodeTypeKernel;
    parameters.kernel.func = function;
    parameters.kernel.gridDim = parameters.kernel.blockDim = dim3(1);
    parameters.kernel.kernelParams = arguments.data();
    cudaGraphNode_t made;
    CHECK(cudaGraphAddNode(&made, graph, after.data(), nullptr, after.size(), &parameters));
    return made;
}

cudaGraphNode_t conditional_node(cudaGraph_t graph, cudaGraphNode_t after, cudaGraphConditionalHandle handle,
                                 cudaGraphConditionalNodeType type, unsigned size, std::vector<cudaGraph_t> &bodies) {
    cudaGraphNodeParams parameters = {};
    parameters.type = cudaGraphNodeTypeConditional;
    parameters.conditional.handle = handle, parameters.conditional.type = type, parameters.conditional.size = size;
    cudaGraphNode_t made;
    CHECK(cudaGraphAddNode(&made, graph, &after, nullptr, 1, &parameters));
    bodies.assign(parameters.conditional.phGraph_out, parameters.conditional.phGraph_out + size);
    return made;
}

int main() {
    int *data;  // n, steps, sum
    CHECK(cudaMallocManaged(&data, 16 * sizeof(int)));
    CHECK(cudaMemset(data, 0, 16 * sizeof(int)));
    int *n = data, *steps = data + 1, *sum = data + 2, *which = data + 3;
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));

    // n = 27; do { step } while (n != 1); if (steps > 100) sum += 1; else sum += 1000;
    cudaGraph_t graph;
    CHECK(cudaGraphCreate(&graph, 0));
    cudaGraphConditionalHandle loop, branch;
    CHECK(cudaGraphConditionalHandleCreate(&loop, graph, 1, cudaGraphCondAssignDefault));
    CHECK(cudaGraphConditionalHandleCreate(&branch, graph, 0, cudaGraphCondAssignDefault));
    int start = 27, than = 100, one = 1, thousand = 1000;
    cudaGraphNode_t first = kernel_node(graph, {}, (void *)begin, {&n, &start});
    std::vector<cudaGraph_t> body, arms;
    cudaGraphNode_t looping = conditional_node(graph, first, loop, cudaGraphCondTypeWhile, 1, body);
    kernel_node(body[0], {}, (void *)collatz, {&n, &steps, &loop});
    cudaGraphNode_t deciding = kernel_node(graph, {looping}, (void *)decide, {&steps, &than, &branch});
    conditional_node(graph, deciding, branch, cudaGraphCondTypeIf, 2, arms);
    kernel_node(arms[0], {}, (void *)add, {&sum, &one});
    kernel_node(arms[1], {}, (void *)add, {&sum, &thousand});
    cudaGraphExec_t executable;
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    CHECK(cudaGraphUpload(executable, stream));
    for (int i = 1; i <= 2; i++) {
        *steps = 0;
        CHECK(cudaGraphLaunch(executable, stream));
        CHECK(cudaStreamSynchronize(stream));
        EXPECT(*n == 1 && *steps == 111 && *sum == i);
    }
    start = 6;  // eight steps: the other branch
    cudaKernelNodeParams changed = {};
    void *arguments[] = {&n, &start};
    changed.func = (void *)begin, changed.gridDim = changed.blockDim = dim3(1), changed.kernelParams = arguments;
    CHECK(cudaGraphExecKernelNodeSetParams(executable, first, &changed));
    *steps = 0;
    CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaStreamSynchronize(stream));
    EXPECT(*steps == 8 && *sum == 1002);
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));

    // switch (which), whose arms are captured from a stream
    CHECK(cudaGraphCreate(&graph, 0));
    cudaGraphConditionalHandle choice;
    CHECK(cudaGraphConditionalHandleCreate(&choice, graph, 0, 0));
    cudaGraphNode_t choosing = kernel_node(graph, {}, (void *)choose, {&which, &choice});
    conditional_node(graph, choosing, choice, cudaGraphCondTypeSwitch, 3, arms);
    for (int i = 0; i < 3; i++) {
        CHECK(cudaStreamBeginCaptureToGraph(stream, arms[i], nullptr, nullptr, 0, cudaStreamCaptureModeGlobal));
        for (int k = 0; k <= i; k++) add<<<1, 1, 0, stream>>>(sum, 10);
        cudaGraph_t same;
        CHECK(cudaStreamEndCapture(stream, &same));
        EXPECT(same == arms[i]);
    }
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    for (int i = 0; i < 5; i++) {  // beyond the arms: none
        *which = i, *sum = 0;
        CHECK(cudaGraphLaunch(executable, stream));
        CHECK(cudaStreamSynchronize(stream));
        EXPECT(*sum == (i < 3 ? 10 * (i + 1) : 0));
    }
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));

    // A child graph, twice, with an event between, and an update of the whole.
    cudaGraph_t child, parent;
    CHECK(cudaGraphCreate(&child, 0));
    CHECK(cudaGraphCreate(&parent, 0));
    int five = 5;
    kernel_node(child, {}, (void *)add, {&sum, &five});
    cudaEvent_t event;
    CHECK(cudaEventCreate(&event));
    cudaGraphNode_t nodes[4];
    CHECK(cudaGraphAddChildGraphNode(&nodes[0], parent, nullptr, 0, child));
    CHECK(cudaGraphAddEventRecordNode(&nodes[1], parent, &nodes[0], 1, event));
    CHECK(cudaGraphAddEventWaitNode(&nodes[2], parent, &nodes[1], 1, event));
    CHECK(cudaGraphAddChildGraphNode(&nodes[3], parent, &nodes[2], 1, child));
    CHECK(cudaGraphInstantiate(&executable, parent, 0));
    *sum = 0;
    CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaEventSynchronize(event));
    CHECK(cudaStreamSynchronize(stream));
    EXPECT(*sum == 10);
    cudaGraph_t clone;
    CHECK(cudaGraphClone(&clone, parent));
    cudaGraphNode_t inner, in_clone;
    cudaGraph_t inside;
    size_t count = 1;
    CHECK(cudaGraphNodeFindInClone(&in_clone, nodes[3], clone));
    CHECK(cudaGraphChildGraphNodeGetGraph(in_clone, &inside));
    CHECK(cudaGraphGetNodes(inside, &inner, &count));
    int seven = 7;
    void *sevens[] = {&sum, &seven};
    changed.func = (void *)add, changed.kernelParams = sevens;
    CHECK(cudaGraphKernelNodeSetParams(inner, &changed));
    cudaGraphExecUpdateResultInfo told;
    CHECK(cudaGraphExecUpdate(executable, clone, &told));
    EXPECT(told.result == cudaGraphExecUpdateSuccess);
    *sum = 0;
    CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaStreamSynchronize(stream));
    EXPECT(*sum == 12);
    kernel_node(clone, {}, (void *)add, {&sum, &five});
    EXPECT(cudaGraphExecUpdate(executable, clone, &told) == cudaErrorGraphExecUpdateFailure);
    EXPECT(told.result == cudaGraphExecUpdateErrorTopologyChanged);
    cudaGetLastError();
    cudaGraphNode_t roots[2], from[8], to[8];
    size_t edges = 8;
    count = 2;
    CHECK(cudaGraphGetRootNodes(clone, roots, &count));
    EXPECT(count == 2);
    CHECK(cudaGraphGetEdges(clone, from, to, nullptr, &edges));
    EXPECT(edges == 3);
    EXPECT(cudaGraphNodeSetEnabled(executable, nodes[0], 1) == cudaErrorInvalidValue);  // kernels, copies and fills are
    return passed();
}

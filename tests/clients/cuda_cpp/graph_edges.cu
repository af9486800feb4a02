// Graphs whose edges change after they were made: dependencies added, removed, asked for; nodes destroyed; names, a drawing.
#include "check.h"
#include <cstring>
#include <string>
#include <vector>

__global__ void append(int *log, int *count, int value) { log[atomicAdd(count, 1)] = value; }

static cudaGraphNode_t node(cudaGraph_t graph, int *log, int *count, int value) {
    void *args[] = {&log, &count, &value};
    cudaKernelNodeParams p = {};
    p.func = (void *)append;
    p.gridDim = p.blockDim = dim3(1);
    p.kernelParams = args;
    cudaGraphNode_t made;
    CHECK(cudaGraphAddKernelNode(&made, graph, nullptr, 0, &p));
    return made;
}

static std::vector<int> order(cudaGraph_t graph, int *log, int *count) {
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaMemset(count, 0, 4));
    CHECK(cudaGraphLaunch(exec, 0));
    CHECK(cudaDeviceSynchronize());
    int n;
    CHECK(cudaMemcpy(&n, count, 4, cudaMemcpyDeviceToHost));
    std::vector<int> found(n);
    CHECK(cudaMemcpy(found.data(), log, 4 * n, cudaMemcpyDeviceToHost));
    CHECK(cudaGraphExecDestroy(exec));
    return found;
}

int main() {
    int *log, *count;
    CHECK(cudaMalloc(&log, 4 * 64));
    CHECK(cudaMalloc(&count, 4));
    cudaGraph_t graph;
    CHECK(cudaGraphCreate(&graph, 0));
    std::vector<cudaGraphNode_t> nodes;
    for (int i = 0; i < 6; i++) nodes.push_back(node(graph, log, count, i));
    // 5 -> 4 -> ... -> 0
    std::vector<cudaGraphNode_t> from, to;
    for (int i = 5; i; i--) from.push_back(nodes[i]), to.push_back(nodes[i - 1]);
    CHECK(cudaGraphAddDependencies(graph, from.data(), to.data(), nullptr, 5));
    EXPECT((order(graph, log, count) == std::vector<int>{5, 4, 3, 2, 1, 0}));

    size_t n = 0;
    CHECK(cudaGraphNodeGetDependencies(nodes[2], nullptr, nullptr, &n));
    EXPECT(n == 1);
    cudaGraphNode_t found[8];
    n = 8;
    CHECK(cudaGraphNodeGetDependencies(nodes[2], found, nullptr, &n));
    EXPECT(n == 1 && found[0] == nodes[3] && found[1] == nullptr && found[7] == nullptr);
    n = 8;
    CHECK(cudaGraphNodeGetDependentNodes(nodes[2], found, nullptr, &n));
    EXPECT(n == 1 && found[0] == nodes[1]);
    cudaGraphNode_t f[8], t[8];
    cudaGraphEdgeData data[8];
    n = 8;
    CHECK(cudaGraphGetEdges(graph, f, t, data, &n));
    EXPECT(n == 5 && f[5] == nullptr);
    for (int i = 0; i < 5; i++) {
        int a = -1, b = -1;
        for (int k = 0; k < 6; k++) {
            if (nodes[k] == f[i]) a = k;
            if (nodes[k] == t[i]) b = k;
        }
        EXPECT(a == b + 1 && data[i].type == 0 && data[i].from_port == 0 && data[i].to_port == 0);
    }
    // an edge that is there already, or one that closes a circle, is refused where the documentation says so
    EXPECT(cudaGraphAddDependencies(graph, &nodes[5], &nodes[4], nullptr, 1) == cudaErrorInvalidValue);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
    EXPECT(cudaGraphRemoveDependencies(graph, &nodes[0], &nodes[5], nullptr, 1) == cudaErrorInvalidValue);
    cudaGetLastError();

    // turn the chain around
    CHECK(cudaGraphRemoveDependencies(graph, from.data(), to.data(), nullptr, 5));
    CHECK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &n));
    EXPECT(n == 0);
    CHECK(cudaGraphAddDependencies(graph, to.data(), from.data(), nullptr, 5));
    EXPECT((order(graph, log, count) == std::vector<int>{0, 1, 2, 3, 4, 5}));

    // a node in the middle goes, with its edges; the rest is joined by an empty one
    CHECK(cudaGraphDestroyNode(nodes[3]));
    CHECK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &n));
    EXPECT(n == 3);
    cudaGraphNode_t empty;
    CHECK(cudaGraphAddEmptyNode(&empty, graph, &nodes[2], 1));
    CHECK(cudaGraphAddDependencies(graph, &empty, &nodes[4], nullptr, 1));
    EXPECT((order(graph, log, count) == std::vector<int>{0, 1, 2, 4, 5}));
    cudaGraphNodeType type;
    CHECK(cudaGraphNodeGetType(empty, &type));
    EXPECT(type == cudaGraphNodeTypeEmpty);

    // names
    cudaGraph_t whose;
    CHECK(cudaGraphNodeGetContainingGraph(empty, &whose));
    EXPECT(whose == graph);
    unsigned id, id2, local, local2;
    CHECK(cudaGraphGetId(graph, &id));
    cudaGraph_t copy;
    CHECK(cudaGraphClone(&copy, graph));
    CHECK(cudaGraphGetId(copy, &id2));
    EXPECT(id != id2);
    CHECK(cudaGraphNodeGetLocalId(nodes[0], &local));
    CHECK(cudaGraphNodeGetLocalId(nodes[1], &local2));
    EXPECT(local != local2);
    unsigned long long tool, tool2;
    CHECK(cudaGraphNodeGetToolsId(nodes[0], &tool));
    cudaGraphNode_t twin;
    CHECK(cudaGraphNodeFindInClone(&twin, nodes[0], copy));
    CHECK(cudaGraphNodeGetToolsId(twin, &tool2));
    EXPECT(tool != tool2);
    CHECK(cudaGraphNodeGetContainingGraph(twin, &whose));
    EXPECT(whose == copy);
    EXPECT((order(copy, log, count) == std::vector<int>{0, 1, 2, 4, 5}));
    // the clone does not see what happens to the first graph
    CHECK(cudaGraphDestroyNode(nodes[5]));
    EXPECT((order(graph, log, count) == std::vector<int>{0, 1, 2, 4}));
    EXPECT((order(copy, log, count) == std::vector<int>{0, 1, 2, 4, 5}));

    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagUseNodePriority));
    unsigned long long flags;
    CHECK(cudaGraphExecGetFlags(exec, &flags));
    EXPECT(flags == cudaGraphInstantiateFlagUseNodePriority);
    CHECK(cudaGraphExecGetId(exec, &id2));
    CHECK(cudaGraphExecDestroy(exec));

    char path[] = "/tmp/graphXXXXXX";
    EXPECT(mkstemp(path) >= 0);
    CHECK(cudaGraphDebugDotPrint(graph, path, cudaGraphDebugDotFlagsVerbose));
    std::string text;
    FILE *file = fopen(path, "r");
    for (int c; (c = fgetc(file)) != EOF;) text += char(c);
    fclose(file);
    remove(path);
    EXPECT(text.find("digraph") != std::string::npos && text.find("->") != std::string::npos && text.find("append") != std::string::npos);
    CHECK(cudaGraphDestroy(copy));
    CHECK(cudaGraphDestroy(graph));
    // a circle is found when the graph is instantiated
    CHECK(cudaGraphCreate(&graph, 0));
    cudaGraphNode_t a = node(graph, log, count, 1), b = node(graph, log, count, 2);
    CHECK(cudaGraphAddDependencies(graph, &a, &b, nullptr, 1));
    cudaError_t circle = cudaGraphAddDependencies(graph, &b, &a, nullptr, 1);
    if (!circle) EXPECT(cudaGraphInstantiate(&exec, graph, 0) != cudaSuccess);
    return passed();
}

// flags: -rdc=true
// Kernels change nodes of a graph: their parameters, their grids, and whether they run.
#include "check.h"

enum Step { PARAMETER, POINTER, DISABLE, GRID, SEVERAL };

__global__ void add(int *to, int value) { to[blockIdx.x * blockDim.x + threadIdx.x] += value; }

__global__ void change(cudaGraphDeviceNode_t node, Step step, int *other, cudaError_t *error) {
    alignas(cudaGraphKernelNodeUpdate) char memory[3 * sizeof(cudaGraphKernelNodeUpdate)];  // it has no constructor
    auto updates = reinterpret_cast<cudaGraphKernelNodeUpdate *>(memory);
    const int five = 5;
    switch (step) {
    case PARAMETER: *error = cudaGraphKernelNodeSetParam(node, sizeof(int *), 1000); break;
    case POINTER: *error = cudaGraphKernelNodeSetParam(node, 0, other); break;
    case DISABLE: *error = cudaGraphKernelNodeSetEnabled(node, false); break;
    case GRID: *error = cudaGraphKernelNodeSetGridDim(node, dim3(2)); break;
    case SEVERAL:
        for (int i = 0; i < 3; i++) updates[i].node = node;
        updates[0].field = cudaGraphKernelNodeFieldEnabled, updates[0].updateData.isEnabled = 1;
        updates[1].field = cudaGraphKernelNodeFieldParam, updates[1].updateData.param = {&five, sizeof(int *), sizeof five};
        updates[2].field = cudaGraphKernelNodeFieldGridDim, updates[2].updateData.gridDim = dim3(3);
        *error = cudaGraphKernelNodeUpdatesApply(updates, 3);
    }
}

int main() {
    const int block = 2;
    int *first, *second, value = 1;
    cudaError_t *error;
    CHECK(cudaMallocManaged(&first, 16 * sizeof(int)));
    CHECK(cudaMallocManaged(&second, 16 * sizeof(int)));
    CHECK(cudaMallocManaged(&error, sizeof *error));
    for (int i = 0; i < 16; i++) first[i] = second[i] = 0;
    cudaGraph_t graph;
    CHECK(cudaGraphCreate(&graph, 0));
    void *arguments[] = {&first, &value};
    cudaKernelNodeParams launch = {};
    launch.func = (void *)add, launch.gridDim = dim3(1), launch.blockDim = dim3(block), launch.kernelParams = arguments;
    cudaGraphNode_t node;
    CHECK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &launch));
    cudaKernelNodeAttrValue attribute = {};
    attribute.deviceUpdatableKernelNode.deviceUpdatable = 1;
    CHECK(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeDeviceUpdatableKernelNode, &attribute));
    CHECK(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeDeviceUpdatableKernelNode, &attribute));
    cudaGraphDeviceNode_t of_device = attribute.deviceUpdatableKernelNode.devNode;
    cudaGraphExec_t executable;
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    auto launched = [&](int step) {
        if (step >= 0) change<<<1, 1, 0, stream>>>(of_device, Step(step), second, error);
        CHECK(cudaGraphLaunch(executable, stream));
        CHECK(cudaStreamSynchronize(stream));
        return *error == cudaSuccess;
    };
    *error = cudaSuccess;
    EXPECT(launched(-1) && first[0] == 1 && first[1] == 1 && first[2] == 0);
    EXPECT(launched(PARAMETER) && first[1] == 1001);
    EXPECT(launched(POINTER) && first[1] == 1001 && second[1] == 1000);
    EXPECT(launched(DISABLE) && second[1] == 1000);
    EXPECT(launched(GRID) && second[1] == 1000);
    EXPECT(launched(SEVERAL) && second[1] == 1005 && second[5] == 5 && second[6] == 0);
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
    return passed();
}

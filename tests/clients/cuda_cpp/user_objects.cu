// Objects whose lifetime graphs share: references of the program and of graphs, clones and executables keep an object.
#include "check.h"
#include <atomic>
__global__ void nothing(int *p) { *p += 1; }
static std::atomic<int> destroyed{0};
static void destroy(void *p) { destroyed += *(int *)p; }
int main() {
    int one = 1, ten = 10, hundred = 100, *d;
    CHECK(cudaMalloc(&d, 4));
    CHECK(cudaMemset(d, 0, 4));
    cudaUserObject_t a, b, c;
    CHECK(cudaUserObjectCreate(&a, &one, destroy, 2, cudaUserObjectNoDestructorSync));
    CHECK(cudaUserObjectRelease(a, 1));
    CHECK(cudaUserObjectRetain(a, 3));
    CHECK(cudaUserObjectRelease(a, 3));
    EXPECT(destroyed == 0);
    CHECK(cudaUserObjectRelease(a, 1));
    for (int i = 0; destroyed != 1 && i < 1000000000; i++);
    EXPECT(destroyed == 1);
    EXPECT(cudaUserObjectCreate(&a, &one, destroy, 1, 0) == cudaErrorInvalidValue);  // the flag must be given
    cudaGetLastError();
    EXPECT(cudaUserObjectCreate(&a, &one, destroy, 0, cudaUserObjectNoDestructorSync) == cudaErrorInvalidValue);
    cudaGetLastError();

    CHECK(cudaUserObjectCreate(&b, &ten, destroy, 1, cudaUserObjectNoDestructorSync));
    CHECK(cudaUserObjectCreate(&c, &hundred, destroy, 2, cudaUserObjectNoDestructorSync));
    cudaGraph_t graph, clone;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphRetainUserObject(graph, b, 1, cudaGraphUserObjectMove));  // the program's reference goes to the graph
    CHECK(cudaGraphRetainUserObject(graph, c, 2, 0));                        // two more
    cudaKernelNodeParams k = {};
    void *args[] = {&d};
    k.func = (void *)nothing, k.gridDim = k.blockDim = dim3(1), k.kernelParams = args;
    cudaGraphNode_t node;
    CHECK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &k));
    CHECK(cudaGraphReleaseUserObject(graph, c, 1));
    CHECK(cudaUserObjectRelease(c, 2));
    CHECK(cudaGraphClone(&clone, graph));
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    EXPECT(destroyed == 1);
    CHECK(cudaGraphDestroy(clone));
    CHECK(cudaDeviceSynchronize());
    EXPECT(destroyed == 1);
    CHECK(cudaGraphLaunch(exec, 0));
    CHECK(cudaGraphExecDestroy(exec));  // while it may run
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; destroyed != 111 && i < 1000000000; i++);
    EXPECT(destroyed == 111);
    int n;
    CHECK(cudaMemcpy(&n, d, 4, cudaMemcpyDeviceToHost));
    EXPECT(n == 1);
    return passed();
}

// Memory that the host and the device share: managed allocations and variables, and structures with pointers.
#include "check.h"

__managed__ int counter = 3;
__managed__ float table[16];

struct Node {
    int value;
    Node *next;
};

__global__ void walk(const Node *node, int *sum) {
    for (; node; node = node->next) *sum += node->value;
    counter += 4;
}

__global__ void square() { table[threadIdx.x] *= table[threadIdx.x]; }

int main() {
    Node *first = nullptr;
    for (int i = 0; i < 10; i++) {
        Node *node;
        CHECK(cudaMallocManaged(&node, sizeof(Node)));
        *node = {i, first};
        first = node;
    }
    int *sum;
    CHECK(cudaMallocManaged(&sum, sizeof(int)));
    *sum = 100;
    counter++;
    for (int i = 0; i < 16; i++) table[i] = i + 0.5f;
    walk<<<1, 1>>>(first, sum);
    square<<<1, 16>>>();
    CHECK(cudaDeviceSynchronize());
    EXPECT(*sum == 145 && counter == 8);
    for (int i = 0; i < 16; i++) EXPECT(table[i] == (i + 0.5f) * (i + 0.5f));
    cudaPointerAttributes what;
    CHECK(cudaPointerGetAttributes(&what, sum));
    EXPECT(what.type == cudaMemoryTypeManaged && what.devicePointer == sum && what.hostPointer == sum);
    CHECK(cudaPointerGetAttributes(&what, &what));
    EXPECT(what.type == cudaMemoryTypeUnregistered);
    while (first) {
        Node *next = first->next;
        CHECK(cudaFree(first));
        first = next;
    }
    return passed();
}

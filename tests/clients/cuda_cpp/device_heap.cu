// Memory that kernels allocate: objects with virtual functions and lists that outlive the launch, the limit, copies in kernels.
// flags: -std=c++17
#include "check.h"
#include <cstring>

struct Shape {
    __device__ virtual float area() const = 0;
    __device__ virtual ~Shape();
};
__device__ int destroyed;
__device__ Shape::~Shape() { atomicAdd(&destroyed, 1); }

struct Disc : Shape {
    float r;
    __device__ explicit Disc(float r) : r(r) {}
    __device__ float area() const override { return 3 * r * r; }
};
struct Box : Shape {
    float w, h;
    __device__ Box(float w, float h) : w(w), h(h) {}
    __device__ float area() const override { return w * h; }
};
struct Link {
    int value;
    Link *next;
};

__device__ Shape *shapes[256];
__device__ Link *lists[64];

__global__ void make() {
    int i = threadIdx.x;
    shapes[i] = i % 2 ? static_cast<Shape *>(new Disc(i)) : new Box(i, 2);
}
__global__ void areas(float *out) { out[threadIdx.x] = shapes[threadIdx.x]->area(); }
__global__ void unmake() { delete shapes[threadIdx.x]; }

__global__ void build(int n) {
    Link *head = nullptr;
    for (int i = 0; i < n; i++) {
        Link *link = static_cast<Link *>(malloc(sizeof(Link)));
        *link = {i * int(threadIdx.x + 1), head};
        head = link;
    }
    lists[threadIdx.x] = head;
}
__global__ void total(int *out) {
    int sum = 0;
    for (Link *each = lists[threadIdx.x], *next; each; each = next) sum += each->value, next = each->next, free(each);
    out[threadIdx.x] = sum;
}

__global__ void too_much(int *out) {
    void *p = malloc(64 << 20);
    out[threadIdx.x] = p != nullptr;
    free(p), free(nullptr);
}

__global__ void copies(int *out) {
    int i = threadIdx.x, local[4] = {i, 2, 3, 4}, other[4];
    char *p = static_cast<char *>(malloc(100)), *q = static_cast<char *>(malloc(50));
    memset(p, i, 100), memcpy(q, p + 3, 50), memcpy(other, local, sizeof local);
    out[i] = q[49] + other[0] + other[3] + (reinterpret_cast<size_t>(p) % 16 == 0);
    free(p), free(q);
}

__global__ void array_of_each(int *out, int n) {
    int *p = new int[n], sum = 0;
    for (int i = 0; i < n; i++) p[i] = i;
    for (int i = 0; i < n; i++) sum += p[i];
    delete[] p;
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

int main() {
    size_t heap;
    CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 32 << 20));
    CHECK(cudaDeviceGetLimit(&heap, cudaLimitMallocHeapSize));
    EXPECT(heap >= 32 << 20);
    float *f;
    int *out, count;
    CHECK(cudaMallocManaged(&f, 1024));
    CHECK(cudaMallocManaged(&out, 4096));

    make<<<1, 256>>>(), areas<<<1, 256>>>(f), unmake<<<1, 256>>>();
    CHECK(cudaMemcpyFromSymbol(&count, destroyed, sizeof count));
    EXPECT(count == 256);
    for (int i = 0; i < 256; i++) EXPECT(f[i] == (i % 2 ? 3.f * i * i : 2.f * i));

    build<<<1, 64>>>(20), total<<<1, 64>>>(out);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 64; i++) EXPECT(out[i] == 190 * (i + 1));

    too_much<<<1, 4>>>(out);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 4; i++) EXPECT(out[i] == 0);

    copies<<<1, 100>>>(out);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 100; i++) EXPECT(out[i] == 2 * i + 5);

    array_of_each<<<8, 128>>>(out, 33);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 1024; i++) EXPECT(out[i] == 528);
    return passed();
}

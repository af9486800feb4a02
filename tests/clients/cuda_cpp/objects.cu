// C++ on the device: virtual functions, pointers to functions and members, recursion, new and delete, lambdas, templates.
// flags: -std=c++20 --extended-lambda
#include "check.h"
#include <cuda/std/type_traits>
#include <new>

struct Shape {
    __device__ virtual double area() const = 0;
    __device__ virtual ~Shape() {}
};
__device__ int destroyed;
struct Square : Shape {
    double a;
    __device__ explicit Square(double a) : a(a) {}
    __device__ double area() const override { return a * a; }
    __device__ ~Square() override { atomicAdd(&destroyed, 1); }
};
struct Circle : Shape {
    double r;
    __device__ explicit Circle(double r) : r(r) {}
    __device__ double area() const override { return 3 * r * r; }
};
struct Ring final : Circle {
    __device__ explicit Ring(double r) : Circle(r) {}
    __device__ double area() const override { return Circle::area() - 1; }
};
using Function = int (*)(int);
__device__ int twice(int x) { return 2 * x; }
__device__ int negative(int x) { return -x; }
__device__ int larger(int x) { return x + 100; }
__device__ Function table[] = {twice, negative, larger};
__device__ int ackermann(int m, int n) { return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1)); }
struct Counter {
    int n = 0;
    __device__ int add(int k) { return n += k; }
    __device__ int sub(int k) { return n -= k; }
};
template <int N> __device__ constexpr int factorial() {
    if constexpr (N <= 1) return 1;
    else return N * factorial<N - 1>();
}
template <class... T> __device__ auto sum(T... x) { return (x + ...); }
struct Node {
    int value;
    Node *next;
};
template <class T> concept Number = cuda::std::is_arithmetic_v<T>;
__device__ auto halved(Number auto x) { return x / 2; }

__global__ void objects(double *areas, int *out) {
    int i = threadIdx.x;
    Shape *s = i % 3 == 0 ? (Shape *)new Square(i) : i % 3 == 1 ? (Shape *)new Circle(i) : new Ring(i);
    areas[i] = s->area();
    delete s;
    int (Counter::*member)(int) = i % 2 ? &Counter::add : &Counter::sub;
    Counter c;
    (c.*member)(5);
    Node *list = nullptr;
    for (int k = 0; k <= i % 5; k++) list = new Node{k, list};
    int total = 0;
    while (list) {
        Node *next = list->next;
        total += list->value;
        delete list;
        list = next;
    }
    int captured = i;
    auto lambda = [=](auto x) { return x + captured; };
    int *o = out + 8 * i;
    o[0] = table[i % 3](i), o[1] = ackermann(2, i % 4), o[2] = c.n, o[3] = total;
    o[4] = factorial<6>() + sum(1, 2.5, 'a'), o[5] = 3 * i;
    o[6] = lambda(1) + halved(i), o[7] = i;
}
template <class F> __global__ void call(F f, int *out) { out[threadIdx.x] = f(threadIdx.x); }

int main() {
    double *areas;
    int *out;
    CHECK(cudaMallocManaged(&areas, 96 * sizeof(double)));
    CHECK(cudaMallocManaged(&out, 96 * 8 * sizeof(int)));
    CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 8 << 20));
    CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 8192));
    objects<<<1, 96>>>(areas, out);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 96; i++) {
        EXPECT(areas[i] == (i % 3 == 0 ? i * i : 3. * i * i - (i % 3 == 2)));
        int *o = out + 8 * i, k = i % 4, t = i % 5;
        EXPECT(o[0] == (i % 3 == 0 ? 2 * i : i % 3 == 1 ? -i : i + 100) && o[1] == 2 * k + 3 && o[2] == (i % 2 ? 5 : -5) && o[3] == t * (t + 1) / 2);
        EXPECT(o[4] == 820 && o[5] == 3 * i && o[6] == 1 + i + i / 2 && o[7] == i);
    }
    int deleted;
    CHECK(cudaMemcpyFromSymbol(&deleted, destroyed, sizeof(int)));
    EXPECT(deleted == 32);
    int base = 1000;
    call<<<1, 64>>>([=] __device__(int i) { return base + i * i; }, out);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 64; i++) EXPECT(out[i] == 1000 + i * i);
    Function host, *place;
    CHECK(cudaGetSymbolAddress((void **)&place, table));
    CHECK(cudaMemcpy(&host, place + 1, sizeof host, cudaMemcpyDeviceToHost));
    call<<<1, 64>>>(host, out);
    CHECK(cudaDeviceSynchronize());
    EXPECT(out[9] == -9);
    return passed();
}

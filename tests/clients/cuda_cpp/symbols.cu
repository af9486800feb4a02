// flags: -extended-lambda
// Symbols of the device: constants and variables by name, tables of functions, virtual functions, templates, static locals.
#include "check.h"
#include <vector>

struct Shape {
    float matrix[3][3];
    int turns;
};
__constant__ float polynomial[5];
__constant__ Shape shape;
__constant__ int preset[4] = {2, 3, 5, 7};
__device__ int counter = 40;
__device__ float table[64];
__device__ double3 *block;
__managed__ int shared_with_host = 5;

template <int N> __constant__ int scaled = N * 10;

typedef float (*Operation)(float, float);
__device__ float add(float a, float b) { return a + b; }
__device__ float multiply(float a, float b) { return a * b; }
__device__ float power(float a, float b) { return powf(a, b); }
__device__ Operation operations[] = {add, multiply, power};
__device__ Operation chosen = multiply;

struct Animal {
    __device__ virtual ~Animal() {}
    __device__ virtual int legs() const = 0;
    __device__ virtual int eyes() const { return 2; }
};
struct Dog : Animal {
    __device__ int legs() const override { return 4; }
};
struct Spider : Animal {
    int eyes_;
    __device__ Spider(int eyes) : eyes_(eyes) {}
    __device__ int legs() const override { return 8; }
    __device__ int eyes() const override { return eyes_; }
};

__device__ int next() {
    static int calls = 100;
    return atomicAdd(&calls, 1);
}

__global__ void evaluate(const float *x, float *y) {
    float at = x[threadIdx.x], sum = 0;
    for (int i = 4; i >= 0; i--) sum = sum * at + polynomial[i];
    y[threadIdx.x] = sum;
}
__global__ void transform(float *to) {
    float v[3] = {1, 2, 3};
    for (int turn = 0; turn < shape.turns; turn++) {
        float w[3] = {};
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) w[i] += shape.matrix[i][j] * v[j];
        for (int i = 0; i < 3; i++) v[i] = w[i];
    }
    for (int i = 0; i < 3; i++) to[i] = v[i];
}
__global__ void variables(int *to) {
    to[threadIdx.x] = preset[threadIdx.x % 4] + scaled<2> + scaled<3>;
    atomicAdd(&counter, 1);
    table[threadIdx.x] += threadIdx.x;
    if (threadIdx.x == 0) shared_with_host *= 2;
}
__global__ void through_functions(float *to, Operation given) {
    to[threadIdx.x] = operations[threadIdx.x % 3](threadIdx.x, 2.f) + given(1.f, threadIdx.x) + chosen(3.f, 3.f);
}
__global__ void make(Animal **animals, int n) {
    for (int i = 0; i < n; i++) animals[i] = i % 2 ? (Animal *)new Spider(i) : new Dog;
}
__global__ void ask(Animal **animals, int *to) { to[threadIdx.x] = 100 * animals[threadIdx.x]->legs() + animals[threadIdx.x]->eyes(); }
__global__ void destroy(Animal **animals, int n) {
    for (int i = 0; i < n; i++) delete animals[i];
}
__global__ void count_calls(int *to) { to[threadIdx.x] = next(); }
template <class T, class F> __global__ void map(T *data, int n, F f) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) data[i] = f(data[i], i);
}

int main() {
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    float *x, *y;
    int *numbers;
    CHECK(cudaMallocManaged(&x, 64 * sizeof(float)));
    CHECK(cudaMallocManaged(&y, 64 * sizeof(float)));
    CHECK(cudaMallocManaged(&numbers, 64 * sizeof(int)));
    const float coefficients[5] = {1, -2, 0.5f, 0, 3};
    CHECK(cudaMemcpyToSymbol(polynomial, coefficients, sizeof coefficients));
    for (int i = 0; i < 64; i++) x[i] = i / 8.f - 4;
    evaluate<<<1, 64>>>(x, y);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 64; i++) EXPECT(close(y[i], 1 - 2 * x[i] + .5 * x[i] * x[i] + 3 * pow(x[i], 4), 1e-5));
    float one = 10;  // a part of a symbol, in a stream
    CHECK(cudaMemcpyToSymbolAsync(polynomial, &one, sizeof one, 3 * sizeof(float), cudaMemcpyHostToDevice, stream));
    evaluate<<<1, 64, 0, stream>>>(x, y);
    CHECK(cudaStreamSynchronize(stream));
    EXPECT(close(y[63], 1 - 2 * x[63] + .5 * x[63] * x[63] + 10 * pow(x[63], 3) + 3 * pow(x[63], 4), 1e-5));
    EXPECT(cudaMemcpyToSymbol(polynomial, coefficients, 24) == cudaErrorInvalidValue);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);

    Shape turn = {{{0, -1, 0}, {1, 0, 0}, {0, 0, 1}}, 3}, back;
    CHECK(cudaMemcpyToSymbol(shape, &turn, sizeof turn));
    transform<<<1, 1>>>(y);
    CHECK(cudaDeviceSynchronize());
    EXPECT(y[0] == 2 && y[1] == -1 && y[2] == 3);
    CHECK(cudaMemcpyFromSymbol(&back, shape, sizeof back));
    EXPECT(back.turns == 3 && back.matrix[1][0] == 1);

    const int primes[4] = {2, 3, 5, 7};
    variables<<<1, 64>>>(numbers);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 64; i++) EXPECT(numbers[i] == primes[i % 4] + 50);
    EXPECT(shared_with_host == 10);
    int count;
    CHECK(cudaMemcpyFromSymbol(&count, counter, sizeof count));
    EXPECT(count == 104);
    void *at;
    size_t size;
    CHECK(cudaGetSymbolAddress(&at, table));
    CHECK(cudaGetSymbolSize(&size, table));
    EXPECT(size == sizeof(float) * 64);
    CHECK(cudaMemcpy(y, at, size, cudaMemcpyDefault));
    EXPECT(y[63] == 63);
    CHECK(cudaMemsetAsync(at, 0, size, stream));
    CHECK(cudaMemcpyFromSymbolAsync(y, table, sizeof(float), 63 * sizeof(float), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    EXPECT(y[0] == 0);

    Operation given;
    CHECK(cudaMemcpyFromSymbol(&given, chosen, sizeof given));
    through_functions<<<1, 9>>>(y, given);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 9; i++) EXPECT(close(y[i], (i % 3 == 0 ? i + 2 : i % 3 == 1 ? i * 2 : i * i) + i + 9, 1e-6));

    Animal **animals;
    CHECK(cudaMalloc(&animals, 10 * sizeof *animals));
    make<<<1, 1>>>(animals, 10);
    ask<<<1, 10>>>(animals, numbers);
    destroy<<<1, 1>>>(animals, 10);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 10; i++) EXPECT(numbers[i] == (i % 2 ? 800 + i : 402));

    count_calls<<<1, 32>>>(numbers);
    CHECK(cudaDeviceSynchronize());
    int sum = 0;
    for (int i = 0; i < 32; i++) sum += numbers[i];
    EXPECT(sum == 32 * 100 + 31 * 16);

    map<<<1, 32>>>(numbers, 64, [=] __device__(int, int i) { return i * 3 + count; });
    CHECK(cudaDeviceSynchronize());
    EXPECT(numbers[63] == 63 * 3 + 104);
    return passed();
}

// flags: -arch=compute_80
// libcu++ in kernels: barriers with a completion, pipelines of stages, latches, semaphores, waits of atomics, references,
// standard types.
#include "check.h"
#include <cooperative_groups.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/pipeline>
#include <cuda/semaphore>
#include <cuda/std/array>
#include <cuda/std/bit>
#include <cuda/std/chrono>
#include <cuda/std/complex>
#include <cuda/std/optional>
#include <cuda/std/span>
#include <cuda/std/tuple>
#include <cuda/std/variant>
namespace cg = cooperative_groups;

struct Completion {
    int *at;

    __device__ void operator()() noexcept { *at += 1; }
};

__global__ void phases(int *out) {
    __shared__ int phase;
    using B = cuda::barrier<cuda::thread_scope_block, Completion>;
    __shared__ alignas(B) char room[sizeof(B)];
    B *b = reinterpret_cast<B *>(room);
    if (threadIdx.x == 0) {
        phase = 0;
        new (b) B(blockDim.x, Completion{&phase});
    }
    __syncthreads();
    for (int i = 0; i < 4; i++) {
        auto token = b->arrive();
        b->wait(std::move(token));
        out[i * blockDim.x + threadIdx.x] = phase;
        b->arrive_and_wait();
    }
}

template <int stages> __global__ void pipe(const int *in, int *out, int n) {
    extern __shared__ int s[];
    auto block = cg::this_thread_block();
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
    auto p = cuda::make_pipeline(block, &state);
    int batches = n / block.size(), fetched = 0;
    for (int i = 0; i < batches; i++) {
        for (; fetched < batches && fetched < i + stages; fetched++) {
            p.producer_acquire();
            cuda::memcpy_async(block, s + fetched % stages * block.size(), in + fetched * block.size(),
                               sizeof(int) * block.size(), p);
            p.producer_commit();
        }
        p.consumer_wait();
        int k = s[i % stages * block.size() + (block.thread_rank() + 1) % block.size()];
        p.consumer_release();
        out[i * block.size() + block.thread_rank()] = k * 2;
    }
}

__global__ void thread_pipe(const int4 *in, int4 *out) {
    __shared__ int4 s[2][64];
    cuda::pipeline<cuda::thread_scope_thread> p = cuda::make_pipeline();
    for (int i = 0; i < 4; i++) {
        p.producer_acquire();
        cuda::memcpy_async(&s[i % 2][threadIdx.x], in + i * 64 + threadIdx.x, cuda::aligned_size_t<16>(16), p);
        p.producer_commit();
        cuda::pipeline_consumer_wait_prior<0>(p);
        int4 v = s[i % 2][threadIdx.x];
        p.consumer_release();
        out[i * 64 + threadIdx.x] = make_int4(v.w, v.z, v.y, v.x);
    }
}

__global__ void latch(int *out) {
    __shared__ cuda::latch<cuda::thread_scope_block> *l;
    __shared__ alignas(16) char room[sizeof(cuda::latch<cuda::thread_scope_block>)];
    __shared__ int ready[128];
    if (threadIdx.x == 0) l = new (room) cuda::latch<cuda::thread_scope_block>(64);
    __syncthreads();
    if (threadIdx.x < 64) {
        ready[threadIdx.x] = threadIdx.x * 3;
        l->count_down();
    } else {
        l->wait();
        out[threadIdx.x - 64] = ready[threadIdx.x - 64];
    }
}

__device__ cuda::counting_semaphore<cuda::thread_scope_device, 3> slots(3);
__device__ cuda::atomic<int, cuda::thread_scope_device> inside(0), most(0), total(0);

__global__ void bounded() {
    slots.acquire();
    int k = ++inside;
    most.fetch_max(k);
    total.fetch_add(1, cuda::memory_order_relaxed);
    --inside;
    slots.release();
}

__global__ void waits(int *out) {
    __shared__ cuda::atomic<int, cuda::thread_scope_block> flag;
    if (threadIdx.x == 0) flag.store(0);
    __syncthreads();
    if (threadIdx.x == 64) {
        out[1] = 42;
        flag.store(1, cuda::memory_order_release);
        flag.notify_all();
    }
    if (threadIdx.x == 0) {
        flag.wait(0, cuda::memory_order_acquire);
        out[0] = out[1];
    }
}

__global__ void references(double *d, unsigned long long *u, unsigned short *h, float *f) {
    cuda::atomic_ref<double, cuda::thread_scope_device>(*d).fetch_add(.5);
    cuda::atomic_ref<unsigned long long>(*u).fetch_min(1000 - threadIdx.x);
    cuda::atomic_ref<unsigned short>(h[threadIdx.x % 3]).fetch_add(1);
    cuda::atomic_ref<float> a(*f);
    float o = a.load();
    while (!a.compare_exchange_weak(o, o + 2)) {}
}

__global__ void types(float *out) {
    cuda::std::complex<float> z(3, 4);
    z = z * z;
    out[0] = z.real();
    out[1] = z.imag();
    out[2] = cuda::std::abs(z);
    auto e = cuda::std::exp(cuda::std::complex<float>(0, 1));
    out[3] = e.real();
    cuda::std::array<int, 4> a{4, 3, 2, 1};
    int s = 0;
    for (int x : cuda::std::span<int>(a.data(), 3)) s += x;
    out[4] = s;
    cuda::std::variant<int, float> v = 2.5f;
    out[5] = cuda::std::visit([](auto x) { return float(x) * 2; }, v);
    cuda::std::optional<int> none, some = 7;
    out[6] = none.value_or(1) + *some;
    auto [x, y] = cuda::std::make_tuple(5, 1.5f);
    out[7] = x * y;
    out[8] = cuda::std::popcount(0xF0F0u) + cuda::std::countl_zero(1u) + cuda::std::bit_width(9u);
    auto t = cuda::std::chrono::high_resolution_clock::now();
    out[9] = t.time_since_epoch().count() > 0;
}

int main() {
    int *o, *in;
    CHECK(cudaMallocManaged(&o, 1 << 16));
    CHECK(cudaMallocManaged(&in, 1 << 14));
    for (int i = 0; i < 4096; i++) in[i] = i * 7 % 1001;
    phases<<<1, 96>>>(o);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 4; i++)
        for (int t = 0; t < 96; t++) EXPECT(o[i * 96 + t] == 2 * i + 1);
    pipe<3><<<1, 64, 3 * 256>>>(in, o, 640);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 640; i++) EXPECT(o[i] == 2 * in[i / 64 * 64 + (i + 1) % 64]);
    thread_pipe<<<1, 64>>>((int4 *)in, (int4 *)o);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 1024; i++) EXPECT(o[i] == in[i / 4 * 4 + 3 - i % 4]);
    latch<<<1, 128>>>(o);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 64; i++) EXPECT(o[i] == 3 * i);
    bounded<<<16, 8>>>();
    CHECK(cudaDeviceSynchronize());
    cuda::atomic<int, cuda::thread_scope_device> *p;
    int m, t;
    CHECK(cudaMemcpyFromSymbol(&m, most, 4));
    CHECK(cudaMemcpyFromSymbol(&t, total, 4));
    EXPECT(m >= 1 && m <= 3 && t == 128);
    waits<<<1, 96>>>(o);
    CHECK(cudaDeviceSynchronize());
    EXPECT(o[0] == 42);
    double *d;
    unsigned long long *u;
    unsigned short *h;
    float *f;
    CHECK(cudaMallocManaged(&d, 8));
    CHECK(cudaMallocManaged(&u, 8));
    CHECK(cudaMallocManaged(&h, 8));
    CHECK(cudaMallocManaged(&f, 4));
    *d = 0;
    *u = 1 << 20;
    h[0] = h[1] = h[2] = 65530;
    *f = 0;
    references<<<2, 96>>>(d, u, h, f);
    CHECK(cudaDeviceSynchronize());
    EXPECT(*d == 96 && *u == 905 && h[0] == (unsigned short)(65530 + 64) && h[2] == h[0] && *f == 384);
    float *q;
    CHECK(cudaMallocManaged(&q, 64));
    types<<<1, 1>>>(q);
    CHECK(cudaDeviceSynchronize());
    EXPECT(q[0] == -7 && q[1] == 24 && close(q[2], 25, 1e-6) && close(q[3], cos(1.), 1e-6) && q[4] == 9 && q[5] == 5 &&
           q[6] == 8 && q[7] == 7.5f && q[8] == 8 + 31 + 4 && q[9] == 1);
    return passed();
}

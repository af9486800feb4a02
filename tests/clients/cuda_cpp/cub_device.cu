// Algorithms of CUB for whole devices, by cub's own calls: two phases, temporary storage, streams.
// flags: -std=c++17
#include "check.h"
#include <algorithm>
#include <cub/cub.cuh>
#include <map>
#include <numeric>
#include <vector>

template <class F> void run(F f) {
    size_t bytes = 0;
    void *room = nullptr;
    CHECK(f(room, bytes));
    CHECK(cudaMalloc(&room, bytes));
    CHECK(f(room, bytes));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(room));
}
template <class T> struct Managed {
    T *p;
    explicit Managed(size_t n) { CHECK(cudaMallocManaged(&p, n * sizeof(T))); }
    ~Managed() { cudaFree(p); }
    operator T *() { return p; }
};
struct Pair {
    int key;
    float value;
};
struct ByKey {
    __host__ __device__ bool operator()(const Pair &a, const Pair &b) const { return a.key < b.key; }
};
struct Odd {
    __host__ __device__ bool operator()(int x) const { return x & 1; }
};
struct Largest {
    template <class T> __host__ __device__ T operator()(T a, T b) const { return a > b ? a : b; }
};

int main() {
    const int n = 5000;
    Managed<int> in(n), out(n), count(1), values(n), other(n);
    std::vector<int> host(n);
    for (int i = 0; i < n; i++) host[i] = in[i] = int((i * 2654435761u) >> 22) - 400, values[i] = i;
    run([&](void *t, size_t &b) { return cub::DeviceRadixSort::SortPairs(t, b, in.p, out.p, values.p, other.p, n); });
    std::vector<int> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return host[a] < host[b]; });
    for (int i = 0; i < n; i++) EXPECT(other[i] == order[i] && out[i] == host[order[i]]);
    run([&](void *t, size_t &b) { return cub::DeviceRadixSort::SortKeysDescending(t, b, in.p, out.p, n, 3, 9); });
    std::vector<int> wanted = host;
    std::stable_sort(wanted.begin(), wanted.end(),
                     [](int a, int b) { return ((unsigned(a) ^ 0x80000000u) >> 3 & 63) > ((unsigned(b) ^ 0x80000000u) >> 3 & 63); });
    for (int i = 0; i < n; i++) EXPECT(out[i] == wanted[i]);

    Managed<double> reals(n), sums(n);
    for (int i = 0; i < n; i++) reals[i] = std::sin(i) * 100;
    run([&](void *t, size_t &b) { return cub::DeviceRadixSort::SortKeys(t, b, reals.p, sums.p, n); });
    for (int i = 1; i < n; i++) EXPECT(sums[i - 1] <= sums[i]);

    run([&](void *t, size_t &b) { return cub::DeviceScan::ExclusiveSum(t, b, in.p, out.p, n); });
    for (int i = 0, s = 0; i < n; s += host[i++]) EXPECT(out[i] == s);
    run([&](void *t, size_t &b) { return cub::DeviceScan::InclusiveScan(t, b, in.p, out.p, Largest(), n); });
    for (int i = 0, m = -1 << 30; i < n; i++) EXPECT(out[i] == (m = std::max(m, host[i])));
    run([&](void *t, size_t &b) { return cub::DeviceReduce::Sum(t, b, in.p, out.p, n); });
    EXPECT(out[0] == std::accumulate(host.begin(), host.end(), 0));
    Managed<cub::KeyValuePair<int, int>> best(1);
    run([&](void *t, size_t &b) { return cub::DeviceReduce::ArgMin(t, b, in.p, best.p, n); });
    EXPECT(best[0].key == std::min_element(host.begin(), host.end()) - host.begin());

    run([&](void *t, size_t &b) { return cub::DeviceSelect::If(t, b, in.p, out.p, count.p, n, Odd()); });
    std::vector<int> odd;
    std::copy_if(host.begin(), host.end(), std::back_inserter(odd), [](int x) { return x & 1; });
    EXPECT(count[0] == int(odd.size()) && std::equal(odd.begin(), odd.end(), out.p));
    run([&](void *t, size_t &b) { return cub::DevicePartition::If(t, b, in.p, out.p, count.p, n, Odd()); });
    EXPECT(count[0] == int(odd.size()) && std::equal(odd.begin(), odd.end(), out.p));

    std::vector<int> sorted = host;
    std::sort(sorted.begin(), sorted.end());
    std::copy(sorted.begin(), sorted.end(), in.p);
    std::map<int, int> counts;
    for (int x : host) counts[x]++;
    run([&](void *t, size_t &b) { return cub::DeviceRunLengthEncode::Encode(t, b, in.p, out.p, other.p, count.p, n); });
    EXPECT(count[0] == int(counts.size()));
    int at = 0;
    for (auto [key, times] : counts) EXPECT(out[at] == key && other[at++] == times);
    run([&](void *t, size_t &b) { return cub::DeviceReduce::ReduceByKey(t, b, in.p, out.p, values.p, other.p, count.p, Largest(), n); });
    EXPECT(count[0] == int(counts.size()));
    for (int i = 0, end = 0; i < count[0]; i++) EXPECT(out[i] == std::next(counts.begin(), i)->first && other[i] == (end += counts[out[i]]) - 1);

    std::copy(host.begin(), host.end(), in.p);
    run([&](void *t, size_t &b) { return cub::DeviceHistogram::HistogramEven(t, b, in.p, out.p, 11, -400, 624, n); });
    int bins[10] = {};
    for (int x : host) bins[(x + 400) * 10 / 1024]++;
    for (int i = 0; i < 10; i++) EXPECT(std::abs(out[i] - bins[i]) <= 2 && out[i] > 0);

    const int segments = 7;
    Managed<int> ends(segments + 1);
    for (int i = 0; i <= segments; i++) ends[i] = i * i * n / (segments * segments);
    run([&](void *t, size_t &b) { return cub::DeviceSegmentedReduce::Max(t, b, in.p, out.p, segments, ends.p, ends.p + 1); });
    for (int i = 0; i < segments; i++) EXPECT(out[i] == *std::max_element(host.begin() + ends[i], host.begin() + ends[i + 1]));
    run([&](void *t, size_t &b) { return cub::DeviceSegmentedSort::SortKeys(t, b, in.p, out.p, n, segments, ends.p, ends.p + 1); });
    for (int i = 0; i < segments; i++) {
        std::vector<int> part(host.begin() + ends[i], host.begin() + ends[i + 1]);
        std::sort(part.begin(), part.end());
        EXPECT(std::equal(part.begin(), part.end(), out.p + ends[i]));
    }
    Managed<Pair> pairs(n);
    for (int i = 0; i < n; i++) pairs[i] = {host[i], float(i)};
    run([&](void *t, size_t &b) { return cub::DeviceMergeSort::StableSortKeys(t, b, pairs.p, n, ByKey()); });
    for (int i = 0; i < n; i++) EXPECT(pairs[i].key == host[order[i]] && pairs[i].value == float(order[i]));
    return passed();
}

// Algorithms of Thrust, which come with the compiler: sort, scan, reduce, transform, unique.
#include "check.h"
#include <algorithm>
#include <numeric>
#include <thrust/device_vector.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/unique.h>
#include <vector>

struct Square {
    __host__ __device__ int operator()(int x) const { return x * x; }
};

int main() {
    const int n = 3000;
    std::vector<int> host(n), found(n);
    for (int i = 0; i < n; i++) host[i] = (i * 7919) % 503;
    thrust::device_vector<int> data(host.begin(), host.end()), out(n);
    EXPECT(thrust::reduce(data.begin(), data.end()) == std::accumulate(host.begin(), host.end(), 0));
    thrust::transform(data.begin(), data.end(), out.begin(), Square());
    thrust::copy(out.begin(), out.end(), found.begin());
    for (int i = 0; i < n; i++) EXPECT(found[i] == host[i] * host[i]);
    thrust::inclusive_scan(data.begin(), data.end(), out.begin());
    thrust::copy(out.begin(), out.end(), found.begin());
    std::vector<int> sums(n);
    std::partial_sum(host.begin(), host.end(), sums.begin());
    EXPECT(found == sums);
    thrust::sort(data.begin(), data.end());
    thrust::copy(data.begin(), data.end(), found.begin());
    std::sort(host.begin(), host.end());
    EXPECT(found == host);
    auto end = thrust::unique(data.begin(), data.end());
    EXPECT(end - data.begin() == std::unique(host.begin(), host.end()) - host.begin());
    return passed();
}

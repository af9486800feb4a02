// Thrust's other algorithms and iterators: by key, sets, zipped, permuted, on streams, with a pool's memory.
// flags: -std=c++17 --extended-lambda
#include "check.h"
#include <algorithm>
#include <map>
#include <set>
#include <thrust/adjacent_difference.h>
#include <thrust/binary_search.h>
#include <thrust/count.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/extrema.h>
#include <thrust/gather.h>
#include <thrust/host_vector.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/constant_iterator.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/permutation_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/partition.h>
#include <thrust/reduce.h>
#include <thrust/remove.h>
#include <thrust/scan.h>
#include <thrust/set_operations.h>
#include <thrust/sort.h>
#include <thrust/transform_reduce.h>
#include <thrust/tuple.h>
#include <thrust/universal_vector.h>
#include <vector>

int main() {
    const int n = 2000;
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    auto on = thrust::cuda::par_nosync.on(stream);
    thrust::host_vector<int> keys(n);
    thrust::host_vector<float> values(n);
    for (int i = 0; i < n; i++) keys[i] = (i * 31) % 17, values[i] = float(i % 7);
    thrust::device_vector<int> k = keys, k2(n);
    thrust::device_vector<float> v = values, v2(n);
    thrust::stable_sort_by_key(on, k.begin(), k.end(), v.begin(), [] __device__(int a, int b) { return a > b; });
    auto ends = thrust::reduce_by_key(on, k.begin(), k.end(), v.begin(), k2.begin(), v2.begin());
    CHECK(cudaStreamSynchronize(stream));
    std::map<int, float> sums;
    for (int i = 0; i < n; i++) sums[keys[i]] += values[i];
    EXPECT(ends.first - k2.begin() == 17);
    for (int i = 0; i < 17; i++) EXPECT(k2[i] == 16 - i && v2[i] == sums[16 - i]);

    auto first = thrust::make_zip_iterator(thrust::make_tuple(k.begin(), v.begin(), thrust::counting_iterator<int>(0)));
    long weighted = thrust::transform_reduce(
        first, first + n, [] __host__ __device__(const thrust::tuple<int, float, int> &t) {
            return long(thrust::get<0>(t)) * long(thrust::get<1>(t)) + thrust::get<2>(t);
        }, 0L, thrust::plus<long>());
    long expected = long(n) * (n - 1) / 2;
    for (int i = 0; i < n; i++) expected += long(keys[i]) * long(values[i]);
    EXPECT(weighted == expected);

    thrust::device_vector<int> a(300), b(200), c(500);
    thrust::transform(thrust::counting_iterator<int>(0), thrust::counting_iterator<int>(300), a.begin(), [] __device__(int i) { return 2 * i; });
    thrust::transform(thrust::counting_iterator<int>(0), thrust::counting_iterator<int>(200), b.begin(), [] __device__(int i) { return 3 * i; });
    auto end = thrust::set_intersection(a.begin(), a.end(), b.begin(), b.end(), c.begin());
    EXPECT(end - c.begin() == 100 && c[99] == 594);
    end = thrust::set_union(a.begin(), a.end(), b.begin(), b.end(), c.begin());
    EXPECT(end - c.begin() == 400 && thrust::is_sorted(c.begin(), end));
    end = thrust::set_difference(a.begin(), a.end(), b.begin(), b.end(), c.begin());
    EXPECT(end - c.begin() == 200 && c[1] == 4);
    thrust::lower_bound(a.begin(), a.end(), b.begin(), b.begin() + 150, c.begin());
    for (int i = 0; i < 150; i += 13) EXPECT(c[i] == (3 * i + 1) / 2);

    auto squares = thrust::make_transform_iterator(a.begin(), [] __host__ __device__(int x) { return x * x; });
    auto picked = thrust::make_permutation_iterator(squares, b.begin());
    EXPECT(thrust::reduce(picked, picked + 50) == [] { int s = 0; for (int i = 0; i < 50; i++) s += 36 * i * i; return s; }());
    EXPECT(thrust::inner_product(a.begin(), a.end(), thrust::constant_iterator<int>(3), 0) == 3 * 299 * 300);
    auto extremes = thrust::minmax_element(v.begin(), v.end());
    EXPECT(*extremes.first == 0 && *extremes.second == 6);
    EXPECT(thrust::count_if(k.begin(), k.end(), [] __device__(int x) { return x < 5; }) == std::count_if(keys.begin(), keys.end(), [](int x) { return x < 5; }));
    auto middle = thrust::stable_partition(k.begin(), k.end(), [] __device__(int x) { return x % 2 == 0; });
    EXPECT(middle - k.begin() == std::count_if(keys.begin(), keys.end(), [](int x) { return x % 2 == 0; }));
    auto left = thrust::remove_if(k.begin(), k.end(), [] __device__(int x) { return x > 3; });
    EXPECT(left - k.begin() == std::count_if(keys.begin(), keys.end(), [](int x) { return x <= 3; }));
    thrust::adjacent_difference(a.begin(), a.end(), c.begin());
    EXPECT(c[0] == 0 && c[299] == 2);
    thrust::inclusive_scan_by_key(a.begin(), a.end(), thrust::constant_iterator<int>(1), c.begin(), [] __device__(int x, int y) { return x / 20 == y / 20; });
    EXPECT(c[0] == 1 && c[9] == 10 && c[10] == 1 && c[299] == 10);
    thrust::universal_vector<double> shared(100, 1.5);
    thrust::for_each_n(thrust::device, thrust::counting_iterator<int>(0), 100, [p = shared.data()] __device__(int i) { p[i] *= i; });
    CHECK(cudaDeviceSynchronize());
    EXPECT(shared[99] == 148.5);
    CHECK(cudaStreamDestroy(stream));
    return passed();
}

// Functions of warps: votes, matches, shuffles of many types, reductions, masks of active lanes, and predicates of blocks.
// flags: -std=c++17 -arch=sm_80
#include "check.h"

struct Out {
    unsigned all, any, uni, ballot, match, matchall, add, minimum, maximum, band, bor, bxor, active, signedmin;
    int predicate, up, down, xored, idx;
    double d;
    long long ll;
    int count, and_, or_;
};

__global__ void lanes(Out *out) {
    int t = threadIdx.x, lane = t % 32;
    Out o = {};
    o.all = __all_sync(~0u, lane >= 0);
    o.any = __any_sync(~0u, lane == 40);
    o.ballot = __ballot_sync(~0u, lane % 3 == 0);
    o.match = __match_any_sync(~0u, lane / 5);
    int same;
    o.matchall = __match_all_sync(~0u, t / 32 == 0 ? 7 : lane, &same);
    o.predicate = same;
    o.add = __reduce_add_sync(~0u, unsigned(t));
    o.minimum = __reduce_min_sync(~0u, unsigned(t ^ 5));
    o.maximum = __reduce_max_sync(~0u, unsigned(t ^ 5));
    o.signedmin = __reduce_min_sync(~0u, lane - 16);
    o.band = __reduce_and_sync(~0u, 0xF0u | lane);
    o.bor = __reduce_or_sync(~0u, 1u << (lane / 2));
    o.bxor = __reduce_xor_sync(~0u, unsigned(lane));
    o.up = __shfl_up_sync(~0u, t, 3, 16);
    o.down = __shfl_down_sync(~0u, t, 5);
    o.xored = __shfl_xor_sync(~0u, t, 9);
    o.idx = __shfl_sync(~0u, t, lane + 33, 8);
    o.d = __shfl_sync(~0u, t * 1.25, 31 - lane);
    o.ll = __shfl_xor_sync(~0u, (long long)t << 40, 1);
    if (lane % 4 == 1) {
        o.active = __activemask();
        o.uni = __shfl_sync(0x22222222u, t, 5);
    } else {
        o.uni = __ballot_sync(0xDDDDDDDDu, lane > 8);
    }
    __syncwarp();
    o.count = __syncthreads_count(t % 5 == 0);
    o.and_ = __syncthreads_and(t < 64);
    o.or_ = __syncthreads_or(t == 63);
    out[t] = o;
}

int main() {
    Out *out;
    CHECK(cudaMallocManaged(&out, 64 * sizeof(Out)));
    lanes<<<1, 64>>>(out);
    CHECK(cudaDeviceSynchronize());
    for (int t = 0; t < 64; t++) {
        const Out &o = out[t];
        int lane = t % 32, warp = t / 32;
        unsigned threes = 0, group = 0, sum = 0, lo = ~0u, hi = 0, greater = 0;
        for (int i = 0; i < 32; i++) {
            threes |= unsigned(i % 3 == 0) << i;
            group |= unsigned(i / 5 == lane / 5) << i;
            unsigned v = warp * 32 + i;
            sum += v, lo = (v ^ 5) < lo ? (v ^ 5) : lo, hi = (v ^ 5) > hi ? (v ^ 5) : hi;
            if (i % 4 != 1) greater |= unsigned(i > 8) << i;
        }
        EXPECT(o.all && !o.any && o.ballot == threes && o.match == group);
        EXPECT(o.predicate == (warp == 0) && o.matchall == (warp == 0 ? ~0u : 0u));
        EXPECT(o.add == sum && o.minimum == lo && o.maximum == hi && int(o.signedmin) == -16);
        EXPECT(o.band == 0xE0 + 0x10 && o.bor == 0xFFFF && o.bxor == 0);
        EXPECT(o.up == (lane % 16 >= 3 ? t - 3 : t) && o.down == (lane < 27 ? t + 5 : t) && o.xored == (t ^ 9));
        EXPECT(o.idx == t / 8 * 8 + (lane + 33) % 8 && o.d == (warp * 32 + 31 - lane) * 1.25 && o.ll == (long long)(t ^ 1) << 40);
        EXPECT(lane % 4 == 1 ? o.active == 0x22222222u && o.uni == unsigned(warp * 32 + 5) : o.uni == greater);
        EXPECT(o.count == 13 && o.and_ && o.or_);
    }
    return passed();
}

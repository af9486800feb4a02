// Intrinsics of integers: SIMD in a word, dot products, bits, funnel shifts, permutes, high halves, saturation, carries.
// flags: -std=c++17
#include "check.h"
#include <cstdint>

struct R {
    unsigned v[24];
    unsigned long long w[6];
};

__global__ void device(const unsigned *x, const unsigned *y, R *r) {
    int i = threadIdx.x;
    unsigned a = x[i], b = y[i];
    r[i].v[0] = __vadd4(a, b), r[i].v[1] = __vsubss4(a, b), r[i].v[2] = __vmaxs2(a, b), r[i].v[3] = __vabsdiffu4(a, b);
    r[i].v[4] = __vcmpgtu4(a, b), r[i].v[5] = __vsadu4(a, b), r[i].v[6] = __vavgu4(a, b), r[i].v[7] = __vhaddu2(a, b);
    r[i].v[8] = __dp4a(int(a), int(b), 5), r[i].v[9] = __dp2a_lo(int(a), int(b), 9), r[i].v[10] = __brev(a), r[i].v[11] = __clz(b);
    r[i].v[12] = __ffs(a), r[i].v[13] = __popc(b), r[i].v[14] = __byte_perm(a, b, 0x5321), r[i].v[15] = __funnelshift_l(a, b, 37);
    r[i].v[16] = __funnelshift_rc(a, b, 37), r[i].v[17] = __umulhi(a, b), r[i].v[18] = __mulhi(int(a), int(b)), r[i].v[19] = __sad(int(a), int(b), 7u);
    r[i].v[20] = __rhadd(int(a), int(b)), r[i].v[21] = __hadd(int(a), int(b)), r[i].v[22] = __viaddmax_s32(a, 5, b), r[i].v[23] = __vimin3_u32(a, b, 1u << 20);
    unsigned long long c = (unsigned long long)a << 32 | b;
    r[i].w[0] = __umul64hi(c, ~c), r[i].w[1] = __brevll(c), r[i].w[2] = __clzll(c >> 5), r[i].w[3] = __popcll(c), r[i].w[4] = __ffsll(c << 3);
    r[i].w[5] = (unsigned long long)((unsigned __int128)c * c >> 64);
}

template <class F> unsigned bytes(unsigned a, unsigned b, F f) {
    unsigned r = 0;
    for (int i = 0; i < 32; i += 8) r |= (unsigned(f(a >> i & 255, b >> i & 255)) & 255) << i;
    return r;
}
template <class F> unsigned halves(unsigned a, unsigned b, F f) {
    return (unsigned(f(a & 65535, b & 65535)) & 65535) | unsigned(f(a >> 16, b >> 16)) << 16;
}

int main() {
    unsigned *x, *y;
    R *r;
    CHECK(cudaMallocManaged(&x, 1024));
    CHECK(cudaMallocManaged(&y, 1024));
    CHECK(cudaMallocManaged(&r, 256 * sizeof(R)));
    unsigned s = 7;
    for (int i = 0; i < 256; i++) x[i] = s = s * 1664525 + 1013904223, y[i] = s = s * 1664525 + 1013904223;
    x[0] = y[0] = 0, x[1] = ~0u, y[1] = 1, x[2] = 0x80808080, y[2] = 0x7F7F7F7F;
    device<<<1, 256>>>(x, y, r);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 256; i++) {
        unsigned a = x[i], b = y[i];
        auto sat = [](int v) { return v > 127 ? 127 : v < -128 ? -128 : v; };
        EXPECT(r[i].v[0] == bytes(a, b, [](int p, int q) { return p + q; }));
        EXPECT(r[i].v[1] == bytes(a, b, [&](int p, int q) { return sat(int8_t(p) - int8_t(q)); }));
        EXPECT(r[i].v[2] == halves(a, b, [](int p, int q) { return int16_t(p) > int16_t(q) ? p : q; }));
        EXPECT(r[i].v[3] == bytes(a, b, [](int p, int q) { return std::abs(p - q); }));
        EXPECT(r[i].v[4] == bytes(a, b, [](int p, int q) { return p > q ? 255 : 0; }));
        int sad = 0, dot = 5, dot2 = 9;
        for (int k = 0; k < 4; k++) sad += std::abs(int(a >> 8 * k & 255) - int(b >> 8 * k & 255)), dot += int8_t(a >> 8 * k) * int8_t(b >> 8 * k);
        for (int k = 0; k < 2; k++) dot2 += int16_t(a >> 16 * k) * int8_t(b >> 8 * k);
        EXPECT(r[i].v[5] == unsigned(sad) && r[i].v[8] == unsigned(dot) && r[i].v[9] == unsigned(dot2));
        EXPECT(r[i].v[6] == bytes(a, b, [](int p, int q) { return (p + q + 1) / 2; }));
        EXPECT(r[i].v[7] == halves(a, b, [](int p, int q) { return (p + q) / 2; }));
        unsigned reversed = 0;
        for (int k = 0; k < 32; k++) reversed |= (a >> k & 1) << (31 - k);
        EXPECT(r[i].v[10] == reversed && r[i].v[11] == unsigned(b ? __builtin_clz(b) : 32) && r[i].v[12] == unsigned(__builtin_ffs(a)) && r[i].v[13] == unsigned(__builtin_popcount(b)));
        uint64_t both = uint64_t(b) << 32 | a;
        unsigned permuted = 0;
        for (int k = 0; k < 4; k++) permuted |= (both >> 8 * (0x5321 >> 4 * k & 7) & 255) << 8 * k;
        EXPECT(r[i].v[14] == permuted);
        EXPECT(r[i].v[15] == unsigned(both << 5 >> 32) && r[i].v[16] == b);
        EXPECT(r[i].v[17] == unsigned(uint64_t(a) * b >> 32) && r[i].v[18] == unsigned(int64_t(int(a)) * int(b) >> 32));
        EXPECT(r[i].v[19] == unsigned(std::abs(int64_t(int(a)) - int(b))) + 7);
        EXPECT(r[i].v[20] == unsigned((int64_t(int(a)) + int(b) + 1) >> 1) && r[i].v[21] == unsigned((int64_t(int(a)) + int(b)) >> 1));
        EXPECT(r[i].v[22] == unsigned(std::max(int(a + 5), int(b))) && r[i].v[23] == std::min(std::min(a, b), 1u << 20));
        uint64_t c = uint64_t(a) << 32 | b, back = 0;
        for (int k = 0; k < 64; k++) back |= (c >> k & 1) << (63 - k);
        EXPECT(r[i].w[0] == uint64_t((unsigned __int128)c * ~c >> 64) && r[i].w[1] == back && r[i].w[3] == uint64_t(__builtin_popcountll(c)));
        EXPECT(r[i].w[2] == uint64_t(c >> 5 ? __builtin_clzll(c >> 5) : 64) && r[i].w[4] == uint64_t(__builtin_ffsll(c << 3)) && r[i].w[5] == uint64_t((unsigned __int128)c * c >> 64));
    }
    return passed();
}

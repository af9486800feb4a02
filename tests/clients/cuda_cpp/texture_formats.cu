// Texture objects of every format of channels, read as they are or normalized, from arrays, rows and plain memory.
// flags: -std=c++17
#include "check.h"
#include <cstring>
#include <cuda_fp16.h>
#include <type_traits>

const int W = 24, H = 16;
template <class T> __global__ void fetch(cudaTextureObject_t of_array, cudaTextureObject_t of_rows, cudaTextureObject_t of_memory, T *out) {
    int x = threadIdx.x, y = threadIdx.y, n = W * H, i = y * W + x;
    out[i] = tex2D<T>(of_array, x + .5f, y + .5f);
    out[n + i] = tex2D<T>(of_rows, x + .5f, y + .5f);
    out[2 * n + i] = tex1Dfetch<T>(of_memory, i);
}
__global__ void gather(cudaTextureObject_t t, float4 *out) {
    int x = threadIdx.x, y = threadIdx.y;
    out[y * W + x] = tex2Dgather<float4>(t, x + 1.f, y + 1.f, 0);
}

// E: the element, V: the vector that is read, C: its channels.  Elements of a KIND are normalised whatever is asked for.
template <class E, class V, int C, bool NORMALIZED = false, int KIND = 0> void check() {
    using R = std::conditional_t<NORMALIZED, float, E>;
    cudaChannelFormatDesc format = cudaCreateChannelDesc(C > 0 ? 8 * sizeof(E) : 0, C > 1 ? 8 * sizeof(E) : 0, C > 2 ? 8 * sizeof(E) : 0, C > 3 ? 8 * sizeof(E) : 0,
        std::is_floating_point<E>::value ? cudaChannelFormatKindFloat : std::is_signed<E>::value ? cudaChannelFormatKindSigned : cudaChannelFormatKindUnsigned);
    if (KIND) format.f = cudaChannelFormatKind(KIND);
    static E host[W * H * C];
    unsigned s = 5;
    for (E &each : host) each = E(std::is_floating_point<E>::value ? int(s = s * 1664525 + 1013904223) / 65536. : double(0)), std::is_floating_point<E>::value ? 0 : (std::memcpy(&each, &(s = s * 1664525 + 1013904223), sizeof(E)), 0);
    cudaArray_t array;
    char *rows;
    E *memory;
    V *out;
    size_t pitch, line = W * C * sizeof(E);
    CHECK(cudaMallocArray(&array, &format, W, H));
    CHECK(cudaMallocPitch(&rows, &pitch, line, H));
    CHECK(cudaMalloc(&memory, sizeof host));
    CHECK(cudaMallocManaged(&out, 3 * W * H * sizeof(V)));
    CHECK(cudaMemcpy2DToArray(array, 0, 0, host, line, line, H, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy2D(rows, pitch, host, line, line, H, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(memory, host, sizeof host, cudaMemcpyHostToDevice));
    cudaResourceDesc r[3] = {};
    r[0].resType = cudaResourceTypeArray, r[0].res.array.array = array;
    r[1].resType = cudaResourceTypePitch2D, r[1].res.pitch2D = {rows, format, W, H, pitch};
    r[2].resType = cudaResourceTypeLinear, r[2].res.linear = {memory, format, sizeof host};
    cudaTextureDesc d = {};
    d.readMode = NORMALIZED && !KIND ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
    cudaTextureObject_t t[3];
    for (int i = 0; i < 3; i++) CHECK(cudaCreateTextureObject(&t[i], &r[i], &d, nullptr));
    fetch<V><<<1, dim3(W, H)>>>(t[0], t[1], t[2], out);
    CHECK(cudaDeviceSynchronize());
    for (int k = 0; k < 3 * W * H; k++)
        for (int c = 0; c < C; c++) {
            E e = host[k % (W * H) * C + c];
            R found = reinterpret_cast<R *>(out + k)[c], wanted = R(e);
            if (NORMALIZED) {
                double most = std::is_signed<E>::value ? (1ull << (8 * sizeof(E) - 1)) - 1 : (1ull << 8 * sizeof(E)) - 1;
                wanted = R(std::fmax(double(e) / most, -1));
            }
            if (NORMALIZED ? std::fabs(double(found) - double(wanted)) > 1e-6 : found != wanted) {
                std::printf("%zu bytes, %d channels, normalized %d, kind %d, element %d.%d: %g, not %g\n", sizeof(E), C, NORMALIZED, int(format.f), k, c, double(found), double(wanted));
                std::exit(1);
            }
        }
    for (auto each : t) CHECK(cudaDestroyTextureObject(each));
    CHECK(cudaFreeArray(array));
    CHECK(cudaFree(rows));
    CHECK(cudaFree(memory));
    CHECK(cudaFree(out));
}

int main() {
    check<unsigned char, unsigned char, 1>();
    check<unsigned char, uchar2, 2>();
    check<unsigned char, uchar4, 4>();
    check<signed char, char1, 1>();
    check<signed char, char4, 4>();
    check<unsigned short, ushort1, 1>();
    check<short, short2, 2>();
    check<unsigned short, ushort4, 4>();
    check<unsigned, unsigned, 1>();
    check<int, int2, 2>();
    check<unsigned, uint4, 4>();
    check<float, float, 1>();
    check<float, float2, 2>();
    check<float, float4, 4>();
    check<unsigned char, float, 1, true>();
    check<unsigned char, float4, 4, true>();
    check<signed char, float2, 2, true>();
    check<unsigned short, float, 1, true>();
    check<short, float4, 4, true>();
    check<unsigned char, float, 1, true, cudaChannelFormatKindUnsignedNormalized8X1>();
    check<unsigned char, float4, 4, true, cudaChannelFormatKindUnsignedNormalized8X4>();
    check<signed char, float2, 2, true, cudaChannelFormatKindSignedNormalized8X2>();
    check<unsigned short, float2, 2, true, cudaChannelFormatKindUnsignedNormalized16X2>();
    check<short, float4, 4, true, cudaChannelFormatKindSignedNormalized16X4>();

    float host[W * H];
    for (int i = 0; i < W * H; i++) host[i] = float(i);
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    CHECK(cudaMallocArray(&array, &format, W, H, cudaArrayTextureGather));
    CHECK(cudaMemcpy2DToArray(array, 0, 0, host, W * 4, W * 4, H, cudaMemcpyHostToDevice));
    cudaResourceDesc r = {};
    r.resType = cudaResourceTypeArray, r.res.array.array = array;
    cudaTextureDesc d = {};
    d.addressMode[0] = d.addressMode[1] = cudaAddressModeClamp;
    cudaTextureObject_t t;
    CHECK(cudaCreateTextureObject(&t, &r, &d, nullptr));
    float4 *out;
    CHECK(cudaMallocManaged(&out, W * H * sizeof(float4)));
    gather<<<1, dim3(W - 1, H - 1)>>>(t, out);
    CHECK(cudaDeviceSynchronize());
    for (int y = 0; y < H - 1; y++)
        for (int x = 0; x < W - 1; x++) {
            float4 g = out[y * W + x];
            EXPECT(g.x == host[(y + 1) * W + x] && g.y == host[(y + 1) * W + x + 1] && g.z == host[y * W + x + 1] && g.w == host[y * W + x]);
        }

    // Halves of an array are read as floats.
    __half halves[W * H];
    for (int i = 0; i < W * H; i++) halves[i] = __float2half(i * .25f);
    cudaChannelFormatDesc half = cudaCreateChannelDescHalf1();
    cudaArray_t other;
    CHECK(cudaMallocArray(&other, &half, W, H));
    CHECK(cudaMemcpy2DToArray(other, 0, 0, halves, W * 2, W * 2, H, cudaMemcpyHostToDevice));
    r.res.array.array = other;
    cudaTextureObject_t u;
    d.filterMode = cudaFilterModePoint;
    CHECK(cudaCreateTextureObject(&u, &r, &d, nullptr));
    fetch<float><<<1, dim3(W, H)>>>(u, u, u, (float *)out);
    cudaDeviceSynchronize();
    for (int i = 0; i < W * H; i++) EXPECT(((float *)out)[i] == i * .25f);
    return passed();
}

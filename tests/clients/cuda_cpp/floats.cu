// The functions of the mathematical library for double and float, within the errors that the programming guide allows.
// flags: -std=c++17
#include "check.h"
#include <functional>
#include <string>

const int N = 512;
#define UNARY(F)                                                                                                  \
    F(sin) F(cos) F(tan) F(asin) F(acos) F(atan) F(sinh) F(cosh) F(tanh) F(asinh) F(acosh) F(atanh) F(exp) F(exp2) \
    F(expm1) F(log) F(log2) F(log10) F(log1p) F(cbrt) F(erf) F(erfc) F(tgamma) F(lgamma) F(sqrt) F(ceil) F(floor)  \
    F(trunc) F(round) F(rint) F(j0) F(j1) F(y0) F(y1) F(logb)
#define BINARY(F) F(pow) F(atan2) F(hypot) F(fmod) F(remainder) F(fdim) F(copysign) F(nextafter) F(fmax) F(fmin)
#define DECLARE(f)                                                                          \
    template <class T> __global__ void k_##f(const T *x, T *y) {                            \
        int i = blockIdx.x * blockDim.x + threadIdx.x;                                      \
        y[i] = f(x[i]);                                                                     \
    }
#define DECLARE2(f)                                                                         \
    template <class T> __global__ void k_##f(const T *x, const T *z, T *y) {                \
        int i = blockIdx.x * blockDim.x + threadIdx.x;                                      \
        y[i] = f(x[i], z[i]);                                                               \
    }
UNARY(DECLARE)
BINARY(DECLARE2)
__global__ void others(const double *x, double *y) {
    int i = threadIdx.x, q;
    double s, c, w;
    sincos(x[i], &s, &c);
    y[i] = s + c;
    sincospi(x[i], &s, &c);
    y[N + i] = s * c;
    y[2 * N + i] = remquo(x[i], .37, &q) + (q & 7);
    y[3 * N + i] = frexp(x[i], &q) + q;
    y[4 * N + i] = modf(x[i], &w) + w;
    y[5 * N + i] = normcdf(x[i]);
    y[6 * N + i] = erfinv(tanh(x[i])) + erfcinv(1 + tanh(x[i]));
    y[7 * N + i] = rsqrt(fabs(x[i]) + 1) + rcbrt(fabs(x[i]) + 1) + rhypot(x[i], 3.) + norm3d(x[i], 1., 2.) + norm4d(x[i], 1., 2., 3.);
    y[8 * N + i] = scalbn(x[i], 3) + ldexp(x[i], -3) + ilogb(x[i] + 100) + llrint(x[i]) + lround(x[i]);
    y[9 * N + i] = cyl_bessel_i0(x[i] / 4) + cyl_bessel_i1(x[i] / 4) + exp10(x[i] / 9) + sinpi(x[i]) + cospi(x[i]);
    y[10 * N + i] = fma(x[i], x[i], -1.) + __dadd_rz(x[i], .1) + __dmul_ru(x[i], .1) + __ddiv_rd(x[i], 3.) + __drcp_rn(x[i] + 99);
}

template <class T> void near(const char *name, const T *x, const T *z, const T *y, std::function<double(double, double)> f, double ulps) {
    for (int i = 0; i < N; i++) {
        double wanted = f(x[i], z ? z[i] : 0), unit = std::is_same<T, float>::value ? 1.2e-7 : 2.3e-16;
        if (std::isnan(wanted) ? !std::isnan(double(y[i])) : std::isinf(wanted) || std::isinf(double(y[i])) ? T(wanted) != y[i] : std::fabs(y[i] - wanted) > ulps * unit * (std::fabs(wanted) + (ulps > 8 ? 1 : 0))) {
            std::printf("%s(%a, %a) of %zu bytes is %a, not %a\n", name, double(x[i]), z ? double(z[i]) : 0, sizeof(T), double(y[i]), wanted);
            std::exit(1);
        }
    }
}

template <class T> void check() {
    T *x, *y, *z;
    for (T **each : {&x, &y, &z}) CHECK(cudaMallocManaged(each, N * sizeof(T)));
    for (int i = 0; i < N; i++) x[i] = T((i - N / 2) * 7.3 / N + .001), z[i] = T(((i * 37) % 101 - 50) * .13 + .01);
#define RUN(f)                                                                                                   \
    k_##f<T><<<4, N / 4>>>(x, y);                                                                                \
    CHECK(cudaDeviceSynchronize());                                                                              \
    near<T>(#f, x, nullptr, y, [](double a, double) { return double(::f(a)); },                                  \
            #f[0] == 'j' || #f[0] == 'y' || #f[0] == 't' || #f[1] == 'g' ? 40 : 6);
#define RUN2(f)                                                                                                  \
    k_##f<T><<<4, N / 4>>>(x, z, y);                                                                             \
    CHECK(cudaDeviceSynchronize());                                                                              \
    if (std::string(#f) != "nextafter" || sizeof(T) == 8) near<T>(#f, x, z, y, [](double a, double b) { return double(::f(a, b)); }, 10);
    UNARY(RUN)
    BINARY(RUN2)
}

int main() {
    check<double>();
    check<float>();
    double *x, *y;
    CHECK(cudaMallocManaged(&x, N * sizeof(double)));
    CHECK(cudaMallocManaged(&y, 11 * N * sizeof(double)));
    for (int i = 0; i < N; i++) x[i] = (i - N / 2) * 5.1 / N + .003;
    others<<<1, N>>>(x, y);
    CHECK(cudaDeviceSynchronize());
    const double pi = std::acos(-1.);
    for (int i = 0; i < N; i++) {
        double a = x[i], w;
        int q;
        EXPECT(close(y[i], std::sin(a) + std::cos(a), 1e-14) && close(y[N + i], std::sin(pi * a) * std::cos(pi * a), 1e-14));
        double r = remquo(a, .37, &q);
        EXPECT(close(y[2 * N + i], r + (q & 7), 1e-13));
        double m = frexp(a, &q);
        EXPECT(y[3 * N + i] == m + q && y[4 * N + i] == modf(a, &w) + w && close(y[5 * N + i], .5 * erfc(-a / std::sqrt(2.)), 1e-13));
        EXPECT(std::fabs(y[6 * N + i]) < 1e-6);
        EXPECT(close(y[7 * N + i], 1 / std::sqrt(std::fabs(a) + 1) + 1 / std::cbrt(std::fabs(a) + 1) + 1 / std::hypot(a, 3.) + std::sqrt(a * a + 5) + std::sqrt(a * a + 14), 1e-14));
        EXPECT(close(y[8 * N + i], scalbn(a, 3) + ldexp(a, -3) + ilogb(a + 100) + llrint(a) + lround(a), 1e-14));
        EXPECT(close(y[9 * N + i], std::cyl_bessel_i(0., std::fabs(a) / 4) + std::copysign(std::cyl_bessel_i(1., std::fabs(a) / 4), a) + std::pow(10., a / 9) + std::sin(pi * a) + std::cos(pi * a), 1e-13));
        EXPECT(close(y[10 * N + i], a * a - 1 + a + .1 + a * .1 + a / 3 + 1 / (a + 99), 1e-13));
    }
    return passed();
}

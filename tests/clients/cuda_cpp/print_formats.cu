// Every conversion of printf in a kernel, beside what the host's printf makes of the same arguments.
#include "check.h"
#include <cstring>
#include <string>
#include <unistd.h>
#define ALL(P)                                                                                                                 \
    P("%d %i %u %x %X %o|\n", -5, 7, 4000000000u, 0xbeef, 0xBEEF, 8)                                                           \
    P("%5d|%-5d|%05d|%+d|% d|%.3d|%8.3d|\n", 42, 42, 42, 42, 42, 7, 7)                                                         \
    P("%ld %lld %lu %llu %lx %llX|\n", -1L, -9000000000000000000LL, 18446744073709551615UL, 18446744073709551615ULL, 255L,     \
      255ULL)                                                                                                                  \
    P("%hd %hhd %hu %hhu|\n", (short)-3, (signed char)-4, (unsigned short)65535, (unsigned char)255)                           \
    P("%f %.2f %10.3f %-10.3f| %+.1f %e %.3E %g %G %a|\n", 1.5, 2.345, 3.14159, 2.71828, 1.0, 12345.678, 0.00012345, 1e-5,     \
      1e20, 1.0)                                                                                                               \
    P("%f %f %f %e|\n", 1.0 / 0.0 + zero, -1.0 / 0.0 + zero, 0.0, 1e308)                                                       \
    P("%s|%10s|%-10s|%.3s|%c%c|\n", "text", "right", "left", "truncated", 'x', 'y')                                            \
    P("%%|%5c|%-5c|\n", 'a', 'b')                                                                                              \
    P("%#x %#o %#.0f|\n", 255, 8, 3.0)                                                                                         \
    P("%*d|%-*d|%.*f|\n", 6, 42, 6, 42, 2, 3.14159)                                                                            \
    P("%zu %zd %jd %td|\n", (size_t)99, (size_t)98, (long)97, (long)96)                                                        \
    P("%d %f %d %f %d %f %d %f %d %f %d %f|\n", 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5, 6, 6.5)

__global__ void say(double zero) {
#define P(...) printf(__VA_ARGS__);
    ALL(P)
#undef P
}

__global__ void count(int *to) {
    to[0] = printf("three %d %d %d\n", 1, 2, 3);
    to[1] = printf("no arguments\n");
    to[2] = printf("\n");
}

int main() {
    double zero = 0;
    std::string want;
    char line[512];
#define P(...)                                                                                                                 \
    snprintf(line, sizeof line, __VA_ARGS__);                                                                                  \
    want += line;
    ALL(P)
    fflush(stdout);
    int old = dup(1), file = fileno(tmpfile());
    dup2(file, 1);
    say<<<1, 1>>>(0.0);
    cudaError_t e = cudaDeviceSynchronize();
    fflush(stdout);
    dup2(old, 1);
    CHECK(e);
    std::string got(1 << 16, 0);
    got.resize(pread(file, &got[0], got.size(), 0));
    if (got != want) printf("got\n%swant\n%s", got.c_str(), want.c_str());
    EXPECT(got == want);
    int *to;
    CHECK(cudaMallocManaged(&to, 12));
    count<<<1, 1>>>(to);
    CHECK(cudaDeviceSynchronize());
    EXPECT(to[0] == 3 && to[1] == 0 && to[2] == 0); // the number of arguments
    size_t size;
    CHECK(cudaDeviceGetLimit(&size, cudaLimitPrintfFifoSize));
    EXPECT(size == 1 << 20);
    return passed();
}

// Libraries loaded from files: kernels counted and listed, variables of the device and managed ones, attributes of kernels.
// flags: -l:libnvrtc.so.13
#include "check.h"
#include <cstring>
#include <nvrtc.h>
#include <set>
#include <string>
#include <vector>
#define NVRTC(call) EXPECT((call) == NVRTC_SUCCESS)
static const char *SOURCE = R"(
__device__ int table[5] = {1, 2, 3, 4, 5};
__managed__ int total = 7;
__constant__ float weight;
extern "C" __global__ void __launch_bounds__(128) sum(int *out, int n, const float3 unused) {
    extern __shared__ int parts[];
    parts[threadIdx.x] = threadIdx.x < 5 ? table[threadIdx.x] : 0;
    __syncthreads();
    if (!threadIdx.x) { int s = 0; for (int i = 0; i < n; i++) s += parts[i]; *out = s * int(weight); total += s; }
}
extern "C" __global__ void other() { total = -1; }
template <int N> __global__ void made(int *out) { *out = N; }
template __global__ void made<3>(int *);
)";
__global__ void of_program(int *p, double q, char c) { *p = int(q) + c; }
int main() {
    nvrtcProgram program;
    NVRTC(nvrtcCreateProgram(&program, SOURCE, "lib.cu", 0, nullptr, nullptr));
    const char *options[] = {"--gpu-architecture=compute_75"};
    NVRTC(nvrtcCompileProgram(program, 1, options));
    size_t size;
    NVRTC(nvrtcGetPTXSize(program, &size));
    std::vector<char> ptx(size);
    NVRTC(nvrtcGetPTX(program, ptx.data()));
    char path[] = "/tmp/libraryXXXXXX";
    int fd = mkstemp(path);
    EXPECT(fd >= 0);
    FILE *file = fdopen(fd, "w");
    fwrite(ptx.data(), 1, size, file);
    fclose(file);
    cudaLibrary_t library;
    CHECK(cudaLibraryLoadFromFile(&library, path, nullptr, nullptr, 0, nullptr, nullptr, 0));
    remove(path);
    EXPECT(cudaLibraryLoadFromFile(&library, "/no/such/file", nullptr, nullptr, 0, nullptr, nullptr, 0) == cudaErrorFileNotFound);
    EXPECT(cudaGetLastError() == cudaErrorFileNotFound);
    unsigned count;
    CHECK(cudaLibraryGetKernelCount(&count, library));
    EXPECT(count == 3);
    cudaKernel_t kernels[3], sum;
    CHECK(cudaLibraryEnumerateKernels(kernels, 3, library));
    CHECK(cudaLibraryGetKernel(&sum, library, "sum"));
    EXPECT(kernels[0] == sum || kernels[1] == sum || kernels[2] == sum);
    std::set<std::string> names;
    for (auto kernel : kernels) {
        const char *name;
        CHECK(cudaFuncGetName(&name, (const void *)kernel));
        names.insert(name);
    }
    EXPECT(names.size() == 3 && names.count("sum") && names.count("other") && names.count("_Z4madeILi3EEvPi"));
    cudaKernel_t none;
    EXPECT(cudaLibraryGetKernel(&none, library, "absent") == cudaErrorSymbolNotFound);
    cudaGetLastError();
    void *table, *weight;
    int *total;
    size_t bytes;
    CHECK(cudaLibraryGetGlobal(&table, &bytes, library, "table"));
    EXPECT(bytes == 20);
    CHECK(cudaLibraryGetGlobal(&weight, &bytes, library, "weight"));
    EXPECT(bytes == 4);
    CHECK(cudaLibraryGetManaged((void **)&total, &bytes, library, "total"));
    EXPECT(bytes == 4 && *total == 7);
    EXPECT(cudaLibraryGetManaged((void **)&table, &bytes, library, "table") != cudaSuccess);
    cudaGetLastError();
    float two = 2;
    CHECK(cudaMemcpy(weight, &two, 4, cudaMemcpyHostToDevice));
    int hundred = 100, *out, result, n = 5;
    CHECK(cudaMemcpy((int *)table + 4, &hundred, 4, cudaMemcpyHostToDevice));
    CHECK(cudaMalloc(&out, 4));
    float3 unused = {};
    void *args[] = {&out, &n, &unused};
    CHECK(cudaLaunchKernel((const void *)sum, dim3(1), dim3(32), args, 128, 0));
    CHECK(cudaMemcpy(&result, out, 4, cudaMemcpyDeviceToHost));
    EXPECT(result == 220 && *total == 117);
    size_t offset;
    CHECK(cudaFuncGetParamCount((const void *)sum, &bytes));
    EXPECT(bytes == 3);
    CHECK(cudaFuncGetParamInfo((const void *)sum, 2, &offset, &bytes));
    EXPECT(offset == 12 && bytes == 12);
    EXPECT(cudaFuncGetParamInfo((const void *)sum, 3, &offset, &bytes) == cudaErrorInvalidValue);
    cudaGetLastError();
    cudaFuncAttributes a;
    CHECK(cudaFuncGetAttributes(&a, (const void *)sum));
    EXPECT(a.maxThreadsPerBlock == 128);
    CHECK(cudaKernelSetAttributeForDevice(sum, cudaFuncAttributeMaxDynamicSharedMemorySize, 60000, 0));
    CHECK(cudaFuncGetAttributes(&a, (const void *)sum));
    EXPECT(a.maxDynamicSharedSizeBytes == 60000);
    CHECK(cudaLaunchKernel((const void *)sum, dim3(1), dim3(32), args, 60000, 0));
    CHECK(cudaDeviceSynchronize());
    EXPECT(cudaLaunchKernel((const void *)sum, dim3(1), dim3(256), args, 1024, 0) != cudaSuccess);  // more than __launch_bounds__
    cudaGetLastError();
    // one of this program, by its function
    cudaKernel_t own;
    CHECK(cudaGetKernel(&own, (const void *)of_program));
    CHECK(cudaFuncGetParamCount((const void *)of_program, &bytes));
    EXPECT(bytes == 3);
    double q = 40;
    char c = 2;
    void *own_args[] = {&out, &q, &c};
    CHECK(cudaLaunchKernel((const void *)own, dim3(1), dim3(1), own_args, 0, 0));
    CHECK(cudaMemcpy(&result, out, 4, cudaMemcpyDeviceToHost));
    EXPECT(result == 42);
    CHECK(cudaLibraryUnload(library));
    return passed();
}

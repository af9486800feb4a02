// The driver's functions under the runtime's: entry points by name, memory that is mapped, and kernels by their handles.
#include "check.h"
#include <cstring>
#include <cuda.h>
#include <vector>

#define DRIVER(call)                                                                                        \
    do {                                                                                                    \
        CUresult result_ = (call);                                                                          \
        if (result_ != CUDA_SUCCESS) {                                                                      \
            std::printf("%s:%d: %s: %d\n", __FILE__, __LINE__, #call, result_);                             \
            std::exit(2);                                                                                   \
        }                                                                                                   \
    } while (0)

template <class F> F *entry(const char *name, int version = 12000) {
    void *found = nullptr;
    cudaDriverEntryPointQueryResult how;
    CHECK(cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &how));
    EXPECT(how == cudaDriverEntryPointSuccess && found);
    return (F *)found;
}

__global__ void number(int *to, int n, int first) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) to[i] = first + i;
}
__global__ void both(const int *a, const int *b, int *to) { to[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x]; }

int main() {
    CHECK(cudaSetDevice(0));
    void *nothing;
    cudaDriverEntryPointQueryResult how;
    CHECK(cudaGetDriverEntryPointByVersion("cuDoesNotExist", &nothing, 12000, cudaEnableDefault, &how));
    EXPECT(how == cudaDriverEntryPointSymbolNotFound && !nothing);

    // Reserved addresses, of which two pieces of memory back a part each; a piece may be at two addresses.
    auto granularity = entry<decltype(cuMemGetAllocationGranularity)>("cuMemGetAllocationGranularity");
    auto reserve = entry<decltype(cuMemAddressReserve)>("cuMemAddressReserve");
    auto create = entry<decltype(cuMemCreate)>("cuMemCreate");
    auto map = entry<decltype(cuMemMap)>("cuMemMap");
    auto allow = entry<decltype(cuMemSetAccess)>("cuMemSetAccess");
    auto unmap = entry<decltype(cuMemUnmap)>("cuMemUnmap");
    auto release = entry<decltype(cuMemRelease)>("cuMemRelease");
    auto give_back = entry<decltype(cuMemAddressFree)>("cuMemAddressFree");
    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED, properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    size_t piece = 0;
    DRIVER(granularity(&piece, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    EXPECT(piece && piece % 4096 == 0);
    CUdeviceptr at, again;
    CUmemGenericAllocationHandle first, second;
    DRIVER(reserve(&at, 2 * piece, 0, 0, 0));
    DRIVER(reserve(&again, piece, 0, 0, 0));
    DRIVER(create(&first, piece, &properties, 0));
    DRIVER(create(&second, piece, &properties, 0));
    DRIVER(map(at, piece, 0, first, 0));
    DRIVER(map(at + piece, piece, 0, second, 0));
    DRIVER(map(again, piece, 0, second, 0));
    CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    DRIVER(allow(at, 2 * piece, &access, 1));
    DRIVER(allow(again, piece, &access, 1));
    int n = piece / sizeof(int) + 100;  // over the border
    number<<<1, 256>>>((int *)at, n, 5);
    CHECK(cudaDeviceSynchronize());
    std::vector<int> host(100);
    CHECK(cudaMemcpy(host.data(), (void *)again, 400, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 100; i++) EXPECT(host[i] == 5 + int(piece / sizeof(int)) + i);
    DRIVER(unmap(again, piece));
    DRIVER(unmap(at, 2 * piece));
    DRIVER(release(first));
    DRIVER(release(second));
    DRIVER(give_back(at, 2 * piece));
    DRIVER(give_back(again, piece));

    // A kernel of the program as a function of the driver, and its attributes on both sides.
    cudaFunction_t function;
    CHECK(cudaGetFuncBySymbol(&function, (const void *)both));
    auto launch = entry<decltype(cuLaunchKernel)>("cuLaunchKernel");
    auto ask = entry<decltype(cuFuncGetAttribute)>("cuFuncGetAttribute");
    auto name_of = entry<decltype(cuFuncGetName)>("cuFuncGetName", 12030);
    auto copy = entry<decltype(cuMemcpyDtoH)>("cuMemcpyDtoH");
    int *data, threads;
    CHECK(cudaMalloc(&data, 300 * sizeof(int)));
    number<<<1, 100>>>(data, 100, 0);
    number<<<1, 100>>>(data + 100, 100, 1000);
    int *parts[] = {data, data + 100, data + 200};
    void *arguments[] = {&parts[0], &parts[1], &parts[2]};
    DRIVER(launch((CUfunction)function, 1, 1, 1, 100, 1, 1, 0, nullptr, arguments, nullptr));
    DRIVER(copy(host.data(), (CUdeviceptr)parts[2], 400));
    for (int i = 0; i < 100; i++) EXPECT(host[i] == 1000 + 2 * i);
    DRIVER(ask(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, (CUfunction)function));
    cudaFuncAttributes attributes;
    CHECK(cudaFuncGetAttributes(&attributes, both));
    EXPECT(attributes.maxThreadsPerBlock == threads);
    const char *name;
    DRIVER(name_of(&name, (CUfunction)function));
    EXPECT(std::strstr(name, "both"));
    size_t offset, size;
    auto parameter = entry<decltype(cuFuncGetParamInfo)>("cuFuncGetParamInfo", 12040);
    DRIVER(parameter((CUfunction)function, 2, &offset, &size));
    EXPECT(offset == 16 && size == 8);
    EXPECT(parameter((CUfunction)function, 3, &offset, &size) == CUDA_ERROR_INVALID_VALUE);

    // Values of memory in a stream, written and awaited.
    auto write = entry<decltype(cuStreamWriteValue32)>("cuStreamWriteValue32");
    auto await = entry<decltype(cuStreamWaitValue32)>("cuStreamWaitValue32");
    cudaStream_t a, b;
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cudaMemset(data, 0, 4));
    DRIVER(await((CUstream)a, (CUdeviceptr)data, 7, CU_STREAM_WAIT_VALUE_EQ));
    number<<<1, 100, 0, a>>>(data + 100, 100, 50);
    EXPECT(cudaStreamQuery(a) == cudaErrorNotReady);
    DRIVER(write((CUstream)b, (CUdeviceptr)data, 7, CU_STREAM_WRITE_VALUE_DEFAULT));
    CHECK(cudaStreamSynchronize(a));
    CHECK(cudaMemcpy(host.data(), data + 100, 400, cudaMemcpyDeviceToHost));
    EXPECT(host[99] == 149);
    return passed();
}

// Kernels of texts: NVRTC compiles them, with names of templates and a log of errors; nvJitLink joins two modules.
// flags: -l:libnvrtc.so.13 -l:libnvJitLink.so.13
#include "check.h"
#include <nvJitLink.h>
#include <nvrtc.h>
#include <string>
#include <vector>

#define DONE(call) EXPECT((call) == 0)

static const char *SCALE = "template <typename T, int N> __global__ void scale(T *data, T factor) {\n"
                           "  if (threadIdx.x < N) data[threadIdx.x] *= factor;\n}\n";
static const char *USER = "extern __device__ int twice(int);\n"
                          "extern \"C\" __global__ void doubled(int *data) { data[threadIdx.x] = twice(data[threadIdx.x]); }\n";
static const char *MAKER = "__device__ int twice(int value) { return 2 * value; }\n";

static nvrtcProgram program(const char *text) {
    nvrtcProgram made;
    DONE(nvrtcCreateProgram(&made, text, "text.cu", 0, nullptr, nullptr));
    return made;
}

static std::vector<char> ptx(const char *text) {
    const char *options[] = {"--gpu-architecture=compute_75", "-rdc=true"};
    nvrtcProgram made = program(text);
    DONE(nvrtcCompileProgram(made, 2, options));
    size_t size;
    DONE(nvrtcGetPTXSize(made, &size));
    std::vector<char> found(size);
    DONE(nvrtcGetPTX(made, found.data()));
    DONE(nvrtcDestroyProgram(&made));
    return found;
}

static cudaKernel_t kernel(const std::vector<char> &image, const char *name) {
    cudaLibrary_t library;
    cudaKernel_t found;
    CHECK(cudaLibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    CHECK(cudaLibraryGetKernel(&found, library, name));
    return found;
}

int main() {
    cudaDeviceProp device;
    CHECK(cudaGetDeviceProperties(&device, 0));
    std::string target = "--gpu-architecture=sm_" + std::to_string(10 * device.major + device.minor);
    const char *options[] = {target.c_str()};
    nvrtcProgram made = program(SCALE);
    DONE(nvrtcAddNameExpression(made, "scale<float, 10>"));
    DONE(nvrtcCompileProgram(made, 1, options));
    size_t size;
    const char *name;
    DONE(nvrtcGetCUBINSize(made, &size));
    std::vector<char> image(size);
    DONE(nvrtcGetCUBIN(made, image.data()));
    DONE(nvrtcGetLoweredName(made, "scale<float, 10>", &name));
    float *data, factor = 3;
    CHECK(cudaMallocManaged(&data, 16 * sizeof(float)));
    for (int i = 0; i < 16; i++) data[i] = float(i);
    void *arguments[] = {&data, &factor};
    CHECK(cudaLaunchKernel((void *)kernel(image, name), dim3(1), dim3(16), arguments, 0, nullptr));
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 16; i++) EXPECT(data[i] == (i < 10 ? 3 * i : i));

    nvrtcProgram wrong = program("__global__ void k() { missing(); }\n");
    EXPECT(nvrtcCompileProgram(wrong, 1, options) == NVRTC_ERROR_COMPILATION);
    DONE(nvrtcGetProgramLogSize(wrong, &size));
    std::string log(size, ' ');
    DONE(nvrtcGetProgramLog(wrong, &log[0]));
    EXPECT(log.find("missing") != std::string::npos);

    nvJitLinkHandle link;
    const char *linked[] = {"-arch=sm_75"};
    DONE(nvJitLinkCreate(&link, 1, linked));
    for (const char *text : {USER, MAKER}) {
        std::vector<char> part = ptx(text);
        DONE(nvJitLinkAddData(link, NVJITLINK_INPUT_PTX, part.data(), part.size(), "a part"));
    }
    DONE(nvJitLinkComplete(link));
    DONE(nvJitLinkGetLinkedCubinSize(link, &size));
    image.resize(size);
    DONE(nvJitLinkGetLinkedCubin(link, image.data()));
    DONE(nvJitLinkDestroy(&link));
    int *numbers = (int *)data;
    for (int i = 0; i < 16; i++) numbers[i] = i;
    void *given[] = {&numbers};
    CHECK(cudaLaunchKernel((void *)kernel(image, "doubled"), dim3(1), dim3(16), given, 0, nullptr));
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 16; i++) EXPECT(numbers[i] == 2 * i);
    return passed();
}

// Two processes: one shares memory and an event, a child that it starts opens them, works on the memory, and ends.
#include "check.h"
#include <cstring>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

__global__ void add(int *data, int value) { data[threadIdx.x] += value; }

struct Shared {
    cudaIpcMemHandle_t memory;
    cudaIpcEventHandle_t event;
};

std::string text(const Shared &shared) {
    std::string made;
    for (unsigned char each : std::string((const char *)&shared, sizeof shared)) {
        char two[3];
        std::snprintf(two, 3, "%02x", each);
        made += two;
    }
    return made;
}

int child(const char *told) {
    Shared shared;
    for (size_t i = 0; i < sizeof shared; i++) {
        unsigned value;
        std::sscanf(told + 2 * i, "%2x", &value);
        ((unsigned char *)&shared)[i] = value;
    }
    int *data;
    cudaEvent_t event;
    CHECK(cudaIpcOpenMemHandle((void **)&data, shared.memory, cudaIpcMemLazyEnablePeerAccess));
    CHECK(cudaIpcOpenEventHandle(&event, shared.event));
    CHECK(cudaStreamWaitEvent(0, event, 0));
    add<<<1, 64>>>(data, 100);
    CHECK(cudaEventRecord(event));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaIpcCloseMemHandle(data));
    return 0;
}

int main(int count, char **arguments) {
    if (count > 1) return child(arguments[1]);
    int *data, host[64];
    Shared shared;
    cudaEvent_t event;
    CHECK(cudaMalloc(&data, 64 * sizeof(int)));
    CHECK(cudaMemset(data, 0, 64 * sizeof(int)));
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventInterprocess));
    CHECK(cudaIpcGetMemHandle(&shared.memory, data));
    CHECK(cudaIpcGetEventHandle(&shared.event, event));
    add<<<1, 64>>>(data, 7);
    CHECK(cudaEventRecord(event));
    CHECK(cudaDeviceSynchronize());
    for (int round = 1; round <= 2; round++) {
        std::string told = text(shared);
        pid_t started = fork();
        if (started == 0) {
            execl("/proc/self/exe", arguments[0], told.c_str(), (char *)nullptr);
            _exit(9);
        }
        int status;
        EXPECT(waitpid(started, &status, 0) == started && status == 0);
        CHECK(cudaStreamWaitEvent(0, event, 0));
        CHECK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
        for (int each : host) EXPECT(each == 7 + 100 * round);
    }
    return passed();
}

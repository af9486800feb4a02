// Pools that processes share: exported as a file descriptor, their allocations as names; pools of devices asked for and set.
#include "check.h"
#include <cstring>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
__global__ void add(int *p, int n) {
    int i = threadIdx.x;
    if (i < n) p[i] += 1000;
}
struct Message {
    cudaMemPoolPtrExportData data;
    int n;
};
static void send(int to, int fd, const Message &m) {
    char control[CMSG_SPACE(sizeof(int))] = {};
    iovec io = {(void *)&m, sizeof m};
    msghdr h = {};
    h.msg_iov = &io, h.msg_iovlen = 1, h.msg_control = control, h.msg_controllen = sizeof control;
    cmsghdr *c = CMSG_FIRSTHDR(&h);
    c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    EXPECT(sendmsg(to, &h, 0) == sizeof m);
}
static int receive(int from, Message &m) {
    char control[CMSG_SPACE(sizeof(int))] = {};
    iovec io = {&m, sizeof m};
    msghdr h = {};
    h.msg_iov = &io, h.msg_iovlen = 1, h.msg_control = control, h.msg_controllen = sizeof control;
    EXPECT(recvmsg(from, &h, 0) == sizeof m);
    int fd;
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&h)), sizeof fd);
    return fd;
}
static int child(int socket) {
    Message m;
    int fd = receive(socket, m);
    cudaMemPool_t pool;
    CHECK(cudaMemPoolImportFromShareableHandle(&pool, (void *)(size_t)fd, cudaMemHandleTypePosixFileDescriptor, 0));
    int *p;
    CHECK(cudaMemPoolImportPointer((void **)&p, pool, &m.data));
    int host[256];
    CHECK(cudaMemcpy(host, p, 4 * m.n, cudaMemcpyDeviceToHost));
    for (int i = 0; i < m.n; i++) EXPECT(host[i] == i);
    add<<<1, 256>>>(p, m.n);
    CHECK(cudaDeviceSynchronize());
    void *q;
    EXPECT(cudaMallocFromPoolAsync(&q, 64, pool, 0) != cudaSuccess);  // an imported pool gives no memory
    cudaGetLastError();
    CHECK(cudaFree(p));
    CHECK(cudaMemPoolDestroy(pool));
    char done = 1;
    EXPECT(write(socket, &done, 1) == 1);
    return 0;
}
int main() {
    int pair[2];
    EXPECT(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
    pid_t pid = fork();
    if (!pid) return child(pair[1]);
    cudaMemPoolProps props = {};
    props.allocType = cudaMemAllocationTypePinned;
    props.handleTypes = cudaMemHandleTypePosixFileDescriptor;
    props.location = {cudaMemLocationTypeDevice, 0};
    cudaMemPool_t pool;
    CHECK(cudaMemPoolCreate(&pool, &props));
    cudaStream_t s;
    CHECK(cudaStreamCreate(&s));
    Message m;
    m.n = 200;
    int *p, host[256];
    CHECK(cudaMallocFromPoolAsync(&p, 4 * m.n, pool, s));
    for (int i = 0; i < m.n; i++) host[i] = i;
    CHECK(cudaMemcpyAsync(p, host, 4 * m.n, cudaMemcpyHostToDevice, s));
    CHECK(cudaStreamSynchronize(s));
    int fd = -1;
    CHECK(cudaMemPoolExportToShareableHandle(&fd, pool, cudaMemHandleTypePosixFileDescriptor, 0));
    CHECK(cudaMemPoolExportPointer(&m.data, p));
    send(pair[0], fd, m);
    char done;
    EXPECT(read(pair[0], &done, 1) == 1);
    int status;
    waitpid(pid, &status, 0);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(cudaMemcpy(host, p, 4 * m.n, cudaMemcpyDeviceToHost));
    for (int i = 0; i < m.n; i++) EXPECT(host[i] == i + 1000);
    CHECK(cudaFreeAsync(p, s));
    CHECK(cudaStreamSynchronize(s));
    // a pool that is not for sharing
    cudaMemPool_t own, found;
    props.handleTypes = cudaMemHandleTypeNone;
    CHECK(cudaMemPoolCreate(&own, &props));
    EXPECT(cudaMemPoolExportToShareableHandle(&fd, own, cudaMemHandleTypePosixFileDescriptor, 0) == cudaErrorInvalidValue);
    cudaGetLastError();
    // the pools of a place
    cudaMemLocation here = {cudaMemLocationTypeDevice, 0};
    cudaMemPool_t first;
    CHECK(cudaMemGetDefaultMemPool(&first, &here, cudaMemAllocationTypePinned));
    CHECK(cudaDeviceGetDefaultMemPool(&found, 0));
    EXPECT(first == found);
    CHECK(cudaMemSetMemPool(&here, cudaMemAllocationTypePinned, own));
    CHECK(cudaMemGetMemPool(&found, &here, cudaMemAllocationTypePinned));
    EXPECT(found == own);
    CHECK(cudaDeviceGetMemPool(&found, 0));
    EXPECT(found == own);
    CHECK(cudaMallocAsync(&p, 1000, s));
    cudaPointerAttributes at;
    CHECK(cudaPointerGetAttributes(&at, p));
    EXPECT(at.type == cudaMemoryTypeDevice && at.device == 0);
    unsigned long long used;
    CHECK(cudaMemPoolGetAttribute(own, cudaMemPoolAttrUsedMemCurrent, &used));
    EXPECT(used >= 1000);
    CHECK(cudaFreeAsync(p, s));
    CHECK(cudaStreamSynchronize(s));
    CHECK(cudaMemPoolDestroy(own));
    CHECK(cudaDeviceGetMemPool(&found, 0));
    EXPECT(found == first);  // the default one takes its place
    CHECK(cudaMemPoolDestroy(pool));
    EXPECT(cudaMemPoolDestroy(first) == cudaErrorInvalidValue);  // the default pool stays
    cudaGetLastError();
    return passed();
}

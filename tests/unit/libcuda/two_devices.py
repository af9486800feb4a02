"""A program of the driver on two devices, in a process of its own: how many there are is chosen before the first call."""

from __future__ import annotations

from ctypes import CDLL, byref, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p, cast as c_cast, pointer
from threading import Thread

from stream_driver import Driver

from ptxvm.libcuda.structures import AccessDescription
from ptxvm.libcudart.library import install, soname
from ptxvm.libcudart.structures import LaunchConfig as RuntimeConfig, ThreeSizes

READ_WRITE, ON_DEVICE, CARVEOUT = 3, 1, 9
INVALID_DEVICE, INVALID_CONTEXT, INVALID_HANDLE, ILLEGAL_ADDRESS, ALREADY, NOT_ENABLED = 101, 201, 400, 700, 704, 705
COPY = b"""
.version 8.0
.target sm_80
.address_size 64
.visible .global .u32 here;
.visible .entry copy(.param .u64 to, .param .u64 from)
{
    .reg .b64 %to, %from;
    .reg .b32 %x;
    ld.param.u64 %to, [to];
    ld.param.u64 %from, [from];
    ld.global.u32 %x, [%from];
    st.global.u32 [%to], %x;
    st.global.u32 [here], %x;
    ret;
}
"""


class Pair:
    """The driver, and the primary contexts of two devices."""

    def __init__(self) -> None:
        self.cuda = Driver()
        self.contexts = [self.cuda.handle("cuDevicePrimaryCtxRetain", n) for n in range(2)]

    def use(self, number: int) -> None:
        """Make a device current."""
        self.cuda.cuCtxSetCurrent(self.contexts[number])

    def allocate(self, number: int, value: int) -> c_uint64:
        """A word on a device."""
        self.use(number)
        word = c_uint64()
        self.cuda.cuMemAlloc_v2(byref(word), c_size_t(4))
        self.cuda.cuMemcpyHtoD_v2(word, byref(c_uint(value)), c_size_t(4))
        return word

    def read(self, word: c_uint64) -> int:
        """The value of a word."""
        value = c_uint()
        self.cuda.cuMemcpyDtoH_v2(byref(value), word, c_size_t(4))
        return int(value.value)

    def copy(self, number: int, kernel: c_void_p, to: c_uint64, source: c_uint64) -> int:
        """Run the kernel on a device; the error of the context, 0 if there is none."""
        self.use(number)
        arguments = (c_void_p * 2)(*(c_cast(pointer(each), c_void_p).value for each in (to, source)))
        self.cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, arguments, None)
        return int(self.cuda.library.cuCtxSynchronize())


def peers(pair: Pair) -> None:
    """Access to the memory of a peer, in one direction, until it is disabled."""
    cuda, (x, y) = pair.cuda, (pair.allocate(0, 1), pair.allocate(1, 2))
    pair.use(0)
    kernel = cuda.handle("cuModuleGetFunction", cuda.handle("cuModuleLoadData", COPY), b"copy")
    able = c_int()
    cuda.cuDeviceCanAccessPeer(byref(able), 0, 1)
    assert able.value == 1
    cuda.cuCtxEnablePeerAccess(pair.contexts[1], 0)
    assert cuda.library.cuCtxEnablePeerAccess(pair.contexts[1], 0) == ALREADY
    assert cuda.library.cuCtxEnablePeerAccess(pair.contexts[0], 0) == INVALID_CONTEXT
    assert cuda.library.cuMemcpyPeer(y, kernel, x, pair.contexts[0], c_size_t(4)) == INVALID_CONTEXT
    assert pair.copy(0, kernel, x, y) == 0
    assert pair.read(x) == 2
    cuda.cuCtxDisablePeerAccess(pair.contexts[1])
    assert cuda.library.cuCtxDisablePeerAccess(pair.contexts[1]) == NOT_ENABLED
    cuda.cuMemcpyPeer(y, pair.contexts[1], x, pair.contexts[0], c_size_t(4))
    assert pair.copy(0, kernel, x, y) == ILLEGAL_ADDRESS
    cuda.library.cuDevicePrimaryCtxReset_v2(0)


def libraries(pair: Pair) -> None:
    """A kernel of a library runs on the device of the current context, with the variables that it has there."""
    cuda, words = pair.cuda, [pair.allocate(n, 10 + n) for n in range(2)]
    library = cuda.handle("cuLibraryLoadData", COPY, None, None, 0, None, None, 0)
    kernel, held = cuda.handle("cuLibraryGetKernel", library, b"copy"), []
    for number in range(2):
        assert pair.copy(number, kernel, words[number], words[number]) == 0
        address, size = c_uint64(), c_size_t()
        cuda.cuLibraryGetGlobal(byref(address), byref(size), library, b"here")
        held.append((address.value, pair.read(address)))
    assert [value for _, value in held] == [10, 11]
    assert held[0][0] != held[1][0]


def pools(pair: Pair) -> None:
    """Memory of a pool is for the devices that the pool allows, whatever the peers are."""
    cuda, x = pair.cuda, pair.allocate(0, 1)
    pair.use(1)
    y, pool = c_uint64(), cuda.handle("cuDeviceGetDefaultMemPool", 1)
    cuda.cuMemPoolSetAccess(pool, byref(AccessDescription(ON_DEVICE, 0, READ_WRITE)), c_size_t(1))
    cuda.cuMemAllocAsync(byref(y), c_size_t(4), None)
    cuda.cuMemcpyHtoD_v2(y, byref(c_uint(6)), c_size_t(4))
    pair.use(0)
    kernel = cuda.handle("cuModuleGetFunction", cuda.handle("cuModuleLoadData", COPY), b"copy")
    assert pair.copy(0, kernel, x, y) == 0
    assert pair.read(x) == 6
    cuda.cuMemPoolSetAccess(pool, byref(AccessDescription(ON_DEVICE, 0, 0)), c_size_t(1))
    assert pair.copy(0, kernel, x, y) == ILLEGAL_ADDRESS
    cuda.library.cuDevicePrimaryCtxReset_v2(0)


def host(pair: Pair) -> None:
    """Memory of the host and managed memory are for all devices."""
    cuda, managed, pinned = pair.cuda, c_uint64(), c_uint64()
    pair.use(0)
    cuda.cuMemAllocManaged(byref(managed), c_size_t(4), c_uint(1))
    cuda.cuMemAllocHost_v2(byref(pinned), c_size_t(4))
    cuda.cuMemcpyHtoD_v2(pinned, byref(c_uint(8)), c_size_t(4))
    pair.use(1)
    kernel = cuda.handle("cuModuleGetFunction", cuda.handle("cuModuleLoadData", COPY), b"copy")
    assert pair.copy(1, kernel, managed, pinned) == 0
    assert pair.read(managed) == 8


def kernels(pair: Pair) -> None:
    """An attribute of a kernel is that of a device (driver API, `cuKernelSetAttribute`)."""
    cuda, told = pair.cuda, c_int()
    pair.use(0)
    kernel = cuda.handle("cuLibraryGetKernel", cuda.handle("cuLibraryLoadData", COPY, None, None, 0, None, None, 0), b"copy")
    cuda.cuKernelSetAttribute(CARVEOUT, 50, kernel, 1)
    for device, value in ((0, -1), (1, 50)):
        cuda.cuKernelGetAttribute(byref(told), CARVEOUT, kernel, device)
        assert told.value == value


def runtime(pair: Pair) -> None:
    """The runtime has numbers for devices, and a first device for threads that choose none."""
    library, (x, y) = CDLL(str(install().folder / soname("13"))), (pair.allocate(0, 1), pair.allocate(1, 2))
    assert library.cudaSetDevice(0) == 0
    assert library.cudaDeviceEnablePeerAccess(0, 0) == INVALID_DEVICE
    assert library.cudaMemcpyPeer(y, 2, x, 0, c_size_t(4)) == INVALID_DEVICE
    assert library.cudaMemcpyPeer(y, 1, x, 0, c_size_t(4)) == 0
    assert pair.read(y) == 1
    assert library.cudaSetValidDevices((c_int * 1)(2), 1) == INVALID_DEVICE
    assert library.cudaSetValidDevices((c_int * 2)(1, 0), 2) == 0
    current = c_int()
    thread = Thread(target=lambda: library.cudaGetDevice(byref(current)))
    thread.start()
    thread.join()
    assert current.value == 1


def together(pair: Pair) -> None:
    """The library's devices are those of the driver."""
    import ptxvm

    first, second = ptxvm.devices(2)
    x, y = first.from_host([3]), second.from_host([4])
    pair.use(0)
    kernel = pair.cuda.handle("cuModuleGetFunction", pair.cuda.handle("cuModuleLoadData", COPY), b"copy")
    pair.cuda.cuCtxEnablePeerAccess(pair.contexts[1], 0)
    assert first.peers == [second]
    assert pair.copy(0, kernel, c_uint64(x.address), c_uint64(y.address)) == 0
    assert x.array[0] == 4
    pair.cuda.library.cuDevicePrimaryCtxReset_v2(0)
    assert first.peers == []


def streams(pair: Pair) -> None:
    """A launch is in the context of its stream, whatever the current one is; an event is for streams of its device.

    CUDA C++ Programming Guide, "Stream and Event Behavior"; driver API, `cuLaunchKernelEx`, `cuEventRecord`.
    """
    cuda, words = pair.cuda, [pair.allocate(n, 20 + n) for n in range(2)]
    kernel = cuda.handle("cuLibraryGetKernel", cuda.handle("cuLibraryLoadData", COPY, None, None, 0, None, None, 0), b"copy")
    pair.use(1)
    stream, events = cuda.stream(1), [cuda.handle("cuEventCreate", c_uint(0))]
    out = pair.allocate(1, 0)
    pair.use(0)
    events.insert(0, cuda.handle("cuEventCreate", c_uint(0)))
    arguments = (c_void_p * 2)(*(c_cast(pointer(each), c_void_p).value for each in (out, words[1])))
    cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, None)
    cuda.cuStreamSynchronize(stream)
    assert pair.read(out) == 21
    assert cuda.library.cuEventRecord(events[0], stream) == INVALID_HANDLE
    cuda.cuEventRecord(events[1], stream)
    cuda.cuEventRecord(events[0], None)
    cuda.cuStreamWaitEvent(stream, events[0], 0)
    cuda.cuEventSynchronize(events[1])
    assert cuda.library.cuEventElapsedTime(byref(c_float()), *events) == INVALID_HANDLE
    runtime = CDLL(str(install().folder / soname("13")))
    assert runtime.cudaSetDevice(0) == 0
    launch = runtime.cudaLaunchKernelExC
    config = RuntimeConfig(ThreeSizes(1, 1, 1), ThreeSizes(1, 1, 1), 0, stream.value)
    assert launch(byref(config), kernel, arguments) == INVALID_HANDLE
    config.stream = 0
    assert launch(byref(config), kernel, arguments) == 0
    assert cuda.library.cuCtxSynchronize() == ILLEGAL_ADDRESS  # the memory is the other device's
    cuda.library.cuDevicePrimaryCtxReset_v2(0)


if __name__ == "__main__":
    for program in (libraries, kernels, runtime, host, together, pools, streams, peers):
        program(Pair())

"""The runtime library through its C interface, as the code that nvcc writes calls it (`crt/host_runtime.h`)."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from ctypes import byref, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p

import pytest

from ptxvm.libcuda.error_log import error_log
from ptxvm.libcuda.structures import DeviceResource, LaunchAttribute
from ptxvm.libcudart.library import install
from ptxvm.libcudart.structures import Channels, Copy3D, LaunchConfig, ThreeSizes

INVALID_VALUE = 1
INVALID_CONFIGURATION, INVALID_SYMBOL, BAD_DIRECTION, BAD_FUNCTION, NO_DEVICE_101 = 9, 13, 21, 98, 101
TO_DEVICE, TO_HOST, ON_DEVICE = 1, 2, 3
COOPERATIVE = 2  # cudaLaunchAttributeID
UNSIGNED = 1  # cudaChannelFormatKind
NO_SYMBOL, ALREADY_REGISTERED, NOT_REGISTERED, NOT_SUPPORTED = 500, 712, 713, 801
N = 1000


def test_a_kernel_scales_an_array_by_a_constant_that_the_host_sets(program):
    memory, host = c_void_p(), (c_float * N)(*range(N))
    assert program.cudaMalloc(byref(memory), c_size_t(4 * N)) == 0
    assert program.cudaMemcpy(memory, host, c_size_t(4 * N), TO_DEVICE) == 0
    three = c_float(3)
    assert program.cudaMemcpyToSymbol(program.factor, byref(three), c_size_t(4), c_size_t(0), TO_DEVICE) == 0
    assert program.launch(4, 256, memory, c_int(N)) == 0
    assert program.cudaDeviceSynchronize() == 0
    assert program.cudaMemcpy(host, memory, c_size_t(4 * N), TO_HOST) == 0
    assert list(host) == [3 * n for n in range(N)]
    counter = c_int()
    assert program.cudaMemcpyFromSymbol(byref(counter), program.counter, c_size_t(4), c_size_t(0), TO_HOST) == 0
    assert counter.value == 5
    assert program.cudaFree(memory) == 0


def test_attributes_of_a_launch_are_read_where_they_are(program):
    memory, host = c_void_p(), (c_float * 64)(*range(64))
    assert program.cudaMalloc(byref(memory), c_size_t(256)) == 0
    assert program.cudaMemcpy(memory, host, c_size_t(256), TO_DEVICE) == 0
    attribute = LaunchAttribute(COOPERATIVE, 0)
    attribute.value[0] = 1
    config = LaunchConfig(ThreeSizes(2, 1, 1), ThreeSizes(32, 1, 1), 0, 0, ctypes.addressof(attribute), 1)
    arguments = memory, c_int(64)
    pointers = (c_void_p * 2)(*(ctypes.addressof(each) for each in arguments))
    for _ in range(10):
        assert program.cudaLaunchKernelExC(byref(config), program.scale, pointers) == 0
    assert program.cudaMemcpy(host, memory, c_size_t(256), TO_HOST) == 0
    assert list(host) == [n * 2**10 for n in range(64)]
    assert program.cudaFree(memory) == 0


def test_errors_stay_with_the_thread_until_they_are_asked_for(program):
    data = c_void_p()
    assert program.launch(4, 2000, data, c_int(0)) == INVALID_CONFIGURATION
    assert program.cudaPeekAtLastError() == INVALID_CONFIGURATION
    assert program.cudaGetLastError() == INVALID_CONFIGURATION
    assert program.cudaGetLastError() == 0
    assert program.cudaMemcpy(None, None, c_size_t(4), 7) == BAD_DIRECTION
    assert program.cudaGetSymbolAddress(byref(data), data) == INVALID_SYMBOL
    assert program.cudaFuncGetName(byref(data), byref(data)) == BAD_FUNCTION
    assert program.cudaSetDevice(7) == NO_DEVICE_101
    assert "cudaSetDevice: CUDA_ERROR_INVALID_DEVICE: there is no device 7" in error_log().entries[-1].text
    name, description = program.cudaGetErrorName, program.cudaGetErrorString
    name.restype = description.restype = ctypes.c_char_p
    assert name(98) == b"cudaErrorInvalidDeviceFunction"
    assert description(1) == b"invalid argument"
    assert description(300) == b"invalid source"  # made of the name


def test_a_device_gets_flags_before_its_first_use_where_they_are_said_to_count(program):
    ways_to_wait, blocking, count_them = 7, 4, 1  # cudaDeviceScheduleMask, cudaDeviceScheduleBlockingSync
    flags = c_uint()
    for given, counts in ((blocking, count_them), (0, 0)):  # the second leaves them as they are
        assert program.cudaInitDevice(0, given, counts) == 0
        assert program.cudaGetDeviceFlags(byref(flags)) == 0
        assert flags.value & ways_to_wait == blocking
    assert program.cudaInitDevice(0, 3, count_them) == INVALID_VALUE
    assert program.cudaInitDevice(0, 0, 64) == INVALID_VALUE
    assert program.cudaInitDevice(7, 0, 0) == NO_DEVICE_101
    assert program.cudaSetDeviceFlags(0) == 0


def test_a_function_that_is_missing_leaves_its_error_too(program):
    assert program.cudaImportExternalSemaphore(byref(c_void_p()), None) == NOT_SUPPORTED
    assert program.cudaGetLastError() == NOT_SUPPORTED
    assert program.cudaGetLastError() == 0


def test_a_wild_kernel_spoils_the_context_until_the_device_is_reset(program):
    data = c_void_p(64)
    program.launch(1, 32, data, c_int(32))
    assert program.cudaDeviceSynchronize() == 700  # cudaErrorIllegalAddress
    assert program.cudaGetLastError() == 700
    assert program.cudaMalloc(byref(data), c_size_t(4)) == 700
    kernel = c_void_p()
    assert program["__cudaGetKernel"](byref(kernel), program.scale) == 0  # nvcc's code asks once and keeps what it got
    assert kernel.value == ctypes.addressof(program.scale)
    assert program.cudaDeviceReset() == 0
    program.cudaGetLastError()
    assert program.cudaMalloc(byref(data), c_size_t(4)) == 0
    assert program.cudaFree(data) == 0


def test_properties_stand_where_both_versions_have_them(program):
    buffer = ctypes.create_string_buffer(b"\xff" * 2048, 2048)
    assert program.cudaGetDeviceProperties(buffer, 0) == 0
    assert buffer.value == b"ptxvm (L4)"
    offset = 256 + 16 + 8 + 4 + 4  # name, uuid, luid, its mask, padding
    shared = c_size_t.from_buffer(buffer, offset + 8).value
    registers, warp = c_int.from_buffer(buffer, offset + 16).value, c_int.from_buffer(buffer, offset + 20).value
    assert (shared, registers, warp) == (48 * 1024, 65536, 32)


@pytest.mark.parametrize("program", ["12"], indirect=True)
def test_doubles_stay_as_they_are(program):
    """CUDA 12, `cudaSetDoubleForDevice`: it converts for devices without doubles, and there are none."""
    value = ctypes.c_double(1 / 3)
    for name in ("cudaSetDoubleForDevice", "cudaSetDoubleForHost"):
        assert getattr(program, name)(byref(value)) == 0
    assert value.value == 1 / 3


def test_structures_pass_by_value(program):
    create = program.cudaCreateChannelDesc
    create.argtypes, create.restype = [c_int] * 5, Channels
    made = create(32, 16, 8, 0, 2)
    assert (made.x, made.y, made.z, made.w, made.kind) == (32, 16, 8, 0, 2)
    assert program.cudaMemAdvise(None, c_size_t(0), c_uint(0), c_int(0)) in (0, 1)


def test_what_a_capture_has_made_is_described_and_can_be_changed(program):
    """`cudaGraphMemcpyNodeGetParams` gives what `cudaGraphMemcpyNodeSetParams` takes, in the runtime's structures."""
    source, target = (c_int * 4)(1, 2, 3, 4), (c_int * 4)()
    memory, stream, graph, executable = (c_void_p() for _ in range(4))
    assert program.cudaMalloc(byref(memory), c_size_t(16)) == 0
    assert program.cudaStreamCreate(byref(stream)) == 0
    assert program.cudaStreamBeginCapture(stream, 0) == 0
    assert program.cudaMemcpyAsync(memory, source, c_size_t(16), TO_DEVICE, stream) == 0
    assert program.cudaMemcpyAsync(target, memory, c_size_t(16), TO_HOST, stream) == 0
    assert program.cudaStreamEndCapture(stream, byref(graph)) == 0
    nodes, count, told = (c_void_p * 2)(), c_size_t(2), Copy3D()
    assert program.cudaGraphGetNodes(graph, nodes, byref(count)) == 0
    assert program.cudaGraphMemcpyNodeGetParams(c_void_p(nodes[1]), byref(told)) == 0
    assert (told.source.pointer, told.extent.width, told.extent.height, told.extent.depth) == (memory.value, 16, 1, 1)
    told.extent.width = 8
    assert program.cudaGraphMemcpyNodeSetParams(c_void_p(nodes[1]), byref(told)) == 0
    assert program.cudaGraphInstantiateWithFlags(byref(executable), graph, ctypes.c_uint64(0)) == 0
    assert program.cudaGraphLaunch(executable, stream) == 0
    assert program.cudaStreamSynchronize(stream) == 0
    assert list(target) == [1, 2, 0, 0]
    if hasattr(program.library, "cudaGraphNodeGetParams"):  # CUDA 13 has it
        described = ctypes.create_string_buffer(256)
        assert program.cudaGraphNodeGetParams(c_void_p(nodes[1]), described) == 0
        assert Copy3D.from_buffer(described, 32).extent.width == 8


@pytest.mark.parametrize("program", ["13"], indirect=True)
def test_a_graph_that_is_captured_again_shows_its_nodes_in_structures_of_the_runtime(program):
    """CUDA Runtime API 13.3, `cudaStreamBeginRecaptureToGraph`, `cudaGraphRecaptureCallbackData`."""
    memory, stream, graph, told = c_void_p(), c_void_p(), c_void_p(), []
    succeed(program.cudaMalloc(byref(memory), c_size_t(16)))
    succeed(program.cudaStreamCreate(byref(stream)))

    @ctypes.CFUNCTYPE(c_int, *[c_void_p] * 4, c_int)
    def asked(data, _node, before, now, status):
        widths = [Copy3D.from_address(each + 32).extent.width for each in (before, now)]
        told.append((data, widths, status))
        return 0

    for again, size in ((False, 16), (True, 16), (True, 8)):
        if again:
            data = (c_void_p * 2)(ctypes.cast(asked, c_void_p), 5)
            succeed(program.cudaStreamBeginRecaptureToGraph(stream, 0, graph, data))
        else:
            succeed(program.cudaStreamBeginCapture(stream, 0))
        succeed(program.cudaMemcpyAsync(memory, memory, c_size_t(size), ON_DEVICE, stream))
        succeed(program.cudaStreamEndCapture(stream, byref(graph)))
    assert told == [(5, [16, 8], 0)]


def test_a_node_takes_the_parameters_of_its_own_type(program):
    """`cudaGraphMemcpyNodeSetParams1D` of a node that fills, and of one that copies."""
    memory, stream, graph, executable, count = c_void_p(), c_void_p(), c_void_p(), c_void_p(), c_size_t(2)
    succeed(program.cudaMalloc(byref(memory), c_size_t(16)))
    succeed(program.cudaStreamCreate(byref(stream)))
    succeed(program.cudaStreamBeginCapture(stream, 0))
    succeed(program.cudaMemsetAsync(memory, 0, c_size_t(8), stream))
    succeed(program.cudaMemcpyAsync(memory, memory, c_size_t(8), ON_DEVICE, stream))
    succeed(program.cudaStreamEndCapture(stream, byref(graph)))
    succeed(program.cudaGraphInstantiateWithFlags(byref(executable), graph, ctypes.c_uint64(0)))
    nodes = (c_void_p * 2)()
    succeed(program.cudaGraphGetNodes(graph, nodes, byref(count)))
    copy = memory, memory, c_size_t(4), ON_DEVICE
    for node, expected in zip(nodes, (INVALID_VALUE, 0), strict=True):
        assert program.cudaGraphMemcpyNodeSetParams1D(c_void_p(node), *copy) == expected
        assert program.cudaGraphExecMemcpyNodeSetParams1D(executable, c_void_p(node), *copy) == expected


@pytest.mark.parametrize("program", ["13"], indirect=True)
def test_an_execution_context_has_a_part_of_the_multiprocessors(program):
    """It is a green context (CUDA Runtime API, "Execution Context Management")."""
    library, whole, group, count = program.library, DeviceResource(), DeviceResource(), c_uint(1)
    succeed(library.cudaDeviceGetDevResource(0, byref(whole), 1))
    succeed(library.cudaDevSmResourceSplitByCount(byref(group), byref(count), byref(whole), None, 0, 8))
    description, green, primary, stream, event = (c_void_p() for _ in range(5))
    succeed(library.cudaDevResourceGenerateDesc(byref(description), byref(group), 1))
    succeed(library.cudaGreenCtxCreate(byref(green), description, 0, 0))
    succeed(library.cudaDeviceGetExecutionCtx(byref(primary), 0))
    for context, multiprocessors in ((green, 8), (primary, whole.count)):
        told, device = DeviceResource(), c_int(-1)
        succeed(library.cudaExecutionCtxGetDevResource(context, byref(told), 1))
        succeed(library.cudaExecutionCtxGetDevice(byref(device), context))
        assert (told.count, device.value) == (multiprocessors, 0)
    succeed(library.cudaExecutionCtxStreamCreate(byref(stream), green, 0, 0))
    succeed(library.cudaEventCreate(byref(event)))
    succeed(library.cudaExecutionCtxRecordEvent(green, event))
    succeed(library.cudaExecutionCtxWaitEvent(primary, event))
    succeed(library.cudaExecutionCtxSynchronize(green))
    succeed(library.cudaStreamGetDevResource(stream, byref(told), 1))
    assert told.count == 8
    succeed(library.cudaExecutionCtxDestroy(green))
    assert library.cudaExecutionCtxDestroy(primary) != 0


def succeed(result):
    assert result == 0


def test_copies_of_variables_in_graphs_can_be_changed(program):
    """`cudaGraphMemcpyNodeSetParamsToSymbol` and its like, for nodes of a graph and of an executable one."""
    library, first, second, told = program.library, c_uint(11), c_uint(22), c_uint()
    graph, put, get, executable = (c_void_p() for _ in range(4))
    four, none = c_size_t(4), c_size_t(0)
    succeed(library.cudaGraphCreate(byref(graph), 0))
    into = program.counter, byref(first), four, none, TO_DEVICE
    succeed(library.cudaGraphAddMemcpyNodeToSymbol(byref(put), graph, None, none, *into))
    out_of = byref(told), program.factor, four, none, TO_HOST
    succeed(library.cudaGraphAddMemcpyNodeFromSymbol(byref(get), graph, byref(put), c_size_t(1), *out_of))
    assert library.cudaGraphMemcpyNodeSetParamsToSymbol(put, program.counter, byref(first), c_size_t(5), none, TO_DEVICE) == 1
    succeed(library.cudaGraphMemcpyNodeSetParamsFromSymbol(get, byref(told), program.counter, four, none, TO_HOST))
    succeed(library.cudaGraphInstantiateWithFlags(byref(executable), graph, ctypes.c_uint64(0)))
    into = program.counter, byref(second), four, none, TO_DEVICE
    succeed(library.cudaGraphExecMemcpyNodeSetParamsToSymbol(executable, put, *into))
    other = c_uint()
    succeed(
        library.cudaGraphExecMemcpyNodeSetParamsFromSymbol(executable, get, byref(other), program.counter, four, none, TO_HOST)
    )
    succeed(library.cudaGraphLaunch(executable, None))
    succeed(library.cudaDeviceSynchronize())
    assert (told.value, other.value) == (0, 22)
    succeed(library.cudaGraphMemcpyNodeSetParamsToSymbol(put, program.counter, byref(first), four, none, TO_DEVICE))
    succeed(library.cudaGraphInstantiateWithFlags(byref(executable), graph, ctypes.c_uint64(0)))
    succeed(library.cudaGraphLaunch(executable, None))
    succeed(library.cudaDeviceSynchronize())
    assert told.value == 11


def test_bytes_are_copied_from_one_array_to_another(program):
    """`cudaMemcpyArrayToArray`; bytes behind the end of an array are refused."""
    library, bytes_of = program.library, Channels(8, 0, 0, 0, UNSIGNED)
    source, target = c_void_p(), c_void_p()
    for array in (source, target):
        succeed(library.cudaMallocArray(byref(array), byref(bytes_of), c_size_t(16), none := c_size_t(0), 0))
    text, told = ctypes.create_string_buffer(b"abcdefghijklmnop", 16), ctypes.create_string_buffer(16)
    succeed(library.cudaMemcpyToArray(source, none, none, text, c_size_t(16), TO_DEVICE))
    succeed(library.cudaMemcpyToArray(target, none, none, told, c_size_t(16), TO_DEVICE))
    copy = library.cudaMemcpyArrayToArray
    succeed(copy(target, c_size_t(2), none, source, c_size_t(5), none, c_size_t(3), ON_DEVICE))
    assert copy(target, c_size_t(2), none, source, c_size_t(14), none, c_size_t(3), ON_DEVICE) == 1
    succeed(library.cudaMemcpyFromArray(told, target, none, none, c_size_t(16), TO_HOST))
    assert told.raw == b"\0\0fgh".ljust(16, b"\0")


def test_textures_of_plain_memory_have_a_largest_width(program):
    most = c_size_t()
    succeed(program.cudaDeviceGetTexture1DLinearMaxWidth(byref(most), byref(Channels(32, 0, 0, 0, UNSIGNED)), 0))
    assert most.value == 1 << 28  # CUDA programming guide, "Technical Specifications per Compute Capability"


def test_memory_is_registered_once(program):
    """A part of it, too; and it is unregistered by its first address."""
    memory = ctypes.create_string_buffer(4096)
    start = ctypes.addressof(memory)
    register, unregister = program.cudaHostRegister, program.cudaHostUnregister
    assert unregister(c_void_p(start)) == NOT_REGISTERED
    assert register(c_void_p(start + 1024), c_size_t(2048), 0) == 0
    for at, size in ((1024, 8), (2048, 8), (2048, 2048), (0, 1025), (0, 4096)):
        assert register(c_void_p(start + at), c_size_t(size), 0) == ALREADY_REGISTERED
    assert register(c_void_p(start), c_size_t(1024), 0) == 0
    assert unregister(c_void_p(start + 2048)) == 1
    assert unregister(c_void_p(start + 1024)) == 0
    assert unregister(c_void_p(start)) == 0
    device = c_void_p()
    assert program.cudaMalloc(byref(device), c_size_t(64)) == 0
    assert unregister(device) == NOT_REGISTERED
    assert program.cudaFree(device) == 0


@pytest.mark.parametrize("program", ["13"], indirect=True)
def test_a_condition_may_be_of_an_execution_context(program):
    library, graph, context, handle = program.library, c_void_p(), c_void_p(), ctypes.c_uint64()
    succeed(library.cudaGraphCreate(byref(graph), 0))
    succeed(library.cudaDeviceGetExecutionCtx(byref(context), 0))
    succeed(library.cudaGraphConditionalHandleCreate_v2(byref(handle), graph, context, 7, 1))
    assert c_uint.from_address(handle.value).value == 7
    succeed(library.cudaGraphConditionalHandleCreate_v2(byref(handle), graph, None, 0, 0))
    succeed(library.cudaGraphDestroy(graph))


def test_no_function_has_one_address_for_host_and_device(program):
    library, made, address = program.library, c_void_p(), c_void_p()
    succeed(library.cudaLibraryLoadData(byref(made), program.ptx, None, None, 0, None, None, 0))
    assert library.cudaLibraryGetUnifiedFunction(byref(address), made, b"scale") == NO_SYMBOL
    succeed(library.cudaLibraryUnload(made))


@pytest.mark.parametrize("program", ["13"], indirect=True)
def test_the_location_of_managed_memory_is_told(program):
    """An entry for each region, the device where it was prefetched (CUDA Runtime API 13.5, `cudaMemGetLocationInfo`)."""
    memory, found = c_void_p(), (c_int * 4)()
    succeed(program.cudaMallocManaged(byref(memory), c_size_t(128), c_uint(1)))
    on_device, on_host = ctypes.c_uint64(1), 2  # cudaMemLocation of device 0; cudaMemLocationTypeHost
    succeed(program.cudaMemPrefetchAsync(memory, c_size_t(64), on_device, 0, None))
    tell = program.library.cudaMemGetLocationInfo
    assert tell(memory, c_size_t(128), c_size_t(64), c_size_t(64), found) == 0
    assert list(found) == [1, 0, on_host, 0]
    succeed(program.cudaFree(memory))


# ── functions of the driver ─────────────────────────────────────────────────────────────


def entry(program, function, name, *arguments):
    """The address that a search finds, None for none."""
    found = c_void_p(1)
    assert program[function](name, byref(found), *arguments, None) == 0
    return found.value


def test_functions_of_the_driver_are_those_of_the_library_s_version(program, request):
    """`cuCtxGetDevice` has one parameter in CUDA 12, and in CUDA 13 the context besides."""
    driver = install().cuda
    symbol = {"12": "cuCtxGetDevice", "13": "cuCtxGetDevice_v2"}[request.node.callspec.params["program"]]
    assert entry(program, "cudaGetDriverEntryPoint", b"cuCtxGetDevice", c_uint64(0)) == driver.address(symbol)
    assert entry(program, "cudaGetDriverEntryPoint", b"cuNonsense", c_uint64(0)) is None


@pytest.mark.parametrize(("flags", "symbol"), [(0, "cuStreamQuery_ptsz"), (1, "cuStreamQuery"), (2, "cuStreamQuery_ptsz")])
def test_programs_with_a_default_stream_of_each_thread_find_functions_for_it(program, flags, symbol):
    """`cudaEnableDefault` means them for such programs, and for others the legacy stream (runtime API, driver entry points)."""
    search = "cudaGetDriverEntryPointByVersion"
    found = entry(program, f"{search}_ptsz", b"cuStreamQuery", c_uint(13000), c_uint64(flags))
    assert found == install().cuda.address(symbol)
    found = entry(program, search, b"cuStreamQuery", c_uint(13000), c_uint64(flags))
    assert found == install().cuda.address("cuStreamQuery_ptsz" if flags == 2 else "cuStreamQuery")


COUNTS = """
import ctypes, os
runtime, driver, count, device = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL("libcuda.so.1"), ctypes.c_int(-1), ctypes.c_int()
assert driver.cuDeviceGet(ctypes.byref(device), 0) == 3  # CUDA_ERROR_NOT_INITIALIZED
assert (runtime.cudaGetDeviceCount(ctypes.byref(count)), count.value) == EXPECTED
assert driver.cuDeviceGet(ctypes.byref(device), 0) == (0 if count.value else 3)
child = os.fork()
if not child:
    os._exit(runtime.cudaGetDeviceCount(ctypes.byref(count)))
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == (3 if count.value else 100)
"""


@pytest.mark.parametrize(("devices", "expected"), [(2, (0, 2)), (0, (100, 0))], ids=["two", "none"])
def test_to_count_the_devices_initialises_the_driver(devices, expected):
    """As every function of the runtime does (CUDA C++ Programming Guide, "Initialization").

    A program may call the driver next, and a child that it forks then may not use devices (3, cudaErrorInitializationError).
    """
    command = [sys.executable, "-m", "ptxvm", "exec", "--devices", str(devices), "--", sys.executable, "-c"]
    done = subprocess.run([*command, COUNTS.replace("EXPECTED", str(expected))], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

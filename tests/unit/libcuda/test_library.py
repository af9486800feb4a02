"""The driver through its C interface: what the manual of the driver API says of each call, and arithmetic.

Which symbol `cuGetProcAddress` means by a name is as `cudaTypedefs.h` of CUDA 13.5 has it.
"""

from __future__ import annotations

import ctypes
import logging
import os
import re
import shutil
import subprocess
import sys
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p
from types import SimpleNamespace

import pytest
from scale_kernel import scale

import ptxvm
from ptxvm.driver import context
from ptxvm.libcuda.embedded import library_of_python
from ptxvm.libcuda.library import install
from ptxvm.libcuda.session import session
from ptxvm.libcuda.signatures import signatures, versions
from ptxvm.libcuda.structures import AllocationProperties, Copy2D

SUCCESS, INVALID_VALUE, OUT_OF_MEMORY, NOT_INITIALIZED, NO_BINARY, INVALID_PTX = 0, 1, 2, 3, 209, 218
INVALID_HANDLE, NOT_FOUND, ILLEGAL_ADDRESS, NOT_SUPPORTED, UNKNOWN = 400, 500, 700, 801, 999
N = 1000

HEAD = """
.version 7.8
.target sm_80
.address_size 64
.global .u32 counter = 5;
.visible .entry wild() { .reg .b64 %rd; mov.u64 %rd, 64; st.global.u32 [%rd], 1; ret; }
"""
KERNELS = HEAD + scale("ld.param.f32 %f1, [factor];", ".param .f32 factor")


class CallError(Exception):
    """A call returned an error; the argument is its number."""


@pytest.fixture
def cuda():
    """The functions; each raises `CallError` unless it returns CUDA_SUCCESS.  A context is current."""
    library = install().cuda.loaded

    def function(name):
        def call(*arguments):
            if result := getattr(library, name)(*arguments):
                raise CallError(result)

        return call

    driver = SimpleNamespace(function=function, library=library)
    function("cuInit")(0)
    context = ctypes.c_void_p()
    function("cuDevicePrimaryCtxRetain")(ctypes.byref(context), 0)
    function("cuCtxSetCurrent")(context)
    driver.context = context
    yield driver
    session().stack.clear()
    function("cuDevicePrimaryCtxReset_v2")(0)
    function("cuDevicePrimaryCtxRelease_v2")(0)


@pytest.fixture
def module(cuda):
    """The kernels above, loaded."""
    handle = ctypes.c_void_p()
    cuda.function("cuModuleLoadData")(ctypes.byref(handle), KERNELS.encode())
    yield handle
    assert cuda.library.cuModuleUnload(handle) in (SUCCESS, INVALID_HANDLE)  # after a reset there is no such module


@pytest.fixture
def kernel(cuda, module):
    """A kernel of the module by name."""

    def by_name(name):
        handle = ctypes.c_void_p()
        cuda.function("cuModuleGetFunction")(ctypes.byref(handle), module, name.encode())
        return handle

    return by_name


def pointers(*values):
    """The array of pointers to arguments that a launch takes."""
    return (c_void_p * len(values))(*(ctypes.cast(ctypes.pointer(value), c_void_p) for value in values))


@pytest.fixture
def data(cuda):
    """A thousand floats on the device: 0, 1, 2 ..."""
    address = c_uint64()
    cuda.function("cuMemAlloc_v2")(byref(address), 4 * N)
    host = (c_float * N)(*range(N))
    cuda.function("cuMemcpyHtoD_v2")(address, host, c_size_t(4 * N))
    yield address
    cuda.function("cuMemFree_v2")(address)


def values(cuda, address):
    """What the device has there."""
    host = (c_float * N)()
    cuda.function("cuMemcpyDtoH_v2")(host, address, c_size_t(4 * N))
    return list(host)


def launch(cuda, kernel, *arguments, extra=None, stream=None):
    grid = (4, 1, 1, 256, 1, 1, 0)
    cuda.function("cuLaunchKernel")(kernel, *map(c_uint, grid), stream, pointers(*arguments) if arguments else None, extra)


def test_a_kernel_runs_on_memory_of_the_device(cuda, kernel, data):
    launch(cuda, kernel("scale"), data, c_uint(N), c_float(3))
    assert values(cuda, data) == [3.0 * n for n in range(N)]


def test_arguments_may_lie_in_one_buffer(cuda, kernel, data):
    class Arguments(ctypes.Structure):
        _fields_ = (("data", c_uint64), ("n", c_uint), ("factor", c_float))

    arguments = Arguments(data.value, N, 2.0)
    size = c_size_t(ctypes.sizeof(arguments))
    extra = (c_void_p * 5)(1, ctypes.addressof(arguments), 2, ctypes.addressof(size), 0)
    launch(cuda, kernel("scale"), extra=extra)
    assert values(cuda, data) == [2.0 * n for n in range(N)]


def test_variables_of_a_module_are_memory(cuda, module):
    address, size, value = c_uint64(), c_size_t(), c_uint()
    cuda.function("cuModuleGetGlobal_v2")(byref(address), byref(size), module, b"counter")
    cuda.function("cuMemcpyDtoH_v2")(byref(value), address, c_size_t(4))
    assert (size.value, value.value) == (4, 5)


def test_a_failed_kernel_is_the_result_of_every_later_call(cuda, kernel, caplog):
    launch(cuda, kernel("wild"))
    with pytest.raises(CallError, match=str(ILLEGAL_ADDRESS)):
        cuda.function("cuCtxSynchronize")()
    with pytest.raises(CallError, match=str(ILLEGAL_ADDRESS)):
        cuda.function("cuMemAlloc_v2")(byref(c_uint64()), 4)
    assert "null-pointer" in caplog.text
    assert "in kernel wild" in caplog.text
    cuda.function("cuDevicePrimaryCtxReset_v2")(0)
    cuda.function("cuCtxSynchronize")()


@pytest.mark.parametrize("checks", ["race", "memory"])
@pytest.mark.parametrize(
    ("statement", "result"),
    [
        ("st.global.u32 [%rd], 1", ILLEGAL_ADDRESS),
        ("ld.global.u32 %r, [at+1]", 716),
        ("trap", 719),
        ("ld.global.u32 %r, [at]", 0),
    ],
)
def test_what_ends_a_launch_fails_it_under_checks_too(cuda, caplog, monkeypatch, checks, statement, result):
    """As memcheck, which ends the context of a kernel after a wrong access: no check makes a success of a failure."""
    kernel = f".visible .entry go_{checks}() {{ .reg .b64 %rd; .reg .b32 %r; mov.u64 %rd, 64; {statement}; }}"
    text = f".version 7.8 .target sm_80 .address_size 64 .global .align 8 .b8 at[8]; {kernel}"
    module, kernel = c_void_p(), c_void_p()
    cuda.function("cuModuleLoadData")(byref(module), text.encode())
    cuda.function("cuModuleGetFunction")(byref(kernel), module, f"go_{checks}".encode())
    monkeypatch.setattr(context, "wanted", lambda: frozenset({checks}))
    cuda.library.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, None, None)
    assert cuda.library.cuCtxSynchronize() == result
    assert cuda.library.cuMemAlloc_v2(byref(c_uint64()), c_size_t(4)) == result
    assert len([each for each in caplog.records if each.levelno >= logging.WARNING]) == (result != 0)  # it is told once


def test_a_defect_of_an_engine_is_no_wrong_call_and_its_log_shows_where(cuda, kernel, caplog, monkeypatch):
    def broken(*arguments, **options):
        raise ValueError("negative shift count")

    for way in ("relaunch", "launch"):
        monkeypatch.setattr(ptxvm.Kernel, way, broken)
    launch(cuda, kernel("wild"))
    with pytest.raises(CallError, match=str(UNKNOWN)):
        cuda.function("cuCtxSynchronize")()
    assert "negative shift count" in caplog.text
    assert "in broken" in caplog.text  # a traceback
    cuda.function("cuDevicePrimaryCtxReset_v2")(0)


@pytest.mark.parametrize("defect", [ValueError("negative shift count"), TypeError("no number"), KeyError("a name")])
def test_a_defect_within_a_call_is_no_wrong_value_of_the_client(cuda, data, caplog, monkeypatch, defect):
    def broken(*arguments):
        raise defect

    monkeypatch.setattr("ptxvm.libcuda.calls.context.array_at", broken)
    assert cuda.library.cuCtxCreate_v3(byref(c_void_p()), data, 1, 0, 0) == UNKNOWN
    assert "in broken" in caplog.text  # a traceback


def test_counts_and_sizes_that_no_memory_has_are_wrong_values(cuda, data, caplog):
    """Clients give them as any number; none is an error of the driver's own (driver API, `CUDA_ERROR_INVALID_VALUE`)."""
    some, many = (c_uint64 * 8)(), c_size_t(1 << 40)
    wrong = [
        ("cuCtxCreate_v3", byref(c_void_p()), some, c_int(-1), c_uint(0), c_int(0)),
        ("cuMemcpyBatchAsync_v2", some, some, some, many, some, some, c_size_t(1), c_void_p()),
        ("cuMemSetAccess", data, c_size_t(4096), some, many),
        ("cuMemImportFromShareableHandle", byref(c_void_p()), c_void_p(1 << 40), c_int(1)),
    ]
    for name, *arguments in wrong:
        assert getattr(cuda.library, name)(*arguments) == INVALID_VALUE, name
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


def test_a_launch_is_refused_again_when_the_kernel_takes_less_shared_memory(cuda, kernel, data):
    """What was checked for a launch before holds as long as the attributes of its kernel (`cuFuncSetAttribute`)."""
    scale, most, size = kernel("scale"), c_int(8), c_uint(60_000)  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    given = pointers(data, c_float(2), c_uint(N))
    extents = (c_uint(1), c_uint(1), c_uint(1), c_uint(32), c_uint(1), c_uint(1))
    results = []
    for bytes_allowed in (64_000, 50_000, 64_000):
        cuda.function("cuFuncSetAttribute")(scale, most, c_int(bytes_allowed))
        results += [cuda.library.cuLaunchKernel(scale, *extents, size, None, given, None) for _ in range(2)]
    assert results == [0, 0, INVALID_VALUE, INVALID_VALUE, 0, 0]


def test_wrong_calls_have_the_results_of_the_manual(cuda, module, data):
    wrong = [
        (INVALID_VALUE, "cuInit", c_uint(1)),
        (INVALID_VALUE, "cuMemAlloc_v2", byref(c_uint64()), c_size_t(0)),
        (INVALID_VALUE, "cuMemAlloc_v2", None, c_size_t(4)),
        (INVALID_VALUE, "cuMemFree_v2", c_uint64(data.value + 4)),
        (INVALID_VALUE, "cuMemcpyHtoD_v2", data, (c_float * (2 * N))(), c_size_t(8 * N)),
        (NOT_FOUND, "cuModuleGetFunction", byref(c_void_p()), module, b"absent"),
        (NOT_FOUND, "cuModuleGetGlobal_v2", None, None, module, b"absent"),
        (INVALID_VALUE, "cuMemsetD2D8_v2", data, c_size_t(512), 0, c_size_t(4), c_size_t(100)),
        (
            INVALID_VALUE,
            "cuMemcpy2D_v2",
            byref(Copy2D(target_type=2, target_device=64, source_type=2, source_device=data.value, width=4, height=1)),
        ),
        (INVALID_HANDLE, "cuStreamSynchronize", c_void_p(12345)),
        (INVALID_HANDLE, "cuModuleUnload", c_void_p(12345)),
        (101, "cuDeviceGet", byref(c_int()), 99),
        (INVALID_PTX, "cuModuleLoadData", byref(c_void_p()), KERNELS.replace("mul.f32", "mul.f31").encode()),
        (INVALID_PTX, "cuModuleLoadData", byref(c_void_p()), KERNELS.replace("sm_80", "sm_100").replace("7.8", "8.8").encode()),
        (NO_BINARY, "cuModuleLoadData", byref(c_void_p()), b"\x7fELF" + bytes(60)),
        (NOT_SUPPORTED, "cuMulticastCreate", byref(c_void_p()), None),
    ]
    for expected, name, *arguments in wrong:
        assert getattr(cuda.library, name)(*arguments) == expected, name


@pytest.mark.parametrize("function", ["cuMemAlloc_v2", "cuMemAllocManaged"])
def test_a_large_allocation_begins_a_large_page(cuda, function):
    """As on hardware, whose pages of that size are 2 MiB: Taichi's runtime lays out its tables by pages from there on."""
    flags = (c_uint(1),) if "Managed" in function else ()
    found = []
    for size in (2 << 20, 3 << 20, 58_105_856):
        cuda.function(function)(byref(out := c_uint64()), c_size_t(size), *flags)
        found.append(out.value)
    assert [each % (2 << 20) for each in found] == [0, 0, 0]
    for each in found:
        cuda.function("cuMemFree_v2")(c_uint64(each))


@pytest.mark.parametrize("size", [1 << 60, (1 << 64) - (1 << 21)])
def test_more_memory_than_there_is_has_its_result(cuda, caplog, size):
    """The host's words for it are no failure of the driver's own (driver API, `CUDA_ERROR_OUT_OF_MEMORY`)."""
    out, properties = byref(c_uint64()), byref(AllocationProperties(1, 0, 1, 0))
    reserved = (c_size_t(0), c_uint64(0), c_uint64(0))
    for name, *arguments in (
        ("cuMemAlloc_v2", c_size_t(size)), ("cuMemAllocManaged", c_size_t(size), c_uint(1)),
        ("cuMemHostAlloc", c_size_t(size), c_uint(0)), ("cuMemCreate", c_size_t(size), properties, c_uint64(0)),
        ("cuMemAddressReserve", c_size_t(size), *reserved),
    ):  # fmt: skip
        assert getattr(cuda.library, name)(out, *arguments) == OUT_OF_MEMORY, name
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


def test_the_log_of_the_client_has_the_diagnostics(cuda):
    text = ctypes.create_string_buffer(4096)
    numbers = (c_int * 2)(5, 6)  # CU_JIT_ERROR_LOG_BUFFER and its size
    given = (c_void_p * 2)(ctypes.addressof(text), 4096)
    wrong = KERNELS.replace("mul.f32", "mul.f31").encode()
    assert cuda.library.cuModuleLoadDataEx(byref(c_void_p()), wrong, 2, numbers, given) == INVALID_PTX
    assert b"'.f31' does not fit here in 'mul'" in text.value


def test_the_log_of_the_client_has_the_warnings(cuda):
    """In the words of ptxas 13.0; CU_JIT_INFO_LOG_BUFFER and its size."""
    text = ctypes.create_string_buffer(4096)
    given = (c_void_p * 2)(ctypes.addressof(text), 4096)
    variable = ".version 8.0\n.target sm_80\n.address_size 64\n.extern .global .u32 v;\n"
    loaded = c_void_p()
    cuda.function("cuModuleLoadDataEx")(byref(loaded), variable.encode(), 2, (c_int * 2)(3, 4), given)
    ignored = b"Unresolved extern variable 'v' in whole program compilation, ignoring extern qualifier"
    assert text.value == b"ptxas warning : " + ignored
    address, size = c_uint64(), c_size_t()
    cuda.function("cuModuleGetGlobal_v2")(byref(address), byref(size), loaded, b"v")
    assert size.value == 4


@pytest.mark.parametrize(("text", "code"), [(".version 99.0\n.target sm_80\n", 222), (".version 8.0\n.target sm_80\nx\n", 218)])
def test_the_linker_tells_newer_ptx_from_wrong_ptx(cuda, text, code):
    """The codes of driver API, `cuLinkAddData`: UNSUPPORTED_PTX_VERSION and INVALID_PTX."""
    linker = c_void_p()
    cuda.function("cuLinkCreate_v2")(0, None, None, byref(linker))
    given = text.encode()
    assert cuda.library.cuLinkAddData_v2(linker, 1, given, c_size_t(len(given)), b"a part", 0, None, None) == code


def test_modules_are_linked(cuda):
    head = ".version 7.8\n.target sm_80\n.address_size 64\n"
    user = head + (
        ".extern .func (.param .b32 r) twice(.param .b32 a);\n.visible .entry k(.param .u64 out) {\n"
        ".reg .b32 %r; .reg .b64 %rd; ld.param.u64 %rd, [out];\n"
        "{ .param .b32 a; .param .b32 r; st.param.b32 [a], 21; call (r), twice, (a); ld.param.b32 %r, [r]; }\n"
        "st.global.u32 [%rd], %r; ret; }\n"
    )
    maker = head + (
        ".visible .func (.param .b32 r) twice(.param .b32 a) { .reg .b32 %r; ld.param.b32 %r, [a];\n"
        "add.u32 %r, %r, %r; st.param.b32 [r], %r; ret; }\n"
    )
    linker, image, module, function, address = c_void_p(), c_void_p(), c_void_p(), c_void_p(), c_uint64()
    cuda.function("cuLinkCreate_v2")(0, None, None, byref(linker))
    for text in (user, maker):
        cuda.function("cuLinkAddData_v2")(linker, 1, text.encode(), c_size_t(len(text)), b"a part", 0, None, None)
    cuda.function("cuLinkComplete")(linker, byref(image), byref(c_size_t()))
    cuda.function("cuModuleLoadData")(byref(module), image)
    cuda.function("cuLinkDestroy")(linker)
    cuda.function("cuModuleGetFunction")(byref(function), module, b"k")
    cuda.function("cuMemAllocManaged")(byref(address), c_size_t(4), 1)
    launch(cuda, function, address)
    cuda.function("cuCtxSynchronize")()
    assert c_uint.from_address(address.value).value == 42


def test_a_captured_stream_becomes_a_graph_that_runs_as_often_as_it_is_launched(cuda, kernel, data):
    stream, graph, executable, count = c_void_p(), c_void_p(), c_void_p(), c_size_t()
    cuda.function("cuStreamCreate")(byref(stream), 1)
    cuda.function("cuStreamBeginCapture_v2")(stream, 0)
    for factor in (2, 5):
        launch(cuda, kernel("scale"), data, c_uint(N), c_float(factor), stream=stream)
    cuda.function("cuStreamEndCapture")(stream, byref(graph))
    assert values(cuda, data)[1] == 1
    cuda.function("cuGraphGetNodes")(graph, None, byref(count))
    assert count.value == 2
    cuda.function("cuGraphInstantiateWithFlags")(byref(executable), graph, c_uint64(0))
    for expected in (10, 100):
        cuda.function("cuGraphLaunch")(executable, stream)
        cuda.function("cuStreamSynchronize")(stream)  # nothing else orders it before copies on the default stream
        assert values(cuda, data)[1] == expected


def test_a_resource_ends_with_its_last_user(cuda):
    ended = []
    end = ctypes.CFUNCTYPE(None, c_void_p)(ended.append)
    resource, graph, executable = c_void_p(), c_void_p(), c_void_p()
    cuda.function("cuUserObjectCreate")(byref(resource), c_void_p(77), end, 1, 1)
    cuda.function("cuGraphCreate")(byref(graph), 0)
    cuda.function("cuGraphRetainUserObject")(graph, resource, 1, 1)  # the graph takes the client's use over
    cuda.function("cuGraphInstantiateWithFlags")(byref(executable), graph, c_uint64(0))
    cuda.function("cuGraphDestroy")(graph)
    assert ended == []
    cuda.function("cuGraphExecDestroy")(executable)
    assert ended == [77]


def test_nvjitlink_is_of_a_version_that_takes_ptx_and_links_it(cuda):
    linker = ctypes.CDLL("libnvJitLink.so.13")
    major, minor, handle, size = c_uint(), c_uint(), c_void_p(), c_size_t()
    assert linker.nvJitLinkVersion(byref(major), byref(minor)) == 0
    assert (major.value, minor.value) == (12, 0)
    options = (c_char_p * 1)(b"-arch=sm_90")
    assert linker["__nvJitLinkCreate_13_5"](byref(handle), 1, options) == 0  # as a program of `nvJitLink.h` calls it
    text = KERNELS.encode()
    assert linker.nvJitLinkAddData(handle, 2, text, c_size_t(len(text)), b"kernels") == 0
    wrong = text.replace(b"mul.f32", b"mul.f31")
    assert linker.nvJitLinkAddData(handle, 2, wrong, c_size_t(len(wrong)), b"wrong") == 4  # NVJITLINK_ERROR_PTX_COMPILE
    assert linker.nvJitLinkGetErrorLogSize(handle, byref(size)) == 0
    log = ctypes.create_string_buffer(size.value)
    assert linker.nvJitLinkGetErrorLog(handle, log) == 0
    assert b"'.f31' does not fit here in 'mul'" in log.value
    assert linker.nvJitLinkComplete(handle) == 0
    assert linker.nvJitLinkGetLinkedCubinSize(handle, byref(size)) == 0
    image, module, function = ctypes.create_string_buffer(size.value), c_void_p(), c_void_p()
    assert linker.nvJitLinkGetLinkedCubin(handle, image) == 0
    assert linker.nvJitLinkDestroy(byref(handle)) == 0
    assert handle.value is None
    cuda.function("cuModuleLoadData")(byref(module), image)
    cuda.function("cuModuleGetFunction")(byref(function), module, b"scale")


def test_events_have_times(cuda):
    start, end, elapsed = c_void_p(), c_void_p(), c_float()
    for event in (start, end):
        cuda.function("cuEventCreate")(byref(event), 0)
        cuda.function("cuEventRecord")(event, None)
    cuda.function("cuEventElapsedTime")(byref(elapsed), start, end)
    assert 0 <= elapsed.value < 60_000


@pytest.mark.parametrize(
    ("name", "version", "symbol"),
    [
        ("cuCtxCreate", 2000, "cuCtxCreate"),
        ("cuCtxCreate", 3020, "cuCtxCreate_v2"),
        ("cuCtxCreate", 11040, "cuCtxCreate_v3"),
        ("cuCtxCreate", 13000, "cuCtxCreate_v4"),
        ("cuCtxSynchronize", 12090, "cuCtxSynchronize"),
        ("cuCtxSynchronize", 13000, "cuCtxSynchronize_v2"),
        ("cuMemAlloc", 12000, "cuMemAlloc_v2"),
        ("cuEventElapsedTime", 12080, "cuEventElapsedTime_v2"),
    ],
)
def test_an_address_is_that_of_the_version_asked_for(cuda, name, version, symbol):
    found, status = c_void_p(), c_int(-1)
    cuda.function("cuGetProcAddress_v2")(name.encode(), byref(found), version, c_uint64(0), byref(status))
    assert found.value == ctypes.cast(getattr(cuda.library, symbol), c_void_p).value
    assert status.value == 0


def test_what_is_no_function_has_no_address(cuda):
    found, status = c_void_p(1), c_int(-1)
    cuda.function("cuGetProcAddress_v2")(b"cuNonsense", byref(found), 13000, c_uint64(0), byref(status))
    assert (found.value, status.value) == (None, 1)  # CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
    cuda.function("cuGetProcAddress_v2")(b"cuCtxSynchronize", byref(found), 1000, c_uint64(0), byref(status))
    assert (found.value, status.value) == (None, 2)  # CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
    cuda.function("cuGetProcAddress_v2")(b"cuGreenCtxCreate", byref(found), 12030, c_uint64(0), byref(status))
    assert (found.value, status.value) == (None, 2)  # it is of version 12.4


@pytest.mark.parametrize("name", [b"cuNonsense", b"", b"cuMemAlloc_v9", "cuInit\u00e9".encode()])
def test_no_function_is_no_error_but_in_the_first_version_of_the_search(cuda, name):
    """SUCCESS and a null pointer, also where the client does not ask why (driver API, `cuGetProcAddress`)."""
    for status in (None, byref(c_int())):
        found = c_void_p(1)
        assert cuda.library.cuGetProcAddress_v2(name, byref(found), 13000, c_uint64(0), status) == SUCCESS
        assert found.value is None
    assert cuda.library.cuGetProcAddress(name, byref(found), 13000, c_uint64(0)) == NOT_FOUND


def test_a_search_has_known_flags_and_names(cuda):
    found, ask = c_void_p(1), cuda.library.cuGetProcAddress_v2
    assert [ask(b"cuInit", byref(found), 13000, c_uint64(flags), None) for flags in range(5)] == [0, 0, 0, 1, 1]
    assert ask(None, byref(found), 13000, c_uint64(0), None) == INVALID_VALUE
    assert ask(b"cuInit", None, 13000, c_uint64(0), None) == INVALID_VALUE


def test_no_function_is_one_of_a_version_after_the_driver_s(cuda):
    """INVALID_VALUE for a version above that of the driver (driver API, `cuGetProcAddress`)."""
    version, found = c_int(), c_void_p()
    cuda.function("cuDriverGetVersion")(byref(version))
    ask = cuda.library.cuGetProcAddress_v2
    assert ask(b"cuInit", byref(found), version, c_uint64(0), None) == SUCCESS
    assert ask(b"cuInit", byref(found), version.value + 10, c_uint64(0), None) == INVALID_VALUE


def test_a_forked_process_has_no_driver(cuda):
    """CUDA does not work in a child of an initialised process (CUDA C++ Programming Guide, "Initialization")."""
    child = os.fork()
    if not child:
        os._exit(cuda.library.cuCtxGetCurrent(byref(c_void_p())) + 10 * cuda.library.cuInit(0))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == NOT_INITIALIZED + 10 * NOT_INITIALIZED
    cuda.function("cuCtxGetCurrent")(byref(c_void_p()))


PROGRAM = """
import ctypes
import logging
import os
cuda = ctypes.CDLL("libcuda.so.1")
major, minor = ctypes.c_int(), ctypes.c_int()
print(cuda.cuInit(0), cuda.cuDeviceComputeCapability(ctypes.byref(major), ctypes.byref(minor), 0), major.value, minor.value)
count = ctypes.c_int()
cuda.cuDeviceGetCount(ctypes.byref(count))
print(count.value)
context, module, kernel, data = (ctypes.c_void_p() for _ in range(4))
cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
print(cuda.cuModuleLoadData(ctypes.byref(module), PTX))
cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"one_too_many")
cuda.cuMemAlloc_v2(ctypes.byref(data), ctypes.c_size_t(4))
arguments = (ctypes.c_void_p * 1)(ctypes.addressof(data))
print(cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, arguments, None), cuda.cuCtxSynchronize())
# objects that Python ends last, and destructors of C++, call functions when the driver has ended
class Last:
    def __del__(self, cuda=cuda, data=data, write=os.write, current=ctypes.c_void_p(1), byref=ctypes.byref):
        write(1, b"%d %d, " % (cuda.cuCtxGetCurrent(byref(current)), current.value is None))
        write(1, b"freed %d%d" % (cuda.cuCtxSetCurrent(data), cuda.cuMemFree_v2(data)))
last = Last()
ctypes.CDLL(None).on_exit(ctypes.cast(cuda.cuProfilerStop, ctypes.c_void_p), None)
raise SystemExit(STATUS)
"""
RESULT = """
cuda.cuMemcpyDtoH_v2(ctypes.byref(count), data, ctypes.c_size_t(4))
del last
print("\\ncopied", count.value)
"""
ONE_TOO_MANY = b"""
.version 6.4
.target sm_75
.address_size 64
.visible .entry one_too_many(.param .u64 data)
{ .reg .b64 %rd; ld.param.u64 %rd, [data]; st.global.u32 [%rd], 1; st.global.u32 [%rd+4], 2; ret; }
"""


@pytest.mark.parametrize(
    ("options", "status", "expected", "result"),
    [([], 7, 7, 0), (["--check", "memory", "--summary"], 0, 1, ILLEGAL_ADDRESS)],
)
def test_a_program_runs_with_the_devices_and_checks_that_are_asked_for(options, status, expected, result):
    """An allocation has the granularity of hardware, 512 bytes, unless memory is checked; a finding is a failure."""
    command = [
        sys.executable,
        "-m",
        "ptxvm",
        "exec",
        "--device",
        "sm_75",
        "--devices",
        "3",
        *options,
        "--",
        sys.executable,
        "-c",
    ]
    program = PROGRAM.replace("PTX", repr(ONE_TOO_MANY)).replace("STATUS", str(status))
    done = subprocess.run([*command, program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (expected, f"0 0 7 5\n3\n0\n0 {result}\n0 1, freed 00"), done.stderr
    if options:
        assert "out-of-bounds" in done.stderr
        headings, row, *others = done.stderr.splitlines()[-5:]
        assert headings.split() == ["launches", "time", "findings", "kernel"]
        assert re.fullmatch(r" +1 +[\d.]+ (s|ms|us) +1  one_too_many", row)
        assert re.fullmatch(r"ptxvm: 1 launch of 1 kernel, [\d.]+ (s|ms|us)", others.pop(0))
        assert others == ["ptxvm: 1 out-of-bounds in kernel one_too_many", "ptxvm: 1 error and 0 warnings in kernels"]
    else:
        assert done.stderr == ""


C_PROGRAM = r"""
#include <dlfcn.h>
#include <stdint.h>
typedef int (*function)();
int main(void)
{
    const char *ptx = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing() { ret; }";
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *context, *module, *kernel;
    function init = (function)dlsym(cuda, "cuInit"), retain = (function)dlsym(cuda, "cuDevicePrimaryCtxRetain"),
             current = (function)dlsym(cuda, "cuCtxSetCurrent"), load = (function)dlsym(cuda, "cuModuleLoadData"),
             find = (function)dlsym(cuda, "cuModuleGetFunction"), launch = (function)dlsym(cuda, "cuLaunchKernel"),
             wait = (function)dlsym(cuda, "cuCtxSynchronize");
    return init(0) || retain(&context, 0) || current(context) || load(&module, ptx) || find(&kernel, module, "nothing")
        || launch(kernel, 1, 1, 1, 1, 1, 1, 0, (void *)0, (void *)0, (void *)0) || wait();
}
"""


@pytest.mark.skipif(not (library_of_python() and shutil.which("cc")), reason="it needs cc and a shared library of Python")
def test_the_summary_has_the_launches_of_a_program_without_python(tmp_path):
    (tmp_path / "main.c").write_text(C_PROGRAM)
    subprocess.run(["cc", "-w", "main.c", "-ldl", "-o", "main"], cwd=tmp_path, check=True, capture_output=True)
    command = [sys.executable, "-m", "ptxvm", "exec", "--summary", "--", str(tmp_path / "main")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "ptxvm: 1 launch of 1 kernel" in done.stderr


@pytest.mark.skipif(not (library_of_python() and shutil.which("cc")), reason="it needs cc and a shared library of Python")
def test_a_program_is_linked_with_the_driver_where_there_is_no_toolkit(tmp_path):
    (tmp_path / "main.c").write_text("int cuInit(unsigned); int main(void) { return cuInit(0); }")
    run = [sys.executable, "-m", "ptxvm", "exec", "--", "sh", "-c", "cc main.c -lcuda -o main && ./main"]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


VARIABLES = {
    "PTXVM_CHECK": "PTXVM_CHECK: there is no check 'x'; there are",
    "PTXVM_ASYNC": "PTXVM_ASYNC: asynchronous work",
    "PTXVM_DEVICE": "PTXVM_DEVICE: there is no device 'x'; there are",
    "PTXVM_SEED": "PTXVM_SEED is a number",
}


@pytest.mark.parametrize("name", VARIABLES)
def test_a_wrong_variable_is_told_before_a_program_starts(name):
    run = [sys.executable, "-m", "ptxvm", "exec", "--", "echo", "started"]
    done = subprocess.run(run, env=os.environ | {name: "x"}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"ptxvm exec: {VARIABLES[name]}")
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(not (library_of_python() and shutil.which("cc")), reason="it needs cc and a shared library of Python")
def test_a_program_that_starts_by_itself_is_told_of_a_wrong_variable(tmp_path):
    """In a line, and no function works."""
    (tmp_path / "main.c").write_text("int cuInit(unsigned); int main(void) { return cuInit(0); }")
    run = [sys.executable, "-m", "ptxvm", "exec", "--", "sh", "-c", "cc main.c -lcuda -o main && PTXVM_CHECK=x ./main"]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 3  # CUDA_ERROR_NOT_INITIALIZED
    assert done.stderr == "ptxvm: PTXVM_CHECK: there is no check 'x'; there are memory, init, sync, race\n"


UNWAITED = b"""
.version 8.0
.target sm_90
.address_size 64
.visible .entry one_too_many(.param .u64 data)
{
    .reg .b32 %r; .reg .b64 %rd; .shared .align 4 .b32 x;
    ld.param.u64 %rd, [data];
    st.shared.b32 [x], 0;
    st.global.b32 [%rd], 1;
    cp.async.ca.shared.global [x], [%rd], 4;
    ld.shared.b32 %r, [x];  // without a wait
    st.global.b32 [%rd], %r;
    ret;
}
"""


@pytest.mark.parametrize(
    ("options", "copied"),
    [(["early"], 1), (["late"], 0), (["random", "--seed", "1"], None), (["late", "--check", "memory"], 0)],
)
def test_asynchronous_work_of_a_program_ends_when_it_is_asked_to(options, copied):
    """What a kernel reads without a wait is the copy or what was there before."""
    command = [sys.executable, "-m", "ptxvm", "exec", "--device", "sm_90", "--async", *options, "--", sys.executable, "-c"]
    program = PROGRAM.replace("PTX", repr(UNWAITED)).replace("raise SystemExit(STATUS)", RESULT)
    done = subprocess.run([*command, program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(tuple(f"copied {each}\n" for each in ((0, 1) if copied is None else (copied,)))), done.stdout


def executed(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the program with checks."""
    command = [sys.executable, "-m", "ptxvm", "exec", "--check", "memory", *words, "--", sys.executable, "-c"]
    program = PROGRAM.replace("PTX", repr(ONE_TOO_MANY)).replace("STATUS", "0")
    return subprocess.run([*command, program], capture_output=True, text=True, check=False)


def test_a_finding_that_is_meant_is_not_told(tmp_path):
    """The store stands on line 6 of the module; a rule for another line of another kernel is left over."""
    file = tmp_path / "known.txt"
    file.write_text("out-of-bounds one_*:6  # the padding is read\nrace other:3\n")
    done = executed("--suppress", str(file))
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        "ptxvm: 0 errors and 0 warnings in kernels, 1 suppressed",
        f"{file}:2: nothing matches 'race other:3'",
    ]
    file.write_text("out-of-bounds one_*:7\n")
    assert executed("--suppress", str(file)).returncode == 1
    done = executed("--allow", "out-of-bounds")
    assert (done.returncode, done.stderr) == (0, "ptxvm: 0 errors and 0 warnings in kernels\n")
    done = executed("--allow", "out-of-bound")
    assert (done.returncode, "out-of-bounds" in done.stderr) == (2, True)


def test_suppressions_that_cannot_be_read(tmp_path):
    done = executed("--suppress", str(tmp_path / "none.txt"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot read" in done.stderr


def test_every_function_of_the_manual_is_exported_but_those_of_windows(cuda, shared):
    pages = (shared / "spec" / "cuda-driver").rglob("*.md")
    named = {name for page in pages for name in re.findall(r"\b(cu[A-Z]\w+)\s*\(", page.read_text(encoding="utf-8"))}
    assert len(named) > 480
    known = {*signatures(), *versions()}
    assert [name for name in sorted(named - known) if not re.search("D3D|WGL", name)] == []


def test_graphics_interfaces_are_not_supported_and_named_once(cuda, caplog):
    for name, version in (("cuGraphicsGLRegisterImage", 3000), ("cuGLGetDevices", 13000), ("cuEGLStreamConsumerConnect", 7000)):
        found, status = c_void_p(), c_int(-1)
        cuda.function("cuGetProcAddress_v2")(name.encode(), byref(found), version, c_uint64(0), byref(status))
        assert status.value == 0
        for _ in range(2):
            assert ctypes.CFUNCTYPE(c_int, *[c_size_t] * 4)(found.value or 0)(0, 0, 0, 0) == NOT_SUPPORTED
    said = [each.getMessage() for each in caplog.records if each.name == "ptxvm.libcuda"]
    assert said == [
        f"ptxvm: {name} is not supported yet"
        for name in ("cuGraphicsGLRegisterImage", "cuGLGetDevices_v2", "cuEGLStreamConsumerConnect")
    ]

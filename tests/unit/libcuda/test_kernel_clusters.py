"""Clusters of kernels (driver API, "Execution Control": `cuFuncSetAttribute`; "Occupancy")."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_int, c_uint, c_uint64, c_void_p

import pytest

from ptxvm.driver.models import MODELS
from ptxvm.libcuda.session import session
from ptxvm.libcuda.structures import LaunchAttribute, LaunchConfig

SUCCESS, INVALID_VALUE, NOT_PERMITTED, INVALID_CLUSTER_SIZE = 0, 1, 800, 912
MAX_DYNAMIC = 8  # CUfunction_attribute
MUST_BE_SET, WIDTH, HEIGHT, DEPTH, NON_PORTABLE, POLICY = range(10, 16)
CLUSTER = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION

PTX = b"""
.version 8.3
.target sm_86
.address_size 64
.visible .entry k(.param .u64 out) {
    .reg .b32 %r; .reg .b64 %d;
    ld.param.u64 %d, [out];
    mov.u32 %r, %nctaid.x; st.global.u32 [%d], %r;
    ret;
}
"""


@pytest.fixture
def model(monkeypatch):
    """Let the device be of another model; as long as a test runs."""
    return lambda name: monkeypatch.setattr(session().driver.device(0), "model", MODELS[name])


@pytest.fixture
def kernel(cuda, model):
    """A kernel on a device with clusters."""
    model("sm_90")
    module = cuda.handle("cuModuleLoadData", PTX)
    return cuda.handle("cuModuleGetFunction", module, b"k")


def launched(cuda, kernel, grid, *extents):
    """The result of a launch in clusters, if extents are given."""
    attribute = LaunchAttribute(CLUSTER, 0)
    ctypes.memmove(attribute.value, (c_uint * 3)(*extents), 4 * len(extents))
    config = LaunchConfig((c_uint * 3)(grid, 1, 1), (c_uint * 3)(1, 1, 1), 0, 0, ctypes.addressof(attribute), bool(extents))
    argument = c_uint64(ctypes.addressof(cuda.cell))
    result = cuda.library.cuLaunchKernelEx(byref(config), kernel, (c_void_p * 1)(ctypes.addressof(argument)), None)
    cuda.cuCtxSynchronize()
    return result


def attribute(cuda, kernel, number):
    told = c_int(-7)
    cuda.cuFuncGetAttribute(byref(told), number, kernel)
    return told.value


def test_more_blocks_than_are_portable_must_be_allowed(cuda, kernel):
    assert launched(cuda, kernel, 16, 8, 1, 1) == SUCCESS
    assert launched(cuda, kernel, 16, 16, 1, 1) == INVALID_CLUSTER_SIZE
    config, most = LaunchConfig((c_uint * 3)(16, 1, 1), (c_uint * 3)(32, 1, 1)), c_int()
    cuda.cuOccupancyMaxPotentialClusterSize(byref(most), kernel, byref(config))
    assert most.value == 8
    cuda.cuFuncSetAttribute(kernel, NON_PORTABLE, c_int(1))
    assert attribute(cuda, kernel, NON_PORTABLE) == 1
    assert launched(cuda, kernel, 16, 16, 1, 1) == SUCCESS
    cuda.cuOccupancyMaxPotentialClusterSize(byref(most), kernel, byref(config))
    assert most.value == 16


@pytest.mark.parametrize("name", ["sm_75", "sm_80", "sm_86", "sm_89"])
def test_devices_before_hopper_have_no_clusters(cuda, kernel, model, name):
    """CUDA C++ Programming Guide, "Compute Capabilities": thread block clusters from 9.0 on.  They ran."""
    model(name)
    assert launched(cuda, kernel, 4, 1, 1, 1) == SUCCESS
    assert launched(cuda, kernel, 4, 2, 1, 1) == INVALID_CLUSTER_SIZE
    config, most = LaunchConfig((c_uint * 3)(16, 1, 1), (c_uint * 3)(32, 1, 1)), c_int()
    cuda.cuOccupancyMaxPotentialClusterSize(byref(most), kernel, byref(config))
    assert most.value == 1
    of_two = LaunchAttribute(CLUSTER, 0)
    ctypes.memmove(of_two.value, (c_uint * 3)(2, 1, 1), 12)
    config.attributes, config.count = ctypes.addressof(of_two), 1
    assert cuda.library.cuOccupancyMaxActiveClusters(byref(most), kernel, byref(config)) == INVALID_CLUSTER_SIZE
    for each in (WIDTH, HEIGHT, DEPTH):
        cuda.cuFuncSetAttribute(kernel, each, c_int(2))
    assert launched(cuda, kernel, 4) == INVALID_CLUSTER_SIZE


@pytest.mark.parametrize("declared", [4, 1024, 48 << 10])
def test_variables_take_from_the_shared_memory_that_a_launch_may_add(cuda, declared):
    """`cuda.h` at CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: the default is 48 KB less what the kernel declares."""
    tile = b"    .shared .align 4 .b8 tile[%d]; .reg .b32 %%r; mov.b32 %%r, tile;" % declared
    module = cuda.handle("cuModuleLoadData", PTX.replace(b"    .reg .b32 %r;", tile))
    kernel, argument = cuda.handle("cuModuleGetFunction", module, b"k"), c_uint64(ctypes.addressof(cuda.cell))
    most = attribute(cuda, kernel, MAX_DYNAMIC)
    assert most == (48 << 10) - declared
    for dynamic, result in ((most, SUCCESS), (most + 4, INVALID_VALUE)):
        values = (c_void_p * 1)(ctypes.addressof(argument))
        assert cuda.library.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, dynamic, None, values, None) == result
    cuda.cuFuncSetAttribute(kernel, MAX_DYNAMIC, c_int((99 << 10) - declared))
    assert attribute(cuda, kernel, MAX_DYNAMIC) == (99 << 10) - declared
    cuda.cuCtxSynchronize()


@pytest.mark.parametrize(("number", "status"), [(0, SUCCESS), (3, INVALID_VALUE), (15, INVALID_VALUE), (99, INVALID_VALUE)])
def test_a_launch_has_attributes_of_launches_alone(cuda, kernel, number, status):
    """CUlaunchAttributeID: 0 is ignored, 3 (the synchronization policy) is one of streams, and 15 and 99 are none."""
    config = LaunchConfig((c_uint * 3)(1, 1, 1), (c_uint * 3)(32, 1, 1))
    attribute = LaunchAttribute(number)
    config.attributes, config.count = ctypes.addressof(attribute), 1
    argument = c_uint64(ctypes.addressof(cuda.cell))
    found = cuda.library.cuLaunchKernelEx(byref(config), kernel, (c_void_p * 1)(ctypes.addressof(argument)), None)
    cuda.cuCtxSynchronize()
    assert found == status


def test_a_client_says_which_clusters_a_kernel_requires(cuda, kernel):
    assert [attribute(cuda, kernel, each) for each in (MUST_BE_SET, WIDTH, HEIGHT, DEPTH)] == [0, 0, 0, 0]
    cuda.cuFuncSetAttribute(kernel, WIDTH, c_int(2))
    assert launched(cuda, kernel, 4) == INVALID_CLUSTER_SIZE  # all of the extents are positive, or none
    for each in (HEIGHT, DEPTH):
        cuda.cuFuncSetAttribute(kernel, each, c_int(1))
    assert launched(cuda, kernel, 4) == SUCCESS
    assert launched(cuda, kernel, 4, 2, 1, 1) == SUCCESS
    assert launched(cuda, kernel, 4, 4, 1, 1) == INVALID_CLUSTER_SIZE
    assert launched(cuda, kernel, 3) == INVALID_CLUSTER_SIZE  # no multiple
    assert cuda.library.cuFuncSetAttribute(kernel, WIDTH, c_int(-1)) == INVALID_VALUE
    assert cuda.library.cuFuncSetAttribute(kernel, MUST_BE_SET, c_int(1)) == INVALID_VALUE
    assert cuda.library.cuFuncSetAttribute(kernel, POLICY, c_int(3)) == INVALID_VALUE

"""Which launches are cooperative: those alone have the workspace in which the blocks of a grid meet.

CUDA's `grid_group::is_valid()` asks whether `%envreg1` and `%envreg2` name one (cooperative_groups.h of CUDA 13.0), and
`sync()` of a grid without one is a trap.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p

import numpy as np
import pytest

import ptxvm
from ptxvm.libcuda.structures import KernelNode, LaunchAttribute, LaunchConfig

COOPERATIVE = 2  # CU_LAUNCH_ATTRIBUTE_COOPERATIVE
PTX = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry valid(.param .u64 out) {
    .reg .b64 %d; .reg .b32 %r<4>; .reg .pred %p;
    ld.param.u64 %d, [out];
    mov.u32 %r0, %envreg1;
    mov.u32 %r1, %envreg2;
    or.b32 %r2, %r0, %r1;
    setp.ne.u32 %p, %r2, 0;
    selp.u32 %r3, 1, 0, %p;
    st.global.u32 [%d], %r3;
    ret;
}
"""


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize("cooperative", [True, False])
def test_the_workspace_of_a_launch(engine, cooperative):
    kernel, out = ptxvm.load(PTX).kernel(), np.full(1, 9, np.uint32)
    for _ in range(4):  # the later ones are launched again as the first was
        kernel.launch(1, 1, [out], engine=engine, cooperative=cooperative)
        assert out.tolist() == [int(cooperative)]
    with pytest.raises(TypeError, match="cooperative is True or False, not 1"):
        kernel.launch(1, 1, [out], cooperative=1)


class Launches:
    """Ways to launch the kernel; `valid` is what it said."""

    def __init__(self, cuda):
        self.cuda = cuda
        self.kernel = cuda.handle("cuModuleGetFunction", cuda.handle("cuModuleLoadData", PTX.encode()), b"valid")
        self.memory = cuda.handle("cuMemAlloc_v2", c_size_t(4))
        self.argument = c_uint64(self.memory.value)
        self.arguments = (c_void_p * 1)(ctypes.addressof(self.argument))
        self.extents = (c_uint(1),) * 6

    @property
    def valid(self):
        self.cuda.cuCtxSynchronize()
        found = c_int(-1)
        self.cuda.cuMemcpyDtoH_v2(byref(found), self.memory, c_size_t(4))
        return found.value

    def by_attribute(self, value):
        attribute, one = LaunchAttribute(COOPERATIVE, 0), (c_uint * 3)(1, 1, 1)
        attribute.value[0] = value
        config = LaunchConfig(one, one, 0, 0, ctypes.addressof(attribute), 1)
        self.cuda.cuLaunchKernelEx(byref(config), self.kernel, self.arguments, None)


def test_functions_and_attributes_of_launches(cuda):
    launches = Launches(cuda)
    cuda.cuLaunchKernel(launches.kernel, *launches.extents, c_uint(0), None, launches.arguments, None)
    assert launches.valid == 0
    cuda.cuLaunchCooperativeKernel(launches.kernel, *launches.extents, c_uint(0), None, launches.arguments)
    assert launches.valid == 1
    for value in (0, 1):
        launches.by_attribute(value)
        assert launches.valid == value


def test_a_node_keeps_it_when_its_launch_changes(cuda):
    launches, told = Launches(cuda), (c_int * 16)()
    graph = cuda.handle("cuGraphCreate", 0)
    one = (c_uint * 3)(1, 1, 1)
    described = KernelNode(launches.kernel.value, one, one, 0, ctypes.addressof(launches.arguments))
    node = cuda.handle("cuGraphAddKernelNode_v2", graph, None, c_size_t(0), byref(described))
    for value in (0, 1):
        if value:
            cuda.cuGraphKernelNodeSetAttribute(node, COOPERATIVE, (c_int * 16)(1))
            cuda.cuGraphKernelNodeSetParams_v2(node, byref(described))
        cuda.cuGraphKernelNodeGetAttribute(node, COOPERATIVE, told)
        assert told[0] == value
        cuda.cuGraphLaunch(cuda.handle("cuGraphInstantiateWithFlags", graph, c_uint64(0)), None)
        assert launches.valid == value

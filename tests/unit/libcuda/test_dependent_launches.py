"""Launches with programmatic stream serialization, under the check `race` (driver API, `CUlaunchAttribute`; PTX 9.7.13.13)."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_size_t, c_uint, c_uint64, c_void_p

import pytest

from ptxvm.driver import context
from ptxvm.driver.launch_checks import FINDINGS
from ptxvm.driver.models import MODELS
from ptxvm.libcuda.session import session
from ptxvm.libcuda.structures import LaunchAttribute, LaunchConfig

SERIALIZATION = 6  # CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
PTX = b"""
.version 8.6
.target sm_90
.address_size 64
.visible .entry write(.param .u64 data) {
    .reg .b64 %d;
    ld.param.u64 %d, [data];
    griddepcontrol.launch_dependents;
    st.global.u32 [%d], 7;
    ret;
}
.visible .entry early(.param .u64 data) {
    .reg .b64 %d; .reg .b32 %r;
    ld.param.u64 %d, [data];
    ld.global.u32 %r, [%d];
    griddepcontrol.wait;
    ret;
}
.visible .entry late(.param .u64 data) {
    .reg .b64 %d; .reg .b32 %r;
    ld.param.u64 %d, [data];
    griddepcontrol.wait;
    ld.global.u32 %r, [%d];
    ret;
}
"""


@pytest.fixture
def hopper(cuda, monkeypatch):
    """The driver with a device that has dependent launches."""
    monkeypatch.setattr(session().driver.device(0), "model", MODELS["sm_90"])
    return cuda


@pytest.mark.parametrize("between", [False, True], ids=["", "other work between"])
@pytest.mark.parametrize("streams", [0, 1], ids=["the only stream", "one of several"])
@pytest.mark.parametrize(("second", "may_begin", "races"), [(b"early", 1, 1), (b"early", 0, 0), (b"late", 1, 0)])
def test_what_comes_ahead_of_the_wait_is_found(hopper, monkeypatch, second, may_begin, races, streams, between):
    monkeypatch.setattr(context, "wanted", lambda: frozenset({"race"}))
    monkeypatch.setattr(FINDINGS, "seen", set())
    cuda = hopper
    stream = cuda.stream() if streams else c_void_p(0)
    module = cuda.handle("cuModuleLoadData", PTX)
    memory = cuda.handle("cuMemAlloc_v2", c_size_t(4))
    attribute, one, argument = LaunchAttribute(SERIALIZATION, 0), (c_uint * 3)(1, 1, 1), c_uint64(memory.value)
    attribute.value[0] = may_begin
    for name in (b"write", second):
        if between:
            cuda.cuMemsetD8Async(memory, 0, c_size_t(4), stream)  # a kernel depends on the kernel just before it alone
        kernel = cuda.handle("cuModuleGetFunction", module, name)
        config = LaunchConfig(one, one, 0, stream.value or 0, ctypes.addressof(attribute), 1)
        cuda.cuLaunchKernelEx(byref(config), kernel, (c_void_p * 1)(ctypes.addressof(argument)), None)
    cuda.cuCtxSynchronize()
    assert [code for _, code, _ in FINDINGS.seen] == ["race"] * (0 if between else races)

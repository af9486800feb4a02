"""The device runtime: functions that programs declare and the driver adds, as `cuda_device_runtime_api.h` has them."""

from __future__ import annotations

import numpy as np
import pytest

from ptxvm.driver.models import MODELS
from ptxvm.driver.module import Module

GRID_OF_SIX_CTAS = b"""
.version 7.8
.target sm_80
.address_size 64
.extern .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope);
.extern .func (.param .b32 error) cudaCGSynchronize(.param .b64 handle, .param .b32 flags);
.extern .func (.param .b32 error) cudaCGGetSize(.param .b64 threads, .param .b64 grids, .param .b64 handle);
.extern .func (.param .b32 error) cudaCGGetRank(.param .b64 thread, .param .b64 grid, .param .b64 handle);
.visible .entry exchange(.param .u64 data, .param .u64 results)
{
    .local .b32 size, grids, rank, grid;
    .reg .b32 %size, %grids, %rank, %grid, %value, %error, %no_error;
    .reg .b64 %handle, %none, %data, %results, %at, %a, %b;
    .param .b32 scope, flags, e;
    .param .b64 h, x, y;
    st.param.b32 [scope], 1;
    call (h), cudaCGGetIntrinsicHandle, (scope);
    ld.param.b64 %handle, [h];
    st.param.b32 [scope], 2;
    call (h), cudaCGGetIntrinsicHandle, (scope);
    ld.param.b64 %none, [h];
    mov.u64 %a, size;  cvta.local.u64 %a, %a;  mov.u64 %b, grids;  cvta.local.u64 %b, %b;
    st.param.b64 [x], %a;  st.param.b64 [y], %b;  st.param.b64 [h], %handle;
    call (e), cudaCGGetSize, (x, y, h);
    mov.u64 %a, rank;  cvta.local.u64 %a, %a;  mov.u64 %b, grid;  cvta.local.u64 %b, %b;
    st.param.b64 [x], %a;  st.param.b64 [y], %b;
    call (e), cudaCGGetRank, (x, y, h);
    ld.local.u32 %size, [size];  ld.local.u32 %grids, [grids];  ld.local.u32 %rank, [rank];  ld.local.u32 %grid, [grid];
    ld.param.u64 %data, [data];
    mad.wide.u32 %at, %rank, 4, %data;
    st.global.u32 [%at], %rank;
    st.param.b32 [flags], 0;
    call (e), cudaCGSynchronize, (h, flags);
    ld.param.b32 %no_error, [e];
    sub.u32 %value, %size, %rank;
    mad.wide.u32 %at, %value, 4, %data;
    ld.global.u32 %value, [%at + -4];  // of the thread that is as far from the last as this one is from the first
    call (e), cudaCGSynchronize, (h, flags);
    st.param.b64 [h], %none;
    call (e), cudaCGSynchronize, (h, flags);
    ld.param.b32 %error, [e];
    ld.param.u64 %results, [results];
    mad.wide.u32 %at, %rank, 24, %results;
    st.global.v2.u32 [%at], {%value, %size};
    st.global.v2.u32 [%at+8], {%grids, %grid};
    st.global.v2.u32 [%at+16], {%no_error, %error};
    ret;
}
"""


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_a_grid_knows_its_size_and_waits_for_all_of_its_ctas(engine):
    """Each thread gets what the thread at the other end wrote before the barrier; a scope that is no grid has handle 0."""
    kernel = Module([GRID_OF_SIX_CTAS], MODELS["sm_89"]).kernel("exchange").kernel
    data, results = np.full(96, -1, np.int32), np.full((96, 6), -1, np.int32)
    checks = ("memory", "race") if engine == "interp" else None
    done = kernel.launch((3, 1, 2), (4, 2, 2), [data, results], engine=engine, check=checks)
    invalid_value = 1
    assert results.tolist() == [[95 - rank, 96, 1, 0, 0, invalid_value] for rank in range(96)]
    assert done.findings == []


def test_a_module_with_such_a_function_of_its_own_keeps_it():
    text = b"""
    .version 7.8
    .target sm_80
    .address_size 64
    .visible .func (.param .b32 e) cudaCGSynchronize(.param .b64 h, .param .b32 f) { st.param.b32 [e], 77; ret; }
    """
    assert len(Module([text], MODELS["sm_89"]).module.programs) == 1

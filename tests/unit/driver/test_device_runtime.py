"""The device runtime: functions that programs declare and the driver adds, as `cuda_device_runtime_api.h` has them."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import ptxvm
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


MEMORY = """
.version 7.8
.target sm_75
.address_size 64
.extern .func (.param .b32 e) @MemsetAsync%(.param .b64 to, .param .b32 value, .param .b64 count, .param .b64 stream);
.extern .func (.param .b32 e) @MemcpyAsync%(
    .param .b64 to, .param .b64 from, .param .b64 count, .param .b32 kind, .param .b64 stream);
.extern .func (.param .b32 e) @Memset2DAsync%(
    .param .b64 to, .param .b64 pitch, .param .b32 value, .param .b64 width, .param .b64 height, .param .b64 stream);
.extern .func (.param .b32 e) @Memcpy2DAsync%(
    .param .b64 to, .param .b64 to_pitch, .param .b64 from, .param .b64 from_pitch, .param .b64 width, .param .b64 height,
    .param .b32 kind, .param .b64 stream);
.extern .func (.param .b32 e) @Malloc(.param .b64 out, .param .b64 size);
.extern .func (.param .b32 e) @Free(.param .b64 memory);
.extern .func (.param .b32 e) @StreamCreateWithFlags(.param .b64 out, .param .b32 flags);
.extern .func (.param .b32 e) @StreamDestroy(.param .b64 stream);
.extern .func (.param .b32 e) @EventCreateWithFlags(.param .b64 out, .param .b32 flags);
.extern .func (.param .b32 e) @EventRecord%(.param .b64 event, .param .b64 stream);
.extern .func (.param .b32 e) @EventDestroy(.param .b64 event);
.extern .func (.param .b32 e) @StreamWaitEvent%(.param .b64 stream, .param .b64 event, .param .b32 flags);
.extern .func (.param .b32 e) @GetDevice(.param .b64 out);
.visible .entry work(.param .u64 data, .param .u64 errors) {
    .local .align 8 .b64 cell;
    .reg .b32 %e<12>;
    .reg .b64 %data, %errors, %cell, %stream, %event, %memory, %at;
    ld.param.u64 %data, [data];
    ld.param.u64 %errors, [errors];
    mov.u64 %cell, cell;
    cvta.local.u64 %cell, %cell;
    call (%e0), @MemsetAsync%, (%data, 0x101, 8, 0);
    call (%e1), @StreamCreateWithFlags, (%cell, 1);
    ld.u64 %stream, [%cell];
    call (%e2), @EventCreateWithFlags, (%cell, 2);
    ld.u64 %event, [%cell];
    call (%e3), @EventRecord%, (%event, 0);
    call (%e4), @StreamWaitEvent%, (%stream, %event, 0);
    add.u64 %at, %data, 9;
    call (%e5), @MemcpyAsync%, (%at, %data, 5, 3, %stream);
    add.u64 %at, %data, 16;
    call (%e6), @Memset2DAsync%, (%at, 4, 7, 2, 3, %stream);
    add.u64 %at, %data, 32;
    add.u64 %memory, %data, 15;
    call (%e7), @Memcpy2DAsync%, (%at, 3, %memory, 4, 3, 3, 4, %stream);
    call (%e8), @Memcpy2DAsync%, (%at, 2, %memory, 4, 3, 3, 4, %stream);
    call (%e9), @EventCreateWithFlags, (%cell, 0);
    call (%e10), @EventDestroy, (%event);
    call (%e11), @StreamDestroy, (%stream);
    st.u32 [%errors], %e0;      st.u32 [%errors+4], %e1;    st.u32 [%errors+8], %e2;    st.u32 [%errors+12], %e3;
    st.u32 [%errors+16], %e4;   st.u32 [%errors+20], %e5;   st.u32 [%errors+24], %e6;   st.u32 [%errors+28], %e7;
    st.u32 [%errors+32], %e8;   st.u32 [%errors+36], %e9;   st.u32 [%errors+40], %e10;  st.u32 [%errors+44], %e11;
    call (%e0), @Malloc, (%cell, 64);
    ld.u64 %memory, [%cell];
    st.u32 [%memory+60], 5;
    ld.u32 %e1, [%memory+60];
    call (%e2), @Free, (%memory);
    call (%e3), @GetDevice, (%cell);
    ld.u32 %e4, [%cell];
    st.u32 [%errors+48], %e0;   st.u32 [%errors+52], %e1;   st.u32 [%errors+56], %e2;   st.u32 [%errors+60], %e3;
    st.u32 [%errors+64], %e4;
    ret;
}
"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize(("prefix", "suffix"), [("cuda", ""), ("__cudaCDP2", ""), ("__cudaCDP2", "_ptsz")])
def test_kernels_copy_and_fill_memory_in_the_order_of_streams(engine, prefix, suffix):
    """As the functions of the host with these names do (CUDA Programming Guide, "Device-side Runtime").

    The errors are cudaErrorInvalidPitchValue (12) for rows longer than their pitch, and cudaErrorInvalidValue (1) for an event
    with times.
    """
    text = MEMORY.replace("@", prefix).replace("%(", f"{suffix}(").replace("%,", f"{suffix},")
    kernel = Module([text.encode()], MODELS["sm_89"]).kernel("work").kernel
    data, errors = np.zeros(48, np.uint8), np.full(17, -1, np.int32)
    done = kernel.launch(1, 1, [data, errors], engine=engine, check=("memory", "race") if engine == "interp" else None)
    assert done.findings == []
    assert errors.tolist() == [0, 0, 0, 0, 0, 0, 0, 0, 12, 1, 0, 0, 0, 5, 0, 0, 0]
    expected = [1] * 8 + [0] + [1] * 5 + [0] * 2 + [7, 7, 0, 0] * 3 + [0] * 4 + [0, 7, 7] * 3 + [0] * 7
    assert data.tolist() == expected


def test_streams_without_an_event_between_them_race():
    text = MEMORY.replace("@", "cuda").replace("%(", "(").replace("%,", ",").replace("call (%e4)", "// call (%e4)")
    kernel = Module([text.encode()], MODELS["sm_89"]).kernel("work").kernel
    done = kernel.launch(1, 1, [np.zeros(48, np.uint8), np.zeros(17, np.int32)], engine="interp", check=("race",))
    assert [each.kind for each in done.findings] == ["race"]


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_what_a_function_stores_is_written(engine):
    """The kernel reads handles of streams, events and memory, and a number, from its own local memory."""
    text = MEMORY.replace("@", "cuda").replace("%(", "(").replace("%,", ",")
    kernel = Module([text.encode()], MODELS["sm_89"]).kernel("work").kernel
    done = kernel.launch(1, 1, [np.zeros(48, np.uint8), np.zeros(17, np.int32)], engine=engine, check=("init",))
    assert done.findings == []


def test_an_event_of_another_grid_is_refused():
    text = MEMORY.replace("@", "cuda").replace("%(", "(").replace("%,", ",").replace("(%event, 0)", "(77, 0)")
    kernel = Module([text.encode()], MODELS["sm_89"]).kernel("work").kernel
    with pytest.raises(ptxvm.Fault, match="0x4d is no event"):
        kernel.launch(1, 1, [np.zeros(48, np.uint8), np.zeros(17, np.int32)])


QUESTIONS = """
.version 7.8
.target sm_75
.address_size 64
.extern .func (.param .b32 e) @DeviceGetAttribute(.param .b64 out, .param .b32 attribute, .param .b32 device);
.extern .func (.param .b32 e) @GetDeviceCount(.param .b64 out);
.extern .func (.param .b32 e) @RuntimeGetVersion(.param .b64 out);
.extern .func (.param .b64 text) @GetErrorName(.param .b32 error);
.extern .func (.param .b64 text) @GetErrorString(.param .b32 error);
.visible .entry ask(.param .u64 numbers, .param .u64 words) {
    .reg .b32 %e<6>;
    .reg .b64 %numbers, %words, %at, %text<4>;
    ld.param.u64 %numbers, [numbers];
    ld.param.u64 %words, [words];
    call (%e0), @DeviceGetAttribute, (%numbers, 16, 0);
    add.u64 %at, %numbers, 4;
    call (%e1), @DeviceGetAttribute, (%at, 75, 0);
    add.u64 %at, %numbers, 8;
    call (%e2), @DeviceGetAttribute, (%at, 99999, 0);
    call (%e3), @DeviceGetAttribute, (%at, 16, 1);
    call (%e4), @GetDeviceCount, (%at);
    add.u64 %at, %numbers, 12;
    call (%e5), @RuntimeGetVersion, (%at);
    st.v4.u32 [%numbers+16], {%e0, %e1, %e2, %e3};
    st.v2.u32 [%numbers+32], {%e4, %e5};
    call (%text0), @GetErrorName, (700);
    call (%text1), @GetErrorString, (2);
    call (%text2), @GetErrorString, (12345);
    st.u64 [%words], %text0;  st.u64 [%words+8], %text1;  st.u64 [%words+16], %text2;
    ret;
}
"""


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize("prefix", ["cuda", "__cudaCDP2"])
def test_kernels_ask_about_the_device_and_for_words_of_errors(engine, prefix):
    """As on the host: attributes 16 (multiprocessors) and 75 (capability), unknown attributes (1) and devices (101)."""
    model = MODELS["sm_89"]
    kernel = Module([QUESTIONS.replace("@", prefix).encode()], model).kernel("ask").kernel
    numbers, words = np.full(10, -1, np.int32), np.zeros(3, np.uint64)
    kernel.launch(1, 1, [numbers, words], engine=engine)
    assert numbers.tolist() == [model.multiprocessors, 8, 1, 13000, 0, 0, 1, 101, 0, 0]
    said = [ctypes.string_at(int(address)) for address in words]
    assert said == [b"cudaErrorIllegalAddress", b"out of memory", b"unrecognized error code"]


BOXES = """
.version 7.8
.target sm_75
.address_size 64
.extern .func (.param .b32 e) __cudaCDP2Memcpy3DAsync(.param .b64 p, .param .b64 stream);
.extern .func (.param .b32 e) __cudaCDP2Memset3DAsync(
    .param .align 8 .b8 to[32], .param .b32 value, .param .align 8 .b8 extent[24], .param .b64 stream);
.visible .entry boxes(.param .u64 p, .param .u64 from, .param .u64 to, .param .u64 errors) {
    .reg .b32 %e<2>;
    .reg .b64 %p, %to, %errors;
    .param .align 8 .b8 target[32], extent[24];
    .param .b32 value, e;
    .param .b64 stream;
    ld.param.u64 %p, [p];
    ld.param.u64 %to, [to];
    ld.param.u64 %errors, [errors];
    st.param.b64 [target], %to;     st.param.b64 [target+8], 4;  st.param.b64 [target+16], 4;  st.param.b64 [target+24], 3;
    st.param.b64 [extent], 2;       st.param.b64 [extent+8], 2;  st.param.b64 [extent+16], 2;
    st.param.b32 [value], 0x107;    st.param.b64 [stream], 0;
    call (e), __cudaCDP2Memset3DAsync, (target, value, extent, stream);
    ld.param.b32 %e0, [e];
    call (%e1), __cudaCDP2Memcpy3DAsync, (%p, 0);
    st.v2.u32 [%errors], {%e0, %e1};
    ret;
}
"""


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_kernels_copy_and_fill_boxes(engine):
    """The structure is cudaMemcpy3DParms (`driver_types.h`): an array, a position and pitched memory for each side."""
    kernel = Module([BOXES.encode()], MODELS["sm_89"]).kernel("boxes").kernel
    source, target, errors = np.arange(24, dtype=np.uint8), np.zeros(48, np.uint8), np.full(2, -1, np.int32)
    filled, copied = target[:24].reshape(2, 3, 4), target[24:].reshape(2, 3, 4)
    p = np.array([0, 1, 1, 0, source.ctypes.data, 4, 4, 3, 0, 2, 0, 0, copied.ctypes.data, 4, 4, 3, 2, 2, 2, 3], np.uint64)
    kernel.launch(1, 1, [p, source, target, errors], engine=engine)
    assert errors.tolist() == [0, 0]
    assert (filled[:, :2, :2] == 7).all()
    assert filled.sum() == 8 * 7
    assert np.array_equal(copied[:, :2, 2:], source.reshape(2, 3, 4)[:, 1:, 1:3])
    assert np.count_nonzero(copied) == 8


FACTS = """
.version 7.8
.target sm_75
.address_size 64
.extern .func (.param .b32 e) @FuncGetAttributes(.param .b64 out, .param .b64 kernel);
.extern .func (.param .b32 e) @OccupancyMaxActiveBlocksPerMultiprocessor(
    .param .b64 out, .param .b64 kernel, .param .b32 threads, .param .b64 shared);
.extern .func (.param .b32 e) @DeviceGetLimit(.param .b64 out, .param .b32 limit);
.visible .entry other() .maxntid 512 { .shared .b8 tile[4096]; ret; }
.visible .entry ask(.param .u64 attributes, .param .u64 blocks) {
    .reg .b32 %e<2>;
    .reg .b64 %attributes, %blocks, %kernel, %limit;
    ld.param.u64 %attributes, [attributes];
    ld.param.u64 %blocks, [blocks];
    mov.u64 %kernel, other;
    call (%e0), @FuncGetAttributes, (%attributes, %kernel);
    call (%e1), @OccupancyMaxActiveBlocksPerMultiprocessor, (%blocks, %kernel, 256, 30000);
    st.u32 [%blocks+4], %e0;  st.u32 [%blocks+8], %e1;
    add.u64 %limit, %blocks, 16;
    call (%e0), @DeviceGetLimit, (%limit, 2);
    call (%e1), @DeviceGetLimit, (%limit, 99);
    st.u32 [%blocks+12], %e0;  st.u32 [%blocks+24], %e1;
    ret;
}
"""


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize("prefix", ["cuda", "__cudaCDP2"])
def test_kernels_ask_about_kernels(engine, prefix):
    """Of the heap's size (cudaLimitMallocHeapSize) and of a limit that there is not (cudaErrorUnsupportedLimit), too.

    Of 100 KB of shared memory a block takes 30000 + 4096 bytes and the 1 KB of the system (compute capability 8.9).
    """
    kernel = Module([FACTS.replace("@", prefix).encode()], MODELS["sm_89"], limits={2: 5 << 32}).kernel("ask").kernel
    attributes, blocks = np.zeros(36, np.int32), np.full(7, -1, np.int32)
    kernel.launch(1, 1, [attributes, blocks], engine=engine)
    assert (attributes[:2].view(np.int64)[0], attributes[6], attributes[8], attributes[9]) == (4096, 512, 75, 89)
    assert blocks.tolist() == [2, 0, 0, 0, 0, 5, 215]
    with pytest.raises(ptxvm.Unsupported, match="without a driver"):
        ptxvm.load(FACTS.replace("@", prefix)).kernel("ask").launch(1, 1, [attributes, blocks], engine=engine)

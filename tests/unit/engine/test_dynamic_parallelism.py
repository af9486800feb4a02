"""Kernels that launch kernels: what the launch counts, gives back and refuses."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import ptxvm

FILE = Path(__file__).parents[2] / "conformance" / "control" / "device_launch.ptx"

COUNTDOWN = """
    .version 6.4
    .target sm_75
    .address_size 64
    .extern .func (.param .b64 buffer) __cudaCDP2GetParameterBufferV2(
        .param .b64 kernel, .param .align 4 .b8 grid[12], .param .align 4 .b8 block[12], .param .b32 shared);
    .extern .func (.param .b32 status) __cudaCDP2LaunchDeviceV2(.param .b64 buffer, .param .b64 stream);
    .visible .entry down(.param .u64 out, .param .u32 left) {
        .reg .b32 %r<4>; .reg .b64 %d, %k, %b; .reg .pred %p;
        .param .b64 kernel; .param .align 4 .b8 grid[12]; .param .align 4 .b8 block[12]; .param .b32 shared;
        .param .b64 buffer;
        ld.param.u64 %d, [out];
        ld.param.u32 %r1, [left];
        atom.global.add.u32 %r2, [%d], %r1;
        setp.eq.u32 %p, %r1, 0;
        @%p bra done;
        mov.u64 %k, down;
        st.param.b64 [kernel], %k;
        st.param.b32 [grid], 1; st.param.b32 [grid+4], 1; st.param.b32 [grid+8], 1;
        st.param.b32 [block], 1; st.param.b32 [block+4], 1; st.param.b32 [block+8], 1;
        st.param.b32 [shared], 0;
        call (buffer), __cudaCDP2GetParameterBufferV2, (kernel, grid, block, shared);
        ld.param.b64 %b, [buffer];
        sub.u32 %r1, %r1, 1;
        st.u64 [%b], %d;
        st.u32 [%b+8], %r1;
        call (%r3), __cudaCDP2LaunchDeviceV2, (%b, 0);
    done:
        ret;
    }
    """

# `go` launches a kernel with the parameters (out, word), `room` bytes of them, on some CTAs of some threads.
NESTED = """
    .version 6.4
    .target sm_75
    .address_size 64
    .extern .func (.param .b64 buffer) cudaGetParameterBuffer(.param .b64 alignment, .param .b64 size);
    .extern .func (.param .b32 status) cudaLaunchDevice(
        .param .b64 kernel, .param .b64 buffer, .param .align 4 .b8 grid[12], .param .align 4 .b8 block[12],
        .param .b32 shared, .param .b64 stream);
    .extern .func (.param .b32 status) cudaDeviceSynchronize;
    .global .u32 forever = 1;

    .func go(.reg .b64 kernel, .reg .b64 out, .reg .b32 word, .reg .b32 ctas, .reg .b32 threads, .reg .b64 room) {
        .reg .b64 %buffer; .reg .b32 %status; .reg .pred %p;
        .param .align 4 .b8 grid[12]; .param .align 4 .b8 block[12];
        call (%buffer), cudaGetParameterBuffer, (8, room);
        setp.gt.u64 %p, room, 8;
        @%p st.u64 [%buffer], out;
        @%p st.u32 [%buffer+8], word;
        st.param.b32 [grid], ctas; st.param.b32 [grid+4], 1; st.param.b32 [grid+8], 1;
        st.param.b32 [block], threads; st.param.b32 [block+4], 1; st.param.b32 [block+8], 1;
        call (%status), cudaLaunchDevice, (kernel, %buffer, grid, block, 0, 0);
        ret;
    }
    .visible .entry leaf(.param .u64 out, .param .u32 word) {
        .reg .b32 %r<4>; .reg .b64 %d<4>;
        ld.param.u64 %d0, [out]; ld.param.u32 %r0, [word];
        atom.global.add.u32 %r1, [%d0], 1;
        mad.wide.u32 %d1, %r1, 4, %d0;
        st.global.u32 [%d1+4], %r0;
        ret;
    }
    .visible .entry nest(.param .u64 out, .param .u32 left) {
        .reg .b32 %r<4>; .reg .b64 %d<4>; .reg .pred %p;
        ld.param.u64 %d0, [out]; ld.param.u32 %r0, [left];
        mov.u32 %r1, 0;
        setp.eq.u32 %p, %r0, 0;
        @%p bra DONE;
        mov.u64 %d1, nest; add.u64 %d2, %d0, 4; sub.u32 %r0, %r0, 1;
        call go, (%d1, %d2, %r0, 1, 1, 12);
        call (%r1), cudaDeviceSynchronize;
    DONE:
        mad.lo.u32 %r1, %r1, 65536, 1;
        st.global.u32 [%d0], %r1;
        ret;
    }
    .visible .entry many(.param .u64 out) {
        .reg .b32 %r<4>; .reg .b64 %d<4>;
        ld.param.u64 %d0, [out];
        mov.u32 %r0, %ctaid.x; mov.u64 %d1, leaf;
        mad.lo.u32 %r1, %r0, 10, 1;
        call go, (%d1, %d0, %r1, 1, 1, 12);
        add.u32 %r1, %r1, 1;
        call go, (%d1, %d0, %r1, 1, 1, 12);
        ret;
    }
    .visible .entry add(.param .u64 out, .param .u32 times) {
        .reg .b32 %r<4>; .reg .b64 %d<4>; .reg .pred %p;
        ld.param.u64 %d0, [out]; ld.param.u32 %r0, [times];
    LOOP:
        red.global.add.u32 [%d0], 1;
        sub.u32 %r0, %r0, 1; setp.ne.u32 %p, %r0, 0;
        @%p bra LOOP;
        ret;
    }
    .visible .entry wide(.param .u64 out) {
        .reg .b32 %r<4>; .reg .b64 %d<4>;
        ld.param.u64 %d0, [out]; mov.u64 %d1, add;
        call go, (%d1, %d0, 20, 2000, 256, 12);
        call (%r0), cudaDeviceSynchronize;
        ld.global.u32 %r1, [%d0];
        st.global.u32 [%d0+4], %r1;
        ret;
    }
    .visible .entry spin(.param .u64 out, .param .u32 word) {
        .reg .b32 %r<4>; .reg .b64 %d<4>; .reg .pred %p;
        ld.param.u64 %d0, [out];
        st.volatile.global.u32 [%d0+4], 1;      // it runs
    LOOP:
        ld.global.u32 %r0, [forever]; setp.ne.u32 %p, %r0, 0;
        @%p bra LOOP;
        ret;
    }
    .visible .entry endless(.param .u64 out) {
        .reg .b32 %r<4>; .reg .b64 %d<4>;
        ld.param.u64 %d0, [out]; mov.u64 %d1, spin;
        call go, (%d1, %d0, 0, 1, 32, 12);
        call (%r0), cudaDeviceSynchronize;
        st.global.u32 [%d0], 1;
        ret;
    }
    .visible .entry short(.param .u64 out) {
        .reg .b64 %d<4>;
        ld.param.u64 %d0, [out]; mov.u64 %d1, leaf;
        call go, (%d1, %d0, 0, 1, 1, 4);
        ret;
    }
"""


@pytest.fixture(params=["interp", "jit"])
def engine(request: pytest.FixtureRequest) -> str:
    """Every engine."""
    return str(request.param)


def test_generations_are_not_nested_calls_of_python(engine: str) -> None:
    """Each grid launches the next, more often than Python nests calls; all of them are counted."""
    out = np.zeros(1, np.uint32)
    result = ptxvm.load(COUNTDOWN).kernel().launch(args=[out, 1500], engine=engine)
    assert out[0] == 1500 * 1501 // 2
    assert result.thread_instructions > 1500 * 10


def test_steps_bound_all_generations(engine: str) -> None:
    with pytest.raises(ptxvm.Fault, match="within 50 steps"):
        ptxvm.load(COUNTDOWN).kernel().launch(args=[np.zeros(1, np.uint32), 1500], steps=50, engine=engine)


@pytest.mark.parametrize(
    ("kernel", "fault"), [("in_order", ""), ("wrong_child", "out-of-bounds"), ("no_buffer", "invalid-launch")]
)
def test_memory_is_given_back(kernel: str, fault: str, engine: str) -> None:
    """Buffers and parameter banks do not outlive the launch, whatever happens."""
    module = ptxvm.load(FILE)
    out = np.zeros(16, np.uint32)
    for _ in range(2):
        if fault:
            with pytest.raises(ptxvm.Fault, match=fault):
                module.kernel(kernel).launch(args=[out], engine=engine)
        else:
            module.kernel(kernel).launch(args=[out], engine=engine)
    assert not [each.name for each in module.memory.table.items if each.name.startswith("the parameters")]


def test_a_fault_names_the_child(engine: str) -> None:
    with pytest.raises(ptxvm.Fault, match="in kernel note, CTA"):
        ptxvm.load(FILE).kernel("wrong_child").launch(args=[np.zeros(16, np.uint32)], engine=engine)


def test_grids_that_wait_for_their_children_nest_24_deep(engine: str) -> None:
    """Each grid launches one and waits for it; the 25th wait is refused, and its child runs when it has ended.

    The error is cudaErrorSyncDepthExceeded, 68 (CUDA runtime API, cudaLimitDevRuntimeSyncDepth).
    """
    out = np.zeros(40, np.uint32)
    ptxvm.load(NESTED).kernel("nest").launch(args=[out, 30], engine=engine)
    assert [*out[:31]] == 24 * [1] + 6 * [68 << 16 | 1] + [1]


def test_children_run_in_the_order_of_the_ctas_that_launched_them(engine: str) -> None:
    """Ten CTAs launch two each; which CTA runs first is the engine's affair, the order of their children is not."""
    out = np.zeros(21, np.uint32)
    ptxvm.load(NESTED).kernel("many").launch(10, 1, args=[out], engine=engine)
    assert [*out] == [20, *(10 * cta + which for cta in range(10) for which in (1, 2))]


def test_a_child_may_run_on_several_threads_of_the_host() -> None:
    """Its parent waits in the middle of its code, and keeps no lock that they need when they find memory."""
    out = np.zeros(2, np.uint32)
    ptxvm.load(NESTED).kernel("wide").launch(args=[out], engine="jit", threads=4)
    assert [*out] == [20 * 256 * 2000] * 2


@pytest.fixture
def heard() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, although the tests may run where it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard")
def test_ctrl_c_ends_a_child_that_its_parent_waits_for(engine: str) -> None:
    """The user's interrupt comes while the child runs; the launch raises it."""
    out = np.zeros(4, np.uint32)

    def interrupt() -> None:
        while not out[1]:
            time.sleep(0.001)
        signal.raise_signal(signal.SIGINT)

    user = threading.Thread(target=interrupt, daemon=True)
    user.start()
    with pytest.raises(KeyboardInterrupt):
        ptxvm.load(NESTED).kernel("endless").launch(args=[out], engine=engine)
    user.join()
    assert not out[0]


def test_parameters_that_do_not_fit_their_buffer_are_refused(engine: str) -> None:
    with pytest.raises(ptxvm.Fault, match="the buffer has 4 bytes, and the parameters of 'leaf' take 12"):
        ptxvm.load(NESTED).kernel("short").launch(args=[np.zeros(4, np.uint32)], engine=engine)

"""Kernels that launch kernels: what the launch counts, gives back and refuses."""

from __future__ import annotations

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


def test_generations_are_not_nested_calls_of_python() -> None:
    """Each grid launches the next, more often than Python nests calls; all of them are counted."""
    out = np.zeros(1, np.uint32)
    result = ptxvm.load(COUNTDOWN).kernel().launch(args=[out, 1500])
    assert out[0] == 1500 * 1501 // 2
    assert result.thread_instructions > 1500 * 10


def test_steps_bound_all_generations() -> None:
    with pytest.raises(ptxvm.Fault, match="within 50 steps"):
        ptxvm.load(COUNTDOWN).kernel().launch(args=[np.zeros(1, np.uint32), 1500], steps=50)


@pytest.mark.parametrize(
    ("kernel", "fault"), [("in_order", ""), ("wrong_child", "out-of-bounds"), ("no_buffer", "invalid-launch")]
)
def test_memory_is_given_back(kernel: str, fault: str) -> None:
    """Buffers and parameter banks do not outlive the launch, whatever happens."""
    module = ptxvm.load(FILE)
    out = np.zeros(16, np.uint32)
    live = [each.start for each in module.memory.table.items]
    for _ in range(2):
        if fault:
            with pytest.raises(ptxvm.Fault, match=fault):
                module.kernel(kernel).launch(args=[out])
        else:
            module.kernel(kernel).launch(args=[out])
    assert [each.start for each in module.memory.table.items] == live


def test_a_fault_names_the_child() -> None:
    with pytest.raises(ptxvm.Fault, match="in kernel note, CTA"):
        ptxvm.load(FILE).kernel("wrong_child").launch(args=[np.zeros(16, np.uint32)])


def test_the_jit_leaves_them_to_the_interpreter() -> None:
    with pytest.raises(ptxvm.Unsupported, match="launches kernels"):
        ptxvm.load(FILE).kernel("in_order").launch(args=[np.zeros(16, np.uint32)], engine="jit")

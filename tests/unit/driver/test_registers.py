"""The estimate of registers, by hand, and what a multiprocessor holds with it."""

from __future__ import annotations

import pytest

import ptxvm
from ptxvm.driver.context import Context
from ptxvm.driver.device import Device
from ptxvm.driver.models import MODELS
from ptxvm.driver.module import Module
from ptxvm.driver.occupancy import largest_cluster, resident_blocks, resident_clusters
from ptxvm.driver.registers import limited, most_live, registers

HEAD = ".version 7.8\n.target sm_90\n.address_size 64\n"
SMALL = (
    HEAD
    + """
.visible .entry small(.param .u64 out)
{
    .reg .pred %p; .reg .b32 %a, %b, %c; .reg .b64 %rd;
    ld.param.u64 %rd, [out];
    mov.u32 %a, %tid.x;
    mov.u32 %b, %ntid.x;
    setp.gt.u32 %p, %a, %b;     // %a, %b, %c (which the next line may leave as it is), and both halves of %rd are live
    @%p mov.u32 %c, 1;
    add.u32 %c, %c, %a;
    st.global.u32 [%rd], %c;
    ret;
}
"""
)


def many(count):
    """A kernel that loads so many words before it adds them up."""
    loads = "".join(f"ld.volatile.global.u32 %r{n}, [%rd];\n" for n in range(count))
    sums = "".join(f"add.u32 %s, %s, %r{n};\n" for n in range(count))
    return (
        f"{HEAD}.visible .entry many(.param .u64 out)\n{{ .reg .b32 %r<{count}>, %s; .reg .b64 %rd;\n"
        f"ld.param.u64 %rd, [out]; mov.u32 %s, 0;\n{loads}{sums}st.global.u32 [%rd], %s; ret; }}\n"
    )


def kernel_of(text, name):
    module = ptxvm.load(text)
    return module.image, module.kernels[name].function


def test_values_that_are_live_at_one_place_count():
    assert most_live(kernel_of(SMALL, "small")[1]) == 5
    assert registers(*kernel_of(SMALL, "small")) == 16  # a small kernel gets these
    assert most_live(kernel_of(many(70), "many")[1]) == 73  # the words, the sum, and the address
    assert registers(*kernel_of(many(70), "many")) == 80
    assert registers(*kernel_of(many(400), "many")) == 255


def test_a_limit_is_kept():
    text = many(70)
    _, kernel = kernel_of(text, "many")
    some = limited(text.encode(), [kernel], 38)
    assert registers(*kernel_of(some.decode(), "many")) == 38
    threads = text.replace("(.param .u64 out)", "(.param .u64 out) .maxntid 1024")
    assert registers(*kernel_of(threads, "many")) == 64  # or a block would not fit a multiprocessor
    assert limited(some, [kernel_of(some.decode(), "many")[1]], 20) == some


@pytest.mark.parametrize(("count", "blocks"), [(10, 8), (70, 3), (400, 1)])
def test_registers_limit_what_a_multiprocessor_holds(count, blocks):
    context = Context(Device(0, MODELS["sm_90"]))  # 65,536 registers and 2,048 threads of a multiprocessor
    kernel = Module([many(count).encode()], context.device.model).kernel("many")
    assert resident_blocks(context.device.attribute, kernel, 256, 0) == blocks
    assert resident_clusters(context, kernel, 256, 0, 2) == context.multiprocessors * blocks // 2
    assert largest_cluster(context, kernel, 256, 0) == 8

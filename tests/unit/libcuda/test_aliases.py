"""Memory that is mapped at two addresses is one place to the check of races (PTX 8.2.2, 8.2.3 and 8.7.1)."""

from __future__ import annotations

from ctypes import byref, c_int, c_size_t, c_uint64

import pytest

import ptxvm
from ptxvm.libcuda.structures import AccessDescription, AllocationProperties, MulticastProperties

UNIT, READ_WRITE = 2 << 20, 3
KERNEL = """.version 8.1
.target sm_90
.address_size 64
.visible .entry k(.param .u64 one, .param .u64 other)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [one];
    ld.param.u64 %rd2, [other];
    mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd3, %r1, 4, %rd1;
    xor.b32 %r2, %r1, 63;
    mad.wide.u32 %rd4, %r2, 4, %rd2;
    STORE
    ORDER
    ld.global.u32 %r3, [%rd4];
    ret;
}
"""


@pytest.fixture
def mapped(cuda):
    """Maps memory somewhere for the first device; nothing stays mapped."""
    starts = []

    def map_one(handle):
        start = c_uint64()
        cuda.cuMemAddressReserve(byref(start), c_size_t(UNIT), c_size_t(0), c_uint64(0), c_uint64(0))
        cuda.cuMemMap(start, c_size_t(UNIT), c_size_t(0), handle, c_uint64(0))
        cuda.cuMemSetAccess(start, c_size_t(UNIT), byref(AccessDescription(1, 0, READ_WRITE)), c_size_t(1))
        starts.append(start)
        return start.value

    yield map_one
    for start in starts:
        cuda.cuMemUnmap(start, c_size_t(UNIT))
        cuda.cuMemAddressFree(start, c_size_t(UNIT))


@pytest.fixture
def handle(cuda):
    """Memory that is mapped nowhere yet."""
    made = c_uint64()
    cuda.cuMemCreate(byref(made), c_size_t(UNIT), byref(AllocationProperties(1, 0, 1, 0)), c_uint64(0))
    return made


def findings(store, order, one, other, engine):
    kernel = ptxvm.load(KERNEL.replace("STORE", store).replace("ORDER", order)).kernel()
    return [each.kind for each in kernel.launch(1, 64, [one, other], engine=engine, check="race").findings]


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize(("order", "found"), [("", ["race"]), ("bar.sync 0;", [])])
def test_a_write_races_with_a_read_at_another_address_of_its_memory(mapped, handle, engine, order, found):
    one, other = mapped(handle), mapped(handle)
    assert findings("st.global.u32 [%rd3], %r1;", order, one, other, engine) == found


def test_memories_of_their_own_have_no_race(cuda, mapped, handle):
    apart = c_uint64()
    cuda.cuMemCreate(byref(apart), c_size_t(UNIT), byref(AllocationProperties(1, 0, 1, 0)), c_uint64(0))
    one, other, _ = mapped(handle), mapped(apart), mapped(handle)
    assert findings("st.global.u32 [%rd3], %r1;", "", one, other, "interp") == []


@pytest.mark.parametrize(("order", "found"), [("", ["race"]), ("bar.sync 0;", [])])
def test_a_multimem_store_races_with_a_read_of_the_memory_of_a_device(hopper, mapped, handle, order, found):
    team = c_uint64()
    hopper.cuMulticastCreate(byref(team), byref(MulticastProperties(1, UNIT, 0, 0)))
    hopper.cuMulticastAddDevice(team, c_int(0))
    hopper.cuMulticastBindMem(team, c_size_t(0), handle, c_size_t(0), c_size_t(UNIT), c_uint64(0))
    one, other = mapped(team), mapped(handle)
    assert findings("multimem.st.weak.global.u32 [%rd3], %r1;", order, one, other, "interp") == found

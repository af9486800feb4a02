"""Multicast objects (driver API, "Multicast Object Management"; PTX 9.7.9.14 for multimem instructions)."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p
from pathlib import Path

import pytest

from ptxvm.libcuda.structures import AccessDescription, AllocationProperties, MulticastProperties

MIB = 1 << 20
UNIT = 2 * MIB
INVALID_VALUE, INVALID_DEVICE, ILLEGAL_ADDRESS, NOT_PERMITTED, NOT_SUPPORTED = 1, 101, 700, 800, 801
READ_WRITE, FILE, MULTICAST_SUPPORTED = 3, 1, 132
KERNELS = b"""
.version 8.1
.target sm_90
.address_size 64
.visible .entry reduce(.param .u64 team, .param .u64 out)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [team];
    ld.param.u64 %rd2, [out];
    mov.u32 %r1, %tid.x;
    multimem.red.relaxed.gpu.global.add.u32 [%rd1], %r1;
    bar.sync 0;
    multimem.ld_reduce.relaxed.gpu.global.add.u32 %r2, [%rd1];
    multimem.st.relaxed.gpu.global.u32 [%rd1+4], %r2;
    st.global.u32 [%rd2], %r2;
    ret;
}
"""


@pytest.fixture
def team(hopper):
    """An object of 4 MiB whose device was added."""
    made = created(hopper)
    hopper.cuMulticastAddDevice(made, c_int(0))
    yield made
    hopper.cuMemRelease(made)


@pytest.fixture
def place(hopper):
    """Addresses of 8 MiB."""
    start = c_uint64()
    hopper.cuMemAddressReserve(byref(start), c_size_t(4 * UNIT), c_size_t(0), c_uint64(0), c_uint64(0))
    yield start.value
    hopper.cuMemAddressFree(start, c_size_t(4 * UNIT))


@pytest.fixture
def memory(hopper):
    """Memory of 4 MiB."""
    made = c_uint64()
    hopper.cuMemCreate(byref(made), c_size_t(2 * UNIT), byref(AllocationProperties(1, 0, 1, 0)), c_uint64(0))
    yield made
    hopper.cuMemRelease(made)


def properties(devices=1, size=2 * UNIT, handle_types=0, flags=0):
    return byref(MulticastProperties(devices, size, handle_types, flags))


def created(cuda):
    made = c_uint64()
    cuda.cuMulticastCreate(byref(made), properties())
    return made


def mapped(cuda, start, handle):
    cuda.cuMemMap(c_uint64(start), c_size_t(2 * UNIT), c_size_t(0), handle, c_uint64(0))
    cuda.cuMemSetAccess(c_uint64(start), c_size_t(2 * UNIT), byref(AccessDescription(1, 0, READ_WRITE)), c_size_t(1))


def unmapped(cuda, start):
    cuda.cuMemUnmap(c_uint64(start), c_size_t(2 * UNIT))


def bind(cuda, team, offset, memory, start, size, flags=0):
    return cuda.library.cuMulticastBindMem(
        team, c_size_t(offset), memory, c_size_t(start), c_size_t(size), c_uint64(flags)
    )  # fmt: skip


def word(address):
    return c_uint.from_address(address)


@pytest.mark.parametrize("bound_first", [True, False])
def test_multimem_instructions_reach_the_memory_that_is_bound(hopper, team, place, memory, bound_first):
    own = place + 2 * UNIT
    if bound_first:
        assert bind(hopper, team, 0, memory, 0, 2 * UNIT) == 0
    mapped(hopper, place, team)
    mapped(hopper, own, memory)
    if not bound_first:
        assert bind(hopper, team, 0, memory, 0, 2 * UNIT) == 0
    word(own + 64).value = 1000
    kernel = hopper.handle("cuModuleGetFunction", hopper.handle("cuModuleLoadData", KERNELS), b"reduce")
    values = [c_uint64(place + 64), c_uint64(own + 128)]
    pointers = (c_void_p * 2)(*map(ctypes.addressof, values))
    hopper.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, None, pointers, None)
    hopper.cuCtxSynchronize()
    expected = 1000 + sum(range(32))
    assert [word(own + at).value for at in (64, 68, 128)] == [expected] * 3
    assert word(place + 68).value == expected
    unmapped(hopper, place)
    unmapped(hopper, own)


def test_a_part_of_memory_is_bound_at_an_offset_and_unbound(hopper, team, place, memory):
    """Addresses to which nothing is bound have no memory."""
    own = place + 2 * UNIT
    mapped(hopper, own, memory)
    mapped(hopper, place, team)
    word(own).value, word(own + UNIT).value = 3, 4
    fill = hopper.library.cuMemsetD32_v2
    assert fill(c_uint64(place), c_uint(1), c_size_t(1)) == INVALID_VALUE
    assert bind(hopper, team, 0, memory, UNIT, UNIT) == 0
    assert word(place).value == 4
    assert fill(c_uint64(place), c_uint(5), c_size_t(1)) == 0
    assert (word(own).value, word(own + UNIT).value) == (3, 5)
    assert fill(c_uint64(place + UNIT), c_uint(1), c_size_t(1)) == INVALID_VALUE
    assert bind(hopper, team, UNIT, memory, 0, UNIT) == 0
    start, size = c_uint64(), c_size_t()
    hopper.cuMemGetAddressRange_v2(byref(start), byref(size), c_uint64(place + 5))
    assert (start.value, size.value) == (place, 4 * UNIT)  # one memory with what is mapped behind it
    assert (word(place).value, word(place + UNIT).value) == (5, 3)
    hopper.cuMulticastUnbind(team, c_int(0), c_size_t(0), c_size_t(UNIT))
    assert fill(c_uint64(place), c_uint(1), c_size_t(1)) == INVALID_VALUE
    assert word(own + UNIT).value == 5
    hopper.launch(None, b"append", word(place), 6)
    assert hopper.library.cuCtxSynchronize() == ILLEGAL_ADDRESS
    hopper.library.cuDevicePrimaryCtxReset_v2(0)
    unmapped(hopper, place)
    unmapped(hopper, own)


def test_memory_is_bound_by_its_address(hopper, team, place, memory):
    own = place + 2 * UNIT
    mapped(hopper, own, memory)
    mapped(hopper, place, team)
    by_address = hopper.library.cuMulticastBindAddr
    assert by_address(team, c_size_t(0), c_uint64(own + UNIT), c_size_t(UNIT), c_uint64(0)) == 0
    word(own + UNIT + 8).value = 7
    assert word(place + 8).value == 7
    assert by_address(team, c_size_t(UNIT), c_uint64(own + UNIT), c_size_t(2 * UNIT), c_uint64(0)) == INVALID_VALUE
    assert by_address(team, c_size_t(UNIT), c_uint64(place), c_size_t(UNIT), c_uint64(0)) == INVALID_VALUE
    assert by_address(team, c_size_t(UNIT), c_uint64(0x1000), c_size_t(UNIT), c_uint64(0)) == INVALID_VALUE
    assert by_address(team, c_size_t(UNIT), hopper.memory, c_size_t(UNIT), c_uint64(0)) == NOT_SUPPORTED
    for_device = hopper.library.cuMulticastBindAddr_v2
    assert for_device(team, c_int(0), c_size_t(UNIT), c_uint64(own), c_size_t(UNIT), c_uint64(0)) == 0
    assert for_device(team, c_int(5), c_size_t(UNIT), c_uint64(own), c_size_t(UNIT), c_uint64(0)) == INVALID_DEVICE
    unmapped(hopper, place)
    unmapped(hopper, own)


def test_wrong_sizes_offsets_and_flags_are_refused(hopper, team, memory):
    wrong = [(0, 0, UNIT // 2), (UNIT // 2, 0, UNIT), (0, UNIT // 2, UNIT), (UNIT, 0, 2 * UNIT), (0, UNIT, 2 * UNIT), (0, 0, 0)]
    assert [bind(hopper, team, offset, memory, start, size) for offset, start, size in wrong] == [INVALID_VALUE] * len(wrong)
    assert bind(hopper, team, 0, memory, 0, UNIT, flags=1) == INVALID_VALUE
    assert bind(hopper, memory, 0, memory, 0, UNIT) == INVALID_VALUE
    assert bind(hopper, team, 0, team, 0, UNIT) == INVALID_VALUE
    for_device = hopper.library.cuMulticastBindMem_v2
    given = c_size_t(0), memory, c_size_t(0), c_size_t(UNIT), c_uint64(0)
    assert for_device(team, c_int(1), *given) == INVALID_DEVICE
    assert for_device(team, c_int(0), *given) == 0
    assert bind(hopper, team, 0, memory, 0, UNIT) == INVALID_VALUE  # some is bound
    unbind = hopper.library.cuMulticastUnbind
    assert unbind(team, c_int(0), c_size_t(0), c_size_t(2 * UNIT)) == INVALID_VALUE
    assert unbind(team, c_int(0), c_size_t(UNIT), c_size_t(UNIT)) == INVALID_VALUE
    assert unbind(team, c_int(1), c_size_t(0), c_size_t(UNIT)) == INVALID_DEVICE
    assert unbind(team, c_int(0), c_size_t(0), c_size_t(UNIT)) == 0


def test_the_device_comes_before_memory_and_addresses(hopper, place, memory):
    made = created(hopper)
    assert bind(hopper, made, 0, memory, 0, UNIT) == NOT_PERMITTED
    given = c_uint64(place), c_size_t(2 * UNIT), c_size_t(0), made, c_uint64(0)
    assert hopper.library.cuMemMap(*given) == NOT_PERMITTED
    assert hopper.library.cuMulticastAddDevice(made, c_int(9)) == INVALID_DEVICE
    hopper.cuMulticastAddDevice(made, c_int(0))
    assert hopper.library.cuMulticastAddDevice(made, c_int(0)) == INVALID_VALUE
    hopper.cuMemRelease(made)
    assert bind(hopper, made, 0, memory, 0, UNIT) == INVALID_VALUE


def test_objects_of_several_devices_or_processes_are_not_there(hopper):
    made, create = c_uint64(), hopper.library.cuMulticastCreate
    for expected, given in (
        (INVALID_VALUE, properties(devices=0)), (NOT_SUPPORTED, properties(devices=2)), (INVALID_VALUE, properties(flags=1)),
        (INVALID_VALUE, properties(size=UNIT + 1)), (INVALID_VALUE, properties(size=0)), (INVALID_VALUE, None),
        (NOT_SUPPORTED, properties(handle_types=FILE)),
    ):  # fmt: skip
        assert create(byref(made), given) == expected


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_teams_of_several_devices(engine):
    program, environment = (
        Path(__file__).with_name("multicast_team.py"),
        os.environ | {"PTXVM_DEVICES": "3", "PTXVM_DEVICE": "sm_90"},
    )
    command = [sys.executable, str(program), engine, os.environ["PTXVM_SEED"]]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_granularity_is_that_of_memory(hopper):
    found, ask = c_size_t(), hopper.library.cuMulticastGetGranularity
    for option, expected in ((0, 0), (1, 0), (2, INVALID_VALUE)):
        assert ask(byref(found), properties(), option) == expected
    assert found.value == UNIT


def test_older_devices_have_no_multicast(cuda):
    value = c_int(-1)
    cuda.cuDeviceGetAttribute(byref(value), MULTICAST_SUPPORTED, 0)
    assert value.value == 0
    assert cuda.library.cuMulticastCreate(byref(c_uint64()), properties()) == NOT_SUPPORTED

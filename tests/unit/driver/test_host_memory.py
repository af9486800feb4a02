"""Kernels that are given memory of the host by its address, which no call has told the driver of."""

from __future__ import annotations

import ctypes
import mmap
from contextlib import ExitStack

import numpy as np
import pytest

from ptxvm.diagnostics.errors import Fault
from ptxvm.driver.host_memory import MAPS, HostMemory, describe
from ptxvm.driver.memory import MemoryBlocks
from ptxvm.driver.models import MODELS
from ptxvm.driver.module import Module
from ptxvm.engine.snapshot import Snapshot, outliving
from ptxvm.machine.allocation import RESTING
from ptxvm.machine.backing import address_of
from ptxvm.machine.device_array import DeviceArray
from ptxvm.machine.memory import Memory, default_memory

REVERSED = b"""
.version 7.8
.target sm_80
.address_size 64
.visible .entry reversed(.param .u64 from, .param .u64 to)
{
    .shared .align 4 .b32 tile[64];
    .reg .b32 %t, %x, %s;
    .reg .b64 %from, %to;
    ld.param.u64 %from, [from];
    ld.param.u64 %to, [to];
    mov.u32 %t, %tid.x;
    mad.wide.u32 %from, %t, 4, %from;
    mad.wide.u32 %to, %t, 4, %to;
    ld.global.u32 %x, [%from];
    mov.u32 %s, tile;
    mad.lo.u32 %s, %t, 4, %s;
    st.shared.u32 [%s], %x;
    bar.sync 0;
    xor.b32 %t, %t, 63;
    mov.u32 %s, tile;
    mad.lo.u32 %s, %t, 4, %s;
    ld.shared.u32 %x, [%s];
    st.global.u32 [%to], %x;
    ret;
}
"""


@pytest.fixture
def run():
    """Launches the kernel on two addresses, in some engine."""
    kernel = Module([REVERSED], MODELS["sm_89"]).kernel("reversed").kernel
    host = HostMemory(default_memory())

    def launch(*addresses, engine="interp", check=None):
        arguments = [int(each).to_bytes(8, "little") for each in addresses]
        with host.accessible(arguments):
            return kernel.launch(1, 64, arguments, engine=engine, check=check)

    launch.host, launch.kernel = host, kernel
    return launch


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_a_kernel_uses_memory_that_only_the_host_knows(run, engine):
    """The memory of both arrays is the device's for the launch, and for no longer."""
    memory = ctypes.create_string_buffer(np.arange(64, dtype=np.uint32).tobytes(), 256)
    result = np.zeros(64, np.uint32)
    run(ctypes.addressof(memory), address_of(result), engine=engine)
    assert result.tolist() == list(range(63, -1, -1))
    assert default_memory().table.find(ctypes.addressof(memory)) is None


def test_memory_that_the_client_describes_ends_with_its_last_byte(run, alone):
    """A tensor of 60 words, of which one begins at the second."""
    whole, result = alone(80, np.uint32), np.zeros(64, np.uint32)
    describe(address_of(whole) + 4, address_of(whole), 60 * 4)
    describe(address_of(result), address_of(result), 64 * 4)
    found = run(address_of(whole) + 4, address_of(result), check=("memory",)).findings
    assert [each.code for each in found] == ["out-of-bounds"]
    assert found[0].message.endswith("that is just past the end of memory of the host (240 bytes)")


TABLE = b"""
.version 7.8
.target sm_80
.address_size 64
.visible .entry through(.param .u64 table, .param .u64 to)
{
    .reg .b32 %t, %x;
    .reg .b64 %from, %to, %at;
    ld.param.u64 %from, [table];
    ld.param.u64 %to, [to];
    mov.u32 %t, %tid.x;
    mad.wide.u32 %from, %t, 8, %from;
    mad.wide.u32 %to, %t, 4, %to;
    ld.global.u64 %at, [%from];
    ld.global.u32 %x, [%at];
    st.global.u32 [%to], %x;
    ret;
}
"""


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize("described", [False, True])
def test_memory_may_have_a_table_of_pointers_to_other_memory(alone, described, engine):
    """Of the heap, and of a mapping of its own."""
    small, large = np.array([5, 6], np.uint32), alone(64, np.uint32)
    large[:2] = 7, 8
    table = np.array([address_of(each) + at for each in (small, large) for at in (0, 4)], np.uint64)
    result = np.zeros(4, np.uint32)
    if described:
        for each in (table, result):
            describe(address_of(each), address_of(each), each.nbytes)
    kernel, host = Module([TABLE], MODELS["sm_89"]).kernel("through").kernel, HostMemory(default_memory())
    arguments = [address_of(each).to_bytes(8, "little") for each in (table, result)]
    with host.accessible(arguments):
        kernel.launch(1, 4, arguments, engine=engine)
    assert result.tolist() == [5, 6, 7, 8]
    assert default_memory().table.find(address_of(large)) is None


@pytest.mark.parametrize("described", [False, True])
def test_memory_is_the_device_s_until_the_last_launch_with_it_has_ended(run, alone, described):
    """Launches of two streams with the same arrays; the one that began first ends first."""
    memory, result = alone(64, np.uint32), alone(64, np.uint32)
    memory[:] = np.arange(64)
    arguments = [address_of(each).to_bytes(8, "little") for each in (memory, result)]
    if described:
        describe(address_of(memory), address_of(memory), 256)
        describe(address_of(result), address_of(result), 256)
    first = ExitStack()
    first.enter_context(run.host.accessible(arguments))
    with run.host.accessible(arguments):
        first.close()
        run.kernel.launch(1, 64, arguments, engine="interp")
    assert result.tolist() == list(range(63, -1, -1))
    assert default_memory().table.find(address_of(result)) is None


@pytest.mark.skipif(not hasattr(mmap, "MADV_DONTDUMP"), reason="it needs Linux")
def test_an_array_may_lie_in_several_mappings(run):
    """As in a heap that has grown after a fork: pages with other advice are a mapping of their own."""
    pages = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    pages.madvise(mmap.MADV_DONTDUMP, mmap.PAGESIZE, mmap.PAGESIZE)
    memory = np.frombuffer(pages, np.uint32, 64, mmap.PAGESIZE - 128)
    boundary = address_of(memory) + 128
    assert any(line.startswith(f"{boundary:x}-") for line in MAPS.read_text().splitlines())
    memory[:] = np.arange(64)
    result = np.zeros(64, np.uint32)
    run(address_of(memory), address_of(result))
    assert result.tolist() == list(range(63, -1, -1))


def test_memory_of_the_driver_that_was_freed_is_not_memory_of_the_host(run):
    blocks = MemoryBlocks()
    freed, kept = blocks.allocate(256), blocks.allocate(256)
    held = list(freed.allocation.owners)  # nothing else gets these addresses
    blocks.free(freed.address)
    with pytest.raises(Fault, match="use-after-free"):
        run(freed.address, kept.address)
    blocks.free(kept.address)
    del held


def test_memory_that_was_freed_rests_before_the_host_has_it_again(run):
    """An address in it means the array that was there; once other memory has been freed, it means memory of the host."""
    gone = DeviceArray(64, np.uint32)
    view = gone.array  # keeps the bytes: they stand for memory that the host has got again
    gone.free()
    others = [ctypes.create_string_buffer(256) for _ in range(256)]
    assert not any(gone.address - 256 < ctypes.addressof(each) < gone.address + 256 for each in others)
    result = np.zeros(64, np.uint32)
    with pytest.raises(Fault, match=r"use-after-free.*of a DeviceArray \(256 bytes, uint32\[64\]\)"):
        run(gone.address, address_of(result))
    view[:] = np.arange(64)
    for _ in range(3):
        DeviceArray(RESTING // 2, np.uint8).free()
    run(gone.address, address_of(result))
    assert result.tolist() == list(range(63, -1, -1))


def test_checks_leave_memory_of_the_host_to_the_kernel(run, monkeypatch):
    """No second run begins from a copy of it: other threads of the host write there too."""
    monkeypatch.setattr(Snapshot, "restore", lambda self: pytest.fail("memory was put back"))
    memory, result = ctypes.create_string_buffer(np.arange(64, dtype=np.uint32).tobytes(), 256), np.zeros(64, np.uint32)
    done = run(ctypes.addressof(memory), address_of(result), engine="jit", check=("memory", "race", "init"))
    assert (result.tolist(), done.findings) == (list(range(63, -1, -1)), [])
    table = default_memory().table
    table.open(address_of(result), address_of(result) + 256, "the host", writable=True)
    assert [each for each in outliving(table.items) if each.yields] == []
    table.close()


def test_an_allocation_takes_its_bytes_from_an_opened_range():
    memory = Memory()
    first = memory.allocate(64, name="first")
    memory.open(first.start - 32, first.end + 4096, "the host", writable=True)
    assert [(each.name, each.size) for each in memory.table.items] == [("the host", 32), ("first", 64), ("the host", 4096)]
    inner = memory.adopt(np.asarray((ctypes.c_ubyte * 16).from_address(first.end + 1024)), "inner").allocation
    sizes = [("the host", 32), ("first", 64), ("the host", 1024), ("inner", 16), ("the host", 4096 - 1024 - 16)]
    assert [(each.name, each.size) for each in memory.table.items] == sizes
    memory.close()
    assert memory.table.items == [first, inner]

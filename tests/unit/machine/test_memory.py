"""Loads and stores of many lanes, and what memory refuses."""

import re
from itertools import pairwise

import numpy as np
import pytest

from ptxvm.algebra.state_space import Space
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.backing import world
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.memory import Memory
from ptxvm.machine.window import Window

U8, U16, U32, U64, F16, F32, F64 = (np.dtype(code) for code in ("u1", "u2", "u4", "u8", "f2", "f4", "f8"))
B128 = np.dtype([("lo", "u8"), ("hi", "u8")])


def addresses(start, count, step):
    return np.uint64(start) + np.arange(count, dtype=np.uint64) * np.uint64(step)


def refused(act, kind, *words):
    with pytest.raises(AccessFault) as caught:
        act()
    assert caught.value.kind == kind
    for word in words:
        assert word in caught.value.message
    return caught.value


@pytest.fixture
def memory():
    return Memory()


def test_a_host_array_is_read_in_place(memory):
    x = np.arange(100, dtype=np.float32)
    start = memory.adopt(x, "`x`").address
    assert start == x.ctypes.data
    assert np.array_equal(memory.load(F32, addresses(start, 100, 4)), x)
    assert np.array_equal(memory.load(F32, addresses(start, 100, 4)[::-1]), x[::-1])


def test_a_host_array_is_written_in_place(memory):
    x = np.zeros(8, np.int32)
    start = memory.adopt(x, "`x`").address
    memory.store(np.dtype("i4"), addresses(start, 4, 8), np.array([1, -2, 3, -4], np.int32))
    assert x.tolist() == [1, 0, -2, 0, 3, 0, -4, 0]


@pytest.mark.parametrize("dtype", [U8, U16, U32, U64, F16, F32, F64, B128], ids=str)
def test_every_width_goes_through_memory_unchanged(memory, dtype, rng):
    values = rng.integers(0, 256, 64 * dtype.itemsize, dtype=np.uint8).view(dtype)
    start = memory.allocate(64 * dtype.itemsize).start
    order = addresses(start, 64, dtype.itemsize)[rng.permutation(64)]
    memory.store(dtype, order, values)
    assert memory.load(dtype, order).tobytes() == values.tobytes()
    one = memory.load(dtype, order[5])
    assert one.tobytes() == values[5].tobytes()
    assert one.dtype == dtype


@pytest.mark.parametrize("count", [2, 4, 8])
def test_a_vector_is_loaded_element_by_element(memory, count):
    x = np.arange(64, dtype=np.float32)
    start = memory.allocate(x.nbytes)
    start.bytes[:] = x.view(np.uint8)
    first, *_, last = memory.load(F32, addresses(start.start, 64 // count, 4 * count), count)
    assert np.array_equal(first, x[::count])
    assert np.array_equal(last, x[count - 1 :: count])


def test_a_vector_is_stored_element_by_element(memory):
    x = np.zeros(8, np.float32)
    start = memory.adopt(x).address
    memory.store(F32, addresses(start, 4, 8), [np.arange(4, dtype=np.float32), np.float32(9)], 2)
    assert x.tolist() == [0, 9, 1, 9, 2, 9, 3, 9]


def test_one_address_for_all_lanes_gives_one_value(memory):
    x = np.arange(8, dtype=np.int32)
    start = np.uint64(memory.adopt(x).address)
    assert memory.load(np.dtype("i4"), start + np.uint64(12)) == 3
    assert memory.load(np.dtype("i4"), start + np.uint64(16), 4).tolist() == [4, 5, 6, 7]
    memory.store(np.dtype("i4"), start, np.array([5, 6, 7], np.int32))
    assert x[0] == 7  # the last lane's
    memory.store(np.dtype("i4"), start, np.array([[5, 6], [7, 8]], np.int32), 2)
    assert x[:2].tolist() == [6, 8]


def test_lanes_may_use_different_allocations(memory, rng):
    arrays = [rng.random(16, dtype=np.float32) for _ in range(5)]
    starts = [memory.adopt(each).address for each in arrays]
    lanes = rng.integers(0, 5, 200), rng.integers(0, 16, 200)
    where = np.array([starts[a] + 4 * i for a, i in zip(*lanes, strict=True)], np.uint64)
    assert memory.load(F32, where).tolist() == [arrays[a][i] for a, i in zip(*lanes, strict=True)]
    pairs = np.array([starts[a] + 8 * (i // 2) for a, i in zip(*lanes, strict=True)], np.uint64)
    assert memory.load(F32, pairs, 2)[1].tolist() == [arrays[a][i // 2 * 2 + 1] for a, i in zip(*lanes, strict=True)]
    memory.store(F32, where, np.ones(200, np.float32))
    assert sum(int((each == 1).sum()) for each in arrays) == len(set(where.tolist()))


def test_every_lane_may_have_its_own_block(memory):
    blocks = [memory.allocate(16, name=f"block {n}") for n in range(500)]
    starts = np.array([each.start for each in blocks], np.uint64)
    memory.store(U32, starts + np.uint64(12), np.arange(500, dtype=np.uint32))
    assert memory.load(U32, starts + np.uint64(8), 2)[1].tolist() == list(range(500))
    starts[333] += np.uint64(16)
    fault = refused(lambda: memory.load(U32, starts), "out-of-bounds", "just past the end of block 333")
    assert fault.lane_index == 333


def test_no_lanes_load_nothing(memory):
    assert memory.load(F32, np.empty(0, np.uint64)).shape == (0,)
    assert memory.load(F32, np.empty(0, np.uint64), 4).shape == (4, 0)


# ── what is refused ─────────────────────────────────────────────────────────────────────


def test_an_access_past_the_end_names_the_array_and_the_lane(memory):
    x = np.zeros(1024, np.float32)
    start = memory.adopt(x, "`x`", detail="argument 2").address
    fault = refused(lambda: memory.load(F32, addresses(start, 1028, 4)), "out-of-bounds", "`x` (4096 bytes, argument 2)")
    assert (fault.lane_index, fault.address, fault.size) == (1024, start + 4096, 4)
    refused(lambda: memory.load(F32, np.uint64(start + 4108)), "out-of-bounds", "that is 12 bytes past the end of `x`")
    refused(lambda: memory.store(F32, np.uint64(start + 4096), F32.type(0)), "out-of-bounds", "writing 4 bytes", "just past")


def test_an_access_before_the_start_is_refused(memory):
    start = memory.allocate(64, name="a").start
    refused(lambda: memory.load(U32, np.uint64(start - 8)), "out-of-bounds", "8 bytes before the start of a (64 bytes)")
    refused(lambda: memory.load(U32, addresses(start - 8, 4, 4)), "out-of-bounds")


def test_the_last_bytes_of_an_access_may_not_hang_over(memory):
    start = memory.allocate(10, name="a").start
    refused(
        lambda: memory.load(U32, addresses(start, 3, 4)),
        "out-of-bounds",
        "last 2 bytes are past the end of a (10 bytes)",
    )
    refused(lambda: memory.load(U32, np.uint64(start + 8)), "out-of-bounds")
    assert memory.load(U16, np.uint64(start + 8)) == 0


@pytest.mark.parametrize("lanes", [1, 32, 4096])
def test_every_lane_is_checked(memory, lanes, rng):
    start = memory.allocate(4 * lanes).start
    where = addresses(start, lanes, 4)
    bad = int(rng.integers(lanes))
    where[bad] += np.uint64(1 << 40)
    assert refused(lambda: memory.load(U32, where), "out-of-bounds", "nothing is allocated").lane_index == bad


def test_an_address_that_wraps_is_refused(memory):
    start = memory.allocate(64).start
    where = np.array([start, (1 << 64) - 4], np.uint64)
    assert refused(lambda: memory.load(U32, where), "out-of-bounds").lane_index == 1
    refused(lambda: memory.load(U32, np.uint64((1 << 64) - 4)), "out-of-bounds")


@pytest.mark.parametrize(("dtype", "count", "step"), [(U16, 1, 1), (U32, 1, 2), (U64, 1, 4), (F32, 4, 8), (U64, 2, 8)])
def test_an_access_is_aligned_to_its_size(memory, dtype, count, step):
    """PTX 6.4.1: the address must be a multiple of the access size."""
    start = memory.allocate(256).start
    fault = refused(lambda: memory.load(dtype, addresses(start, 8, step), count), "misaligned", "multiple of")
    assert fault.lane_index == 1
    refused(lambda: memory.load(dtype, np.uint64(start + step), count), "misaligned")


def test_a_null_pointer_is_called_so(memory):
    refused(lambda: memory.load(F32, np.uint64(0)), "null-pointer", "a null pointer")
    refused(lambda: memory.store(F32, addresses(0, 4, 4), F32.type(0)), "null-pointer")
    refused(lambda: memory.load(F32, np.uint64(16)), "null-pointer", "16 bytes from a null pointer")


def test_a_read_only_array_is_not_written(memory):
    x = np.arange(4, dtype=np.int32)
    x.flags.writeable = False
    start = memory.adopt(x, "`x`").address
    assert memory.load(np.dtype("i4"), np.uint64(start + 4)) == 1
    refused(lambda: memory.store(np.dtype("i4"), np.uint64(start), np.int32(7)), "read-only", "`x`")
    refused(lambda: memory.store(np.dtype("i4"), addresses(start, 4, 4), np.int32(7)), "read-only")
    assert x.tolist() == [0, 1, 2, 3]


def test_a_space_reaches_its_own_allocations_only(memory):
    const = memory.allocate(16, space=Space.CONST, name="c").start
    glob = memory.allocate(16, name="g").start
    param = memory.allocate(16, space=Space.PARAM).start
    reached = [(Space.CONST, const), (Space.GENERIC, const), (Space.GLOBAL, glob), (Space.GENERIC, glob), (Space.GLOBAL, param)]
    for space, start in reached:
        assert memory.load(U32, np.uint64(start), space=space) == 0
        assert memory.load(U32, addresses(start, 4, 4), space=space).tolist() == [0] * 4
    refused(lambda: memory.load(U32, np.uint64(const), space=Space.GLOBAL), "wrong-space", ".const", ".global")
    refused(lambda: memory.load(U32, addresses(glob, 4, 4), space=Space.CONST), "wrong-space")
    code = memory.allocate(16, space="function", name="the code").start
    refused(lambda: memory.load(U32, np.uint64(code)), "wrong-space")


def test_freed_memory_is_a_use_after_free(memory):
    block = memory.allocate(64, name="a")
    start = block.start
    memory.release(block)
    assert not block.live
    refused(lambda: memory.load(U32, np.uint64(start + 8)), "use-after-free", "byte 8 of a (64 bytes)", "freed")
    refused(lambda: memory.store(U32, addresses(start, 4, 4), U32.type(1)), "use-after-free")


def test_an_unaligned_host_array_is_checked_to_the_byte(memory):
    whole = np.arange(64, dtype=np.uint8)
    x = whole[3:20]
    start = memory.adopt(x, "x").address
    assert memory.load(U8, addresses(start, 17, 1)).tolist() == list(range(3, 20))
    aligned = -(-start // 4) * 4
    assert memory.load(U32, np.uint64(aligned)).tobytes() == whole[aligned - start + 3 :][:4].tobytes()
    refused(lambda: memory.load(U8, addresses(start - 1, 2, 1)), "out-of-bounds")
    refused(lambda: memory.load(U8, np.uint64(start - 1)), "out-of-bounds")
    refused(lambda: memory.load(U8, addresses(start, 18, 1)), "out-of-bounds")


def test_guards_lie_between_allocations(memory):
    blocks = sorted((memory.allocate(64) for _ in range(20)), key=lambda block: block.start)
    assert all(after.start - before.end >= 256 for before, after in pairwise(blocks))
    assert all(block.start % 256 == 0 for block in blocks)


@pytest.mark.parametrize("alignment", [1, 16, 512, 4096])
def test_an_alignment_can_be_asked_for(memory, alignment):
    assert memory.allocate(10, alignment).start % alignment == 0


def test_atomics_are_checked_as_stores_are(memory):
    counter = np.zeros(4, np.uint32)
    start = memory.adopt(counter).address
    assert memory.atomic(U32, addresses(start, 4, 0), "add", [U32.type(2)]).tolist() == [0, 2, 4, 6]
    assert memory.atomic(U32, np.uint64(start), "exch", [U32.type(5)]) == 8
    const = memory.allocate(16, space=Space.CONST, writable=False).start
    refused(lambda: memory.atomic(U32, np.uint64(const), "add", [U32.type(1)]), "read-only")
    refused(lambda: memory.atomic(U32, addresses(start + 2, 2, 4), "add", [U32.type(1)]), "misaligned")


# ── adoption ────────────────────────────────────────────────────────────────────────────


def test_an_array_that_is_given_twice_lives_until_both_are_released(memory):
    x = np.arange(4, dtype=np.int32)
    one, two = memory.adopt(x), memory.adopt(x)
    assert one.allocation is two.allocation
    memory.release(one.allocation)
    assert memory.load(U32, np.uint64(two.address + 4)) == 1
    memory.release(two.allocation)
    refused(lambda: memory.load(U32, np.uint64(two.address)), "use-after-free")


def test_overlapping_views_share_an_allocation(memory):
    x = np.arange(16, dtype=np.int32)
    low, high, within = memory.adopt(x[:10], "low"), memory.adopt(x[6:], "high"), memory.adopt(x[8:9])
    assert memory.load(np.dtype("i4"), addresses(low.address, 16, 4)).tolist() == list(range(16))
    memory.release(low.allocation)
    memory.release(within.allocation)
    assert memory.load(np.dtype("i4"), np.uint64(low.address)) == 0
    memory.release(high.allocation)
    refused(lambda: memory.load(U32, np.uint64(high.address)), "use-after-free")
    assert memory.table.items == []


def test_views_that_only_touch_stay_apart(memory):
    x = np.arange(16, dtype=np.int32)
    low = memory.adopt(x[:8], "low")
    memory.adopt(x[8:], "high")
    assert low.allocation.size == 32
    assert len(memory.table.items) == 2


def test_an_empty_array_can_be_passed_and_not_used(memory):
    nothing = memory.adopt(np.empty(0, np.float32), "x")
    with pytest.raises(AccessFault):
        memory.load(F32, np.uint64(nothing.address))
    memory.release(nothing.allocation)
    own = memory.allocate(0)
    memory.release(own)
    assert memory.table.items == []


def test_an_array_of_an_earlier_launch_is_called_so(memory):
    x = np.zeros(4, np.float32)
    adopted = memory.adopt(x, "`x`")
    memory.release(adopted.allocation)
    refused(lambda: memory.load(F32, np.uint64(adopted.address)), "use-after-free", "argument of a launch that has ended")


def test_an_array_in_a_variable_of_a_module_is_that_variable(memory):
    variable = memory.allocate(64, name="v")
    view = variable.bytes[16:32]
    adopted = memory.adopt(view)
    assert adopted.allocation is variable
    memory.release(adopted.allocation)
    assert variable.live


# ── 32 bits ─────────────────────────────────────────────────────────────────────────────


def test_a_32_bit_module_works_on_a_copy_below_4_gib():
    memory = Memory(32)
    x = np.arange(8, dtype=np.int32)
    adopted = memory.adopt(x, "x")
    assert adopted.address + x.nbytes < 1 << 32
    memory.store(np.dtype("i4"), addresses(adopted.address, 8, 4), np.arange(8, dtype=np.int32) * 3)
    assert x.tolist() == list(range(8))
    memory.release(adopted.allocation)
    assert x.tolist() == [0, 3, 6, 9, 12, 15, 18, 21]


def test_a_32_bit_module_shares_the_copy_of_an_array_and_its_part():
    memory = Memory(32)
    x = np.arange(8, dtype=np.int32)
    whole, part = memory.adopt(x, "x"), memory.adopt(x[2:4], "y")
    assert part.address == whole.address + 8
    with pytest.raises(ValueError, match=re.escape("z overlaps x (32 bytes)")):
        memory.adopt(np.lib.stride_tricks.as_strided(x[4:], (8,), writeable=False), "z")


def test_a_read_only_array_of_a_32_bit_module_is_not_written_back():
    memory = Memory(32)
    x = np.arange(8, dtype=np.int32)
    x.flags.writeable = False
    adopted = memory.adopt(x)
    refused(lambda: memory.store(U32, np.uint64(adopted.address), U32.type(1)), "read-only")
    memory.release(adopted.allocation)


# ── other questions ─────────────────────────────────────────────────────────────────────


def test_within_tells_the_space_of_an_address(memory):
    const, glob = memory.allocate(16, space=Space.CONST).start, memory.allocate(16).start
    asked = np.array([const, glob, const + 16, 0], np.uint64)
    assert memory.within(Space.CONST, asked).tolist() == [True, False, False, False]
    assert memory.within(Space.GLOBAL, asked).tolist() == [False, True, True, False]
    assert memory.within(Space.CONST, np.uint64(const + 15))


def test_bytes_and_strings_are_read_as_a_lane_would(memory):
    block = memory.allocate(8, name="s")
    block.bytes[:] = np.frombuffer(b"hi\0there", np.uint8)
    assert memory.read_string(block.start) == "hi"
    assert memory.read(block.start + 1, 4) == b"i\0th"
    refused(lambda: memory.read_string(block.start + 3), "out-of-bounds")
    refused(lambda: memory.read(block.start + 6, 4), "out-of-bounds")
    local = Window(memory, Space.LOCAL, 16, np.arange(3))
    local.pieces[1] = np.frombuffer(b"sixteen letters!", np.uint8)
    (where,) = local.to_generic(np.uint64(8), np.array([1])).tolist()
    assert memory.read(where, 8, lane=1) == b"letters!"
    refused(lambda: memory.read(where, 8, lane=2), "out-of-bounds")
    refused(lambda: memory.read_string(where, lane=1), "out-of-bounds")
    refused(lambda: memory.read_string(0), "null-pointer")


def test_the_whole_address_space_is_one_array():
    x = np.array([1.5, 2.5], np.float32)
    assert world(F32)[(x.ctypes.data - 4096) // 4 + 1] == 2.5


def test_an_allocation_says_what_it_is():
    assert str(Allocation(0, 1, Space.GLOBAL, "x")) == "x (1 byte)"

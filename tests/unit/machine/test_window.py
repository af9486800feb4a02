"""Shared memory of CTAs and local memory of threads."""

import numpy as np
import pytest

from ptxvm.algebra.state_space import Space
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.memory import Memory
from ptxvm.machine.window import Window

U32, F32 = np.dtype("u4"), np.dtype("f4")
THREADS, CTAS = 32, 4
CTA = np.arange(CTAS * THREADS) // THREADS
LANES = np.arange(CTAS * THREADS)


@pytest.fixture
def memory():
    return Memory()


@pytest.fixture
def window(memory):
    """128 bytes of shared memory for each of 4 CTAs of 32 threads."""
    return Window(memory, Space.SHARED, 128, CTA)


def offsets(count=CTAS * THREADS, dtype=np.uint64):
    return (np.arange(count) % THREADS * 4).astype(dtype)


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_every_cta_has_its_own_piece(window, dtype):
    window.store(U32, offsets(dtype=dtype), LANES.astype(np.uint32))
    assert np.array_equal(window.load(U32, offsets(dtype=dtype)), LANES)
    assert np.array_equal(window.pieces.view(U32).reshape(4, -1)[2], LANES[64:96])


def test_some_lanes_reach_the_piece_of_their_cta(window):
    some = np.array([5, 40, 70])
    window.store(U32, np.zeros(3, np.uint64), some.astype(np.uint32), lanes=some)
    assert window.load(U32, np.uint64(0)).reshape(4, 32)[:, 0].tolist() == [5, 40, 70, 0]
    assert window.load(U32, np.uint64(0), lanes=np.array([39, 0])).tolist() == [40, 5]


def test_a_vector_is_loaded_from_every_piece(window):
    window.store(U32, offsets(), LANES.astype(np.uint32))
    x, y = window.load(U32, np.uint64(8), 2)
    assert x.reshape(4, 32)[:, 7].tolist() == [2, 34, 66, 98]
    assert y.reshape(4, 32)[:, 7].tolist() == [3, 35, 67, 99]


def test_one_cta_alone_gives_one_value_for_one_offset(memory):
    window = Window(memory, Space.SHARED, 64, np.zeros(32, np.int64))
    window.store(U32, np.uint32(4), np.uint32(7))
    assert window.load(U32, np.uint32(4)) == 7
    assert window.load(U32, np.uint32(4)).ndim == 0


def test_the_window_ends_for_every_lane(window):
    bad = offsets()
    bad[77] = 128
    with pytest.raises(AccessFault, match="shared memory has 128 bytes") as caught:
        window.load(U32, bad)
    assert (caught.value.kind, caught.value.lane_index, caught.value.address) == ("out-of-bounds", 77, 128)
    with pytest.raises(AccessFault) as caught:
        window.store(U32, np.uint64(1 << 32), np.uint32(1))
    assert caught.value.kind == "out-of-bounds"


def test_an_empty_window_has_no_byte(memory):
    window = Window(memory, Space.SHARED, 0, CTA)
    with pytest.raises(AccessFault, match="has 0 bytes"):
        window.load(np.dtype("u1"), np.uint64(0))


def test_alignment_is_checked(window):
    with pytest.raises(AccessFault, match="multiple of 8") as caught:
        window.load(U32, np.array([0, 8, 4], np.uint64), 2, lanes=np.arange(3))
    assert (caught.value.kind, caught.value.lane_index) == ("misaligned", 2)


def test_atomics_stay_in_their_piece(window):
    old = window.atomic(U32, np.zeros(128, np.uint64), "add", [np.ones(128, np.uint32)])
    assert np.array_equal(old, LANES % 32)
    assert window.pieces.view(U32)[:, 0].tolist() == [32] * 4


def test_generic_addresses_reach_the_same_memory(memory, window):
    generic = window.to_generic(offsets())
    memory.store(U32, generic, LANES.astype(np.uint32))
    assert np.array_equal(window.load(U32, offsets()), LANES)
    assert np.array_equal(window.from_generic(generic), offsets())
    assert memory.within(Space.SHARED, generic).all()
    assert not memory.within(Space.GLOBAL, generic).any()
    some = np.array([3, 64])
    assert np.array_equal(window.to_generic(np.uint64(4), some), generic[[1, 65]])
    assert memory.load(U32, window.to_generic(np.uint64(4), some), lanes=some).tolist() == [1, 65]


def test_a_generic_address_in_the_piece_of_another_is_refused(memory, window):
    generic = window.to_generic(offsets())
    with pytest.raises(AccessFault, match="belongs to this thread") as caught:
        memory.load(U32, np.concatenate([generic[32:], generic[:32]]))
    assert caught.value.kind == "out-of-bounds"
    with pytest.raises(AccessFault, match="belongs to this thread"):
        memory.load(U32, generic[40], lanes=np.array([0]))
    with pytest.raises(AccessFault):
        memory.load(U32, window.to_generic(np.uint64(128)))


def test_lanes_may_mix_generic_addresses_of_several_spaces(memory, window):
    x = np.arange(32, dtype=np.uint32) + 100
    glob = np.uint64(memory.adopt(x).address) + offsets(32)
    window.store(U32, offsets(), LANES.astype(np.uint32))
    mixed = np.where(np.arange(32) % 2, glob, window.to_generic(offsets(32), LANES[:32]))
    assert memory.load(U32, mixed, lanes=LANES[:32]).tolist() == [n + 100 if n % 2 else n for n in range(32)]
    with pytest.raises(AccessFault) as caught:
        memory.load(U32, mixed, lanes=LANES[32:64])
    assert caught.value.lane_index == 0


def test_a_shared_address_is_not_global(memory, window):
    with pytest.raises(AccessFault) as caught:
        memory.load(U32, window.to_generic(offsets()), space=Space.GLOBAL)
    assert caught.value.kind == "wrong-space"


def test_clear_and_release(memory, window):
    window.store(U32, offsets(), np.uint32(9))
    window.clear()
    assert not window.pieces.any()
    generic = window.to_generic(offsets())
    window.release()
    with pytest.raises(AccessFault) as caught:
        memory.load(U32, generic)
    assert caught.value.kind == "use-after-free"

"""Atomics of many lanes are those of one lane after the other."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ptxvm.machine import atomics

MASK = (1 << 32) - 1

# What one lane does (PTX 9.7.13.5), in Python integers.
STEPS = {
    "add": lambda old, a: (old + a) & MASK,
    "and": lambda old, a: old & a,
    "or": lambda old, a: old | a,
    "xor": lambda old, a: old ^ a,
    "min": min,
    "max": max,
    "inc": lambda old, a: 0 if old >= a else old + 1,
    "dec": lambda old, a: a if old == 0 or old > a else old - 1,
    "exch": lambda old, a: a,
    "cas": lambda old, a, b: b if old == a else old,
}


def one_by_one(memory, index, operation, operands):
    memory, old = memory.copy(), []
    for lane, at in enumerate(index):
        found = int(memory[at])
        old.append(found)
        memory[at] = STEPS[operation](found, *[int(each[lane]) for each in operands])
    return memory, old


def check(memory, index, operation, operands):
    wanted, old = one_by_one(memory, index, operation, operands)
    got = memory.copy()
    assert atomics.apply(got, index, operation, operands).tolist() == old
    assert got.tolist() == wanted.tolist()
    without = memory.copy()
    atomics.apply(without, index, operation, operands, old=False)
    assert without.tolist() == wanted.tolist()


@pytest.mark.parametrize("operation", STEPS)
@pytest.mark.parametrize(
    ("lanes", "places"), [(1, 1), (64, 64), (64, 1), (500, 7), (500, 300), (2000, 3), (200, 70000)], ids=str
)
def test_old_values_and_memory_are_those_of_the_lane_order(operation, lanes, places, rng):
    small = operation in ("inc", "dec", "cas")
    memory = rng.integers(0, 4 if small else 1 << 32, places, dtype=np.uint32)
    operands = [rng.integers(0, 5 if small else 1 << 32, lanes, dtype=np.uint32) for _ in range(1 + (operation == "cas"))]
    check(memory, rng.integers(0, places, lanes), operation, operands)


@given(
    operation=st.sampled_from(sorted(STEPS)),
    lanes=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40),
    memory=st.lists(st.integers(0, 3), min_size=4, max_size=4),
)
def test_small_cases_in_all_their_variety(operation, lanes, memory):
    index, *operands = (np.array(column) for column in zip(*lanes, strict=True))
    operands = [each.astype(np.uint32) for each in operands][: 1 + (operation == "cas")]
    check(np.array(memory, np.uint32), index, operation, operands)


def test_uniform_cas_lets_the_first_lane_win():
    memory = np.zeros(3, np.uint32)
    old = atomics.apply(memory, np.array([1] * 32 + [2] * 32), "cas", [np.uint32(0), np.uint32(1)])
    assert old.tolist() == [0] + [1] * 31 + [0] + [1] * 31
    assert memory.tolist() == [0, 1, 1]


def test_signed_minimum():
    memory = np.array([5], np.int32)
    assert atomics.apply(memory, np.zeros(4, np.int64), "min", [np.array([7, -3, 2, -9], np.int32)]).tolist() == [
        5,
        5,
        -3,
        -3,
    ]
    assert memory[0] == -9


def test_64_bit_additions_wrap():
    memory = np.array([(1 << 64) - 2], np.uint64)
    assert atomics.apply(memory, np.zeros(3, np.int64), "add", [np.uint64(1)]).tolist() == [
        (1 << 64) - 2,
        (1 << 64) - 1,
        0,
    ]


@pytest.mark.parametrize("held", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("places", [1, 5, 400])
def test_floating_additions_are_rounded_one_by_one(held, places, rng):
    def unexpected(old, value):
        raise AssertionError

    memory = rng.standard_normal(places).astype(held) * held(10)
    index, values = (
        rng.integers(0, places, 500),
        (rng.standard_normal(500) * 10.0 ** rng.integers(-2, 2, 500)).astype(held),
    )
    wanted, old = memory.copy(), []
    for at, value in zip(index, values, strict=True):
        old.append(wanted[at])
        wanted[at] += value
    got = memory.copy()
    assert atomics.apply(got, index, "add", [values], unexpected).tobytes() == np.array(old).tobytes()
    assert got.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("strange", [np.nan, 1e-40])
def test_strange_floats_are_left_to_the_update(strange):
    """What the sum of a NaN or a subnormal is, the instruction says: here, 1."""
    memory = np.zeros(1, np.float32)
    values = np.array([2, strange, 2], np.float32)
    atomics.apply(memory, np.zeros(3, np.int64), "add", [values], lambda old, value: np.ones_like(old))
    assert memory[0] == 1


def test_an_update_without_a_name_goes_in_rounds():
    calls = []

    def update(old, value):
        calls.append(len(old))
        return old * np.uint32(10) + value

    memory = np.zeros(2, np.uint32)
    old = atomics.apply(memory, np.array([0, 1, 0, 0]), "", [np.array([1, 2, 3, 4], np.uint32)], update)
    assert old.tolist() == [0, 0, 1, 13]
    assert memory.tolist() == [134, 2]
    assert calls == [2, 1, 1]


def test_pairs_of_words_are_exchanged():
    pair = np.dtype([("lo", "u8"), ("hi", "u8")])
    memory = np.array([(1, 2)], pair)
    new = np.array([(3, 4), (5, 6)], pair)
    old = atomics.apply(memory, np.zeros(2, np.int64), "exch", [new], lambda _, value: value)
    assert old.tolist() == [(1, 2), (3, 4)]
    assert memory.tolist() == [(5, 6)]


def test_one_lane_gets_a_scalar():
    memory = np.array([4], np.uint32)
    old = atomics.apply(memory, 0, "add", [np.uint32(3)])
    assert (old, old.ndim, memory[0]) == (4, 0, 7)


def test_one_address_for_many_operands():
    memory = np.array([4], np.uint32)
    assert atomics.apply(memory, 0, "add", [np.array([1, 2], np.uint32)]).tolist() == [4, 5]


def test_words_that_change_meanwhile_are_updated_again() -> None:
    """Before the first exchange another device adds 100 to words 1 and 2: what came of their old values is not stored."""
    memory, asked = np.array([1, 2, 3, 4], np.uint32), list[list[int]]()

    def exchange(addresses: np.ndarray, expected: np.ndarray, desired: np.ndarray) -> np.ndarray:
        words = ((addresses - np.uint64(memory.ctypes.data)) // np.uint64(4)).astype(np.intp)
        if not asked:
            memory[1:3] += 100
        asked.append(words.tolist())
        same = memory[words] == expected
        memory[words[same]] = desired[same]
        return same

    index, operands = np.array([0, 1, 1, 3, 0, 2]), [np.array([10, 20, 30, 40, 50, 60], np.uint32)]
    old = atomics.apply_beside(exchange, memory, index, "add", operands)
    assert old.tolist() == [1, 102, 122, 4, 11, 103]
    assert memory.tolist() == [61, 152, 163, 44]
    assert asked == [[0, 1, 2, 3], [1, 2]]
    assert atomics.apply_beside(exchange, memory, 3, "exch", [np.uint32(7)]) == 44
    assert memory[3] == 7

"""Sets of bytes hold what a map of bytes says, as runs or as bits."""

from __future__ import annotations

import numpy as np
import pytest

from ptxvm.campaign.byte_sets import ByteSet, are_apart


def made(size: int, *runs: tuple[int, int]) -> ByteSet:
    return ByteSet(size, np.array(runs, np.int64).reshape(-1, 2))


@pytest.mark.parametrize("size", [1, 7, 8, 9, 64, 5000])
@pytest.mark.parametrize("density", [0.0, 0.01, 0.5, 1.0])
def test_a_set_has_the_bytes_of_its_map(size: int, density: float, rng: np.random.Generator) -> None:
    flags, values = rng.random(size) < density, rng.integers(0, 256, size, np.uint8)
    found = ByteSet.of_map(np.where(flags, 255, 0).astype(np.uint8))
    assert bool(found) is bool(flags.any())
    assert found.taken(values).tobytes() == values[flags].tobytes()
    again = np.zeros(size, np.uint8)
    found.put(again, found.taken(values))
    assert again.tobytes() == np.where(flags, values, 0).astype(np.uint8).tobytes()


def test_runs_begin_and_end_within_words_and_between_pieces() -> None:
    map = np.zeros(3 << 20, np.uint8)
    for start, end in (3, 5), (8, 16), ((1 << 20) - 1, (1 << 20) + 1), (2 << 20, 3 << 20):
        map[start:end] = 255
    found = ByteSet.of_map(map).runs
    assert found is not None
    assert found.tolist() == [[3, 5], [8, 16], [(1 << 20) - 1, (1 << 20) + 1], [2 << 20, 3 << 20]]


@pytest.mark.parametrize("parts", [[(0, 64)], [(16, 40), (48, 64)], [(16, 24), (24, 40), (48, 64)]])
def test_what_is_outside_of_some_parts_is_zero(parts: list[tuple[int, int]]) -> None:
    """A part that ends with a one ends the run."""
    map = np.zeros(64, np.uint8)
    for start, end in (17, 19), (30, 40), (48, 64):
        map[start:end] = 255
    found = ByteSet.of_map(map, parts)
    wanted = np.zeros(64, np.bool_)
    wanted[[*range(17, 19), *range(30, 40), *range(48, 64)]] = True
    assert found.taken(np.arange(64)).tolist() == np.flatnonzero(wanted).tolist()
    assert not ByteSet.of_map(map, [])


def test_many_runs_become_bits() -> None:
    map = np.zeros(1 << 20, np.uint8)
    map[::4] = 255
    found = ByteSet.of_map(map)
    assert found.runs is None
    assert found.taken(np.arange(1 << 20)).tolist() == list(range(0, 1 << 20, 4))


@pytest.mark.parametrize(
    ("written", "read", "apart"),
    [
        ([[(0, 4)], [(4, 8)]], [[], []], True),
        ([[(0, 5)], [(4, 8)]], [[], []], False),
        ([[(4, 8)], [(0, 4), (8, 9)]], [[(4, 8)], [(0, 2)]], True),
        ([[(4, 8)], [(0, 4)]], [[(3, 5)], []], False),
        ([[(4, 8)], []], [[], [(7, 20)]], False),
        ([[(4, 8)], []], [[], [(0, 4), (8, 20)]], True),
        ([[], []], [[(0, 9)], [(0, 9)]], True),
    ],
)
def test_bytes_of_several_are_seen(
    written: list[list[tuple[int, int]]], read: list[list[tuple[int, int]]], *, apart: bool
) -> None:
    assert are_apart([made(99, *each) for each in written], [made(99, *each) for each in read]) is apart

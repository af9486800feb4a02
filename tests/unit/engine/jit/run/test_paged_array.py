"""Arrays whose pages come when they are first asked for."""

from __future__ import annotations

import numpy as np
import pytest

from ptxvm.engine.jit.run.paged_array import AHEAD, PAGE, DemandPaging, PagedArray

SIZE = 300 * PAGE + 100


class Origin:
    """Bytes, and which parts of them were fetched."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.bytes, self.fetched = rng.integers(0, 256, SIZE, np.uint8), list[tuple[int, int]]()
        self.array = PagedArray(np.zeros(SIZE, np.uint8), self.fill)

    def fill(self, first: int, end: int, room: np.ndarray) -> None:
        self.fetched.append((first, end))
        room[:] = self.bytes[first:end]


@pytest.fixture
def origin(rng: np.random.Generator) -> Origin:
    return Origin(rng)


def test_an_access_fetches_the_pages_that_it_touches(origin: Origin) -> None:
    """The last page is the rest of the array, and the bytes of two pages side by side are one run."""
    assert origin.array.present(7 * PAGE - 4, 7 * PAGE + 4) == (6 * PAGE, 8 * PAGE)
    assert origin.array.present(SIZE - 1, SIZE) == (300 * PAGE, SIZE)
    assert origin.array.present(6 * PAGE, 6 * PAGE + 1) == (6 * PAGE, 8 * PAGE)
    assert sum(end - first for first, end in origin.fetched) == 2 * PAGE + 100
    for part in (slice(6 * PAGE, 8 * PAGE), slice(300 * PAGE, SIZE)):
        assert np.array_equal(origin.array.bytes[part], origin.bytes[part])
    assert not origin.array.bytes[8 * PAGE : 300 * PAGE].any()


def test_an_array_that_is_read_in_order_is_fetched_ahead(origin: Origin) -> None:
    """Fetches grow to a limit, and so no more than twice of what is read is fetched."""
    for at in range(0, 200 * PAGE, PAGE // 2):
        start, end = origin.array.present(at, at + 4)
        assert start == 0
        assert end <= max(2 * at, at + AHEAD) + PAGE
    sizes = [end - first for first, end in origin.fetched]
    assert sizes[:6] == [PAGE << n for n in range(6)]
    assert max(sizes) == AHEAD


def test_what_is_here_is_fetched_once(origin: Origin) -> None:
    origin.array.fetch(2 * PAGE, 3 * PAGE)
    DemandPaging([origin.array]).fetch_all()
    assert origin.fetched == [(2 * PAGE, 3 * PAGE), (0, 2 * PAGE), (3 * PAGE, SIZE)]
    assert np.array_equal(origin.array.bytes, origin.bytes)


def test_addresses_tell_the_array(origin: Origin) -> None:
    paging, start = DemandPaging([origin.array]), origin.array.bytes.ctypes.data
    assert paging.present(start + 5 * PAGE, 4) == (start + 5 * PAGE, start + 6 * PAGE)
    assert paging.present(start + SIZE, 4) is None

"""CTAs over host threads: each runs once, and the pieces are such that the threads end at about the same time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from ptxvm.engine.jit.run import cta_distribution
from ptxvm.engine.jit.run.cta_distribution import Progress
from ptxvm.engine.jit.run.runner import Runner


class Recording:
    """What a runner shows of itself to the distribution; it records the pieces that it is given."""

    def __init__(self, ctas: int, pieces: list[tuple[int, int]], fails_at: int) -> None:
        self.in_step, self.resident = False, 1
        self.compiled = SimpleNamespace(facts=SimpleNamespace(side_by_side=False, cancels=False))
        self.launch = SimpleNamespace(limit=ctas)
        self.pieces, self.fails_at = pieces, fails_at

    def run(self, first: int, last: int) -> bool:
        """Record a piece."""
        self.pieces.append((first, last))
        return not first <= self.fails_at < last


def distributed(ctas: int, rate: float | None, threads: int, fails_at: int = -1) -> list[tuple[int, int]]:
    """The pieces of a grid, in the order of their CTAs."""
    pieces: list[tuple[int, int]] = []
    progress = Progress(range(ctas), rate)
    cta_distribution.run(lambda: cast("Runner", Recording(ctas, pieces, fails_at)), progress, threads)
    return sorted(pieces)


@pytest.mark.parametrize("ctas", [1, 2, 15, 64, 1000])
@pytest.mark.parametrize("rate", [None, 1e-6, 1e-3, 1.0])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_each_cta_runs_once(ctas: int, rate: float | None, threads: int) -> None:
    pieces = distributed(ctas, rate, threads)
    assert [start for start, _ in pieces] == [0, *(end for _, end in pieces[:-1])]
    assert pieces[-1][1] == ctas


def test_pieces_shrink_towards_the_end() -> None:
    """1,000 CTAs of 0.1 ms on two threads: an eighth of what is left each time, down to what is worth a piece: 0.3 ms."""
    sizes = [end - start for start, end in distributed(1000, 1e-4, 2)]
    assert sizes[0] == 1000 // (2 * cta_distribution.SHARE)
    assert sizes[:-1] == sorted(sizes[:-1], reverse=True)
    assert min(sizes[:-1]) == int(cta_distribution.WORTH / 1e-4)


def test_a_few_long_ctas_do_not_run_on_one_thread_until_their_time_is_known() -> None:
    assert distributed(16, None, 1)[0] == (0, 1)
    assert distributed(64, None, 1)[0] == (0, 2)
    assert distributed(4096, None, 1)[0] == (0, cta_distribution.FIRST)


def test_nothing_runs_after_a_failure_of_the_only_thread() -> None:
    assert distributed(1000, 1e-4, 1, fails_at=5)[-1] == (0, 300)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_mean_is_that_of_all_ctas_and_not_of_the_latest(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Oracle: the first half of 1,000 CTAs takes 1 ms each, the others nothing."""
    now = [0.0]

    class Timed(Recording):
        """Has a clock that goes on while CTAs run."""

        def run(self, first: int, last: int) -> bool:
            now[0] += 1e-3 * len(range(first, min(last, 500)))
            return super().run(first, last)

    monkeypatch.setattr(cta_distribution.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(cta_distribution, "WORTH", 1e9)
    progress = Progress(range(1000), 1e-4)
    if threads == 1:
        cta_distribution.run(lambda: cast("Runner", Timed(1000, [], -1)), progress, threads)
    else:
        cta_distribution.spread(
            cast("Runner", Timed(1000, [], -1)), lambda: cast("Runner", Recording(1000, [], -1)), progress, 1
        )
    assert progress.mean == pytest.approx(0.5e-3)

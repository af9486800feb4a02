"""The pause of Python's garbage collector, which gives back what was before."""

from __future__ import annotations

import gc
from contextlib import suppress

from ptxvm.analysis.collector import NoCollection


def test_nothing_is_collected_within_and_all_is_as_before_after_it() -> None:
    assert gc.isenabled()
    with NoCollection():
        with NoCollection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_an_error_ends_the_pause() -> None:
    with suppress(ValueError), NoCollection():
        raise ValueError
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with NoCollection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()

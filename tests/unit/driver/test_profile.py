"""The profile of a process, which `ptxvm exec --summary` shows."""

from __future__ import annotations

import sys
from pathlib import Path
from threading import Thread

import pytest

from ptxvm.driver.profile import LaunchTimes

STREAMS, LAUNCHES = 4, 20_000


@pytest.fixture
def impatient():
    """Threads that take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-7)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("impatient")
def test_launches_of_several_streams_are_all_counted():
    profile = LaunchTimes(Path())

    def launch() -> None:
        for _ in range(LAUNCHES):
            profile.add("kernel", 0.5)

    streams = [Thread(target=launch) for _ in range(STREAMS)]
    for each in streams:
        each.start()
    for each in streams:
        each.join()
    assert profile.kernels == {"kernel": (STREAMS * LAUNCHES, STREAMS * LAUNCHES / 2)}

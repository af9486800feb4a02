"""Catchpoints of the debugger in kernels that launch kernels: they stop at what a checked launch finds."""

from __future__ import annotations

import numpy as np
import pytest
from children_kernels import HEAD, HEAP, MAKE, RACE_FREE, RACES, READ, SYNC, launch

import ptxvm
from ptxvm.debug.session import Session
from ptxvm.debug.stops import Reason
from ptxvm.machine.launch_options import LaunchOptions


def under_the_debugger(body, caught="race"):
    """The run to its end under the debugger, and the stops at what was caught, each with its kernel."""
    module = ptxvm.load(HEAD + (MAKE if "%stream" in body else "") + body + "\nret;\n}\n")
    data = ptxvm.DeviceArray(64, np.uint32)
    data.copy_from_host(np.zeros(64, np.uint32))
    kernel = module.kernel("parent")
    session = Session(kernel.module.image, kernel.function, LaunchOptions(1, 2), [data], owner=module)
    session.catch(caught)
    stops = []
    stop = session.start()
    while stop.reason is not Reason.ENDED:
        if stop.reason is Reason.CATCHPOINT:
            stops.append((stop.finding, session.launch[1].name))
        stop = session.resume()
    return session, stops


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [*RACES, *RACE_FREE])
def test_the_debugger_catches_what_a_checked_launch_finds(name):
    """Also where the run goes back to its middle, and on from there."""
    body, hazard = RACES.get(name, (RACE_FREE.get(name), None))
    session, stops = under_the_debugger(body)
    expected = [("race", hazard, "global")] if hazard is not None else []
    assert [(each.kind, each.hazard, each.space) for each in session.result.findings] == expected
    assert [finding for finding, _ in stops] == ["race"] * len(expected)
    session.go_to(session.time // 2)
    session.finished()
    assert [(each.kind, each.hazard, each.space) for each in session.result.findings] == expected
    session.close()


def test_the_debugger_stops_in_the_grid_that_makes_the_race():
    session, stops = under_the_debugger(RACES["another thread writes"][0])
    assert stops == [("race", "read")]
    assert session.reverse_resume().finding == "race"
    assert session.launch[1].name == "read"
    session.close()


OUTSIDE = "add.u64 %e, %d, 192;\n" + launch("read", data="%e") + launch("write") + SYNC + READ.format("first")


@pytest.mark.parametrize(
    ("caught", "body", "stops"),
    [
        ("init", HEAP + launch("read", data="%e"), [("uninitialised-read", "read")]),
        ("init", HEAP + launch("write", data="%e") + SYNC + "@%first ld.u32 %r4, [%e];\n", []),
        ("sync", "mov.u64 %k, half;\n" + launch("k", threads=32), [("barrier-divergence", "half")]),
        ("memory", OUTSIDE, [("out-of-bounds", "read")]),
    ],
)
def test_the_debugger_catches_by_the_other_checks_in_children(caught, body, stops):
    session, found = under_the_debugger(body, caught)
    assert found == stops
    session.close()

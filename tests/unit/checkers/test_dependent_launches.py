"""Programmatic dependent launches: what a kernel does ahead of `griddepcontrol.wait` may run beside the launches before it.

PTX 9.7.13.13: the dependent may begin before the other grid has ended, if that one executes `launch_dependents`; its memory
operations are visible behind `wait`, which waits until all prerequisite grids in flight have ended.
"""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

KERNEL = """
.visible .entry {name}(.param .u64 data) {{
    .reg .b64 %d; .reg .b32 %t, %v; .reg .pred %first;
    .shared .align 8 .b64 bar;
    ld.param.u64 %d, [data]; mov.u32 %t, %tid.x; setp.eq.u32 %first, %t, 0;
    mad.wide.u32 %d, %t, 4, %d;
    {body}
    ret;
}}
"""
HEAD = ".version 8.6\n.target sm_90\n.address_size 64\n"
WRITE, READ = "st.global.u32 [%d], %t;", "ld.global.u32 %v, [%d];"
TRIGGER, WAIT = "griddepcontrol.launch_dependents;", "griddepcontrol.wait;"


def findings(*bodies, programmatic=(True, True, True)):
    """Kernels with these bodies, one after the other on a stream; what the last one shows."""
    names = [f"k{n}" for n in range(len(bodies))]
    module = ptxvm.load(HEAD + "".join(map(lambda name, body: KERNEL.format(name=name, body=body), names, bodies)))
    data, stream, found = np.zeros(64, np.uint32), ptxvm.Stream(), []
    for name, may_begin in zip(names, programmatic, strict=False):
        launch = module.kernel(name).launch(1, 64, [data], stream=stream, check=("race",), programmatic=may_begin)
        found.append(launch.findings)
    return found


@pytest.mark.parametrize(("first", "second", "hazard"), [(WRITE, READ, "RAW"), (READ, WRITE, "WAR"), (WRITE, WRITE, "WAW")])
def test_an_access_ahead_of_the_wait_may_come_too_early(first, second, hazard):
    before, (found,) = findings(first + TRIGGER, second + WAIT)
    assert before == []
    assert (found.kind, found.hazard, found.missing) == ("race", hazard, "griddepcontrol.wait before the access")
    assert [each.place.text.partition(" ")[0] for each in found.accesses] == [
        each.partition(" ")[0] for each in (first, second)
    ]


@pytest.mark.parametrize(
    ("first", "second", "programmatic"),
    [
        (WRITE + TRIGGER, WAIT + READ, True),
        (WRITE, READ, True),  # it lets nothing begin: the other launch begins when it has ended
        (WRITE + TRIGGER, READ, False),
        (WRITE + TRIGGER, "@%first griddepcontrol.wait; bar.sync 0;" + READ, True),  # one thread waits for all
        (
            WRITE + TRIGGER,
            """@%first mbarrier.init.shared::cta.b64 [bar], 1; bar.sync 0; @!%first bra again;
            griddepcontrol.wait; mbarrier.arrive.shared::cta.b64 _, [bar];
            again: mbarrier.try_wait.parity.shared::cta.b64 %first, [bar], 0; @!%first bra again;"""
            + READ,
            True,
        ),
    ],
    ids=["behind the wait", "no trigger", "not programmatic", "one thread waits", "one thread tells"],
)
def test_what_comes_after_the_wait_of_a_thread_is_ordered(first, second, programmatic):
    assert findings(first, second, programmatic=(True, programmatic)) == [[], []]


def test_a_wait_of_another_thread_orders_nothing_by_itself():
    assert [each.hazard for each in findings(WRITE + TRIGGER, "@%first griddepcontrol.wait;" + READ)[1]] == ["RAW"]


@pytest.mark.parametrize(
    ("middle", "last", "hazards"),
    [
        (TRIGGER + WAIT, READ, ["RAW"]),  # the last kernel may begin while the first one runs
        (WAIT + TRIGGER, READ, []),  # it begins when the first one has ended
        (TRIGGER, WAIT + READ, ["RAW"]),  # it waits for a kernel that does not wait for the first one
        (TRIGGER + WAIT, WAIT + READ, []),
    ],
    ids=["begins early", "begins late", "waits for too little", "waits"],
)
def test_three_kernels_of_which_each_depends_on_the_one_before(middle, last, hazards):
    assert [each.hazard for each in findings(WRITE + TRIGGER, middle, last)[2]] == hazards


def test_a_programmatic_launch_needs_a_stream():
    kernel = ptxvm.load(HEAD + KERNEL.format(name="k", body=WAIT)).kernel()
    with pytest.raises(ValueError, match="no stream is named"):
        kernel.launch(1, 64, [np.zeros(64, np.uint32)], programmatic=True)

"""Phases of mbarriers that a thread may miss: a test by parity knows the last phase alone (PTX 9.7.13.15.16).

In the run that is followed each thread looks in time.  A finding says that nothing makes it so: the manual lets a thread come
any time later, when the parity that it asks for is under way again.
"""

from __future__ import annotations

import pytest

import ptxvm

KERNEL = """
    .version 8.6
    .target {target}
    .address_size 64
    .visible .entry k()
    {{
    .reg .b32 %t, %lane; .reg .pred %first, %rest, %p;
    .shared .align 8 .b64 bar, other;
    mov.u32 %t, %tid.x; setp.eq.u32 %first, %t, 0; and.b32 %lane, %t, 31; setp.ne.u32 %rest, %lane, 0;
    @%first mbarrier.init.shared::cta.b64 [bar], {count};
    @%first mbarrier.init.shared::cta.b64 [other], 1;
    bar.sync 0;
    @%rest bra end;
    @!%first bra second;
    mbarrier.arrive.shared::cta.b64 _, [bar];
    first: mbarrier.try_wait.parity{sem}.shared::cta.b64 %p, [bar], 0;
    @!%p bra first;
    {behind_first}
    bra end;
    second: {before_second}
    again: mbarrier.try_wait.parity{sem}.shared::cta.b64 %p, [bar], 0;
    @!%p bra again;
    {behind_second}
    mbarrier.arrive.shared::cta.b64 _, [bar];
    end: ret;
    }}
"""
ARRIVE = "mbarrier.arrive.shared::cta.b64 _, [bar];"
TELL = "mbarrier.arrive.shared::cta.b64 _, [other];"
HEAR = "hear: mbarrier.try_wait.parity.shared::cta.b64 %p, [other], 0; @!%p bra hear;"
RELAXED = ".relaxed.cta"
RELAXED_TELL, RELAXED_HEAR = TELL.replace("arrive", "arrive.relaxed.cta"), HEAR.replace("parity", "parity.relaxed.cta")


def findings(count=1, behind_first="", before_second="", behind_second="", sem="", engine="interp", target="sm_90"):
    """The first thread ends a phase and looks; the first of another warp looks and ends the next one.  And the text."""
    text = KERNEL.format(
        count=count, behind_first=behind_first, before_second=before_second, behind_second=behind_second, sem=sem, target=target
    )
    return ptxvm.load(text).kernel().launch(1, 64, [], check=("race", "sync"), engine=engine).findings, text


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_the_next_phase_may_end_before_a_thread_looks(engine):
    (found,), text = findings(engine=engine)
    test, end = found.accesses
    lines = text.splitlines()
    assert found.kind == "missed-phase"
    assert lines[test.line - 1].strip().startswith("first: mbarrier.try_wait")
    assert lines[end.line - 1].strip().startswith("mbarrier.arrive")
    assert (test.place.thread, end.place.thread) == ((0, 0, 0), (32, 0, 0))


@pytest.mark.parametrize(
    "how",
    [
        {"count": 2, "behind_first": ARRIVE, "before_second": ARRIVE},  # the first thread takes part in the next phase
        {"behind_first": TELL, "behind_second": HEAR},
    ],
    ids=["arrives", "tells"],
)
def test_the_next_phase_waits_for_the_thread(how):
    assert findings(**how)[0] == []


@pytest.mark.parametrize(("told", "kinds"), [(False, ["missed-phase"]), (True, [])])
def test_relaxed_arrivals_and_tests_tell_how_far_a_thread_has_come(told, kinds):
    """What has to come first is the look of the thread; nothing that it has written has to be visible."""
    how = {"behind_first": RELAXED_TELL, "behind_second": RELAXED_HEAR} if told else {}
    assert [each.kind for each in findings(sem=RELAXED, **how)[0]] == kinds


def test_the_end_of_tensor_work_tells_how_far_its_thread_has_come():
    """A commit arrives behind the thread that made it, though it releases nothing of it (PTX 9.7.16.12.1)."""
    commit = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [other];"
    assert findings(behind_first=commit, behind_second=HEAR, target="sm_100a")[0] == []

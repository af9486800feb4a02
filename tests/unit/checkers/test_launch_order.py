"""Order between launches that run at once: release and acquire through memory that they share (PTX 8.7 to 8.9).

Those on streams run one after the other here, as nothing else does; those on devices run side by side.
"""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm
from ptxvm.machine.streams import DEVICE

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
RELEASE, ACQUIRE = "st.release.gpu.u32 [%f], 1;", "ld.acquire.gpu.u32 %v, [%f];"
WRITE, READ = "st.u32 [%d], 7;", "ld.u32 %v, [%d];"
PUBLISHED = f"{WRITE} {RELEASE}"


def kernel(body):
    """A kernel with the address of data in `%d`, of a flag in `%f`, and of another in `%g`."""
    text = f"""{HEAD}
    .entry k(.param .u64 data, .param .u64 flag, .param .u64 other) {{
        .reg .b64 %d, %f, %g; .reg .b32 %v, %t; .reg .pred %p;
        ld.param.u64 %d, [data]; ld.param.u64 %f, [flag]; ld.param.u64 %g, [other]; mov.u32 %t, %tid.x;
        {body}
        ret;
    }}"""
    return ptxvm.load(text).kernel()


class Memory:
    """Data and two flags, and launches that use them."""

    def __init__(self):
        self.arrays = [np.zeros(64, np.uint32), np.zeros(1, np.uint32), np.zeros(1, np.uint32)]

    def launched(self, body, stream, block=1, **how):
        """The hazards between a launch and the earlier ones."""
        result = kernel(body).launch(1, block, self.arrays, stream=stream, check=("race",), **how)
        return [each.hazard for each in result.findings if "launch" in each.message]


@pytest.fixture
def memory():
    return Memory()


@pytest.fixture
def streams():
    return [ptxvm.Stream(name) for name in ("one", "two", "three")]


@pytest.mark.parametrize(
    ("published", "acquired"),
    [
        (PUBLISHED, ACQUIRE),
        (f"{WRITE} fence.acq_rel.gpu; st.relaxed.gpu.u32 [%f], 1;", "ld.relaxed.gpu.u32 %v, [%f]; fence.acq_rel.gpu;"),
        (f"{WRITE} membar.gl; st.volatile.u32 [%f], 1;", "ld.volatile.u32 %v, [%f]; membar.gl;"),
        (f"{WRITE} red.release.gpu.add.u32 [%f], 1;", "atom.acquire.gpu.or.b32 %v, [%f], 0;"),
        (f"{WRITE} atom.acq_rel.sys.cas.b32 %v, [%f], 0, 1;", ACQUIRE),
        (f"{WRITE} st.release.gpu.u32 [%f], 1; red.relaxed.gpu.add.u32 [%f], 1;", ACQUIRE),
        (PUBLISHED, "ld.relaxed.gpu.u32 %v, [%f]; ld.acquire.gpu.u32 %v, [%f];"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("before", "after"), [(WRITE, READ), (READ, WRITE), (WRITE, WRITE)])
def test_what_is_released_and_acquired_is_ordered(memory, streams, published, acquired, before, after):
    assert memory.launched(published.replace(WRITE, before), streams[0]) == []
    assert memory.launched(f"{acquired} {after}", streams[1]) == []


@pytest.mark.parametrize(
    ("published", "acquired"),
    [
        (f"{WRITE} st.relaxed.gpu.u32 [%f], 1;", ACQUIRE),
        (PUBLISHED, "ld.relaxed.gpu.u32 %v, [%f];"),
        (PUBLISHED, "ld.acquire.gpu.u32 %v, [%g];"),
        (PUBLISHED, "red.relaxed.gpu.add.u32 [%f], 1; fence.acq_rel.gpu;"),
        (f"{RELEASE} {WRITE}", ACQUIRE),
        (f"{WRITE} fence.acq_rel.cta; st.relaxed.gpu.u32 [%f], 1;", "ld.relaxed.gpu.u32 %v, [%f]; fence.acq_rel.gpu;"),
        (f"{WRITE} fence.acq_rel.gpu; st.relaxed.gpu.u32 [%f], 1;", "ld.relaxed.gpu.u32 %v, [%f]; fence.acq_rel.cta;"),
        (PUBLISHED, "st.relaxed.gpu.u32 [%f], 1; ld.acquire.gpu.u32 %v, [%f];"),
    ],
)
def test_without_a_pattern_of_both_they_race(memory, streams, published, acquired):
    assert memory.launched(published, streams[0]) == []
    assert memory.launched(f"{acquired} {READ}", streams[1]) == ["RAW"]


def test_scopes_of_one_cta_order_no_launches(memory, streams):
    """Neither the flag nor what it should publish (PTX 8.7)."""
    memory.launched(PUBLISHED.replace("gpu", "cta"), streams[0])
    assert memory.launched(f"{ACQUIRE.replace('gpu', 'cta')} {READ}", streams[1]) == ["RAW", "RAW"]


def test_what_comes_before_the_acquire_is_not_ordered(memory, streams):
    memory.launched(PUBLISHED, streams[0])
    assert memory.launched(f"{READ} {ACQUIRE}", streams[1]) == ["RAW"]


def test_a_write_observed_is_ordered_before_what_follows(memory, streams):
    """A flag is reset by a plain store, after a strong read has seen it set (PTX 8.9.5)."""
    memory.launched("st.relaxed.gpu.u32 [%f], 1;", streams[0])
    assert memory.launched("ld.relaxed.gpu.u32 %v, [%f]; st.u32 [%f], 0;", streams[1]) == []
    assert sorted(memory.launched("st.u32 [%f], 0;", streams[2])) == ["WAR", "WAW", "WAW"]


def test_order_is_transitive(memory, streams):
    memory.launched(PUBLISHED, streams[0])
    assert memory.launched(f"{ACQUIRE} st.release.gpu.u32 [%g], 1;", streams[1]) == []
    assert memory.launched(f"ld.acquire.gpu.u32 %v, [%g]; {READ}", streams[2]) == []


def test_updates_pass_on_what_they_observe(memory, streams):
    """A read-modify-write of another launch goes on with the release sequence, a store ends it (PTX 8.8)."""
    memory.launched(PUBLISHED, streams[0])
    assert memory.launched("red.relaxed.gpu.add.u32 [%f], 1;", streams[1]) == []
    assert memory.launched(f"{ACQUIRE} {READ}", streams[2]) == []
    assert memory.launched("st.relaxed.gpu.u32 [%f], 1;", streams[1]) == []
    assert memory.launched(f"{ACQUIRE} {READ}", ptxvm.Stream()) == ["RAW"]


def test_updates_pass_on_within_a_launch(memory, streams):
    memory.launched(PUBLISHED, streams[0])
    chain = """
        setp.ne.u32 %p, %t, 0; @%p bra on;
        atom.relaxed.gpu.add.u32 %v, [%f], 1; ret;
        on: ld.acquire.gpu.u32 %v, [%f]; setp.lt.u32 %p, %v, 2; @%p bra on;
        ld.u32 %v, [%d];"""
    assert memory.launched(chain, streams[1], block=2) == []


def test_a_release_covers_the_launches_before_it(memory, streams):
    memory.launched(WRITE, streams[0])
    memory.launched(RELEASE, streams[0])
    assert memory.launched(f"{ACQUIRE} {READ}", streams[1]) == []


def test_launches_after_one_that_has_acquired_know_what_it_knows(memory, streams):
    memory.launched(PUBLISHED, streams[0])
    memory.launched(ACQUIRE, streams[1])
    assert memory.launched(READ, streams[1]) == []
    streams[2].wait(streams[1])
    assert memory.launched(READ, streams[2]) == []
    assert memory.launched(READ, ptxvm.Stream()) == ["RAW"]


@pytest.mark.parametrize(("barrier", "hazards"), [("bar.sync 0;", []), ("", ["RAW"])])
def test_a_barrier_shares_what_one_thread_has_acquired(memory, streams, barrier, hazards):
    each = "mad.wide.u32 %d, %t, 4, %d;"
    memory.launched(f"{each} {WRITE} bar.sync 0; setp.ne.u32 %p, %t, 0; @%p ret; {RELEASE}", streams[0], block=64)
    some = f"setp.ne.u32 %p, %t, 0; @%p bra on; {ACQUIRE} on: {barrier} {each} {READ}"
    assert memory.launched(some, streams[1], block=64) == hazards


def test_one_thread_does_not_release_what_others_do(memory, streams):
    each = "mad.wide.u32 %d, %t, 4, %d;"
    memory.launched(f"{each} {WRITE} setp.ne.u32 %p, %t, 0; @%p ret; {RELEASE}", streams[0], block=64)
    assert memory.launched(f"{ACQUIRE} {each} {READ}", streams[1], block=64) == ["RAW"]


def test_all_schedules_know_the_order(memory, streams):
    memory.launched(PUBLISHED, streams[0], schedules=3, seed=0)
    assert memory.launched(f"{ACQUIRE} {READ}", streams[1], schedules=3, seed=0) == []
    assert memory.launched(READ, streams[2], schedules=3, seed=0) == ["RAW"]


# ── side by side ────────────────────────────────────────────────────────────────────────

ROUNDS = 4
PING = """
    mov.u32 %t, 0;
again: add.u32 %t, %t, 1;
    st.u32 [%d], %t; st.release.SCOPE.u32 [%f], %t;
answer: ld.acquire.SCOPE.u32 %v, [%g]; setp.ne.u32 %p, %v, %t; @%p bra answer;
    setp.lt.u32 %p, %t, ROUNDS; @%p bra again;"""
PONG = """
    mov.u32 %t, 0;
again: add.u32 %t, %t, 1;
call: ld.acquire.SCOPE.u32 %v, [%f]; setp.ne.u32 %p, %v, %t; @%p bra call;
    ld.u32 %v, [%d]; st.u32 [%d+4], %v; st.ANSWER.SCOPE.u32 [%g], %t;
    setp.lt.u32 %p, %t, ROUNDS; @%p bra again;"""


@pytest.mark.parametrize(
    ("scope", "answer", "hazards"),
    [("sys", "release", set()), ("sys", "relaxed", {"WAR"}), ("gpu", "release", {"RAW", "WAR", "WAW"})],
)
def test_two_devices_take_turns(scope, answer, hazards):
    """An answer that does not release lets the next call overwrite what is still read; that of a device ends there."""
    first, second = ptxvm.devices(2)
    if second not in first.peers:
        first.enable_peer_access(second)
    arrays = [second.from_host(np.zeros(4, np.uint32)) for _ in range(3)]
    launches = []
    for device, text in ((first, PING), (second, PONG)):
        body = text.replace("SCOPE", scope).replace("ANSWER", answer).replace("ROUNDS", str(ROUNDS))
        on = kernel(body).module.on(device).kernel()
        launches.append(device.start(on, 1, 1, arrays, check=("race",), timeout=60))
    found = [each for launch in launches for each in launch.result().findings]
    assert arrays[0].array[:2].tolist() == [ROUNDS, ROUNDS]
    assert {each.hazard for each in found} <= hazards
    assert bool(found) == bool(hazards)


def test_launches_that_end_together_are_compared():
    """One whose checker has seen its end is compared with, before and after it leaves those that run."""

    class Footprint:
        lets_dependents_begin = False

        def supersedes(self, _):
            return False

    streams = [ptxvm.Stream(), ptxvm.Stream()]
    with DEVICE.launched("other", streams[1], ()) as other:
        with DEVICE.launched("one", streams[0], ()) as one:
            one.footprint, other.footprint = Footprint(), Footprint()
            assert one not in other.ended_beside()
            one.ended = True
            assert one in other.ended_beside()
        assert other.ended_beside().count(one) == 1
    for stream in streams:
        stream.sync()


def test_what_the_host_waits_for_after_a_submission_is_not_before_it(memory, streams):
    """The host submits two launches, and waits for the first before the second begins; then one after both."""
    submission = DEVICE.submit()
    memory.launched(WRITE, streams[0])
    streams[0].sync()
    with DEVICE.begun(submission, streams[1]):
        assert memory.launched(READ, streams[1]) == ["RAW"]
    assert memory.launched(WRITE, streams[2]) == ["WAR"]


def test_memory_is_freed_between_a_submission_and_its_begin(streams):
    """The host has waited before, so nothing is in use; what lies there later is other memory."""
    array, submission = ptxvm.DeviceArray.from_host(np.zeros(64, np.uint32)), DEVICE.submit()
    result = kernel(WRITE).launch(1, 1, [array, 0, 0], stream=streams[0], check=("race",))
    streams[0].sync()
    array.free()
    assert result.findings == []
    (waited,) = submission.waited
    assert not waited.footprint.all_accesses
    with DEVICE.begun(submission, streams[1]):
        pass

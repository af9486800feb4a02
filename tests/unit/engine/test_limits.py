"""How long a launch may run: `steps` counts the instructions of all threads, `timeout` is seconds, on both engines.

What is expected is counted by hand: the instructions of each thread, those that a guard holds off included.
"""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

import ptxvm
from ptxvm.engine import limits

HEADER = ".version 6.5\n.target sm_75\n.address_size 64\n"
BOTH = pytest.mark.parametrize("engine", ["interp", "jit"])


def kernel(*lines: str) -> ptxvm.Kernel:
    """A kernel of these lines, the first of which is the fifth of the text."""
    body = "\n".join(lines)
    declared = ".reg .u64 a; .reg .u32 r<20>; .reg .pred p, q;"
    return ptxvm.load(f"{HEADER}.visible .entry k(.param .u64 o) {{ {declared}\n{body}\n}}\n").kernel()


STRAIGHT = ["ld.param.u64 a, [o];", "mov.u32 r0, %tid.x;", *(f"add.u32 r{n + 1}, r{n}, {n};" for n in range(16)),
            "st.global.u32 [a], r16;", "ret;"]  # fmt: skip
LOOP = ["mov.u32 r0, 0;", "L: add.u32 r0, r0, 1;", "setp.lt.u32 p, r0, 100;", "@p bra L;", "ret;"]
PARTED = ["mov.u32 r0, 0;", "mov.u32 r1, %tid.x;", "L: add.u32 r0, r0, 1;", "setp.le.u32 p, r0, r1;", "@p bra L;", "ret;"]
BARRIERS = ["mov.u32 r0, 0;", "L: add.u32 r0, r0, 1;", "bar.sync 0;", "setp.lt.u32 p, r0, 10;", "@p bra L;", "ret;"]
COUNTED = {
    "straight": (STRAIGHT, lambda threads: 20 * threads),
    "loop": (LOOP, lambda threads: 302 * threads),
    "parted": (PARTED, lambda threads: sum(3 + 3 * (t + 1) for t in range(threads))),
    "barriers": (BARRIERS, lambda threads: 42 * threads),
}


@BOTH
@pytest.mark.parametrize(("lines", "count"), COUNTED.values(), ids=COUNTED)
@pytest.mark.parametrize("threads", [1, 40])
def test_steps_are_the_instructions_of_all_threads(lines, count, threads, engine):
    total, out = count(threads), np.zeros(4, np.uint32)
    assert kernel(*lines).launch(1, threads, [out], engine=engine, steps=total).thread_instructions == total
    with pytest.raises(ptxvm.Fault, match=f"step-budget: the grid did not end within {total - 1} steps") as raised:
        kernel(*lines).launch(1, threads, [out], engine=engine, steps=total - 1)
    assert raised.value.place.text == "ret"


@BOTH
@pytest.mark.parametrize("steps", [1, 7, 19])
def test_the_fault_is_at_the_first_instruction_that_was_one_too_many(steps, engine):
    with pytest.raises(ptxvm.Fault) as raised:
        kernel(*STRAIGHT).launch(1, 1, [np.zeros(4, np.uint32)], engine=engine, steps=steps)
    assert raised.value.place.line == 5 + steps
    assert raised.value.place.text == STRAIGHT[steps].rstrip(";").replace("L: ", "")


@BOTH
def test_ctas_count_together(engine):
    out = np.zeros(4, np.uint32)
    assert kernel(*LOOP).launch(9, 64, [out], engine=engine, steps=9 * 64 * 302).thread_instructions == 9 * 64 * 302
    with pytest.raises(ptxvm.Fault, match="step-budget"):
        kernel(*LOOP).launch(9, 64, [out], engine=engine, steps=9 * 64 * 302 - 1)


ENDLESS = {
    "a loop": ["mov.u32 r0, 0;", "L:", "add.u32 r0, r0, 1;", "bra L;"],
    "lanes that part": ["mov.u32 r1, %tid.x;", "setp.lt.u32 q, r1, 5;", "@q bra M;", "L:", "add.u32 r0, r0, r1;", "bra L;",
                        "M:", "add.u32 r0, r0, 1;", "bra M;"],
    "waiting for memory": ["ld.param.u64 a, [o];", "L:", "ld.volatile.global.u32 r0, [a];", "setp.eq.u32 p, r0, 0;",
                           "@p bra L;", "ret;"],
    "barriers": ["mov.u32 r0, 0;", "L:", "add.u32 r0, r0, 1;", "bar.sync 0;", "bra L;"],
}  # fmt: skip


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes on when it is read, by a hundredth of a second: a busy machine is not late before its time."""
    ticks = itertools.count()
    monkeypatch.setattr(limits, "time", SimpleNamespace(monotonic=lambda: next(ticks) / 100))


@pytest.mark.sampled(2)
@BOTH
@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("lines", ENDLESS.values(), ids=ENDLESS)
@pytest.mark.parametrize(("limit", "kind"), [({"steps": 50_000}, "step-budget"), ({"timeout": 0.2}, "timeout")])
@pytest.mark.parametrize("threads", [1, 3])
def test_endless_kernels_end_within_their_loop(lines, limit, kind, threads, engine):
    first = next(n for n, line in enumerate(lines) if line == "L:")
    with pytest.raises(ptxvm.Fault) as raised:
        kernel(*lines).launch(3, 64, [np.zeros(4, np.uint32)], engine=engine, threads=threads, **limit)
    assert raised.value.kind == kind
    assert 5 + first <= raised.value.place.line < 5 + len(lines)


@BOTH
def test_a_limit_that_is_not_reached_changes_nothing(engine):
    one, other = np.zeros(4, np.uint32), np.zeros(4, np.uint32)
    kernel(*STRAIGHT).launch(1, 1, [one], engine=engine)
    kernel(*STRAIGHT).launch(1, 1, [other], engine=engine, steps=10**9, timeout=1000)
    assert (one == other).all()


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"steps": -1}, {"timeout": 0}, {"timeout": -1.5}, {"timeout": float("nan")}])
def test_limits_are_positive(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        kernel(*STRAIGHT).launch(1, 1, [np.zeros(4, np.uint32)], **wrong)


@BOTH
def test_checked_launches_end_too(engine):
    found = kernel(*ENDLESS["a loop"]).launch(1, 32, [np.zeros(4, np.uint32)], engine=engine, check=["race"], timeout=0.2)
    assert [each.kind for each in found.findings] == ["timeout"]

"""A barrier for all threads of a CTA that some of them never reach, since they have ended: a warning, on both engines.

Hardware lets it pass; PTX 9.7.13.1 has no word on threads that have ended.
"""

from __future__ import annotations

import pytest

import ptxvm

CODE = "ended-before-barrier"


def findings(barrier: str, threads: int, stay: int, engine: str, *, allow=(), after: str = "") -> list[ptxvm.Finding]:
    """What the check `sync` says where the first threads come to a barrier and the others have returned."""
    source = f""".version 6.5
.target sm_75
.address_size 64
.visible .entry k() {{ .reg .u32 t; .reg .pred p, q; mov.u32 t, %tid.x; setp.ge.u32 p, t, {stay}; setp.eq.u32 q, t, 3;
@p ret;
{barrier} {after}
ret; }}"""
    result = ptxvm.load(source).kernel().launch(2, threads, [], engine=engine, check=["sync"], allow=allow)
    return list(result.findings)


@pytest.mark.parametrize("engine", ["auto", "interp", "jit"])
@pytest.mark.parametrize(
    ("barrier", "threads", "stay"),
    [
        ("bar.sync 0;", 64, 32), ("bar.sync 5;", 96, 64), ("barrier.sync 0;", 64, 32), ("barrier.sync 0;", 64, 16),
        ("bar.red.popc.u32 t, 0, q;", 64, 32), ("barrier.sync 0;", 48, 40), ("barrier.sync.aligned 1;", 1024, 992),
    ],
)  # fmt: skip
def test_it_is_a_warning_with_the_place(barrier, threads, stay, engine):
    (found,) = findings(barrier, threads, stay, engine)
    assert (found.code, found.severity.value, found.line) == (CODE, "warning", 6)
    assert found.message.startswith(
        f"{threads - stay} threads of the CTA ended before this barrier, which is for all {threads}"
    )


@pytest.mark.parametrize("engine", ["auto", "interp", "jit"])
@pytest.mark.parametrize(
    ("barrier", "threads", "stay"),
    [("bar.sync 0;", 64, 64), ("bar.sync 0, 32;", 64, 32), ("bar.sync 1, 64;", 128, 64), ("bar.warp.sync 0xffffffff;", 64, 32)],
)
def test_barriers_of_those_who_come_are_right(barrier, threads, stay, engine):
    assert findings(barrier, threads, stay, engine) == []


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_threads_that_end_after_the_barrier_are_no_finding(engine):
    assert findings("bar.sync 0;", 64, 64, engine, after="setp.ge.u32 p, t, 32; @p ret; bar.warp.sync 0xffffffff;") == []


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_each_barrier_is_told_once(engine):
    assert [found.line for found in findings("bar.sync 0;\nbar.sync 0;\nbar.sync 1;", 64, 32, engine)] == [6, 7, 8]


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_lanes_apart_are_the_error_that_they_were(engine):
    assert [found.code for found in findings("bar.sync 0;", 64, 16, engine)] == ["barrier-divergence"]


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_it_can_be_allowed(engine):
    assert findings("bar.sync 0;", 64, 32, engine, allow=(CODE,)) == []
    assert findings(f"bar.sync 0;  // ptxvm: allow {CODE}\n", 64, 32, engine) == []


def test_without_the_check_nothing_is_said():
    source = """.version 6.5
.target sm_75
.address_size 64
.entry k() { .reg .u32 t; .reg .pred p; mov.u32 t, %tid.x; setp.gt.u32 p, t, 31; @p ret; bar.sync 0; ret; }"""
    assert not ptxvm.load(source).kernel().launch(1, 64, check=["race", "memory", "init"]).findings

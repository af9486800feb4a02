"""Checks of asynchronous copies on the JIT: what is copied is there once its thread has waited (PTX 9.7.9.25.3)."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

HEAD = """
.version 8.7
.target sm_80
.address_size 64
.visible .entry k(.param .u64 data)
{
    .shared .align 16 .b8 s[16384];
    .reg .pred %p, %q; .reg .b32 %t, %own, %other, %wide, %n, %a, %i; .reg .b64 %g, %from, %to, %x;
    ld.param.u64 %g, [data];
    mov.u32 %t, %tid.x;
    mov.u32 %a, s;
    shl.b32 %n, %t, 2;
    add.u32 %own, %a, %n;               // a word of shared memory for each thread
    xor.b32 %other, %n, 4;
    add.u32 %other, %a, %other;         // that of its neighbour
    shl.b32 %wide, %t, 4;
    add.u32 %wide, %a, %wide;           // 16 bytes of each thread
    mul.wide.u32 %from, %t, 16;
    add.u64 %from, %g, %from;           // 16 bytes of the array
    mov.u32 %n, %ctaid.x;
    mad.lo.u32 %n, %n, 256, %t;
    mul.wide.u32 %to, %n, 4;
    add.u64 %to, %to, %g;
    add.u64 %to, %to, 8192;             // a word of the array for each thread of the grid
    setp.lt.u32 %p, %t, 40;
    mov.u32 %i, 0;
"""
CHECKS = ("race", "init", "memory", "sync")
GET = "cp.async.ca.shared.global [%own], [%from], 4;"
DONE = "cp.async.commit_group; cp.async.wait_group 0;"
USE, NEAR = "ld.shared.u32 %a, [%own]; st.global.u32 [%to], %a;", "ld.shared.u32 %a, [%other]; st.global.u32 [%to], %a;"
RING = """
    cp.async.ca.shared.global [%own], [%from], 4; cp.async.commit_group;
    cp.async.ca.shared.global [%own+1024], [%from+4], 4; cp.async.commit_group;
    L: cp.async.wait_group 1; bar.sync 0;
    and.b32 %n, %i, 1; shl.b32 %n, %n, 10; add.u32 %wide, %other, %n;
    ld.shared.u32 %a, [%wide];
    bar.sync 0;
    add.u32 %wide, %own, %n;
    cp.async.ca.shared.global [%wide], [%from+8], 4; cp.async.commit_group;
    add.u32 %i, %i, 1; setp.lt.u32 %q, %i, 5; @%q bra L;
    """
FINE = {
    "own words": GET + DONE + USE,
    "wait_all": GET + "cp.async.wait_all;" + USE,
    "the neighbour's, after a barrier": GET + DONE + "bar.sync 0;" + NEAR,
    "16 bytes": "cp.async.cg.shared.global [%wide], [%from], 16;" + DONE + "ld.shared.v4.u32 {%a, %n, %t, %a}, [%wide];",
    "zeros behind": "cp.async.ca.shared.global [%own], [%from], 4, 0;" + DONE + USE,
    "some ignored": "cp.async.ca.shared.global [%own], [%from], 4, %p;" + DONE + USE,
    "of some lanes": f"@%p {GET} {DONE} @%p ld.shared.u32 %a, [%own];",
    "waits of some lanes": f"@!%p bra M; {GET} {DONE} {USE} M:",
    "the older of two groups": f"{GET} cp.async.commit_group; cp.async.ca.shared.global [%own+1024], [%from], 4; "
    f"cp.async.commit_group; cp.async.wait_group 1; {USE} cp.async.wait_group 0; ld.shared.u32 %a, [%own+1024];",
    "a ring of two buffers": RING,
    "overwritten after the wait": GET + DONE + "st.shared.u32 [%own], 1;" + GET + DONE + USE,
    "gathered": "mul.lo.u32 %n, %t, 5; and.b32 %n, %n, 0xff; shl.b32 %n, %n, 2; add.u32 %own, %a, %n;" + GET + DONE + USE,
    "never waited for": GET,
}
WRONG = {
    "not waited for": GET + USE,
    "not in a group": GET + "cp.async.wait_group 0;" + USE,
    "a barrier does not wait": GET + "cp.async.commit_group; bar.sync 0;" + NEAR,
    "no barrier after the wait": GET + DONE + NEAR,
    "waited for after the barrier": GET + "cp.async.commit_group; bar.sync 0; cp.async.wait_group 0;" + NEAR,
    "the younger of two groups": f"{GET} cp.async.commit_group; cp.async.ca.shared.global [%own+1024], [%from], 4; "
    "cp.async.commit_group; cp.async.wait_group 1; ld.shared.u32 %a, [%own+1024];",
    "a ring that waits for one group less": RING.replace("wait_group 1", "wait_group 2"),
    "a ring without the second barrier": RING.replace("bar.sync 0;\n    add.u32 %wide, %own", "add.u32 %wide, %own"),
    "written while it is copied": GET + "st.shared.u32 [%own], 1;" + DONE,
    "copied where another reads": USE.replace("%own", "%other") + GET + DONE,
    "copied twice": GET + GET + DONE,
    "two threads copy to one word": GET.replace("[%own]", "[s]") + DONE,
    "the source is written": GET + "st.global.u32 [%from], 1;" + DONE,
    "the source is written by others": "bar.sync 0;" + GET + DONE + "bar.sync 0; st.global.u32 [%g], 1;",
    "the source was written by others": "st.global.u32 [%from+16], 1; st.global.u32 [%from], 1;" + GET + DONE,
    "half the bytes without a value": "cp.async.ca.shared.global [%own], [%from], 4;"
    + DONE
    + "ld.shared.u64 %x, [s+4096]; mov.b64 {%a, %n}, %x; add.u32 %a, %a, %n; st.global.u32 [%to], %a;",
    "past the variable": "cp.async.ca.shared.global [%own+16384], [%from], 4;" + DONE,
    "of other lanes": f"@%p {GET} {DONE} @!%p ld.shared.u32 %a, [%own]; @!%p st.global.u32 [%to], %a;",
    "an atomic while it is copied": GET + "red.shared.add.u32 [%own], 1;" + DONE,
}


def launched(body, engine="jit", check=CHECKS, *, block=96, grid=2, **how):
    data = np.arange(8192, dtype=np.uint32)
    kernel = ptxvm.load(HEAD + body + "\nret;\n}\n").kernel()
    result = kernel.launch(grid, block, [data], engine=engine, check=check, **how)
    return [str(each) for each in result.findings], data.tolist()


WIDE, PARTLY = 256, 40  # threads: several warps abreast, and a warp that lacks lanes


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "block"), [*((name, 96) for name in FINE), *((name, n) for name in list(FINE)[-6:] for n in (WIDE, PARTLY))]
)
def test_copies_that_are_waited_for_are_cleared(name, block, quick):
    found, data = launched(FINE[name], block=block)
    assert found == []
    assert quick()
    assert launched(FINE[name], "interp", block=block) == ([], data)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("checks", [("race",), CHECKS], ids=["race", "all"])
@pytest.mark.parametrize("name", WRONG)
def test_others_are_found_as_by_the_interpreter(name, checks, quick):
    found, _ = launched(WRONG[name], check=checks)
    assert quick() == (not found)
    assert found == launched(WRONG[name], "interp", check=checks)[0]
    assert found or "race" in checks


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [*FINE, *WRONG])
def test_bytes_have_a_value_after_the_wait(name, quick):
    body = {**FINE, **WRONG}[name]
    found, _ = launched(body, check=("init",))
    assert found == launched(body, "interp", check=("init",))[0]
    assert not (found and quick())


def test_a_copy_from_past_the_array_is_found(quick):
    body = "cp.async.ca.shared.global [%own], [%from+1048576], 4;" + DONE
    (found,), _ = launched(body, check=("memory",))
    assert not quick()
    assert "reading 4 bytes" in found


def test_a_copy_with_a_part_of_its_source_goes_to_the_exact_checker(quick):
    body = "cp.async.ca.shared.global [%own], [%from], 4, 2;" + DONE + USE
    assert launched(body) == launched(body, "interp")
    assert not quick()


def test_more_copies_than_the_log_holds_go_to_the_exact_checker(quick):
    body = f"L: {GET} add.u32 %own, %own, 384; add.u32 %i, %i, 1; setp.lt.u32 %q, %i, 300; @%q bra L;".replace("384", "0")
    assert launched(body, check=("init",)) == launched(body, "interp", check=("init",))
    assert not quick()


def test_one_run_answers_for_all_schedules(quick):
    assert launched(RING, schedules=10, seed=0)[0] == []
    assert quick()


def test_copies_are_pending_when_epochs_are_numbered_anew(quick, monkeypatch):
    from ptxvm.engine.jit.checks import spare_memory

    monkeypatch.setattr(spare_memory, "START", (1 << 32) - 8 * (1 << 11))
    monkeypatch.setattr(spare_memory, "TAGS", spare_memory.SpareTags())
    for body, cleared in ((RING, True), (GET + "bar.sync 0;" * 9 + NEAR, False)):
        found, _ = launched(body, check=("race",))
        assert quick() == cleared
        assert bool(found) != cleared

"""Summaries: whatever port of the machine an instruction declares, its summary tells what it asks of it.

The conformance files have every instruction that runs, so an instruction that is declared next without a conformance
file is found by `tests/conformance/test_coverage.py`, and one whose summary says nothing is found here.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ptxvm
from ptxvm.analysis.program import Bound
from ptxvm.isa.cta_barrier import aligned, reduction
from ptxvm.isa.effects import Access, Collective, Fence, Jump, Summary, Verb
from ptxvm.isa.fences import proxy_of_fence
from ptxvm.isa.mbarrier import must_not_complete
from ptxvm.isa.model import ISA, Instruction
from ptxvm.isa.summary import only_synchronises_lanes, origins, summary, widens

FILES = sorted((Path(__file__).parents[1] / "conformance").glob("*/*.ptx"))
HEAD = ".version 8.6\n.target sm_90\n.address_size 64\n"


def instructions(text: str) -> Iterator[Bound]:
    """All instructions of a module."""
    for program in ptxvm.load(text).programs:
        for function in program.functions.values():
            yield from function.instructions


def one(line: str, head: str = HEAD) -> Bound:
    """The instruction of a kernel that has one, before its `ret`."""
    declared = ".reg .b32 %r<4>; .reg .b64 %d<4>; .reg .f32 %f<4>; .reg .f64 %e<2>; .reg .pred %p<2>;"
    return next(instructions(f"{head}.visible .entry k() {{ {declared} {line} ret; }}"))


def says_something(port: str, found: Summary) -> bool:
    """Does the summary tell what is asked of a port?"""
    match port:
        case "mem":
            return bool(
                found.accesses
                or found.fences
                or found.converts_address
                or found.grows_stack
                or found.hints
                or found.maps_cluster
            )
        case "flow":
            return found.jump is not None
        case "warp" | "cta" | "cluster":
            return found.collective is not None or found.reads_lane or found.maps_cluster
        case "tasks":
            return found.copies
        case "tex":
            return bool(found.accesses) or found.asks_textures
        case "tmem":
            return found.uses_tensor_memory
        case "clock":
            return found.sleeps
        case "waits":
            return found.waits
    return port == "cc"


@pytest.fixture(scope="module")
def summarised() -> dict[Instruction, list[Summary]]:
    """The summaries of all instructions of the conformance files, by their declarations."""
    found: dict[Instruction, list[Summary]] = {}
    for path in FILES:
        try:
            code = list(instructions(path.read_text()))
        except (ptxvm.InvalidPTX, ptxvm.Unsupported):
            continue  # a file about what is refused
        for bound in code:
            found.setdefault(bound.i.of, []).append(summary(bound.i))
    return found


def test_every_port_is_told(summarised: dict[Instruction, list[Summary]]) -> None:
    silent = {
        f"{of.name}: {port}"
        for of, all_of_it in summarised.items()
        for port in of.effects
        if not all(says_something(port, each) for each in all_of_it)
    }
    assert silent == set()


def test_instructions_without_effect_say_so(summarised: dict[Instruction, list[Summary]]) -> None:
    """Hints, breakpoints, events and sleeps do nothing that a program can see; the reference page says it of each."""
    idle = {
        of
        for of, found in summarised.items()
        if all(each.hints or each.sleeps or each.jump in (Jump.BREAKPOINT, Jump.EVENT) for each in found)
    }
    assert {"brkpt", "nanosleep", "pmevent", "prefetch", "applypriority", "discard"} <= {of.name for of in idle}
    assert {of.name for of in idle if "in ptxvm" not in (of.meaning.__doc__ or "").lower()} == set()


def test_most_of_the_catalog_is_seen(summarised: dict[Instruction, list[Summary]]) -> None:
    """The test above did not lose the instructions: those with ports that no conformance file runs are known."""
    lacking = {of.name for of in ISA.instructions if of.effects - {"cc"} and of not in summarised}
    assert len(lacking) < 0.2 * len(ISA.instructions), sorted(lacking)


def test_an_instruction_that_moves_data_does_nothing_else(summarised: dict[Instruction, list[Summary]]) -> None:
    moving = {of: {access.verb for each in found for access in each.accesses} for of, found in summarised.items() if of.moves}
    assert {of.name for of in moving} == {"ld", "ld_global_nc", "ldu", "st"}
    assert all(verbs == {of.moves} and of.effects == {"mem"} for of, verbs in moving.items())


@pytest.mark.parametrize(
    ("line", "expected"),
    [  # the manual's words for each: PTX 9.7.9.8, 9.7.9.11, 9.7.13.5, 9.7.13.6
        ("ld.global.u32 %r1, [%d1];", ["read global u32 x1 weak"]),
        ("ld.volatile.global.u32 %r1, [%d1];", ["read global u32 x1 volatile"]),
        ("ld.acquire.gpu.u32 %r1, [%d1];", ["read generic u32 x1 acquire"]),
        ("ld.shared.v2.f32 {%f1, %f2}, [%r1];", ["read shared f32 x2 weak"]),
        ("st.release.sys.global.u32 [%d1], %r1;", ["write global u32 x1 release"]),
        ("atom.global.add.u32 %r1, [%d1], %r2;", ["atomic global u32 x1 relaxed"]),
        ("red.shared.max.u32 [%r1], %r2;", ["atomic shared u32 x1 relaxed"]),
        ("cp.async.ca.shared.global [%r1], [%d1], 4;", ["read global - x1 weak", "write shared - x1 weak"]),
        ("add.u32 %r1, %r2, %r3;", []),
    ],
)  # fmt: skip
def test_accesses(line: str, expected: list[str]) -> None:
    def shown(access: Access) -> str:
        return f"{access.verb.value} {access.space} {access.type.name if access.type else '-'} x{access.count} {access.order}"

    assert [shown(access) for access in summary(one(line).i).accesses] == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [  # PTX 9.7.13.4: the order, or what a partial fence is for, and the scope that the words say
        ("fence.mbarrier_init.release.cluster;", Fence("mbarrier_init", "cluster")),
        ("fence.acquire.sync_restrict::shared::cluster.cluster;", Fence("acquire", "cluster")),
        ("fence.release.sync_restrict::shared::cta.cluster;", Fence("release", "cluster")),
        ("fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;", Fence("acquire", "cluster")),
    ],
)
def test_fences(line: str, expected: Fence) -> None:
    assert summary(one(line).i).fences == (expected,)


def test_steps_between_grids_are_fences() -> None:
    """PTX 9.7.13.13: the wait acquires what the grids before have written."""
    assert summary(one("griddepcontrol.wait;").i).fences == (Fence("wait", "sys"), Fence("acquire", "sys"))
    assert summary(one("griddepcontrol.launch_dependents;").i).fences == (Fence("launch_dependents", "sys"),)


def test_a_register_of_several_elements_is_stored_whole() -> None:
    """PTX 5.4.2"""
    (access,) = summary(one(".reg .v2 .f32 %v; st.global.v2.f32 [%d1], %v;").i).accesses
    assert (access.space, access.count) == ("global", 2)


@pytest.mark.parametrize(
    ("line", "expected"),
    [("bar.warp.sync -1;", True), ("vote.sync.ballot.b32 %r1, %p1, -1;", False), ("bar.sync 0;", False)],
)
def test_what_only_waits_for_lanes(line: str, expected: bool) -> None:
    """PTX 9.7.13.2"""
    assert only_synchronises_lanes(one(line).i) is expected


def test_what_arrivals_and_barriers_say() -> None:
    """PTX 9.7.13.1, 9.7.13.15.13"""
    assert must_not_complete(one("mbarrier.arrive.noComplete.b64 %d1, [%d2], 1;").i)
    assert not must_not_complete(one("mbarrier.arrive.b64 %d1, [%d2];").i)
    lines = ("bar.red.popc.u32 %r1, 0, %p1;", "bar.red.or.pred %p1, 0, %p1;", "bar.sync 0;")
    assert [reduction(one(line).i) for line in lines] == ["popc", "or", ""]


@pytest.mark.parametrize(
    ("line", "pair", "copies"),
    [
        ("tcgen05.shift.cta_group::1.down [%r1];", False, False),
        ("tcgen05.shift.cta_group::2.down [%r1];", True, False),
        ("tcgen05.commit.cta_group::1.mbarrier::arrive::one.multicast::cluster.b64 [%d1], 3;", False, True),
        ("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r1], 3;", True, True),
    ],
)
def test_pairs_of_ctas_see_the_memory_of_the_cluster(line: str, pair: bool, copies: bool) -> None:
    """PTX 9.7.16.5, 9.7.16.12.1: the pair, and the CTAs of a mask, are of one cluster."""
    found = summary(one(line, HEAD.replace("sm_90", "sm_100a")).i)
    assert found.uses_tensor_memory
    assert found.copies is copies
    assert found.maps_cluster or not pair


def test_fences_jumps_and_collectives() -> None:
    assert summary(one("fence.acq_rel.gpu;").i).fences == (Fence("acq_rel", "gpu"),)
    assert summary(one("exit;").i).jump is Jump.EXIT
    assert summary(one("exit;").i).ends_thread
    assert summary(one("bar.sync 0;").i).collective is Collective.BARRIER
    assert summary(one("bar.arrive 0, 32;").i).collective is Collective.ARRIVAL
    assert not summary(one("bar.arrive 0, 32;").i).waits
    shuffle = summary(one("shfl.sync.idx.b32 %r1, %r2, 0, 31, -1;").i)
    assert (shuffle.collective, shuffle.waits) == (Collective.LANES, True)
    assert summary(one("activemask.b32 %r1;").i).collective is Collective.ACTIVE_LANES


@pytest.mark.parametrize(
    ("line", "operands", "unchanged"),
    [
        ("add.u64 %d1, %d2, %d3;", "ab", False),
        ("sub.u64 %d1, %d2, %d3;", "a", False),
        ("mad.lo.u64 %d1, %d2, %d3, %d1;", "c", False),
        ("mov.u64 %d1, %d2;", "a", True),
        ("cvt.u64.u32 %d1, %r1;", "a", False),
        ("cvta.global.u64 %d1, %d2;", "a", False),
        ("selp.u64 %d1, %d2, %d3, %p1;", "ab", True),
        ("and.b64 %d1, %d2, %d3;", "ab", False),
        ("shl.b64 %d1, %d2, 3;", "", False),
        ("xor.b64 %d1, %d2, %d3;", "", False),
        ("mul.lo.u64 %d1, %d2, %d3;", "", False),
        ("ld.global.u64 %d1, [%d2];", "", False),
    ],
)
def test_origins_of_results(line: str, operands: str, *, unchanged: bool) -> None:
    """What a result is an offset from, by what the instruction computes (PTX 9.7.1, 9.7.9)."""
    assert [(each.operands, each.unchanged) for each in origins(one(line).i)] == [(frozenset(operands), unchanged)]


@pytest.mark.parametrize(
    ("line", "chosen"),
    [
        ("selp.u64 %d1, %d2, %d3, %p1;", True),
        ("min.u64 %d1, %d2, %d3;", True),
        ("add.u64 %d1, %d2, %d3;", False),
    ],
)
def test_choices(line: str, *, chosen: bool) -> None:
    """Which operand a result is an offset from, only a run tells (PTX 9.7.6.3, 9.7.1.11)."""
    (origin,) = origins(one(line).i)
    assert origin.chosen is chosen


def test_a_sum_reads_the_carry_where_its_opcode_says_so() -> None:
    """PTX 9.7.2: add.cc writes CC.CF, addc reads it."""
    assert [summary(one(line).i).reads_carry for line in ("add.cc.u32 %r1, %r2, %r3;", "addc.u32 %r1, %r2, %r3;")] == [
        False,
        True,
    ]


COPIED_MAP = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"


@pytest.mark.parametrize(
    ("line", "proxy"),
    [
        ("fence.proxy.async;", "async"),
        ("fence.proxy.alias;", "alias"),
        ("fence.proxy.tensormap::generic.release.gpu;", "tensormap"),
        (f"{COPIED_MAP} [%d1], [%d2], 128;", "tensormap"),
        ("fence.acq_rel.gpu;", None),
    ],
)
def test_proxies_of_fences(line: str, proxy: str | None) -> None:
    assert proxy_of_fence(one(line).i) == proxy


def test_barriers_for_whole_warps() -> None:
    """`bar` is `barrier` with .aligned (PTX 9.7.13.1)."""
    lines = ("bar.sync 0;", "barrier.sync.aligned 0;", "barrier.sync 0;")
    assert [aligned(one(line).i) for line in lines] == [True, True, False]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("mul.wide.u32 %d1, %r1, %r2;", True),
        ("mad.wide.s32 %d1, %r1, %r2, %d2;", True),
        ("cvt.u64.u32 %d1, %r1;", True),
        ("cvt.u32.u64 %r1, %d1;", False),
        ("cvt.rn.f64.u32 %e1, %r1;", False),
        ("add.u64 %d1, %d2, %d3;", False),
    ],
)
def test_extensions_from_32_to_64_bits(line: str, *, expected: bool) -> None:
    assert widens(one(line).i) is expected


def test_an_update_is_both() -> None:
    found = summary(one("atom.global.exch.b32 %r1, [%d1], %r2;").i)
    assert found.reads
    assert found.writes
    assert found.having(Verb.UPDATE)[0].operation == "exch"


def test_what_calls_is_known_before_anything_was_recognised():
    """In a process of its own: here the instructions are there already (PTX 9.7.12.5)."""
    asked = "from ptxvm.isa.summary import calls; print(calls('call'), calls('add'))"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]

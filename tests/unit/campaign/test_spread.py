"""Grids in ranges of CTAs: what is joined is what one launch leaves, and what is no such grid is named."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from struct import pack

import numpy as np
import pytest
from this_process import InThisProcess

import ptxvm
from ptxvm.campaign import spread as module
from ptxvm.campaign.obstacles import obstacle
from ptxvm.campaign.own_slices import Slice
from ptxvm.campaign.shared_file import SharedFile
from ptxvm.campaign.work_sharing import WorkSharing
from ptxvm.campaign.worker_process import KEPT, close_kept
from ptxvm.engine.interception import intercepted
from ptxvm.machine.launch import launch_shape

SAXPY = Path(__file__).parents[3] / "examples" / "saxpy.ptx"
HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
KERNEL = """.visible .entry k(.param .u64 a)
{{
    .reg .u64 %p<4>; .reg .u32 %r<6>; .reg .pred %q;
    ld.param.u64 %p0, [a]; mov.u32 %r0, %ctaid.x; mad.wide.u32 %p1, %r0, 4, %p0;
    {}
    ret;
}}
"""


def spread(body: str, words: int = 64, ctas: int = 64) -> tuple[module.SpreadLaunch, np.ndarray]:
    """Run a kernel in four ranges; gives what it left in an array, which holds its indices before."""
    array = np.arange(words, dtype=np.uint32)
    return ptxvm.spread(ptxvm.load(HEAD + KERNEL.format(body)).kernel(), ctas, 1, [array], workers=2), array


def test_processes_leave_what_one_launch_does(rng: np.random.Generator) -> None:
    n = 3000
    x, y = rng.random(n, np.float32), rng.random(n, np.float32)
    expected = y + np.float32(2) * x
    found = ptxvm.spread(ptxvm.load(SAXPY).kernel(), 30, 128, [n, 2.0, x, y], workers=2)
    assert (found.reason, found.ranges) == ("", (range(8), range(8, 16), range(16, 24), range(24, 30)))
    assert np.allclose(y, expected, rtol=1e-6)
    assert found.result.grid == (30, 1, 1)


def test_processes_stay_for_the_next_launch_with_its_arrays_and_variables() -> None:
    """Two processes run three launches: sums of an array and a variable that the host changes, then gives its first value."""
    close_kept()
    body = "ld.const.u32 %r1, [c]; ld.global.u32 %r2, [%p1]; add.u32 %r1, %r1, %r2; st.global.u32 [%p1], %r1;"
    grid = ptxvm.load(HEAD + ".const .u32 c = 1;\n" + KERNEL.format(body))
    processes = []
    for constant in (1, 100, 1):
        grid.symbol("c")[...] = constant
        array = np.arange(64, dtype=np.uint32)
        assert ptxvm.spread(grid.kernel(), 64, 1, [array], workers=2).reason == ""
        assert array.tolist() == [n + constant for n in range(64)]
        processes.append([each.process.pid for each in KEPT[os.getpid()]])
    assert processes[0] == processes[1] == processes[2] != []


def test_what_this_process_writes_goes_through_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one process all arrays of results stay where its ranges have written them."""
    written: list[int] = []
    write = SharedFile.write
    monkeypatch.setattr(
        SharedFile, "write", lambda self, n, at, values: written.append(len(values)) or write(self, n, at, values)
    )
    array, grid = np.zeros(4096, np.uint32), ptxvm.load(HEAD + KERNEL.format("st.global.u32 [%p1], %r0;")).kernel()
    found = ptxvm.spread(grid, 4096, 1, [array], workers=1)
    assert len(found.ranges) > 1
    assert array.tolist() == [*range(4096)]
    assert sum(written) == 0


@pytest.mark.usefixtures("in_this_process")
def test_each_range_writes_its_own() -> None:
    """CTA i writes 7 i to element i."""
    found, array = spread("mul.lo.u32 %r1, %r0, 7; st.global.u32 [%p1], %r1;")
    assert found.ranges == (range(16), range(16, 32), range(32, 48), range(48, 64))
    assert array.tolist() == [7 * n for n in range(64)]
    assert not found.result.findings


@pytest.mark.usefixtures("in_this_process")
def test_ranges_that_write_a_byte_differently_race() -> None:
    """CTAs i and i + 32 write to element i, each its own number; nothing is joined."""
    found, array = spread("and.b32 %r1, %r0, 31; mad.wide.u32 %p2, %r1, 4, %p0; st.global.u32 [%p2], %r0;")
    (finding,) = found.result.findings
    assert (finding.kind, finding.space) == ("race", "global")
    assert "CTAs 0 to 15 and CTAs 32 to 47 write different values to byte 0 of argument 0" in finding.message
    assert array.tolist() == list(range(64))


@pytest.mark.usefixtures("in_this_process")
def test_the_byte_that_races_counts_from_the_start_of_the_array() -> None:
    """All ranges write elements 16 to 31."""
    found, _ = spread("and.b32 %r1, %r0, 15; mad.wide.u32 %p2, %r1, 4, %p0; st.global.u32 [%p2+64], %r0;")
    assert "CTAs 0 to 15 and CTAs 16 to 31 write different values to byte 64 of argument 0" in found.result.findings[0].message


@pytest.mark.usefixtures("in_this_process")
def test_ranges_that_write_the_same_are_joined() -> None:
    found, array = spread("and.b32 %r1, %r0, 31; mad.wide.u32 %p2, %r1, 4, %p0; st.global.u32 [%p2], 5;")
    assert not found.result.findings
    assert array.tolist() == [5] * 32 + list(range(32, 64))


@pytest.mark.usefixtures("in_this_process")
def test_a_range_that_reads_what_another_writes_races() -> None:
    """CTA i writes element i, and those of the first range read 32 elements further on: of the third."""
    body = "setp.lt.u32 %q, %r0, 16; @%q ld.global.u32 %r1, [%p1+128]; st.global.u32 [%p1], %r0;"
    found, array = spread(body)
    (finding,) = found.result.findings
    assert "byte 128 of argument 0 is read by CTAs 0 to 15 and written by CTAs 32 to 47" in finding.message
    assert array.tolist() == list(range(64))


@pytest.mark.usefixtures("in_this_process")
def test_an_array_that_is_read_through_another_pointer_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guess that an array is only written is wrong here: all ranges run again, with its contents."""
    monkeypatch.setattr(module, "outputs", lambda function: {None: function.signature.parameters[0]})
    found, array = spread("ld.global.u32 %r1, [%p1]; add.u32 %r1, %r1, 1; st.global.u32 [%p1], %r1;")
    assert not found.reason
    assert array.tolist() == list(range(1, 65))


@pytest.mark.usefixtures("in_this_process")
def test_an_array_that_is_written_through_another_pointer_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guess that an array is only read is wrong here: all ranges run again, and find the race."""
    monkeypatch.setattr(module, "outputs", lambda _: {})
    monkeypatch.setattr(module, "written_parameters", lambda _: set())
    found, array = spread("st.global.u32 [%p1], %r0;")
    assert (found.reason, array.tolist()) == ("", list(range(64)))
    found, _ = spread("st.global.u32 [%p0], %r0;")
    assert "write different values to byte 0 of argument 0" in found.result.findings[0].message


@pytest.mark.usefixtures("in_this_process")
def test_a_grid_that_changes_a_variable_runs_whole() -> None:
    body = "mov.u64 %p2, v; st.global.u32 [%p2], 5; st.global.u32 [%p1], 7;"
    array = np.zeros(64, np.uint32)
    found = ptxvm.spread(ptxvm.load(HEAD + ".global .u32 v;\n" + KERNEL.format(body)).kernel(), 64, 1, [array], workers=2)
    assert found.reason == "it writes to `v` (4 bytes, a variable)"
    assert array.tolist() == [7] * 64


@pytest.mark.usefixtures("in_this_process")
def test_ranges_read_variables_as_they_are_in_this_process() -> None:
    """The host has changed `c` and `v`; `p` has an address, which each process has its own of."""
    body = """ld.const.u32 %r1, [c+4]; mov.u64 %p2, p; ld.global.u64 %p2, [%p2]; ld.global.u32 %r2, [%p2+4];
        add.u32 %r1, %r1, %r2; st.global.u32 [%p1], %r1;"""
    variables = ".const .u32 c[2] = {1, 2};\n.global .u32 v[2];\n.global .u64 p = v;\n"
    whole, array = (np.zeros(64, np.uint32) for _ in range(2))
    grid = ptxvm.load(HEAD + variables + KERNEL.format(body))
    for name, value in (("c", 20), ("v", 500)):
        grid.symbol(name)[1] = value
    grid.kernel().launch(64, 1, [whole])
    found = ptxvm.spread(grid.kernel(), 64, 1, [array], workers=2)
    assert found.reason == ""
    assert array.tolist() == whole.tolist() == [520] * 64


@pytest.mark.usefixtures("in_this_process")
def test_a_part_of_a_large_array() -> None:
    """CTA i adds i to element i, and copies the element 2^20 further on to where it was plus 64."""
    body = """ld.global.u32 %r1, [%p1]; add.u32 %r1, %r1, %r0; st.global.u32 [%p1], %r1;
        ld.global.u32 %r2, [%p1+4194304]; st.global.u32 [%p1+256], %r2;"""
    found, array = spread(body, 1 << 22)
    assert (found.reason, found.result.findings) == ("", [])
    wanted = np.arange(1 << 22, dtype=np.uint32)
    wanted[:64] *= 2
    wanted[64:128] = range(1 << 20, (1 << 20) + 64)
    assert np.array_equal(array, wanted)


@pytest.mark.parametrize("ctas", [1, 5, 64, 65, 1000, 1025, 65_536, 1_000_003])
@pytest.mark.parametrize("workers", [1, 2, 7])
def test_ranges_are_ever_smaller(ctas: int, workers: int) -> None:
    """Each CTA is in one range; the last ranges are small, and there are few of them."""
    found = module.cut(ctas, workers, ctas)
    assert [n for each in found for n in each] == list(range(ctas))
    sizes = [len(each) for each in found]
    assert sizes == sorted(sizes, reverse=True)
    assert min(2 * workers, ctas) - 1 <= len(found) <= 12 * workers + 8
    assert sizes[-1] <= max(module.FEW, ctas // (module.LAST * workers))


def test_no_range_is_larger_than_what_it_may_have() -> None:
    assert [len(each) for each in module.cut(10_000, 1, 1_000)] == [1_000] * 9 + [500, 312, 188]


@pytest.mark.parametrize("line", [
    "txq.width.b32 %r1, [t];", "tex.1d.v4.u32.s32 {%r1, %r2, %r3, %r4}, [t, {%r0}];", "suld.b.1d.b32.trap %r1, [s, {%r0}];",
])  # fmt: skip
def test_a_grid_that_reads_a_texture_runs_whole(line: str) -> None:
    """`ld.global.nc` goes by the caches of textures, and reads an array all the same."""
    text = f"{HEAD}.global .texref t;\n.global .surfref s;\n{KERNEL}"
    array = np.zeros(64, np.uint32)
    said = obstacle(ptxvm.load(text.format(line)).kernel(), [array])
    assert "uses a texture, a sampler or a surface" in said
    assert not obstacle(ptxvm.load(text.format("ld.global.nc.u32 %r1, [%p1];")).kernel(), [array])


@pytest.mark.usefixtures("in_this_process")
def test_the_fault_of_the_first_cta_is_raised() -> None:
    """Elements from 33 on are past the end."""
    with pytest.raises(ptxvm.Fault, match="out-of-bounds") as caught:
        spread("st.global.u32 [%p1+128], %r0;", 65)
    assert caught.value.place.cta == (33, 0, 0)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("red.global.inc.u32 [%p0], 9;", "'red.global.inc.u32' at line 8 is an atomic operation on memory that all CTAs share"),
        (
            "atom.global.add.u32 %r1, [%p0], 1; st.global.u32 [%p1+64], %r1;",
            "is an atomic operation on memory that all CTAs share",
        ),
        ("red.global.add.u32 [%p0], 1; red.global.max.u32 [%p0], 1;", "is an atomic operation on memory that all CTAs share"),
        ("red.global.add.u32 [%p0], 1; ld.global.u32 %r1, [%p1];", "is an atomic operation on memory that all CTAs share"),
        ("ld.global.u64 %p2, [%p0]; red.global.add.u32 [%p2], 1;", "is an atomic operation on memory that all CTAs share"),
        ("red.global.add.u64 [%p0], 1;", "argument 0 does not consist of the elements of its atomic operations"),
        ("ld.acquire.gpu.global.u32 %r1, [%p0];", "is ordered with accesses of other CTAs"),
        ("barrier.cluster.arrive; barrier.cluster.wait;", "has effects beyond its CTA"),
        ("W: ld.volatile.global.u32 %r1, [%p0]; setp.eq.u32 %q, %r1, 0; @!%q bra W;", "waits for what another thread writes"),
    ],
)
def test_what_may_depend_on_other_ctas_is_not_cut(body: str, said: str) -> None:
    text = (HEAD + KERNEL.format(body)).replace("sm_80", "sm_90")
    assert said in obstacle(ptxvm.load(text).kernel(), [np.zeros(5, np.uint32)])


def test_arguments_that_cannot_be_copied_are_named() -> None:
    kernel, x = ptxvm.load(SAXPY).kernel(), np.ones(8, np.float32)
    assert obstacle(kernel, [4, 2.0, x[:4], x[2:]]) == "arguments 2 and 3 may overlap"
    elsewhere = ptxvm.devices(2)[1].array(4)
    assert obstacle(kernel, [4, 2.0, elsewhere, x]) == "argument 2 is no array, number or bytes"


WORDS = {
    "number": int, "array": lambda address: np.array([7, address], np.int64),
    "structure": lambda address: bytes(8) + pack("Q", address),
}  # fmt: skip


@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
def test_an_address_that_is_no_array_is_named(words: Callable[[int], object]) -> None:
    """A range would find nothing there, or what was there before."""
    kernel, there = ptxvm.load(HEAD + KERNEL.format("")).kernel(), ptxvm.DeviceArray(4)
    assert obstacle(kernel, [words(there.address + 8)]) == f"argument 0 holds an address, of {there.allocation}"
    assert not obstacle(kernel, [words(there.address - 1)])
    host = np.zeros(8, np.uint32)
    assert obstacle(kernel, [words(host.ctypes.data), host]) == "argument 0 holds an address, of argument 1"


@pytest.mark.usefixtures("in_this_process")
def test_memory_whose_address_the_kernel_finds_runs_the_grid_whole() -> None:
    """The address is in a variable of the module: each CTA adds one there, and none does so twice."""
    there = ptxvm.DeviceArray(64, np.uint32)
    body = """mov.u64 %p2, at; ld.global.u64 %p2, [%p2]; mul.wide.u32 %p3, %r0, 4; add.u64 %p2, %p2, %p3;
        ld.global.u32 %r1, [%p2]; add.u32 %r1, %r1, 1; st.global.u32 [%p2], %r1; st.global.u32 [%p1], %r1;"""
    grid, array = ptxvm.load(HEAD + ".global .u64 at;\n" + KERNEL.format(body)), np.zeros(64, np.uint32)
    grid.symbol("at")[...] = there.address
    found = ptxvm.spread(grid.kernel(), 64, 1, [array], workers=2)
    assert found.reason == f"it accesses {there.allocation}, which is no argument"
    assert array.tolist() == there.copy_to_host().tolist() == [1] * 64


def test_an_address_that_is_stored_is_named() -> None:
    found, array = spread("mul.wide.u32 %p2, %r0, 8; add.u64 %p2, %p2, %p0; st.global.u64 [%p2], %p2;", 128)
    assert found.reason == "'st.global.u64' at line 8 stores an address, which other processes do not share"
    assert array.view(np.uint64).tolist() == [array.ctypes.data + 8 * n for n in range(64)]


@pytest.mark.usefixtures("in_this_process")
def test_arrays_of_the_device_are_cut() -> None:
    array = ptxvm.DeviceArray.from_host(np.arange(64, dtype=np.uint32))
    body = "ld.global.u32 %r1, [%p1]; mul.lo.u32 %r1, %r1, 3; st.global.u32 [%p1], %r1;"
    found = ptxvm.spread(ptxvm.load(HEAD + KERNEL.format(body)).kernel(), 64, 1, [array], workers=2)
    assert (found.reason, len(found.ranges)) == ("", 4)
    assert array.copy_to_host().tolist() == [3 * n for n in range(64)]


@pytest.mark.parametrize("body", [
    "mul.wide.u32 %p2, %r0, 16; add.u64 %p2, %p2, %p0; st.global.v2.u32 [%p2], {%r0, %r0};",
    "ld.global.v2.u32 {%r1, %r2}, [%p0]; st.global.u32 [%p1+8], %r2;",
    "ld.global.v2.u32 {%r1, %r2}, [%p0]; setp.eq.u32 %q, %r1, 77; @%q st.global.u32 [%p1+8], %r2;",
])  # fmt: skip
@pytest.mark.parametrize("processes", [1, 2])
def test_a_range_has_its_arrays_as_aligned_as_they_are(body: str, processes: int) -> None:
    """PTX 6.4.1: the address of an access is a multiple of its size, here 8, and that of the array is not."""
    array = np.arange(1025, dtype=np.uint32)
    odd = array[1:] if array.ctypes.data % 8 == 0 else array[:-1]
    with pytest.raises(ptxvm.Fault, match="a multiple of 8, and this is byte 0 of `a`"):
        ptxvm.spread(ptxvm.load(HEAD + KERNEL.format(body)).kernel(), 64, 1, [odd], workers=processes)


@pytest.mark.usefixtures("in_this_process")
def test_all_ranges_are_of_one_grid() -> None:
    """PTX 10.10: %gridid is that of the grid, and another one in the next."""
    numbers = []
    for _ in range(2):
        found, array = spread("mov.u64 %p2, %gridid; cvt.u32.u64 %r1, %p2; st.global.u32 [%p1], %r1;")
        assert len(found.ranges) == 4
        numbers += np.unique(array).tolist()
    assert len(numbers) == len({*numbers}) == 2


@pytest.mark.usefixtures("in_this_process")
def test_a_grid_that_is_debugged_runs_whole() -> None:
    kernel = ptxvm.load(HEAD + KERNEL.format("")).kernel()
    with intercepted(lambda *_: None):
        assert obstacle(kernel, [np.zeros(64, np.uint32)]) == "the debugger runs it"


SUMS = {
    ("add", "u32"): lambda a, b: (a + b) % 2**32, ("add", "s32"): lambda a, b: (a + b + 2**31) % 2**32 - 2**31,
    ("add", "u64"): lambda a, b: (a + b) % 2**64, ("and", "b32"): lambda a, b: a & b, ("or", "b32"): lambda a, b: a | b,
    ("xor", "b64"): lambda a, b: a ^ b, ("min", "s32"): min, ("max", "u32"): max, ("min", "u64"): min, ("max", "s64"): max,
    ("add", "f32"): lambda a, b: a + b, ("add", "f64"): lambda a, b: a + b,
}  # fmt: skip


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize(("operation", "type"), SUMS, ids=".".join)
@pytest.mark.parametrize("form", ["red.global.{}.{} [%q1], %v;", "atom.global.{}.{} %w, [%q1], %v;"])
def test_reductions_are_joined(operation: str, type: str, form: str, rng: np.random.Generator) -> None:
    """CTA i adds element i of one array to element i % 7 of another; the elements behind stay, a negative zero too."""
    held = np.dtype({"b": "u", "u": "u", "s": "i", "f": "f"}[type[0]] + str(int(type[1:]) // 8))
    text = (
        HEAD
        + f""".visible .entry k(.param .u64 a, .param .u64 b)
{{
    .reg .u64 %p<4>; .reg .u64 %q<4>; .reg .u32 %r<6>; .reg .{type} %v, %w;
    ld.param.u64 %p0, [a]; ld.param.u64 %q0, [b]; mov.u32 %r0, %ctaid.x; mad.wide.u32 %p1, %r0, {held.itemsize}, %p0;
    rem.u32 %r1, %r0, 7; mad.wide.u32 %q1, %r1, {held.itemsize}, %q0;
    ld.global.{type} %v, [%p1];
    {form.format(operation, type)}
    ret;
}}
"""
    )
    whole = rng.integers(0, 1000, 64) if type[0] == "f" else rng.integers(0, 2 ** int(type[1:]), 64, np.uint64, endpoint=False)
    a = whole.astype(held) if type[0] == "f" else whole.astype(f"u{held.itemsize}").view(held)
    b = a[:9].copy()
    b[7:] = -0.0 if type[0] == "f" else b[7:]
    wanted = b.tolist()
    for n, value in enumerate(a.tolist()):
        wanted[n % 7] = SUMS[operation, type](wanted[n % 7], value)
    found = ptxvm.spread(ptxvm.load(text).kernel(), 64, 1, [a, b], workers=2)
    assert (found.reason, len(found.ranges), found.result.findings) == ("", 4, [])
    assert b.tobytes() == np.array(wanted, held).tobytes()


@pytest.mark.usefixtures("in_this_process")
def test_ctas_that_write_the_same_are_joined_whatever_range_they_are_in() -> None:
    found, array = spread("st.global.u32 [%p0], 9;")
    assert (found.reason, len(found.ranges), found.result.findings) == ("", 4, [])
    assert array.tolist() == [9, *range(1, 64)]


SLICES = """
.visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n)
{{
    .reg .u64 %p<6>; .reg .u32 %r<6>; .reg .pred %q;
    ld.param.u64 %p0, [a]; ld.param.u64 %p1, [b]; ld.param.u32 %r4, [n];
    mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r3, %r0, %r1, %r2;
    mul.wide.u32 %p2, %r3, 4; add.u64 %p3, %p0, %p2; add.u64 %p4, %p1, %p2;
    ld.global.u32 %r5, [%p4]; setp.ge.u32 %q, %r3, %r4;
    {}
    st.global.u32 [%p3], %r5;
    ret;
}}
"""


@pytest.mark.parametrize(("guard", "left"), [("", 4096), ("@%q ret;", 1000)])
def test_processes_write_slices_of_their_own(guard: str, left: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Array b is copied to a, up to element n under a guard: then other processes record what they write."""
    recorded = list[tuple[frozenset[int], list[int]]]()
    monkeypatch.setattr(
        module, "WorkSharing",
        lambda theirs, processes, limits, own: (
            recorded.append((own.direct, theirs.recorded)), WorkSharing(theirs, processes, limits, own)
        )[1],
    )  # fmt: skip
    a, b = np.full(4096, 7, np.uint32), np.arange(4096, dtype=np.uint32)
    found = ptxvm.spread(ptxvm.load(HEAD + SLICES.format(guard)).kernel(), 64, 64, [a, b, left], workers=2)
    assert (found.reason, found.result.findings) == ("", [])
    assert a.tolist() == [*range(left), *[7] * (4096 - left)]
    assert recorded == [(frozenset([0]), [0] if guard else [])]


@pytest.mark.parametrize(("guard", "left"), [("", 4096), ("@%q ret;", 1000)])
def test_what_another_process_writes_comes_by_the_file(guard: str, left: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All ranges run as they would in another process; each of them is taken before the next one has begun."""
    monkeypatch.setattr(module, "WorkSharing", lambda theirs, *_: InThisProcess(theirs))
    a, b, seen, taken = np.full(4096, 7, np.uint32), np.arange(4096, dtype=np.uint32), list[int](), module.take_slices
    monkeypatch.setattr(
        module, "take_slices", lambda found, *more: (taken(found, *more), seen.append(int((a == b).sum())))
    )  # fmt: skip
    found = ptxvm.spread(ptxvm.load(HEAD + SLICES.format(guard)).kernel(), 64, 64, [a, b, left], workers=2)
    assert a.tolist() == [*range(left), *[7] * (4096 - left)]
    assert seen == [min(64 * each.stop, left) for each in found.ranges]


@pytest.mark.usefixtures("in_this_process")
def test_a_worker_elsewhere_sends_its_slices() -> None:
    """A worker of a cluster, which has no file of this process, does not record them either."""
    a, b = np.full(4096, 7, np.uint32), np.arange(4096, dtype=np.uint32)
    kernel = ptxvm.load(HEAD + SLICES.format("")).kernel()
    found = ptxvm.spread(kernel, 64, 64, [a, b, 0], scheduler="tcp://nowhere:1")
    assert len(found.ranges) > 1
    assert a.tolist() == b.tolist()


@pytest.mark.usefixtures("in_this_process")
def test_an_array_without_elements_has_no_slices_to_write() -> None:
    a, b = np.zeros(0, np.uint32), np.arange(4096, dtype=np.uint32)
    found = ptxvm.spread(ptxvm.load(HEAD + SLICES.format("@%q ret;")).kernel(), 64, 64, [a, b, 0], workers=2)
    assert (found.reason, found.result.findings, len(found.ranges)) == ("", [], 4)


def test_arrays_that_cannot_be_written_directly_are_recorded() -> None:
    """One that is not contiguous; one whose slices go on into another array; one that cannot be written."""
    kernel, both = ptxvm.load(HEAD + SLICES.format("@%q ret;")).kernel(), np.zeros(8192, np.uint32)
    shape = launch_shape(64, 64)
    assert module.slices_of(kernel, shape, [both[:4096], both[4096:], 9]) == {0: Slice(0, 256, whole=False)}
    assert module.slices_of(kernel, shape, [both[:4095], both[4095:], 9]) == {}
    assert module.slices_of(kernel, shape, [np.zeros(8192, np.uint32)[::2], both, 9]) == {}
    fixed = np.zeros(4096, np.uint32)
    fixed.flags.writeable = False
    assert module.slices_of(kernel, shape, [fixed, both, 9]) == {}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_fault_in_a_slice_is_that_of_a_launch(workers: int) -> None:
    """The array that is read ends before the last CTA."""
    a, b = np.zeros(4096, np.uint32), np.zeros(4032, np.uint32)
    with pytest.raises(ptxvm.Fault, match="out-of-bounds") as caught:
        ptxvm.spread(ptxvm.load(HEAD + SLICES.format("")).kernel(), 64, 64, [a, b, 0], workers=workers)
    assert caught.value.place.cta == (63, 0, 0)

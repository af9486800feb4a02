"""Kernels that launch kernels: which accesses of parents, children and siblings are in order, and which race.

The verdicts are those of CUDA's dynamic parallelism (CUDA C++ programming guide, "CUDA Dynamic Parallelism": parent and child
grids, global memory, ordering and concurrency, streams), which order as other API calls do (PTX 8.9.4).
"""

from __future__ import annotations

import numpy as np
import pytest
from children_kernels import HEAD, HEAP, LOOK, MAKE, RACE_FREE, RACES, READ, SYNC, WRITE, launch

import ptxvm

ENGINES = pytest.mark.parametrize("engine", ["interp", "jit"])


def found(body, grid=1, block=2, checks=("race",), schedules=3, engine="auto"):
    module = ptxvm.load(HEAD + (MAKE if "%stream" in body else "") + body + "\nret;\n}\n")
    data = ptxvm.DeviceArray(64, np.uint32)
    data.copy_from_host(np.zeros(64, np.uint32))
    kernel = module.kernel("parent")
    return kernel.launch(grid, block, [data], check=checks, schedules=schedules, seed=0, engine=engine).findings


@pytest.mark.sampled(2)
@ENGINES
@pytest.mark.parametrize("name", RACES)
def test_what_races(name, engine):
    body, hazard = RACES[name]
    assert [(each.kind, each.hazard, each.space) for each in found(body, engine=engine)] == [("race", hazard, "global")]


@pytest.mark.sampled(2)
@ENGINES
@pytest.mark.parametrize("name", RACE_FREE)
def test_what_is_in_order(name, engine):
    assert found(RACE_FREE[name], engine=engine) == []


def test_the_null_stream_is_one_for_each_cta():
    """Grids that two CTAs launch may run at once."""
    (race,) = found(launch("write"), grid=2)
    assert race.hazard == "WAW"
    assert {party.place.launched.cta for party in race.accesses} == {(0, 0, 0), (1, 0, 0)}


def test_grids_of_launches_on_two_streams():
    """What a kernel launches runs on its stream, as far as the host can tell."""
    module, data = ptxvm.load(HEAD + launch("write") + "\nret;\n}\n"), np.zeros(64, np.uint32)
    one, other = ptxvm.Stream("one"), ptxvm.Stream("other")
    module.kernel("parent").launch(1, 2, [data], stream=one, check=("race",), schedules=2)
    (race,) = module.kernel("read").launch(1, 1, [data], stream=other, check=("race",)).findings
    assert (race.hazard, race.accesses[0].place.kernel, race.accesses[0].place.grid) == ("RAW", "write", 1)
    one.sync()
    other.sync()
    module.kernel("parent").launch(1, 2, [data], stream=one, check=("race",))
    other.wait(one)
    assert module.kernel("read").launch(1, 1, [data], stream=other, check=("race",)).findings == []
    other.sync()


def test_a_parent_of_many_ctas_and_children_of_other_sizes():
    """Threads of all grids are told apart, whatever the sizes of their CTAs."""
    each = "mul.wide.u32 %e, %r2, 4; add.u64 %d, %d, %e;\n"
    assert found(each + launch("write", threads=70) + SYNC + READ.format("first"), grid=5, block=40) == []
    assert [f.hazard for f in found(each + launch("write", threads=70) + READ.format("first"), grid=5, block=40)] == ["WAR"]


@pytest.mark.parametrize(("wait", "hazards"), [("0", ["WAR", "RAW"]), ("1", [])])
def test_races_within_a_child(wait, hazards):
    body = "mov.u64 %k, neighbours;\n" + launch("k", threads=96, data=wait)
    races = found(body, block=33)
    assert {each.hazard for each in races} <= set(hazards)
    assert bool(races) == bool(hazards)
    for each in races:
        assert each.accesses[0].place.kernel == "neighbours"
        assert each.accesses[0].thread[0] ^ 1 == each.accesses[1].thread[0]


COPIER = """
// Every thread fetches a word in the background, and reads its neighbour's.
.entry copier(.param .u64 data) {
    .shared .align 16 .u32 tile[96];
    .reg .b32 %r<5>; .reg .b64 %d, %e;
    ld.param.u64 %d, [data];
    mov.u32 %r1, %tid.x;
    and.b32 %r4, %r1, 15;
    mul.wide.u32 %e, %r4, 4;
    add.u64 %d, %d, %e;
    shl.b32 %r2, %r1, 2;
    mov.u32 %r3, tile;
    add.u32 %r2, %r2, %r3;
    cp.async.ca.shared.global [%r2], [%d], 4;
    WAIT
    bar.sync 0;
    xor.b32 %r2, %r2, 4;
    ld.shared.u32 %r4, [%r2];
    cp.async.wait_all;
    ret;
}

.entry parent("""


@pytest.mark.parametrize(("wait", "hazards"), [("", {"RAW"}), ("cp.async.wait_all;", set())])
def test_copies_in_children(wait, hazards):
    """The copies of the threads of all grids are told apart."""
    text = HEAD.replace(".entry parent(", COPIER.replace("WAIT", wait)).replace("6.4", "7.0").replace("sm_75", "sm_80")
    text += MAKE + "mov.u64 %k, copier;\n" + launch("k", threads=96) + launch("k", "%stream", threads=40) + launch("read", 4)
    data = np.zeros(64, np.uint32)
    result = ptxvm.load(text + "\nret;\n}\n").kernel("parent").launch(3, 33, [data], check=("race",), schedules=3, seed=0)
    races = {(each.hazard, each.space) for each in result.findings}
    assert races == {(hazard, "shared") for hazard in hazards} | {("WAW", "global")}  # `read` of three CTAs writes one word
    for each in result.findings:
        assert each.accesses[1].place.kernel == ("copier" if each.space == "shared" else "read")


def test_a_report_names_the_grid_and_who_launched_it():
    (race,) = found(WRITE.format("second") + launch("read"))
    written, read = race.accesses
    assert written.place.launched is None
    assert (read.place.kernel, read.place.grid, read.thread) == ("read", 1, (0, 0, 0))
    by = read.place.launched
    assert (by.kernel, by.function, by.cta, by.thread) == ("parent", "launch", (0, 0, 0), (0, 0, 0))
    assert by.text == "call (status), cudaLaunchDeviceV2, (buffer, into)"
    assert "of grid 1 ('read'; CTA (0, 0, 0), thread (0, 0, 0) of 'parent' launched it at line" in str(race)
    assert race.details["accesses"][1]["child"]["kernel"] == "parent"
    assert "the parent's access before the launch" in race.missing


def test_a_report_names_all_who_launched():
    (race,) = found("mov.u64 %k, launch_and_read;\n" + launch("k"))
    assert [party.place.grid for party in race.accesses] == [1, 2]
    assert race.accesses[1].place.launched.launched.kernel == "parent"
    assert "of 'launch_and_read' launched it at line" in str(race)


def test_siblings_are_told_what_orders_them():
    (race,) = found(launch("write", 4) + launch("read", 4))
    assert race.missing.startswith("one stream for both grids")


def test_a_warp_that_diverges_in_a_child():
    (wrong,) = found("mov.u64 %k, half;\n" + launch("k", threads=32), checks=("sync",), schedules=1)
    assert (wrong.kind, wrong.accesses[0].place.kernel, wrong.accesses[0].place.grid) == ("barrier-divergence", "half", 1)


@pytest.mark.parametrize(
    ("body", "hazards"),
    [
        (WRITE.format("first") + launch("look"), []),
        (launch("write") + launch("look"), []),
        (launch("look") + WRITE.format("first"), ["RAW"]),
        (launch("write") + SYNC + LOOK, []),
        (launch("write") + LOOK, ["WAR"]),
        (WRITE.format("first") + LOOK, ["RAW"]),
    ],
)
def test_textures_are_coherent_where_grids_begin_and_end(body, hazards):
    """A grid reads through textures what was written before its launch (the same chapter, "Texture Memory")."""
    module = ptxvm.load(HEAD + "mov.u64 %look, look_up;\n" + body + "\nret;\n}\n")
    data = np.zeros(64, np.uint32)
    texture = ptxvm.Texture(data)
    module.bind("image", texture)
    result = module.kernel("parent").launch(1, 2, [data], check=("race",), schedules=3, seed=0)
    assert [each.hazard for each in result.findings] == hazards


def test_what_nobody_has_written_in_a_child():
    (wrong,) = found(HEAP + launch("read", data="%e"), checks=("init",), schedules=1)
    assert (wrong.kind, wrong.accesses[0].place.kernel, wrong.accesses[0].place.grid) == ("uninitialised-read", "read", 1)


def test_what_a_child_has_written_has_a_value():
    body = HEAP + launch("write", data="%e") + SYNC + "@%first ld.u32 %r4, [%e];\n"
    assert found(body, checks=("init",), schedules=1) == []


def test_a_wrong_access_of_a_child_is_a_finding_and_all_others_go_on():
    body = "add.u64 %e, %d, 192;\n" + launch("read", data="%e") + launch("write") + SYNC + READ.format("first")
    body += "@%first st.global.u32 [%d+4], %r4;\n" + WRITE.format("second").replace("%d", "%e+64")
    kinds = [(each.kind, each.accesses[0].place.kernel) for each in found(body, checks=("memory",), schedules=1)]
    assert sorted(kinds) == [("out-of-bounds", "parent"), ("out-of-bounds", "read")]


def test_a_deadlock_names_the_grid():
    (wrong,) = found("mov.u64 %k, alone;\n" + launch("k", threads=64), checks=("memory",), schedules=1)
    assert (wrong.kind, wrong.accesses[0].place.kernel, wrong.accesses[0].place.grid) == ("deadlock", "alone", 1)


# ── what does not outlive its grid, or does not exist ───────────────────────────────────

TOUCH = """
.entry touch(.param .u64 data) {{
    {own}
    .reg .b32 %r; .reg .b64 %d;
    ld.param.u64 %d, [data];
    {access}
    ret;
}}
"""
OWN = ".shared .align 8 .b8 mine[64]; .local .align 8 .b8 here[64]; st.shared.u32 [mine], 1; st.local.u32 [here], 1;"


def touches(space, access, sync, own, engine, check=("memory",)):
    """A kernel that gives its child a pointer to its shared or local memory."""
    child = TOUCH.format(access=access, own=own)
    body = f"""
    .{space} .align 8 .b8 lent[64];
    mov.u64 %e, lent;
    cvta.{space}.u64 %e, %e;
    st.u32 [%e], 7;
    mov.u64 %k, touch;
    {launch("k", data="%e")} {SYNC if sync else ""}
    @%first ld.u32 %r4, [%e];
    @%first st.global.u32 [%d], %r4;
    """
    module = ptxvm.load(HEAD.replace(".entry parent", child + ".entry parent") + body + "\nret;\n}\n")
    data = np.zeros(64, np.uint32)
    return module.kernel("parent").launch(1, 1, [data], check=check, engine=engine).findings, data


@pytest.mark.sampled(4)
@ENGINES
@pytest.mark.parametrize("own", ["", OWN], ids=["alone", "with memory of its own"])
@pytest.mark.parametrize("sync", [False, True])
@pytest.mark.parametrize("access", ["ld.u32 %r, [%d];", "st.u32 [%d], 1;", "atom.add.u32 %r, [%d], 1;"])
@pytest.mark.parametrize("space", ["shared", "local"])
def test_shared_and_local_memory_is_for_one_grid(space, access, sync, own, engine):
    """CUDA C++ programming guide, "Shared and Local Memory": it is private to a CTA or thread, and not visible to a child."""
    (finding,), data = touches(space, access, sync, own, engine)
    assert finding.kind == ("out-of-bounds" if sync else "use-after-free")
    assert finding.accesses[0].place.text == access.rstrip(";")
    assert f"the {space} memory" in str(finding)
    assert data[0] == 7


@ENGINES
@pytest.mark.parametrize("space", ["shared", "local"])
def test_without_checks_it_is_a_fault(space, engine):
    with pytest.raises(ptxvm.Fault, match=f"the {space} memory .* of a grid that launched this one"):
        touches(space, "st.u32 [%d], 1;", sync=True, own=OWN, engine=engine, check=None)


@ENGINES
@pytest.mark.parametrize("stream", [5, 0x5001, 12345, 0x7FFF])
def test_a_stream_that_does_not_exist(stream, engine):
    with pytest.raises(ptxvm.Fault, match=f"{stream % (1 << 64):#x} is no stream") as raised:
        found(launch("write", stream), checks=(), schedules=1, engine=engine)
    assert raised.value.kind == "invalid-launch"


@ENGINES
def test_a_stream_that_is_no_more(engine):
    gone = "call (%r5), cudaStreamDestroy, (%stream);\n"
    with pytest.raises(ptxvm.Fault, match="is no stream"):
        found(gone + launch("write", "%stream"), checks=(), schedules=1, engine=engine)
    with pytest.raises(ptxvm.Fault, match="is no stream"):
        found(gone + gone, checks=(), schedules=1, engine=engine)


@ENGINES
def test_a_stream_of_the_parent(engine):
    """CUDA C++ programming guide, "Streams and Events": those of the parent mean nothing in a child."""
    child = """
    .entry passes(.param .u64 data) {
        .reg .b64 %k, %s, %d;
        ld.param.u64 %s, [data];
        mov.u64 %k, write;
        call launch, (%k, 0, 1, %s);
        ret;
    }
    """
    body = MAKE + "mov.u64 %k, passes;\n" + launch("k", data="%stream")
    module = ptxvm.load(HEAD.replace(".entry parent", child + ".entry parent") + body + "\nret;\n}\n")
    with pytest.raises(ptxvm.Fault, match="was made by another grid"):
        module.kernel("parent").launch(1, 1, [np.zeros(64, np.uint32)], engine=engine)


ASK = """
    .reg .b64 %b;
    {
        .param .b64 name; .param .align 4 .b8 grid[12]; .param .align 4 .b8 block[12]; .param .b32 shared; .param .b64 buffer;
        st.param.b64 [name], %write;
        st.param.b32 [grid], 1; st.param.b32 [grid+4], 1; st.param.b32 [grid+8], 1;
        st.param.b32 [block], %r3; st.param.b32 [block+4], 1; st.param.b32 [block+8], 1;
        st.param.b32 [shared], 0;
        call (buffer), cudaGetParameterBufferV2, (name, grid, block, shared);
        ld.param.b64 %b, [buffer];
    }
"""


@ENGINES
def test_a_buffer_that_is_never_launched(engine):
    (leak,) = found("mov.u32 %r3, 1;" + ASK, checks=("memory",), schedules=1, engine=engine)
    assert leak.kind == "leak"
    assert "2 buffers for the parameters of a launch (16 bytes in all) from here are not launched" in leak.message
    assert leak.accesses[0].place.text.startswith("call (buffer), cudaGetParameterBufferV2")
    assert found("mov.u32 %r3, 4096;" + ASK, checks=("memory",), schedules=1, engine=engine) == []  # it got none
    assert found(launch("write"), checks=("memory",), schedules=1, engine=engine) == []

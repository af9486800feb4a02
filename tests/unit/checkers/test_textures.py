"""What kernels read through textures, and through caches that are not coherent, is watched.

Within a grid nothing that it writes is seen by a texture look-up (PTX 2.3) or by `ld.global.nc` (PTX 9.7.9.9), whatever
orders the threads: the two are in no causality order (PTX 8.9.5).  A look-up that comes before a write is well defined.
"""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

HEAD = """
.version 6.4
.target sm_75
.address_size 64
.global .texref t;
.global .surfref s;
.entry k(.param .u64 data) {
    .reg .b32 %r<12>; .reg .f32 %f<8>; .reg .b64 %d, %e, %all; .reg .pred %p, %q;
    ld.param.u64 %all, [data];
    mov.u32 %r1, %tid.x;
    mov.u32 %r8, %ctaid.x;
    setp.eq.u32 %p, %r8, 0;
    shl.b32 %r2, %r1, 2;
    xor.b32 %r3, %r1, 1;                 // the neighbour's element
    mad.wide.u32 %d, %r1, 4, %all;       // the own element
    cvt.rn.f32.u32 %f1, %r1;
    add.f32 %f2, %f1, 0f3F000000;        // the middle of the own element
    add.f32 %f3, %f1, 0f3F800000;        // between it and the next
    mov.f32 %f4, 0fC1200000;             // far outside
"""
WRITE, BARRIER = "st.global.u32 [%d], %r1;\n", "bar.sync 0;\n"
OWN, OTHER = "tex.1d.v4.u32.s32 {%r4, %r5, %r6, %r7}, [t, {%r1}];\n", "tex.1d.v4.u32.s32 {%r4, %r5, %r6, %r7}, [t, {%r3}];\n"
MIDDLE, BETWEEN, OUTSIDE = (f"tex.1d.v4.f32.f32 {{%f4, %f5, %f6, %f7}}, [t, {{%{x}}}];\n" for x in ("f2", "f3", "f4"))
SURFACE = "sust.b.1d.b32.trap [s, {%r2}], %r1;\n"
ENGINES = pytest.mark.parametrize("engine", ["interp", "jit"])


def found(body, engine="interp", *, texture=ptxvm.Texture, checks=("race",), grid=1, block=32, dtype=np.uint32, schedules=2):
    module = ptxvm.load(HEAD + body + "\nret;\n}\n")
    data = np.zeros(64, dtype)
    held = texture(data), ptxvm.Surface(data)
    module.bind("t", held[0])
    module.bind("s", held[1])
    return module.kernel().launch(grid, block, [data], check=checks, schedules=schedules, seed=0, engine=engine).findings


RACES = {
    "the own element": (WRITE + OWN, "RAW"),
    "the own element, after a fence": (WRITE + "fence.sc.gpu;\n" + OWN, "RAW"),
    "the neighbour's, after a barrier": (WRITE + BARRIER + OTHER, "RAW"),
    "the neighbour's, before it writes": (OTHER + WRITE, "WAR"),
    "after an atomic": ("red.global.add.u32 [%d], 1;\n" + BARRIER + OTHER, "RAW"),
    "after a strong write": ("st.relaxed.gpu.global.u32 [%d], 1;\n" + BARRIER + OTHER, "RAW"),
    "after a surface": (SURFACE + OWN, "RAW"),
    "without coherence": (WRITE + "ld.global.nc.u32 %r4, [%d];\n", "RAW"),
    "without coherence, after a barrier": (WRITE + BARRIER + "ld.global.nc.u32 %r4, [%all];\n", "RAW"),
    "before another's write, without coherence": ("ld.global.nc.u32 %r4, [%all];\n" + WRITE, "WAR"),
}
RACE_FREE = {
    "only read": OWN + OTHER + "ld.global.nc.u32 %r4, [%all];\n",
    "before the own write": OWN + WRITE,
    "before the neighbour's, after a barrier": OTHER + BARRIER + WRITE,
    "other elements": "st.global.u32 [%d+128], %r1;\n" + BARRIER + OTHER,
    "a coherent read": WRITE + BARRIER + "ld.global.u32 %r4, [%all];\n",
    "without coherence, before the own write": "ld.global.nc.u32 %r4, [%d];\n" + WRITE,
    "without coherence, other elements": WRITE + "ld.global.nc.u32 %r4, [%d+128];\n",
}


@ENGINES
@pytest.mark.parametrize("name", RACES)
def test_what_races(name, engine):
    body, hazard = RACES[name]
    assert {(each.kind, each.hazard, each.space) for each in found(body, engine)} == {("race", hazard, "global")}


@ENGINES
@pytest.mark.parametrize("name", RACE_FREE)
def test_what_does_not(name, engine):
    assert found(RACE_FREE[name], engine) == []


@ENGINES
def test_release_and_acquire_do_not_help(engine):
    body = """
        @%p st.global.u32 [%all], 1;
        @%p st.release.gpu.global.u32 [%all+200], 1;
        @%p bra done;
    again:
        ld.acquire.gpu.global.u32 %r4, [%all+200];
        setp.eq.u32 %q, %r4, 0;
        @%q bra again;
    """
    assert found(body + "ld.global.u32 %r4, [%all];\ndone:", engine, grid=2, block=1) == []
    (race,) = found(body + "mov.u32 %r1, 0;\n" + OWN + "done:", engine, grid=2, block=1)
    assert (race.hazard, [party.cta[0] for party in race.accesses]) == ("RAW", [0, 1])


def linear(data):
    return ptxvm.Texture(data, filter="linear")


@ENGINES
@pytest.mark.parametrize(
    ("look", "hazards"),
    [
        (MIDDLE, set()),  # the weight of the next one is 0
        (BETWEEN, {"WAR"}),  # of both elements the same
        ("add.f32 %f3, %f2, 0f3A800000;\n" + BETWEEN, set()),  # 1/1024 from the middle: less than the weights can say
        ("add.f32 %f3, %f2, 0f3B800000;\n" + BETWEEN, {"WAR"}),  # 1/256, which they can
    ],
)
def test_only_elements_that_count_are_read(look, hazards, engine):
    """The weights of linear filtering have 8 bits behind the point (CUDA C++ programming guide, "Linear Filtering")."""
    assert {
        each.hazard for each in found(look + "st.global.f32 [%d], %f1;\n", engine, texture=linear, dtype=np.float32)
    } == hazards


@ENGINES
def test_a_border_is_no_memory(engine):
    def texture(data):
        return ptxvm.Texture(data, address="border")

    write = "st.global.f32 [%d], %f1;\n"
    assert found(OUTSIDE + write, engine, texture=texture, dtype=np.float32) == []
    assert {each.hazard for each in found(OUTSIDE + write, engine, dtype=np.float32)} == {"WAR"}  # the nearest one


@ENGINES
def test_four_elements_are_gathered(engine):
    """tld4 reads the four elements around a point (PTX 9.7.10.4): of 8 by 8 those of the columns x and x+1."""
    look = "mov.f32 %f5, 0f3F800000;\ntld4.r.2d.v4.u32.f32 {%r4, %r5, %r6, %r7}, [t, {%f3, %f5}];\n"
    body = "setp.lt.u32 %p, %r1, 7;\n" + look.replace("tld4", "@%p tld4") + "@!%p st.global.u32 [%all+AT], %r1;\n"

    def texture(data):
        return ptxvm.Texture(data.reshape(8, 8))

    assert {each.hazard for each in found(body.replace("AT", "28"), engine, texture=texture, block=8)} == {"WAR"}  # (7, 0)
    assert {each.hazard for each in found(body.replace("AT", "32"), engine, texture=texture, block=8)} == {"WAR"}  # (0, 1)
    assert found(body.replace("AT", "64"), engine, texture=texture, block=8) == []  # (0, 2)


@ENGINES
def test_every_channel_is_read(engine):
    def texture(data):
        return ptxvm.Texture(data.view(np.uint8).reshape(-1, 4), channels=4)

    (race,) = found("@%p st.global.u8 [%all+3], %r1;\nmov.u32 %r1, 0;\n" + OWN, engine, texture=texture, block=1)
    assert [party.offset for party in race.accesses] == [3, 3]
    assert race.accesses[1].operation == "texture read"


def test_a_report_says_why_no_order_helps():
    (race,) = found(WRITE + BARRIER + OTHER)
    assert "the texture read at line 22 and the write at line 20 do not go through one coherent cache" in race.message
    assert race.missing.startswith("another grid for one of the two")
    (race,) = found(WRITE + "ld.global.nc.u32 %r4, [%d];\n")
    assert race.accesses[1].operation == "non-coherent read"


# ── images that the kernel has no pointer to ────────────────────────────────────────────


@ENGINES
def test_a_texture_and_a_surface_of_one_array(engine):
    """They are the same bytes, in whatever part of the array, and in whatever CTA."""
    module = ptxvm.load(HEAD + SURFACE + OWN + "ret;\n}\n")
    data, given = np.zeros(64, np.uint32), np.zeros(64, np.uint32)
    for part, hazards in ((data[:32], ["RAW"]), (data[8:], ["RAW"]), (data[32:], [])):
        held = ptxvm.Texture(part), ptxvm.Surface(data[:32])
        module.bind("t", held[0])
        module.bind("s", held[1])
        block = 32 if len(part) == 32 else 20
        result = module.kernel().launch(1, block, [given], check=("race",), engine=engine)
        assert [each.hazard for each in result.findings] == hazards


@ENGINES
def test_ctas_that_are_far_apart(engine):
    body = "sust.b.1d.b32.trap [s, {%r2}], %r8;\n"
    module = ptxvm.load(HEAD + body + "ret;\n}\n")
    held = ptxvm.Surface(np.zeros(64, np.uint32))
    module.bind("s", held)
    (race,) = module.kernel().launch(2, 64, [np.zeros(64, np.uint32)], check=("race",), engine=engine).findings
    assert race.hazard == "WAW"
    last = "setp.eq.u32 %q, %r8, 299;\nor.pred %p, %p, %q;\n@%p " + body
    module = ptxvm.load(HEAD + last + "ret;\n}\n")
    module.bind("s", held)
    (race,) = module.kernel().launch(300, 64, [np.zeros(64, np.uint32)], check=("race",), engine=engine).findings
    assert {party.cta[0] for party in race.accesses} == {0, 299}


# ── bytes without a value ───────────────────────────────────────────────────────────────


@ENGINES
def test_texels_that_nobody_has_written(engine):
    read = ptxvm.load(HEAD + OWN + "ret;\n}\n")
    data, out = ptxvm.DeviceArray(32, np.uint32), np.zeros(64, np.uint32)
    texture = ptxvm.Texture(data)
    read.bind("t", texture)

    def kinds():
        return [each.kind for each in read.kernel().launch(1, 32, [out], check=("init",), engine=engine).findings]

    assert kinds() == ["uninitialised-read"]
    ptxvm.load(HEAD + WRITE + "ret;\n}\n").kernel().launch(1, 32, [data])
    assert kinds() == []


@ENGINES
def test_a_surface_gives_values(engine):
    """Of 32 elements 16 are written, of which one thread reads one, and then one that nobody has written."""
    write = "setp.lt.u32 %p, %r1, 16;\n@%p sust.b.1d.b32.trap [s, {%r2}], %r1;\nbar.sync 0;\nsetp.eq.u32 %p, %r1, 0;\n"
    data = ptxvm.DeviceArray(32, np.uint32)
    surface = ptxvm.Surface(data)
    for place, kinds in ((60, []), (64, ["uninitialised-read"])):
        data.is_written = False
        module = ptxvm.load(HEAD + write + f"@%p suld.b.1d.b32.trap %r4, [s, {{{place}}}];\nret;\n}}\n")
        module.bind("s", surface)
        result = module.kernel().launch(1, 32, [np.zeros(64, np.uint32)], check=("init",), engine=engine)
        assert [each.kind for each in result.findings] == kinds


# ── wrong accesses ──────────────────────────────────────────────────────────────────────


@ENGINES
@pytest.mark.parametrize(
    ("body", "kinds"),
    [
        ("sust.b.1d.b32.trap [s, {%r2}], %r1;", ["surface-out-of-bounds"]),
        ("sust.b.1d.b32.clamp [s, {%r2}], %r1;", []),
        ("sust.b.1d.b32.zero [s, {%r2}], %r1;", []),
        ("suld.b.1d.b32.trap %r4, [s, {%r2}];", ["surface-out-of-bounds"]),
        ("suld.b.1d.b32.trap %r4, [s, {%r1}];", ["misaligned"]),
        ("sured.b.add.1d.u32.trap [s, {%r2}], 1;", ["surface-out-of-bounds"]),
        ("tex.1d.v4.u32.s32 {%r4, %r5, %r6, %r7}, [t, {%r1}];", ["unbound"]),
    ],
)
def test_a_wrong_access_of_an_image_is_a_finding_and_the_kernel_goes_on(body, kinds, engine):
    module = ptxvm.load(HEAD + body + "\n" + WRITE + "ret;\n}\n")
    array, data = np.zeros(16, np.uint32), np.zeros(64, np.uint32)
    held = ptxvm.Surface(array)
    module.bind("s", held)
    result = module.kernel().launch(1, 32, [data], check=("memory",), engine=engine)
    assert [each.kind for each in result.findings] == kinds
    assert data[:32].tolist() == list(range(32))
    if "sust" in body:
        assert array[:15].tolist() == list(range(15))
    if "sured" in body:  # once for each lane that is inside
        assert array.tolist() == [1] * 16


@ENGINES
@pytest.mark.parametrize("check", [None, ("memory",)])
def test_the_thread_of_a_wrong_access_among_many_surfaces(check, engine):
    """Odd threads use a smaller surface: the first that leaves it is named, and only those that do are left out."""
    body = """
        .reg .b32 %odd; .reg .b64 %s, %u;
        and.b32 %odd, %r1, 1;
        setp.eq.u32 %p, %odd, 0;
        ld.global.u64 %s, [%all+128];
        ld.global.u64 %u, [%all+136];
        selp.u64 %s, %s, %u, %p;
        sust.b.1d.b32.trap [%s, {%r2}], 1;
    """
    module = ptxvm.load(HEAD + body + WRITE + "ret;\n}\n")
    large, small, data = np.zeros(32, np.uint32), np.zeros(8, np.uint32), np.zeros(64, np.uint32)
    held = ptxvm.Surface(large), ptxvm.Surface(small)
    data[32:36].view(np.uint64)[:] = [each.handle for each in held]
    if check is None:
        with pytest.raises(ptxvm.Fault, match="surface-out-of-bounds") as caught:
            module.kernel().launch(1, 32, [data], engine=engine)
        assert caught.value.place.thread == (9, 0, 0)
        return
    (wrong,) = module.kernel().launch(1, 32, [data], check=check, engine=engine).findings
    assert (wrong.kind, wrong.accesses[0].thread) == ("surface-out-of-bounds", (9, 0, 0))
    assert large.tolist() == [1, 0] * 16
    assert small.tolist() == [0, 1] * 4
    assert data[:32].tolist() == list(range(32))


@ENGINES
def test_images_of_freed_memory(engine):
    module = ptxvm.load(HEAD + OWN + "ret;\n}\n")
    data = ptxvm.DeviceArray(32, np.uint32)
    texture = ptxvm.Texture(data)
    module.bind("t", texture)
    data.free()
    (wrong,) = module.kernel().launch(1, 32, [np.zeros(64, np.uint32)], check=("memory",), engine=engine).findings
    assert wrong.kind == "use-after-free"
    with pytest.raises(ptxvm.Fault, match="use-after-free"):
        module.kernel().launch(1, 32, [np.zeros(64, np.uint32)], engine=engine)


# ── launches ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("ordered", [False, True])
def test_launches_on_two_streams(ordered):
    write, read = (ptxvm.load(HEAD + body + "ret;\n}\n") for body in (WRITE, OWN))
    data = np.zeros(64, np.uint32)
    texture = ptxvm.Texture(data)
    read.bind("t", texture)
    one, other = ptxvm.Stream("one"), ptxvm.Stream("other")
    write.kernel().launch(1, 32, [data], stream=one, check=("race",))
    if ordered:
        other.wait(one)
    result = read.kernel().launch(1, 32, [np.zeros(64, np.uint32)], stream=other, check=("race",))
    assert [each.hazard for each in result.findings] == ([] if ordered else ["RAW"])
    one.sync()
    other.sync()

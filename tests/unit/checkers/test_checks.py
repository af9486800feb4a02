"""The checks beside races: bytes without a value, misused barriers, faults as findings; and the random schedules."""

from __future__ import annotations

import json

import numpy as np
import pytest

import ptxvm

ENGINES = pytest.mark.parametrize("engine", ["interp", "jit"])

HEAD = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 data)
{
    .local .align 4 .b8 frame[16];
    .shared .align 16 .b8 s[256];
    .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    mov.u64 %rd4, s;
    add.u64 %rd4, %rd3, %rd4;
    add.u64 %rd3, %rd3, %rd1;
"""


def launched(body, data=None, grid=1, block=32, **how):
    data = np.zeros(64, np.uint32) if data is None else data
    return ptxvm.load(HEAD + body + "\n    ret;\n}\n").kernel().launch(grid, block, [data], **how)


def kinds(body, check, **how):
    return [each.kind for each in launched(body, check=check, **how).findings]


# ── init ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("ld.shared.u32 %r3, [%rd4]; USE", 1),
        ("st.shared.u32 [%rd4], 1; ld.shared.u32 %r3, [%rd4]; USE", 0),
        ("st.shared.u8 [%rd4], 1; ld.shared.u32 %r3, [%rd4]; USE", 1),  # three bytes have no value
        ("setp.ne.u32 %p1, %r1, 5; @%p1 st.shared.u32 [%rd4], 1; ld.shared.u32 %r3, [%rd4]; USE", 1),
        ("atom.shared.add.u32 %r3, [%rd4], 1;", 1),
        ("ld.local.u32 %r3, [frame]; USE", 1),
        ("st.local.u32 [frame], 1; ld.local.u32 %r3, [frame]; USE", 0),
        ("st.local.u8 [frame], 1; ld.local.u32 %r3, [frame];", 0),  # the rest may be padding
        ("ld.shared.u32 %r3, [%rd4];", 0),  # nothing comes of it
        ("ld.global.u32 %r3, [%rd3];", 0),  # an array of the host has values
    ],
)
def test_reads_of_bytes_without_a_value(body, found):
    body = body.replace("USE", "st.global.u32 [%rd3], %r3;")
    assert kinds(body, ("init",)) == ["uninitialised-read"] * found


def test_a_device_array_has_no_value_until_it_is_given_one():
    body = "ld.global.u32 %r3, [%rd3];"
    assert kinds(body, ("init",), data=ptxvm.DeviceArray(64, np.uint32)) == ["uninitialised-read"]
    assert kinds(body, ("init",), data=ptxvm.DeviceArray.from_host(np.zeros(64, np.uint32))) == []


def test_the_first_thread_without_a_value_is_named():
    body = "setp.ne.u32 %p1, %r1, 5; @%p1 st.shared.u32 [%rd4], 1; ld.shared.u32 %r3, [%rd4];\nst.global.u32 [%rd3], %r3;"
    (found,) = launched(body, check=("init",)).findings
    assert found.accesses[0].thread == (5, 0, 0)
    assert [each.line for each in found.accesses] == [HEAD.count("\n") + 1, HEAD.count("\n") + 2]
    assert found.message.startswith("reading 4 bytes at byte 20 of the shared memory")


@pytest.mark.parametrize(
    ("body", "register", "thread"),
    [
        ("add.u32 %r3, %r4, 1; st.global.u32 [%rd3], %r3;", "%r4", 0),
        ("setp.ge.u32 %p1, %r1, 5; @%p1 mov.u32 %r4, 1; add.u32 %r3, %r4, 1; st.global.u32 [%rd3], %r3;", "%r4", 0),
        ("setp.lt.u32 %p1, %r1, 5; @%p1 mov.u32 %r4, 1; add.u32 %r3, %r4, 1; st.global.u32 [%rd3], %r3;", "%r4", 5),
        ("setp.lt.u32 %p1, %r1, 5; @%p1 bra A; mov.u32 %r4, 1; A: add.u32 %r3, %r4, 1; st.global.u32 [%rd3], %r3;", "%r4", 0),
        ("mov.u32 %r4, %r5; st.global.u32 [%rd3], %r4;", "%r5", 0),  # passed on by a mov
        ("@%p2 st.global.u32 [%rd3], 1;", "%p2", 0),
        ("ld.global.u32 %r3, [%rd5];", "%rd5", 0),
        (
            "mov.u32 %r4, 1; A: add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 3; @%p1 st.global.u32 [%rd3], %r6; @%p1 bra A;",
            "%r6",
            0,
        ),
    ],
)
def test_reads_of_registers_without_a_value(body, register, thread):
    (found,) = [each for each in launched(body, check=("init",)).findings if each.kind == "uninitialised-read"]
    assert f"register {register}, to which this thread has given no value" in found.message
    assert found.accesses[-1].thread == (thread, 0, 0)
    assert found.accesses[-1].place.text.lstrip("@%p12 ")[:2] in ("st", "ld")  # where the value is observed


@pytest.mark.parametrize(
    "body",
    [
        "setp.lt.u32 %p1, %r1, 5; @%p1 mov.u32 %r4, 1; @!%p1 mov.u32 %r4, 2; add.u32 %r3, %r4, 1;",
        "setp.lt.u32 %p1, %r1, 5; @%p1 mov.u32 %r4, 1; @%p1 add.u32 %r3, %r4, 1;",
        "setp.lt.u32 %p1, %r1, 5; @%p1 mov.u32 %r4, %r5; mov.u32 %r6, %r4;",  # nothing observes it
        "add.u32 %r3, %r4, 1; setp.lt.u32 %p1, %r3, 5; selp.u32 %r3, 1, 2, %p1;",
        "setp.lt.u32 %p1, %r1, 5; @%p1 bra A; mov.u32 %r4, 1; bra B; A: mov.u32 %r4, 2; B: add.u32 %r3, %r4, 1;",
        "shfl.sync.idx.b32 %r4|%p1, %r1, 0, 31, -1; add.u32 %r3, %r4, 1; selp.u32 %r3, 1, 0, %p1;",
    ],
)
def test_registers_that_have_a_value_where_they_are_read(body):
    assert kinds(body, ("init",)) == []


def test_the_registers_of_a_function_have_no_value_at_each_call():
    text = """
    .version 7.8
    .target sm_80
    .address_size 64
    .func (.reg .b32 %out) f(.reg .b32 %in) {
        .reg .b32 %kept; .reg .pred %p;
        setp.eq.u32 %p, %in, 1;
        @%p mov.u32 %kept, 7;
        add.u32 %out, %kept, 0;
        ret;
    }
    .global .u32 seen;
    .entry k() { .reg .b32 %r<3>; SECOND call (%r1), f, (SECOND_ARGUMENT); st.global.u32 [seen], %r1; ret; }
    """

    def calls(first, second):
        body = text.replace("SECOND call", f"mov.u32 %r0, {first}; call (%r1), f, (%r0); mov.u32 %r0, {second}; call")
        return ptxvm.load(body.replace("SECOND_ARGUMENT", "%r0")).kernel().launch(1, 32, check=("init",)).findings

    assert calls(1, 1) == []
    (found,) = calls(1, 0)
    assert found.message.endswith("comes from register %kept, to which this thread has given no value")
    assert [each.place.function for each in found.accesses] == ["f", "k"]  # where it is left unset, and where it is observed


# ── sync ────────────────────────────────────────────────────────────────────────────────


def test_half_a_warp_at_a_barrier_diverges():
    body = "setp.lt.u32 %p1, %r1, 16; @%p1 ret; bar.sync 0;"
    assert kinds(body, ("sync",)) == ["barrier-divergence"]
    assert kinds(body.replace("16", "32"), ("sync",), block=64) == ["ended-before-barrier"]  # a whole warp has


def test_lanes_of_a_warp_at_two_barriers_diverge():
    body = "setp.lt.u32 %p1, %r1, 16; @%p1 bra A; bar.sync 0; ret; A: bar.sync 0;"
    assert "barrier-divergence" in kinds(body, ("sync",))


def test_a_deadlock_is_a_finding_and_names_who_waits():
    body = "setp.lt.u32 %p1, %r1, 32; @%p1 bra A; bar.sync 1, 64; bar.sync 2, 64; ret; A: bar.sync 2, 64; bar.sync 1, 64;"
    (found,) = launched(body, block=64, check=("sync",)).findings
    assert found.kind == "deadlock"
    assert "32 threads wait" in found.message
    with pytest.raises(ptxvm.Fault, match="no thread can go on"):
        launched(body, block=64)


def test_a_lane_that_never_comes_to_a_warp_barrier_is_a_deadlock():
    body = "setp.eq.u32 %p1, %r1, 3; @%p1 bra A; bar.warp.sync 0xffffffff; ret; A: bar.sync 1, 32;"
    assert kinds(body, ("sync",)) == ["deadlock"]


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        ("setp.lt.u32 %p1, %r1, 32; @%p1 bra A; bar.sync 1, 64; ret; A: bar.sync 1, 96;", "barrier-count", "96 threads"),
        ("mov.u32 %r3, 33; bar.sync 1, %r3;", "barrier-count", "no multiple of 32"),
        ("bar.sync 1, 128;", "barrier-count", "the CTA has 64"),
        ("setp.lt.u32 %p1, %r1, 32; @%p1 bar.arrive 1, 64; bar.sync 1, 32;", "barrier-count", "expected"),
        ("setp.eq.u32 %p1, %r1, 3; @%p1 bar.warp.sync 1;", "invalid-mask", "lane 3 is not in the mask 0x00000001"),
        ("setp.eq.u32 %p1, %r1, 3; @%p1 ret; bar.warp.sync -1;", "invalid-mask", "names lanes that ended before: 0x00000008"),
        (
            "setp.lt.u32 %p1, %r1, 2; @%p1 bra A; bar.warp.sync -1; ret; A: bar.sync 1, 64;",
            "deadlock", "lanes 0 and 1 of a warp never came",
        ),
    ],
)  # fmt: skip
def test_misuse_of_barriers(body, kind, said):
    found = [each for each in launched(body, block=64, check=("sync",)).findings if each.kind == kind]
    assert found, kinds(body, ("sync",), block=64)
    assert said in found[0].message


def test_lanes_that_name_each_other_differently():
    body = "setp.lt.u32 %p1, %r1, 2; selp.u32 %r3, 3, -1, %p1; bar.warp.sync %r3;"
    assert kinds(body, ("sync",)) == ["invalid-mask"]


# ── memory ──────────────────────────────────────────────────────────────────────────────


def test_a_wrong_access_is_a_finding_and_the_others_go_on():
    data = np.zeros(32, np.uint32)
    body = "add.u64 %rd5, %rd3, 16; mov.u32 %r3, 7; st.global.u32 [%rd5], %r3;"
    result = launched(body, data=data, check=("memory", "race"))
    assert [each.kind for each in result.findings] == ["out-of-bounds"]
    assert data.tolist() == [0] * 4 + [7] * 28
    assert result.findings[0].accesses[0].thread == (28, 0, 0)


def test_a_wrong_read_gives_zero():
    data = np.arange(32, dtype=np.uint32)
    body = "add.u64 %rd5, %rd3, 16; ld.global.u32 %r3, [%rd5]; bar.sync 0; st.global.u32 [%rd3], %r3;"
    result = launched(body, data=data, check=("memory", "sync"))
    assert [each.kind for each in result.findings] == ["out-of-bounds"]
    assert data.tolist() == [*range(4, 32), 0, 0, 0, 0]


def test_a_wrong_atomic_is_left_out():
    data = np.zeros(32, np.uint32)
    body = "add.u64 %rd5, %rd3, 16; red.global.add.u32 [%rd5], 1;"
    assert [each.kind for each in launched(body, data=data, check=("race",)).findings] == ["out-of-bounds"]
    assert data.sum() == 28


NULL = "mov.u64 %rd5, 0; ld.global.u32 %r3, [%rd5];"


def test_a_wrong_access_faults_where_nothing_is_checked():
    with pytest.raises(ptxvm.Fault, match="null"):
        launched(NULL)
    assert kinds(NULL, ("memory",)) == ["null-pointer"]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("ld.global.u32 %r3, [%rd3+1];", "misaligned"),
        ("cvta.shared.u64 %rd5, %rd4; ld.global.u32 %r3, [%rd5];", "wrong-space"),
        ("ld.local.u32 %r3, [frame+16];", "out-of-bounds"),
        ("ld.shared.u32 %r3, [%rd4+256];", "out-of-bounds"),
        ("mov.u64 %rd5, words; cvta.const.u64 %rd5, %rd5; mov.u32 %r3, 1; st.u32 [%rd5], %r3;", "read-only"),
        ("mov.u32 %r3, 70000; .reg .u64 %a, %n; cvt.u64.u32 %n, %r3; alloca.u64 %a, %n;", "stack-overflow"),
    ],
)
def test_wrong_accesses_are_findings(body, kind):
    constant = ".const .u32 words[4] = {1, 2, 3, 4};\n"
    text = HEAD.replace(".visible", constant + ".visible") + body + "\n    ret;\n}\n"
    (found,) = ptxvm.load(text).kernel().launch(4, 256, [np.zeros(2048, np.uint32)], check=("memory",)).findings
    assert found.kind == kind
    assert found.line == HEAD.count("\n") + 2


VARIABLES = HEAD.replace(".reg .pred", ".shared .align 4 .b32 first[4], second[4]; .local .align 4 .b32 a[4], b[4]; .reg .pred")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("ld.shared.u32 %r3, [first+16];", "reading 4 bytes at byte 16 of 'first', which has 16 bytes"),
        ("mov.u64 %rd5, second; st.shared.u32 [%rd5+-4], 1;", "writing 4 bytes at byte -4 of 'second'"),
        ("mov.u32 %r3, first; mad.lo.u32 %r3, %r1, 4, %r3; ld.shared.u32 %r4, [%r3];", "at byte 16 of 'first'"),
        ("mov.u64 %rd5, first; cvta.shared.u64 %rd5, %rd5; add.u64 %rd5, %rd5, 8; ld.v2.u32 {%r3, %r4}, [%rd5+8];", "byte 16"),
        ("mov.u64 %rd5, a; atom.shared.add.u32 %r3, [first+20], 1;", "writing 4 bytes at byte 20 of 'first'"),
        ("st.local.u32 [a+16], 1;", "writing 4 bytes at byte 16 of 'a', which has 16 bytes"),
        ("mov.u64 %rd5, b; cvta.local.u64 %rd5, %rd5; ld.u32 %r3, [%rd5+-4];", "reading 4 bytes at byte -4 of 'b'"),
    ],
)
def test_a_variable_is_left(body, said):
    text = VARIABLES + body + "\n    ret;\n}\n"
    (found,) = ptxvm.load(text).kernel().launch(1, 32, [np.zeros(64, np.uint32)], check=("memory",)).findings
    assert found.kind == "out-of-bounds"
    assert said in found.message


@pytest.mark.parametrize(
    "body",
    [
        "mov.u64 %rd5, first; setp.eq.u32 %p1, %r1, 0; @%p1 mov.u64 %rd5, second; ld.shared.u32 %r3, [%rd5];",
        "mov.u64 %rd5, a; mov.u64 %rd0, b; sub.u64 %rd0, %rd0, %rd5; add.u64 %rd5, %rd5, %rd0; ld.local.u8 %r3, [%rd5];",
        "ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [second]; st.local.u32 [a+12], %r3;",
        "mov.u64 %rd5, first; add.u64 %rd5, %rd5, 64; sub.u64 %rd5, %rd5, 64; ld.shared.u32 %r3, [%rd5];",
    ],
)
def test_no_variable_is_left(body):
    text = VARIABLES + body + "\n    ret;\n}\n"
    assert ptxvm.load(text).kernel().launch(1, 32, [np.zeros(64, np.uint32)], check=("memory",)).findings == []


LOCAL_OF_THE_MODULE = """
.version 2.3
.target sm_20
.address_size 64
.local .align 4 .b8 first[16];
.local .align 4 .b8 second[8];
.func note(.param .u32 value) {
    .local .align 4 .b8 own[32];
    .reg .b32 %r;
    ld.param.u32 %r, [value];
    st.local.u32 [own+28], %r;
    st.local.u32 [first+12], %r;
    st.local.u32 [second+AT], %r;
    ret;
}
.entry k(.param .u64 data) {
    .local .align 4 .b8 own[32];
    st.local.u32 [own], 1;
    call note, (5);
    ret;
}
"""


@ENGINES
@pytest.mark.parametrize(("place", "kinds"), [("4", []), ("8", ["out-of-bounds"])])
def test_local_variables_of_the_module(place, kinds, engine):
    kernel = ptxvm.load(LOCAL_OF_THE_MODULE.replace("AT", place)).kernel("k")
    findings = kernel.launch(1, 64, [np.zeros(64, np.uint32)], check=("memory",), engine=engine).findings
    assert [each.kind for each in findings] == kinds


def test_a_read_only_array():
    data = np.zeros(64, np.uint32)
    data.setflags(write=False)
    assert kinds("st.global.u32 [%rd3], 1;", ("memory",), data=data) == ["read-only"]


HEAP = HEAD.replace(".visible", """.extern .func (.param .b64 r) malloc (.param .b64 n);
.extern .func free (.param .b64 p);
.visible""")  # fmt: skip
MALLOC = """{ .param .b64 n; .param .b64 r; st.param.b64 [n], 24; call.uni (r), malloc, (n); ld.param.b64 %rd5, [r]; }
"""
FREE = "{ .param .b64 p; st.param.b64 [p], %rd5; call.uni free, (p); }\n"


def heap(body, block=4):
    module = ptxvm.load(HEAP + body + "\n    ret;\n}\n")
    return module.kernel().launch(1, block, [np.zeros(64, np.uint32)], check=("memory",)).findings


def test_blocks_that_are_lost_are_leaks():
    (found,) = heap(MALLOC)
    assert found.kind == "leak"
    assert "4 blocks of malloc (96 bytes in all)" in found.message
    assert found.line == HEAP.count("\n") + 1
    (one,) = heap(MALLOC + "setp.eq.u32 %p1, %r1, 2; @%p1 bra END;" + FREE + "END:")
    assert one.accesses[0].thread == (2, 0, 0)
    assert "1 block of malloc" in one.message


def test_blocks_that_are_freed_or_within_reach_are_no_leaks():
    assert heap(MALLOC + FREE) == []
    assert heap(MALLOC + "add.u64 %rd3, %rd3, %rd3; mul.wide.u32 %rd3, %r1, 8; add.u64 %rd3, %rd1, %rd3;"
                "st.global.u64 [%rd3], %rd5;") == []  # fmt: skip


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (MALLOC + FREE + FREE, "double-free"),
        (MALLOC + FREE + "ld.global.u32 %r3, [%rd5];", "use-after-free"),
        (MALLOC + "add.u64 %rd5, %rd5, 8;" + FREE, "invalid-free"),
        (MALLOC + "ld.global.u32 %r3, [%rd5+24];" + FREE, "out-of-bounds"),
    ],
)
def test_misuse_of_the_heap(body, kind):
    assert kind in [each.kind for each in heap(body, block=1)]


SECOND = MALLOC.replace("%rd5", "%rd2")


@ENGINES
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (MALLOC + SECOND + FREE + "ld.global.u32 %r3, [%rd5];", "use-after-free"),  # a live block is near
        (MALLOC + FREE + SECOND + "st.global.u32 [%rd5+20], 1;", "use-after-free"),
        (MALLOC + SECOND + FREE + "ld.global.u32 %r3, [%rd2+32];", "out-of-bounds"),  # in no block at all
    ],
)
def test_a_freed_block_beside_a_live_one(engine, body, kind):
    """A freed block keeps its place until another takes it: an access there is a use after free (CUDA C++ guide, malloc)."""
    text = HEAP + body + "\n    ret;\n}\n"
    found = ptxvm.load(text).kernel().launch(1, 1, [np.zeros(64, np.uint32)], check=("memory",), engine=engine).findings
    assert [each.kind for each in found if each.kind != "leak"] == [kind]
    with pytest.raises(ptxvm.Fault) as fault:
        ptxvm.load(text).kernel().launch(1, 1, [np.zeros(64, np.uint32)], engine=engine)
    assert fault.value.kind == kind


@ENGINES
def test_all_go_on_behind_a_wrong_free(engine):
    """The thread that frees twice too, and what is wrong later is found."""
    body = MALLOC + FREE + "setp.eq.u32 %p1, %r1, 2; @!%p1 bra ON;" + FREE
    body += "ON: st.global.u32 [%rd3], 7; @%p1 ld.global.u32 %r3, [%rd5];"
    data = np.zeros(64, np.uint32)
    result = ptxvm.load(HEAP + body + "\n    ret;\n}\n").kernel().launch(1, 4, [data], check=("memory",), engine=engine)
    assert [(each.kind, each.accesses[0].thread[0]) for each in result.findings] == [("double-free", 2), ("use-after-free", 2)]
    assert data[:5].tolist() == [7, 7, 7, 7, 0]


LOST = """
.version 7.8
.target sm_80
.address_size 64
.func deeper(.param .u32 n) {
    .local .b8 frame[4096];
    .reg .b32 %r<3>; .reg .pred %p;
    ld.param.u32 %r1, [n];
    setp.eq.u32 %p, %r1, 0;
    @%p ret;
    sub.u32 %r2, %r1, 1;
    call deeper, (%r2);
    ret;
}
.entry k(.param .u64 data) {
    .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd2, %rd2, %rd1;
    setp.eq.u32 %p, %r1, 2;
    selp.u32 %r2, 1, 0, %p;
"""

POINTER = "mov.u64 %rd3, deeper; cvt.u64.u32 %rd4, %r2; mad.lo.u64 %rd3, %rd4, 4096, %rd3;"


@ENGINES
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("LIST: .branchtargets ON; brx.idx %r2, LIST; ON:", "invalid-branch"),
        ("mul.lo.u32 %r3, %r2, 1000; call deeper, (%r3);", "stack-overflow"),
        (POINTER + "P: .callprototype _ (.param .u32 n); call %rd3, (0), P;", "invalid-call"),
        ("mul.lo.u32 %r3, %r2, 20; barrier.sync %r3;", "invalid-barrier"),
    ],
)  # fmt: skip
def test_a_thread_that_cannot_go_on_ends_alone(body, kind, engine):
    """What it would do next is nowhere said; the others go on, and nobody waits for it."""
    kernel = ptxvm.load(LOST + body + "\nst.global.u32 [%rd2], 7;\nbarrier.sync 0;\nret;\n}\n").kernel("k")
    data = np.zeros(64, np.uint32)
    (wrong,) = kernel.launch(1, 64, [data], check=("memory",), engine=engine).findings
    assert (wrong.kind, wrong.accesses[0].thread[0]) == (kind, 2)
    assert data.tolist() == [7, 7, 0] + [7] * 61


def test_the_text_of_a_fault_stands_at_its_line():
    from ptxvm.diagnostics.render import render
    from ptxvm.syntax.source import Source

    text = HEAP + MALLOC + FREE + FREE + "\n    ret;\n}\n"
    (found,) = [each for each in heap(MALLOC + FREE + FREE, block=1) if each.kind == "double-free"]
    shown = render([(Source(text), [found.diagnostic()])])
    assert "call.uni free, (p)" in shown


# ── schedules ───────────────────────────────────────────────────────────────────────────

COUNT = "atom.global.add.u32 %r3, [%rd1], 1; mov.u32 %r4, 9; st.global.u32 [%rd3+4], %r3;"


def test_memory_holds_what_the_first_run_did():
    data = np.zeros(64, np.uint32)
    result = launched(COUNT, data=data, check=("race",), schedules=5, seed=3)
    assert result.schedules == 5
    assert data[:33].tolist() == [32, *range(32)]


def test_a_seed_shuffles_and_repeats_a_schedule():
    def order(seed):
        data = np.zeros(64, np.uint32)
        launched(COUNT, data=data, check=("race",), seed=seed)
        return data[1:33].tolist()

    orders = [order(seed) for seed in range(8)]
    assert all(sorted(each) == list(range(32)) for each in orders)
    assert orders == [order(seed) for seed in range(8)]
    assert len({tuple(each) for each in orders}) > 1


def test_findings_go_to_json_and_sarif(tmp_path, capsys):
    from ptxvm.cli import main

    path = tmp_path / "race.ptx"
    path.write_text(HEAD + "st.shared.u32 [s], %r1;\n    ret;\n}\n")
    words = ["run", str(path), "--grid", "1", "--block", "32", "u32[64]", "--check", "race", "--schedules", "3"]
    assert main([*words, "--format", "json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    assert (found["code"], found["line"], found["severity"]) == ("race", HEAD.count("\n") + 1, "error")
    assert (found["finding"]["hazard"], found["finding"]["space"]) == ("WAW", "shared")
    assert [each["line"] for each in found["finding"]["accesses"]] == [found["line"]] * 2
    assert [(each["cta"], each["offset"], each["size"]) for each in found["finding"]["accesses"]] == [([0, 0, 0], 0, 4)] * 2
    assert main([*words, "--format", "sarif"]) == 1
    (result,) = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    assert result["ruleId"] == "race"
    assert result["properties"]["accesses"][0]["thread"] != result["properties"]["accesses"][1]["thread"]
    assert main(words) == 1
    assert "WAW race on .shared memory" in capsys.readouterr().err


def test_what_a_kernel_may_have_written_has_a_value():
    array = ptxvm.DeviceArray(64, np.uint32)
    assert kinds("st.global.u32 [%rd3], 1;", ("init",), data=array) == []
    assert kinds("ld.global.u32 %r3, [%rd3];", ("init",), data=array) == []


# ── what kernels print ──────────────────────────────────────────────────────────────────

PRINTS = """
.version 8.6
.target sm_90
.address_size 64
.extern .func (.param .b32 status) vprintf (.param .b64 format, .param .b64 arguments);
.global .align 1 .b8 said[4] = {72, 105, 10, 0};
.shared .align 4 .b32 s;
.visible .entry k()
{
    .reg .b32 %r; .reg .b64 %d; .reg .pred %p;
    .param .b64 format; .param .b64 arguments; .param .b32 status;
    mov.u32 %r, %tid.x;
    st.shared.u32 [s], %r;
    setp.ne.u32 %p, %r, 0;
    @%p ret;
    mov.u64 %d, said;
    cvta.global.u64 %d, %d;
    st.param.b64 [format], %d;
    st.param.b64 [arguments], 0;
    call (status), vprintf, (format, arguments);
    ret;
}
"""


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_only_the_first_of_several_schedules_prints(engine, capsys):
    result = ptxvm.load(PRINTS).kernel().launch(1, 64, [], check=("race",), schedules=5, seed=0, engine=engine)
    assert len(result.findings) == 1
    assert result.output == "Hi\n"
    assert capsys.readouterr().out == "Hi\n"


def test_one_word_asks_for_every_check():
    body = "st.global.u32 [%rd1], %r1; st.global.u32 [%rd3+128], %r2;"
    assert kinds(body, "memory") == []
    assert {*kinds(body, "all")} == {*kinds(body, "race"), *kinds(body, "init")} == {"race", "uninitialised-read"}

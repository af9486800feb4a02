"""The check `init` by the bytes of values: partly written words, frames, arguments, results, packed registers.

What is expected follows from the manual: a register or byte that was never written is undefined (PTX 5.1.1 and 5.1.5), a
`.local` variable or argument belongs to one call (PTX 5.1.5, 7.1), and all bytes of a load are used where no pragma
says otherwise (PTX 12.2).  To compute with an undefined value is no mistake before the outcome is observed: it decides a
branch, a guard of an effect or an address, or goes to device memory or to another thread.
"""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

ENGINES = pytest.mark.parametrize("engine", ["interp", "jit"])
UNSET = ["uninitialised-read"]

HEAD = """
.version 8.3
.target sm_80
.address_size 64
.extern .func (.param .b64 block) malloc(.param .b64 size);
"""
KERNEL = """
.visible .entry k(.param .u64 data)
{
    .local .align 8 .b8 x[16];
    .shared .align 8 .b8 s[64];
    .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<10>; .reg .f32 %f<3>; .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
"""
F = """
.func (.param .b32 out) f(.param .b32 in, .param .align 8 .b8 pair[16]) {
    .local .align 4 .b8 frame[16];
    .reg .b32 %a<4>; .reg .pred %q;
    BODY
    ret;
}
"""
CALL = "call (out), f, (in, pair); ld.param.b32 %r2, [out]; st.global.u32 [%rd1], %r2;"
DECLARED = ".param .b32 in; .param .b32 out; .param .align 8 .b8 pair[16];"


def findings(body, engine, functions="", block=1):
    text = HEAD + functions + KERNEL + body + "\n    ret;\n}\n"
    return ptxvm.load(text).kernel("k").launch(1, block, [np.zeros(64, np.uint32)], check=("init",), engine=engine).findings


def kinds(*args, **how):
    return [each.kind for each in findings(*args, **how)]


USE = "st.global.u32 [%rd1], %r3;"
READ = "st.local.u8 [x], 1; ld.local.u32 %r2, [x];"

WRONG = {
    "one byte of four": (READ + "st.global.u32 [%rd1], %r2;", "register %r2, whose bytes 1 to 3 have no value"),
    "five bytes of eight": (
        "st.local.u8 [x], 1; st.local.u32 [x+4], 2; ld.local.u64 %rd2, [x]; st.global.u64 [%rd1], %rd2;", "bytes 1 to 3 have"
    ),
    "two of shared memory": (
        "mov.u16 %h1, 1; st.shared.u16 [s+4], %h1; ld.shared.u32 %r3, [s+4];" + USE, "bytes 6 to 7 have not"
    ),
    "every other byte": (
        "st.shared.u8 [s], 1; st.shared.u8 [s+2], 1; ld.shared.u32 %r3, [s];" + USE, "of which bytes 1, 3 have not been written"
    ),
    "by a generic address": (
        "mov.u64 %rd2, x; cvta.local.u64 %rd2, %rd2; st.u8 [%rd2], 1; ld.u32 %r2, [%rd2]; st.global.u32 [%rd1], %r2;",
        "bytes 1 to 3",
    ),
    "an element of a vector": ("st.local.u32 [x], 1; ld.local.v2.u32 {%r2, %r3}, [x];" + USE, "of which bytes 4 to 7"),
    "computed with": (READ + "add.u32 %r3, %r2, 1;" + USE, "register %r3, whose bytes 1 to 3"),
    "compared": (
        READ + "setp.eq.u32 %p1, %r2, 1; @%p1 bra L; st.global.u32 [%rd1], 5; L:", "register %p1, which comes from bytes"
    ),
    "as a float": (
        "st.local.u8 [x], 1; ld.local.f32 %f1, [x]; add.f32 %f2, %f1, %f1; st.global.f32 [%rd1], %f2;", "%f2, which comes from"
    ),
    "given to other lanes": (READ + "shfl.sync.idx.b32 %r3, %r2, 0, 31, 1;" + USE, "register %r3, whose bytes 1 to 3"),
    "a lane that is told": ("shfl.sync.idx.b32 %r3, %r1, %r4, 31, 1;", "register %r4,"),
    "voted on": ("vote.sync.ballot.b32 %r3, %p1, 1;", "register %p1,"),
    "reduced over lanes": ("redux.sync.add.u32 %r3, %r4, 1;", "register %r4,"),
    "matched with lanes": ("match.any.sync.b32 %r3, %r4, 1;", "register %r4,"),
    "chosen": ("setp.eq.u32 %p1, %r1, 0; selp.u32 %r3, %r4, 1, %p1;" + USE, "register %r3,"),
    "that by which one is chosen": ("selp.u32 %r3, 1, 2, %p1;" + USE, "register %r3, whose byte 0 has no value"),
    "the wrong byte picked": (READ + "and.b32 %r3, %r2, 0xff00;" + USE, "byte 1 has"),
    "copied with its padding, which is read": (
        READ + "st.local.u32 [x+8], %r2; ld.local.u8 %r3, [x+9];" + USE, "register %r3, whose byte 0 has no value"
    ),
    "an unset half of a pair": ("mov.b64 %rd2, {%r1, %r4}; mov.b64 {%r2, %r3}, %rd2;" + USE, "register %r3,"),
    "a pair with an unset half": ("mov.b64 %rd2, {%r1, %r4}; st.global.u64 [%rd1], %rd2;", "bytes 4 to 7 have no value"),
    "a guard": ("@%p1 st.global.u32 [%rd1], 1;", "register %p1,"),
    "in the first turn of a loop": (
        "A: add.u32 %r3, %r2, 1; mov.u32 %r2, 5; setp.lt.u32 %p1, %r3, 3; @%p1 bra A;", "register %r2,"
    ),
    "a block of alloca": ("alloca.u64 %rd2, 16; ld.local.u32 %r3, [%rd2];" + USE, "which nothing has written"),
    "a block of alloca in the place of another": (
        ("stacksave.u64 %rd3; alloca.u64 %rd2, 16; st.local.u32 [%rd2], 1; stackrestore.u64 %rd3; alloca.u64 %rd2, 16;"
        "ld.local.u32 %r3, [%rd2];" + USE), "which nothing has written",
    ),
    "an argument of a function of the device": (
        "{ .param .b64 n; .param .b64 b; call (b), malloc, (n); }", "the argument 'size' of 'malloc'",
    ),
    "fewer bytes than the pragma says": (
        'st.local.u8 [x], 1; .pragma "used_bytes_mask 3"; ld.local.u32 %r3, [x];' + USE, "byte 1 has"
    ),
    "a pragma before another instruction": (
        'st.shared.u8 [s], 1; .pragma "used_bytes_mask 1"; mov.u32 %r4, 1; ld.shared.u32 %r3, [s];' + USE, "bytes 1 to 3"
    ),
}  # fmt: skip

FINE = {
    "shared memory that is loaded for nothing": "ld.shared.u32 %r3, [s]; add.u32 %r3, %r3, 1;",
    "padding that is not used": READ + "mov.u32 %r3, %r2;",
    "padding copied, and read": READ + "st.local.u32 [x+8], %r2; ld.local.u8 %r3, [x+9];",
    "padding copied": READ + "st.local.u32 [x+8], %r2; ld.local.u8 %r3, [x+8];" + USE,
    "padding masked": READ + "and.b32 %r3, %r2, 0xff;" + USE,
    "padding shifted out": "st.local.u8 [x+3], 1; ld.local.u32 %r2, [x]; shr.u32 %r3, %r2, 24;" + USE,
    "padding converted away": READ + "cvt.u32.u8 %r3, %r2;" + USE,
    "padding that prmt leaves": READ + "prmt.b32 %r3, %r2, 0, 0x4440;" + USE,
    "padding that bfe leaves": READ + "bfe.u32 %r3, %r2, 0, 8;" + USE,
    "what is not chosen": "setp.eq.u32 %p1, %r1, 0; selp.u32 %r3, 1, %r4, %p1;" + USE,
    "what is not chosen by a sign": "slct.u32.s32 %r3, 1, %r4, %r1;" + USE,
    "given to other lanes, which do not use it": "shfl.sync.idx.b32 %r3, %r4, 0, 31, 1;",
    "the good half of a pair": "mov.b64 %rd2, {%r1, %r4}; mov.b64 {%r3, %r2}, %rd2;" + USE,
    "bytes that a pragma calls unused": 'st.local.u8 [x], 1; .pragma "used_bytes_mask 0x1"; ld.local.u32 %r3, [x];' + USE,
    "an element that a pragma calls unused": 'st.shared.u32 [s], 1; .pragma "used_bytes_mask 0xf";'
    "ld.shared.v2.u32 {%r2, %r3}, [s];",
    "a vector, element by element": "st.local.u32 [x], 1; st.local.u32 [x+4], 1; ld.local.v2.u32 {%r2, %r3}, [x];" + USE,
}


@ENGINES
@pytest.mark.parametrize("name", WRONG)
def test_bytes_without_a_value(engine, name):
    body, said = WRONG[name]
    (found,) = findings(body, engine)
    assert [found.kind] == UNSET
    assert said in found.message


LOAD, ADD, ALLOWED = "ld.local.u32 %r2, [x];", "add.u32 %r4, %r2, 1;", "// ptxvm: allow uninitialised-read"
USES = [f"st.global.u32 [%rd1], %r{n};" for n in range(5)]
CAUSES = {  # the lines of a body, and those of its findings: of the first observer of each cause, then of the others
    "a load": ([LOAD, USES[2], ADD, USES[4]], [[1, 3]]),
    "two loads": ([LOAD, "ld.local.u32 %r3, [x];", USES[2], USES[3]], [[2], [3]]),
    "a register": ([USES[4], USES[4], USES[4]], [[0, 1, 2]]),
    "an observer that is allowed": ([LOAD, USES[2] + ALLOWED, USES[2], USES[2] + ALLOWED, USES[2]], [[2, 4]]),
    "a load that is allowed": ([LOAD + ALLOWED, USES[2], USES[2]], []),
}


@ENGINES
@pytest.mark.parametrize("name", CAUSES)
def test_one_cause_is_one_finding(engine, name):
    body, expected = CAUSES[name]
    first = (HEAD + KERNEL).count("\n") + 1
    found = findings("\n".join(body), engine)
    assert [[line - first for line in (each.line, *each.also)] for each in found] == expected
    for each in found:
        assert ("read too at line" in str(each)) is bool(each.also)


def test_a_text_lists_few_of_the_lines_of_a_cause():
    (found,) = findings("st.global.u32 [%rd1], %r4;\n" * 12, "interp")
    first = found.line
    assert str(found).splitlines()[2] == f"  read too at lines {', '.join(str(first + n) for n in range(1, 9))} and 3 more"
    assert found.diagnostic().note.endswith(" and 3 more")
    assert found.details["also"] == tuple(range(first + 1, first + 12))


@ENGINES
@pytest.mark.parametrize("name", FINE)
def test_bytes_that_nothing_computes_with(engine, name):
    assert kinds(FINE[name], engine) == []


AGGREGATED = """
    setp.ne.u32 %p1, %r1, LEADER;
    @%p1 bra $together;
    atom.global.add.u32 %r2, [%rd1], 32;
$together:
    shfl.sync.idx.b32 %r3|%p2, %r2, 3, 31, -1;
    add.u32 %r3, %r3, %r1;
    selp.u32 %r3, %r3, 0, %p2;
    mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd2, %rd1; st.global.u32 [%rd2+4], %r3;
"""


@ENGINES
@pytest.mark.parametrize(("leader", "found"), [(3, []), (2, UNSET)])
def test_the_result_of_an_atomic_that_one_lane_does_for_its_warp(engine, leader, found, caplog):
    """`shfl` gives the lanes the register of the one lane that has written it (PTX 9.7.9.6), whoever else gives one."""
    with caplog.at_level("INFO", logger="ptxvm.jit"):
        assert kinds(AGGREGATED.replace("LEADER", str(leader)), engine, block=32) == found
    assert bool(caplog.records) == (engine == "jit" and found != [])  # else compiled code has decided


STORES = "st.param.b32 [in], 1; st.param.b64 [pair], 5; st.param.b32 [pair+8], 6;"


@ENGINES
@pytest.mark.parametrize(
    ("stores", "function", "found"),
    [
        (STORES, "ld.param.b32 %a1, [in]; st.param.b32 [out], %a1;", []),
        (STORES, "ld.param.b32 %a1, [pair+8]; st.param.b32 [out], %a1;", []),
        (STORES, "ld.param.b32 %a1, [pair+12]; st.param.b32 [out], %a1;", UNSET),  # no field is there
        (STORES, "ld.param.b32 %a1, [pair+12]; st.param.b32 [out], 1;", []),
        ("", "ld.param.b32 %a1, [in]; st.param.b32 [out], %a1;", UNSET),
        ("", "ld.param.b32 %a1, [in]; st.param.b32 [out], 1;", []),
        ("st.param.b32 [in], %r9;", "ld.param.b32 %a1, [in]; add.u32 %a1, %a1, 1; st.param.b32 [out], 1;", []),
        (STORES, "", UNSET),  # no result
        (STORES, "st.local.u32 [frame], 1; ld.local.u32 %a1, [frame]; st.param.b32 [out], %a1;", []),
    ],
)
def test_arguments_and_results(engine, stores, function, found):
    body = DECLARED + stores + CALL
    assert kinds(body, engine, functions=F.replace("BODY", function)) == found


@ENGINES
@pytest.mark.parametrize(
    ("function", "found"),
    [
        (
            "ld.param.b32 %a1, [in]; setp.eq.u32 %q, %a1, 1; @%q st.local.u32 [frame], 5; ld.local.u32 %a2, [frame]; USE",
            UNSET,
        ),
        ("ld.param.b32 %a1, [in]; setp.eq.u32 %q, %a1, 1; @%q mov.u32 %a3, 5; setp.eq.u32 %q, %a3, 9; @%q bra E; E: ", UNSET),
        ("ld.param.b32 %a1, [in]; st.local.u32 [frame], %a1; ld.local.u32 %a2, [frame];", []),
    ],
)
def test_a_call_begins_without_what_an_earlier_one_left(engine, function, found):
    """The first call writes the frame, the second one reads it."""
    second = STORES.replace("[in], 1", "[in], 0") + CALL
    function = function.replace("USE", "setp.eq.u32 %q, %a2, 9; @%q bra E; E: ")
    function = F.replace("BODY", function + "st.param.b32 [out], 1;")
    assert kinds(DECLARED + STORES + CALL + second, engine, functions=function) == found


@ENGINES
def test_an_argument_belongs_to_one_call(engine):
    function = F.replace("BODY", "ld.param.b32 %a1, [in]; st.param.b32 [out], %a1;")
    assert kinds(DECLARED + STORES + CALL + STORES + CALL, engine, functions=function) == []
    assert kinds(DECLARED + STORES + CALL + CALL, engine, functions=function) == UNSET


@ENGINES
@pytest.mark.parametrize(("stores", "found"), [("st.param.b32 [pair], 5; st.param.b32 [pair+4], 5;", []), ("", UNSET)])
def test_an_array_without_a_size_as_the_last_argument(engine, stores, found):
    function = """
    .func (.param .b32 out) g(.param .b32 n, .param .align 8 .b8 each[]) {
        .reg .b32 %a; .reg .b64 %d;
        mov.u64 %d, each; ld.param.b32 %a, [%d+4]; add.u32 %a, %a, 1; st.param.b32 [out], %a; ret;
    }
    """
    body = DECLARED + "st.param.b32 [in], 2;" + stores + CALL.replace("f, (in", "g, (in")
    assert kinds(body, engine, functions=function) == found


@ENGINES
@pytest.mark.parametrize(
    ("given", "function", "found"),
    [
        ("mov.u32 %r4, 1;", "add.u32 out, in, 1;", []),
        ("", "add.u32 out, in, 1;", UNSET),
        ("mov.u32 %r4, 1;", "", UNSET),
        ("", "mov.u32 out, 1;", []),
    ],
)
def test_arguments_and_results_in_registers(engine, given, function, found):
    functions = f".func (.reg .b32 out) f(.reg .b32 in) {{ {function} ret; }}\n"
    body = given + "call (%r2), f, (%r4); st.global.u32 [%rd1], %r2;"
    assert kinds(body, engine, functions=functions) == found


HEAP = (
    HEAD
    + """
.visible .entry make(.param .u64 cell)
{
    .reg .b64 %c, %b;
    .param .b64 size, block;
    ld.param.u64 %c, [cell];
    st.param.b64 [size], 16;
    call (block), malloc, (size);
    ld.param.b64 %b, [block];
    st.u64 [%b], 7;
    ld.u64 %b, [%b+OFFSET];
    st.param.b64 [size], 16;
    ld.param.b64 %b, [block];
    st.global.u64 [%c], %b;
    ret;
}
.visible .entry take(.param .u64 cell)
{
    .reg .b64 %c, %b;
    ld.param.u64 %c, [cell];
    ld.global.u64 %b, [%c];
    ld.u64 %b, [%b];
    st.global.u64 [%c], %b;
    ret;
}
"""
)


@ENGINES
@pytest.mark.parametrize(("offset", "found"), [(0, []), (8, UNSET)])
def test_a_block_of_malloc_has_no_value_until_the_launch_that_allocates_it_stores_one(engine, offset, found):
    """What a later launch finds there is what an earlier one has left (CUDA C++ guide, dynamic global memory allocation)."""
    module, cell = ptxvm.load(HEAP.replace("OFFSET", str(offset))), np.zeros(1, np.uint64)
    for name, expected in (("make", found), ("take", [])):
        done = module.kernel(name).launch(1, 1, [cell], check=("init",), engine=engine)
        assert [each.kind for each in done.findings] == expected
    assert cell[0] == 7


PARENT = """
.version 6.4
.target sm_75
.address_size 64
.extern .func (.param .b64 buffer) cudaGetParameterBufferV2(
    .param .b64 kernel, .param .align 4 .b8 grid[12], .param .align 4 .b8 block[12], .param .b32 shared);
.extern .func (.param .b32 status) cudaLaunchDeviceV2(.param .b64 buffer, .param .b64 stream);
.entry child(.param .u64 data, .param .u32 value) {
    .reg .b64 %d; .reg .b32 %r;
    ld.param.u64 %d, [data]; ld.param.u32 %r, [value]; st.global.u32 [%d], %r;
    ret;
}
.entry parent(.param .u64 data) {
    .reg .b64 %d, %k, %b;
    .param .b64 kernel; .param .align 4 .b8 grid[12]; .param .align 4 .b8 block[12]; .param .b32 shared;
    .param .b64 buffer; .param .b32 status; .param .b64 into; .param .b64 stream;
    ld.param.u64 %d, [data];
    mov.u64 %k, child;
    st.param.b64 [kernel], %k;
    st.param.b32 [grid], 1; st.param.b32 [grid+4], 1; st.param.b32 [grid+8], 1;
    st.param.b32 [block], 1; st.param.b32 [block+4], 1; st.param.b32 [block+8], 1;
    st.param.b32 [shared], 0;
    call (buffer), cudaGetParameterBufferV2, (kernel, grid, block, shared);
    ld.param.b64 %b, [buffer];
    st.u64 [%b], %d;
    SECOND
    st.param.b64 [into], %b; st.param.b64 [stream], 0;
    call (status), cudaLaunchDeviceV2, (into, stream);
    ret;
}
"""


@ENGINES
@pytest.mark.parametrize(("second", "found"), [("st.u32 [%b+8], 7;", []), ("", UNSET)])
def test_a_parameter_that_the_parent_has_not_stored(engine, second, found):
    """The parameters of a grid are what its parent has stored in the buffer (CUDA C++ guide, dynamic parallelism)."""
    kernel = ptxvm.load(PARENT.replace("SECOND", second)).kernel("parent")
    results = kernel.launch(1, 1, [np.zeros(4, np.uint32)], check=("init",), engine=engine).findings
    assert [each.kind for each in results] == found
    assert [each.accesses[0].place.kernel for each in results] == ["child"] * len(found)


@pytest.mark.parametrize("space", ["%reserved_smem_offset_1", "own"])
def test_scratch_of_cooperative_groups_is_their_own(space):
    """CUDA's own code updates words without a value and orders by a shuffle: no finding, unlike in own memory (PTX 10.29)."""
    source = f"""
    .version 8.1
    .target sm_90
    .address_size 64
    .visible .entry k() {{
        .shared .align 4 .b32 own[4];
        .reg .b32 %r<6>; .reg .pred %p;
        mov.u32 %r0, %reserved_smem_offset_1;
        mov.u32 %r0, {space};
        red.and.release.cta.shared.b32 [%r0], -2;
        mov.u32 %r1, %tid.x;
        setp.eq.u32 %p, %r1, 0;
        @%p st.shared.u32 [%r0+4], 5;
        shfl.sync.idx.b32 %r2, %r1, 0, 31, -1;
        ld.shared.u32 %r3, [%r0+4];
        ret;
    }}
    """
    findings = ptxvm.load(source).kernel().launch(1, 32, [], check=["race", "init"]).findings
    assert [each.kind for each in findings] == ([] if space != "own" else ["uninitialised-read", "race"])

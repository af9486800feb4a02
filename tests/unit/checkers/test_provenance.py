"""The check `memory` by the objects of addresses: variables, blocks of alloca and of malloc, wherever an address came from.

What is expected is C's rule for pointers: an address that is computed from that of an object is used for this object and as
long as it lives (PTX 5.1.5, 9.7.17; CUDA C++ guide, malloc).  Where it is not known any more, its allocation decides.
"""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

ENGINES = pytest.mark.parametrize("engine", ["interp", "jit"])
OUT, FREED = "out-of-bounds", "use-after-free"

HEAD = """
.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b64 block) malloc(.param .b64 size);
.extern .func free(.param .b64 block);
.func store(.param .b64 at) { .reg .b64 %a; ld.param.b64 %a, [at]; st.u32 [%a+12], 1; st.u32 [%a+16], 1; ret; }
.func touch(.param .b64 at) { .reg .b64 %a; ld.param.b64 %a, [at]; st.u32 [%a+12], 1; ret; }
.func store_register(.reg .b64 at) { st.u32 [at+16], 1; ret; }
.func (.param .b64 out) own() {
    .local .align 8 .b8 frame[16]; .reg .b64 %a;
    mov.u64 %a, frame; cvta.local.u64 %a, %a; st.u32 [%a], 3; st.param.b64 [out], %a; ret;
}
.func (.param .b64 out) taken() {
    .reg .b64 %a;
    alloca.u64 %a, 16; st.local.u32 [%a], 1; cvta.local.u64 %a, %a; st.param.b64 [out], %a; ret;
}
.func deeper(.param .b32 n, .param .b64 at) {
    .local .align 8 .b8 frame[16]; .reg .b32 %n; .reg .b64 %a; .reg .pred %q;
    ld.param.b32 %n, [n]; ld.param.b64 %a, [at];
    st.u32 [%a+12], %n;
    setp.eq.u32 %q, %n, 0;
    @%q ret;
    mov.u64 %a, frame; cvta.local.u64 %a, %a; sub.u32 %n, %n, 1;
    { .param .b32 m; .param .b64 b; st.param.b32 [m], %n; st.param.b64 [b], %a; call deeper, (m, b); }
    ld.local.u32 %n, [frame+12];
    ret;
}
.visible .entry k(.param .u64 data)
{
    .shared .align 16 .b8 a[16];
    .shared .align 16 .b8 b[16];
    .shared .align 16 .b8 c[16];
    .shared .align 16 .b8 m[512];
    .shared .align 16 .b8 n[512];
    .local .align 8 .b8 x[16];
    .local .align 8 .b8 y[16];
    .reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %rd<10>;
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %p1, %r1, 0;
    mov.u32 %r2, a;
    mov.u32 %r3, b;
    mov.u64 %rd2, x;
    cvta.local.u64 %rd2, %rd2;
    mov.u64 %rd3, a;
    cvta.shared.u64 %rd3, %rd3;
"""


def findings(body, engine, block=1, check=("memory",)):
    text = HEAD + body + "\n    ret;\n}\n"
    return ptxvm.load(text).kernel("k").launch(1, block, [np.zeros(64, np.uint32)], check=check, engine=engine).findings


TAKEN = "ld.shared.u32 %r4, [c]; st.shared.u32 [%r4+16], 1;"
CHOSEN = "selp.u32 %r4, %r2, %r3, %p1;"
MALLOC = (
    "{ .param .b64 size; .param .b64 block; st.param.b64 [size], 16; call (block), malloc, (size);"
    "ld.param.b64 %rd5, [block]; }\n"
)
OTHER = MALLOC.replace("%rd5", "%rd6")
FREE = "{ .param .b64 block; st.param.b64 [block], %rd5; call free, (block); }\n"
LAST = FREE.replace("%rd5", "%rd6")


def call(name, register="%rd2"):
    return f"{{ .param .b64 at; st.param.b64 [at], {register}; call {name}, (at); }}\n"


def result(name, register="%rd5"):
    return f"{{ .param .b64 out; call (out), {name}, (); ld.param.b64 {register}, [out]; }}\n"


WRONG = {
    "one of two variables": (CHOSEN + "st.shared.u32 [%r4+16], 1;", OUT, "at byte 16 of 'a', which has 16 bytes"),
    "the other of two": ("@!%p1 mov.u32 %r2, b; @%p1 mov.u32 %r2, c; st.shared.u32 [%r2+-4], 1;", OUT, "byte -4 of 'c'"),
    "where two paths meet": ("@!%p1 bra A; mov.u32 %r2, b; A: st.shared.u32 [%r2+16], 1;", OUT, "of 'b'"),
    "through shared memory": ("st.shared.u32 [c], %r2; ld.shared.u32 %r4, [c]; st.shared.u32 [%r4+16], 1;", OUT, "of 'a'"),
    "through global memory": ("st.global.u64 [%rd1], %rd3; ld.global.u64 %rd5, [%rd1]; st.u32 [%rd5+16], 1;", OUT, "of 'a'"),
    "through a vector": (
        "st.global.v2.u64 [%rd1], {%rd2, %rd3}; ld.global.v2.u64 {%rd5, %rd6}, [%rd1]; st.u32 [%rd6+16], 1;", OUT, "of 'a'"
    ),
    "through an exchange": ("atom.shared.exch.b32 %r4, [c], %r2;" + TAKEN, OUT, "'a'"),
    "through a swap": ("st.shared.u32 [c], 0; atom.shared.cas.b32 %r4, [c], 0, %r2;" + TAKEN, OUT, "'a'"),
    "as an argument": (call("store"), OUT, "at byte 16 of 'x'"),
    "as an argument in a register": ("call store_register, (%rd2);", OUT, "at byte 16 of 'x'"),
    "by a pointer to the function": (
        ("mov.u64 %rd5, store; P: .callprototype _ (.param .b64 at);"
        "{ .param .b64 at; st.param.b64 [at], %rd2; call %rd5, (at), P; }"), OUT, "at byte 16 of 'x'"
    ),
    "rounded": ("or.b32 %r4, %r2, 4; and.b32 %r4, %r4, -8; st.shared.u32 [%r4+16], 1;", OUT, "byte 16 of 'a'"),
    "by a distance in one variable": (
        "add.u32 %r4, %r2, 8; sub.u32 %r4, %r4, %r2; add.u32 %r4, %r2, %r4; st.shared.u32 [%r4+8], 1;", OUT, "byte 16 of 'a'"
    ),
    "the target of a copy": ("cp.async.ca.shared.global [%r2+16], [%rd1], 4; cp.async.wait_all;", OUT, "byte 16 of 'a'"),
    "an atomic": (CHOSEN + "atom.shared.add.u32 %r5, [%r4+16], 1;", OUT, "of 'a'"),
    "an mbarrier": (CHOSEN + "mbarrier.init.shared.b64 [%r4+16], 1;", OUT, "writing 8 bytes at byte 16 of 'a'"),
    "past a block of alloca": ("alloca.u64 %rd5, 16; st.local.u32 [%rd5+64], 1;", OUT, "at byte 64 of a block of alloca"),
    "far past it": ("alloca.u64 %rd5, 16; st.local.u32 [%rd5+8192], 1;", OUT, "of a block of alloca, which has 16 bytes"),
    "before it": ("alloca.u64 %rd6, 16; alloca.u64 %rd5, 16; st.local.u32 [%rd5+-4], 1;", OUT, "at byte -4"),
    "a block after stackrestore": (
        "stacksave.u64 %rd6; alloca.u64 %rd5, 16; stackrestore.u64 %rd6; st.local.u32 [%rd5], 1;", FREED, "a block of alloca"
    ),
    "a variable of a call that has returned": (result("own") + "ld.u32 %r4, [%rd5];", FREED, "a variable of a call of 'own'"),
    "of an earlier call": (result("own") + result("own", "%rd6") + "ld.u32 %r4, [%rd5];", FREED, "of 'frame'"),
    "a block of a call that has returned": (result("taken") + "ld.u32 %r4, [%rd5];", FREED, "a block of alloca"),
    "in another block of malloc": (MALLOC + OTHER + "st.global.u32 [%rd5+32], 1;" + FREE + LAST, OUT, "malloc, which has"),
    "that other block, through memory": (
        MALLOC + OTHER + "st.shared.u64 [a], %rd5; ld.shared.u64 %rd7, [a]; st.global.u32 [%rd7+32], 1;" + FREE + LAST,
        OUT, "malloc",
    ),
    "freed again where another has its place": (
        MALLOC.replace("16;", "5000000;") + FREE + OTHER.replace("16;", "5000000;") + FREE + LAST, "double-free", "freed before"
    ),
    "a freed block whose place another has": (
        MALLOC.replace("16;", "5000000;") + FREE + OTHER.replace("16;", "5000000;") + "ld.global.u32 %r4, [%rd5];" + LAST,
        FREED, "a block of malloc",
    ),
}  # fmt: skip

FINE = {
    "one of two variables": CHOSEN + "st.shared.u32 [%r4+12], 1;",
    "an argument": call("touch"),
    "a variable of the caller, in a recursion": (
        "{ .param .b32 n; .param .b64 at; st.param.b32 [n], 3; st.param.b64 [at], %rd2; call deeper, (n, at); }"
    ),
    "the distance of two variables": "sub.u32 %r4, %r3, %r2; add.u32 %r4, %r2, %r4; st.shared.u32 [%r4], 1;",
    "that distance, through memory": (
        "sub.u32 %r4, %r3, %r2; st.shared.u32 [c], %r4; ld.shared.u32 %r4, [c]; add.u32 %r4, %r2, %r4; st.shared.u32 [%r4], 1;"
    ),
    "exclusive or": "xor.b32 %r4, %r2, 16; st.shared.u32 [%r4], 1;",
    "packed": ("mov.b64 %rd5, {%r2, %r3}; mov.b64 {%r4, %r5}, %rd5; st.shared.u32 [%r4+12], 1; st.shared.u32 [%r5+12], 1;"),
    "packed by shifts": (
        "cvt.u64.u32 %rd5, %r2; cvt.u64.u32 %rd6, %r3; shl.b64 %rd6, %rd6, 32; or.b64 %rd5, %rd5, %rd6;"
        "shr.u64 %rd6, %rd5, 32; and.b64 %rd7, %rd5, 0xffffffff; st.shared.u32 [%rd6], 1; st.shared.u32 [%rd7], 1;"
    ),
    "stored byte by byte": (
        "st.shared.u8 [c], %r3; shr.u32 %r4, %r3, 8; st.shared.u8 [c+1], %r4; shr.u32 %r4, %r3, 16; st.shared.u8 [c+2], %r4;"
        "shr.u32 %r4, %r3, 24; st.shared.u8 [c+3], %r4; ld.shared.u32 %r4, [c]; st.shared.u32 [%r4], 1;"
    ),
    "by way of far away": CHOSEN + "add.u32 %r4, %r4, -1000; add.u32 %r4, %r4, 1012; st.shared.u32 [%r4], 1;",
    "past the end, and back": CHOSEN + "add.u32 %r4, %r4, 16; ld.shared.u32 %r5, [%r4+-4];",
    "a copy": "cp.async.ca.shared.global [%r2+12], [%rd1], 4; cp.async.wait_all;",
    "a word overwritten by a number": (
        "st.shared.u32 [c], %r2; st.shared.u32 [c], 32; ld.shared.u32 %r4, [c]; st.shared.u32 [%r4], 1;"
    ),
    "blocks of alloca": "alloca.u64 %rd5, 16; alloca.u64 %rd6, 16; st.local.u32 [%rd5+12], 1; st.local.u32 [%rd6], 1;",
    "a block again after stackrestore": (
        "stacksave.u64 %rd6; alloca.u64 %rd5, 16; stackrestore.u64 %rd6; alloca.u64 %rd5, 16; st.local.u32 [%rd5+12], 1;"
    ),
    "a block of malloc": MALLOC + "st.global.u32 [%rd5+12], 1;" + FREE,
}


@ENGINES
@pytest.mark.parametrize("name", WRONG)
def test_an_access_that_leaves_its_object(engine, name):
    body, kind, said = WRONG[name]
    (found,) = findings(body, engine)
    assert (found.kind, said in found.message) == (kind, True), found.message


@ENGINES
@pytest.mark.parametrize("name", FINE)
@pytest.mark.parametrize("check", [("memory",), ("memory", "init", "sync", "race")])
def test_an_access_of_its_object(engine, name, check):
    assert [str(each) for each in findings(FINE[name], engine, check=check) if each.kind != "uninitialised-read"] == []


@ENGINES
def test_lanes_have_objects_of_their_own(engine):
    """Of 32 lanes, each with a block as large as its number says, the last word is fine and the next one is not."""
    block = "mul.wide.u32 %rd6, %r1, 8; add.u64 %rd6, %rd6, 8; alloca.u64 %rd5, %rd6; add.u64 %rd5, %rd5, %rd6;"
    assert findings(block + "st.local.u32 [%rd5+-4], 1;", engine, block=32) == []
    (found,) = findings(block + "setp.gt.u32 %p2, %r1, 4; @%p2 st.local.u32 [%rd5], 1;", engine, block=32)
    assert (found.kind, found.accesses[0].thread) == (OUT, (5, 0, 0))
    assert "byte 48 of a block of alloca, which has 48 bytes" in found.message


@ENGINES
def test_lanes_give_each_other_addresses(engine):
    chosen = "selp.u32 %r4, %r2, %r3, %p1; shfl.sync.idx.b32 %r4, %r4, 0, 31, -1;"
    (found,) = findings(chosen + "ld.shared.u32 %r5, [%r4+16];", engine, block=32)
    assert "of 'a'" in found.message
    assert findings(chosen + "ld.shared.u32 %r5, [%r4+12];", engine, block=32) == []
    rows = "mov.u32 %r4, m; shl.b32 %r5, %r1, 4; add.u32 %r4, %r4, %r5; "
    rows += "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r6, %r7, %r8, %r9}, [%r4+AT];"
    assert findings(rows.replace("AT", "0"), engine, block=32) == []
    (found,) = findings(rows.replace("AT", "16"), engine, block=32)
    assert "byte 512 of 'm', which has 512 bytes" in found.message


def test_what_compiled_code_decides_alone_is_not_interpreted(caplog):
    """An address of one variable, and what is or-ed and masked of it, belongs to that variable whatever runs."""
    caplog.set_level("INFO", "ptxvm.jit")
    body = "mad.lo.u32 %r4, %r1, 4, %r2; and.b32 %r4, %r4, -4; or.b32 %r4, %r4, 0; st.shared.u32 [%r4], 1;"
    assert findings(body, "jit", block=4) == []
    assert not caplog.records
    findings(CHOSEN + "st.shared.u32 [c], %r4; ld.shared.u32 %r4, [c]; st.shared.u32 [%r4], 1;", "jit")
    assert "a pointer goes where nothing follows it" in caplog.text

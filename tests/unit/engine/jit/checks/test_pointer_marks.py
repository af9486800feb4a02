"""The check `memory` on the JIT where a pointer is that of one of several variables: what a run chooses is followed.

What is expected is C's rule for pointers, as in `tests/unit/checkers/test_provenance.py`: an address that is computed from that
of a variable is used for this variable (PTX 5.1.5).
"""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

HEAD = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 data, .param .u32 n)
{
    .shared .align 16 .b8 a[64];
    .shared .align 16 .b8 b[32];
    .shared .align 16 .b8 c[96];
    .local .align 16 .b8 x[16];
    .local .align 16 .b8 y[32];
    .reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %rd<8>, %d<6>;
    ld.param.u64 %rd1, [data]; ld.param.u32 %r9, [n];
    mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 1; setp.gt.u32 %p2, %r9, 5;
    mov.u32 %r3, a; mov.u32 %r4, b;
"""
CHOSEN = "selp.u32 %r5, %r3, %r4, %p1;"  # a for odd lanes, b for even ones
ALIKE = "selp.u32 %r5, %r3, %r4, %p2;"  # b for all, since n is 3
SWAPPED = "mov.u32 %r6, 0; L: mov.u32 %r7, %r3; mov.u32 %r3, %r4; mov.u32 %r4, %r7; st.shared.u32 [%r3+28], %r6;"
SWAPPED += "add.u32 %r6, %r6, 1; setp.lt.u32 %p3, %r6, %r9; @%p3 bra L;"  # n is odd: %r3 has b behind the loop
READ = "ld.shared.u32 %r8, [{}];"
GENERIC = "mov.u64 %d0, a; cvta.shared.u64 %d0, %d0; mov.u64 %d1, b; cvta.shared.u64 %d1, %d1; selp.u64 %d2, %d0, %d1, %p1;"
LOCAL = "mov.u32 %r10, x; mov.u32 %r11, y; selp.u32 %r5, %r10, %r11, %p2;"  # y
FINE = {
    "the last of each": CHOSEN + "@%p1 " + READ.format("%r5+60") + "@!%p1 " + READ.format("%r5+28"),
    "the first of each": CHOSEN + READ.format("%r5"),
    "the same for all": ALIKE + READ.format("%r5+28"),
    "exchanged in a loop": SWAPPED + READ.format("%r3+28") + READ.format("%r4+60"),
    "set on a path": "@!%p2 bra L; mov.u32 %r4, c; L: " + READ.format("%r4+28"),
    "set for some lanes": "@%p1 mov.u32 %r4, c; @%p1 " + READ.format("%r4+92"),
    "beyond it on the way": CHOSEN + "add.u32 %r5, %r5, 64; sub.u32 %r5, %r5, 64;" + READ.format("%r5"),
    "masked": CHOSEN + "add.u32 %r5, %r5, 3; and.b32 %r5, %r5, -4;" + READ.format("%r5"),
    "by a distance": CHOSEN + "sub.u32 %r6, %r4, %r5; add.u32 %r6, %r5, %r6; @!%p1 " + READ.format("%r6+28"),
    "the lower one": "min.u32 %r5, %r3, %r4;" + READ.format("%r5+60"),
    "a generic address": GENERIC + "@%p1 ld.u32 %r8, [%d2+60];",
    "a local one": LOCAL + "ld.local.u32 %r8, [%r5+28];",
    "updated": CHOSEN + "atom.shared.add.u32 %r8, [%r5+28], 1;",
    "a number": "selp.u32 %r5, 96, %r3, %p1;" + READ.format("%r5+16"),
}
WRONG = {
    "behind each": (CHOSEN + READ.format("%r5+32"), "byte 32 of 'b', which has 32 bytes"),
    "before one": (CHOSEN + "@!%p1 " + READ.format("%r5+-4"), "byte -4 of 'b'"),
    "behind, for all": (ALIKE + READ.format("%r5+32"), "byte 32 of 'b'"),
    "exchanged in a loop": (SWAPPED + READ.format("%r3+32"), "byte 32 of 'b'"),
    "set on a path": ("@%p2 bra L; mov.u32 %r4, c; L: " + READ.format("%r4+-4"), "byte -4 of 'c'"),
    "set for some lanes": ("@%p1 mov.u32 %r4, c; " + READ.format("%r4+32"), "byte 32 of 'b'"),
    "a generic address": (GENERIC + "ld.u32 %r8, [%d2+32];", "byte 32 of 'b'"),
    "a local one": (LOCAL + "ld.local.u32 %r8, [%r5+-4];", "byte -4 of 'y'"),
    "updated": (CHOSEN + "atom.shared.add.u32 %r8, [%r5+32], 1;", "byte 32 of 'b'"),
    "wider than what is left": (CHOSEN + "ld.shared.v4.u32 {%r8, %r9, %r10, %r11}, [%r5+32];", "byte 32 of 'b'"),
}


def findings(body, engine="jit", check=("memory",), block=64):
    text = f"{HEAD} {body} st.global.u32 [%rd1], %r8; ret; }}"
    kernel = ptxvm.load(text).kernel()
    return [str(each) for each in kernel.launch(1, block, [np.zeros(block, np.uint32), 3], engine=engine, check=check).findings]


@pytest.mark.parametrize("check", [("memory",), ("memory", "sync")])
@pytest.mark.parametrize("name", FINE)
def test_pointers_to_one_of_several_variables_are_followed(name, check, quick):
    assert findings(FINE[name], check=check) == []
    assert quick()


@pytest.mark.parametrize("block", [32, 64, 72])
@pytest.mark.parametrize("name", WRONG)
def test_what_leaves_its_variable_is_found(name, block, quick):
    body, said = WRONG[name]
    found = findings(body, block=block)
    assert not quick()
    assert any(said in each for each in found), found
    assert found == findings(body, "interp", block=block)


@pytest.mark.parametrize(
    "way",
    [
        "st.shared.u32 [c], %r5; ld.shared.u32 %r5, [c];",  # through memory, as an offset in the window
        "shfl.sync.idx.b32 %r5, %r5, 0, 31, -1;",  # from another lane
        "alloca.u64 %d3, 16; cvt.u32.u64 %r5, %d3;",
    ],
)
def test_what_marks_do_not_follow_is_left_to_the_exact_checker(way, caplog):
    caplog.set_level("INFO", "ptxvm.jit")
    space = "local" if "alloca" in way else "shared"
    assert findings(f"{CHOSEN} {way} ld.{space}.u32 %r8, [%r5+12];", block=32) == []
    by_the_code = f"only a run tells which object the address of 'ld.{space}.u32' belongs to"
    assert (by_the_code if "alloca" in way else "or a pointer goes where nothing follows it") in caplog.text


# ── through memory ──────────────────────────────────────────────────────────────────────

# Beside the pointers %d0 into a, %d1 into b, %d2 into y and %d3 into c there is a place for two: in local memory at %d4, and
# one for each thread in shared memory at %d5.
PLACES = ".shared .align 16 .b8 kept[2048]; .local .align 16 .b8 place[16]; .reg .b64 %k, %e;"
PLACES += "mov.u64 %d0, a; cvta.shared.u64 %d0, %d0; mov.u64 %d1, b; cvta.shared.u64 %d1, %d1; mov.u64 %d2, y;"
PLACES += "cvta.local.u64 %d2, %d2; mov.u64 %d3, c; cvta.shared.u64 %d3, %d3; mov.u64 %d4, place; cvta.local.u64 %d4, %d4;"
PLACES += "mul.wide.u32 %d5, %r1, 16; mov.u64 %k, kept; cvta.shared.u64 %k, %k; add.u64 %d5, %k, %d5; st.local.u32 [y+28], 7;"
KEEPS = (
    ".func keeps(.param .b64 where, .param .b64 what) { .reg .b64 %w, %v; ld.param.b64 %w, [where]; ld.param.b64 %v, [what];"
)
KEEPS += "st.u64 [%w], %v; ret; }"
READS = ".func (.param .b32 o) reads(.param .b64 where) { .local .align 8 .b8 own[8]; .reg .b64 %w; .reg .b32 %v;"
READS += "ld.param.b64 %w, [where]; ld.u64 %w, [%w]; st.local.u64 [own], %w; ld.local.u64 %w, [own]; ld.u32 %v, [%w+28];"
READS += "st.param.b32 [o], %v; ret; }"
LEAVES = ".func leaves(.param .b64 where) { .local .align 8 .b8 own[8]; .reg .b64 %w, %v; ld.param.b64 %w, [where];"
LEAVES += "mov.u64 %v, own; cvta.local.u64 %v, %v; st.local.u32 [own], 1; st.u64 [%w], %v; ret; }"
TAKEN = "{{ .param .b64 s; .param .b32 t; st.param.b64 [s], {}; call (t), reads, (s); ld.param.b32 %r8, [t]; }}"
LEFT = "{{ .param .b64 s; st.param.b64 [s], {}; call leaves, (s); }} ld.u64 %e, [{}]; ld.u32 %r8, [%e];"
KEPT = {
    "in local memory": "st.local.u64 [place], %d1; ld.local.u64 %e, [place]; ld.u32 %r8, [%e+28];",
    "at a generic address": "st.u64 [%d4+8], %d2; ld.u64 %e, [%d4+8]; ld.u32 %r8, [%e+28];",
    "in shared memory": "st.u64 [%d5], %d1; ld.u64 %e, [%d5]; ld.u32 %r8, [%e+28];",
    "for another thread": "st.u64 [%d5], %d1; bar.sync 0; xor.b32 %r2, %r1, 1; mul.wide.u32 %d5, %r2, 16; "
    "add.u64 %d5, %k, %d5; ld.u64 %e, [%d5]; ld.u32 %r8, [%e+28];",
    "two at once": "st.v2.u64 [%d4], {%d0, %d1}; ld.v2.u64 {%k, %e}, [%d4]; ld.u32 %r8, [%e+28]; ld.u32 %r8, [%k+60];",
    "of some lanes": "st.u64 [%d4], %d1; @%p1 st.u64 [%d4], %d0; ld.u64 %e, [%d4]; @%p1 ld.u32 %r8, [%e+60]; ld.u32 %r8, [%e];",
    "copied": "st.u64 [%d5], %d1; ld.u64 %e, [%d5]; st.u64 [%d4], %e; ld.u64 %e, [%d4]; ld.u32 %r8, [%e+28];",
    "in global memory": "mad.wide.u32 %k, %r1, 8, %rd1; st.u64 [%k], %d1; ld.u64 %e, [%k]; ld.u32 %r8, [%e+28];",
    "with numbers": "st.u32 [%d4+8], 12; st.u64 [%d4], %d1; ld.u32 %r2, [%d4+8]; ld.u64 %e, [%d4]; cvt.u64.u32 %k, %r2; "
    "add.u64 %e, %e, %k; ld.u32 %r8, [%e+16]; red.shared.add.u32 [c], %r2; mad.lo.u32 %r2, %r2, 0, 7; st.u32 [%d4], %r2;",
    "taken by a function": "st.u64 [%d4], %d1;" + TAKEN.format("%d4") + "st.u64 [%d4], %d2;" + TAKEN.format("%d4"),
    "kept by a function": "{ .param .b64 s; .param .b64 t; st.param.b64 [s], %d4; st.param.b64 [t], %d1; call keeps, (s, t); }"
    "ld.u64 %e, [%d4]; ld.u32 %r8, [%e+28];",
}
ASTRAY = {
    "in local memory": ("st.local.u64 [place], %d1; ld.local.u64 %e, [place]; ld.u32 %r8, [%e+32];", "byte 32 of 'b'"),
    "in shared memory": ("st.u64 [%d5], %d1; ld.u64 %e, [%d5]; ld.u32 %r8, [%e+-4];", "byte -4 of 'b'"),
    "of some lanes": ("st.u64 [%d4], %d1; @%p1 st.u64 [%d4], %d0; ld.u64 %e, [%d4]; ld.u32 %r8, [%e+60];", "byte 60 of 'b'"),
    "beyond it in memory": ("add.u64 %e, %d1, 32; st.u64 [%d4], %e; ld.u64 %e, [%d4]; ld.u32 %r8, [%e];", "byte 32 of 'b'"),
    "taken by a function": ("add.u64 %e, %d1, 4; st.u64 [%d4], %e;" + TAKEN.format("%d4"), "byte 32 of 'b'"),
    "of a call that is over": (LEFT.format("%d4", "%d4"), "a variable of a call of 'leaves' that has returned"),
    "of a call, in shared memory": (LEFT.format("%d5", "%d5"), "a variable of a call of 'leaves' that has returned"),
}


def kept_findings(body, engine="jit"):
    head = HEAD.replace(".visible", KEEPS + READS + LEAVES + ".visible")
    kernel = ptxvm.load(f"{head} {PLACES} {body} mad.wide.u32 %rd1, %r1, 8, %rd1; st.global.u32 [%rd1], %r8; ret; }}").kernel()
    found = kernel.launch(1, 64, [np.zeros(128, np.uint32), 3], engine=engine, check="memory").findings
    return [str(each) for each in found]


@pytest.mark.parametrize("name", KEPT)
def test_pointers_are_followed_through_memory(name, quick):
    assert kept_findings(KEPT[name]) == []
    assert quick()


@pytest.mark.parametrize("name", ASTRAY)
def test_what_leaves_its_variable_by_a_pointer_from_memory_is_found(name, quick):
    body, said = ASTRAY[name]
    found = kept_findings(body)
    assert not quick()
    assert any(said in each for each in found), found
    assert found == kept_findings(body, "interp")


# ── through calls ───────────────────────────────────────────────────────────────────────

TAKES = {"param": ".param .b64 p, .param .b64 q, .param .b32 n", "reg": ".reg .b64 p, .reg .b64 q, .reg .b32 n"}
FUNCTIONS = """
.func ({space} .b32 o) read({takes})
{{
    .reg .b32 %v; .reg .b64 %p;
    {p}; ld.u32 %v, [%p+28]; {o_is_v}; ret;
}}
.func ({space} .b64 o) second({takes})
{{
    .reg .b64 %p;
    {q}; {o_is_p}; ret;
}}
.func ({space} .b32 o) turns({takes})
{{
    .local .align 16 .b8 z[32];
    .reg .pred %q; .reg .b32 %n, %v, %w; .reg .b64 %p, %o, %z;
    {p}; {other}; {n};
    mov.u64 %z, z; st.local.u32 [%z+{LAST}], %n; cvta.local.u64 %z, %z;
    mov.u32 %w, 0; setp.eq.u32 %q, %n, 0; @%q bra DONE; sub.u32 %n, %n, 1;
    {again}
DONE: ld.u32 %v, [%p+28]; add.u32 %w, %w, %v; ld.u32 %v, [%z+{LAST}]; add.u32 %w, %w, %v; {o_is_w}; ret;
}}
"""
BY_PARAM = (
    "{{ .param .b64 a0; .param .b64 a1; .param .b32 a2; .param .{type} r; st.param.b64 [a0], {p}; st.param.b64 [a1], {q};"
)
BY_PARAM += " st.param.b32 [a2], {n}; {before} call (r), {target}, (a0, a1, a2){behind}; ld.param.{type} {result}, [r]; }}"
BY_REGISTER = "{{ {before} call ({result}), {target}, ({p}, {q}, {n}){behind}; }}"


def called(passes, function, result, p, q, n="%r9", *, pointer=False):
    """A call, by name or through a pointer."""
    type = "b64" if function == "second" else "b32"
    formals = ", ".join(f".{passes} .{each} _" for each in ("b64", "b64", "b32"))
    before = f"mov.u64 %d5, {function}; P: .callprototype (.{passes} .{type} _) _ ({formals});" if pointer else ""
    target, behind = ("%d5", ", P") if pointer else (function, "")
    form = BY_PARAM if passes == "param" else BY_REGISTER
    return form.format(type=type, result=result, p=p, q=q, n=n, target=target, before=before, behind=behind)


def functions(passes, last=28):
    """The functions, whose parameters and results are in `.param` variables or in registers."""
    names = {"p": "b64 %p, {}p{}", "q": "b64 %p, {}q{}", "other": "b64 %o, {}q{}", "n": "b32 %n, {}n{}"}
    opened, move = (("[", "]"), "ld.param.") if passes == "param" else (("", ""), "mov.")
    given = {key: move + each.format(*opened) for key, each in names.items()}
    store = "st.param.{} [o], %{}" if passes == "param" else "mov.{} o, %{}"
    results = {f"o_is_{each}": store.format("b64" if each == "p" else "b32", each) for each in "vwp"}
    again = called(passes, "turns", "%w", "%o", "%p", "%n")
    return FUNCTIONS.format(space=f".{passes}", takes=TAKES[passes], LAST=last, again=again, **given, **results)


POINTERS = "mov.u64 %d0, a; cvta.shared.u64 %d0, %d0; mov.u64 %d1, b; cvta.shared.u64 %d1, %d1;"
POINTERS += "mov.u64 %d2, y; cvta.local.u64 %d2, %d2; st.local.u32 [y+28], %r1;"
# of each the function that is called, what goes on behind it, and its arguments: where they are right, and where they are not
THROUGH_CALLS = {
    "passed": ("read", "", ("%d0", "%d0"), ("%d3", "%d0")),
    "local, or shared": ("read", "", ("%d4", "%d0"), ("%d3", "%d0")),
    "given back": ("second", "ld.u32 %r8, [%d5+28];", ("%d0", "%d1"), ("%d0", "%d3")),
    "exchanged in calls of itself": ("turns", "", ("%d0", "%d1"), ("%d0", "%d3")),
}


def finds(name, passes, *, wrong, last=28, engine="jit", pointer=False):
    function, then, right, not_right = THROUGH_CALLS[name]
    given = not_right if wrong else right
    body = f"{POINTERS} add.u64 %d3, %d1, 4; selp.u64 %d4, %d0, %d2, %p1;"
    if wrong and function != "turns":
        body += called(passes, "read", "%r8", "%d0", "%d0")
    body += called(passes, function, "%d5" if function == "second" else "%r8", *given, pointer=pointer) + then
    text = f"{HEAD.replace('.visible', functions(passes, last) + '.visible')} {body} st.global.u32 [%rd1], %r8; ret; }}"
    kernel = ptxvm.load(text).kernel()
    return [str(each) for each in kernel.launch(1, 64, [np.zeros(1, np.uint32), 3], engine=engine, check="memory").findings]


@pytest.mark.parametrize("pointer", [False, True])
@pytest.mark.parametrize("passes", ["param", "reg"])
@pytest.mark.parametrize("name", THROUGH_CALLS)
def test_pointers_are_followed_through_calls(name, passes, pointer, quick):
    assert finds(name, passes, wrong=False, pointer=pointer) == []
    assert quick()


@pytest.mark.parametrize("pointer", [False, True])
@pytest.mark.parametrize("passes", ["param", "reg"])
@pytest.mark.parametrize("name", THROUGH_CALLS)
def test_what_leaves_its_variable_in_a_function_is_found(name, passes, pointer, quick):
    found = finds(name, passes, wrong=True, pointer=pointer)
    assert not quick()
    assert any("byte 32 of 'b', which has 32 bytes" in each for each in found), found
    assert found == finds(name, passes, wrong=True, engine="interp", pointer=pointer)


def test_the_variable_of_a_call_is_its_own(quick):
    found = finds("exchanged in calls of itself", "param", wrong=False, last=32)
    assert any("byte 32 of 'z', which has 32 bytes" in each for each in found), found
    assert not quick()


@pytest.mark.parametrize("check", ["race", "init"])
def test_generic_addresses_of_local_memory_are_looked_at(check, quick):
    body = "st.local.u32 [y], %r1; mov.u64 %d2, y; cvta.local.u64 %d2, %d2; mov.u64 %d0, a; cvta.shared.u64 %d0, %d0;"
    body += "setp.eq.u32 %p3, %r1, 0; @%p3 st.shared.u32 [a+4], %r9; bar.sync 0;"
    body += "selp.u64 %d3, %d2, %d0, %p1; @!%p1 add.u64 %d3, %d3, 4; ld.u32 %r8, [%d3]; mad.wide.u32 %rd1, %r1, 4, %rd1;"
    assert findings(body, check=(check,)) == []
    assert quick()


def test_an_unwritten_byte_of_local_memory_is_found_by_a_generic_address(quick):
    body = "st.local.u32 [y], %r1; mov.u64 %d2, y; cvta.local.u64 %d2, %d2; @%p1 add.u64 %d2, %d2, 4; ld.u32 %r8, [%d2];"
    found = findings(body, check=("init",))
    assert any("uninitialised-read" in each for each in found), found
    assert not quick()
    assert found == findings(body, "interp", check=("init",))

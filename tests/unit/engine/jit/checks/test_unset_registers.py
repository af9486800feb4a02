"""The check `init` of registers on the JIT: a register has a value for the lanes that have written it, and for no other."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

HEAD = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 data)
{
    .shared .align 16 .b8 s[1024];
    .reg .pred %p, %q, %u; .reg .b16 %lo, %hi; .reg .b32 %t, %a, %b, %c, %n; .reg .b64 %d;
    ld.param.u64 %d, [data];
    mov.u32 %t, %tid.x;
    mad.wide.u32 %d, %t, 4, %d;
    setp.lt.u32 %p, %t, LIMIT;
"""


def launched(body, engine="jit", *, limit=40, block=96):
    data = np.arange(2048, dtype=np.uint32)
    kernel = ptxvm.load(HEAD.replace("LIMIT", str(limit)) + body + "\nEND: ret;\n}\n").kernel()
    result = kernel.launch(2, block, [data], engine=engine, check=("init",))
    return [str(each) for each in result.findings], data.tolist()


LATER = "mov.u32 %n, 0; L: setp.gt.u32 %q, %n, 2; @%q st.global.u32 [%d], %a; "
FINE = {
    "guarded twice": "@%p ld.global.u32 %a, [%d]; @%p st.global.u32 [%d], %a;",
    "in both ways": "@%p mov.u32 %a, 1; @!%p mov.u32 %a, 2; st.global.u32 [%d], %a;",
    "around a branch": "@!%p bra M; mov.u32 %a, 1; M: @!%p bra END; st.global.u32 [%d], %a;",
    "computed, and thrown away": "@%p mov.u32 %a, 1; add.u32 %b, %a, 1; setp.eq.u32 %q, %b, 2; @%p st.global.u32 [%d], %b;",
    "computed with, by the lanes that have it": "@%p mov.u32 %a, 1; add.u32 %b, %a, %t; @%p st.global.u32 [%d], %b;",
    "a guard of what is thrown away": "@%p setp.lt.u32 %u, %t, 7; @%u mov.u32 %a, 1; mov.u32 %a, 2; st.global.u32 [%d], %a;",
    "copied and not used": "mov.u32 %b, %a; @%p mov.u32 %a, 1; @%p st.global.u32 [%d], %a;",
    "copied where it is set": "@%p mov.u32 %a, 3; mov.u32 %b, %a; @%p st.global.u32 [%d], %b;",
    "across a barrier": "@%p mov.u32 %a, 1; bar.sync 0; @%p st.global.u32 [%d], %a;",
    "in a later iteration": LATER + "mov.u32 %a, %t; add.u32 %n, %n, 1; setp.lt.u32 %q, %n, 5; @%q bra L;",
    "half by half": "@%p mov.b32 %a, %t; mov.b32 {%lo, %hi}, %a; @%p st.global.u16 [%d], %lo;",
    "a guard": "@%p setp.lt.u32 %u, %t, 7; @!%p bra END; @%u st.global.u32 [%d], 1;",
    "a jump of those that have it": "@%p setp.lt.u32 %u, %t, 7; @!%p bra END; @%u bra END; st.global.u32 [%d], 1;",
    "a jump behind a loop": "mov.u32 %n, 0; L: setp.ge.u32 %q, %n, 3; @%q bra M; setp.lt.u32 %u, %t, 9; add.u32 %n, %n, 1; "
    "bra.uni L; M: @!%u bra END; st.global.u32 [%d], 1;",
    "a jump in a jump": "and.b32 %n, %t, 5; setp.eq.u32 %q, %n, 4; @%q setp.lt.u32 %u, %t, 7; @!%q bra M; @%u bra M; "
    "st.global.u32 [%d], %n; M: st.global.u32 [%d+4096], %n;",
    "that of the lane that has written it": "and.b32 %n, %t, 31; setp.eq.u32 %q, %n, 3; @%q mov.u32 %a, 1; "
    "shfl.sync.idx.b32 %b, %a, 3, 31, -1; st.global.u32 [%d], %b;",
}
WRONG = {
    "guarded otherwise": "@%p ld.global.u32 %a, [%d]; @!%p st.global.u32 [%d], %a;",
    "not guarded": "@%p mov.u32 %a, 1; st.global.u32 [%d], %a;",
    "one lane": "setp.ne.u32 %q, %t, 63; @%q mov.u32 %a, 1; add.u32 %b, %a, 1; st.global.u32 [%d], %b;",
    "around a branch": "@!%p bra M; mov.u32 %a, 1; M: @%p bra END; st.global.u32 [%d], %a;",
    "a copy of a copy": "@%p mov.u32 %a, 1; mov.u32 %b, %a; mov.u32 %c, %b; st.global.u32 [%d], %c;",
    "an address": "@%p mov.u32 %a, s; st.shared.u32 [%a], 1;",
    "across a barrier": "@%p mov.u32 %a, 1; bar.sync 0; st.global.u32 [%d], %a;",
    "in the first iteration": "mov.u32 %n, 0; L: st.global.u32 [%d], %a; mov.u32 %a, %t; add.u32 %n, %n, 1; "
    "setp.lt.u32 %q, %n, 5; @%q bra L;",
    "a guard of all": "@%p setp.lt.u32 %u, %t, 7; @%u st.global.u32 [%d], 1;",
    "a jump": "@%p setp.lt.u32 %u, %t, 7; @%u bra END; st.global.u32 [%d], 1;",
    "a jump in a jump": "and.b32 %n, %t, 5; setp.eq.u32 %q, %n, 4; @%p setp.lt.u32 %u, %t, 7; @!%q bra M; @%u bra M; "
    "add.u32 %n, %n, 1; M: st.global.u32 [%d], %n;",
    "a jump behind a loop": "mov.u32 %n, %t; L: setp.ge.u32 %q, %n, 35; @%q bra M; setp.lt.u32 %u, %t, 9; add.u32 %n, %n, 35; "
    "bra.uni L; M: @!%u bra END; st.global.u32 [%d], 1;",
    "half of a word": "@%p mov.u16 %hi, 7; mov.u16 %lo, 1; mov.b32 %a, {%lo, %hi}; st.global.u32 [%d], %a;",
    "that of a lane that has not written it": "and.b32 %n, %t, 31; setp.eq.u32 %q, %n, 3; @%q mov.u32 %a, 1; "
    "shfl.sync.idx.b32 %b, %a, 2, 31, -1; st.global.u32 [%d], %b;",
    "a loop of some lanes": "mov.u32 %n, %t; L: @!%p bra M; mov.u32 %a, 1; M: add.u32 %n, %n, 32; setp.lt.u32 %q, %n, 96; "
    "@%q bra L; add.u32 %b, %a, 1; st.global.u32 [%d], %b;",
    "a guard of what only computes": "@%p setp.lt.u32 %u, %t, 7; mov.u32 %a, 1; @%u mov.u32 %a, 2; st.global.u32 [%d], %a;",
    "computed, and computed again": "@%p mov.u32 %a, 1; add.u32 %b, %a, 1; mul.lo.u32 %c, %b, %b; st.global.u32 [%d], %c;",
    "a predicate of it": "@%p mov.u32 %a, 1; setp.eq.u32 %q, %a, 1; @%q st.global.u32 [%d], 1;",
    "chosen by it": "@%p mov.u32 %a, 1; setp.eq.u32 %q, %a, 1; selp.u32 %b, 5, 6, %q; st.global.u32 [%d], %b;",
    "an address computed from it": "@%p mov.u32 %a, 0; shl.b32 %a, %a, 2; mov.u32 %b, s; add.u32 %b, %b, %a; "
    "st.shared.u32 [%b], 1;",
    "handed on by shared memory": "@%p mov.u32 %a, 1; mov.u32 %b, s; mad.lo.u32 %b, %t, 4, %b; st.shared.u32 [%b], %a; "
    "bar.sync 0; ld.shared.u32 %c, [%b]; st.global.u32 [%d], %c;",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("block", [96, 128, 40])
@pytest.mark.parametrize("name", FINE)
def test_a_register_that_these_lanes_have_written_has_a_value(name, block, quick):
    found, data = launched(FINE[name], block=block)
    assert found == []
    assert quick()
    assert launched(FINE[name], "interp", block=block) == ([], data)


@pytest.mark.parametrize("block", [96, 128, 41])
@pytest.mark.parametrize("name", WRONG)
def test_one_that_a_lane_has_not_written_is_found_as_by_the_interpreter(name, block, quick):
    found, _ = launched(WRONG[name], block=block)
    assert found or block == 41
    assert quick() == (not found)
    assert found == launched(WRONG[name], "interp", block=block)[0]


def test_a_register_of_a_thread_that_has_ended_is_that_of_none_in_the_next_cta(quick):
    body = "mov.u32 %b, %ctaid.x; setp.eq.u32 %q, %b, 0; @%q mov.u32 %a, 1; st.global.u32 [%d], %a;"
    found, _ = launched(body)
    assert found
    assert not quick()
    assert found == launched(body, "interp")[0]


def test_registers_of_functions_go_to_the_exact_checker(quick):
    function = ".func (.reg .b32 %y) f(.reg .b32 %x) { .reg .b32 %z; .reg .pred %p; setp.lt.u32 %p, %x, 9; @%p mov.u32 %z, 1; "
    function += "add.u32 %y, %z, 1; ret; }\n.visible .entry"
    data = np.zeros(64, np.uint32)
    text = (
        HEAD.replace("LIMIT", "9").replace(".visible .entry", function)
        + "call (%a), f, (%t); st.global.u32 [%d], %a; END: ret; }"
    )
    found = ptxvm.load(text).kernel().launch(1, 64, [data], engine="jit", check=("init",)).findings
    assert [each.kind for each in found] == ["uninitialised-read"]
    assert not quick()

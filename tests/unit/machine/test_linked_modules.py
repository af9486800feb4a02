"""What runs where modules are linked: which definition of a name is meant (PTX 11.6; nvlink 13.5 keeps the same)."""

import numpy as np
import pytest

import ptxvm

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
CALL = """
.visible .entry k(.param .u64 o) {
    .reg .b32 %r; .reg .b64 %d; .param .u32 a;
    ld.param.u64 %d, [o]; call (a), f, (); ld.param.u32 %r, [a]; st.global.u32 [%d], %r; ret;
}
"""
LOAD = """
.visible .entry k(.param .u64 o) {
    .reg .b32 %r; .reg .b64 %d;
    ld.param.u64 %d, [o]; ld.global.u32 %r, [x]; st.global.u32 [%d], %r; ret;
}
"""
THROUGH_SHARED = """
.extern .func f();
.visible .entry k(.param .u64 o) {
    .reg .b32 %r; .reg .b64 %d;
    ld.param.u64 %d, [o]; st.shared.u32 [x+4], 5; call f; ld.shared.u32 %r, [x]; st.global.u32 [%d], %r; ret;
}
"""
DOUBLES = """
.shared .u64 pad[3];
.visible .func f() { .reg .b32 %r; ld.shared.u32 %r, [x+4]; add.u32 %r, %r, %r; st.shared.u32 [x], %r; ret; }
"""


WEAK_CALL = CALL.replace("visible", "weak")


def function(linkage, value):
    return f".{linkage} .func (.param .u32 r) f() {{ st.param.u32 [r], {value}; ret; }}\n"


CASES = {
    "of weak functions the first": ([function("weak", 1) + CALL, function("weak", 2)], 1),
    "a visible function before a weak one": ([function("weak", 1) + CALL, function("visible", 2)], 2),
    "a visible function before a weak one behind it": ([function("visible", 1) + CALL, function("weak", 2)], 1),
    "of weak variables the first": ([".weak .global .u32 x = 1;" + LOAD, ".weak .global .u32 x = 2;"], 1),
    "a visible variable before a weak one": ([".weak .global .u32 x = 1;" + LOAD, ".visible .global .u32 x = 2;"], 2),
    "a weak variable before a common one": ([".common .global .u32 x;" + LOAD, ".weak .global .u32 x[2] = {3};"], 3),
    "a common variable with a value": (
        [".common .global .u32 x = 3;" + LOAD, ".weak .global .u32 x = 4;"],
        3,
    ),
    "a private variable before a visible one": ([".global .u32 x = 1;" + LOAD, ".visible .global .u32 x = 2;"], 1),
    "shared memory of another module": (
        [".extern .shared .u32 x[2];" + THROUGH_SHARED, ".visible .shared .u32 x[2];" + DOUBLES],
        10,
    ),
    "shared memory of another module without a size": (
        [".extern .shared .u32 x[];" + THROUGH_SHARED, ".visible .shared .u32 x[2];" + DOUBLES],
        10,
    ),
    "weak shared memory": ([".weak .shared .u32 x[2];" + THROUGH_SHARED, ".weak .shared .u32 x[2];" + DOUBLES], 10),
    "of weak kernels the first": (
        [
            (".weak .global .u32 x = 1;" + LOAD).replace("visible", "weak"),
            function("weak", 2) + CALL.replace("visible", "weak"),
        ],
        1,
    ),
}


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize(("texts", "expected"), CASES.values(), ids=CASES)
def test_the_definition_that_is_meant(texts, expected, engine):
    result = np.zeros(1, np.uint32)
    ptxvm.link([ptxvm.load(HEADER + text) for text in texts]).kernel("k").launch(1, 1, [result], engine=engine)
    assert result[0] == expected


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_a_register_is_passed_to_what_another_module_declares_in_param(engine):
    caller = ".extern .func (.param .u32 r) f(.param .u32 z);" + CALL.replace("f, ()", "f, (7)")
    callee = ".visible .func (.reg .u32 r) f(.reg .u32 z) { add.u32 r, z, 1; ret; }"
    result = np.zeros(1, np.uint32)
    ptxvm.link([ptxvm.load(HEADER + text) for text in (caller, callee)]).kernel("k").launch(1, 1, [result], engine=engine)
    assert result[0] == 8

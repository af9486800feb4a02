"""Modules that are loaded without a link and name what they do not define: verdicts and words are those of ptxas 13.0."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ptxvm.driver.models import MODELS
from ptxvm.driver.module import Module
from ptxvm.driver.results import DriverError, Result

HEAD = b".version 8.0\n.target sm_80\n.address_size 64\n"
FUNCTION = b".extern .func f(.param .b32 x);\n"
CALL = b".reg .b32 %r; mov.u32 %r, 1; { .param .b32 q; st.param.b32 [q], %r; call f, (q); } ret;"
EMPTY = b".visible .entry run(.param .u64 out) { ret; }\n"
IGNORED = "Unresolved extern variable '{}' in whole program compilation, ignoring extern qualifier"


def load(body):
    return Module([HEAD + body], MODELS["sm_90"])


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param(FUNCTION + b".visible .entry run() { " + CALL + b" }", "function 'f'", id="a kernel calls it"),
        pytest.param(FUNCTION + b".func g() { " + CALL + b" }\n" + EMPTY, "function 'f'", id="an unused function calls it"),
        pytest.param(b".extern .global .u32 z[];\n" + EMPTY, "variable 'z'", id="a variable without a size"),
    ],
)
def test_what_ptxas_refuses(body, said):
    with pytest.raises(DriverError, match=re.escape(f"Unresolved extern {said}")) as caught:
        load(body)
    assert caught.value.result is Result.INVALID_PTX


def test_a_function_that_no_code_names_is_no_error():
    assert load(FUNCTION + EMPTY).warnings == []


def test_functions_of_the_device_need_no_definition():
    declared = b".extern .func (.param .b32 r) vprintf(.param .b64 text, .param .b64 values);\n"
    call = b"{ .param .b64 a; .param .b64 b; .param .b32 r; call (r), vprintf, (a, b); }"
    assert load(declared + b".visible .entry run() { " + call + b" ret; }").warnings == []


READ = b"""
.visible .entry run(.param .u64 out)
{
    .reg .b32 %r<4>; .reg .b64 %rd;
    ld.param.u64 %rd, [out];
    mov.u32 %r1, 7;
    st.global.u32 [b], %r1;
    ld.global.u32 %r0, [a];
    ld.global.u32 %r1, [b];
    ld.global.u32 %r2, [c];
    mov.u32 %r3, 9;
    st.shared.u32 [s], %r3;
    ld.shared.u32 %r3, [s];
    st.global.v4.u32 [%rd], {%r0, %r1, %r2, %r3};
    ret;
}
"""


@pytest.mark.parametrize("engine", ["jit", "interp"])
def test_a_variable_is_defined_where_it_is_declared(engine):
    """It begins with 0, as one without an initial value does (PTX 5.4.4); one that a later line defines has its value."""
    comment = "// längs\n".encode()
    declared = b".extern .global .u32 a, b;\n.extern .global .u32 c;\n.extern .shared .u32 s;\n"
    variables = comment + declared + b".visible .global .u32 c = 5;"
    module = load(variables + READ)
    assert module.warnings == [IGNORED.format(name) for name in "abs"]
    out = np.zeros(4, np.uint32)
    module.module.kernels["run"].launch(1, 1, [out], engine=engine)
    np.testing.assert_array_equal(out, [0, 7, 5, 9])
    address, size = module.variable("b")
    assert address
    assert size == 4

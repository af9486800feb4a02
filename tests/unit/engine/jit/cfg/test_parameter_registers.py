"""Parameters of calls in registers: which can be, and that both engines pass the same."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm
from ptxvm.analysis.symbols import Register
from ptxvm.engine.jit.abi.specialisation import Specialisation
from ptxvm.engine.jit.cfg.parameter_registers import in_registers
from ptxvm.engine.jit.objects.code_cache import CodeCache

# A kernel that calls `f` for each element, and writes its result.
CALLER = """
.version 8.0
.target sm_80
.address_size 64
{function}
.visible .entry k(.param .u64 in, .param .u64 out)
{{
    .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<9>; .reg .b16 %h<5>; .reg .f64 %g<5>; .reg .pred %p;
    ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out];
    mov.u32 %r1, %tid.x; mul.wide.u32 %d3, %r1, 4; add.u64 %d4, %d1, %d3; add.u64 %d5, %d2, %d3;
    ld.global.u32 %r2, [%d4];
    mov.u32 %r3, 0;
    {{
    {call}
    }}
    st.global.u32 [%d5], %r3;
    ret;
}}
"""
SQUARE = """
.func (.param .b32 result) f(.param .b32 x)
{
    .reg .b32 %r<3>;
    ld.param.u32 %r1, [x]; mul.lo.u32 %r2, %r1, %r1; st.param.b32 [result], %r2; ret;
}
"""
CALL = "call (result), f, (x); ld.param.b32 %r3, [result];"
OWN = ".param .b32 x; .param .b32 result;"


def module(function: str, call: str) -> ptxvm.Module:
    return ptxvm.load(CALLER.format(function=function, call=call))


def passed(one: ptxvm.Module, name: str) -> dict[str, tuple[str, int]]:
    """The types and counts of the registers that stand for variables of a function."""
    program = one.kernel("k").function.program
    function = program.function(name) if program is not None else None
    assert function is not None
    more = in_registers(function).registers[len(function.registers) :]
    return {register.name: (register.type.name, register.count) for register in more}


def results(one: ptxvm.Module, values: np.ndarray) -> np.ndarray:
    """What both engines write."""
    found = []
    for engine in ("jit", "interp"):
        out = np.zeros_like(values)
        one.kernel("k").launch(1, values.size, [values, out], engine=engine)
        found.append(out)
    np.testing.assert_array_equal(*found)
    return found[0]


VALUES = np.arange(1, 101, dtype=np.uint32)


def test_arguments_and_results() -> None:
    one = module(SQUARE, f"{OWN} st.param.b32 [x], %r2; {CALL}")
    assert passed(one, "f") == {"result": ("b32", 1), "x": ("b32", 1)}
    assert passed(one, "k") == {"result": ("b32", 1), "x": ("b32", 1)}
    np.testing.assert_array_equal(results(one, VALUES), VALUES**2)


def test_names_of_different_blocks_are_different_variables() -> None:
    """PTX 5.4.1: each block declares its own."""
    block = f"{{ {OWN} st.param.b32 [x+0], %r2; {CALL} mov.u32 %r2, %r3; }}"
    one = module(SQUARE, block * 3)
    assert len(passed(one, "k")) == 2  # by name; there are six
    function = one.kernel("k").function
    assert len(in_registers(function).registers) == len(function.registers) + 6
    np.testing.assert_array_equal(results(one, VALUES), VALUES**8)


def test_structures() -> None:
    """A structure of three words (C's ABI), which the callee reads as three floats and gives back in another order."""
    turn = """
.func (.param .align 4 .b8 result[12]) f(.param .align 4 .b8 v[12])
{
    .reg .f32 %f<4>;
    ld.param.f32 %f1, [v]; ld.param.f32 %f2, [v+4]; ld.param.f32 %f3, [v+8];
    st.param.f32 [result+0], %f3; st.param.f32 [result+4], %f1; st.param.f32 [result+8], %f2; ret;
}
"""
    call = """.param .align 4 .b8 v[12]; .param .align 4 .b8 result[12];
    st.param.b32 [v+0], %r2; st.param.b32 [v+4], 7; st.param.f32 [v+8], 0f41000000;
    call (result), f, (v); ld.param.b32 %r3, [result]; ld.param.b32 %r4, [result+4]; ld.param.b32 %r5, [result+8];
    sub.u32 %r3, %r3, 0x41000000; mad.lo.u32 %r3, %r4, 10, %r3; add.u32 %r3, %r3, %r5;"""
    one = module(turn, call)
    assert passed(one, "f") == {"result": ("b32", 3), "v": ("b32", 3)}
    assert passed(one, "k") == {"result": ("b32", 3), "v": ("b32", 3)}
    np.testing.assert_array_equal(results(one, VALUES), 10 * VALUES + 7)


def test_words_of_another_size_hold_the_same_bytes() -> None:
    """A caller stores 64 bits, and the callee loads two words of 32, little-endian."""
    halves = """
.func (.param .b32 result) f(.param .align 8 .b8 x[8])
{
    .reg .b32 %r<4>;
    ld.param.u32 %r1, [x]; ld.param.u32 %r2, [x+4]; sub.u32 %r3, %r2, %r1; st.param.b32 [result], %r3; ret;
}
"""
    call = f""".param .align 8 .b8 x[8]; .param .b32 result;
    mul.wide.u32 %d6, %r2, 3; shl.b64 %d6, %d6, 32; cvt.u64.u32 %d7, %r2; or.b64 %d6, %d6, %d7; st.param.b64 [x], %d6; {CALL}"""
    one = module(halves, call)
    assert (passed(one, "f")["x"], passed(one, "k")["x"]) == (("b32", 2), ("b64", 1))
    np.testing.assert_array_equal(results(one, VALUES), 2 * VALUES)


@pytest.mark.parametrize(
    ("call", "registers"),
    [
        ("st.param.b32 [x], %r2;", True),
        ("st.param.f32 [x], 0f40400000;", True),
        ("st.param.u32 [x], 12;", True),
        ("st.param.s32 [x], -12;", True),
        ("setp.gt.u32 %p, %r2, 50; st.param.b32 [x], 5; @%p st.param.b32 [x], %r2;", True),
        ("st.param.b16 [x], 7; st.param.b16 [x+2], 9;", True),
        ("st.param.b32 [x], 0; st.param.b8 [x], %r2;", False),  # two sizes
        ("st.param.v2.b16 [x], {%h1, %h2};", False),
        ("cvt.u64.u32 %d6, %r2; st.param.b32 [x], %d6;", False),  # of a wider register
    ],
)
def test_which_variables_can_be_registers(call: str, registers: bool) -> None:
    one = module(SQUARE, f"mov.b16 %h1, 3; mov.b16 %h2, 4; {OWN} {call} {CALL}")
    assert ("x" in passed(one, "k")) is registers
    assert "result" in passed(one, "k")
    results(one, VALUES)


def test_a_result_that_a_wider_register_takes() -> None:
    """A load widens, and a move does not."""
    call = "call (result), f, (x); ld.param.u32 %d6, [result]; cvt.u32.u64 %r3, %d6;"
    one = module(SQUARE, f"{OWN} st.param.b32 [x], %r2; {call}")
    assert passed(one, "k").keys() == {"x"}
    np.testing.assert_array_equal(results(one, VALUES), VALUES**2)


def test_a_parameter_whose_address_is_taken() -> None:
    """PTX 9.7.9.3 (mov) gives it for the parameters of a function."""
    by_address = SQUARE.replace("ld.param.u32 %r1, [x];", ".reg .b64 %d<2>; mov.b64 %d1, x; ld.param.u32 %r1, [%d1];")
    one = module(by_address, f"{OWN} st.param.b32 [x], %r2; {CALL}")
    assert passed(one, "f").keys() == {"result"}
    np.testing.assert_array_equal(results(one, VALUES), VALUES**2)


@pytest.mark.parametrize("type", ["b16", "u16", "s16", "b32", "f32", "b64", "u64", "f64"])
def test_types(type: str) -> None:
    """Each type that a register has is passed as it is."""
    register = {"16": "%h", "32": "%r", "64": "%d"}[type[1:]] if type[0] != "f" else {"f32": "%f", "f64": "%g"}[type]
    same = f"""
.func (.param .{type} result) f(.param .{type} x)
{{
    .reg .b16 %h<2>; .reg .b32 %r<2>; .reg .b64 %d<2>; .reg .f32 %f<2>; .reg .f64 %g<2>;
    ld.param.{type} {register}1, [x]; st.param.{type} [result], {register}1; ret;
}}
"""
    to = {"%h": "cvt.u16.u32 %h1, %r2;", "%r": "mov.b32 %r1, %r2;", "%d": "cvt.u64.u32 %d6, %r2; shl.b64 %d1, %d6, 20;",
          "%f": "cvt.rn.f32.u32 %f1, %r2;", "%g": "cvt.rn.f64.u32 %g1, %r2;"}[register]  # fmt: skip
    back = {"%h": "cvt.u32.u16 %r3, %h2;", "%r": "mov.b32 %r3, %r4;", "%d": "shr.u64 %d7, %d2, 20; cvt.u32.u64 %r3, %d7;",
            "%f": "cvt.rzi.u32.f32 %r3, %f2;", "%g": "cvt.rzi.u32.f64 %r3, %g2;"}[register]  # fmt: skip
    second = f"{register}2" if register != "%r" else "%r4"
    one = module(
        same,
        f"""{to} .param .{type} x; .param .{type} result; st.param.{type} [x], {register}1;
    call (result), f, (x); ld.param.{type} {second}, [result]; {back}""",
    )
    assert len(passed(one, "f")) == len(passed(one, "k")) == 2
    np.testing.assert_array_equal(results(one, VALUES), VALUES)


RECURSIVE = """
.func (.param .b32 result) f(.param .b32 x)
{
    .reg .b32 %r<6>; .reg .pred %p;
    ld.param.u32 %r1, [x]; mov.u32 %r3, 0; setp.eq.u32 %p, %r1, 0; @%p bra END;
    {
    .param .b32 x1; .param .b32 result1;
    sub.u32 %r2, %r1, 1; st.param.b32 [x1], %r2; call (result1), f, (x1); ld.param.b32 %r3, [result1];
    }
    add.u32 %r3, %r3, %r1;
END:
    st.param.b32 [result], %r3; ret;
}
"""
POINTER = """
.func (.param .b32 result) f(.param .b32 x)
{ .reg .b32 %r<3>; ld.param.u32 %r1, [x]; add.u32 %r2, %r1, 1; st.param.b32 [result], %r2; ret; }
.func (.param .b32 result) g(.param .b32 x)
{ .reg .b32 %r<3>; ld.param.u32 %r1, [x]; add.u32 %r2, %r1, 1000; st.param.b32 [result], %r2; ret; }
"""


def test_functions_whose_code_stands_once() -> None:
    """Each lane calls to a depth of its own: what lives across the calls is spilled."""
    one = module(RECURSIVE, f"{OWN} and.b32 %r2, %r2, 31; st.param.b32 [x], %r2; {CALL}")
    assert passed(one, "f").keys() == {"result", "x", "x1", "result1"}
    depth = VALUES & 31
    np.testing.assert_array_equal(results(one, VALUES), depth * (depth + 1) // 2)


def test_calls_through_pointers() -> None:
    """Half of the lanes call one function, half another."""
    call = f"""and.b32 %r4, %r1, 1; setp.eq.u32 %p, %r4, 0; mov.u64 %d6, f; mov.u64 %d7, g; selp.b64 %d6, %d6, %d7, %p;
    {OWN} st.param.b32 [x], %r2; proto: .callprototype (.param .b32 _) _ (.param .b32 _);
    call (result), %d6, (x), proto; ld.param.b32 %r3, [result];"""
    one = module(POINTER, call)
    even = np.arange(VALUES.size) % 2 == 0
    np.testing.assert_array_equal(results(one, VALUES), VALUES + np.where(even, 1, 1000).astype(np.uint32))


def test_an_argument_outlives_a_barrier_in_the_callee() -> None:
    """Warps suspend there, and the callee loads its parameter behind it."""
    waits = SQUARE.replace("ld.param", "bar.sync 0; ld.param")
    one = module(waits, f"{OWN} st.param.b32 [x], %r2; {CALL}")
    np.testing.assert_array_equal(results(one, VALUES), VALUES**2)


@pytest.mark.parametrize("how", [{}, {"profiled": True}, {"metered": True}, {"checks": frozenset({"init"})}])
def test_observed_launches_keep_the_variables(how: dict[str, object]) -> None:
    """Their counts and findings are those of loads and stores."""
    one = module(SQUARE, f"{OWN} st.param.b32 [x], %r2; {CALL}")
    wanted = Specialisation(one.kernel("k").function, (32, 1, 1), **how)  # type: ignore[arg-type]
    kernel = CodeCache(one.image).translation(wanted).versions.kernel
    found = [isinstance(formal, Register) for frame in kernel.graph.frames[1:] for formal in frame.body.signature.parameters]
    assert found == [not how]

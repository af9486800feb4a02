"""Long chains of calls, and call graphs with many paths: how deep a program's calls go sets no limit to ptxvm."""

import numpy as np
import pytest

import ptxvm
from ptxvm.engine.jit import engine
from ptxvm.engine.jit.cfg import control_flow_graph

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
FIRST = """
.func (.param .u32 r) f0(.param .u32 a) {
    .reg .b32 %x; ld.param.u32 %x, [a]; add.u32 %x, %x, 1; st.param.u32 [r], %x; ret;
}
"""
CALL = "st.param.u32 [p], %x; call (q), f{}, (p); ld.param.u32 %x, [q];"


def function(number, *calls):
    """A function that calls others one after the other, each with the result of the one before."""
    body = " ".join(CALL.format(each) for each in calls)
    return (
        f".func (.param .u32 r) f{number}(.param .u32 a) {{ .reg .b32 %x; .param .u32 p; .param .u32 q; "
        f"ld.param.u32 %x, [a]; add.u32 %x, %x, 1; {body} st.param.u32 [r], %x; ret; }}\n"
    )


def kernel(number):
    """A kernel that calls a function with 5."""
    return (
        ".visible .entry k(.param .u64 o) { .reg .b64 %d; .reg .b32 %x; .param .u32 p; .param .u32 q; "
        f"ld.param.u64 %d, [o]; mov.u32 %x, 5; {CALL.format(number)} st.global.u32 [%d], %x; ret; }}\n"
    )


def chain(length):
    """A kernel, and functions each of which calls the one before."""
    return HEADER + FIRST + "".join(function(n, n - 1) for n in range(1, length)) + kernel(length - 1)


def launched(text, name):
    result = np.zeros(1, np.uint32)
    ptxvm.load(text).kernel().launch(1, 1, [result], engine=name)
    return int(result[0])


def test_a_chain_is_checked():
    assert ptxvm.check(chain(3000)) == []


def test_a_chain_runs():
    assert launched(chain(1200), "interp") == 5 + 1200


def test_functions_that_are_called_once_stand_where_they_are_called(monkeypatch):
    """However many there are: only the copies of one function make the code grow."""
    monkeypatch.setattr(control_flow_graph, "MOST_COPIED", 0)
    monkeypatch.setattr(control_flow_graph, "COPIES_PER_CODE", 0)
    module = ptxvm.load(chain(12))
    assert not control_flow_graph.ControlFlowGraph(module.image, module.kernel().function).shared
    assert launched(chain(12), "jit") == 5 + 12


def test_too_many_functions_to_compile_are_named(monkeypatch):
    monkeypatch.setattr(control_flow_graph, "MOST_FRAMES", 300)
    monkeypatch.setattr(engine, "MANY", 300)
    assert launched(chain(310), "auto") == 5 + 310
    with pytest.raises(ptxvm.Unsupported, match="a kernel that calls 300 functions or more"):
        launched(chain(310), "jit")


THROUGH_POINTER = (
    "one: .callprototype (.param .u32 r) _ (.param .u32 a); .reg .b64 %f; mov.u64 %f, f0; "
    "st.param.u32 [p], %x; call (q), %f, (p), one; ld.param.u32 %x, [q];"
)


@pytest.mark.parametrize(
    ("call", "most", "pays"),
    [(THROUGH_POINTER, 10, False), (THROUGH_POINTER, 20, True), ("", 3, True)],
    ids=["large", "small", "by name"],
)
def test_large_functions_behind_pointers_are_interpreted(monkeypatch, call, most, pays):
    """Any lane may be in any of them: GCC's OpenMP kernels, 5,300 instructions with its C library, took minutes to compile."""
    monkeypatch.setattr(engine, "MANY", 0)
    monkeypatch.setattr(engine, "LARGE", most)
    found = ptxvm.load((HEADER + FIRST + kernel(0)).replace("st.global", f"{call} st.global")).kernel()
    assert found.module.jit.compilation_pays(found.function) is pays
    result = np.zeros(1, np.uint32)
    found.launch(1, 1, [result])
    assert int(result[0]) == 5 + 1 + bool(call)


@pytest.mark.long
@pytest.mark.parametrize(("length", "name"), [(3000, "interp"), (3000, "jit"), (20_000, "interp"), (20_000, "auto")])
def test_a_long_chain_runs(length, name):
    assert launched(chain(length), name) == 5 + length


def test_many_paths_to_a_function_do_not_multiply_the_work_before_a_launch():
    """Each function names the one before twice and calls it once: of 2**60 paths one is taken."""
    levels = 60
    functions = [
        f".func (.param .u32 r) f{n}(.param .u32 a) {{ .reg .b32 %x; .reg .pred %p; .param .u32 p; .param .u32 q; "
        f"ld.param.u32 %x, [a]; add.u32 %x, %x, 1; setp.eq.u32 %p, %x, 0; @%p bra L; {CALL.format(n - 1)} bra M; "
        f"L: {CALL.format(n - 1)} M: st.param.u32 [r], %x; ret; }}\n"
        for n in range(1, levels)
    ]
    assert launched(HEADER + FIRST + "".join(functions) + kernel(levels - 1), "interp") == 5 + levels

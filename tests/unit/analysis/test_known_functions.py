"""Functions that are like an earlier one are not walked, and what only looks like it is reported as by a full reading."""

from __future__ import annotations

import pytest

from ptxvm.analysis import body_check
from ptxvm.analysis.check import analyse
from ptxvm.analysis.known_functions import LONGEST, MOST, MOST_UNMET, KnownFunctions
from ptxvm.syntax.source import Source

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n.global .u32 gv;\n.func g()\n{\n\tret;\n}\n"
TEXT = """\
.visible .entry k{n}(.param .u64 k{n}_param_0)
{{
	.local .align 16 .b8 __local_depot{n}[64];
	.reg .b64 %SP;
	.reg .b32 %r<4>;
	.reg .b64 %rd<4>;
	.reg .pred %p<2>;
	mov.u64 %SP, __local_depot{n};
	ld.param.u64 %rd1, [k{n}_param_0];
	add.s32 %r1, %r2, {n};
	setp.eq.s32 %p1, %r1, 0;
	@%p1 bra $L__BB{n}_2;
	st.local.u32 [%SP+8], %r1;
$L__BB{n}_2:
	ret;
}}
"""

MEMBAR = "\tmembar.cta;\n"


def some(count: int, text: str = TEXT) -> str:
    return "".join(text.format(n=n) for n in range(count))


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The functions whose bodies are walked."""
    names: list[str] = []
    run = body_check.BodyCheck.run
    monkeypatch.setattr(body_check.BodyCheck, "run", lambda self: (names.append(self.function.name), run(self)))
    return names


@pytest.fixture
def reports(in_full):
    """The diagnostics of a text, which are those of a full reading."""

    def reported(source: str) -> list[object]:
        found = analyse(Source(source))[1].diagnostics
        assert found == in_full(source)
        return found

    return reported


def test_functions_that_differ_in_names_and_constants_are_walked_once(walked, reports):
    assert not reports(HEAD + some(20))
    assert walked == ["g", "k0"]


def test_functions_that_name_nothing_are_walked_once(walked, reports):
    empty = ".visible .entry e{n}()\n{{\n\tbar.sync 0;\n\tret;\n}}\n"
    assert not reports(HEAD + some(20, empty))
    assert walked == ["g", "e0"]
    assert reports(HEAD + some(4, empty) + ".visible .entry e3()\n{\n\tbar.sync 0;\n\tret;\n}\n")


def test_a_function_that_was_not_walked_is_read_when_it_is_asked_for():
    program, _ = analyse(Source(HEAD + some(3)))
    function = program.functions["k2"]
    assert function.lazy is not None
    assert set(function.label_names) == {"$L__BB2_2"}
    assert [each.node.opcode for each in function.instructions] == ["mov", "ld", "add", "setp", "bra", "st", "ret"]
    assert [each.name for each in function.variables] == ["k2_param_0", "__local_depot2"]


LIKE = {
    "a label that is nowhere": ("@%p1 bra $L__BB9_2", "@%p1 bra $L__BB9_3"),
    "a parameter of another function": ("[k9_param_0]", "[k8_param_0]"),
    "a parameter of another type": (".param .u64 k9", ".param .u32 k9"),
    "another size": ("depot9[64]", "depot9[99999999999]"),
    "an alignment that is none": (".align 16 .b8 __local_depot9", ".align 15 .b8 __local_depot9"),
    "a name of the module": ("__local_depot9;", "gv;"),
    "a declared name with another meaning": ("__local_depot9", "$L__BB9_2"),
    "a name of the module that is declared here": ("__local_depot9", "g"),
    "a name that begins an instruction": ("$L__BB9_2", "ret"),
    "a special register": ("$L__BB9_2", "%laneid"),
    "a constant of the size of a warp": ("$L__BB9_2", "WARP_SZ"),
    "the sink": ("$L__BB9_2", "_"),
    "a register past the end of its family": ("%r<4>", "%r<2>"),
    "a family with names like those of others": ("%r<4>", "__local_depot<10>"),
    "an integer that is too long": ("%r2, 9", "%r2, 99999999999999999999999"),
    "a component of what has none": ("[%SP+8]", "[%SP.x+8]"),
    "a call": ("add.s32 %r1, %r2, 9", "call g"),
    "a string": ("add.s32 %r1, %r2, 9", '.pragma "$L__BB9_2"'),
    "another directive": ("k9_param_0)", "k9_param_0)\n.maxnreg 3 .maxnreg 4"),
}


@pytest.mark.parametrize(("old", "new"), LIKE.values(), ids=LIKE)
def test_what_looks_like_a_known_function_is_reported_as_by_a_full_reading(old, new, reports):
    text = HEAD + some(10)
    assert old in text
    reports(text.replace(old, new))


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("pmevent 1;", "pmevent 16;"), (".reg .b32 t;\n\tmov.b32 t, 1;", ".reg .f32 t;\n\tmov.b32 t, 1;")],
)
def test_constants_count_where_a_rule_asks_for_them(right, wrong, reports):
    text = some(4, TEXT.replace("ret;", f"{right}\n\tret;"))
    assert not reports(HEAD + text)
    known = some(9, TEXT.replace("ret;", f"{right}\n\tret;")) + TEXT.format(n=9).replace("ret;", f"{wrong}\n\tret;")
    reports(HEAD + known)


def test_a_rule_that_asks_for_constants_is_asked_in_each_function(reports):
    text = ".func f{n}()\n{{\n\tpmevent {n};\n\tret;\n}}\n"
    assert [each.line for each in reports(HEAD + some(18, text))] == [HEAD.count("\n") + 5 * n + 3 for n in (16, 17)]


def test_code_with_places_of_inlined_code_and_long_functions_are_walked(walked, reports):
    inlined = TEXT.replace("ret;", "\n\t.loc 1 2 3, function_name $L, inlined_at 1 2 3\n\tret;")
    reports(HEAD + '.file 1 "a.cu"\n' + some(3, inlined))
    long = TEXT.replace("\tret;", "\tadd.s32 %r1, %r2, %r3;\n" * (LONGEST // 20) + "\tret;")
    assert not reports(HEAD + some(3, long))
    assert walked[-3:] == ["k0", "k1", "k2"]


def test_where_functions_are_not_alike_they_are_no_longer_compared(walked, monkeypatch):
    compared = []
    has = KnownFunctions.has
    monkeypatch.setattr(KnownFunctions, "has", lambda self, found: (compared.append(found), has(self, found))[1])
    text = "".join(f".func f{n}()\n{{\n{MEMBAR * n}\tret;\n}}\n" for n in range(1, 2 * MOST_UNMET))
    analyse(Source(HEAD + text))
    assert len(compared) == MOST_UNMET + 1
    assert len(walked) == 2 * MOST_UNMET


def test_few_functions_are_kept(monkeypatch, reports):
    monkeypatch.setattr("ptxvm.analysis.known_functions.MOST", 2)
    assert MOST > 2
    text = "".join(f".func f{n}()\n{{\n{MEMBAR * (n % 5)}\tret;\n}}\n" for n in range(30))
    assert not reports(HEAD + text)

"""Symbols that are made when they are asked for: what is right is what a full reading finds, and so is what is wrong."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ptxvm.analysis import body_check
from ptxvm.analysis.bind import bind
from ptxvm.analysis.check import analyse
from ptxvm.analysis.incremental import IncrementalChecker
from ptxvm.analysis.program import Program
from ptxvm.analysis.report import Report
from ptxvm.analysis.symbols import Variable
from ptxvm.diagnostics import Diagnostic
from ptxvm.syntax import tree
from ptxvm.syntax.outline import Outline
from ptxvm.syntax.parser import parse
from ptxvm.syntax.source import Source

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n.global .u32 first;\n.global .u32 model;\n"
EXTERN = ".extern .func (.param .b32 r) {name}(.param .b32 x);\n"
KERNEL = """\
.visible .entry {name}(.param .u64 {name}_param_0)
{{
	.reg .b32 %r<4>;
	.reg .b64 %rd<4>;
	ld.param.u64 %rd1, [{name}_param_0];
	add.s32 %r1, %r2, {number};
{body}	ret;
}}
"""


def kernels(*names: str, body: str = "") -> str:
    return "".join(KERNEL.format(name=name, number=number, body=body) for number, name in enumerate(names))


def whole(source: Source) -> Program:
    """The program of a full reading."""
    report = Report(source)
    program = bind(parse(source)[0], source, report)
    assert not report.diagnostics
    return program


def test_symbols_are_those_of_a_full_reading() -> None:
    text = HEAD + kernels("k", "l") + EXTERN.format(name="f") + ".global .u32 a;\n" + EXTERN.format(name="g") + kernels("m")
    source = Source(text)
    program, report = analyse(source)
    assert not report.diagnostics
    assert [each.name for each in program.unmade] == ["l", "a", "g", "m"]
    full = whole(source)
    assert list(program.functions) == list(full.functions) == ["k", "l", "f", "g", "m"]
    assert list(program.variables) == list(full.variables) == ["first", "model", "a"]
    for name, function in program.functions.items():
        other = full.functions[name]
        assert (function.defined, function.entry, function.linkage) == (other.defined, other.entry, other.linkage)
        assert [each.node for each in function.instructions] == [each.node for each in other.instructions]
        assert [each.name for each in function.signature.parameters] == [each.name for each in other.signature.parameters]
        assert program.scope.find(name) is function


def test_only_what_is_asked_for_is_made() -> None:
    program, _ = analyse(Source(HEAD + kernels("k", "l", "m")))
    assert program.function("l") is not None
    assert list(program.made_functions) == ["k", "l"]


OTHERS = {
    "a call": ("\tcall f;\n", ""),
    "a variable for others": ("\t.shared .b32 s;\n", ""),
    "what is wrong": ("\tadd.u32 %r1;\n", ""),
    "registers that are passed": ("\tmul.lo.u32 %r1, %r2, %r3;\n", ".func {name}(.reg .b32 {name}_x)\n{{\n{body}\tret;\n}}\n"),
}


@pytest.mark.parametrize(("body", "text"), OTHERS.values(), ids=OTHERS)
def test_a_body_of_its_own_makes_its_function_only_where_others_need_it(body: str, text: str) -> None:
    """All heads are alike; no body is."""
    own = "\t.reg .b32 %r<4>;\n" if text else ""
    bodies = ["", "\tsub.s32 %r3, %r2, %r1;\n", "\tadd.f32 %f1, %f1, %f1;\n".replace("f1", "r1").replace("f32", "u32"), body]
    made = [(text or KERNEL).format(name=f"k{n}", number=n, body=own + each) for n, each in enumerate(bodies)]
    program, _ = analyse(Source(HEAD + ".func f()\n{\n\tret;\n}\n" + "".join(made)))
    assert list(program.made_functions) == ["f", "k0", *(["k1", "k2", "k3"] if text else ["k3"])]
    assert [len(each.instructions) for each in program.functions.values()][2:4] == ([2, 2] if text else [4, 4])


def test_a_body_that_is_in_doubt_is_walked_once(monkeypatch: pytest.MonkeyPatch, in_full: Callable[[str], object]) -> None:
    walked: list[str] = []
    run = body_check.BodyCheck.run
    monkeypatch.setattr(body_check.BodyCheck, "run", lambda self: (walked.append(self.function.name), run(self))[1])
    text = HEAD + kernels("k") + kernels("l", body="\tld.param.u64 %rd1, [k_param_0];\n")
    assert analyse(Source(text))[1].diagnostics == in_full(text)
    assert walked == ["k", "l"]


MADE_UP = """\
.visible .entry {name}({parameters})
{{
	.reg .b32 %r<4>;
	.reg .b64 %rd<4>;
	.reg .f32 %f<4>;
{body}	ret;
}}
"""
PARAMETERS = {
    "u": ".param .u64 {}",
    "w": ".param .u32 {}",
    "s": ".param .align 8 .b8 {}[16]",
    "p": ".param .u64 .ptr .global .align 4 {}",
    "l": ".param .b8 {}[4000]",
}


def made_up(*kernels: tuple[str, str]) -> str:
    """Kernels k0, k1 ... with parameters by their letters, k0_0 and so on, and bodies in which `K` is their own name."""
    found = []
    for number, (letters, body) in enumerate(kernels):
        listed = ",\n\t".join(PARAMETERS[letter].format(f"k{number}_{n}") for n, letter in enumerate(letters))
        found.append(MADE_UP.format(name=f"k{number}", parameters=listed, body=body.replace("K", f"k{number}")))
    return "".join(found)


def test_kernels_with_the_parameters_of_others_are_those_of_a_full_reading() -> None:
    load = "\tld.param.u64 %rd1, [K_1];\n\tld.param.u32 %r1, [K_0+4];\n"
    source = Source(HEAD + made_up(("uw", ""), ("s", ""), ("p", ""), ("wu", load), ("spuwws", load), ("pu", ""), ("uw", load)))
    program, report = analyse(source)
    assert not report.diagnostics
    assert [each.name for each in program.unmade] == ["k3", "k4", "k5", "k6"]
    assert list(program.made_functions) == ["k0", "k1", "k2"]
    for name, full in whole(source).functions.items():
        function = program.functions[name]
        assert [each.node for each in function.instructions] == [each.node for each in full.instructions]
        for own, other in zip(function.signature.parameters, full.signature.parameters, strict=True):
            assert isinstance(own, Variable)
            assert isinstance(other, Variable)
            assert (own.name, own.type, own.size, own.alignment, own.function) == (
                other.name, other.type, other.size, other.alignment, name,
            )  # fmt: skip
            assert (own.pointer, own.node) == (other.pointer, other.node)


@pytest.mark.parametrize(
    "text",
    [
        made_up(("l", ""), ("ll", "")),  # 8,000 bytes in PTX 8.0
        made_up(("uw", ""), ("wu", "\tld.param.f32 %rd1, [K_0];\n")),
        made_up(("uw", ""), ("wuu", "\tld.param.u64 %rd1, [K_3];\n")),
        made_up(("uw", "\tld.param.u64 %rd1, [K_0];\n"), ("wu", "\tld.param.u64 %rd1, [K_0];\n")),
        made_up(("uw", ""), ("wu", "\tmov.u32 K_0, 1;\n")),
        made_up(("uw", ""), ("wu", "\tbra K_0;\n")),
        made_up(("uw", ""), ("wu", "K_0:\n\tld.param.u32 %r1, [K_0];\n")),
        made_up(("uw", ""), ("wu", ""), ("wuw", "")) + ".global .u32 k1;\n",
        made_up(("uw", ""), ("wu", "\tadd.u32 %r1;\n"), ("wuw", "")),
        made_up(("uw", ""), ("wu", "")).replace(".u32 k0_1", ".pred k0_1").replace(".u32 k1_0", ".pred k1_0"),
    ],
)
def test_what_is_wrong_with_a_kernel_with_the_parameters_of_others(text: str, in_full: Callable[[str], object]) -> None:
    assert analyse(Source(HEAD + text))[1].diagnostics == in_full(HEAD + text)


def test_a_symbol_is_made_once() -> None:
    program, _ = analyse(Source(HEAD + ".global .u32 a;\n"))
    (unmade,) = program.unmade
    made = program.scope.find("a")
    assert program.scope.make is not None
    assert program.scope.make(unmade) is made is program.variables["a"]


def test_a_part_that_is_not_read_needs_a_reader() -> None:
    source = Source(HEAD + ".global .u32 a;\n")
    node = tree.Alike("a", tree.Variable("global", "u32", [tree.Declarator("first")]))
    with pytest.raises(ValueError, match="parts that are not read"):
        bind(tree.Module([*parse(source)[0].statements, node]), source, Report(source))


@pytest.mark.parametrize(
    "text",
    [
        ".global .u32 a;\n.global .u32 a;\n",
        ".global .u32 a;\n" + EXTERN.format(name="f") + EXTERN.format(name="a"),
        kernels("k", "l", "k"),
        kernels("k", "l") + ".global .u32 l;\n",
        EXTERN.format(name="f") + EXTERN.format(name="g") + ".func g() { ret; }\n",
        ".func (.param .b32 r) f(.param .b32 x);\n.func (.param .b32 q) g(.param .b32 y);\n",
        ".global .u32 a;\n.reg .b32 r<3>;\n.global .u32 b;\n.global .u32 r1;\n",
        ".global .u32 a;\n.reg .b32 a;\n",
        EXTERN.format(name="f") + EXTERN.format(name="vprintf"),
        ".global .pred a;\n.global .pred b;\n",
        kernels("k", "l", body="\tmov.u64 %rd2, a;\n") + ".global .u32 a;\n",
        ".global .u32 a;\n" + kernels("k", "l", body="\tmov.u64 %rd2, a;\n\tmov.u64 %rd3, b;\n"),
        kernels("k", "l", body="\tadd.u32 %r1;\n"),
        kernels("k", "l") + kernels("m", body="\tbra L;\n"),
        kernels("k", body="L:\n") + kernels("l", body="\tbra L;\n"),
        kernels("k", "l") + kernels("m", body="N:\n") + kernels("n", body="\tbra N;\n"),
        ".global .u32 a;\n" + kernels("k", body="\tld.global.u32 %r1, [a];\n") + EXTERN.format(name="a")
        + kernels("l", "m", body="\tld.global.u32 %r1, [a];\n"),
        ".func f();\n.func g(.param .b32 x) { ret; }\n.func h(.param .b32 x) { ret; }\n"
        + kernels("k", "l", body="\tcall f;\n") + ".func f(.param .b32 x) { ret; }\n",
        EXTERN.format(name="f") + EXTERN.format(name="g") + kernels("k", "l", body="\tcall g;\n"),
        ".func f() { ret; }\n.func g() { ret; }\n.func h() { ret; }\n.alias g, f;\n",
        ".shared .align 4 .b8 s[40000];\n" + EXTERN.format(name="f") + ".shared .align 4 .b8 t[40000];\n"
        + kernels("k", "l", body="\tmov.u64 %rd2, s;\n\tmov.u64 %rd2, t;\n"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_what_a_full_reading_finds(text: str, in_full: Callable[[str], list[Diagnostic]]) -> None:
    assert analyse(Source(HEAD + text))[1].diagnostics == in_full(HEAD + text)
    assert IncrementalChecker().check(Source(HEAD + text)) == in_full(HEAD + text)


def test_functions_that_name_symbols_declared_alike_are_known_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    walked: list[str] = []
    run = body_check.BodyCheck.run
    monkeypatch.setattr(body_check.BodyCheck, "run", lambda self: (walked.append(self.function.name), run(self))[1])
    text = HEAD + ".func f()\n{\n\tret;\n}\n.func g()\n{\n\tret;\n}\n.global .u32 a;\n.global .u64 b;\n"
    for name, number in (("k", 0), ("l", 1), ("m", 0)):
        called, variable = ("f", "model") if name == "k" else ("g", "b" if name == "m" else "a")
        text += KERNEL.format(name=name, number=number, body=f"\tcall {called};\n\tmov.u64 %rd2, {variable};\n")
    assert not analyse(Source(text))[1].diagnostics
    assert walked == ["f", "k", "m"]  # .u64 is another declaration


def test_an_edit_reads_only_the_function_that_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    statement = Outline.statement
    monkeypatch.setattr(Outline, "statement", lambda self, node: (read.append(node.name), statement(self, node))[1])
    checker, text = IncrementalChecker(), HEAD + ".global .u32 a;\n" + kernels("k", "l", "m", "n")
    checker.check(Source(text))
    read.clear()
    checker.check(Source(text.replace("%r2, 2", "%r2, 9")))
    assert read == ["m"]

"""Constant expressions, variables of a body and registers of vectors: lines that are like a right one are known."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ptxvm.analysis import body_check
from ptxvm.analysis.check import analyse
from ptxvm.analysis.incremental import IncrementalChecker
from ptxvm.diagnostics import Diagnostic
from ptxvm.syntax import tree
from ptxvm.syntax.source import Source

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
KERNEL = """\
.visible .entry {name}()
{{
	.reg .b32 %r<10>;
	.reg .b64 %rd<10>;
	.reg .f32 %f<10>;
{body}
	ret;
}}
"""


def module(*bodies_: str) -> str:
    return HEAD + "".join(KERNEL.format(name=f"k{n}", body=body) for n, body in enumerate(bodies_))


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The instructions that are read in full."""
    found: list[str] = []
    instruction = body_check.BodyCheck.instruction

    def note(self: body_check.BodyCheck, node: tree.Instruction) -> object:
        found.append(node.head)
        return instruction(self, node)

    monkeypatch.setattr(body_check.BodyCheck, "instruction", note)
    return found


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("mov.u32 %r1, (1<<4) | 2;", "mov.u32 %r2, (3<<9) | 0x10;"),
        ("mov.u32 %r1, 5 > 4 ? 1 : 2;", "mov.u32 %r1, 0 > 9 ? 8 : 7;"),
        ("ld.global.u32 %r1, [%rd1+2*8+4];", "ld.global.u32 %r3, [%rd2+7*16+8];"),
        (".local .b8 a[4];\n\tmov.u64 %rd1, a;", ".local .b8 b[4];\n\tmov.u64 %rd2, b;"),
        (".shared .f32 a;\n\tld.shared.f32 %f1, [a];", ".shared .f32 b;\n\tld.shared.f32 %f2, [b];"),
        (".reg .v4 .f32 a;\n\tadd.f32 %f1, a.x, a.y;", ".reg .v4 .f32 b;\n\tadd.f32 %f2, b.x, b.y;"),
    ],
)
def test_what_is_like_a_right_line_is_not_read(first: str, second: str, read: list[str]) -> None:
    assert not analyse(Source(module(f"\tmembar.cta;\n\t{first}", f"\tmembar.cta;\n\t{second}")))[1].diagnostics
    assert len(read) == len(set(read))


WRONG = [
    ("mov.u32 %r1, 4/2;", "mov.u32 %r1, 4/0;"),
    ("mov.u32 %r1, 0/(1-0);", "mov.u32 %r1, 0/(1-1);"),
    ("mov.u32 %r1, 7 % (1-0);", "mov.u32 %r1, 7 % (1-1);"),
    ("mov.u32 %r1, 1+2;", "mov.u32 %r1, 1+2.0;"),
    ("mov.u32 %r1, (1+2);", "mov.u32 %r1, (1+2;"),
    ("mov.u32 %r1, 1+2;", "mov.u32 %r1, 1+99999999999999999999;"),
    ("mov.u32 %r1, 1+10;", "mov.u32 %r1, 1+090;"),
    ("bar.sync 1+2;", "bar.sync 1+20;"),
    (".local .b8 a[4];\n\tmov.u64 %rd1, a[1];", ".local .b8 a;\n\tmov.u64 %rd1, a[1];"),
    (".local .b8 a[4];", ".local .b8 a[4];\n\t.local .b8 a[4];"),
    (".local .b8 a[4];\n\tmov.u64 %rd1, a;", "mov.u64 %rd1, a;\n\t.local .b8 a[4];"),
    (".reg .v4 .f32 a;\n\tadd.f32 %f1, a.x, a.y;", ".reg .v2 .f32 a;\n\tadd.f32 %f1, a.x, a.z;"),
    (".reg .v4 .f32 a;\n\tadd.f32 %f1, a.x, a.y;", ".reg .v4 .b64 a;\n\tadd.f32 %f1, a.x, a.y;"),
    (".shared .b8 a[4];", ".shared .b8 a[40000];\n\t.shared .b8 b[40000];\n\tmov.u64 %rd1, a;\n\tmov.u64 %rd2, b;"),
    (".local .align 3 .b8 a[4];", ".local .align 3 .b8 a[4];"),
]


@pytest.mark.parametrize(("right", "wrong"), WRONG)
def test_what_only_looks_like_it_is_reported(right: str, wrong: str, in_full: Callable[[str], list[Diagnostic]]) -> None:
    text = module(f"\t{right}", f"\t{wrong}", f"\t{right}")
    assert analyse(Source(text))[1].diagnostics == in_full(text)


@pytest.mark.parametrize("declaration", [".reg .b32 t;", ".reg .v4 .f32 t;", ".local .b32 t;"])
def test_what_looks_like_a_declaration_within_a_wrong_statement_declares_nothing(
    declaration: str, in_full: Callable[[str], list[Diagnostic]]
) -> None:
    text = module(f"\tmembar.cta;\n\tadd.s32 %r1, %r2, 3\n\t{declaration}\n\tmov.b32 t, %r1;")
    assert IncrementalChecker().check(Source(text)) == in_full(text)


def test_shared_variables_ahead_are_those_of_the_body() -> None:
    text = module("\t.shared .b8 a[4];\n\t.shared .b8 b[4];\n\tmov.u64 %rd1, b;\n\t.shared .b8 c[8];")
    program, _ = analyse(Source(text))
    (function,) = program.functions.values()
    lazy = [(each.name, each.size) for each in function.statics]
    assert lazy == [("a", 4), ("b", 4), ("c", 8)]
    known = {each.name: each for each in function.statics}
    assert [each.name for each in function.variables] == ["a", "b", "c"]
    assert all(known[each.name] is each for each in function.variables)

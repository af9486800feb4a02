"""Names: in a module that is right, a name means what the binder of `ptxvm check` binds it to."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("lsprotocol", reason="the language server needs the extra 'lsp'")

from ptxvm.analysis.check import analyse
from ptxvm.analysis.program import Function
from ptxvm.analysis.shapes import names_in
from ptxvm.analysis.symbols import Label, Register, Variable
from ptxvm.lsp.module import ModuleView
from ptxvm.lsp.names import NameKind
from ptxvm.syntax.source import Source

ROOT = Path(__file__).parents[3]
FILES = sorted([*(ROOT / "examples").glob("*.ptx"), ROOT / "docs" / "transpose.ptx", ROOT / "docs" / "neighbours.ptx"])

SCOPES = """\
.version 8.0
.target sm_90
.address_size 64
.global .u32 x;
.func (.reg .b32 r) f(.reg .b32 a);
.entry k(.param .u64 p)
{
    .reg .b32 x, %r<12>, a<3>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [p];
    mov.b32 x, %r11;
    {
        .reg .f32 %r<2>, x;
        mov.f32 x, %r1;
        .reg .b16 late;
        bra L;
        mov.b16 late, 1;
L:
    }
    mov.b32 a2, %r01;
    call (a1), f, (%r3);
    bra L;
L:
    ret;
}
.func (.reg .b32 r) f(.reg .b32 a)
{
    .reg .u64 b;
    mov.u64 b, x;
    add.u32 r, a, 1;
    ret;
}
"""


def same(found, symbol):
    """Is the definition that of the symbol?"""
    match symbol:
        case Register():
            return found.kind is NameKind.REGISTER and found.type is symbol.type
        case Variable():
            return found.kind in (NameKind.VARIABLE, NameKind.PARAMETER) and found.type is symbol.type
        case Label():
            return found.kind is NameKind.LABEL
        case Function():
            return found.kind in (NameKind.KERNEL, NameKind.FUNCTION) and found.name == symbol.name
    return False


def compare(text):
    """How many names are compared; each is the same."""
    source = Source(text)
    program, report = analyse(source)
    assert not report.has_errors
    module, compared = ModuleView(source), 0
    for function in program.functions.values():
        for bound in function.instructions:
            for name in (each for operand in bound.node.operands for each in names_in(operand)):
                symbol = bound.scope.find(name.text)
                found = module.resolve(name.text, name.start)
                assert (found is None) == (symbol is None), name
                assert symbol is None or same(found, symbol), name
                compared += symbol is not None
    return compared


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_names_of_files_mean_what_the_binder_says(file):
    assert compare(file.read_text()) > 10


def test_names_that_hide_others_mean_what_the_binder_says():
    assert compare(SCOPES) > 10

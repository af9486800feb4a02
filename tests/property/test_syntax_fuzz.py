"""Broken modules: pieces of real ones, cut, swapped, doubled and spoilt.  The reader never raises and never hangs."""

from __future__ import annotations

import tarfile
import time
from functools import cache
from pathlib import Path

from hypothesis import given, settings, strategies as st

from ptxvm.diagnostics import FORMATS, render
from ptxvm.syntax import Source, parse, print_module, tree
from ptxvm.syntax.lexer import END, Tokens

REPOSITORY = Path(__file__).parents[2]
SNAPSHOTS = REPOSITORY / "tests" / "unit" / "syntax" / "snapshots"

WHOLE = """\
.version 8.7
.target sm_90a, debug
.address_size 64
.file 1 "a.cu"
.visible .global .align 8 .v2 .f32 a[2] = {{1.0, -1.0}, {0f00000000, 1e3}};
.global .b8 bytes[] = {0xFF(a), 0xFF00(a+4), 0xFF(generic(a)+4)};
.extern .func (.param .b32 r) f(.param .u64 p, .reg .f32 q) .noreturn;
.visible .entry k(.param .u64 .ptr .global .align 16 p, .param .align 8 .b8 s[16]) .maxntid 32, 2
{
    .reg .pred %p<4>;  // a comment
    .loc 1 2 3, function_name $L+4, inlined_at 1 30 2
    $L: @!%p1 ld.global.v2.u32 {%r1, _}, [p+-4];
    { setp.eq.and.s32 %p1|%p2, -%r1, %tid.x, !%p3; /* another */ }
    call (%r1), f, (%r2, 5), proto;
    tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f5}];
    mov.b32 %r1, a[%r2+4];
    mov.b32 %r1, (.u64) 1 + 2 * (3 ? 4 : 5);
    b: .branchtargets L, M<2>;
    proto: .callprototype (.param .b32 _) _ (.reg .f32 x);
    ret;
}
.section .debug_x { L: .b32 L-M .b8 1, -2 }
"""


@cache
def modules() -> list[str]:
    """Texts to start from: the one above, the broken ones, the examples, and small modules of the corpus."""
    paths = [*sorted(SNAPSHOTS.glob("*.ptx")), *sorted((REPOSITORY / "examples").glob("*.ptx"))]
    texts = [WHOLE, *(path.read_text(encoding="utf-8")[:20_000] for path in paths)]
    corpus = REPOSITORY.parent / "shared" / "corpus" / "corpus.tar.xz"
    if corpus.is_file():
        with tarfile.open(corpus) as archive:
            small = [member for member in archive if member.isfile() and member.size < 5000][::10]
            texts += [file.read().decode("latin-1") for member in small if (file := archive.extractfile(member))]
    return texts


TEXTS = st.deferred(lambda: st.sampled_from(modules()))
PUNCTUATION = "; , { } [ ] ( ) @ ! | : < > = + - * / % ? . # & ~ ^ \" ' ` _ $ \\ /* */ // \n \r \t \0 é"
WORDS = """5 0x 0f3F80000 08 1.0e "s" .reg .b32 .global .entry .func .visible .align .v2 .loc .pragma .section .version
    @@DWARF %r1 %tid.x WARP_SZ ld.global.u32 call"""
PIECES = PUNCTUATION.split(" ") + WORDS.split()


@st.composite
def broken(draw: st.DrawFn) -> str:
    """A text with some tokens deleted, doubled, swapped, replaced, and perhaps its end cut off."""
    text = draw(TEXTS)
    tokens = Tokens(Source(text))
    count = tokens.texts.index(END)
    pieces = [text[tokens.starts[at] : tokens.starts[at + 1]] for at in range(count)]
    for _ in range(draw(st.integers(1, 6))):
        if not pieces:
            break
        at = draw(st.integers(0, len(pieces) - 1))
        match draw(st.sampled_from(["delete", "double", "swap", "replace", "insert", "cut"])):
            case "delete":
                del pieces[at : at + draw(st.integers(1, 4))]
            case "double":
                pieces[at:at] = pieces[at : at + draw(st.integers(1, 20))]
            case "swap":
                other = draw(st.integers(0, len(pieces) - 1))
                pieces[at], pieces[other] = pieces[other], pieces[at]
            case "replace":
                pieces[at] = draw(st.sampled_from(PIECES)) + " "
            case "insert":
                pieces.insert(at, draw(st.sampled_from(PIECES)))
            case "cut":
                pieces = pieces[:at] if draw(st.booleans()) else pieces[at:]
    return "".join(pieces)


def survives(text: str | bytes) -> None:
    """Reading does not raise or hang, spans lie in the text, every format prints, and what was understood reads back.

    A directive in a wrong place (P0105) is understood nevertheless.
    """
    start = time.process_time()
    source = Source(text, "fuzz.ptx")
    module, found = parse(source)
    assert isinstance(module, tree.Module)
    assert all(0 <= each.span.start <= each.span.end <= len(source.text) for each in found)
    assert all(each.line >= 1 and each.column >= 1 and each.message for each in found)
    for form in FORMATS:
        render([(source, found)], form)
    again, errors = parse(print_module(module))
    assert {each.code for each in errors} <= {"P0105"}
    assert again == module
    assert time.process_time() - start < 5


@given(broken())
@settings(max_examples=300)
def test_broken_modules(text):
    survives(text)


@given(st.text(alphabet=st.sampled_from("{}[]()<>;:,.@!|%$_+-*/#\"'\\\n 0f1xU.~^&=?ab\0é\u4e2d"), max_size=200))
@settings(max_examples=300)
def test_random_punctuation(text):
    survives(".entry k() {" + text)


@given(st.binary(max_size=400))
def test_random_bytes(data):
    survives(data)


@given(st.lists(st.sampled_from(PIECES), max_size=60), st.booleans())
@settings(max_examples=300)
def test_random_tokens(pieces, in_body):
    survives((".entry k() {\n" if in_body else "") + " ".join(pieces))

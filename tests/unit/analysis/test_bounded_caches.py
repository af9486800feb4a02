"""What checks remember has a bound: an editor and a fuzzing campaign read other texts for hours."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import pytest

from ptxvm.analysis import memo, recognise
from ptxvm.analysis.check import analyse
from ptxvm.analysis.memo import Memo
from ptxvm.analysis.recognise import Recogniser
from ptxvm.diagnostics import Diagnostic
from ptxvm.syntax.source import Source

ROOMS = ("ptxvm.analysis", "ptxvm.diagnostics", "ptxvm.isa", "ptxvm.syntax")
CONSTANTS, MOST = 60, 16


def checked(text: str) -> Sequence[Diagnostic]:
    """The diagnostics of a text."""
    return analyse(Source(text))[1].diagnostics


def odd_text(number: int) -> str:
    """A text in which a number stands in all that an author can write wrong."""
    return f"""
        .version {number}.{number}
        .target sm_{number}, odd_{number}
        .odd{number} .u32 a;
        .visible .entry k{number}(.param .u64 p) {{
            .reg .b32 %r<4>;
            odd{number}.u32 %r1, %r2;
            add.odd{number} %r1, %r2, %r3;
            mov.u32 %r1, %odd{number};
            mov.u32 %r1, %tid.odd{number};
            ld.const[{number}].u32 %r1, [odd{number}];
            call odd{number};
            ret;
        }}
        .visible .func f{number}() {{ bra odd{number}; }}
    """


def unbounded() -> dict[str, int]:
    """How much the caches without a bound have: those of what is declared, which is finite."""
    rooms = [module for name, module in sys.modules.items() if name.startswith(ROOMS)]
    functions = {id(each): each for room in rooms for each in vars(room).values() if hasattr(each, "cache_parameters")}
    return {
        f"{each.__module__}.{each.__qualname__}": each.cache_info().currsize
        for each in functions.values()
        if each.cache_parameters()["maxsize"] is None
    }


def test_what_an_author_writes_wrong_is_in_no_cache_without_a_bound() -> None:
    assert checked(odd_text(700))
    before = unbounded()
    assert before
    for number in range(701, 720):
        assert checked(odd_text(number))
    assert unbounded() == before


def fields(first: int) -> str:
    """A kernel of instructions that are right or wrong by the values of their constants."""
    lines = "\n".join(f"bfe.u32 %r1, %r2, {first + n}, 1;" for n in range(CONSTANTS))
    return f".version 8.0 .target sm_90 .address_size 64 .entry k() {{ .reg .b32 %r<4>;\n{lines}\nret; }}"


def test_verdicts_are_forgotten_when_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A verdict that depends on a constant is one for each of its values: a field begins at 255 at most."""
    monkeypatch.setattr(recognise, "MOST_VERDICTS", MOST)
    monkeypatch.setattr(memo, "MOST_KEYS", MOST)
    for kept in (Recogniser.known, Memo.shared):
        kept.clear()
    memos = list[Memo]()
    monkeypatch.setattr(Memo, "left", lambda memo, key, left=Memo.left: memos.append(memo) or left(memo, key))
    for first in (0, 120, 200):
        wrong = [each.line for each in checked(fields(first))]
        assert wrong == [2 + n for n in range(CONSTANTS) if first + n > 255]
        assert 0 < len(Recogniser.known) <= MOST
        assert 0 < len(Memo.shared) <= MOST
        assert all(0 < len(each.cleared) <= MOST for each in memos)
    assert memos

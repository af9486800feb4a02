"""The lessons: none begins solved, each has a solution, and a wrong kernel is not taken for one."""

from __future__ import annotations

import re

import pytest

from ptxvm.playground.lessons import EXPECTED, course

TWELVE = 12


def test_there_are_twelve_each_with_its_expectation():
    assert len(course()) == TWELVE
    assert course().keys() == EXPECTED.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_a_lesson_begins_unsolved_and_can_be_solved(ask, name):
    lesson = course()[name]
    assert ask("check", source=lesson.source)["diagnostics"] == []
    assert ask("solve", lesson=name, source=lesson.source)["missing"] != ""
    assert ask("solve", lesson=name, source=lesson.solved)["missing"] == ""
    for part in lesson.solution:
        assert lesson.source.count(part["replace"]) == 1


@pytest.mark.parametrize(
    ("name", "kernel", "said"),
    [
        ("byte-order", "", "InvalidPTX"),
        ("byte-order", "shifts", "The result is right, but the task asks for prmt."),
        ("swizzle", "padding", "The result is right, in 4,224 bytes of shared memory; 4,096 are enough."),
    ],
)
def test_it_says_what_is_missing(ask, name, kernel, said):
    sources = {
        "": "nonsense",
        "shifts": course()["byte-order"].source.replace(
            "prmt.b32 %r3, %r2, 0, 0x3210;",
            "shl.b32 %r3, %r2, 24; shr.u32 %r1, %r2, 24; or.b32 %r3, %r3, %r1;\n"
            "    and.b32 %r1, %r2, 0xff00; shl.b32 %r1, %r1, 8; or.b32 %r3, %r3, %r1;\n"
            "    shr.u32 %r1, %r2, 8; and.b32 %r1, %r1, 0xff00; or.b32 %r3, %r3, %r1;",
        ),
        "padding": course()["bank-conflict"].solved,
    }
    done = ask("solve", lesson=name, source=sources[kernel])
    if kernel:
        assert done["missing"] == said
    else:
        assert done["outcome"] == "invalid"
        assert done["missing"] != ""


def test_it_says_how_a_value_differs(ask):
    said = ask("solve", lesson="byte-order", source=course()["byte-order"].source)["missing"]
    found = re.fullmatch(
        r"32 of 32 values of the last array are not what the task asks for; "
        r"element 0 is 0x([0-9a-f]{8}), and should be 0x([0-9a-f]{8})\.",
        said,
    )
    assert found is not None, said
    assert bytes.fromhex(found[1])[::-1] == bytes.fromhex(found[2])
    half = course()["int8-to-fp16"]
    said = ask("solve", lesson="int8-to-fp16", source=half.source)["missing"]
    assert re.search(r"element \d+ is [^ ]+, and should be -?\d+\.$", said), said


def test_an_unknown_lesson_is_refused(ask):
    assert ask("solve", lesson="no", source="") == {"kind": "request", "message": "there is no lesson 'no'"}

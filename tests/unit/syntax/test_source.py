"""Sources: bytes to characters, characters to lines and columns (PTX 4.1)."""

from __future__ import annotations

import pytest

from ptxvm.syntax import Source, parse


def test_lines_and_columns_count_from_one():
    source = Source("ab\ncd\n")
    assert [source.location(offset) for offset in range(7)] == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3), (3, 1)]


def test_a_place_past_the_end_is_the_end():
    assert Source("ab").location(99) == (1, 3)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_all_line_ends_are_line_ends(newline):
    source = Source(f"one{newline}two{newline}")
    assert (source.line(1), source.line(2), source.line(3), source.line(4)) == ("one", "two", "", "")


def test_offset_is_the_inverse_of_location():
    source = Source("ab\r\ncd\n\nef")
    assert all(source.offset(*source.location(offset)) == offset for offset in range(len(source.text)))


def test_the_nul_that_drivers_append_is_dropped():
    assert Source(b".version 8.7\n\0\0").text == ".version 8.7\n"


def test_a_byte_order_mark_is_dropped():
    assert Source(b"\xef\xbb\xbf.version 8.7").text == ".version 8.7"


def test_a_stray_byte_is_latin_1_and_utf_8_stays_utf_8():
    assert Source(b"// \xe9 \xc3\xa9").text == "// é é"


def test_a_lone_surrogate_cannot_get_out():
    Source("// \ud800").text.encode()


def test_a_nul_inside_is_an_error_at_its_place():
    _, (found,) = parse(b".version 8.7\n.target sm_90\n\0.junk")
    assert (found.code, found.line, found.column) == ("P0110", 3, 1)


@pytest.mark.parametrize(
    "data", [b"\x7fELF\x02\x01\x01\x00abc", b"\x50\xed\x55\xba\x01\x00\x10\x00", b"\0\0\0a", b"ab\x01cd\0e"]
)
def test_a_binary_file_gets_one_error_that_says_so(data):
    module, (found,) = parse(data)
    assert (found.code, found.message) == ("P0110", "this is a binary file, not PTX")
    assert module.statements == []


def test_a_file_is_named_as_it_was_asked_for(tmp_path):
    path = tmp_path / "k.ptx"
    path.write_bytes(b".version 8.7\n")
    assert Source.read(path).name == str(path)

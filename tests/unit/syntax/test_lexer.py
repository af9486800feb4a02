"""Tokens: comments, identifiers, literals (PTX 4.1-4.5)."""

from __future__ import annotations

import struct

import pytest

from ptxvm.syntax import Source
from ptxvm.syntax.lexer import END, Tokens, float_bits, integer


def texts(text: str) -> list[str]:
    return [token for token in Tokens(Source(text)).texts if token != END]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ld.global.v4.u32", ["ld.global.v4.u32"]),
        ("cp.async.bulk.shared::cta.L2::cache_hint", ["cp.async.bulk.shared::cta.L2::cache_hint"]),
        ("ld .global", ["ld", ".global"]),
        ("ld. global", ["ld", ".", "global"]),
        ("spcompress.b16.b2.sp::2:4.x1", ["spcompress.b16.b2.sp::2:4.x1"]),
        ("L.1:", ["L.1", ":"]),
        ("%tid.x", ["%tid.x"]),
        ("%r<100>;", ["%r", "<", "100", ">", ";"]),
        ("_$a $b %c %9 a$1", ["_$a", "$b", "%c", "%9", "a$1"]),
        ("% $ _", ["%", "$", "_"]),
        ("%%a a%b", ["%", "%a", "a", "%b"]),
        (".b32 .1d .5 .5e+3", [".b32", ".1d", ".5", ".5e+3"]),
        ("1.0 1. 1e3 1.5E-3 0x1F 017 0b101U 5U", ["1.0", "1.", "1e3", "1.5E-3", "0x1F", "017", "0b101U", "5U"]),
        ("0f3F800000 0d3FF0000000000000", ["0f3F800000", "0d3FF0000000000000"]),
        ("0f3F80 1u 0xg 1_0", ["0", "f3F80", "1", "u", "0", "xg", "1", "_0"]),
        (
            "a<<b>>c<=d>=e==f!=g&&h||i",
            "a << b >> c <= d >= e == f != g && h || i".split(),
        ),
        ('"a // b" "/*"', ['"a // b"', '"/*"']),
        ('"open\n', ['"', "open"]),
        ("é\x0b", ["é", "\x0b"]),
    ],
)
def test_tokens(text, expected):
    assert texts(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "a// b\nc",
        "a/* b\n\n */c",
        "a /* /* */ c",
        "a // \xe9 \u4e2d\nc",
        'a\n# 1 "x.cu"\nc',
        'a # 1 "x.cu" 2\nc',
        'a\n#line 7 "x"\nc',
    ],
)
def test_comments_and_lines_of_the_preprocessor_are_blanks(text):
    tokens = Tokens(Source(text))
    assert tokens.texts[:2] == ["a", "c"]
    assert [text[start:end] for start, end in zip(tokens.starts[:2], tokens.ends[:2], strict=True)] == ["a", "c"]
    assert tokens.text.count("\n") == text.count("\n")


@pytest.mark.parametrize(("text", "place"), [("a /*", 2), ("a /*/", 2), ("/**/ /* b\n", 5), ("a /* b */", -1), ("/*/ */", -1)])
def test_a_comment_without_an_end_is_found(text, place):
    assert Tokens(Source(text)).plain.unclosed_comment == place


def test_places_are_right_beyond_the_first_chunk(monkeypatch):
    monkeypatch.setattr("ptxvm.syntax.lexer._CHUNK", 16)
    text = "add.u32 %r1, %r2, 5; // comment\n" * 9 + "ret;"
    tokens = Tokens(Source(text))
    assert all(text[tokens.starts[at] : tokens.ends[at]] == tokens.texts[at] for at in range(len(tokens.texts) - 4))
    assert len(tokens.texts) == 9 * 7 + 2 + 4


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", (0, False)),
        ("42", (42, False)),
        ("42U", (42, True)),
        ("017", (15, False)),
        ("0x1fU", (31, True)),
        ("0XFF", (255, False)),
        ("0b101", (5, False)),
        ("0B1U", (1, True)),
        ("18446744073709551616", (1 << 64, False)),
        ("00", (0, False)),
        ("08", None),
        ("0x", None),
        ("1.0", None),
        ("1u", None),
        ("", None),
        ("x", None),
        ("9" * 5000, None),
    ],
)
def test_integer_literals(text, value):
    """PTX 4.5.1."""
    assert integer(text) == value


@pytest.mark.parametrize(
    ("text", "bits", "width"),
    [
        ("0f3F800000", 0x3F800000, 32),
        ("0F3f800000", 0x3F800000, 32),
        ("0d3FF0000000000000", 0x3FF0000000000000, 64),
        ("0f7FC00001", 0x7FC00001, 32),
        ("1e400", 0x7FF0000000000000, 64),
        ("09.5", None, 64),
        ("1.", None, 64),
        ("2.5E-3", None, 64),
    ],
)
def test_floating_point_literals(text, bits, width):
    """PTX 4.5.2: exact bits, or a decimal number of double precision."""
    if bits is None:
        (bits,) = struct.unpack("<Q", struct.pack("<d", float(text)))
    assert float_bits(text) == (bits, width)

"""The help about a malformed number writes it as PTX does (PTX 4.5)."""

from __future__ import annotations

import pytest

from ptxvm.diagnostics.numbers import help_for


@pytest.mark.parametrize(
    ("number", "said"),
    [
        ("1.5f", "a float has no suffix: `1.5`"),
        ("2f", "a float has no suffix: `2.0`"),
        ("10ul", "the suffix of an unsigned integer is a capital `U`: `10U`"),
        ("0o17", "a leading 0 alone means octal: `017`"),
        ("0b12", "`0b` takes the digits 0 and 1"),
        ("1_000", "nothing divides the digits of a number: `1000`"),
        ("089", "a leading 0 means octal, with digits up to 7"),
        ("12x", ""),
        ("FFh", "a hexadecimal number has a prefix: `0xFF`"),
        ("0f12", "`0f` takes exactly 8 hexadecimal digits"),
        ("0d12", "`0d` takes exactly 16 hexadecimal digits"),
        ("0x1.8p1", "a float is decimal, or exact bits: `3.0` or `0f40400000`"),
        ("0x1.00000001p0", "a float is decimal, or exact bits: `1.0000000002328306` or `0d3FF0000000100000`"),
        ("0x1p200", "a float is decimal, or exact bits: `1.6069380442589903e+60` or `0d4C70000000000000`"),
    ],
)
def test_help(number: str, said: str) -> None:
    assert help_for(number) == said

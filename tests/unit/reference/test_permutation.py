"""Where the bytes of a prmt result come from: the table of PTX 9.7.9.7."""

from __future__ import annotations

import pytest

from ptxvm.reference.permutation import ByteSelection, byte_selections

# mode: for c[1:0] = 0 to 3, the sources of d.b3 d.b2 d.b1 d.b0, where 0 to 3 are bytes of a and 4 to 7 of b
TABLE = {
    "f4e": ((3, 2, 1, 0), (4, 3, 2, 1), (5, 4, 3, 2), (6, 5, 4, 3)),
    "b4e": ((5, 6, 7, 0), (6, 7, 0, 1), (7, 0, 1, 2), (0, 1, 2, 3)),
    "rc8": ((0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)),
    "ecl": ((3, 2, 1, 0), (3, 2, 1, 1), (3, 2, 2, 2), (3, 3, 3, 3)),
    "ecr": ((0, 0, 0, 0), (1, 1, 1, 0), (2, 2, 1, 0), (3, 2, 1, 0)),
    "rc16": ((1, 0, 1, 0), (3, 2, 3, 2), (1, 0, 1, 0), (3, 2, 3, 2)),
}


@pytest.mark.parametrize("mode", TABLE)
@pytest.mark.parametrize("control", range(4))
def test_a_mode(mode, control):
    found = byte_selections(control | 0xFFF0, mode)  # only c[1:0] counts
    assert [(p.operand, p.byte) for p in reversed(found)] == [("ab"[n // 4], n % 4) for n in TABLE[mode][control]]
    assert not any(p.sign for p in found)


def test_the_generic_form_takes_a_byte_or_its_sign():
    assert byte_selections(0xF470) == (
        ByteSelection("a", 0),
        ByteSelection("b", 3),
        ByteSelection("b", 0),
        ByteSelection("b", 3, sign=True),
    )
    assert ByteSelection("a", 1).of(0x8899AABB, 0) == 0xAA
    assert ByteSelection("b", 3, sign=True).of(0, 0x80000000) == 0xFF
    assert ByteSelection("b", 3, sign=True).of(0, 0x7F000000) == 0

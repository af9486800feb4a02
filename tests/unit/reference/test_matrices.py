"""Fragments that repeat themselves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ptxvm.algebra.types import Type
from ptxvm.isa.fragments import mma_fragment
from ptxvm.reference.matrices import Period, period, pieces


@pytest.mark.parametrize(
    ("matrix", "type", "shape", "expected"),
    [
        # PTX 9.7.15.5.1.1: of D, eight columns are four elements of each lane; of A of f16 too.
        ("d", "f32", "m16n256k16", Period(8, 4)),
        ("a", "f16", "m16n8k16", Period(8, 4)),
        ("d", "f32", "m16n8k16", None),
    ],
)
def test_the_period_of_a_fragment(matrix, type, shape, expected):
    assert period(mma_fragment(matrix, Type.named[type], shape)) == expected


def test_the_first_period_says_all():
    whole = mma_fragment("d", Type.named["f32"], "m16n64k16")
    again = period(whole)
    assert again is not None
    found = {
        (piece.row, piece.column + n * again.columns): (piece.lane, piece.first + n * again.step)
        for piece in pieces(again.of(whole))
        for n in range(whole.shape[1] // again.columns)
    }
    assert found == {(piece.row, piece.column): (piece.lane, piece.first) for piece in pieces(whole)}


def test_a_fragment_without_a_period_has_none():
    whole = mma_fragment("d", Type.named["f32"], "m16n16k16")
    mixed = replace(whole, layout=lambda lane, element: whole.layout(lane, element ^ 4 if lane == 5 else element))
    assert period(mixed) is None

"""Cells: words of state beside an object, which native code reads without Python.

Contexts, streams and events have four cells each.  They are a list of the object's own until `bound` moves them to where the
native code of the C interface finds them.
"""

from __future__ import annotations

from typing import Protocol

KIND = 0  # one of the kinds below
FAILURE, ORDINAL, DEFAULT = 1, 2, 3  # of a context: the error of a kernel, the device, the handle of the default stream
BUSY, CAPTURED, CONTEXT = 1, 2, 3  # of a stream: has it work to do, is it captured, the handle of its context
PENDING = 1  # of an event: may it have to happen yet, or is it of a capture?
NO_KIND, A_CONTEXT, A_STREAM, AN_EVENT = range(4)
COUNT = 4


class Cells(Protocol):
    """Words of 64 bits."""

    def __getitem__(self, number: int, /) -> int:
        """A word."""

    def __setitem__(self, number: int, value: int, /) -> None:
        """Write a word."""


def cells(kind: int) -> Cells:
    """New cells of an object of a kind."""
    return [kind, *[0] * (COUNT - 1)]


def bound(own: Cells, shared: Cells) -> Cells:
    """Other cells with the words of an object's own, which it is to use from now on."""
    for number in range(COUNT):
        shared[number] = own[number]
    return shared


__all__ = [
    "AN_EVENT", "A_CONTEXT", "A_STREAM", "BUSY", "CAPTURED", "CONTEXT", "COUNT", "DEFAULT", "FAILURE", "KIND", "NO_KIND",
    "ORDINAL", "PENDING", "Cells", "bound", "cells",
]  # fmt: skip

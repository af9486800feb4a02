"""Cells: words of state of an object, which native code reads without Python.

Contexts, streams and events have four cells each.  At first they are a list of the object; `bound` moves them to
memory that the native code of the C interface reads.
"""

from __future__ import annotations

from typing import Protocol

KIND = 0  # one of the kinds below
FAILURE, ORDINAL, DEFAULT = 1, 2, 3  # of a context: the error of a kernel, the device, the handle of the default stream
BUSY, CAPTURED, CONTEXT = 1, 2, 3  # of a stream: does it have work, is it captured, and the handle of its context
PENDING = 1  # of an event: may it be pending, or does it belong to a capture?
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
    """Other cells with the words of an object; the object uses them from now on."""
    for number in range(COUNT):
        shared[number] = own[number]
    return shared


__all__ = [
    "AN_EVENT", "A_CONTEXT", "A_STREAM", "BUSY", "CAPTURED", "CONTEXT", "COUNT", "DEFAULT", "FAILURE", "KIND", "NO_KIND",
    "ORDINAL", "PENDING", "Cells", "bound", "cells",
]  # fmt: skip

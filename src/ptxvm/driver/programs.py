"""A cache of modules that were read: clients give the same text to a linker and then to a device, or to several devices."""

from __future__ import annotations

from collections.abc import Container
from functools import lru_cache

from ptxvm import api
from ptxvm.analysis.program import Program

REMEMBERED = 16  # texts


def loaded(text: bytes, others: Container[bytes] = ()) -> api.Module:
    """A new module of a text, as `ptxvm.load` makes it; InvalidPTX for wrong PTX.

    The text is read again where it is among the `others` of a link: there each module has its own program.
    """
    return api.load(text) if text in others else api.Module(read(text))


@lru_cache(REMEMBERED)
def read(text: bytes) -> tuple[Program, ...]:
    """The bound programs of a text; they are never modified."""
    return tuple(api.load(text).programs)


__all__ = ["loaded"]

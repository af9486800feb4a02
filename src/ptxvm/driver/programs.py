"""PTX that was read lately: clients hand the same text to a linker and then to a device, or to several devices."""

from __future__ import annotations

from collections.abc import Container
from functools import lru_cache

from ptxvm import api
from ptxvm.analysis.program import Program

REMEMBERED = 16  # texts


def loaded(text: bytes, others: Container[bytes] = ()) -> api.Module:
    """A module of its own of a text, as `ptxvm.load` makes it; InvalidPTX where it is wrong.

    It is read again where it is one of the `others` of a link, in which each module has its own program.
    """
    return api.load(text) if text in others else api.Module(read(text))


@lru_cache(REMEMBERED)
def read(text: bytes) -> tuple[Program, ...]:
    """The bound programs of a text, which nothing changes."""
    return tuple(api.load(text).programs)


__all__ = ["loaded"]

"""PTX that was read lately: clients hand the same text to a linker and then to a device, or to several devices."""

from __future__ import annotations

from functools import lru_cache

from ptxvm import api
from ptxvm.analysis.program import Program

REMEMBERED = 16  # texts


def loaded(text: bytes) -> api.Module:
    """A module of its own of a text, as `ptxvm.load` makes it; InvalidPTX where it is wrong."""
    return api.Module(read(text))


@lru_cache(REMEMBERED)
def read(text: bytes) -> tuple[Program, ...]:
    """The bound programs of a text, which nothing changes."""
    return tuple(api.load(text).programs)


__all__ = ["loaded"]

"""A cache of modules that were read: clients give the same text to a linker and then to a device, or to several devices."""

from __future__ import annotations

from collections.abc import Container
from functools import lru_cache

from ptxvm import api
from ptxvm.analysis.program import Program
from ptxvm.diagnostics.errors import InvalidPTX
from ptxvm.driver.cubins import AssembledPTX
from ptxvm.driver.results import Result

REMEMBERED = 16  # texts
NEWER_VERSION = "P0501"  # of the diagnostic of a `.version` that is not known


def loaded(text: bytes, others: Container[bytes] = ()) -> api.Module:
    """A new module of a text, as `ptxvm.load` makes it; InvalidPTX for wrong PTX.

    The text is read again where it is among the `others` of a link: there each module has its own program.
    """
    return load(text) if text in others else api.Module(read(text))


def load(text: bytes) -> api.Module:
    """The module of a text.  An assembler that has made code of it knew how much shared memory its device has."""
    return api.load(text, extended_shared=isinstance(text, AssembledPTX))


@lru_cache(REMEMBERED, typed=True)
def read(text: bytes) -> tuple[Program, ...]:
    """The bound programs of a text; they are never modified."""
    return tuple(load(text).programs)


def result_of_ptx(wrong: InvalidPTX) -> Result:
    """The code for a text that is PTX and is refused: wrong, or newer than is known (driver API, `cuLinkAddData`)."""
    newer = any(each.code == NEWER_VERSION for each in wrong.diagnostics)
    return Result.UNSUPPORTED_PTX_VERSION if newer else Result.INVALID_PTX


__all__ = ["loaded", "result_of_ptx"]

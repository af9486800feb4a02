"""Modules that `PTXVM_IMPORT` names: they are imported when the driver is initialised, as the debugger is in programs."""

from __future__ import annotations

import importlib
import os
from functools import cache


@cache
def import_named() -> None:
    """Import them, once in a process; ImportError names what is not there."""
    for name in filter(None, os.environ.get("PTXVM_IMPORT", "").split(",")):
        importlib.import_module(name)


__all__ = ["import_named"]

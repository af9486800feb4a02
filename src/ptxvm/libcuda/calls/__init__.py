"""The functions of the driver API, by the chapters of its manual; each module enters its own in `FUNCTIONS`."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache


@cache
def load_functions() -> None:
    """Import every chapter."""
    for chapter in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{chapter.name}")

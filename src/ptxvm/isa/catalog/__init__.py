"""The instructions, one module per family of the manual.

To add an instruction, declare it in the module of its family; nothing else needs to know.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache


@cache
def load_catalog() -> None:
    """Import every family, which enters its instructions into the registry."""
    for family in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{family.name}")

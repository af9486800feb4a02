"""Debug logging, by the log `ptxvm.jit`."""

from __future__ import annotations

import sys


def debug(message: str, *words: object) -> None:
    """Log, if anybody may listen: a process that has not loaded `logging`, which takes 5 ms, has no handler for it."""
    if (logging := sys.modules.get("logging")) is not None:
        logging.getLogger("ptxvm.jit").debug(message, *words)

"""What a process that answers one request does; `processes` starts it.

All that a launch needs is imported here: the server of processes imports this module once, and each process is forked from it.
"""

from __future__ import annotations

import importlib
import os
import resource
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

from ptxvm.isa.catalog import load_catalog
from ptxvm.playground.protocol import METHODS, answer

MEMORY = 4 << 30
"""Bytes of address space that a request may take, over what the process begins with."""

LATER = (
    "ptxvm.engine.interp.instrumented",
    "ptxvm.playground.computing",
    "ptxvm.playground.launching",
    "ptxvm.checkers.checker",
)
"""What else requests import when they need it."""

load_catalog()
for name in (*(f"ptxvm.playground.{method.module}" for method in METHODS.values()), *LATER):
    importlib.import_module(name)


def serve(request: str, answers: Connection) -> None:
    """Send the answer to a request, with limited memory."""
    limit_memory()
    answers.send_bytes(answer(request).encode())
    answers.close()


def limit_memory() -> None:
    """Let an allocation that is too large fail; a system that has no such limit still ends what takes too long."""
    with suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = pages * os.sysconf("SC_PAGE_SIZE") + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


__all__ = ["serve"]

"""Environment variables of ptxvm: each is read and checked here.

PTXVM_CACHE        the folder of compiled kernels, or `off`
PTXVM_CACHE_SIZE   how many MiB it may take
PTXVM_THREADS      how many threads of the host run a launch
PTXVM_TIER         auto, quick or best code
"""

from __future__ import annotations

import enum
import os
from pathlib import Path

CACHE_SIZE = 256  # MiB


class Tiering(enum.StrEnum):
    """How much a kernel is optimised: quickly first and then well, or always in one way."""

    AUTO = "auto"
    QUICK = "quick"
    BEST = "best"


def check() -> None:
    """Raise ValueError for a variable with an invalid value, whether or not this launch needs it."""
    cache_folder()
    cache_size()
    threads()
    tiering()


def cache_folder() -> Path | None:
    """The folder of compiled kernels that the user names; None by default."""
    folder = os.environ.get("PTXVM_CACHE", "")
    if not folder or not cached():
        return None
    try:
        return Path(folder).expanduser()
    except RuntimeError:
        raise ValueError(f"PTXVM_CACHE is a folder, and there is no home directory for {folder!r}") from None


def cached() -> bool:
    """Are compiled kernels kept?"""
    return os.environ.get("PTXVM_CACHE") != "off"


def cache_size() -> int:
    """The size limit of the folder in MiB."""
    return _number("PTXVM_CACHE_SIZE", "MiB", 0) if os.environ.get("PTXVM_CACHE_SIZE") else CACHE_SIZE


def threads() -> int | None:
    """The number of host threads; None by default."""
    return _number("PTXVM_THREADS", "threads", 1) if os.environ.get("PTXVM_THREADS") else None


def tiering() -> Tiering:
    """The tiers of code that the user asks for."""
    text = os.environ.get("PTXVM_TIER", Tiering.AUTO)
    try:
        return Tiering(text)
    except ValueError:
        raise ValueError(f"PTXVM_TIER is one of {', '.join(Tiering)}, not {text!r}") from None


def _number(name: str, of: str, least: int) -> int:
    text = os.environ[name]
    if not text.isdecimal() or int(text) < least:
        raise ValueError(f"{name} is a number of {of}, not {text!r}")
    return int(text)

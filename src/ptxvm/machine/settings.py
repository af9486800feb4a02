"""Environment variables of ptxvm: what there are, and those of launches, which are read and checked here."""

from __future__ import annotations

import enum
import os
from collections.abc import Mapping
from pathlib import Path

from ptxvm.dataclass import dataclass

CACHE_SIZE = 256  # MiB


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable: its values, what holds without it, and what it says."""

    name: str
    values: str
    without: str
    meaning: str


VARIABLES = (
    Variable("PTXVM_CACHE", "a folder, or `off`", "in the user's cache folder", "Where compiled kernels are kept."),
    Variable("PTXVM_CACHE_SIZE", "MiB", str(CACHE_SIZE), "How much compiled kernels may take; the oldest go first."),
    Variable("PTXVM_THREADS", "a number", "one for each processor", "How many threads of the host run a launch."),
    Variable(
        "PTXVM_TIER", "`auto`, `quick` or `best`", "`auto`", "How much kernels are optimised: later more, or always alike."
    ),
    Variable("PTXVM_CPU_WITHOUT", "`avx512,...`", "", "Features of the processor that compiled code leaves, by prefixes."),
    Variable("PTXVM_TRACEBACK", "`1`", "", "Show where an error of ptxvm itself came from, as `--traceback` does."),
    Variable("PTXVM_DEVICE", "`sm_80`, ...", "`sm_89`", "The card whose limits the devices of the CUDA driver have."),
    Variable("PTXVM_DEVICES", "a number", "1", "How many devices the CUDA driver has."),
    Variable("PTXVM_CHECK", "`memory,init,sync,race`", "", "What the CUDA driver looks for in every kernel."),
    Variable(
        "PTXVM_ASYNC", "`early`, `late`, `random`", "", "When copies, `wgmma` and `tcgen05` end in kernels of the CUDA driver."
    ),
    Variable("PTXVM_SEED", "a number", "0", "For `PTXVM_ASYNC=random`."),
    Variable("PTXVM_SUPPRESS", "a file", "", "Findings that are meant, for the CUDA driver: a line CODE KERNEL:LINE for each."),
    Variable("PTXVM_ALLOW", "`race-of-equal-values,...`", "", "Findings that are meant, for the CUDA driver, by their codes."),
    Variable("PTXVM_FINDINGS", "a file", "", "Where the CUDA driver writes findings, in lines of JSON."),
    Variable("PTXVM_PROFILE", "a file", "", "Where the CUDA driver counts launches, by kernel, in lines of JSON."),
    Variable("PTXVM_IMPORT", "modules", "", "Python modules that the CUDA driver imports when it is initialised."),
    Variable("PTXVM_DEBUG", "JSON", "", "What the debugger is to do in a program; `ptxvm debug --exec` sets it."),
    Variable("PTXVM_LIBCUDA", "a folder", "one for each process", "Where the driver's libraries are; `ptxvm exec` sets it."),
)
"""All of them, those of the driver and of the command line too."""


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


def devices() -> int:
    """The number of devices of the CUDA driver; 1 by default."""
    return _number("PTXVM_DEVICES", "devices", 0) if os.environ.get("PTXVM_DEVICES") else 1


def seed(variables: Mapping[str, str] = os.environ) -> int:
    """The seed of the times at which asynchronous work ends; 0 by default."""
    return _number("PTXVM_SEED", "", 0, variables) if variables.get("PTXVM_SEED") else 0


def tiering() -> Tiering:
    """The tiers of code that the user asks for."""
    text = os.environ.get("PTXVM_TIER", Tiering.AUTO)
    try:
        return Tiering(text)
    except ValueError:
        raise ValueError(f"PTXVM_TIER is one of {', '.join(Tiering)}, not {text!r}") from None


def _number(name: str, of: str, least: int, variables: Mapping[str, str] = os.environ) -> int:
    text = variables[name]
    if not text.isdecimal() or int(text) < least:
        raise ValueError(f"{name} is a number{of and f' of {of}'}, not {text!r}")
    return int(text)

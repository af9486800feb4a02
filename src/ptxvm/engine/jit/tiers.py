"""When which tier: quick code first, and the best one, made in the background, for kernels on which time is spent.

`PTXVM_TIER` is `auto` for that, or `quick` or `best` for code of one tier from the start, which tests and benchmarks
want.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from ptxvm.engine.jit.shelf import Tier

if TYPE_CHECKING:
    from threading import Thread

    from ptxvm.engine.jit.compiled import Compiled, Version
    from ptxvm.machine.launch import LaunchShape

PATIENCE = 0.3  # seconds that a kernel has run before better code can pay ...
FACTOR = 3.0  # ... and so many times as long as it took to compile
FEW = 1 << 14  # threads that run code without loops, however bad, in no time
FIXED = {"quick": Tier.QUICK, "best": Tier.BEST}


@functools.cache
def policy() -> str:
    """What the user wants."""
    text = os.environ.get("PTXVM_TIER", "auto")
    if text not in ("auto", *FIXED):
        raise ValueError(f"PTXVM_TIER is one of auto, {', '.join(FIXED)}, not {text!r}")
    return text


def first(shape: LaunchShape | None = None) -> Tier:
    """The tier of code that somebody waits for, with a launch of a shape."""
    short = shape is not None and shape.ctas * shape.threads <= FEW
    return FIXED.get(policy(), Tier.SKETCH if short else Tier.QUICK)


def pays(compiled: Compiled) -> bool:
    """Has the kernel run for so long that its code should be better?"""
    if compiled.spent <= PATIENCE or compiled.improving or policy() != "auto":
        return False
    quick = [version for version in compiled.versions.values() if version.tier < Tier.BEST]
    return bool(quick) and compiled.spent > max(PATIENCE, FACTOR * sum(version.seconds for version in quick))


def improve(compiled: Compiled, make: Callable[[str, Tier], Version]) -> Thread:
    """Make better code of a kernel beside what runs; the launches that follow take it.

    The process does not end before that: LLVM must not be taken apart while it works.
    """
    import threading  # noqa: PLC0415 - few kernels run for so long

    compiled.improving = True

    def work() -> None:
        for name in list(compiled.versions):
            compiled.replace(name, make(name, Tier.BEST))

    thread = threading.Thread(target=work, name="ptxvm compiles")
    thread.start()
    return thread

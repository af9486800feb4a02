"""When which tier: quick code first, and the best one, made in the background, for kernels on which time is spent.

`PTXVM_TIER` is `auto` for that, or `quick` or `best` for code of one tier from the start, which tests and benchmarks
want.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from ptxvm.algebra.float_environment import DefaultEnvironment
from ptxvm.engine.jit.abi.specialisation import Tier
from ptxvm.machine import settings

if TYPE_CHECKING:
    from threading import Thread

    from ptxvm.engine.jit.objects.version import Version
    from ptxvm.engine.jit.run.compiled import Compiled
    from ptxvm.machine.launch import LaunchShape

WARM = 0.3  # seconds that a kernel has run before better code can pay ...
FACTOR = 3.0  # ... and so many times as long as it took to compile
FEW = 1 << 14  # threads that run code without loops, however bad, in no time
FIXED = {"quick": Tier.QUICK, "best": Tier.BEST}


@functools.cache
def policy() -> str:
    """What the user wants."""
    return settings.tier()


def first(shape: LaunchShape | None = None) -> Tier:
    """The tier of code that a launch of a shape waits for."""
    short = shape is not None and shape.ctas * shape.threads <= FEW
    return FIXED.get(policy(), Tier.SKETCH if short else Tier.QUICK)


def pays(compiled: Compiled) -> bool:
    """Has the kernel run for so long that its code should be better?"""
    if compiled.spent <= WARM or compiled.improving or policy() != "auto":
        return False
    quick = [version for version in compiled.versions.values() if version.tier < Tier.BEST]
    return bool(quick) and compiled.spent > max(WARM, FACTOR * sum(version.seconds for version in quick))


def improve(compiled: Compiled, make: Callable[[str, Tier], Version]) -> Thread:
    """Make better code of a kernel beside what runs; the launches that follow take it.

    The process does not end before that: LLVM must not be taken apart while it works.
    """
    import threading  # noqa: PLC0415 - few kernels run for so long

    compiled.improving = True

    def work() -> None:
        with DefaultEnvironment():
            for name in list(compiled.versions):
                compiled.replace(name, make(name, Tier.BEST))

    thread = threading.Thread(target=work, name="ptxvm compiles")
    thread.start()
    return thread

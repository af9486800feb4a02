"""Tiering: quick code first, and optimised code, compiled in the background, for hot kernels.

That is `PTXVM_TIER=auto`, where quick code runs one warp at a time; `quick` or `best` is one tier from the start, for tests and
benchmarks, in the version that pays for long launches.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from ptxvm.algebra.float_environment import DefaultEnvironment
from ptxvm.engine.jit.abi.specialisation import Specialisation, Tier
from ptxvm.machine import settings

if TYPE_CHECKING:
    from threading import Thread

    from ptxvm.engine.jit.run.compiled import Compiled
    from ptxvm.machine.launch import LaunchShape

WARM = 0.3  # seconds that a kernel must have run before optimised code can pay ...
FACTOR = 3.0  # ... and this multiple of its compile time
FEW = 1 << 14  # threads of a launch for which a sketch is good enough, if there are no loops
FIXED = {settings.Tiering.QUICK: Tier.QUICK, settings.Tiering.BEST: Tier.BEST}

policy = functools.cache(settings.tiering)


def first(shape: LaunchShape | None = None) -> Tier:
    """The tier of code that a launch of a shape waits for."""
    short = shape is not None and shape.ctas * shape.threads <= FEW
    return FIXED.get(policy(), Tier.SKETCH if short else Tier.QUICK)


def may_be_narrow(wanted: Specialisation) -> bool:
    """Is code for one warp at a time good enough to begin with?  Better code follows where a kernel runs for long."""
    return policy() is settings.Tiering.AUTO and wanted.plain and not (wanted.scalar or wanted.recorded)


def pays(compiled: Compiled) -> bool:
    """Has the kernel run for so long that optimised code, or its rival, pays?"""
    if compiled.spent <= WARM or compiled.improving or policy() is not settings.Tiering.AUTO:
        return False
    quick = [version for version in compiled.versions.values() if version.tier < Tier.BEST]
    lacks_rival = compiled.facts.scalar and compiled.rival is None  # also where the disk cache had the best code
    return (bool(quick) or lacks_rival) and compiled.spent > max(WARM, FACTOR * sum(version.seconds for version in quick))


def improve(compiled: Compiled) -> Thread:
    """Compile a kernel at the best tier, or its rival, in the background; later launches use it.

    The process waits for that at its end: LLVM must not be unloaded while it works.
    """
    import threading  # noqa: PLC0415 - few kernels run for so long

    from ptxvm.engine.jit.objects.compiler_process import give_way  # noqa: PLC0415

    compiled.improving = True

    def work() -> None:
        give_way()
        with DefaultEnvironment():
            better = compiled
            if compiled.find_better is not None and not compiled.is_best:
                better = compiled.find_better(compiled)
            better.face_rival(background=True)
            if better is not compiled:
                compiled.better = better

    thread = threading.Thread(target=work, name="ptxvm compiles")
    thread.start()
    return thread

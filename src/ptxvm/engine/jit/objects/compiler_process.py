"""Compilation in a process of its own, for modules that take LLVM long.

llvmlite lets one thread at a time into LLVM, and a signal waits until LLVM returns.  So a long compilation in this process
would delay the others, and Ctrl-C.  In the background it also gives way to the threads that run CTAs.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from ptxvm.engine.jit.abi.specialisation import Tier

LONG = {Tier.SKETCH: 8_000, Tier.QUICK: 8_000, Tier.BEST: 2_000}  # lines, from which on a module takes some tenths of a second
NICENESS = 10  # of a compilation in the background
OF_SESSION = Path("/proc/self/autogroup")  # the niceness of a session among others, on Linux
PROGRAM = "import sys; sys.path[:] = {path}; from {module} import serve; serve({tier}, {niceness})"


def is_long(text: str, tier: Tier) -> bool:
    """Does a module take longer to compile than a process to start?  False where this process can start no Python."""
    return text.count("\n") > LONG[tier] and Path(sys.executable or "").name.startswith("python")


def object_code(text: str, tier: Tier, *, background: bool) -> bytes | None:
    """The object file of a module; None where the process failed, so that the caller finds the reason.

    An error that is raised while it runs, as by Ctrl-C, ends the process.
    """
    import subprocess  # noqa: PLC0415 - most kernels are compiled in this process

    niceness = NICENESS if background else 0
    program = PROGRAM.format(path=sys.path, module=__name__, tier=int(tier), niceness=niceness)
    try:
        process = subprocess.Popen(  # noqa: S603 - Python itself, with a program of ours
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for this process, which ends the other
        )
    except OSError:
        return None
    with process:
        try:
            made, _ = process.communicate(text.encode())
        finally:
            if process.returncode is None:
                process.kill()
                process.wait()
    return made if process.returncode == 0 else None


def serve(tier: int, niceness: int) -> None:
    """Compile the module on the standard input, and write the object file to the standard output."""
    from ptxvm.engine.jit.objects import codegen  # noqa: PLC0415 - LLVM

    if niceness:
        lower_session(niceness)
    text = sys.stdin.buffer.read().decode()
    sys.stdout.buffer.write(codegen.object_code(text, Tier(tier), patient=tier == Tier.BEST))


def lower_session(niceness: int) -> None:
    """Lower the priority of this process, which is a session of its own, unless it has inherited a lower one.

    Linux may first share processors out among sessions (sched(7), autogroups): beside another it would have half of one.
    """
    lowest = max(niceness, os.getpriority(os.PRIO_PROCESS, 0))
    os.setpriority(os.PRIO_PROCESS, 0, lowest)
    with suppress(OSError):
        OF_SESSION.write_text(str(lowest))


def give_way() -> None:
    """Lower the priority of this thread, and of those that it starts, so that those that run CTAs keep the processors.

    On Linux a thread has a priority of its own; elsewhere the whole process would give way, so nothing is done.
    """
    if sys.platform == "linux":
        os.nice(NICENESS)


__all__ = ["give_way", "is_long", "object_code", "serve"]

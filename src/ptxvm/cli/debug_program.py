"""`ptxvm debug app.py` and `ptxvm debug -m pytest`: a Python program each of whose launches is debugged."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence

from ptxvm.analysis.program import Function
from ptxvm.cli.debug import LocalFiles, Terminal
from ptxvm.cli.failures import WrongCall
from ptxvm.debug.console import Console
from ptxvm.debug.session import Session
from ptxvm.debug.stops import Reason
from ptxvm.engine.interception import intercepted
from ptxvm.machine.image import Image
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.machine.result import LaunchResult


def debug_program(program: str, words: Sequence[str], commands: Sequence[str], *, module: bool, batch: bool) -> int:
    """Run a script, or a module as `python -m` does, with these arguments; its exit status."""
    before, sys.argv = sys.argv, [program, *words]
    launches = Launches(commands, batch=batch)
    try:
        with intercepted(launches.run):
            if module:
                runpy.run_module(program, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(program, run_name="__main__")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except (FileNotFoundError, ImportError) as wrong:
        if launches.count:
            raise
        raise WrongCall(f"cannot run {program}: {wrong}") from None
    finally:
        sys.argv = before
    return 0


class Launches:
    """Debugs one launch after the other; `commands` are carried out in each."""

    def __init__(self, commands: Sequence[str], *, batch: bool) -> None:
        self.commands, self.batch = commands, batch
        self.count = 0

    def run(self, image: Image, kernel: Function, options: LaunchOptions, args: Sequence[object]) -> LaunchResult:
        """Stop before the first instruction, carry out commands, and run to the end; SystemExit after `quit`."""
        self.count += 1
        session = Session(image, kernel, options, args)
        front = Terminal(Console(session, LocalFiles()))
        session.printed = front.printed
        try:
            front.carry_out(["start", *self.commands])
            if not self.batch:
                front.converse(is_over=lambda: session.stop is not None and session.stop.reason is Reason.ENDED)
            if front.debugger.is_done:
                raise SystemExit(0)
            return finished(session)
        finally:
            session.close()


def finished(session: Session) -> LaunchResult:
    """The result of a launch that runs to its end; its fault is raised for the program."""
    session.delete()
    stop = session.stop if session.is_running else session.start()
    while stop is not None and stop.reason not in (Reason.ENDED, Reason.FAULT):
        stop = session.resume()
    if stop is not None and stop.fault is not None:
        raise stop.fault
    return session.result


__all__ = ["debug_program"]

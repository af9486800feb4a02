"""`ptxvm debug app.py` and `ptxvm debug -m pytest`: a Python program each of whose launches is debugged."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from ptxvm.analysis.program import Function
from ptxvm.cli.debug import LocalFiles, Terminal
from ptxvm.cli.failures import WrongCall
from ptxvm.debug.breakpoints import Breakpoints
from ptxvm.debug.console import Console
from ptxvm.debug.session import Session
from ptxvm.debug.stops import Reason
from ptxvm.engine.interception import Runs, intercepted
from ptxvm.machine.image import Image
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.machine.result import LaunchResult


def debug_program(program: str, words: Sequence[str], commands: Sequence[str], *, module: bool, batch: bool) -> int:
    """Run a script, or a module as `python -m` does, with these arguments; its exit status."""
    launches = Launches(commands, batch=batch)
    try:
        return run_python(program, words, launches.run, module=module)
    except (FileNotFoundError, ImportError) as wrong:
        if launches.count:
            raise
        raise WrongCall(f"cannot run {program}: {wrong}") from None


def run_python(program: str, words: Sequence[str], runs: Runs, *, module: bool) -> int:
    """Run a script or a module, whose launches something else `runs`; its exit status."""
    before, sys.argv = sys.argv, [program, *words]
    folder = str(Path.cwd() if module else Path(program).resolve().parent)
    sys.path.insert(0, folder)  # as Python does
    try:
        with intercepted(runs):
            if module:
                runpy.run_module(program, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(program, run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.argv = before
        sys.path.remove(folder)
    return 0


class Launches:
    """Debugs one launch after the other; `commands` are carried out in each."""

    def __init__(self, commands: Sequence[str], *, batch: bool) -> None:
        self.commands, self.batch = commands, batch
        self.count = 0
        self.breakpoints = Breakpoints()
        self.breaks_on_launch = True

    def run(self, image: Image, kernel: Function, options: LaunchOptions, args: Sequence[object]) -> LaunchResult:
        """Stop before the first instruction, carry out commands, and run to the end; SystemExit after `quit`."""
        self.count += 1
        session = Session(image, kernel, options, args, breakpoints=self.breakpoints)
        front = Terminal(Console(session, LocalFiles()))
        front.debugger.breaks_on_launch = self.breaks_on_launch
        session.printed = front.printed
        try:
            made = self.begin(front)
            if not self.batch and not is_over(session):
                front.converse(is_over=lambda: is_over(session))
            if front.debugger.is_done:
                raise SystemExit(0)
            self.breaks_on_launch = front.debugger.breaks_on_launch
            for number in made if self.breaks_on_launch else ():  # the next launch makes them anew
                self.breakpoints.discard(number)
            return session.finished()
        finally:
            session.close()

    def begin(self, front: Terminal) -> set[int]:
        """Stop before the first instruction, and carry out commands; the numbers of the breakpoints that these have made.

        Or run to the first breakpoint, where launches are to be no reason to stop.
        """
        debugger, before = front.debugger, set(self.breakpoints.all)
        if self.breaks_on_launch:
            front.carry_out(["start", *self.commands])
            return set(self.breakpoints.all) - before
        debugger.session.start()
        stop = debugger.session.resume()
        if stop.reason is not Reason.ENDED:
            for line in debugger.stopped(stop):
                front.show(line)
        return set()


def is_over(session: Session) -> bool:
    """Has the kernel ended?"""
    return session.stop is not None and session.stop.reason is Reason.ENDED


__all__ = ["debug_program", "run_python"]

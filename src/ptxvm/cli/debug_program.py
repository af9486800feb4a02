"""`ptxvm debug app.py` and `ptxvm debug -m pytest`: a Python program each of whose launches is debugged."""

from __future__ import annotations

import os
import runpy
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TextIO

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

RUNPY = "<frozen runpy>"
"""The file of the frames in which Python runs a program."""


class Quit(KeyboardInterrupt):
    """The user leaves the debugger: it ends the program as Ctrl-C does, and pytest with all of its tests."""


def debug_program(program: str, words: Sequence[str], commands: Sequence[str], *, module: bool, batch: bool) -> int:
    """Run a script, or a module as `python -m` does, with these arguments; its exit status."""
    if not module and not Path(program).is_file():
        raise WrongCall(f"cannot run {program}: there is no such file")
    try:
        return run_python(program, words, Launches(commands, batch=batch, streams=OwnStreams()).run, module=module)
    except Exception as wrong:  # noqa: BLE001 - whatever it is, it is the program's
        if module and isinstance(wrong, ImportError) and wrong.name is None:  # which `runpy` says of the module itself
            raise WrongCall(f"cannot run {program}: {wrong}") from None
        print_exception(wrong)
        return 1


def print_exception(wrong: Exception) -> None:
    """Print what a program has let pass, as Python does: from its own first line on."""
    frames = wrong.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith((RUNPY, str(Path(__file__).parent))):
        frames = frames.tb_next
    traceback.print_exception(wrong.with_traceback(frames))


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
    except Quit:
        return 0
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.argv = before
        sys.path.remove(folder)
    return 0


class OwnStreams:
    """The standard input and output as they are now: a program may put others in their place, as pytest does."""

    def __init__(self) -> None:
        self.streams, self.files = (sys.stdin, sys.stdout), (os.dup(0), os.dup(1))

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Within it they are those of the process."""
        streams, files = (sys.stdin, sys.stdout), (os.dup(0), os.dup(1))
        self.put(self.streams, self.files)
        try:
            yield
        finally:
            self.put(streams, files)
            for each in files:
                os.close(each)

    def put(self, streams: tuple[TextIO, TextIO], files: tuple[int, int]) -> None:
        """Let others be the streams of the process."""
        sys.stdout.flush()
        for number, each in enumerate(files):
            os.dup2(each, number)
        sys.stdin, sys.stdout = streams


class Launches:
    """Debugs one launch after the other; `commands` are carried out in each."""

    def __init__(self, commands: Sequence[str], *, batch: bool, streams: OwnStreams | None = None) -> None:
        """`streams` are those of the user, where the program has others."""
        self.commands, self.batch, self.streams = commands, batch, streams
        self.breakpoints = Breakpoints(more=True)
        self.breaks_on_launch = True

    def run(self, image: Image, kernel: Function, options: LaunchOptions, args: Sequence[object]) -> LaunchResult:
        """Stop before the first instruction, carry out commands, and run to the end; Quit after `quit`."""
        with self.streams.restored() if self.streams is not None else nullcontext():
            return self.debugged(image, kernel, options, args)

    def debugged(self, image: Image, kernel: Function, options: LaunchOptions, args: Sequence[object]) -> LaunchResult:
        """The same, with the streams of the user."""
        session = Session(image, kernel, options, args, breakpoints=self.breakpoints)
        front = Terminal(Console(session, LocalFiles()))
        front.debugger.breaks_on_launch = self.breaks_on_launch
        session.printed = front.printed
        try:
            made = self.begin(front)
            if not self.batch and not is_over(session):
                front.converse(is_over=lambda: is_over(session))
            if front.debugger.is_done:
                raise Quit
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


__all__ = ["Launches", "Quit", "debug_program", "print_exception", "run_python"]

"""`ptxvm debug`: the debugger in a terminal or in a pipe."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import FrameType

import numpy as np
import platformdirs
from rich.text import Text

import ptxvm
from ptxvm.cli import arguments
from ptxvm.cli.check import known_target, read
from ptxvm.cli.failures import FINDINGS, WRONG_CALL, InFile, WrongCall
from ptxvm.cli.run import RunRequest, extent, find_kernel, known_completion, load, refuse_wrong_launch
from ptxvm.cli.terminal import console, hung, width
from ptxvm.debug.commands.command import TAB, BadCommand, Line, Style
from ptxvm.debug.console import Console
from ptxvm.debug.session import Session
from ptxvm.debug.stops import Reason
from ptxvm.machine.launch_options import LaunchOptions

PROMPT = "(ptxvm) "
HISTORY = "debug_history"
MOST_REMEMBERED = 1000
STYLES = {
    Style.PLAIN: "", Style.HEADING: "bold", Style.STOP: "cyan", Style.CURRENT: "green", Style.ERROR: "red",
    Style.KERNEL: "",
}  # fmt: skip


def debug(request: RunRequest, commands: Sequence[str], *, batch: bool) -> int:
    """Load the kernel, and carry out commands."""
    source = read(request.file)
    try:
        session = prepared(request)
    except ptxvm.InvalidPTX as wrong:
        raise InFile(source, wrong) from wrong
    front = Terminal(Console(session, LocalFiles()))
    session.printed = front.printed
    try:
        front.carry_out(commands)
        if not batch:
            front.converse()
    finally:
        session.close()
    return front.exit_code if batch else 0


def prepared(request: RunRequest) -> Session:
    """The session of what the command line asks for."""
    grid, block = extent("grid", request.grid), extent("block", request.block)
    cluster = extent("cluster", request.cluster) if request.cluster else None
    known_target(request.target)
    known_completion(request.asynchronous)
    kernel = find_kernel(load(request.file, read(request.file), request.target), request.entry)
    random = cache(lambda: np.random.default_rng(request.seed or 0))
    args = [arguments.parse(word, random) for word in request.arguments]
    refuse_wrong_launch(kernel, (grid, block, cluster), args, ("interp", (), None, "exact"))
    options = LaunchOptions(
        grid, block, request.shared, cluster=cluster, asynchronous=request.asynchronous or "", seed=request.seed or 0
    )
    return Session(kernel.module.image, kernel.function, options, args, owner=kernel.module)


def script_lines(path: str) -> list[str]:
    """The commands in a file."""
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as wrong:
        raise WrongCall(f"cannot read '{path}': {wrong.strerror}") from None


class LocalFiles:
    """The files of this machine."""

    def write(self, path: str, text: str) -> None:
        """Write a file."""
        try:
            Path(path).write_text(text, encoding="utf-8")
        except OSError as wrong:
            raise BadCommand(f"cannot write '{path}': {wrong.strerror}") from None

    def read(self, path: str) -> str:
        """The text of a file."""
        try:
            return Path(path).read_text(encoding="utf-8")
        except OSError as wrong:
            raise BadCommand(f"cannot read '{path}': {wrong.strerror}") from None


class Terminal:
    """A console at the standard streams."""

    def __init__(self, debugger: Console) -> None:
        self.debugger = debugger
        self.out = console()
        self.exit_code = 0
        debugger.columns = width() if sys.stdout.isatty() else None

    def printed(self, text: str) -> None:
        """Print what the kernel prints."""
        sys.stdout.write(text)

    def carry_out(self, commands: Sequence[str]) -> None:
        """Carry out some commands, each shown as if it were typed."""
        for each in commands:
            if self.debugger.is_done:
                return
            self.out.print(Text(f"{PROMPT}{each}"), soft_wrap=True)
            self.execute(each)

    def converse(self, is_over: Callable[[], bool] = lambda: False) -> None:
        """Carry out what comes from the standard input, until it ends, or all is over."""
        if not sys.stdin.isatty():
            while not (is_over() or self.debugger.is_done) and (line := sys.stdin.readline()):
                self.carry_out([line.rstrip("\n")])
            return
        with line_editing(self.debugger.complete):
            while not (is_over() or self.debugger.is_done):
                try:
                    self.execute(input(PROMPT))
                except EOFError:  # Ctrl-D
                    print()
                    self.debugger.is_done = True
                except KeyboardInterrupt:
                    print("^C (quit leaves the debugger)")

    def execute(self, line: str) -> None:
        """Carry out one command; Ctrl-C stops the kernel."""
        self.debugger.session.interrupted.take()
        with stopped_by_interrupts(self.debugger.session.interrupt):
            for each in self.debugger.execute(line):
                self.show(each)
        stop = self.debugger.session.stop
        if stop is not None and stop.reason is Reason.FAULT:
            self.exit_code = max(self.exit_code, FINDINGS)
        if self.debugger.failed:
            self.exit_code = WRONG_CALL

    def show(self, line: Line) -> None:
        """Print a line; on a terminal it is broken where it does not fit."""
        text, columns = line.text.expandtabs(TAB), self.debugger.columns
        for part in hung(text, columns, line.hang) if columns is not None else (text,):
            self.out.print(Text(part, STYLES[line.style]), soft_wrap=True)


@contextmanager
def stopped_by_interrupts(stop: Callable[[], None]) -> Iterator[None]:
    """Within it Ctrl-C calls a function."""

    def handler(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of a handler
        stop()

    try:
        before = signal.signal(signal.SIGINT, handler)
    except ValueError:  # not the main thread, which alone hears signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def line_editing(complete: Callable[[str], list[str]]) -> Iterator[None]:
    """Within it lines are edited, completed and remembered, where Python has `readline`."""
    try:
        import readline  # some Pythons have none
    except ImportError:
        yield
        return
    history = platformdirs.user_state_path("ptxvm") / HISTORY
    with suppress(OSError):
        readline.read_history_file(history)
    readline.set_history_length(MOST_REMEMBERED)
    readline.set_completer_delims("")
    readline.set_completer(lambda text, state: next(iter(complete(text)[state:]), None))
    readline.parse_and_bind("tab: complete")
    try:
        yield
    finally:
        with suppress(OSError):
            history.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(history)


__all__ = ["debug", "script_lines"]

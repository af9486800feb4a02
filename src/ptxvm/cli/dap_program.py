"""Python programs under the debug adapter: scripts, and modules such as pytest."""

from __future__ import annotations

import io
import os
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

from ptxvm.analysis.program import Function
from ptxvm.cli.debug_program import print_exception, run_python
from ptxvm.debug.dap.fields import Arguments, Refused, an_object, sequence, text
from ptxvm.debug.dap.pending_launch import PendingLaunch
from ptxvm.machine.image import Image
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.machine.result import LaunchResult

INTERRUPTED = 128 + signal.SIGINT


def is_python(arguments: Arguments) -> bool:
    """Does a `launch` request ask for a Python program?"""
    return bool(arguments.get("module")) or str(arguments.get("program", "")).endswith(".py")


def variables(arguments: Arguments) -> dict[str, str]:
    """The variables of the environment that a `launch` request names."""
    return {str(name): str(value) for name, value in an_object(arguments.get("env") or {}, "'env'").items()}


class PythonProgram:
    """A program that a `launch` request names: `program` or `module`, its `args`, `cwd` and `env`."""

    def __init__(
        self, arguments: Arguments, start: Callable[[PythonProgram], None],
        debugged: Callable[[PendingLaunch], LaunchResult], output: Callable[[str, str], None],
    ) -> None:  # fmt: skip
        """`start` has the program run in the main thread, `debugged` debugs a launch; `output` takes what is printed."""
        self.is_module = bool(arguments.get("module"))
        self.name = text(arguments, "module" if self.is_module else "program")
        self.words = [str(word) for word in sequence(arguments, "args")]
        self.folder = text(arguments, "cwd", ".")
        self.variables = variables(arguments)
        self.begin, self.debugged, self.output = start, debugged, output
        self.is_running = False
        if not self.is_module and not Path(self.folder, self.name).is_file():
            raise Refused(f"there is no file '{self.name}'")

    def start(self) -> None:
        """Have it run in the main thread."""
        self.begin(self)

    def stop(self) -> None:
        """Interrupt it, as Ctrl-C does."""
        if self.is_running and (thread := threading.main_thread().ident) is not None:
            signal.pthread_kill(thread, signal.SIGINT)

    def run(self) -> int:
        """Run it to its end; its exit status."""
        os.environ.update(self.variables)
        printed, errors = Printed(self.output, "stdout"), Printed(self.output, "stderr")
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where an editor runs in the background
        self.is_running = True
        try:
            with chdir(self.folder), redirect_stdout(printed), redirect_stderr(errors):
                return self.status()
        except KeyboardInterrupt:
            return INTERRUPTED
        finally:
            self.is_running = False
            signal.signal(signal.SIGINT, before)

    def status(self) -> int:
        """Its exit status; an exception that it lets pass is printed."""
        try:
            return run_python(self.name, self.words, self.launched, module=self.is_module)
        except Exception as wrong:  # noqa: BLE001 - whatever it is, it is the program's
            print_exception(wrong)
            return 1

    def launched(self, image: Image, kernel: Function, options: LaunchOptions, args: Sequence[object]) -> LaunchResult:
        """Have a launch debugged."""
        return self.debugged(PendingLaunch(image, kernel, options, args))


class Printed(io.TextIOBase):
    """A stream whose text is sent to the client."""

    encoding = "utf-8"

    def __init__(self, output: Callable[[str, str], None], category: str) -> None:
        super().__init__()
        self.output, self.category = output, category

    def writable(self) -> bool:
        """It is written."""
        return True

    def write(self, text: str) -> int:
        """Send a text."""
        if text:
            self.output(text, self.category)
        return len(text)


__all__ = ["PythonProgram", "is_python", "variables"]

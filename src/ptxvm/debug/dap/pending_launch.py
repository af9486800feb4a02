"""A launch of a program that waits in its thread while another thread debugs it."""

from __future__ import annotations

from collections.abc import Sequence
from queue import SimpleQueue

from ptxvm.analysis.program import Function
from ptxvm.debug.breakpoints import Breakpoints
from ptxvm.debug.session import Session
from ptxvm.machine.image import Image
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.machine.result import LaunchResult


class PendingLaunch:
    """A launch: `wait` in the thread of the program, the rest in that of the debugger."""

    def __init__(self, image: Image, kernel: Function, options: LaunchOptions, args: Sequence[object]) -> None:
        self.image, self.kernel, self.options, self.args = image, kernel, options, args
        self._outcome: SimpleQueue[LaunchResult | BaseException] = SimpleQueue()

    def session(self, breakpoints: Breakpoints) -> Session:
        """A session for it, with breakpoints of launches before."""
        return Session(self.image, self.kernel, self.options, self.args, breakpoints=breakpoints)

    def finish(self, session: Session) -> None:
        """Let the program go on with what its session has come to: the rest of the kernel runs without stops."""
        try:
            outcome: LaunchResult | BaseException = session.finished()
        except Exception as wrong:  # noqa: BLE001 - it is the program's, in whose thread it is raised
            outcome = wrong
        finally:
            session.close()
        self._outcome.put(outcome)

    def refuse(self, wrong: BaseException) -> None:
        """Let the launch raise an exception in the program."""
        self._outcome.put(wrong)

    def wait(self) -> LaunchResult:
        """Wait for the end; what was raised in the launch is raised."""
        outcome = self._outcome.get()
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


__all__ = ["PendingLaunch"]

"""The debug adapter in a process of a CUDA program: to import it has the launches of the process debugged.

`PTXVM_DEBUG` names the socket of the adapter that has started the program.  What has been asked of that one is asked here
again, and the driver waits until all is configured.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from threading import Event, Lock

from ptxvm.analysis.program import Function
from ptxvm.cli.dap import Connection
from ptxvm.debug.dap.fields import Arguments
from ptxvm.debug.dap.pending_launch import PendingLaunch
from ptxvm.engine.interception import INTERCEPTOR
from ptxvm.machine.image import Image
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.machine.result import LaunchResult


class ThisProcess:
    """The program, as the adapter in it sees it: it runs already, and waits."""

    def __init__(self) -> None:
        self.is_configured = Event()

    def start(self) -> None:
        """Let it go on."""
        self.is_configured.set()

    def stop(self) -> None:
        """It ends when the adapter that has started it ends it."""
        self.is_configured.set()


class ProcessConnection(Connection):
    """The connection with the adapter that has started the program."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection.recv, connection.makefile("wb", buffering=0))  # type: ignore[arg-type]
        self.connection, self.process = connection, ThisProcess()
        self._turn = Lock()

    def debug_launches(self) -> None:
        """Debug the launches that come; wait until the client has configured all."""
        INTERCEPTOR.runs = self.run
        self.begin()
        self.process.is_configured.wait()

    def answer(self) -> None:
        """Answer requests; when nobody asks any more, launches run as ever."""
        try:
            super().answer()
        finally:
            INTERCEPTOR.runs = None
            self.process.stop()

    def launch(self, arguments: Arguments) -> ThisProcess:  # noqa: ARG002 - the signature of `Connection`
        """The program is this process."""
        return self.process

    def run(self, image: Image, kernel: Function, options: LaunchOptions, args: Sequence[object]) -> LaunchResult:
        """Have a launch debugged; those of several threads are, one after the other."""
        with self._turn:
            return self.debugged(PendingLaunch(image, kernel, options, args))


def attach(path: str) -> None:
    """Connect with the adapter."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    ProcessConnection(connection).debug_launches()


attach(os.environ["PTXVM_DEBUG"])

__all__: list[str] = []

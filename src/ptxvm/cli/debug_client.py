"""The debugger in a process of a CUDA program: to import it has each launch of the process debugged, as `PTXVM_DEBUG` says.

Launches run in the threads of the driver; those of several streams are debugged one after the other.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from threading import Lock

from ptxvm.analysis.program import Function
from ptxvm.cli.debug_program import Launches, Quit
from ptxvm.engine.interception import INTERCEPTOR
from ptxvm.machine.image import Image
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.machine.result import LaunchResult


class ClientLaunches(Launches):
    """Debugs the launches of a program that is not Python's, or not ours to end by an exception."""

    def __init__(self, commands: Sequence[str], *, batch: bool) -> None:
        super().__init__(commands, batch=batch)
        self._turn = Lock()

    def run(self, image: Image, kernel: Function, options: LaunchOptions, args: Sequence[object]) -> LaunchResult:
        """Debug a launch; `quit` ends the process."""
        with self._turn:
            try:
                return super().run(image, kernel, options, args)
            except Quit:
                sys.stdout.flush()
                os._exit(0)
            finally:
                sys.stdout.flush()  # C writes to the same file


INTERCEPTOR.runs = ClientLaunches(**json.loads(os.environ["PTXVM_DEBUG"])).run

__all__: list[str] = []

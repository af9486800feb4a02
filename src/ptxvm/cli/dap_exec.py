"""Programs that call CUDA under the debug adapter: run as by `ptxvm exec`, with an adapter in the process that launches."""

from __future__ import annotations

import codecs
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from ptxvm.cli.dap_program import variables
from ptxvm.debug.dap.fields import Arguments, Refused, sequence, text
from ptxvm.libcudart.process import prepare

SOCKET = "debug.sock"
READ = 1 << 16
PATIENCE = 2.0
"""Seconds that are waited for what processes print which the program has left behind."""


def is_client(arguments: Arguments) -> bool:
    """Does a `launch` request ask for a program whose CUDA calls come to ptxvm?"""
    return bool(arguments.get("exec"))


class ClientProgram:
    """A program that a `launch` request names: `program`, its `args`, `cwd` and `env`."""

    def __init__(
        self, arguments: Arguments, start: Callable[[ClientProgram], None],
        attached: Callable[[socket.socket], None], output: Callable[[str, str], None],
    ) -> None:  # fmt: skip
        """`start` has the program run in the main thread; `attached` takes the connection of a process of it."""
        self.folder = text(arguments, "cwd", ".")
        self.variables = variables(arguments)
        name = text(arguments, "program")
        search = self.variables.get("PATH", os.environ.get("PATH"))
        found = shutil.which(name, path=search) or shutil.which(Path(self.folder, name).absolute())
        if found is None:
            raise Refused(f"there is no program '{name}'")
        self.command = [found, *(str(word) for word in sequence(arguments, "args"))]
        self.begin, self.attached, self.output = start, attached, output
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Have it run in the main thread."""
        self.begin(self)

    def stop(self) -> None:
        """End it and its processes."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)

    def run(self) -> int:
        """Run it to its end; its exit status."""
        with tempfile.TemporaryDirectory(prefix="ptxvm-debug-") as folder, socket.socket(socket.AF_UNIX) as server:
            server.bind(str(Path(folder, SOCKET)))
            server.listen()
            debugged = {"PTXVM_IMPORT": "ptxvm.cli.dap_client", "PTXVM_DEBUG": str(Path(folder, SOCKET))}
            self.process = process = subprocess.Popen(  # noqa: S603 - the program that the user names
                self.command, env=os.environ | prepare(Path(folder)) | self.variables | debugged, cwd=self.folder,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            )  # fmt: skip
            threading.Thread(target=self.accept, args=(server,), daemon=True).start()
            streams = (process.stdout, "stdout"), (process.stderr, "stderr")
            readers = [threading.Thread(target=self.copy, args=each, daemon=True) for each in streams if each[0] is not None]
            for each in readers:
                each.start()
            status = process.wait()
            for each in readers:
                each.join(PATIENCE)
            server.shutdown(socket.SHUT_RDWR)
        return 128 - status if status < 0 else status

    def accept(self, server: socket.socket) -> None:
        """Take the connections of processes, which come when they initialise the CUDA driver."""
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            self.attached(connection)

    def copy(self, stream: BinaryIO, category: str) -> None:
        """Send what the program prints."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while data := os.read(stream.fileno(), READ):
            if shown := decoder.decode(data):
                self.output(shown, category)


__all__ = ["ClientProgram", "is_client"]

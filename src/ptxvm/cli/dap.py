"""`ptxvm debug --dap`: the Debug Adapter Protocol over the standard streams or a port of this machine."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import BinaryIO

import ptxvm
from ptxvm.cli.debug import LocalFiles, prepared
from ptxvm.cli.failures import WrongCall, one_line
from ptxvm.cli.run import RunRequest
from ptxvm.debug.dap.adapter import Arguments, Refused
from ptxvm.debug.dap.framing import BadMessage, Decoder, Message, encode
from ptxvm.debug.dap.server import CompleteAdapter
from ptxvm.debug.session import Session

READ = 1 << 16
HOST = "127.0.0.1"
STOPPING = ("pause", "terminate", "disconnect", "restart")
"""Requests that are not heard before a run has stopped: it is stopped for them."""


def serve(port: int | None) -> int:
    """Serve a client at the standard streams, or one after the other at a port."""
    if port is not None:
        return serve_port(port)
    # What is printed otherwise must not come between the messages.
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    with redirect_stdout(sys.stderr):
        Connection(partial(os.read, sys.stdin.fileno()), out).serve()
    return 0


def serve_port(port: int) -> int:
    """Serve clients until Ctrl-C."""
    try:
        server = socket.create_server((HOST, port))
    except OSError as wrong:
        raise WrongCall(f"cannot listen on port {port}: {wrong.strerror or wrong}") from None
    print(f"ptxvm debug: listening on {HOST}:{server.getsockname()[1]}", file=sys.stderr, flush=True)
    with server, suppress(KeyboardInterrupt):
        while True:
            client, _ = server.accept()
            with client, client.makefile("wb", buffering=0) as out:
                Connection(client.recv, out).serve()  # type: ignore[arg-type]
    return 0


class Connection:
    """A client: a thread reads its requests, and interrupts a run for those that wait for its stop."""

    def __init__(self, read: Callable[[int], bytes], out: BinaryIO) -> None:
        self.read, self.out = read, out
        self.requests: SimpleQueue[Message | None] = SimpleQueue()
        self.adapter = CompleteAdapter(session, self.send, LocalFiles())

    def serve(self) -> None:
        """Answer requests until the client leaves."""
        threading.Thread(target=self.receive, daemon=True).start()
        while not self.adapter.is_done and (request := self.requests.get()) is not None:
            self.adapter.handle(request)
        if self.adapter.held is not None:
            self.adapter.held.close()

    def receive(self) -> None:
        """Read requests to the end."""
        decoder = Decoder()
        with suppress(OSError, BadMessage):
            while data := self.read(READ):
                for message in decoder.feed(data):
                    if message.get("command") in STOPPING:
                        self.adapter.interrupt()
                    self.requests.put(message)
        self.adapter.interrupt()
        self.requests.put(None)

    def send(self, message: Message) -> None:
        """Send a message; a client that has gone hears nothing."""
        with suppress(OSError):
            self.out.write(encode(message))


def session(arguments: Arguments) -> Session:
    """The session of what a `launch` request asks for, in the words of the command line."""
    if "program" not in arguments:
        raise Refused("the launch names no `program`, which is a file of PTX")
    folder = Path(str(arguments.get("cwd") or "."))
    request = RunRequest(
        file=str(folder / str(arguments["program"])), arguments=[str(word) for word in arguments.get("args") or ()],
        grid=extent_text(arguments.get("grid", 1)), block=extent_text(arguments.get("block", 1)),
        entry=arguments.get("entry"), shared=int(arguments.get("shared") or 0),
        cluster=extent_text(arguments["cluster"]) if arguments.get("cluster") else None, target=arguments.get("target"),
        seed=arguments.get("seed"), asynchronous=arguments.get("async"),
    )  # fmt: skip
    try:
        return prepared(request)
    except (WrongCall, ptxvm.InvalidPTX) as wrong:
        raise Refused(one_line(str(wrong))) from None


def extent_text(given: object) -> str:
    """`4`, `[4, 2]` or `"4,2"` as the command line has it."""
    return ",".join(map(str, given)) if isinstance(given, list) else str(given)


__all__ = ["serve"]

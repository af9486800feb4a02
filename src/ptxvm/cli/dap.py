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
from ptxvm.cli.dap_exec import ClientProgram, is_client
from ptxvm.cli.dap_program import PythonProgram, is_python
from ptxvm.cli.dap_relay import Relay
from ptxvm.cli.debug import LocalFiles, prepared
from ptxvm.cli.failures import WrongCall, one_line
from ptxvm.cli.run import RunRequest
from ptxvm.debug.dap.adapter import Program
from ptxvm.debug.dap.fields import Arguments, Refused, sequence, text, whole
from ptxvm.debug.dap.framing import BadMessage, Decoder, Message, encode
from ptxvm.debug.dap.pending_launch import PendingLaunch
from ptxvm.debug.dap.server import CompleteAdapter
from ptxvm.debug.session import Session
from ptxvm.machine.result import LaunchResult

READ = 1 << 16
HOST = "127.0.0.1"
STOPPING = ("pause", "terminate", "disconnect", "restart")
"""Requests that interrupt a step too; a run that continues is suspended for any request, and goes on behind it."""
KEPT = frozenset({
    "initialize", "launch", "setBreakpoints", "setFunctionBreakpoints", "setExceptionBreakpoints", "configurationDone",
})  # fmt: skip
"""Requests that say how launches are debugged, of whatever process."""
OURS = frozenset({"disconnect", "terminate"})
"""Requests that are about the program as a whole."""


def serve(port: int | None) -> int:
    """Serve a client at the standard streams, or one after the other at a port."""
    if port is not None:
        return serve_port(port)
    # What programs and libraries read and print otherwise must not come between the messages.
    read, out = os.dup(sys.stdin.fileno()), os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with redirect_stdout(sys.stderr):
        Connection(partial(os.read, read), out).serve()
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
    """A client.

    A thread reads its requests, and interrupts a run for those that wait for its stop.  Another one answers them, and debugs
    the launches of a program.  The program itself runs in the thread of `serve`, which is the main one, as programs expect.
    A process of a CUDA program answers requests itself, as long as it is there.
    """

    def __init__(self, read: Callable[[int], bytes], out: BinaryIO) -> None:
        self.read, self.out = read, out
        self.work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self.programs: SimpleQueue[PythonProgram | ClientProgram | None] = SimpleQueue()
        self.adapter = CompleteAdapter(self.launch, self.send, LocalFiles(), lambda: not self.work.empty())
        self.relay: Relay | None = None
        self.kept: list[Message] = []  # requests that are repeated to each process

    def serve(self) -> None:
        """Answer requests until the client leaves."""
        self.begin()
        while (program := self.programs.get()) is not None:
            self.work.put(partial(self.adapter.program_ended, program.run()))

    def begin(self) -> None:
        """Let threads read requests and answer them."""
        for each in (self.receive, self.answer):
            threading.Thread(target=each, daemon=True).start()

    def answer(self) -> None:
        """Answer requests, and debug launches, one after the other."""
        while not self.adapter.is_done and (do := self.work.get()) is not None:
            do()
            if self.work.empty():
                self.adapter.go_on()
        self.adapter.leave()
        self.programs.put(None)

    def handle(self, message: Message) -> None:
        """Answer a request, or have the process of a program answer it."""
        name = message.get("command")
        if name in KEPT:
            self.kept.append(message)
        if self.relay is None or name in OURS:
            self.adapter.handle(message)
            return
        self.relay.forward(message)
        if name in KEPT:
            self.adapter.note(message)

    def attach(self, connection: socket.socket) -> None:
        """A process of the program is there: it answers from now on, where none does."""
        if self.relay is not None:
            connection.close()
            self.adapter.output("a process is not debugged, since another one is\n", "console")
            return
        self.relay = relay = Relay(connection, self.adapter.send)
        relay.repeat(self.kept)
        if self.adapter.stops_at_next:
            relay.repeat([{"type": "request", "seq": 0, "command": "pause"}])
            self.adapter.stops_at_next = False
        threading.Thread(target=self.follow, args=(relay,), daemon=True).start()

    def follow(self, relay: Relay) -> None:
        """Pass on what a process says, until it ends."""
        relay.receive()
        self.work.put(self.detach)

    def detach(self) -> None:
        """The process has ended."""
        self.relay = None

    def launch(self, arguments: Arguments) -> Session | Program:
        """What a `launch` request asks for."""
        if is_client(arguments):
            return ClientProgram(
                arguments, self.programs.put, lambda connection: self.work.put(partial(self.attach, connection)),
                self.adapter.output,
            )  # fmt: skip
        if is_python(arguments):
            return PythonProgram(arguments, self.programs.put, self.debugged, self.adapter.output)
        return session(arguments)

    def debugged(self, launch: PendingLaunch) -> LaunchResult:
        """Have a launch debugged to its end."""
        self.work.put(partial(self.adapter.debug, launch))
        return launch.wait()

    def receive(self) -> None:
        """Read requests to the end, or to what is none."""
        try:
            self.receive_messages()
        except BadMessage as wrong:
            print(f"ptxvm debug: the client is left: {wrong}", file=sys.stderr, flush=True)
        self.work.put(None)
        self.adapter.interrupt()

    def receive_messages(self) -> None:
        """Read requests to the end; the client is told of what is none."""
        decoder = Decoder(lambda wrong: self.work.put(partial(self.adapter.output, f"{wrong}\n", "important")))
        with suppress(OSError):
            while data := self.read(READ):
                for message in decoder.feed(data):
                    self.work.put(partial(self.handle, message))
                    if self.adapter.continues or message.get("command") in STOPPING:
                        self.adapter.interrupt()

    def send(self, message: Message) -> None:
        """Send a message; a client that has gone hears nothing."""
        with suppress(OSError):
            self.out.write(encode(message))


def session(arguments: Arguments) -> Session:
    """The session of what a `launch` request asks for, in the words of the command line."""
    if "program" not in arguments:
        raise Refused("the launch names no `program`, which is a file of PTX")
    folder = Path(text(arguments, "cwd", "."))
    request = RunRequest(
        file=str(folder / text(arguments, "program")), arguments=[str(word) for word in sequence(arguments, "args")],
        grid=extent_text(arguments.get("grid", 1)), block=extent_text(arguments.get("block", 1)),
        entry=text(arguments, "entry", "") or None, shared=whole(arguments, "shared", 0),
        cluster=extent_text(arguments["cluster"]) if arguments.get("cluster") else None,
        target=text(arguments, "target", "") or None, seed=whole(arguments, "seed", 0),
        asynchronous=text(arguments, "async", "") or None,
    )  # fmt: skip
    try:
        return prepared(request)
    except (WrongCall, ptxvm.InvalidPTX) as wrong:
        raise Refused(one_line(str(wrong))) from None


def extent_text(given: object) -> str:
    """`4`, `[4, 2]` or `"4,2"` as the command line has it."""
    return ",".join(map(str, given)) if isinstance(given, list) else str(given)


__all__ = ["serve"]

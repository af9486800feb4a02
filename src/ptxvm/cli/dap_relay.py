"""Passes messages on between a client of the debug adapter and the adapter in a process of its program."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from threading import Lock

from ptxvm.debug.dap.framing import BadMessage, Decoder, Message, encode

READ = 1 << 16
KNOWN = frozenset({"initialized", "capabilities"})
"""Events of the beginning, which the client has had."""


class Relay:
    """A process that is debugged; `send` sends to the client."""

    def __init__(self, connection: socket.socket, send: Callable[[Message], None]) -> None:
        self.connection, self.send = connection, send
        self.repeated: set[object] = set()  # numbers of requests whose answers the client has had
        self.asked: dict[object, str] = {}  # requests without an answer, by their numbers
        self._lock = Lock()

    def repeat(self, requests: Iterable[Message]) -> None:
        """Ask what the client has asked before there was the process; it has the answers."""
        for each in requests:
            self.repeated.add(each.get("seq"))
            self.write(each)

    def forward(self, request: Message) -> None:
        """Pass a request of the client on."""
        with self._lock:
            self.asked[request.get("seq")] = str(request.get("command", ""))
        self.write(request)

    def write(self, message: Message) -> None:
        """Send a message to the process, where it still is."""
        with suppress(OSError):
            self.connection.sendall(encode(message))

    def receive(self) -> None:
        """Pass on what the process says, until it ends; what it has not answered then is refused."""
        decoder = Decoder()
        with suppress(OSError, BadMessage):
            while data := self.connection.recv(READ):
                for message in decoder.feed(data):
                    self.pass_on(message)
        self.connection.close()
        with self._lock:
            left, self.asked = self.asked, {}
        for number, name in left.items():
            self.send({
                "type": "response", "request_seq": number, "command": name, "success": False,
                "message": "the process has ended",
            })  # fmt: skip

    def pass_on(self, message: Message) -> None:
        """Send a message of the process to the client, but for what it has had."""
        if message.get("type") == "response":
            number = message.get("request_seq")
            with self._lock:
                asked = self.asked.pop(number, None)
            if asked is None and number in self.repeated:
                return
        elif message.get("event") in KNOWN:
            return
        self.send({name: value for name, value in message.items() if name != "seq"})


__all__ = ["Relay"]

"""Pages for other machines: this process gives the parts of its arrays that CTAs on a cluster touch, when they touch them.

A request is the number of an array and two positions; the answer is the bytes between them.  It is for those who know a
key, which the workers get with their work.  Nothing is encrypted, as nothing is between Dask's own processes at `tcp://`
addresses.
"""

from __future__ import annotations

import hmac
import os
import socket
import socketserver
import struct
import threading
import weakref
from collections.abc import Mapping
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import numpy as np

from ptxvm.machine.backing import Bytes
from ptxvm.machine.per_lane import Array
from ptxvm.named_tuple import NamedTuple

REQUEST = struct.Struct("<QQQ")
KEY = 32  # bytes
PATIENCE = 10.0  # seconds for a connection


class PageAddress(NamedTuple):
    """Where pages are asked for, and the key."""

    host: str
    port: int
    key: bytes


class PageServer(socketserver.ThreadingTCPServer):
    """Serves the bytes of arrays, by their numbers, to machines that reach this one at an address."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, arrays: Mapping[int, Array], host: str) -> None:
        self.arrays = {n: np.ascontiguousarray(each).reshape(-1).view(np.uint8) for n, each in arrays.items()}
        self.sent = 0  # bytes
        self._connections, self._lock = set[socket.socket](), threading.Lock()
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, 0), _Connection)
        self.address = PageAddress(host, self.socket.getsockname()[1], os.urandom(KEY))
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, name="ptxvm serves pages")

    def serve(self, connection: socket.socket) -> None:
        """Answer the requests of a connection until its other end closes it, or this process ends all."""
        with self._lock:
            self._connections.add(connection)
        try:
            if not hmac.compare_digest(received(connection, KEY), self.address.key):
                return
            while True:
                number, first, end = REQUEST.unpack(received(connection, REQUEST.size))
                part = self.arrays[number][first:end]
                with self._lock:
                    self.sent += part.nbytes  # before they are there: who has them may ask
                connection.sendall(part.data)
        except (EOFError, OSError):
            return
        finally:
            with self._lock:
                self._connections.discard(connection)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None = None, wrong: BaseException | None = None, trace: TracebackType | None = None
    ) -> None:
        """Serve no more; workers keep their processes, and with them their connections, which end here."""
        self.shutdown()
        with self._lock:
            for each in self._connections:
                each.shutdown(socket.SHUT_RDWR)
        self.server_close()
        self._thread.join()


class _Connection(socketserver.BaseRequestHandler):
    """A connection of a worker."""

    server: PageServer

    def handle(self) -> None:
        """Answer what it asks."""
        self.server.serve(self.request)


class RemotePages:
    """The connection of a worker to a page server; it ends with this object."""

    def __init__(self, address: PageAddress) -> None:
        self._connection = connected(address)
        weakref.finalize(self, self._connection.close)

    def fill(self, number: int, first: int, end: int, room: Bytes) -> None:
        """Fill room with bytes of an array."""
        self._connection.sendall(REQUEST.pack(number, first, end))
        receive(self._connection, room.data)


def connected(address: PageAddress) -> socket.socket:
    """A connection to a page server."""
    found = socket.create_connection((address.host, address.port), PATIENCE)
    found.settimeout(None)
    found.sendall(address.key)
    return found


def reaches(address: PageAddress) -> bool:
    """Does this process, of a worker, reach a page server?"""
    try:
        connected(address).close()
    except OSError:
        return False
    return True


def address_towards(scheduler: str) -> str:
    """The address of this machine in the network of a scheduler at an address, as `tcp://host:8786`."""
    parts = urlsplit(scheduler)
    with socket.create_connection((parts.hostname or "", parts.port or 0), PATIENCE) as connection:
        return str(connection.getsockname()[0])


def received(connection: socket.socket, size: int) -> bytes:
    """The next bytes of a connection; EOFError where it has ended."""
    room = bytearray(size)
    receive(connection, memoryview(room))
    return bytes(room)


def receive(connection: socket.socket, room: memoryview) -> None:
    """Fill room with the next bytes of a connection; EOFError where it has ended."""
    while room:
        count = connection.recv_into(room)
        if not count:
            raise EOFError("the process with the arrays has ended the connection")
        room = room[count:]


__all__ = ["PageAddress", "PageServer", "RemotePages", "address_towards", "reaches"]

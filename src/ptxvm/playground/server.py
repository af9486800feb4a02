"""The server of `ptxvm play`: the page and its answers, on this machine only.

It listens on 127.0.0.1.  A request names that host and the port (so that no other name can be made to lead here), and one that
asks for an answer comes from the page itself: another page in the same browser has another origin, and cannot send JSON.
"""

from __future__ import annotations

import json
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast
from urllib.parse import urlsplit

from ptxvm.playground.files import CONFIGURATION, content_type, page_file, policy
from ptxvm.playground.processes import Processes

HOST = "127.0.0.1"
LARGEST = 8 << 20
"""Bytes of a request."""
HEADERS = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}


class PlayServer(ThreadingHTTPServer):
    """The server; port 0 is a free one.  OSError where the port is taken."""

    daemon_threads = True

    def __init__(self, port: int = 0, processes: Processes | None = None) -> None:
        super().__init__((HOST, port), Handler)
        self.processes = processes or Processes()
        self.origins = {f"http://{name}:{self.server_port}" for name in (HOST, "localhost")}

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing where the browser waits no longer: it has gone elsewhere, or the user has stopped a run."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self.server_port}/"


class Handler(BaseHTTPRequestHandler):
    """Answers a request of a browser."""

    protocol_version = "HTTP/1.1"
    server_version = "ptxvm"
    sys_version = ""
    timeout = 60

    def do_GET(self) -> None:
        """A file of the page."""
        if not self.is_ours():
            return
        path = urlsplit(self.path).path
        if path == f"/{CONFIGURATION}":
            self.send(HTTPStatus.OK, json.dumps({"backend": "server"}).encode(), "application/json")
        elif (found := page_file(path.lstrip("/") or "index.html")) is not None:
            self.send(HTTPStatus.OK, found, content_type(path))
        else:
            self.refuse(HTTPStatus.NOT_FOUND, "there is no such file")

    def do_POST(self) -> None:
        """A request of the protocol."""
        if not self.is_ours(asks=True):
            return
        if self.path != "/answer":
            self.refuse(HTTPStatus.NOT_FOUND, "requests go to /answer")
            return
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > LARGEST:
            self.refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a request has at most {LARGEST:,} bytes")
            return
        request = self.rfile.read(int(length)).decode("utf-8", "replace")
        self.send(HTTPStatus.OK, self.playing.processes.answer(request).encode(), "application/json")

    @property
    def playing(self) -> PlayServer:
        """The server."""
        return cast("PlayServer", self.server)

    def is_ours(self, *, asks: bool = False) -> bool:
        """Does the request come from our page?  A refusal is sent if not."""
        origins = self.playing.origins
        origin = self.headers.get("Origin")
        if f"http://{self.headers.get('Host', '')}" not in origins:
            self.refuse(HTTPStatus.FORBIDDEN, "this server is 127.0.0.1")
        elif asks and (origin not in origins or self.headers.get("Content-Type") != "application/json"):
            self.refuse(HTTPStatus.FORBIDDEN, "only the playground's own page may ask")
        else:
            return True
        return False

    def refuse(self, status: HTTPStatus, why: str) -> None:
        """Send a refusal, and end the connection: its body was not read."""
        self.close_connection = True
        self.send(status, f"{why}\n".encode(), "text/plain; charset=utf-8")

    def send(self, status: HTTPStatus, body: bytes, type: str) -> None:
        """Send an answer."""
        self.send_response(status)
        headers = {"Content-Type": type, "Content-Length": str(len(body)), "Content-Security-Policy": policy(), **HEADERS}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the terminal is the user's."""


__all__ = ["HOST", "PlayServer"]

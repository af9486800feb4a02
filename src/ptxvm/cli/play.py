"""`ptxvm play`: serves the playground on this machine."""

from __future__ import annotations

import webbrowser

from ptxvm.cli.failures import WrongCall
from ptxvm.playground.server import HOST, PlayServer


def play(port: int, *, browser: bool) -> int:
    """Serve the page until the user interrupts."""
    try:
        server = PlayServer(port)
    except OSError as wrong:
        raise WrongCall(f"--port {port}: {wrong.strerror} on {HOST}; --port 0 takes a free one") from None
    with server:
        print(f"The playground is at {server.url} (Ctrl-C ends it).", flush=True)
        if browser:
            webbrowser.open(server.url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
    return 0


__all__ = ["play"]

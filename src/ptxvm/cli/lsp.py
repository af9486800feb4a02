"""`ptxvm lsp`: the language server, for editors."""

from __future__ import annotations

from ptxvm import __version__
from ptxvm.cli.failures import WrongCall


def lsp(host: str, port: int | None) -> int:
    """Serve an editor until it ends."""
    try:
        from ptxvm.lsp.server import serve
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        raise WrongCall(
            f"the language server needs {missing.name}, which the extra 'lsp' has: pip install 'ptxvm[lsp]'"
        ) from None
    try:
        serve(__version__, host, port)
    except OSError as wrong:
        raise WrongCall(f"cannot listen at {host}:{port}: {wrong.strerror}") from None
    return 0

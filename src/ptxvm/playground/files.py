"""The files of the page, which stand in `page/` as the browser reads them, and what the browser may do with them."""

from __future__ import annotations

from importlib.resources import files
from pathlib import PurePosixPath

CONFIGURATION = "configuration.json"
"""Says which backend answers; made by the server, or with the static page."""

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


def page_file(name: str) -> bytes | None:
    """A file of the page by its name; None where there is none."""
    return page_files().get(name)


def page_files() -> dict[str, bytes]:
    """All files of the page."""
    folder = files("ptxvm.playground").joinpath("page")
    return {each.name: each.read_bytes() for each in folder.iterdir() if PurePosixPath(each.name).suffix in TYPES}


def content_type(path: str) -> str:
    """What a browser is told that a file is."""
    return TYPES.get(PurePosixPath(path).suffix, TYPES[".html"])


def policy(scripts: str = "") -> str:
    """The content security policy: nothing but the page's own files; `scripts` is an origin that Pyodide comes from."""
    python = f" 'wasm-unsafe-eval' {scripts}".rstrip() if scripts else ""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src 'self'{python}",
            "style-src 'self'",
            "img-src 'self' data:",
            f"connect-src 'self' {scripts}".rstrip(),
            "worker-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )


__all__ = ["CONFIGURATION", "content_type", "page_file", "page_files", "policy"]

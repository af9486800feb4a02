"""HTML for notebooks: a heading and a table of names and texts, all of them escaped."""

from __future__ import annotations

from collections.abc import Iterable

CELL = "text-align: left; vertical-align: top; white-space: pre-wrap"


def card(heading: str, rows: Iterable[tuple[str, str]]) -> str:
    """A heading over a table; a row without a text is left out.  Colours are those of the notebook, light or dark."""
    from html import escape  # noqa: PLC0415 - only notebooks need it

    cells = "".join(
        f'<tr><th style="{CELL}">{escape(name)}</th><td style="{CELL}">{escape(text)}</td></tr>' for name, text in rows if text
    )
    return f"<div><strong>{escape(heading)}</strong><table>{cells}</table></div>"


__all__ = ["card"]

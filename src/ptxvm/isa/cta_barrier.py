"""What comes to a barrier of the CTA (PTX 9.7.13.1)."""

from __future__ import annotations

from typing import Any


def reduction(i: Any) -> str:
    """The operation of `bar.red`; empty for the others, which are not to be mixed with it, nor it with another one."""
    return "popc" if getattr(i, "popc", False) else str(getattr(i, "op", None) or "")

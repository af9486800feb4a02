"""Properties of barriers of the CTA: the reduction, and whether whole warps must execute them (PTX 9.7.13.1)."""

from __future__ import annotations

from ptxvm.isa.model import Decoded


def aligned(i: Decoded) -> bool:
    """Must all lanes of a warp execute this barrier together?  `bar` is `barrier….aligned`."""
    return i.form.opcode == "bar" or bool(i.aligned)


def reduction(i: Decoded) -> str:
    """The operation of `bar.red`, empty for other barriers; threads of one barrier must agree on it."""
    return "popc" if getattr(i, "popc", False) else str(getattr(i, "op", None) or "")

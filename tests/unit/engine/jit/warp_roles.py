"""The body of a kernel whose warps have a role each."""

from __future__ import annotations

from collections.abc import Iterable


def by_warp(roles: Iterable[str]) -> str:
    """The rest of a body: warp `n` runs the n-th role; `%w` holds the number of the warp, and `%p0` is free."""
    parts = [f"setp.ne.u32 %p0, %w, {n};\n@%p0 bra W{n};\n{body}\nbra END;\nW{n}:" for n, body in enumerate(roles)]
    return "\n".join([*parts, "END:", "ret;", "}"])

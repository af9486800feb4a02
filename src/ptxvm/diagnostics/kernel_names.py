"""Names of kernels in messages: demangled, and without long template arguments."""

from __future__ import annotations


def displayed(name: str) -> str:
    """The name of a kernel for a message: `cutlass::device_kernel<...#3f2a>`; a name that is not mangled is itself."""
    if not name.startswith("_Z"):
        return name
    from ptxvm.diagnostics.mangled import short_name  # noqa: PLC0415 - many kernels have plain names

    return short_name(name)


__all__ = ["displayed"]

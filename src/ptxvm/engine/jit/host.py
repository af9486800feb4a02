"""The processor that the code is for."""

from __future__ import annotations

import functools

import llvmlite.binding as llvm

from ptxvm.diagnostics.errors import Unsupported


@functools.cache
def features() -> dict[str, bool]:
    """What the processor can do, by LLVM's names."""
    return dict(llvm.get_host_cpu_features())


def has(feature: str) -> bool:
    """Can it do that?"""
    return features().get(feature, False)


def require(feature: str, what: str) -> None:
    """Refuse what is not written for another processor yet."""
    if not has(feature):
        raise Unsupported(f"{what} in the JIT on a processor without {feature}")

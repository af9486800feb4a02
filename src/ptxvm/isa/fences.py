"""Proxy fences: the proxy whose accesses a fence orders against those of the generic proxy (PTX 8.3, 9.7.13.4)."""

from __future__ import annotations

from ptxvm.algebra.asynchronous import Proxy
from ptxvm.isa.model import Decoded


def proxy_of_fence(i: Decoded) -> Proxy | None:
    """The proxy; None for a fence that is no proxy fence."""
    _, *words = i.mnemonic.split(".")
    if not {"proxy", "cp_fenceproxy"} & set(words):
        return None
    return next((proxy for proxy in (Proxy.ALIAS, Proxy.ASYNC) if any(proxy in word for word in words)), Proxy.TENSORMAP)

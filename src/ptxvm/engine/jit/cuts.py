"""Where nodes begin beside where segments do."""

from __future__ import annotations

from ptxvm.analysis.program import Bound


def widens(bound: Bound) -> bool:
    """Does it extend 32 bits to 64?"""
    words = bound.node.words
    if bound.node.opcode in ("mul", "mad"):
        return "wide" in words
    return bound.node.opcode == "cvt" and bool({"u64", "s64"} & set(words)) and bool({"u32", "s32"} & set(words))


def touches(bound: Bound) -> bool:
    """Does it change memory, or depend on what others did?"""
    return bool(bound.i.of.effects & {"mem", "warp", "cta"}) and bound.node.opcode not in (
        "ld",
        "ldu",
        "cvta",
        "isspacep",
    )


def after_stores(code: list[Bound]) -> list[int]:
    """Before what extends 32 bits to 64 after something was changed: code that finds it to wrap begins its node again."""
    cuts, dirty = [], False
    for n, bound in enumerate(code):
        if dirty and widens(bound):
            cuts.append(n)
            dirty = False
        dirty = dirty or touches(bound)
        if bound.i.of.effects & {"flow", "waits"}:
            dirty = False
    return cuts

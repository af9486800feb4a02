"""Gathers and scatters by vectors of 32-bit indices from one pointer, as AVX-512 has them.

LLVM has them only where it still sees, in the same block, that the addresses were made of such indices.
"""

from __future__ import annotations

from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.ir.builder import Code

KINDS = {"float": ("dps", 16), "i32": ("dpi", 16), "double": ("dpd", 8), "i64": ("dpq", 8)}  # names, and lanes of a register


def suits(llvm: str) -> bool:
    """Does the processor gather and scatter elements of a type so?"""
    return llvm in KINDS and cpu.has("avx512f")


def gather(code: Code, llvm: str, count: int, base: str, index: str, unit: int, lanes: str | None) -> str:
    """Load elements at indices from a base, in a unit of bytes; lanes outside the predicate get zero."""
    kind, each = KINDS[llvm]
    name, vector = f"llvm.x86.avx512.mask.gather.{kind}.512", f"<{each} x {llvm}>"
    types = (vector, "ptr", f"<{each} x i32>", f"<{each} x i1>", "i32")
    code.unit.declarations[name] = f"declare {vector} @{name}({', '.join(types[:-1])}, i32 immarg)"
    parts = []
    for own, active in _parts(code, count, each, index, lanes):
        arguments = zip(types, ("zeroinitializer", base, own, active, str(unit)), strict=True)
        parts.append(code.call(vector, name, *arguments, pure=False))
    return code.concatenate(llvm, parts, each)


def scatter(code: Code, llvm: str, count: int, value: str, base: str, index: str, unit: int, lanes: str | None) -> None:
    """Store elements at indices from a base, in a unit of bytes, in the order of the lanes."""
    kind, each = KINDS[llvm]
    name, vector = f"llvm.x86.avx512.mask.scatter.{kind}.512", f"<{each} x {llvm}>"
    types = ("ptr", f"<{each} x i1>", f"<{each} x i32>", vector, "i32")
    code.unit.declarations[name] = f"declare void @{name}({', '.join(types[:-1])}, i32 immarg)"
    for n, (own, active) in enumerate(_parts(code, count, each, index, lanes)):
        part = code.shuffle(llvm, count, value, "poison", list(range(n * each, (n + 1) * each)))
        arguments = zip(types, (base, active, own, part, str(unit)), strict=True)
        code.perform(name, *arguments)


def _parts(code: Code, count: int, each: int, index: str, lanes: str | None) -> list[tuple[str, str]]:
    """The indices and the predicate of each register."""
    found = []
    for first in range(0, count, each):
        order = list(range(first, first + each))
        active = code.shuffle("i1", count, lanes, "poison", order) if lanes is not None else "splat (i1 true)"
        found.append((code.shuffle("i32", count, index, "poison", order), active))
    return found

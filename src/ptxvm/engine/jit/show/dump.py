"""Dumps of a compiled kernel: shapes, LLVM IR, assembly."""

from __future__ import annotations

from ptxvm.analysis.program import Function
from ptxvm.engine.jit.abi.specialisation import Specialisation, Tier, VersionKind
from ptxvm.engine.jit.objects import codegen
from ptxvm.engine.jit.show import shape_table
from ptxvm.engine.jit.translate.translation import Translation
from ptxvm.machine.image import Image


def dump(image: Image, kernel: Function, block: tuple[int, int, int], shared: int, form: str, *, fast: bool = False) -> str:
    """`shapes`, `llvm` or `asm`, of the version that runs first."""
    translation = Translation(image, Specialisation(image.resolve(kernel), block, shared, fast))
    if form == "shapes":
        return shape_table.shapes(translation.versions.kernel)
    text, _ = translation.text(VersionKind.FIRST)
    return codegen.optimised(text, Tier.BEST) if form == "llvm" else codegen.assembly(text, Tier.BEST)

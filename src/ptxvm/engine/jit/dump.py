"""What the JIT makes of a kernel, as text."""

from __future__ import annotations

from ptxvm.analysis.program import Function
from ptxvm.engine.jit import native, showing
from ptxvm.engine.jit.compiler import Translation
from ptxvm.engine.jit.shelf import Specialisation, Tier
from ptxvm.machine.image import Image


def dump(image: Image, kernel: Function, block: tuple[int, int, int], shared: int, what: str, *, fast: bool = False) -> str:
    """`shapes`, `llvm` or `asm`, of the version that runs first."""
    translation = Translation(image, Specialisation(image.resolve(kernel), block, shared, fast))
    if what == "shapes":
        return showing.shapes(translation.versions.kernel)
    text, _ = translation.text("first")
    return native.optimised(text, Tier.BEST) if what == "llvm" else native.assembly(text, Tier.BEST)

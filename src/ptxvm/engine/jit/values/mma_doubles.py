"""Products of f64: a chain of fused multiply-adds along the depth (PTX 9.7.14.5)."""

from __future__ import annotations

import platform

from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.values.mma_writer import ProductWriter
from ptxvm.isa.special_registers import WARP

DOUBLES, SIGNS = f"<{WARP} x double>", f"<{WARP} x i1>"


def fused() -> bool:
    """Has the processor fused multiply-add?"""
    machine = platform.machine()
    return cpu.has("fma") if machine in ("x86_64", "AMD64") else machine in ("aarch64", "arm64")


class Doubles(ProductWriter):
    """Products rounded to nearest; a product with a NaN as a result is left to the host, for its bits must be exact."""

    kind = "rn"

    def body(self) -> None:
        """The chain along the depth."""
        left, right = (self.loaded(DOUBLES, *each) for each in self._multiplicands())
        totals = self.loaded(DOUBLES, self.first_of_c, self.count)
        self.multiply_add("double", f"llvm.fma.v{WARP}f64", left, right, totals)
        wrong = "zeroinitializer"
        for total in totals:
            one = self.code.emit(f"fcmp uno {DOUBLES} {total}, {total}")
            wrong = self.code.emit(f"or {SIGNS} {wrong}, {one}")
        self.leave(self.code.emit(f"icmp ne i{WARP} {self.code.emit(f'bitcast {SIGNS} {wrong} to i{WARP}')}, 0"))
        self.give(DOUBLES, totals)

    def _multiplicands(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The first registers of A and of B, and the number of registers of each."""
        return (0, self.product.a.registers), (self.first_of_b, self.product.b.registers)

"""Reconvergence: a warp whose lanes have all come to a node goes on as a whole.

Partial warps have copies of the registers that do not vary in whole warps.  Before a warp goes on as a whole, each of
their copies that the node needs must have the shape of its register in whole warps again.  The values tell: the scalars
of an affine shape are computed from some lanes, and compared with all.  Where a value differs, the warp stays in the code
of partial warps, with all lanes active.
"""

from __future__ import annotations

from ptxvm.algebra.types import Type, pred
from ptxvm.engine.jit.cfg.nodes import Node
from ptxvm.engine.jit.ir.builder import Code
from ptxvm.engine.jit.ir.lane_values import Affine, scalar_type, vector_type
from ptxvm.engine.jit.node.context import KernelContext
from ptxvm.engine.jit.node.register_shapes import Key, RegisterShape, alignment, recoverable_lanes, slot_name
from ptxvm.engine.jit.values.algebra import LlvmAlgebra


def whole_again(kernel: KernelContext, node: Node, mask: str) -> list[str]:
    """Go on as a whole warp at the beginning of a node, if all lanes are there."""
    number, registers = node.number, kernel.registers
    lines = [f"  %M{number}.all = icmp eq i{kernel.width} {mask}, -1"]
    if (number, True) not in kernel.written:
        return lines
    apart = [key for key in sorted(registers.split) if node.live_in >> key[0] & 1]
    if not apart:
        return [*lines, f"  br i1 %M{number}.all, label %F{number}, label %N{number}", f"N{number}:"]
    if not kernel.graph.joins(node) or any(recoverable_lanes(registers.shapes[key]) is None for key in apart):
        return lines
    code = Code(kernel.unit)
    back = _Back(kernel, code)
    code.branch(f"%M{number}.all", f"M{number}.whole", f"N{number}")
    code.block(f"M{number}.whole")
    for key in apart:
        back.restore(key)
    agree = code.emit(f"icmp eq i{code.width} {code.mask_bits(back.same)}, -1") if back.same else "true"
    for test in back.tests:
        agree = code.emit(f"and i1 {agree}, {test}")
    code.branch(agree, f"F{number}", f"N{number}")
    return [*lines, *code.lines, f"N{number}:"]


class _Back:
    """Restores the registers of whole warps from the copies of partial ones; `same` are the lanes that agree with them."""

    def __init__(self, kernel: KernelContext, code: Code) -> None:
        self.registers, self.code, self.alg = kernel.registers, code, LlvmAlgebra(code)
        self.same = ""
        self.tests: list[str] = []

    def restore(self, key: Key) -> None:
        """Restore a register."""
        registers, code = self.registers, self.code
        copy, shape, type = registers.own(key, full=False), registers.shapes[key], registers.types[key]
        names = {part: self._load(copy, part, llvm) for part, llvm in registers.parts(copy)}
        if registers.shapes[copy] == shape:
            for part, llvm in registers.parts(key):
                self._store(key, part, llvm, names[part])
            return
        held = registers.raw(copy, names)
        lanes = self.alg.vector(type, held if shape.loose else self.alg.tight(type, held))
        bits = type if type is pred else type.as_bits
        one = scalar_type(bits)
        lanes = code.bitcast(vector_type(type, code.width), lanes, vector_type(bits, code.width))
        first = code.emit(f"extractelement <{code.width} x {one}> {lanes}, i64 0")
        found = {"b": first}
        for n, lane in enumerate(recoverable_lanes(shape) or ()):
            other = code.emit(f"extractelement <{code.width} x {one}> {lanes}, i64 {lane}")
            found[f"u{n}"] = code.emit(f"sub {one} {other}, {first}")
        self._agree(bits, lanes, shape, found)
        for part, llvm in registers.parts(key):
            self._store(key, part, llvm, code.bitcast(one, found[part], llvm))

    def _agree(self, bits: Type, lanes: str, shape: RegisterShape, found: dict[str, str]) -> None:
        """Compare all lanes with a shape and its scalars."""
        code, one = self.code, scalar_type(bits)
        base = shape.base if shape.base is not None else found["b"]
        terms = tuple((k, u if u is not None else found[f"u{n}"]) for n, (k, u) in enumerate(shape.terms))
        expected = self.alg.vector(bits, Affine(base, terms))
        same = code.emit(f"icmp eq <{code.width} x {one}> {lanes}, {expected}")
        self.same = code.emit(f"and <{code.width} x i1> {self.same}, {same}") if self.same else same
        excluded = ~shape.bits & (1 << bits.bits) - 1
        if shape.base is None and excluded:
            others = code.emit(f"and {one} {found['b']}, {excluded}")
            self.tests.append(code.emit(f"icmp eq {one} {others}, 0"))

    def _load(self, key: Key, part: str, llvm: str) -> str:
        return self.code.emit(f"load {llvm}, ptr {slot_name(key, part)}, align {alignment(llvm)}", pure=False)

    def _store(self, key: Key, part: str, llvm: str, value: str) -> None:
        self.code.run(f"store {llvm} {value}, ptr {slot_name(key, part)}, align {alignment(llvm)}")

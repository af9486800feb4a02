"""Touched bytes: recorded code notes which bytes of some arrays it writes and reads, one byte of a map for each.

The arrays lie in one arena, and the maps beside it: the map of writes has a byte at one distance from every byte of an
array, and that of reads at another.  To note an access is a store of ones of the same shape at that distance, so it is as
contiguous as the access itself, and it does not matter which thread does it, how often, or when.  Memory outside of the
arena is not recorded.
"""

from __future__ import annotations

from ptxvm.algebra.types import u64
from ptxvm.engine.jit.ir.lane_values import Affine, Raw, Varying, text
from ptxvm.engine.jit.memory.addressing import Addressing
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.isa.effects import Access, Verb


class TouchedBytes:
    """Writes the code that notes an access to global memory or to a generic address."""

    def __init__(self, at: NodeBuilder, addressing: Addressing, access: Access) -> None:
        self.at, self.code, self.addressing, self.access = at, at.code, addressing, access
        self.element = f"i{8 * access.element}"
        self.ones = f"splat ({self.element} -1)"

    def of_site(self, site: int, raw: Raw, size: int) -> None:
        """Note an access whose lanes are all in the last allocation of their site."""
        self._if_in_arena(self.at.site_field(site, 0), raw, size)

    def of_address(self, raw: Affine, size: int) -> None:
        """Note an access of one address, wherever it is."""
        self._if_in_arena(text("i64", raw.base), raw, size)

    def of_lanes(self, raw: Raw, size: int) -> None:
        """Note an access whose lanes may be in several allocations."""
        code, at, width = self.code, self.at, self.code.width
        distances = code.emit(f"sub <{width} x i64> {at.alg.vector(u64, raw)}, {code.splat('i64', self._field('arena'))}")
        inside = code.emit(f"icmp ult <{width} x i64> {distances}, {code.splat('i64', self._field('arena_size'))}")
        lanes = at.active_vector()
        mask = inside if lanes is None else code.emit(f"and <{width} x i1> {inside}, {lanes}")
        for n in range(size // self.access.element):
            pointers = self.addressing.pointers(self.access.space, self._moved(raw), n * self.access.element)
            at.scatter_out_of_line(self.element, self.ones, pointers, mask)

    def _if_in_arena(self, address: str, raw: Raw, size: int) -> None:
        """Note an access if an address of the allocation that it is in, is in the arena."""
        code = self.code
        noted, onward = code.label(), code.label()
        distance = code.emit(f"sub i64 {address}, {self._field('arena')}", pure=False)
        inside = code.emit(f"icmp ult i64 {distance}, {self._field('arena_size')}", pure=False)
        code.branch(inside, noted, onward)
        with code.scope():
            code.block(noted)
            self._note(raw, size)
            code.jump(onward)
        code.block(onward)

    def _note(self, raw: Raw, size: int) -> None:
        moved = self._moved(raw)
        if isinstance(moved, Affine) and not moved.terms and not isinstance(self.at.guard, Varying):
            pointer = self.addressing.pointer(self.access.space, moved)
            self.code.run(f"store i{8 * size} -1, ptr {pointer}, align 1")
            return
        vectors = [self.ones] * (size // self.access.element)
        self.addressing.store(self.access.space, self.element, self.access.element, moved, vectors)

    def _moved(self, raw: Raw) -> Raw:
        """The address in the map."""
        distance = self._field("to_reads" if self.access.verb is Verb.READ else "to_writes")
        return self.at.alg.integer("add", u64, raw, Affine(distance))

    def _field(self, name: str) -> str:
        return self.code.emit(f"load i64, ptr {self.at.kernel.launch_field_pointer(self.code, name)}, align 8")

"""Interleaved local memory: what the lanes of a warp have at one offset lies side by side, so a uniform offset is a row.

Lane by lane, as generic addresses need it, such an access would be a gather or a scatter.  `cfg.requirements` tells which
kernels have interleaved memory, and its grain: a larger element of a lane consists of several grains.
"""

from __future__ import annotations

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import u64
from ptxvm.engine.jit.ir.lane_values import Affine, Raw, text
from ptxvm.engine.jit.memory.addressing import Addressing
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.isa.special_registers import WARP


class InterleavedLocal:
    """Loads and stores of checked offsets, for the active lanes; `start` is where the memory of the warp begins."""

    def __init__(self, at: NodeBuilder, addressing: Addressing, start: str = "%local.address") -> None:
        self.at, self.alg, self.code, self.addressing = at, at.alg, at.code, addressing
        self.grain, self.start = at.kernel.local_grain, start

    @staticmethod
    def kind(raw: Raw, *, writing: bool) -> str:
        """How an access is done, in words."""
        uniform = isinstance(raw, Affine) and not raw.terms
        return "contiguous" if uniform else "scatter" if writing else "gather"

    def load(self, llvm: str, size: int, raw: Raw, count: int) -> list[str]:
        """The elements of every lane's vector."""
        return [self._joined(llvm, size, [self._load(part, raw, at) for at, part in self._parts(llvm, size, n)])
                for n in range(count)]  # fmt: skip

    def store(self, llvm: str, size: int, raw: Raw, vectors: list[str]) -> None:
        """Store a vector of elements for every lane."""
        for n, vector in enumerate(vectors):
            for (at, part), value in zip(self._parts(llvm, size, n), self._divided(llvm, size, vector), strict=True):
                self._store(part, raw, at, value)

    # ── elements and their parts ────────────────────────────────────────────────────────

    def _parts(self, llvm: str, size: int, number: int) -> list[tuple[int, str]]:
        """The distance from the offset, and the type, of each grain of an element."""
        part = llvm if size == self.grain else f"i{8 * self.grain}"
        return [(at, part) for at in range(number * size, (number + 1) * size, self.grain)]

    def _joined(self, llvm: str, size: int, parts: list[str]) -> str:
        if len(parts) == 1:
            return parts[0]
        part, width, count = f"i{8 * self.grain}", self.at.width, len(parts)
        rows = self.code.concatenate(part, parts, width)
        order = [lane + width * n for lane in range(width) for n in range(count)]
        mixed = self.code.shuffle(part, width * count, rows, "poison", order)
        return self.code.bitcast(f"<{width * count} x {part}>", mixed, f"<{width} x {llvm}>")

    def _divided(self, llvm: str, size: int, vector: str) -> list[str]:
        count = size // self.grain
        if count == 1:
            return [vector]
        part, width = f"i{8 * self.grain}", self.at.width
        mixed = self.code.bitcast(f"<{width} x {llvm}>", vector, f"<{width * count} x {part}>")
        return [
            self.code.shuffle(part, width * count, mixed, "poison", list(range(n, width * count, count))) for n in range(count)
        ]

    # ── grains ──────────────────────────────────────────────────────────────────────────

    def _rows(self, raw: Affine, at: int) -> list[str]:
        """The pointers of the rows of all warps, at a uniform offset."""
        offset = self.alg.scalar("mul", 64, self.alg.scalar("and", 64, raw.base, 0xFFFF_FFFF), WARP)
        start = self.code.emit(f"inttoptr i64 {self.start} to ptr")
        row_start = self.code.emit(f"getelementptr i8, ptr {start}, i64 {text('i64', offset)}")
        apart = WARP * self.at.local_stride
        further = [n * apart + at * WARP for n in self.code.warps()]
        return [self.code.emit(f"getelementptr i8, ptr {row_start}, i64 {more}") if more else row_start for more in further]

    def _addresses(self, raw: Raw, at: int) -> Raw:
        """The addresses of all lanes, at offsets that differ."""
        alg, lanes = self.alg, range(self.at.width)
        offset = alg.integer("mul", u64, alg.integer("and", u64, raw, Affine(0xFFFF_FFFF)), Affine(WARP))
        terms = ((tuple(n % WARP for n in lanes), self.grain), (tuple(n // WARP for n in lanes), WARP * self.at.local_stride))
        own = Affine(self.start, tuple((k, u) for k, u in terms if any(k)))
        return alg.integer("add", u64, alg.integer("add", u64, offset, own), Affine(at * WARP))

    def _load(self, llvm: str, raw: Raw, at: int) -> str:
        """A grain of all lanes.  Inactive lanes of a node have theirs in the row too; a guard may have none that is active."""
        code = self.code
        if not isinstance(raw, Affine) or raw.terms:
            return self.addressing.load(Space.GENERIC, llvm, self.grain, self._addresses(raw, at), 1)[0]
        found = []
        for warp, row_start in zip(code.warps(), self._rows(raw, at), strict=True):
            if self.at.guard is None:
                found.append(code.emit(f"load <{WARP} x {llvm}>, ptr {row_start}, align {self.grain}", pure=False))
            else:
                found.append(code.masked_load(WARP, llvm, row_start, self.grain, self._mask(warp)))
        return code.concatenate(llvm, found, WARP)

    def _store(self, llvm: str, raw: Raw, at: int, value: str) -> None:
        code, width = self.code, self.at.width
        if not isinstance(raw, Affine) or raw.terms:
            self.addressing.store(Space.GENERIC, llvm, self.grain, self._addresses(raw, at), [value])
            return
        row = f"<{WARP} x {llvm}>"
        for warp, row_start in zip(code.warps(), self._rows(raw, at), strict=True):
            lanes = list(range(warp * WARP, (warp + 1) * WARP))
            own = value if width == WARP else code.shuffle(llvm, width, value, "poison", lanes)
            if self.at.guard is not None:
                code.masked_store(WARP, llvm, own, row_start, self.grain, self._mask(warp))
                continue
            if self.at.mask is not None:  # a masked store cannot be forwarded to the loads that follow
                old = code.emit(f"load {row}, ptr {row_start}, align {self.grain}", pure=False)
                own = code.emit(f"select <{WARP} x i1> {self._mask(warp)}, {row} {own}, {row} {old}")
            code.run(f"store {row} {own}, ptr {row_start}, align {self.grain}")

    def _mask(self, warp: int) -> str:
        """The active lanes of a warp."""
        lanes, width = self.at.active_vector(), self.at.width
        if lanes is None:
            return "splat (i1 true)"
        return (
            lanes
            if width == WARP
            else self.code.shuffle("i1", width, lanes, "poison", list(range(warp * WARP, (warp + 1) * WARP)))
        )

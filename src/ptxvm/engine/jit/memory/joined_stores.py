"""Joined stores: neighbouring elements that a lane stores, as to members of a structure, are written as rows of all lanes.

A store whose lanes are apart is delayed until other stores fill the gaps.  Only stores, arithmetic and loads of what no store
of the grid changes (`ld.global.nc`) may come between: any other effect, and the end of the node, writes the delayed stores.
Every store is checked where it stands; where a check fails, the stores before it are written first, so that a fault leaves the
memory that it would leave lane by lane.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.program import Bound
from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.ir.lane_values import Affine, Pattern, Raw, Scalar, sums, text, wrapped
from ptxvm.engine.jit.memory import permuted_rows
from ptxvm.engine.jit.memory.addressing import Addressing
from ptxvm.engine.jit.memory.lane_offsets import pieces
from ptxvm.engine.jit.node.node import DelayedStore, NodeBuilder

MOST = 16  # delayed stores: their values take registers
Write = Callable[[], None]
CONCATENATED = (2, 4)  # how many neighbours `Addressing.store` takes as one vector


@dataclass(frozen=True, slots=True)
class CheckedStore:
    """A checked store of vectors of integers, its address as a root and a distance, and its position in the node."""

    space: Space
    size: int
    raw: Raw
    affine: Affine  # the same, relative to its window
    root: Scalar
    offset: int
    vectors: list[str]
    weak: Bound | None
    position: int

    @property
    def offsets(self) -> list[int]:
        """The offsets of its elements."""
        return [self.offset + n * self.size for n in range(len(self.vectors))]

    def joins(self, other: CheckedStore) -> bool:
        """Do lanes store to other elements, at a constant distance?"""
        alike = (self.space, self.size, self.root, self.affine.terms) == (
            other.space,
            other.size,
            other.root,
            other.affine.terms,
        )
        return alike and (self.weak is None) == (other.weak is None) and not {*self.offsets} & {*other.offsets}


class JoinedStores:
    """The delayed stores of a node."""

    def __init__(self, at: NodeBuilder) -> None:
        self.at, self.code = at, at.code
        self.addressing = Addressing(at)
        self.waiting: list[CheckedStore] = []

    def waits(self, space: Space, size: int, raw: Raw, count: int, weak: Bound | None) -> DelayedStore | None:
        """The function that delays a store, or None; writes the delayed stores that it cannot be joined with."""
        made = self._store(space, size, raw, count, weak)
        if self.waiting and (made is None or len(self.waiting) == MOST or not all(made.joins(each) for each in self.waiting)):
            self.settle()
        return partial(self._add, made) if made is not None else None

    def _store(self, space: Space, size: int, raw: Raw, count: int, weak: Bound | None) -> CheckedStore | None:
        at = self.at
        affine = self.addressing.affine(space, raw)
        if affine is None or not affine.terms or size > 8 or at.active_vector() is not None or at.nested:
            return None
        cut = pieces(affine, size * count, at.width)
        if at.kernel.tagged or (cut is not None and all(piece.contiguous for piece in cut)):
            return None
        bits = 32 if space is Space.SHARED else 64
        root, offset = ("", affine.base) if isinstance(affine.base, int) else self.code.sums.get(affine.base, (affine.base, 0))
        return CheckedStore(space, size, raw, affine, root, wrapped(offset, bits), [""] * count, weak, at.position)

    def _add(self, store: CheckedStore, llvm: str, vectors: list[str]) -> None:
        held, word = f"<{self.code.width} x {llvm}>", f"<{self.code.width} x i{8 * store.size}>"
        store.vectors[:] = [self.code.bitcast(held, vector, word) for vector in vectors]
        self.waiting.append(store)

    def settle(self) -> None:
        """Write the delayed stores, for all lanes: the guard of the instruction before which they are written is not theirs."""
        stores, self.waiting = sorted(self.waiting, key=lambda store: store.offset), []
        guard, self.at.guard = self.at.guard, None
        if len(stores) < 2 or not self._together(stores):
            self._each(stores)
        self.at.guard = guard

    def write_aside(self) -> None:
        """Write the delayed stores on a slow path, which may fault; on the fast path they stay delayed."""
        for store in self.waiting:
            for n, vector in enumerate(store.vectors):
                pointers = self.addressing.pointers(store.space, store.raw, n * store.size)
                self.at.scatter_out_of_line(f"i{8 * store.size}", vector, pointers)

    def _each(self, stores: list[CheckedStore]) -> None:
        """Write stores one by one, in the order of their instructions."""
        for store in sorted(stores, key=lambda store: store.position):
            self._alone(store)

    def _alone(self, store: CheckedStore) -> None:
        llvm, count = f"i{8 * store.size}", len(store.vectors)
        self.at.notes[store.position] = self.addressing.kind(store.space, store.raw, store.size, count, writing=True)
        self.addressing.store(store.space, llvm, store.size, store.raw, store.vectors, store.weak)

    def _together(self, stores: list[CheckedStore]) -> bool:
        """Write stores as one store of all elements, if that is cheaper."""
        first = stores[0]
        space, size, raw, affine, width = first.space, first.size, first.raw, first.affine, self.code.width
        vectors = [vector for store in stores for vector in store.vectors]
        offsets = tuple(n - first.offset for store in stores for n in store.offsets)
        filled = offsets == tuple(range(0, size * len(vectors), size)) and len(vectors) in CONCATENATED
        cut = pieces(affine, size * len(vectors), width) if filled else None
        if cut is not None and all(piece.contiguous for piece in cut):
            said = self.addressing.kind(space, raw, size, len(vectors), writing=True)
            write = partial(self.addressing.store, space, f"i{8 * size}", size, raw, vectors, first.weak)
        elif (plan := permuted_rows.stores(affine, size, offsets, width)) is not None:
            said = permuted_rows.kind(plan)
            write = partial(self.addressing.store_permuted, space, f"i{8 * size}", size, affine, plan, vectors)
        else:
            return False
        if not self._where_apart(space, affine, size, offsets, write, partial(self._each, stores)):
            return False
        self.at.notes |= {store.position: f"{said}, with {len(stores) - 1} more" for store in stores}
        return True

    def _where_apart(
        self, space: Space, affine: Affine, size: int, offsets: Pattern, write: Write, in_order: Write
    ) -> bool:  # fmt: skip
        """Write for all lanes at once if no two of them store to one place, where the order of the stores would decide.

        Lanes whose distances are known at run time are looked at then; False, with nothing written, if that is not simple.
        """
        if len(affine.moving) > 1:
            return False
        places = sorted({*affine.moving[0][0]}) if affine.moving else []
        if len(places) < 2:
            write()
            return True
        code, bits = self.code, 32 if space is Space.SHARED else 64
        word = f"i{bits}"
        needed = extent(affine, size, offsets, self.code.width)
        least = min(b - a for a, b in pairwise(places))
        distance = text(word, self.at.alg.scalar("mul", bits, affine.moving[0][1], least))
        near = code.emit(f"add {word} {distance}, {needed - 1}")
        apart = code.emit(f"icmp ugt {word} {near}, {2 * needed - 2}")
        together, overlapping, onward = code.label(), code.label(), code.label()
        code.branch(apart, together, overlapping, likely=True)
        for label, writes in ((together, write), (overlapping, in_order)):
            with code.scope():
                code.block(label)
                writes()
                code.jump(onward)
        code.block(onward)
        return True


def extent(affine: Affine, size: int, offsets: Pattern, width: int) -> int:
    """The bytes that elements at some offsets extend over, for lanes between which only constants are added."""
    fixed = sums(0, affine.fixed, width)
    return max(fixed) - min(fixed) + max(offsets) - min(offsets) + size

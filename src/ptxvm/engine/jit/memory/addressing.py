"""Addressing: the LLVM loads and stores that fit the shape of an address: broadcast, contiguous, gather, scatter."""

from __future__ import annotations

from collections.abc import Sequence

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import u32, u64
from ptxvm.analysis.program import Bound
from ptxvm.engine.jit.cfg.loop_strides import Stride
from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.ir.lane_values import Affine, Pattern, Raw, Scalar, Varying, text, wrapped
from ptxvm.engine.jit.memory import (
    deinterleaving,
    indexed,
    lane_chunks,
    lane_ends,
    last_lane,
    near_rows,
    permuted_rows,
    prefetches,
    some_lanes,
    streaming_stores,
    words,
)
from ptxvm.engine.jit.memory.lane_offsets import Chunk, pieces
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.engine.jit.values import scaled_integers

UNITS = (1, 2, 4, 8)  # bytes that the processor multiplies an index by
ALL = (1 << 64) - 1
FAR = 1 << 30  # a window and a constant are less, so that their sum has a sign in 32 bits
ITERATIONS_AHEAD = 8  # of prefetches in loops


def elements(size: int, count: int) -> Pattern:
    """The distances of the elements of a vector."""
    return tuple(range(0, size * count, size))


class Addressing:
    """Loads and stores of checked addresses, for the active lanes."""

    def __init__(self, at: NodeBuilder, bound: Bound | None = None, shared: str = "%shared") -> None:
        """`bound` is the instruction that accesses, if it is one; `shared` is the pointer of the window of shared memory."""
        self.at, self.alg, self.code, self.width, self.bound = at, at.alg, at.code, at.code.width, bound
        self.shared = shared

    # ── pointers ────────────────────────────────────────────────────────────────────────

    def base(self, space: Space) -> Raw:
        """The generic address of a window: one for the CTA, or one for each thread."""
        if space is Space.SHARED:
            return Affine("%shared.address", bits=-1 << 8)
        stride = self.at.local_stride
        return Affine("%local.address", ((tuple(range(self.width)), stride),) if self.width > 1 else ())

    def flat(self, space: Space, raw: Raw) -> Raw:
        """A checked address as a generic one."""
        if space is Space.LOCAL:
            self.at.needs_local()
        if space not in (Space.SHARED, Space.LOCAL):
            return raw
        if isinstance(raw, Affine) and not raw.terms:
            offset: Raw = self.alg.cast("resize", u32, u64, self.alg.cast("resize", u64, u32, raw, "rn"), "rn")
        else:
            offset = self.alg.integer("and", u64, raw, Affine(0xFFFF_FFFF))
        return self.alg.integer("add", u64, offset, self.base(space))

    def pointer(self, space: Space, raw: Affine) -> str:
        """The pointer of a uniform address; empty in local memory, where lanes differ."""
        if space is Space.LOCAL:
            return self._in_local(raw) if self.at.kernel.scalar else ""
        if space is Space.SHARED:
            low = self.alg.cast("resize", u64, u32, raw, "rn")
            return self._in_shared(low.base, 0)  # type: ignore[union-attr]
        return self.code.emit(f"inttoptr i64 {text('i64', raw.base)} to ptr")

    def _in_local(self, raw: Affine) -> str:
        """The pointer of an address in the local memory of the one thread that runs."""
        low = self.alg.scalar("and", 64, raw.base, 0xFFFF_FFFF)
        start = self.code.emit("inttoptr i64 %local.address to ptr")
        return self.code.emit(f"getelementptr i8, ptr {start}, i64 {text('i64', low)}")

    def _in_shared(self, base: Scalar, more: int, steps: Sequence[tuple[int, str]] = ()) -> str:
        """The pointer of an offset in shared memory: of a base, a constant, and scalars with their factors.

        An access adds a constant to a pointer for nothing, but not to an offset of 32 bits, since that sum may wrap.  An offset
        in the window less a constant below `FAR` does not wrap: it is the same number in 64 bits.
        """
        root, constant = (0, base) if isinstance(base, int) else self.code.sums.get(base, (base, 0))
        if isinstance(root, str) and root.endswith(" to i32"):  # the low half of a sum
            root = self.code.emit(f"trunc i64 {root}")
        constant = wrapped(constant + more, 32)
        if abs(constant) >= FAR:
            root, constant = self.alg.scalar("add", 32, root, constant & 0xFFFF_FFFF), 0
        for factor, u in steps:
            root = self.alg.scalar("add", 32, root, self.alg.scalar("mul", 32, u, factor & 0xFFFF_FFFF))
        start = self.code.emit(f"getelementptr i8, ptr {self.shared}, i32 {text('i32', root)}") if root != 0 else self.shared
        return self.code.offset(start, constant)

    def pointers(self, space: Space, raw: Raw, more: int = 0) -> str:
        """The pointers of all lanes, some bytes further on."""
        return self._pointers(*self._offsets(space, raw, more))

    def _pointers(self, start: str, offsets: tuple[str, str], unit: int) -> str:
        type, vector = offsets
        if not start:
            return self.code.emit(f"inttoptr <{self.width} x {type}> {vector} to <{self.width} x ptr>")
        return self.code.emit(f"getelementptr i{8 * unit}, ptr {start}, <{self.width} x {type}> {vector}")

    def _offsets(self, space: Space, raw: Raw, more: int) -> tuple[str, tuple[str, str], int]:
        """The addresses of all lanes plus some bytes: as indices from a pointer in a unit of bytes, or as addresses."""
        found = self.alg.scaled.get(raw.name) if isinstance(raw, Varying) and space not in (Space.SHARED, Space.LOCAL) else None
        if found is None or found.factor not in UNITS:
            return *self._distances(space, raw, more), 1
        found = scaled_integers.as_signed(self.alg, found)
        base = self.alg.scalar("add", 64, scaled_integers.base(self.alg, found), more)
        start = self.code.emit(f"inttoptr i64 {text('i64', base)} to ptr")
        return start, ("i32", found.root), found.factor

    def _progression(
        self, space: Space, llvm: str, raw: Affine, lanes: str | None, *, writing: bool
    ) -> tuple[list[str], str] | None:  # fmt: skip
        """The pointers of the first lanes of all warps and the distance of the others, where these are called for.

        Loads of all lanes at constant distances are those of rows that are not worth to be permuted.
        """
        called_for = writing or lanes is not None or cpu.gathers_slowly()
        if not some_lanes.strides(llvm) or not raw.terms or not (called_for or raw.moving):
            return None
        word = "i32" if space is Space.SHARED else "i64"
        found = lane_ends.Progression.of(self.alg, raw, int(word[1:]), throughout=False)
        if found is None:
            return None
        stride = text(word, found.step)
        if space is Space.SHARED:
            wide = self.code.emit(f"sext i32 {stride} to i64")
            return [
                self.code.emit(f"getelementptr i8, ptr {self.shared}, i32 {text(word, each)}") for each in found.firsts
            ], wide
        return [self.code.emit(f"inttoptr i64 {text(word, each)} to ptr") for each in found.firsts], stride

    def _elements(self, pointers: list[str], size: int, count: int) -> list[list[str]]:
        """Pointers to each of some elements behind pointers."""
        return [[self.code.offset(each, n * size) for each in pointers] for n in range(count)]

    def _distances(self, space: Space, raw: Raw, more: int) -> tuple[str, tuple[str, str]]:
        """The addresses of all lanes plus some bytes: as distances from a pointer, or as addresses; and their type."""
        if space is Space.SHARED:
            low = self.alg.vector(u32, self.alg.cast("resize", u64, u32, raw, "rn"))
            return self.code.offset(self.shared, more), ("i32", low)
        flat = self.alg.vector(u64, self.flat(space, raw))
        if more:
            flat = self.code.emit(f"add <{self.width} x i64> {flat}, splat (i64 {more})")
        return "", ("i64", flat)

    def affine(self, space: Space, raw: Raw) -> Affine | None:
        """The address if it is affine, relative to `%shared` in shared memory."""
        if isinstance(raw, Varying):
            return None
        if space is Space.SHARED:
            low = self.alg.cast("resize", u64, u32, raw, "rn")
            return low if isinstance(low, Affine) else None
        if space is Space.LOCAL:
            return None
        return raw

    def piece_pointer(self, space: Space, raw: Affine, piece: Chunk) -> str:
        """The pointer of the first lane of a chunk."""
        if space is Space.SHARED:
            return self._in_shared(raw.base, piece.offset, piece.steps)
        address = self.alg.scalar("add", 64, raw.base, piece.offset & ALL)
        for factor, u in piece.steps:
            address = self.alg.scalar("add", 64, address, self.alg.scalar("mul", 64, u, factor & ALL))
        return self.code.emit(f"inttoptr i64 {text('i64', address)} to ptr")

    def kind(self, space: Space, raw: Raw, size: int, count: int, *, writing: bool) -> str:
        """How an access is cut in pieces, in words."""
        affine = self.affine(space, raw)
        cut = pieces(affine, size * count, self.width) if affine is not None else None
        if affine is not None and not affine.terms and writing:
            return "single store"
        if cut is None or (writing and not all(piece.contiguous for piece in cut)):
            plan = self.plan(affine, size, count, writing=writing)
            if plan is not None:
                return permuted_rows.kind(plan)
            return near_rows.kind(self.at, self.bound, space, writing=writing)
        different = {(piece.offset, piece.steps, piece.contiguous) for piece in cut}
        rows = sum(contiguous for _, _, contiguous in different)
        if len(cut) == 1:
            return "contiguous" if rows else "broadcast"
        kinds = ((rows, "row"), (len(different) - rows, "broadcast"))
        said = " and ".join(f"{count} {kind}{'s' if count > 1 else ''}" for count, kind in kinds if count)
        return f"{said} of {cut[0].count}"

    def scattered(self, space: Space, raw: Raw, size: int, count: int) -> bool:
        """Would a load take the elements of each lane by themselves?  No rows and no places that lanes share are known."""
        affine = self.affine(space, raw)
        if affine is None:
            return isinstance(raw, Varying)
        return pieces(affine, size * count, self.width) is None and self.plan(affine, size, count, writing=False) is None

    # ── loads ───────────────────────────────────────────────────────────────────────────

    def load(self, space: Space, llvm: str, size: int, raw: Raw, count: int) -> list[str]:
        """The elements of every lane's vector."""
        affine = self.affine(space, raw)
        cut = pieces(affine, size * count, self.width) if affine is not None else None
        if affine is not None and cut is not None:
            return self._load_pieces(space, llvm, size, affine, cut, count)
        if affine is not None and (plan := self.plan(affine, size, count, writing=False)) is not None:
            return self._load_permuted(space, llvm, size, affine, plan, count)
        if lane_chunks.suits(size, count):
            return lane_chunks.load(self.at, llvm, size, count, self.pointers(space, raw))
        if (word := words.of(size, count)) is not None:
            loaded = self.load(space, word.llvm, word.size, raw, count // word.parts)
            return [part for whole in loaded for part in words.split(self.code, llvm, word, whole)]
        lanes = self.at.active_vector()
        if affine is not None and (found := self._progression(space, llvm, affine, lanes, writing=False)) is not None:
            return [
                some_lanes.gather_strided(self.code, llvm, row, found[1], lanes)
                for row in self._elements(found[0], size, count)
            ]
        near = near_rows.suits(self.at, self.bound, space, llvm)
        if near or (lanes is not None and some_lanes.suits(llvm)):
            writer = near_rows if near or lanes is None else some_lanes
            return [writer.gather(self.code, llvm, *self._distances(space, raw, n * size), lanes) for n in range(count)]
        return [self._gather(space, llvm, raw, n * size, lanes) for n in range(count)]

    def _gather(self, space: Space, llvm: str, raw: Raw, more: int, lanes: str | None) -> str:
        start, (type, vector), unit = self._offsets(space, raw, more)
        if type == "i32" and indexed.suits(llvm):
            return indexed.gather(self.code, llvm, self.width, start, vector, unit, lanes)
        return self.at.gather(llvm, self._pointers(start, (type, vector), unit), lanes)

    def plan(self, affine: Affine | None, size: int, count: int, *, writing: bool) -> permuted_rows.RowPlan | None:
        """How to access rows and permute them."""
        if affine is None:
            return None
        plan = (permuted_rows.stores if writing else permuted_rows.loads)(affine, size, elements(size, count), self.width)
        if plan is None or (lanes := self.at.active_vector()) is None:
            return plan
        if self.code.first_alone or not permuted_rows.pays_masked(plan, size, known=lanes.startswith("<"), writing=writing):
            return None
        return plan

    def row_pointers(self, space: Space, raw: Affine, plan: permuted_rows.RowPlan) -> list[str]:
        """The pointers to the beginnings of rows: those of the same scalars at constant distances."""
        moving = raw.moving
        first: dict[tuple[int, ...], tuple[str, int]] = {}
        found = []
        for row in plan.rows:
            factors = tuple(k[row.lane] for k, _ in moving)
            if factors not in first:
                steps = tuple((k, u) for k, (_, u) in zip(factors, moving, strict=True) if k)
                begin = Chunk(row.lane, row.count, contiguous=True, offset=row.offset, steps=steps)
                first[factors] = self.piece_pointer(space, raw, begin), row.offset
            pointer, start = first[factors]
            found.append(self.code.offset(pointer, row.offset - start))
        return found

    def _load_permuted(
        self, space: Space, llvm: str, size: int, raw: Affine, plan: permuted_rows.RowPlan, count: int
    ) -> list[str]:  # fmt: skip
        code, each = self.code, plan.each
        vectors, scalars = {}, {}
        masks = permuted_rows.row_masks(code, plan, self.at.active_vector())
        for n, (row, pointer) in enumerate(zip(plan.rows, self.row_pointers(space, raw, plan), strict=True)):
            if masks:
                vectors[n] = code.masked_load(each, llvm, pointer, size, masks[n])
                continue
            if row.count == 1:
                scalars[n] = code.emit(f"load {llvm}, ptr {pointer}, align {size}", pure=False)
                continue
            loaded = code.emit(f"load <{row.count} x {llvm}>, ptr {pointer}, align {size}", pure=False)
            order = [k if k < row.count else None for k in range(each)]
            vectors[n] = loaded if row.count == each else code.shuffle(llvm, row.count, loaded, "poison", order)
        permuter = permuted_rows.Permuter(code, llvm, each)
        made: dict[tuple[permuted_rows.Position, ...], str] = {}
        found = []
        for first in range(0, self.width * count, self.width):
            parts = [plan.positions[n : n + each] for n in range(first, first + self.width, each)]
            for part in parts:
                if part not in made:
                    made[part] = permuter.collected(vectors, scalars, part)
            found.append(code.concatenate(llvm, [made[part] for part in parts], each))
            self.at.light[found[-1]] = -(-len({*parts}) * each * size // 64)
        return found

    def _load_pieces(self, space: Space, llvm: str, size: int, raw: Affine, cut: list[Chunk], count: int) -> list[str]:
        code, self.wide_steps = self.code, space is not Space.SHARED
        whole: list[list[str]] = []
        kept: dict[tuple[str, bool], list[str]] = {}
        everywhere = self.at.active_vector() is None  # else each chunk has its own active lanes
        pointer = ""
        for n, piece in enumerate(cut):
            further = self._step_on(pointer, cut[n - 1], piece) if n else None
            pointer = further or self.piece_pointer(space, raw, piece)
            if everywhere and (pointer, piece.contiguous) in kept:
                whole.append(kept[pointer, piece.contiguous])
                continue
            if piece.contiguous:
                if self.at.full and space not in (Space.SHARED, Space.LOCAL):
                    self._ahead(pointer, piece.count * count * size)
                loaded = self._contiguous(llvm, size, pointer, piece, count)
            else:
                loaded = self._broadcast(llvm, size, pointer, piece, count)
            kept[pointer, piece.contiguous] = loaded
            whole.append(loaded)
        found = [code.concatenate(llvm, [part[n] for part in whole], cut[0].count) for n in range(count)]
        rows = sum(contiguous for _, contiguous in kept)  # the others are operands in memory
        self.at.light.update(dict.fromkeys(found, -(-rows * cut[0].count * size // 64)))
        return found

    def _step_on(self, pointer: str, last: Chunk, piece: Chunk) -> str | None:
        """The pointer of a chunk that is one step of a scalar after the last one: registers cannot hold a pointer for each."""
        factors = dict.fromkeys([u for _, u in (*last.steps, *piece.steps)], 0)
        for sign, steps in ((-1, last.steps), (1, piece.steps)):
            for factor, u in steps:
                factors[u] += sign * factor
        moved = [(u, factor) for u, factor in factors.items() if factor]
        if piece.offset != last.offset or [factor for _, factor in moved] != [1]:
            return pointer if piece.offset == last.offset and not moved else None
        word = "i64" if self.wide_steps else "i32"
        return self.code.emit(f"getelementptr i8, ptr {pointer}, {word} {moved[0][0]}")

    def _contiguous(self, llvm: str, size: int, pointer: str, piece: Chunk, count: int) -> list[str]:
        code, total = self.code, piece.count * count
        if (mask := self.mask(piece, count)) is None:
            loaded = self._in_order(llvm, size, pointer, total)
        else:
            loaded = code.masked_load(total, llvm, pointer, size, mask)
        if count == 1:
            return [loaded]
        return deinterleaving.components(code, llvm, size, loaded, piece.count, count)

    def _ahead(self, pointer: str, length: int) -> None:
        """Prefetch for a later iteration of the loop, or for the warps that come next: their rows lie behind this one.

        The processor's own prefetcher follows neither the strides of grids nor a stream in the pieces that warps take.
        """
        near = self.code.offset(pointer, prefetches.AHEAD)
        if not self.at.repeats:
            prefetches.prefetch_row(self.code, near, length, prefetches.SECOND_CACHE)
            prefetches.prefetch_row(self.code, self.code.offset(pointer, prefetches.SOON), length, prefetches.FIRST_CACHE)
            return
        stride = self.stride()
        if stride is not None and stride.is_below(length):
            return  # most of what the next iterations load lies in lines of this one, and the processor follows
        start = self._in_next_iteration(pointer, stride) or self._in_later_iteration(pointer, near)
        cache = prefetches.cache_of_strides() if self.at.kernel.grid_strides else prefetches.FIRST_CACHE
        prefetches.prefetch_touched(self.code, start, length, cache)

    def stride(self) -> Stride | None:
        """How far the loop around the instruction moves its address, if that is known."""
        return self.at.kernel.loop_strides.get(self.bound) if self.bound is not None else None

    def _in_next_iteration(self, pointer: str, stride: Stride | None) -> str | None:
        """The pointer in the next iteration of a loop whose iterations are long, as all warps of the CTA take turns in each."""
        if stride is None or not stride.waits:
            return None
        distance: Scalar = 0
        for registers, factor in stride.products:
            product: Scalar = factor & ALL
            for register in registers:
                raw = self.at.slot(self.at.key(register), register.type).raw
                if not isinstance(raw, Affine) or raw.terms:
                    return None
                wide = self.alg.cast("resize", register.type, u64, raw, "rn")
                product = self.alg.scalar("mul", 64, product, wide.base)  # type: ignore[union-attr]
            distance = self.alg.scalar("add", 64, distance, product)
        return self.code.emit(f"getelementptr i8, ptr {pointer}, i64 {text('i64', distance)}")

    def _ahead_of_stores(self, pointer: str, length: int) -> None:
        """Prefetch what the next iteration of a long loop stores to.

        A store that misses the caches holds up all later ones, as they leave the processor in order: also those of what warps
        keep while others take their turns.
        """
        stride = self.stride()
        if not self.at.full or stride is None or stride.is_below(length):
            return
        if (start := self._in_next_iteration(pointer, stride)) is not None:
            prefetches.prefetch_touched(self.code, start, length, prefetches.FIRST_CACHE, writing=True)

    def _in_later_iteration(self, pointer: str, near: str) -> str:
        """The pointer some iterations on, assuming the stride of the last one; `near` where CTAs run in step."""
        code, before = self.code, self.at.prefetch_variable()
        now = code.emit(f"ptrtoint ptr {pointer} to i64")
        last = code.emit(f"load i64, ptr {before}, align 8", pure=False)
        code.run(f"store i64 {now}, ptr {before}, align 8")
        distance = code.emit(f"mul i64 {code.emit(f'sub i64 {now}, {last}')}, {ITERATIONS_AHEAD}")
        later = code.emit(f"inttoptr i64 {code.emit(f'add i64 {now}, {distance}')} to ptr")
        first = code.emit(f"icmp eq i64 {last}, 0")
        later = code.emit(f"select i1 {first}, ptr {code.offset(pointer, prefetches.FARTHER)}, ptr {later}")
        if not self.at.kernel.grid_strides:
            return later
        return code.emit(f"select i1 %in_step.none, ptr {later}, ptr {near}")

    def _in_order(self, llvm: str, size: int, pointer: str, total: int) -> str:
        """Load contiguous elements a register at a time, upwards, as the prefetcher expects; LLVM would begin at the end."""
        code, each = self.code, min(total, 64 // size)
        parts = []
        for first in range(0, total, each):
            part = code.offset(pointer, first * size)
            parts.append(code.emit(f"load <{each} x {llvm}>, ptr {part}, align {size}", pure=False))
        return code.concatenate(llvm, parts, each)

    def _broadcast(self, llvm: str, size: int, pointer: str, piece: Chunk, count: int) -> list[str]:
        """Load one address for some lanes; if none of them is active, load scratch memory."""
        code = self.code
        if (lanes := self.at.active_vector()) is not None:
            own, word = ((1 << piece.count) - 1) << piece.first, f"i{self.width}"
            used = code.emit(f"icmp ne {word} {code.emit(f'and {word} {code.mask_bits(lanes)}, {own}')}, 0")
            pointer = code.emit(f"select i1 {used}, ptr {pointer}, ptr {self.at.buffer(f'<{self.width} x i64>', 0)}")
        found = []
        for n in range(count):
            one = code.emit(f"load {llvm}, ptr {code.offset(pointer, n * size)}, align {min(size, 8)}", pure=False)
            found.append(code.splat(llvm, one, piece.count))
        return found

    def mask(self, piece: Chunk, count: int) -> str | None:
        """The predicate of the elements of a chunk; None if all are active."""
        vector = self.at.active_vector()
        if vector is None:
            return None
        order = [piece.first + n // count for n in range(piece.count * count)]
        if order == list(range(self.width)):
            return vector
        return self.code.shuffle("i1", self.width, vector, "poison", order)

    # ── stores ──────────────────────────────────────────────────────────────────────────

    def store(self, space: Space, llvm: str, size: int, raw: Raw, vectors: list[str], weak: Bound | None = None) -> None:
        """Store vectors; of lanes that write to one address the last one wins; `weak` is a store in no order with others."""
        count, code = len(vectors), self.code
        affine = self.affine(space, raw)
        cut = pieces(affine, size * count, self.width) if affine is not None else None
        if affine is None or cut is None or not all(p.contiguous for p in cut):
            self._store_apart(space, llvm, size, raw, vectors)
            return
        bit = (
            streaming_stores.parameter_bit(self.at, weak, [piece.count * count * size for piece in cut])
            if weak is not None
            else None
        )
        whole: list[tuple[str, str, int]] = []
        for piece in cut:
            pointer = self.piece_pointer(space, affine, piece)
            total, lanes = piece.count * count, list(range(piece.first, piece.first + piece.count))
            if count == 1:
                value = vectors[0] if piece.count == self.width else code.shuffle(llvm, self.width, vectors[0], "poison", lanes)
            else:
                rows = code.concatenate(llvm, vectors, self.width)
                order = [n + self.width * k for n in lanes for k in range(count)]
                value = code.shuffle(llvm, self.width * count, rows, "poison", order)
            if (mask := self.mask(piece, count)) is None:
                whole.append((value, pointer, total))
            else:
                some_lanes.store(code, total, llvm, value, pointer, size, mask)
        if self.at.repeats and space not in (Space.SHARED, Space.LOCAL):
            for _, pointer, total in whole:
                self._ahead_of_stores(pointer, total * size)
        if bit is not None:
            streaming_stores.store(self.at, bit, llvm, whole, size)
            return
        for value, pointer, total in whole:
            self._store_in_order(llvm, size, value, pointer, total)

    def _store_in_order(self, llvm: str, size: int, value: str, pointer: str, total: int) -> None:
        """Store contiguous elements a register at a time.

        They are what a load reads (`_in_order`): LLVM forwards what was stored there as it is.  Parts of a longer vector it
        would take out element by element.
        """
        code, each = self.code, min(total, 64 // size)
        for first in range(0, total, each):
            part = value if each == total else code.shuffle(llvm, total, value, "poison", list(range(first, first + each)))
            code.run(f"store <{each} x {llvm}> {part}, ptr {code.offset(pointer, first * size)}, align {size}")

    def _store_apart(self, space: Space, llvm: str, size: int, raw: Raw, vectors: list[str]) -> None:
        """Store where lanes are not contiguous: by rows, at equal distances, or one by one."""
        code, lanes, affine = self.code, self.at.active_vector(), self.affine(space, raw)
        if affine is not None and not affine.terms:
            whole = Chunk(0, self.width, contiguous=False, offset=0, steps=())
            last_lane.store(self.at, llvm, size, self.piece_pointer(space, affine, whole), vectors)
            return
        if affine is not None and (plan := self.plan(affine, size, len(vectors), writing=True)) is not None:
            self.store_permuted(space, llvm, size, affine, plan, vectors)
            return
        if (word := words.of(size, len(vectors))) is not None:
            self._store_apart(space, word.llvm, word.size, raw, words.joined(code, llvm, word, vectors))
            return
        found = self._progression(space, llvm, affine, lanes, writing=True) if affine is not None else None
        near = found is None and near_rows.suits(self.at, self.bound, space, llvm)
        if near or (found is None and lanes is not None and some_lanes.suits(llvm)):
            for n, vector in enumerate(vectors):
                writer = near_rows if near or lanes is None else some_lanes
                writer.scatter(code, llvm, vector, *self._distances(space, raw, n * size), lanes)
        elif found is None:
            for n, vector in enumerate(vectors):
                self.scatter(space, llvm, vector, raw, n * size)
        else:
            for firsts, vector in zip(self._elements(found[0], size, len(vectors)), vectors, strict=True):
                some_lanes.scatter_strided(code, llvm, vector, firsts, found[1], lanes)

    def scatter(self, space: Space, llvm: str, vector: str, raw: Raw, more: int) -> None:
        """Store an element for each lane, some bytes further on."""
        lanes, (start, (type, offsets), unit) = self.at.active_vector(), self._offsets(space, raw, more)
        if type == "i32" and indexed.suits(llvm):
            indexed.scatter(self.code, llvm, self.width, vector, start, offsets, unit, lanes)
        else:
            self.at.scatter(llvm, vector, self._pointers(start, (type, offsets), unit), lanes)

    def store_permuted(
        self, space: Space, llvm: str, size: int, raw: Affine, plan: permuted_rows.RowPlan, vectors: list[str]
    ) -> None:  # fmt: skip
        """Store vectors of all lanes as the rows of a plan."""
        code, each = self.code, plan.each
        starts = range(0, self.width, each)
        parts = [
            code.shuffle(llvm, self.width, vector, "poison", list(range(first, first + each)))
            for vector in vectors
            for first in starts
        ]
        permuter = permuted_rows.Permuter(code, llvm, each)
        masks = permuted_rows.row_masks(code, plan, self.at.active_vector())
        for k, (row, pointer, elements) in enumerate(
            zip(plan.rows, self.row_pointers(space, raw, plan), plan.sources(), strict=True)
        ):
            if masks:
                value = permuter.collected(dict(enumerate(parts)), {}, [*elements, *[None] * (each - row.count)])
                code.masked_store(each, llvm, value, pointer, size, masks[k])
                continue
            if row.count == 1 and elements[0] is not None:
                part, n = elements[0]
                one = code.emit(f"extractelement <{each} x {llvm}> {parts[part]}, i64 {n}")
                code.run(f"store {llvm} {one}, ptr {pointer}, align {size}")
                continue
            value = permuter.collected(dict(enumerate(parts)), {}, [*elements, *[None] * (each - row.count)])
            if row.count < each:
                value = code.shuffle(llvm, each, value, "poison", list(range(row.count)))
            if None in elements:
                chosen = ", ".join(f"i1 {int(element is not None)}" for element in elements)
                code.masked_store(row.count, llvm, value, pointer, size, f"<{chosen}>")
            else:
                code.run(f"store <{row.count} x {llvm}> {value}, ptr {pointer}, align {size}")

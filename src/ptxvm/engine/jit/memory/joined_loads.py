"""Joined loads: loads of neighbouring elements behind one register, as of an unrolled loop, are loaded together.

The lanes of such loads are anywhere, so each would be a gather.  Together they are chunks (`memory.lane_chunks`) of each lane,
loaded where the first of them stands, after one check of all.  Only loads and arithmetic may come between: what another thread
writes meanwhile, weak loads need not see (PTX 8); between those of memory that the grid only reads (`ld.global.nc`), stores and
atomics as well.  If the check fails, each is checked and loaded by itself.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type, u64
from ptxvm.algebra.value import Value
from ptxvm.analysis.flow import changes
from ptxvm.analysis.program import Bound
from ptxvm.analysis.symbols import Register
from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.cfg.row_walks import only_reads
from ptxvm.engine.jit.ir.lane_values import Affine, Raw, Varying, scalar_type, text
from ptxvm.engine.jit.memory import lane_chunks, variable_bounds
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.syntax import tree

EXTENTS = (32, 16)  # bytes that are loaded together
SCALAR_EXTENTS = (64, 32, 16, 8)  # the same where one thread runs at a time: they share a check
SPACES = (Space.GLOBAL, Space.SHARED, Space.CONST, Space.GENERIC)
EqualLoads = dict[int, dict[tuple[str, bool], dict[int, list[int]]]]
"""Positions of loads, by their register, their mnemonic and whether they see what the grid writes, and their distance."""


@dataclass(frozen=True, slots=True)
class LoadRun:
    """Loads of neighbouring elements, by the positions of their instructions in the node.

    `before` is how many bytes the first element is before that of the load at which they are loaded.
    """

    positions: tuple[int, ...]
    before: int

    def extent(self, size: int) -> int:
        """How many bytes they are, if each is of a size."""
        return len(self.positions) * size


def run(at: NodeBuilder, bound: Bound, space: Space, size: int) -> LoadRun | None:
    """The run of the load at the current position, of a size in bytes; None if it stands alone."""
    kernel, code = at.kernel, at.node.code
    if at.position >= at.together_until or code[at.position] is not bound:
        return None  # a meaning that loads for an instruction before or behind the node, as of a call
    own = _root_of(at, bound)
    if own is None or bound.node.guard is not None or isinstance(at.region_guard, Affine):
        return None
    whole_addresses = kernel.image.memory.address_bits == 64 and kernel.cluster_size == 1
    suits = kernel.scalar or lane_chunks.suits(size, EXTENTS[0] // size)
    if kernel.tagged or kernel.watches_mbarriers or space not in SPACES or not whole_addresses or not suits:
        return None
    extents = SCALAR_EXTENTS if kernel.scalar else EXTENTS
    found = _around(at, own[1], space, extents[0], size)
    if found.get(own[1]) != at.position:
        return None
    for extent in extents:
        for first in range(own[1] - extent + size, own[1] + 1, size):
            distances = range(first, first + extent, size)
            if len(distances) > 1 and all(distance in found for distance in distances):
                return LoadRun(tuple(found[distance] for distance in distances), own[1] - first)
    return None


@dataclass(frozen=True, slots=True)
class Loader:
    """How a run is loaded: the check of an extent in bytes from an address, loads of so many elements, and each load alone."""

    good: Callable[[Raw, int], str]
    together: Callable[[Raw, int], list[str]]
    alone: Callable[[Bound, Raw], list[Value]]


def begin(at: NodeBuilder, run: LoadRun, raw: Raw) -> Raw:
    """The address of the first element of a run, by that of the load at which it is loaded."""
    return at.alg.integer("sub", u64, raw, Affine(run.before)) if run.before else raw


def load(at: NodeBuilder, run: LoadRun, type: Type, count: int, first: Raw, loader: Loader) -> list[str]:
    """Load all elements of a run, of loads of `count` each; returns their vectors."""
    code, size = at.code, type.bytes * count
    elements = len(run.positions) * count
    if at.kernel.trusted:
        return loader.together(first, elements)
    together, apart, onward = code.label(), code.label(), code.label()
    code.branch(loader.good(first, run.extent(size)), together, apart, likely=True)
    fast, after_fast = _block(at, together, lambda: loader.together(first, elements), onward)
    slow, after_slow = _block(at, apart, lambda: _apart(at, run, type, size, first, loader), onward)
    code.block(onward)
    vector = scalar_type(type) if at.kernel.scalar else at.alg.vector_type(type)
    ends = ((f"[ {a}, %{after_fast} ]", f"[ {b}, %{after_slow} ]") for a, b in zip(fast, slow, strict=True))
    return [code.emit(f"phi {vector} {', '.join(pair)}", pure=False) for pair in ends]


def keep(at: NodeBuilder, run: LoadRun, type: Type, count: int, found: list[str], said: str) -> None:
    """Keep the vectors of a run for the positions of its instructions, and what is said of them."""
    values = [Value(at.alg, type, (Affine if at.kernel.scalar else Varying)(name)) for name in found]
    at.preloaded |= {position: values[n * count : (n + 1) * count] for n, position in enumerate(run.positions)}
    at.notes |= dict.fromkeys(run.positions, said)


def _block(at: NodeBuilder, label: str, write: Callable[[], list[str]], onward: str) -> tuple[list[str], str]:
    """Write a block that loads, up to a jump; returns the vectors and the label of the last block."""
    code, done, nested = at.code, at.code.label(), at.nested
    at.nested = True
    with code.scope():
        code.block(label)
        found = write()
        code.jump(done)
        code.block(done)
        code.jump(onward)
    at.nested = nested
    return found, done


def _apart(at: NodeBuilder, run: LoadRun, type: Type, size: int, first: Raw, loader: Loader) -> list[str]:
    """Check and load each element of a run by itself, in the order of the instructions."""
    here, found = at.position, dict[int, list[str]]()
    for position in sorted(run.positions):
        at.position = position
        own = at.alg.integer("add", u64, first, Affine(run.positions.index(position) * size))
        values = loader.alone(at.node.code[position], own)
        found[position] = [_text(at, type, value.raw) for value in values]
    at.position = here
    return [name for position in run.positions for name in found[position]]


def _text(at: NodeBuilder, type: Type, raw: Raw) -> str:
    """A loaded value: a scalar where one thread runs at a time, else a vector."""
    if at.kernel.scalar and isinstance(raw, Affine):
        return text(scalar_type(type), raw.base)
    return at.alg.vector(type, raw)


def _around(at: NodeBuilder, own: int, space: Space, extent: int, size: int) -> dict[int, int]:
    """The first equal load, from the current one on, at each distance of which an extent may hold both."""
    if at.neighbours is None:
        at.neighbours = _neighbours(at)
    equal, found = at.neighbours.get(at.position, {}), {}
    for distance in range(own - extent + size, own + extent, size):
        positions = equal.get(distance, [])
        for n in range(bisect_left(positions, at.position), bisect_left(positions, at.together_until)):
            if variable_bounds.part(at, at.node.code[positions[n]], space) is None:
                found[distance] = positions[n]
                break
    return found


def _neighbours(at: NodeBuilder) -> dict[int, dict[int, list[int]]]:
    """For each load behind a register the positions of equal ones behind the same value of it, by their distances from it."""
    found: dict[int, dict[int, list[int]]] = {}
    equal: EqualLoads = {}
    held = 0  # the registers of these, as bits
    for position, bound in enumerate(at.node.code):
        effects = bound.i.of.effects
        if effects and (effects != {"mem"} or not only_reads(bound)):
            equal = _behind_stores(equal) if effects == {"mem"} else {}
            held = sum(1 << index for index in equal)
            continue
        root = _root_of(at, bound) if effects and bound.node.guard is None else None
        if root is not None:
            held |= 1 << root[0].index
            key = bound.node.head, any(access.coherent for access in bound.summary.accesses)
            found[position] = equal.setdefault(root[0].index, {}).setdefault(key, {})
            found[position].setdefault(root[1], []).append(position)
        changed = changes(bound) & held
        held ^= changed
        while changed:
            del equal[changed.bit_length() - 1]
            changed ^= 1 << changed.bit_length() - 1
    return found


def _behind_stores(equal: EqualLoads) -> EqualLoads:
    """The loads that may be joined with ones behind an access that writes: those of memory that the grid only reads."""
    kept = {register: {key: found for key, found in alike.items() if not key[1]} for register, alike in equal.items()}
    return {register: alike for register, alike in kept.items() if alike}


def _root_of(at: NodeBuilder, bound: Bound) -> tuple[Register, int] | None:
    """The register and the distance in the address of a weak load; None for other instructions and addresses."""
    node = bound.operands.get("a")
    if bound.i.of.effects != {"mem"} or not only_reads(bound) or not isinstance(node, tree.Address) or len(node.items) != 1:
        return None
    (item,) = node.items
    distance = 0
    if isinstance(item, tree.Binary):
        known = at.constant(bound, item.right, u64).raw
        if not isinstance(known, Affine) or known.constant is None:
            return None
        item, distance = item.left, (known.constant ^ 1 << 63) - (1 << 63)
    register = bound.scope.find(item.text) if isinstance(item, tree.Name) and item.component is None else None
    if not isinstance(register, Register) or register.count > 1 or register.of_module:
        return None
    return register, distance

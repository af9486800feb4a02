"""The pieces of a tensor that one instruction copies: boxes, four rows, columns of images (PTX 5.5.3, 5.5.4, 5.5.7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.isa.tensor_map import ELEMENTS, FIELDS, MARK, SIZE, Element
from ptxvm.isa.transfers import Transfer
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.memory import Memory
from ptxvm.machine.reductions import NAN
from ptxvm.machine.transfer_pieces import Operands, Pieces
from ptxvm.machine.window import WITHIN

if TYPE_CHECKING:
    import numpy.typing as npt

    from ptxvm.machine.per_lane import Addresses

ALIGNMENT = 128  # of a part of a tensor in shared memory
TILES, COLUMNS = ("tile", "tile::gather4", "tile::scatter4"), ("im2col", "im2col_no_offs")
MODE_WORDS = ("tile", "im2col", "im2col::w", "im2col::w::128")
# Bits of an address that are exchanged: of each swizzle and atomicity, from which bit, how many, and to which bit.
SWIZZLES = {
    (1, 0): ((7, 1, 4),), (2, 0): ((7, 2, 4),), (3, 0): ((7, 3, 4),), (4, 0): ((7, 1, 4),),
    (3, 1): ((7, 2, 5),), (3, 2): ((7, 2, 5), (7, 1, 3)), (3, 3): ((7, 1, 6),),
}  # fmt: skip


class DecodedMap:
    """A tensor map in memory, read."""

    def __init__(self, data: bytes, address: int) -> None:
        if data[: len(MARK)] != MARK:
            said = f"at {address:#x} lies no tensor map, as ptxvm.TensorMap or the driver encodes one"
            raise AccessFault("invalid-tensor-map", said, address, SIZE)
        self.data = data
        self.rank = self.number("rank") + 1
        self.sizes = [self.number("global_dim", n) or 1 << 32 for n in range(self.rank)]
        self.strides = [self.number("global_stride", n) for n in range(self.rank - 1)]
        self.steps = [max(self.number("element_stride", n), 1) for n in range(self.rank)]

    def number(self, name: str, n: int = 0, *, signed: bool = False) -> int:
        """The value of a field."""
        field = FIELDS[name]
        return int.from_bytes(self.data[field.at(n) : field.at(n) + field.type.bytes], "little", signed=signed)

    @property
    def element(self) -> Element:
        """The type of its elements."""
        return ELEMENTS[self.number("elemtype") % len(ELEMENTS)]

    @property
    def fill(self) -> bytes:
        """The bytes of an element that is outside the tensor."""
        name = self.element.name.partition(".")[0].replace("tf32", "f32")
        if not self.number("fill_mode") or name not in NAN:
            return b"\0"
        return NAN[name].to_bytes(self.element.packed, "little")

    def swizzled(self, address: Addresses) -> Addresses:
        """Where the bytes at addresses in shared memory lie."""
        found = address.copy()
        for start, bits, to in SWIZZLES.get((self.number("swizzle_mode"), self.number("swizzle_atomicity")), ()):
            moved = address >> np.uint64(start) & np.uint64((1 << bits) - 1)
            found ^= moved << np.uint64(to)
        return found


class Rows(NamedTuple):
    """Rows of elements: where each begins along the outer dimensions, whether it is in the tensor, and the length of all."""

    address: npt.NDArray[np.int64]
    inside: npt.NDArray[np.bool_]
    length: int


def pieces(kind: Transfer, memory: Memory, operands: Operands) -> Pieces:
    """The pieces of a part of a tensor, from or to shared memory."""
    (address,), (shared,) = operands["map"], operands["a"]
    found, coordinates = DecodedMap(memory.read(address, SIZE), address), operands["c"]
    _check(kind, found, len(coordinates), shared, address)
    match kind.mode:
        case "tile":
            rows = _box(found, coordinates)
        case "tile::gather4" | "tile::scatter4":
            rows = _four_rows(found, coordinates)
        case _:
            rows = _columns(found, coordinates, operands.get("offsets", ()))
    unit, along, inside, at, size = _row(found, coordinates[0], rows.length)
    here = (rows.address[:, None] + along).ravel().astype(np.uint64)
    present = (rows.inside[:, None] & inside).ravel()
    linear = (np.arange(len(rows.address), dtype=np.uint64)[:, None] * np.uint64(size) + at).ravel()
    there = found.swizzled(linear + np.uint64(shared & WITHIN)) + np.uint64(shared & ~WITHIN)
    loads = kind.to is not Space.GLOBAL
    made = Pieces(unit, there if loads else here, here if loads else there, present=present, element=found.element.name)
    if present.all():
        made.present = None
    if loads:
        made.fill, made.amount = found.fill, len(rows.address) * size
    elif made.present is not None:  # what is outside of the tensor is not written
        made.target, made.source, made.present = here[present], there[present], None
    return made


def _check(kind: Transfer, found: DecodedMap, count: int, shared: int, address: int) -> None:
    """Refuse a map that does not fit the instruction."""
    tiled = found.number("mode") == 0
    if tiled != (kind.mode in TILES):
        said = f"the tensor map at {address:#x} is for .{MODE_WORDS[found.number('mode')]}, and the instruction is .{kind.mode}"
        raise AccessFault("invalid-tensor-map", said, address, SIZE)
    wanted = 2 if kind.mode in TILES[1:] else count
    if found.rank != wanted:
        said = f"the tensor map at {address:#x} has {found.rank} dimensions, and the instruction {wanted}"
        raise AccessFault("invalid-tensor-map", said, address, SIZE)
    if found.number("interleave_layout"):
        raise Unsupported("a tensor map with an interleaved layout")
    if kind.mode not in (*TILES, *COLUMNS):
        raise Unsupported(f"a tensor copy with .{kind.mode}")
    if shared % ALIGNMENT:
        said = f"the address {shared:#x} in shared memory must be a multiple of {ALIGNMENT}"
        raise AccessFault("misaligned", said, shared, ALIGNMENT)


def _row(
    found: DecodedMap, first: int, length: int
) -> tuple[int, npt.NDArray[np.int64], npt.NDArray[np.bool_], Addresses, int]:
    """The pieces of a row of elements: their bytes, their offsets in the tensor and in shared memory, and its size there."""
    element = found.element
    groups, begin, end = length // element.count, first // element.count, found.sizes[0] // element.count
    if first % element.count:
        said = f"the first coordinate of a tensor of {element.name} is a multiple of {element.count}, not {first}"
        raise AccessFault("misaligned", said)
    if element.packed == element.padded:
        start, last = begin * element.packed, end * element.packed
        unit = element.packed if found.number("swizzle_atomicity") == 2 or start % 16 or last % 16 else 16
        at = np.arange(0, groups * element.packed, unit, dtype=np.int64)
        along = at + start
        return unit, along, (along >= 0) & (along < last), at.astype(np.uint64), groups * element.packed
    unit = 4
    group, part = np.divmod(np.arange(groups * (element.packed // unit)), element.packed // unit)
    along = (begin + group) * element.packed + part * unit
    inside = (begin + group >= 0) & (begin + group < end)
    at = (group * element.padded + part * unit).astype(np.uint64)
    return unit, along, inside, at, groups * element.padded


def _box(found: DecodedMap, coordinates: Sequence[int]) -> Rows:
    """The rows of a box (PTX 5.5.3)."""
    address = np.array([found.number("global_address")], np.int64)
    inside = np.ones(1, np.bool_)
    for n in range(1, found.rank):
        step, size = found.steps[n], found.number("box_dim", n)
        at = coordinates[n] + np.arange(0, size, step, dtype=np.int64)
        here = (at >= 0) & (at < found.sizes[n])
        address = (at[:, None] * found.strides[n - 1] + address).ravel()
        inside = (here[:, None] & inside).ravel()
    return Rows(address, inside, found.number("box_dim"))


def _four_rows(found: DecodedMap, coordinates: Sequence[int]) -> Rows:
    """Four rows of a matrix (PTX 5.5.3.4)."""
    at = np.array(coordinates[1:], np.int64)
    address = found.number("global_address") + at * found.strides[0]
    return Rows(address, (at >= 0) & (at < found.sizes[1]), found.number("box_dim"))


def _columns(found: DecodedMap, coordinates: Sequence[int], offsets: Sequence[int]) -> Rows:
    """The pixels of a column: along W, H and D in the bounding box, then of the next image (PTX 5.5.4)."""
    space = found.rank - 2
    lower = [found.number("lower_corner", n, signed=True) for n in range(space)]
    upper = [found.sizes[n + 1] - 1 + found.number("upper_corner", n, signed=True) for n in range(space)]
    at, moved = list(coordinates[1:]), [*offsets, *[0] * (space + 1 - len(offsets))]
    address, inside = [], []
    for _ in range(found.number("pixels_per_column")):
        place = [position + offset for position, offset in zip(at, moved, strict=True)]
        address.append(sum(position * stride for position, stride in zip(place, found.strides, strict=True)))
        inside.append(all(0 <= position < size for position, size in zip(place, found.sizes[1:], strict=True)))
        for n in range(space + 1):
            at[n] += found.steps[n + 1] if n < space else 1
            if n == space or at[n] <= upper[n]:
                break
            at[n] = lower[n]
    start = np.int64(found.number("global_address"))
    return Rows(np.array(address, np.int64) + start, np.array(inside), found.number("channels_per_pixel"))

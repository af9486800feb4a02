"""The pieces of a tensor that one instruction copies: boxes, four rows, columns of images (PTX 5.5.3 to 5.5.7)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.isa.tensor_map import ELEMENTS, FIELDS, MARK, OUTSIDE_NAN, SIZE, Element
from ptxvm.isa.transfers import Transfer
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.memory import Memory
from ptxvm.machine.transfer_pieces import Operands, Pieces
from ptxvm.machine.window import WITHIN
from ptxvm.named_tuple import NamedTuple

if TYPE_CHECKING:
    import numpy.typing as npt

    from ptxvm.machine.per_lane import Addresses

FLOATS = "f16", "bf16", "f32", "f64"
SPANS = {1: 32, 2: 64, 3: 128, 4: 96}  # bytes of a row in shared memory, at least, by the swizzle
COORDINATE = 16  # bytes that the first coordinate is a multiple of
COORDINATE_PADDED = 128  # elements of a padded type that it is a multiple of
COORDINATE_PACKED = 64  # and where a copy takes their padding away, as sm_103a does it
PADDED_WORDS, PACKED_WORDS = 4, 3  # of 16 elements of six bits: in shared memory, and in a tensor
ALIGNMENT = 128  # of a part of a tensor in shared memory
TILES = "tile", "tile::gather4", "tile::scatter4"
WIDE, WIDE_128 = "im2col::w", "im2col::w::128"
MOST_HALO = {WIDE: 512, WIDE_128: 32}  # pixels, and one more
PIXELS, BETWEEN_HALOS = 128, 32  # of a copy with `.im2col::w::128`
SLICES = {1: 16, 2: 32}  # bytes, of the interleaved layouts
MODE_WORDS = ("tile", "im2col", "im2col::w", "im2col::w::128")
MODE_NAMES = dict(enumerate(MODE_WORDS))
MODES_OF = {**dict.fromkeys(TILES, MODE_WORDS[:1]), "im2col_no_offs": MODE_WORDS[1:]}
# Bits of an address that are exchanged: of each swizzle and atomicity, from which bit, how many, and to which bit.
SWIZZLES = {
    (1, 0): ((7, 1, 4),), (2, 0): ((7, 2, 4),), (3, 0): ((7, 3, 4),), (4, 0): ((7, 1, 4),),
    (3, 1): ((7, 2, 5),), (3, 2): ((7, 2, 5), (7, 1, 3)), (3, 3): ((7, 1, 6),),
}  # fmt: skip


class DecodedMap:
    """The bytes of a tensor map, read."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._numbers: dict[tuple[str, int, bool], int] = {}
        self.is_map = data[: len(MARK)] == MARK or self._of_zeros
        self.rank = self.number("rank") + 1
        self.sizes = [self.number("global_dim", n) or 1 << 32 for n in range(self.rank)]
        self.strides = [self.number("global_stride", n) for n in range(self.rank - 1)]
        self.steps = [max(self.number("element_stride", n), 1) for n in range(self.rank)]

    @property
    def _of_zeros(self) -> bool:
        """Is it what `tensormap.replace` makes of zeros, as compilers begin a map?"""
        return not any(self.data[: len(MARK)]) and self.number("global_address") != 0

    def number(self, name: str, n: int = 0, *, signed: bool = False) -> int:
        """The value of a field."""
        found = self._numbers.get((name, n, signed))
        if found is None:
            field = FIELDS[name]
            found = int.from_bytes(self.data[field.at(n) : field.at(n) + field.type.bytes], "little", signed=signed)
            self._numbers[name, n, signed] = found
        return found

    @cached_property
    def element(self) -> Element:
        """The type of its elements."""
        return ELEMENTS[self.number("elemtype") % len(ELEMENTS)]

    @cached_property
    def fill(self) -> bytes:
        """The bytes of an element that is outside the tensor."""
        name = self.element.name.partition(".")[0].replace("tf32", "f32")
        if not self.number("fill_mode") or name not in FLOATS:
            return b"\0"
        return OUTSIDE_NAN.to_bytes(2, "little") * (self.element.packed // 2)

    @cached_property
    def box(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_], list[range]]:
        """The rows of a box: their offsets from the first one, that all are in the tensor, and the steps of each dimension.

        Of slices, which an interleaved layout has, a box has one.
        """
        slices = self.rank - 2 if self.number("interleave_layout") in SLICES else 0
        spans = [range(0, 1 if n == slices else self.number("box_dim", n), self.steps[n]) for n in range(1, self.rank)]
        offsets = np.zeros(1, np.int64)
        for span, stride in zip(spans, self.strides, strict=True):
            offsets = (np.array(span, np.int64)[:, None] * stride + offsets).ravel()
        inside = np.ones(len(offsets), np.bool_)
        return offsets, inside, spans

    def swizzled(self, address: Addresses) -> Addresses:
        """Where the bytes at addresses in shared memory lie."""
        found = address.copy()
        for start, bits, to in SWIZZLES.get((self.number("swizzle_mode"), self.number("swizzle_atomicity")), ()):
            moved = address >> np.uint64(start) & np.uint64((1 << bits) - 1)
            found ^= moved << np.uint64(to)
        return found


@lru_cache(maxsize=64)
def decoded(data: bytes) -> DecodedMap:
    """The map of some bytes: a loop copies by the same map again and again."""
    return DecodedMap(data)


class Rows(NamedTuple):
    """Rows of elements: where each begins along the outer dimensions, whether it is in the tensor, and the length of all.

    They are of so many `images`, the outermost dimension, one after the other; a column counts as one.
    """

    address: npt.NDArray[np.int64]
    inside: npt.NDArray[np.bool_]
    length: int
    images: int = 1


def pieces(kind: Transfer, memory: Memory, operands: Operands) -> Pieces:
    """The pieces of a part of a tensor, from or to shared memory."""
    (address,), (shared,) = operands["map"], operands["a"]
    found, coordinates = decoded(memory.read(address, SIZE)), operands["c"]
    if not found.is_map:
        said = f"at {address:#x} lies no tensor map, as ptxvm.TensorMap or the driver encodes one"
        raise AccessFault("invalid-tensor-map", said, address, SIZE)
    _check(kind, found, len(coordinates), shared, address)
    if kind.to is Space.GLOBAL:
        _check_target(kind, found, coordinates)
    match kind.mode:
        case "tile":
            rows = _box(found, coordinates)
        case "tile::gather4" | "tile::scatter4":
            rows = _four_rows(found, coordinates)
        case _:
            rows = _columns(kind, found, coordinates, operands.get("offsets", ()))
    width = SLICES.get(found.number("interleave_layout"))
    boxed = width is not None and kind.mode == "tile"
    element = Element("", width, width) if boxed and width else found.element
    loads = kind.to is not Space.GLOBAL
    unit, along, inside, at, size = _row(found, element, coordinates[0], rows.length, loads=loads)
    pitch = max(size, SPANS.get(found.number("swizzle_mode"), 0))
    if width is not None and not boxed:
        along, first, at = _in_slices(found, rows, (width, size), along, at)
        there = _in_shared(found, first, at, shared)
    else:
        there = _in_rows(found, (len(rows.address), pitch), at.tobytes(), shared)
    here = (rows.address[:, None] + along).ravel().astype(np.uint64)
    present = (rows.inside[:, None] & inside).ravel()
    made = Pieces(unit, there if loads else here, here if loads else there, present=present, element=found.element.name)
    if present.all():
        made.present = None
    if loads:
        made.fill, made.amount = found.fill, len(rows.address) * (rows.length // element.count) * element.packed
    elif made.present is not None:  # what is outside of the tensor is not written
        taken = present
        if element.packed != element.padded:
            taken = present.reshape(-1, PACKED_WORDS)[:, :1].repeat(PADDED_WORDS, axis=1).ravel()
        made.target, made.source, made.present = here[present], there[taken], None
    return made


@lru_cache(maxsize=64)
def _in_rows(found: DecodedMap, rows: tuple[int, int], at: bytes, shared: int) -> Addresses:
    """Where pieces lie in shared memory: those `at` some offsets, which are u64, of rows, of a number and a distance.

    A loop copies to the same buffers again and again.
    """
    count, pitch = rows
    made = _in_shared(found, np.arange(count, dtype=np.uint64) * np.uint64(pitch), np.frombuffer(at, np.uint64), shared)
    made.flags.writeable = False
    return made


def _in_shared(found: DecodedMap, first: Addresses, at: Addresses, shared: int) -> Addresses:
    """Where the pieces of rows lie in shared memory."""
    linear = (first[:, None] + at).ravel()
    return found.swizzled(linear + np.uint64(shared & WITHIN)) + np.uint64(shared & ~WITHIN)


def _check(kind: Transfer, found: DecodedMap, count: int, shared: int, address: int) -> None:
    """Refuse a map that does not fit the instruction."""
    mode = MODE_NAMES.get(found.number("mode"), "no mode")
    if mode not in MODES_OF.get(kind.mode, (kind.mode,)):
        said = f"the tensor map at {address:#x} is for .{mode}, and the instruction is .{kind.mode}"
        raise AccessFault("invalid-tensor-map", said, address, SIZE)
    wanted = 2 if kind.mode in TILES[1:] else count
    if found.rank != wanted:
        said = f"the tensor map at {address:#x} has {found.rank} dimensions, and the instruction {wanted}"
        raise AccessFault("invalid-tensor-map", said, address, SIZE)
    if shared % ALIGNMENT:
        said = f"the address {shared:#x} in shared memory must be a multiple of {ALIGNMENT}"
        raise AccessFault("misaligned", said, shared, ALIGNMENT)


def _check_target(kind: Transfer, found: DecodedMap, coordinates: Sequence[int]) -> None:
    """Refuse what PTX 9.7.9.27.1.1 does, and what an H200 calls an illegal instruction, such as sums of `.s64`."""
    before = next((n for n, at in enumerate(coordinates) if at < 0), None)
    if before is not None:
        said = f"a copy to a tensor begins in it or behind it, and coordinate {before} is {coordinates[before]}"
        raise AccessFault("invalid-tensor-map", said)
    if kind.mode == "im2col_no_offs":
        corners = [
            (found.number("lower_corner", n, signed=True), found.number("upper_corner", n, signed=True))
            for n in range(found.rank - 2)
        ]
        if any(low < 0 or high > 0 for low, high in corners):
            said = f"a copy to a tensor needs a box of pixels within the images, and its corners are {corners}"
            raise AccessFault("invalid-tensor-map", said)
    element = found.element
    if element.name == "b4x16_p64" or (kind.operation and element.count > 1):
        said = f"a tensor of .{element.name} has no {'reductions' if kind.operation else 'copies to it'}"
        raise AccessFault("invalid-tensor-map", said)
    if element.name == "s64" and kind.operation not in ("", "min", "max"):
        said = f"a tensor of .s64 has the reductions min and max, and no {kind.operation}: one of .u64 has it"
        raise AccessFault("invalid-tensor-map", said)


def _row(
    found: DecodedMap, element: Element, first: int, length: int, *, loads: bool
) -> tuple[int, npt.NDArray[np.int64], npt.NDArray[np.bool_], Addresses, int]:
    """The pieces of a row of elements: their bytes, their offsets in the tensor and in shared memory, and its size there.

    What is written is 16 bytes or nothing: of a row that ends within them those behind it, too (an H200).  Where a copy
    takes padding away, four words of shared memory become three of the tensor (PTX 5.5.1.1).
    """
    groups, begin, end = length // element.count, first // element.count, found.sizes[0] // element.count
    grain = element.count if element.packed == element.padded else COORDINATE_PADDED if loads else COORDINATE_PACKED
    if first % grain:
        said = f"the first coordinate of a tensor of {element.name} is a multiple of {grain}, not {first}"
        raise AccessFault("misaligned", said)
    if found.number("interleave_layout") not in SLICES and begin * element.packed % COORDINATE:
        said = f"the first coordinate of a box is a multiple of {COORDINATE} bytes, and {first} are {begin * element.packed}"
        raise AccessFault("misaligned", said)
    if element.packed == element.padded:
        start, last = begin * element.packed, end * element.packed
        if not loads:
            last = -(-last // COORDINATE) * COORDINATE
        unit = element.packed if found.number("swizzle_atomicity") == 2 or start % 16 or last % 16 else 16
        at = np.arange(0, groups * element.packed, unit, dtype=np.int64)
        along = at + start
        return unit, along, (along >= 0) & (along < last), at.astype(np.uint64), groups * element.packed
    unit = 4
    group, part = np.divmod(np.arange(groups * (element.packed // unit)), element.packed // unit)
    along = (begin + group) * element.packed + part * unit
    inside = (begin + group >= 0) & (begin + group < end)
    size = groups * element.padded
    at = group * element.padded + part * unit if loads else np.arange(0, size, unit)
    return unit, along, inside, at.astype(np.uint64), size


def _box(found: DecodedMap, coordinates: Sequence[int]) -> Rows:
    """The rows of a box (PTX 5.5.3).

    With an interleaved layout the elements are slices of pixels: the first dimensions are those of an image, the one before
    the last counts slices, of which a box has one, whatever its size says (an H200; PTX 5.5.6).
    """
    offsets, inside, spans = found.box
    far = np.array(coordinates[1:], np.int64) @ np.array(found.strides, np.int64)  # it wraps far outside of the tensor
    address = offsets + far + found.number("global_address")
    placed = list(zip(coordinates[1:], spans, found.sizes[1:], strict=True))
    if not all(at >= 0 and at + span.stop <= size for at, span, size in placed):
        inside = np.ones(1, np.bool_)
        for at, span, size in placed:
            here = np.array([0 <= at + n < size for n in span], np.bool_)
            inside = (here[:, None] & inside).ravel()
    return Rows(address, inside, found.number("box_dim"), len(spans[-1]) if spans else 1)


def _four_rows(found: DecodedMap, coordinates: Sequence[int]) -> Rows:
    """Four rows of a matrix (PTX 5.5.3.4)."""
    at = np.array(coordinates[1:], np.int64)
    address = found.number("global_address") + at * found.strides[0]
    return Rows(address, (at >= 0) & (at < found.sizes[1]), found.number("box_dim"))


def _columns(kind: Transfer, found: DecodedMap, coordinates: Sequence[int], info: Sequence[int]) -> Rows:
    """The pixels of a column (PTX 5.5.4, 5.5.5)."""
    pixels_at = np.array(list(_along_w(kind, found, coordinates, info) if kind.mode in MOST_HALO else
                           _through_images(found, coordinates, info)))  # fmt: skip
    address = found.number("global_address") + pixels_at @ np.array(found.strides)
    inside = np.logical_and.reduce((pixels_at >= 0) & (pixels_at < np.array(found.sizes[1:])), axis=1)
    return Rows(address, np.asarray(inside), found.number("channels_per_pixel"))


def _through_images(found: DecodedMap, coordinates: Sequence[int], offsets: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Along W, H and D in the bounding box, then in the next image (PTX 5.5.4)."""
    moved = [*offsets, *[0] * (found.rank - 1 - len(offsets))]
    for pixel in islice(_walk(found, coordinates, found.rank - 2), found.number("pixels_per_column")):
        yield tuple(position + offset for position, offset in zip(pixel, moved, strict=True))


def _along_w(kind: Transfer, found: DecodedMap, coordinates: Sequence[int], info: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Along W in the bounding box, then in the next image, with a halo: the pixels that follow (PTX 5.5.5).

    With `.im2col::w::128` a halo follows each 32 pixels, and is read again as the pixels that come next.
    """
    halo, offset = info
    if halo >= MOST_HALO[kind.mode]:
        raise AccessFault(
            "invalid-tensor-map", f"the halo of .{kind.mode} has up to {MOST_HALO[kind.mode] - 1} pixels, not {halo}"
        )
    pixels = PIXELS if kind.mode == WIDE_128 else found.number("pixels_per_column")
    between = BETWEEN_HALOS if kind.mode == WIDE_128 else pixels
    pixels_at = list(islice(_walk(found, coordinates, 1, offset), pixels + halo))
    for first in range(0, pixels, between):
        yield from pixels_at[first : first + between + halo]


def _walk(found: DecodedMap, coordinates: Sequence[int], boxed: int, offset: int = 0) -> Iterator[tuple[int, ...]]:
    """The pixels_at of pixels along the first dimensions, which are `boxed`, and then in the next image.

    The `offset` moves the box and the first pixel along W.
    """
    place = [*coordinates[1:]]
    place[0] += offset
    lower = [found.number("lower_corner", n, signed=True) for n in range(boxed)]
    upper = [found.sizes[n + 1] - 1 + found.number("upper_corner", n, signed=True) for n in range(boxed)]
    while True:
        yield tuple(place)
        for n in range(boxed):
            moved = offset if n == 0 else 0
            place[n] += found.steps[n + 1]
            if place[n] <= upper[n] + moved:
                break
            place[n] = lower[n] + moved
        else:
            place[-1] += 1


def _in_slices(
    found: DecodedMap, rows: Rows, sizes: tuple[int, int], along: npt.NDArray[np.int64], at: Addresses
) -> tuple[npt.NDArray[np.int64], Addresses, Addresses]:
    """The pieces of rows whose channels lie in slices, each of which holds a whole image (PTX 5.5.6).

    `sizes` are the bytes of a slice and of a row.  Gives the offsets of the pieces of a row in the tensor, where each row
    begins in shared memory, and the offsets there.  PTX names no stride between the slices of an image: they follow each
    other.
    """
    width, row_size = sizes
    size = found.strides[-2] * found.sizes[-2]  # of an image in a slice
    slices = -(-found.sizes[0] * found.element.packed // found.element.count // width)
    if found.sizes[-1] > 1 and found.strides[-1] != slices * size:
        raise Unsupported("an interleaved tensor with a gap between its images")
    if along[0] % width or row_size % width:
        raise Unsupported("a part of an interleaved tensor that begins or ends within a slice")
    order, each = np.arange(len(rows.address)), len(rows.address) // rows.images
    first = (order // each * (each * row_size) + order % each * width).astype(np.uint64)
    there, within = np.divmod(at, np.uint64(width))
    return along // width * size + along % width, first, there * np.uint64(each * width) + within

"""The work on tensor memory that `tcgen05` instructions ask for (PTX 9.7.16), and the fields of its descriptors."""

from __future__ import annotations

from enum import Enum
from functools import lru_cache

from ptxvm.algebra.types import Type, b32, bf16, e2m1, e2m3, e3m2, e4m3, e5m2, f16, f32, s8, s32, tf32, u8, ue4m3, ue8m0
from ptxvm.dataclass import dataclass
from ptxvm.isa.shared_matrix import FIELD, PIECE, MatrixDescriptor, Swizzle

COLUMNS, LANES = 512, 128  # of the tensor memory of a CTA
WARP_LANES = 32  # that a warp reaches by loads and stores


@dataclass(frozen=True)
class TensorWork:
    """Work on tensor memory; `mnemonic` names its instruction where it cannot be done.

    `pairs` says that it works on two CTAs of a cluster; `asynchronous` that it goes on beside the thread; `collective`
    that whole warps do it; `reads_shared` that it reads shared memory; `results` are the types of its results.
    """

    mnemonic: str
    pairs: bool = False
    results: tuple[Type, ...] = ()
    asynchronous = False
    collective = True
    reads_shared = False

    @property
    def ctas(self) -> int:
        """On the tensor memory of how many CTAs it works."""
        return 2 if self.pairs else 1


class Allocate(TensorWork):
    """Allocate `columns`; the address goes to shared memory at `a`."""


class Free(TensorWork):
    """Give back `columns` at `a`."""


class Relinquish(TensorWork):
    """Allocate no more."""


class Commit(TensorWork):
    """The works that the thread has started are done when an mbarrier gets an arrival."""

    collective = False


class Tile(Enum):
    """The shape of the cells that a warp loads or stores; the value is how many registers its smallest form has."""

    LANES_16_64B = "16x64b"
    LANES_16_128B = "16x128b"
    LANES_16_256B = "16x256b"
    LANES_32_32B = "32x32b"
    LANES_16_32B_TWICE = "16x32bx2"


@dataclass(frozen=True)
class Move(TensorWork):
    """Move cells at `a` from or to registers; `packed` halves words, and `split` is the distance of the two parts of a tile."""

    tile: Tile = Tile.LANES_32_32B
    registers: int = 1
    packed: bool = False


@dataclass(frozen=True)
class Load(Move):
    """Load cells; an `operation` also finds the least or greatest of what each lane loads, of a type."""

    operation: str = ""
    type: Type = b32
    absolute: bool = False
    propagates: bool = False
    asynchronous = True


@dataclass(frozen=True)
class Store(Move):
    """Store registers `b0`, `b1`, … in cells."""

    asynchronous = True


@dataclass(frozen=True)
class CopyToTensor(TensorWork):
    """Copy `rows` of some bytes from shared memory, which the descriptor `b` names, to `a`: to the lanes of some warps.

    `warps` has, for each warp, the first row that it gets; None for each lane its own.  `format` is that of the elements,
    which are widened to bytes.
    """

    rows: int = LANES
    bytes: int = 32
    warps: tuple[int, ...] = (0, 32, 64, 96)
    format: str = ""
    asynchronous = True
    collective = False
    reads_shared = True


@dataclass(frozen=True)
class Shift(TensorWork):
    """Move the cells of 31 lanes at `a`, 32 bytes of each, one lane down."""

    asynchronous = True
    collective = False


@dataclass(frozen=True)
class Multiply(TensorWork):
    """Multiply A, at `a` in tensor memory or by a descriptor, and B, by the descriptor `b`, as `idesc` says, into `d`.

    `enable`, `scale`, the masks `disabled0` to `disabled7` of lanes, the scales at `scale_a` and `scale_b`, and the mask
    `zeros` of columns are as the instruction has them.  With `shifted`, the rows of A are shifted down by one after the
    product, in tensor memory; with `sparse`, half of A is stored, and metadata lie at `meta`.
    """

    kind: str = "f16"
    in_tensor_memory: bool = False
    weights: bool = False
    blocks: int = 0
    shifted: bool = False
    sparse: bool = False
    asynchronous = True
    collective = False
    reads_shared = True


# ── descriptors ─────────────────────────────────────────────────────────────────────────

SWIZZLES = {
    0: Swizzle.NONE, 1: Swizzle.BYTES_128_BY_32, 2: Swizzle.BYTES_128, 4: Swizzle.BYTES_64, 6: Swizzle.BYTES_32,
}  # fmt: skip


class InvalidDescriptor(ValueError):  # noqa: N818 - it says what is wrong
    """A field of a descriptor cannot be."""


def shared_descriptor(bits: int) -> MatrixDescriptor:
    """The descriptor of a matrix in shared memory (PTX 9.7.16.4.1)."""
    start, leading, stride = ((bits >> first & (1 << FIELD) - 1) * PIECE for first in (0, 16, 32))
    if bits >> 46 & 7 != 1:
        raise InvalidDescriptor(f"bits 46 to 48 of the descriptor of a matrix are 0b001, not {bits >> 46 & 7:#05b}")
    if bits >> 61 not in SWIZZLES:
        raise InvalidDescriptor(f"bits 61 to 63 of the descriptor of a matrix are 0, 1, 2, 4 or 6, not {bits >> 61}")
    return MatrixDescriptor(start, leading, stride, bits >> 49 & 7, SWIZZLES[bits >> 61], bool(bits >> 52 & 1))


SMALL = {0: e4m3, 1: e5m2, 3: e2m3, 4: e3m2, 5: e2m1}
TYPES: dict[str, dict[int, Type]] = {
    "f16": {0: f16, 1: bf16}, "tf32": {2: tf32}, "f8f6f4": SMALL, "i8": {0: u8, 1: s8},
    "mxf8f6f4": SMALL, "mxf4": {1: e2m1}, "mxf4nvf4": {1: e2m1},
}  # fmt: skip
SUMS: dict[str, dict[int, Type]] = {
    "f16": {0: f16, 1: f32}, "tf32": {1: f32}, "f8f6f4": {0: f16, 1: f32}, "i8": {2: s32},
}  # fmt: skip
DEPTHS = {"f16": 16, "tf32": 8, "f8f6f4": 32, "i8": 32, "mxf8f6f4": 32, "mxf4": 64, "mxf4nvf4": 64}
BYTE, BYTES_TOGETHER = 8, 16  # bits; elements of a byte that lie side by side along N
DEEPER = 96  # of sm_103a, by bit 31 of the instruction descriptor
HALVED = ("mxf4", "mxf4nvf4")  # kinds whose elements stand in half bytes


@dataclass(frozen=True)
class InstructionDescriptor:
    """The fields of an instruction descriptor (PTX 9.7.16.4.2).

    `scale_ids` are of kinds with scales; the `selector` is of the metadata of a sparse A.
    """

    m: int
    n: int
    k: int
    d: Type
    a: Type
    b: Type
    negated: tuple[bool, bool]
    transposed: tuple[bool, bool]
    saturates: bool
    scales: Type | None
    scale_ids: tuple[int, int]
    sparse: bool = False
    selector: int = 0

    @property
    def stored(self) -> int:
        """How many elements of a row of A are stored."""
        return self.k // 2 if self.sparse else self.k


@lru_cache(maxsize=64)
def instruction_descriptor(work: Multiply, bits: int) -> InstructionDescriptor:
    """The fields of the descriptor for an instruction; those that cannot be are named."""
    kind, scaled = work.kind, bool(work.blocks)
    if bool(bits >> 2 & 1) is not work.sparse:
        said = "bit 2 of the instruction descriptor says that A is {}sparse, and the instruction {}"
        raise InvalidDescriptor(said.format(*(("not ", "that it is") if work.sparse else ("", "does not"))))
    _unused(kind, bits)
    a, b = (_known(TYPES[kind], bits >> first & mask, f"the type of {name}") for name, first, mask in
            (("A", 7, 7), ("B", 10, 3 if kind in HALVED else 7)))  # fmt: skip
    d = f32 if scaled else _known(SUMS[kind], bits >> 4 & 3, "the type of D")
    if d is f16 and bf16 in (a, b):
        raise InvalidDescriptor("D of .f16 in the instruction descriptor is for A and B of .f16, and not of .bf16 (table 39)")
    m = (bits >> 27 & 3) * 128 if scaled else (bits >> 24 & 31) * 16
    n = (bits >> 17 & 63) * 8
    _shape(work, m, n)
    if work.shifted and m < LANES:
        raise InvalidDescriptor(f"a matrix that is shifted has {LANES} or {2 * LANES} rows, not {m} (PTX 9.7.16.10.9.1)")
    deeper = kind in HALVED and bool(bits >> 31 & 1)
    if deeper and work.sparse:
        raise InvalidDescriptor("bit 31 of the instruction descriptor asks for a depth of 96, which a sparse A has not")
    scales = (ue8m0 if bits >> 23 & 1 else ue4m3) if scaled else None
    if scales is ue4m3 and kind != "mxf4nvf4":
        raise InvalidDescriptor(f"the scales of .kind::{kind} are of .ue8m0")
    negated, transposed = ((bool(bits >> first & 1), bool(bits >> first + 1 & 1)) for first in (13, 15))
    if transposed[1] and b.bits <= BYTE and n % (BYTES_TOGETHER * work.ctas):
        said = f"a transposed B of bytes has a multiple of {BYTES_TOGETHER * work.ctas} columns, not {n} (table 52)"
        raise InvalidDescriptor(said)
    ids = (bits >> 29 & 3, bits >> 4 & 3) if scaled else (0, 0)
    depth, selector = DEEPER if deeper else DEPTHS[kind] << work.sparse, _selector(work, bits)
    return InstructionDescriptor(
        m, n, depth, d, a, b, negated, transposed, bool(bits >> 3 & 1), scales, ids, work.sparse, selector
    )


UNUSED = {
    "i8": "6 13 14 23 29", "f16": "3 6 23 29", "tf32": "3 6 23 29", "f8f6f4": "3 6 23 29",
    "mxf8f6f4": "3 6 24 25 26 31",
    **dict.fromkeys(HALVED, "3 4 6 12 15 16 24 25 26 29"),
}  # fmt: skip
"""The bits of an instruction descriptor that are 0 in each kind: reserved, or of what the kind has not (tables 42 to 44)."""


def _unused(kind: str, bits: int) -> None:
    """Report a bit that is 0 in this kind."""
    for bit in UNUSED[kind].split():
        if bits >> int(bit) & 1:
            raise InvalidDescriptor(f"bit {bit} of the instruction descriptor is 0 for .kind::{kind}")


def _known(table: dict[int, Type], value: int, field: str) -> Type:
    if value not in table:
        raise InvalidDescriptor(f"{field} in the instruction descriptor is {' or '.join(map(str, table))}, not {value}")
    return table[value]


def _selector(work: Multiply, bits: int) -> int:
    """The sparsity selector; kinds with scales take it as 0, and other kinds of a byte and less have no other one."""
    if not work.sparse or work.blocks:
        return 0
    selector = bits & 3
    if selector and work.kind in ("i8", "f8f6f4"):
        raise InvalidDescriptor(f"the sparsity selector of .kind::{work.kind} is 0, not {selector}")
    return selector


def _shape(work: Multiply, m: int, n: int) -> None:
    """Has the kind this shape (PTX 9.7.16.2.1)?"""
    step = 8 * work.ctas
    rows: tuple[int, ...] = (128, 256) if work.pairs else (128,) if work.blocks else (64, 128)
    columns: tuple[int, ...] = tuple(range(step, 257, step))
    if work.pairs and work.blocks and work.sparse:
        rows = (256,)
    if work.weights:
        rows, columns = (32, 64, 128), (64, 128) if work.sparse else (64, 128, 256)
    if work.kind == "i8" and not work.weights:
        columns = tuple(range(32, 257, 32)) if work.pairs else (8, 16, 24, *range(32, 257, 16))
    if m not in rows or n not in columns:
        raise InvalidDescriptor(f"the instruction descriptor has the shape {m} by {n}, which .kind::{work.kind} has not here")


def zero_columns(bits: int, rows: int, columns: int) -> list[bool]:
    """The columns of B that count as zero (PTX 9.7.16.4.3): runs of them, and of others, in one to four parts."""
    if not bits >> 39 & 1:
        return [False] * columns
    parts = LANES // rows
    skip, use = (bits >> 40 & 0xFF) + 1, (bits >> 48 & 0xFF) + 1
    found: list[bool] = []
    for part in range(parts):
        first, start = bits >> 32 + part & 1, bits >> 8 * part & 0xFF
        runs = (skip, use) if first else (use, skip)
        span = range(start, start + columns // parts)
        found += [(column % (skip + use) < runs[0]) == bool(first) for column in span]
    return found

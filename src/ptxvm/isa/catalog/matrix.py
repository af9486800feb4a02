"""Matrix loads and stores, between shared memory and the fragments of `mma` (PTX 9.7.14.5.15 to 9.7.14.5.17)."""

from __future__ import annotations

from functools import partial

from ptxvm.algebra.ports import Memory, Peers
from ptxvm.algebra.types import b8, b16, b32, u32
from ptxvm.algebra.value import Value, select
from ptxvm.isa.access import (
    ADDRESS,
    ORDER_OF_A_MATRIX,
    WEAK,
    Trait,
    elements,
    generic_addressing,
    has,
    of_a_word,
    vector_of_sinks,
    window,
)
from ptxvm.isa.exactness import MOVED
from ptxvm.isa.fragments import Fragment, Tiles
from ptxvm.isa.matrix import all_lanes
from ptxvm.isa.model import Decoded, Problem, checked, instruction
from ptxvm.isa.special_registers import WARP
from ptxvm.named_tuple import NamedTuple

CHIPS = "sm_100f sm_103f sm_107f sm_110f sm_120f sm_100a sm_103a sm_107a sm_110a sm_120a sm_121a"
NEEDS = {
    ".shared::cta": "PTX 7.8",
    ".m16n16 .m8n16 .m16n8": "PTX 8.6, sm_90a " + CHIPS,
    ".b8 .b8x16": "PTX 8.6, " + CHIPS,
    ".s8": "PTX 9.4, sm_90a " + CHIPS,
}


class MatrixKind(NamedTuple):
    """What the matrices of a shape are like: their formats, whether they may be transposed, how many move at once.

    In memory a matrix has `rows` rows, each at the address that a lane of its own gives.
    """

    formats: tuple[str, ...]
    transposed: tuple[bool, ...]
    counts: tuple[str, ...]
    rows: int
    registers: int
    run: int
    corners: tuple[tuple[int, int], ...] = ((0, 0),)


LOADED = {
    "m8n8":   MatrixKind(("b16",), (False, True), ("x1", "x2", "x4"), 8, 1, 2),
    "m8n16":  MatrixKind(("b8x16", "s8"), (False,), ("x1", "x2", "x4"), 8, 1, 4),
    "m16n16": MatrixKind(("b8", "b8x16"), (True,), ("x1", "x2"), 16, 2, 4, ((0, 0), (8, 0))),
}  # fmt: skip
STORED = {
    "m8n8":   MatrixKind(("b16",), (False, True), ("x1", "x2", "x4"), 8, 1, 2),
    "m16n8":  MatrixKind(("b8",), (True,), ("x1", "x2", "x4"), 8, 1, 2, ((0, 0), (8, 0))),
}  # fmt: skip
ROWS = {"b16": 16, "b8": 16, "b6x16_p32": 16, "b4x16_p64": 16, "s4": 8}  # bytes of a row in memory, with its padding
WIDTHS = {"b16": 16, "b8": 8, "b6x16_p32": 6, "b4x16_p64": 4, "s4": 4}


MATRIX_ADDRESS = Trait([*ADDRESS.rules, *of_a_word("a", when=generic_addressing).rules], ADDRESS.needs)


# ── ldmatrix, stmatrix ──────────────────────────────────────────────────────────────────


@has(MATRIX_ADDRESS, ORDER_OF_A_MATRIX)
@instruction(
    """
    ldmatrix.sync.aligned.mnk.num{.trans}{.ss}.type          d, [a];
    ldmatrix.sync.aligned.mnk.num{.trans}{.ss}.dtype.stype   d, [a];
    .mnk   = { .m8n8, .m8n16, .m16n16 };
    .num   = { .x1, .x2, .x4 };
    .ss    = { .shared, .shared::cta };
    .type  = { .b16, .b8 };
    .dtype = { .b8x16, .s8 };
    .stype = { .b6x16_p32, .b4x16_p64, .s4 };
    """,
    section="9.7.14.5.15",
    types="d: b32, a: u64",
    needs={"": "PTX 6.5, sm_75", **NEEDS},
    exact=MOVED,
)
def ldmatrix(i, a, warp, mem):
    """Load matrices of 8 or 16 rows from shared memory into the registers of a warp.

    Lanes 0 to 7 have the addresses of the rows of the first matrix, the next lanes those of the second, and so on.
    """
    peers = yield warp.converge(all_lanes(warp), a)
    kind = LOADED[i.mnk]
    tiles = Tiles(kind.run, kind.corners, i.trans)
    width, per_register = WIDTHS[(i.type or i.stype).name], tiles.elements // kind.registers
    found = []
    for first in element_groups(i, kind, per_register):
        elements = [locate(tiles, kind, peers, warp.lane, first, n) for n in range(per_register)]
        found.append(word(i, mem, elements, width))
    return found


def element_groups(i: Decoded, kind: MatrixKind, per_register: int) -> list[tuple[int, int]]:
    """The matrix and the first element of each register."""
    count = int(i.num[1:])
    return [(matrix, per_register * n) for matrix in range(count) for n in range(kind.registers)]


def locate(tiles: Tiles, kind: MatrixKind, peers: Peers, lane: Value, first: tuple[int, int], n: int) -> tuple[Value, Value]:
    """Where an element lies in memory: the address of its row, and its column."""
    matrix, element = first
    row, column = tiles(lane, element + n)
    return peers.at(row + matrix * kind.rows), column


def word(i: Decoded, mem: Memory, elements: list[tuple[Value, Value]], width: int) -> Value:
    """A register from elements: at once where they adjoin, else one by one."""
    if not i.trans and width >= 8:
        row, column = elements[0]
        return mem.load(window(i), b32, row + (column * width >> 3).to(row.type), **WEAK)[0]
    step = 32 // len(elements)
    parts = [element(i, mem, row, column, width).to(b32) << n * step for n, (row, column) in enumerate(elements)]
    total = parts[0]
    for part in parts[1:]:
        total |= part
    return total


def element(i: Decoded, mem: Memory, row: Value, column: Value, width: int) -> Value:
    """An element of a row; one of less than a byte is put where `mma` wants it in its byte, or extended by its sign."""
    bit = (column * width).to(row.type)
    type = b16 if width == 16 else b8
    value = mem.load(window(i), type, row + (bit >> 3), **WEAK)[0].to(u32)
    if width >= 8:
        return value
    if width == 6:  # its last bit may lie in the next byte
        value |= mem.load(window(i), type, row + (bit + width - 1 >> 3), **WEAK)[0].to(u32) << 8
    value = value >> (bit & 7).to(u32) & (1 << width) - 1
    if i.stype.name == "s4":
        return (value ^ 8) - 8 & 255
    return value << 2 if width == 4 else value


@has(MATRIX_ADDRESS, ORDER_OF_A_MATRIX)
@instruction(
    """
    stmatrix.sync.aligned.mnk.num{.trans}{.ss}.type  [a], b;
    .mnk  = { .m8n8, .m16n8 };
    .num  = { .x1, .x2, .x4 };
    .ss   = { .shared, .shared::cta };
    .type = { .b16, .b8 };
    """,
    section="9.7.14.5.16",
    types="a: u64, b: b32 registers",
    needs={"": "PTX 7.8, sm_90", **NEEDS},
    exact=MOVED,
)
def stmatrix(i, a, b, warp, mem):
    """Store matrices of 8 rows from the registers of a warp into shared memory, at addresses as `ldmatrix` has them."""
    peers = yield warp.converge(all_lanes(warp), a)
    kind = STORED[i.mnk]
    tiles = Tiles(kind.run, kind.corners, i.trans)
    for matrix, register in enumerate(b):
        elements = [locate(tiles, kind, peers, warp.lane, (matrix, 0), n) for n in range(tiles.elements)]
        if not i.trans:
            row, column = elements[0]
            mem.store(window(i), b32, row + (column * 2).to(row.type), [register], **WEAK)
            continue
        for n, (row, column) in enumerate(elements):
            value = (register >> n * i.type.bits).to(i.type)
            at = row + (column * i.type.bytes).to(row.type)
            mem.store(window(i), i.type, at, [value], **WEAK)


class SharedMatrices(NamedTuple):
    """The matrices that an instruction moves, `number` of them.

    Lanes 0 to `lanes` - 1 have the addresses of their rows, of `size` bytes each, those of the first matrix first.
    `fragment` is how lanes hold one of them.
    """

    number: int
    lanes: int
    size: int
    fragment: Fragment


def shared_matrices(i: Decoded) -> SharedMatrices | None:
    """The matrices that ldmatrix or stmatrix moves between shared memory and registers; None of other instructions."""
    kinds = {ldmatrix: LOADED, stmatrix: STORED}.get(i.of)
    if kinds is None:
        return None
    kind, count, type = kinds[i.mnk], int(i.num[1:]), i.type or i.dtype
    tiles = Tiles(kind.run, kind.corners, i.trans)
    columns = tiles.elements * WARP // kind.rows
    fragment = Fragment(b8 if type.bits == 8 else type, (kind.rows, columns), tiles, tiles.elements, kind.registers)
    return SharedMatrices(count, count * kind.rows, ROWS[(i.type or i.stype).name], fragment)


def matrices(i: Decoded, kinds: dict[str, MatrixKind], operand: str) -> Problem | None:
    """What is wrong with the kind of matrix, or with the number of its registers."""
    kind, name, format = kinds[i.mnk], i.form.opcode, i.type or i.dtype
    if format.name not in kind.formats:
        return Problem("P2730", f"there is no {format} in '.{i.mnk}' here", word=i.mnk,
                       ptxas=f"Incorrect instruction type specified for {name} with shape '.{i.mnk}'")  # fmt: skip
    if i.trans not in kind.transposed:
        refused = f"Modifier .trans not allowed for shape '.{i.mnk}'"
        required = f"Modifier '.trans' require for instruction {name} with shape '.{i.mnk}'"
        return Problem("P2730", refused if i.trans else required)
    if i.num not in kind.counts:
        return Problem("P2730", f"Incorrect no. of matrix: {i.num[1:]} for {name} with shape '.{i.mnk}'", word=i.num)
    wanted = int(i.num[1:]) * kind.registers
    shape = i.shape(operand)
    if shape.kind == "vector" and elements(shape) == wanted:
        return None
    expected = f"Vector of size {wanted} is expected for argument {operand == 'b':d} of instruction '{name}'"
    return Problem("P2730", f"a vector of {wanted} registers is needed", operand=operand, ptxas=expected)


@ldmatrix.rule("P2730")
def loaded_matrices(i):
    """A shape has its formats, its order, and its number of registers."""
    return matrices(i, LOADED, "d")


@ldmatrix.rule("P2731")
def source_of_another_format(i):
    """Bytes are made of six or four bits, signed ones of four."""
    if i.dtype and (i.dtype.name == "s8") != (i.stype.name == "s4"):
        return "Unexpected instruction types specified for 'ldmatrix'"
    return None


@ldmatrix.rule("P2732")
def nothing_loaded(i):
    """Of the registers that are loaded at least one is a register."""
    return vector_of_sinks(i, "d")


@stmatrix.rule("P2730")
def stored_matrices(i):
    """A shape has its formats, its order, and its number of registers."""
    return matrices(i, STORED, "b")


# ── movmatrix ───────────────────────────────────────────────────────────────────────────


@has(ORDER_OF_A_MATRIX)
@instruction(
    "movmatrix.sync.aligned.m8n8.trans.b16 d, a;",
    section="9.7.14.5.17",
    types="d: b32 plain, a: b32 plain word",
    needs={"": "PTX 7.8, sm_75"},
    exact=MOVED,
)
def movmatrix(i, a, warp):
    """Transpose a matrix of 8 by 8 elements of 16 bits across the registers of a warp."""
    peers = yield warp.converge(all_lanes(warp), a)
    tiles = Tiles(2, ((0, 0),), transposed=True)
    halves = []
    for n in range(2):
        row, column = tiles(warp.lane, n)
        register = peers.at((row << 2) + (column >> 1))
        halves.append(select((column & 1).eq(0), register & 0xFFFF, register >> 16))
    return halves[0] | halves[1] << 16


# ptxas takes a predicate for a register of it, too; what it moves is not said.
moving_predicates = partial(checked, section="9.7.14.5.17", needs={"": "PTX 7.8, sm_75"})


@has(ORDER_OF_A_MATRIX)
@moving_predicates("movmatrix.sync.aligned.m8n8.trans.b16 d, {!}a;", types="d: b32 plain, a: pred plain reg")
def movmatrix_of_predicates(i, a):
    """Transpose a matrix of which each lane has a predicate."""


@has(ORDER_OF_A_MATRIX)
@moving_predicates("movmatrix.sync.aligned.m8n8.trans.b16 d, a;", types="d: pred plain, a: b32 plain word")
def movmatrix_to_predicates(i, a):
    """Transpose a matrix, of which each lane gets a predicate."""

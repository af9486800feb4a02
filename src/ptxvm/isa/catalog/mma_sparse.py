"""Warp matrix products: sparse and block-scaled (PTX 9.7.14.3, 9.7.14.6)."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial

from ptxvm.algebra.ports import Peers, Warp
from ptxvm.algebra.types import Type, b32, f16, f16x2, f32, s32, u32
from ptxvm.algebra.value import Value
from ptxvm.diagnostics import Severity
from ptxvm.isa import fragments
from ptxvm.isa.access import Trait, elements, has, no_address, vector_of_sinks
from ptxvm.isa.emulated_products import special_in_an_emulated_product
from ptxvm.isa.exactness import SPARSE_SUMS, SUMS
from ptxvm.isa.fragments import Fragment, Product, Scaling, Sparsity
from ptxvm.isa.matrix import all_lanes, one_word, selected, wrong_sort
from ptxvm.isa.model import Decoded, Problem, instruction

BLACKWELL = 100  # sm_100
NARROW = ("e3m2", "e2m3", "e2m1")
SMALL = ("e4m3", "e5m2", *NARROW)

# For each shape of a type the registers of A and B, and the most that the selector of the metadata may be.
SPARSE = {
    "f16 bf16": {"m16n8k16": (2, 2, 3), "m16n8k32": (4, 4, 1)},
    "tf32":     {"m16n8k8": (2, 2, 3), "m16n8k16": (4, 4, 1)},
    "s8 u8":    {"m16n8k32": (2, 2, 1), "m16n8k64": (4, 4, 0)},
    "s4 u4":    {"m16n8k64": (2, 2, 1), "m16n8k128": (4, 4, 0)},
    " ".join(SMALL): {"m16n8k64": (4, 4, 0)},
}  # fmt: skip
ALIKE = ("s8 u8", "s4 u4", " ".join(SMALL), "f16", "bf16", "tf32")
ILLEGAL = "Unexpected instruction types specified for 'mma'"


def shape_of(i: Decoded) -> tuple[int, int, int] | None:
    """What the table has for the type and the shape."""
    shapes = next((shapes for types, shapes in SPARSE.items() if i.atype.name in types.split()), {})
    return shapes.get(i.mnk)


def shape_of_a_sparse_product(i):
    """The shape is one that the type has."""
    if shape_of(i) is None:
        return Problem("P2701", f"there is no sparse '.{i.mnk}' of {i.atype}", word=i.mnk,
                       ptxas=f"Illegal matrix shape '.{i.mnk}' for instruction 'Sparse mma'")  # fmt: skip
    return None


def types_of_a_sparse_product(i):
    """A and B are of one kind; C and D of one type, which for all but f16 and small floats is wide."""
    alike = next((types.split() for types in ALIKE if i.atype.name in types.split()), [])
    if i.btype.name not in alike:
        return Problem("P2741", f"A is of {i.atype} and B of {i.btype}, which do not go together", ptxas=ILLEGAL)
    halves = i.dtype is f16 and i.atype.name not in ("f16", *SMALL)
    if i.dtype is not i.ctype or halves:
        return Problem("P2741", f"sums in {i.dtype} and {i.ctype} do not go with {i.atype}", ptxas=ILLEGAL)
    return None


def registers_of_a_sparse_product(i):
    """Each matrix is a vector of the registers that its type and shape need."""
    sums = 2 if i.dtype is f16 else 4
    a, b, _ = shape_of(i) or (0, 0, 0)
    if not a:
        return None
    for operand, wanted in (("d", sums), ("a", a), ("b", b), ("c", sums)):
        if wrong := wrong_vector(i, operand, wanted):
            return wrong
    return None


def wrong_vector(i, operand, wanted):
    """Is the operand a vector of so many registers, of the sort that the matrix needs?"""
    shape = i.shape(operand)
    if shape.kind != "vector" or elements(shape) != wanted:
        return Problem("P2742", f"a vector of {wanted} registers is expected", operand=operand,
                       ptxas="Argument vector size mismatch for instruction 'mma'")  # fmt: skip
    if said := vector_of_sinks(i, operand):
        return Problem("P2742", said, operand=operand, ptxas=said)
    return wrong_sort(i, operand, sort_of_register(i.dtype if operand in "cd" else i.atype))


def sort_of_register(element):
    """What the registers of a matrix hold, by the type of its elements."""
    return {f32: f32, f16: f16x2, s32: u32}.get(element, b32)


def selector_of_metadata(i):
    """The selector names the threads whose metadata count: 0 to 3, 0 to 1, or 0."""
    known, selector = shape_of(i), i.value("selector")
    if known is None or selector is None or 0 <= selector <= known[2]:
        return None
    said = f"Argument 5 of instruction 'Sparse mma': value '{selector}' out of range, expected to be in range [0..{known[2]}]"
    return Problem("P2743", f"the selector is 0 to {known[2]} here, not {selector}", operand="selector", ptxas=said)


def reordered_metadata(i):
    """Has it metadata in any order, which ptxas puts in order from sm_100 on?"""
    return i.bound.get("sparse") == "sp" and i.target.number >= BLACKWELL


PRODUCT = Trait(
    rules=[
        *no_address("metadata", when=reordered_metadata).rules,
        ("P2701", shape_of_a_sparse_product),
        ("P2741", types_of_a_sparse_product),
        ("P2742", registers_of_a_sparse_product),
        ("P2743", selector_of_metadata),
        ("P2712", special_in_an_emulated_product),
    ]
)
TYPES = "d: b32, a b c: b32 passed, metadata: b32 plain word registers, selector: u32 imm"
SHAPES = ".mnk = { .m16n8k8, .m16n8k16, .m16n8k32, .m16n8k64, .m16n8k128 };"
SLOTS = ".sparse = { .sp, .sp::ordered_metadata };" + SHAPES
HEAD = "mma.sparse.sync.aligned.mnk.row.col"
OPERANDS = "d, a, b, c, metadata, selector"
NEEDS = {"": "PTX 7.1, sm_80", ".sp::ordered_metadata": "PTX 8.5"}
multiplying = partial(instruction, section="9.7.14.6.3", types=TYPES, needs=NEEDS, exact=SPARSE_SUMS)


# ── the product ─────────────────────────────────────────────────────────────────────────


def fragment(i: Decoded, matrix: str, type: Type, shape: str, *, halved: bool) -> Fragment:
    """The fragment of a matrix; of kinds with scales of four bits the elements stand in half bytes."""
    return fragments.halved_fragment(matrix, shape) if halved else fragments.mma_fragment(matrix, type, shape)


def product(
    i: Decoded, *, sparsity: Sparsity | None = None, scaling: Scaling | None = None, halved: bool = False, finite: bool = False
) -> Product:
    """What the instruction computes; the stored half of a sparse A lies as a dense A of half the depth."""
    stored = i.mnk if sparsity is None else fragments.half_as_deep(i.mnk)
    return Product(
        fragment(i, "a", i.atype, stored, halved=halved),
        fragment(i, "b", i.btype, i.mnk, halved=halved),
        fragment(i, "c", i.ctype, i.mnk, halved=False),
        fragment(i, "d", i.dtype, i.mnk, halved=False),
        sparsity=sparsity, scaling=scaling, finite=finite,
    )  # fmt: skip


def multiply_sparse(
    i: Decoded,
    a: list[Value],
    b: list[Value],
    c: list[Value],
    metadata: Value | list[Value],
    selector: Value,
    warp: Warp,
    *,
    finite: bool = False,
) -> Generator[object, Peers, list[Value]]:
    """The lanes that the selector names have the metadata of their group of four (PTX 9.7.14.6.1)."""
    peers = yield warp.converge(all_lanes(warp), one_word(metadata))
    sparsity = fragments.sparsity(i.atype, i.mnk, paired=i.atype.bits == 4 and i.atype.is_int)
    made = product(i, sparsity=sparsity, finite=finite)
    return peers.multiply(made, a, b, c, [selected(peers, 0, warp.lane, selector, sparsity.threads)])


@has(PRODUCT)
@multiplying(
    f"""
    {HEAD}.dtype.atype.btype.ctype  {OPERANDS};
    .dtype = .ctype = {{ .f16, .f32 }};
    .atype = .btype = {{ .f16, .bf16, .tf32 }};
    {SLOTS}
    """
)
def mma_sp(i, a, b, c, metadata, selector, warp):
    """Multiply a sparse matrix of f16, bf16 or tf32 with a dense one and add a third, in the registers of a warp."""
    return (yield from multiply_sparse(i, a, b, c, metadata, selector, warp))


@has(PRODUCT)
@multiplying(
    f"""
    {HEAD}{{.satfinite}}.dtype.atype.btype.ctype  {OPERANDS};
    .dtype = .ctype = {{ .s32 }};
    .atype = .btype = {{ .s8, .u8, .s4, .u4 }};
    {SLOTS}
    """
)
def mma_sp_integer(i, a, b, c, metadata, selector, warp):
    """Multiply a sparse matrix of bytes or half bytes with a dense one and add a third, in the registers of a warp."""
    return (yield from multiply_sparse(i, a, b, c, metadata, selector, warp, finite=i.satfinite))


@has(PRODUCT)
@multiplying(
    f"""
    {HEAD}{{.kind}}.dtype.atype.btype.ctype  {OPERANDS};
    .kind  = {{ .kind::f8f6f4 }};
    .dtype = .ctype = {{ .f16, .f32 }};
    .atype = .btype = {{ {", ".join(f".{name}" for name in SMALL)} }};
    {SLOTS}
    """,
    needs={**NEEDS, "": "PTX 8.4, sm_89", ".kind::f8f6f4": "PTX 8.7, sm_100f sm_110f sm_120f"},
)
def mma_sp_small(i, a, b, c, metadata, selector, warp):
    """Multiply a sparse matrix of floats of a byte or less with a dense one and add a third, in a warp."""
    return (yield from multiply_sparse(i, a, b, c, metadata, selector, warp))


def metadata_in_any_order(i: Decoded) -> Problem | None:
    """With .sp::ordered_metadata the product is as quick on later targets as on these; with .sp it may not be."""
    if i.sparse != "sp":
        return None
    ptxas = (
        "Advisory: Modifier '.sp::ordered_metadata' should be used on instruction 'mma' instead of modifier '.sp' as it is "
        "expected to have substantially reduced performance on some future architectures"
    )
    said, help = "later targets may be slow with '.sp'", "order the metadata, and write `.sp::ordered_metadata`"
    return Problem("P2748", said, word="sp", help=help, ptxas=ptxas, severity=Severity.NOTE)


for unordered in (mma_sp, mma_sp_integer, mma_sp_small):
    unordered.rule("P2748")(metadata_in_any_order)


@mma_sp_small.rule("P2744")
def narrow_floats_without_a_kind(i):
    """Floats of less than a byte need .kind::f8f6f4, and that needs .sp::ordered_metadata."""
    narrow = {i.atype.name, i.btype.name} & set(NARROW)
    if (narrow and not i.kind) or (i.kind and i.sparse == "sp"):
        return Problem("P2744", "'.sp::ordered_metadata' and '.kind::f8f6f4' go together here", ptxas=ILLEGAL)
    return None


@mma_sp_small.needs_when("PTX 8.7, sm_120f")
def narrow_floats_or_halves(i):
    return bool({i.atype.name, i.btype.name} & set(NARROW)) or i.dtype is f16


# ── scaled blocks ───────────────────────────────────────────────────────────────────────

# For each kind the types of A and B, the shape, and for each size of scale vectors the types of the scales.
SCALED: dict[str, tuple[tuple[str, ...], str, dict[str | None, tuple[str, ...]]]] = {
    "kind::mxf8f6f4": (SMALL, "m16n8k32", {None: ("ue8m0",), "scale_vec::1X": ("ue8m0",)}),
    "kind::mxf4":     (("e2m1",), "m16n8k64", {None: ("ue8m0",), "scale_vec::2X": ("ue8m0",)}),
    "kind::mxf4nvf4": (("e2m1",), "m16n8k64", {"scale_vec::2X": ("ue8m0",), "scale_vec::4X": ("ue4m3", "ue8m0")}),
}  # fmt: skip
SCALED_SLOTS = f"""
    .mnk   = {{ .m16n8k32, .m16n8k64, .m16n8k128 }};
    .kind  = {{ {", ".join(f".{kind}" for kind in SCALED)} }};
    .size  = {{ .scale_vec::1X, .scale_vec::2X, .scale_vec::4X }};
    .dtype = .ctype = {{ .f32 }};
    .atype = .btype = {{ {", ".join(f".{name}" for name in SMALL)} }};
    .stype = {{ .ue8m0, .ue4m3 }};
    """
SCALED_HEAD = "mma.sync.aligned.mnk.row.col.kind.block_scale{.size}.dtype.atype.btype.ctype.stype"
SCALES = "scale_a, ids_a, scale_b, ids_b"
SCALED_TYPES = f"{TYPES}, scale_a scale_b: b32 plain reg registers, ids_a ids_b: u16"


def types_of_a_scaled_product(i):
    """The kind has these types, this shape, and scales of this type."""
    types, mnk, scales = SCALED[i.kind]
    sparse = {"m16n8k32": "m16n8k64", "m16n8k64": "m16n8k128"}[mnk]
    shape = sparse if "metadata" in i.of.sources else mnk
    fits = {i.atype.name, i.btype.name} <= set(types) and i.mnk == shape and i.bound["stype"] in scales.get(i.size, ())
    return None if fits else Problem("P2701", f"'.{i.kind}' has no such types, shape or scales", word=i.kind, ptxas=ILLEGAL)


def registers_of_a_scaled_product(i):
    """Each matrix is a vector of the registers that its type and shape need; a scale has a vector of two numbers."""
    b = 4 if "metadata" in i.of.sources else 2
    wanted = (("d", 4), ("a", 4), ("b", b), ("c", 4))
    if wrong := next((found for operand, count in wanted if (found := wrong_vector(i, operand, count))), None):
        return wrong
    for operand in ("ids_a", "ids_b"):
        if i.shape(operand).kind != "vector" or elements(i.shape(operand)) != 2:
            return Problem("P2746", "the numbers of a byte and a thread are expected, in braces", operand=operand,
                           ptxas="Argument vector size mismatch for instruction 'mma'")  # fmt: skip
    return None


SCALED_PRODUCT = Trait(rules=[("P2701", types_of_a_scaled_product), ("P2746", registers_of_a_scaled_product)])
SCALED_NEEDS = {"": "PTX 8.7, sm_120f"}
scaling = partial(instruction, section="9.7.14.5.14", types=SCALED_TYPES, needs=SCALED_NEEDS, exact=SUMS)
BLOCKS = {None: 1, "scale_vec::1X": 1, "scale_vec::2X": 2, "scale_vec::4X": 4}


def in_half_bytes(i: Decoded) -> bool:
    """Do the elements stand in half bytes, as those of .kind::mxf4 and .kind::mxf4nvf4 do?"""
    return SCALED[i.kind][1] == "m16n8k64"


def scaled_product(i: Decoded, sparsity: Sparsity | None = None) -> Product:
    """The product of blocks with scales."""
    halved = in_half_bytes(i)
    blocks = 2 if halved and i.size is None else BLOCKS[i.size]
    return product(i, sparsity=sparsity, scaling=fragments.scaling(i.mnk, blocks, Type.named[i.bound["stype"]]), halved=halved)


def scales(peers: Peers, first: int, lane: Value, ids_a: list[Value], ids_b: list[Value]) -> list[list[Value]]:
    """The scales in the lowest bytes: those of A of one of two pairs of lanes, those of B of one of four lanes."""
    words = selected(peers, first, lane, ids_a[1], 2), selected(peers, first + 1, lane, ids_b[1], 1)
    return [[word >> (ids[0].to(u32) * 8)] for word, ids in zip(words, (ids_a, ids_b), strict=True)]


@has(SCALED_PRODUCT)
@scaling(f"{SCALED_HEAD}  d, a, b, c, {SCALES}; {SCALED_SLOTS}")
def mma_scaled(i, a, b, c, scale_a, ids_a, scale_b, ids_b, warp):
    """Multiply two matrices whose blocks have scales and add a third, all in the registers of a warp."""
    peers = yield warp.converge(all_lanes(warp), one_word(scale_a), one_word(scale_b))
    return peers.multiply(scaled_product(i), a, b, c, *scales(peers, 0, warp.lane, ids_a, ids_b))


@mma_scaled.needs_when("PTX 9.1")
def powers_of_two_for_small_blocks(i):
    return i.size == "scale_vec::4X" and i.bound["stype"] == "ue8m0"


@has(SCALED_PRODUCT)
@scaling(
    f"""
    {SCALED_HEAD.replace("mma.sync", "mma.sp::ordered_metadata.sync")}  {OPERANDS}, {SCALES};
    {SCALED_SLOTS}
    """,
    section="9.7.14.6.3",
)
def mma_sp_scaled(i, a, b, c, metadata, selector, scale_a, ids_a, scale_b, ids_b, warp):
    """Multiply a sparse matrix with a dense one, whose blocks have scales, and add a third, in the registers of a warp."""
    peers = yield warp.converge(all_lanes(warp), *map(one_word, (metadata, scale_a, scale_b)))
    sparsity = fragments.sparsity(i.atype, i.mnk, paired=in_half_bytes(i))
    words = selected(peers, 0, warp.lane, selector, sparsity.threads)
    return peers.multiply(scaled_product(i, sparsity), a, b, c, [words], *scales(peers, 1, warp.lane, ids_a, ids_b))


@mma_sp_scaled.rule("P2747")
def selector_of_scaled_metadata(i):
    """The selector is 0."""
    selector = i.value("selector")
    return f"Argument 5 of instruction 'mma': unexpected value '{selector}', expected to be 0" if selector else None


@mma_sp_scaled.needs_when("sm_120a sm_121a")
def four_bits(i):
    return i.kind in ("kind::mxf4", "kind::mxf4nvf4")

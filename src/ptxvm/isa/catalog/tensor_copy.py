"""Tensor copies (PTX 9.7.9.25.5, 9.7.9.28, 9.7.13.16)."""

from __future__ import annotations

from functools import partial

from ptxvm.algebra.memory_order import Order, Scope
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import b64, f32, u32
from ptxvm.isa.access import (
    TO_SEVERAL,
    WEAK,
    Trait,
    addresses,
    base_of,
    elements,
    has,
    of_a_word,
    policy_without_hint,
    space_of,
    special_added,
    window,
)
from ptxvm.isa.matrix import all_lanes
from ptxvm.isa.mbarrier import completed
from ptxvm.isa.model import Problem, instruction
from ptxvm.isa.operand_types import is_address_register
from ptxvm.isa.tensor_map import FIELDS, SIZE
from ptxvm.isa.transfers import Pattern, Transfer

IM2COL = ("im2col", "im2col::w", "im2col::w::128", "im2col_no_offs")
FOUR_ROWS = ("tile::gather4", "tile::scatter4")


def dimensions_of_a_mode(i):
    """The im2col modes are for tensors of 3 to 5 dimensions, .tile::gather4 and .tile::scatter4 for those of 2."""
    dimensions = int(i.dim[0])
    if (i.mode in IM2COL and dimensions < 3) or (i.mode in FOUR_ROWS and dimensions != 2):
        return f"Illegal modifier '.{i.mode}' for instruction '{i.opcode}' with '.{i.dim}'"
    return None


def number_of_coordinates(i):
    """There is a coordinate for each dimension; with four rows, one column and four of them."""
    wanted = 5 if i.mode in FOUR_ROWS else int(i.dim[0])
    if i.shape("c").kind == "vector" and elements(i.shape("c")) == wanted:
        return None
    return Problem("P3402", f"{wanted} coordinates are expected", operand="c",
                   ptxas=f"Vector of size {wanted} is expected for argument of instruction '{i.opcode}'")  # fmt: skip


def number_of_offsets(i):
    """.im2col has an offset for each dimension but two, .im2col::w and .im2col::w::128 have two offsets."""
    offsets, wanted = i.shape("offsets"), int(i.dim[0]) - 2 if i.mode == "im2col" else 2
    if offsets is None or (offsets.kind == "vector" and elements(offsets) == wanted):
        return None
    return Problem("P3403", f"{wanted} offsets are expected", operand="offsets",
                   ptxas=f"Vector of size {wanted} is expected for argument of instruction '{i.opcode}'")  # fmt: skip


def space_of_a_tensor_map(i):
    """A tensor map lies in .param, .const or .global memory."""
    base = base_of(i.shape("map")) if i.shape("map").kind in ("address", "offset") else i.shape("map")
    if base.kind != "variable" or base.space.window in (Space.PARAM, Space.CONST, Space.GLOBAL):
        return None
    ptxas = f"State space mismatch between instruction and address in instruction '{i.opcode}'"
    return Problem("P3404", f"the variable lies in .{base.space}, and a tensor map does not", operand="map", ptxas=ptxas)


TENSOR = Trait(
    rules=[
        ("P3401", dimensions_of_a_mode),
        ("P3402", number_of_coordinates),
        ("P3403", number_of_offsets),
        ("P3404", space_of_a_tensor_map),
        ("P1811", policy_without_hint),
    ]
)
IN_SHARED = addresses(a=Space.SHARED, bar=Space.SHARED)
BLACKWELL = "PTX 8.6, sm_100f sm_110f"
NEEDS = {
    "": "PTX 8.0, sm_90",
    ".tile::scatter4 .im2col::w::128 .cta_group::1 .cta_group::2": BLACKWELL,
    ".multicast::cluster::16b": "PTX 9.4",
}
TYPES = "a bar: u64, map: u64 loose, c: s32, offsets: u16, mask: u16 plain numeric, policy: u64 plain numeric"
SLOTS = """
    .dim       = { .1d, .2d, .3d, .4d, .5d };
    .dst       = { .shared::cta, .shared::cluster };
    .multicast = { .multicast::cluster, .multicast::cluster::16b };
    .group     = { .cta_group::1, .cta_group::2 };
    .hint      = { .L2::cache_hint };
    """
TILES = ".mode = { .tile, .tile::gather4 };"
COLUMNS = ".mode = { .im2col, .im2col::w, .im2col::w::128 };"
# ptxas takes these two without brackets, and registers of any type, floats and predicates there.
BARE_A, BARE_BAR = "{[}a{]}", "{[}bar{]}"
LOAD = "cp.async.bulk.tensor.dim.dst.global{mode}.mbarrier::complete_tx::bytes"
LOADS_TILE, LOADS_COLUMNS = LOAD.replace("{mode}", "{.mode}"), LOAD.replace("{mode}", ".mode")

loading = partial(instruction, section="9.7.9.25.5.2", types=TYPES, needs=NEEDS, fixed="async bulk tensor")


def gather4_to_shared_cta(i):
    """Does it load four rows to `.shared::cta`?"""
    return i.mode == "tile::gather4" and i.dst == Space.SHARED_CTA


def gather4_to_shared_cluster(i):
    """Does it load four rows to `.shared::cluster`?"""
    return i.mode == "tile::gather4" and i.dst == Space.SHARED_CLUSTER


def im2col_w_to_shared_cta(i):
    """Does it load `.im2col::w` to `.shared::cta`?"""
    return i.mode == "im2col::w" and i.dst == Space.SHARED_CTA


def im2col_w_to_shared_cluster(i):
    """Does it load `.im2col::w` to `.shared::cluster`?"""
    return i.mode == "im2col::w" and i.dst == Space.SHARED_CLUSTER


def tensor_copy_to_shared_cta(i):
    """Does it load to `.shared::cta`?"""
    return i.dst == Space.SHARED_CTA


def several_ctas_from_one(i):
    """A copy to several CTAs is to .shared::cluster."""
    if i.multicast and i.dst != Space.SHARED_CLUSTER:
        return f"Illegal modifier '.{i.multicast}' for instruction '{i.opcode}' with '.shared::cta'"
    return None


def load_of(i):
    """The transfer of a load."""
    to = Space.SHARED if i.dst == Space.SHARED_CTA else Space.SHARED_CLUSTER
    return Transfer(
        Pattern.TENSOR, to, Space.GLOBAL, mbarrier=True, multicast=bool(i.multicast), pair=i.group == "cta_group::2",
        mode=i.mode or "tile",
    )  # fmt: skip


def copied_addresses(i):
    """sm_120 and later have the addresses of a load to .shared::cluster in registers of 64 bits, or integers of 32."""
    if i.target.number < 120 or i.dst != Space.SHARED_CLUSTER:
        return None
    for operand in ("a", "map", "bar"):
        base = base_of(i.shape(operand)) if i.shape(operand).kind == "address" else i.shape(operand)
        least = 32 if base.type is not None and operand != "map" and is_address_register(base) else 64
        if base.kind == "special" and operand != "map":
            return special_added("P3410", operand)
        wide = base.type is not None and least <= base.type.bits <= 64
        if base.kind in ("float", "not") or (base.kind == "register" and not wide):
            return Problem("P3410", f"an address of 64 bits is needed on {i.target}", operand=operand,
                           ptxas="Arguments mismatch for instruction 'mov'")  # fmt: skip
    return None


LOADS = Trait(
    rules=[("P3405", several_ctas_from_one), ("P3410", copied_addresses), *TO_SEVERAL.rules],
    needs=[
        ("PTX 8.6, sm_100", gather4_to_shared_cta),
        ("PTX 8.6, sm_100", im2col_w_to_shared_cta),
        (BLACKWELL, gather4_to_shared_cluster),
        (BLACKWELL, im2col_w_to_shared_cluster),
        ("PTX 8.6", tensor_copy_to_shared_cta),
    ],
)


@has(TENSOR, IN_SHARED, LOADS)
@loading(
    f"""
    {LOADS_TILE}{{.group}}{{.hint}}             {BARE_A}, [map, c], {BARE_BAR}{{, policy}};
    {LOADS_TILE}.multicast{{.group}}{{.hint}}  {BARE_A}, [map, c], {BARE_BAR}, mask{{, policy}};
    {TILES} {SLOTS}
    """
)
def cp_async_bulk_tensor(i, a, map, c, bar, mask, policy, tasks):
    """Start to copy a tile of a tensor to shared memory; at the end its bytes are counted by an mbarrier."""
    tasks.transfer(load_of(i), completed, a=a, map=map, c=c, bar=bar, mask=mask and mask.to(u32))


@has(TENSOR, IN_SHARED, LOADS)
@loading(
    f"""
    {LOADS_COLUMNS}{{.group}}{{.hint}}             {BARE_A}, [map, c], {BARE_BAR}, offsets{{, policy}};
    {LOADS_COLUMNS}.multicast{{.group}}{{.hint}}  {BARE_A}, [map, c], {BARE_BAR}, offsets, mask{{, policy}};
    {COLUMNS} {SLOTS}
    """
)
def cp_async_bulk_tensor_im2col(i, a, map, c, bar, offsets, mask, policy, tasks):
    """Start to copy the columns of an image that a convolution needs to shared memory."""
    words = [each.to(u32) for each in offsets]
    tasks.transfer(load_of(i), completed, a=a, map=map, c=c, bar=bar, offsets=words, mask=mask and mask.to(u32))


STORED = ".mode = { .tile, .im2col_no_offs, .tile::scatter4 };"


@has(TENSOR, IN_SHARED)
@instruction(
    f"""
    cp.async.bulk.tensor.dim.global.shared::cta{{.mode}}.bulk_group{{.hint}}  [map, c], {BARE_A}{{, policy}};
    {STORED} {SLOTS}
    """,
    section="9.7.9.25.5.2",
    types=TYPES,
    needs=NEEDS,
    fixed="async bulk tensor",
)
def cp_async_bulk_tensor_store(i, map, c, a, policy, tasks):
    """Start to copy from shared memory to a part of a tensor, as one of the next bulk group."""
    tasks.transfer(Transfer(Pattern.TENSOR, Space.GLOBAL, Space.SHARED, mode=i.mode or "tile"), completed, a=a, map=map, c=c)


@has(TENSOR, IN_SHARED)
@instruction(
    f"""
    cp.reduce.async.bulk.tensor.dim.global.shared::cta.op{{.mode}}.bulk_group{{.hint}}  [map, c], {BARE_A}{{, policy}};
    .op = {{ .add, .min, .max, .inc, .dec, .and, .or, .xor }};
    {STORED} {SLOTS}
    """,
    section="9.7.9.25.5.3",
    types=TYPES,
    needs=NEEDS,
    fixed="reduce async bulk tensor",
)
def cp_reduce_async_bulk_tensor(i, map, c, a, policy, tasks):
    """Start to combine what lies in shared memory with a part of a tensor, and leave the results there."""
    kind = Transfer(Pattern.TENSOR, Space.GLOBAL, Space.SHARED, operation=i.op, mode=i.mode or "tile")
    tasks.transfer(kind, completed, a=a, map=map, c=c)


PREFETCH = "cp.async.bulk.prefetch.tensor.dim.L2.global"
prefetching = partial(
    instruction,
    section="9.7.9.25.5.4",
    types=TYPES,
    needs={**NEEDS, ".tile::gather4 .im2col::w": BLACKWELL},
    fixed="async bulk prefetch tensor",
)


@has(TENSOR)
@prefetching(f"{PREFETCH}{{.mode}}{{.hint}}  [map, c]{{, policy}}; {TILES} {SLOTS}")
def cp_async_bulk_prefetch_tensor(i, map, c, policy, mem):
    """Ask for a tile of a tensor to be brought into the L2 cache; in ptxvm without effect."""
    mem.prefetch(Space.GLOBAL, map, level="L2")


@has(TENSOR)
@prefetching(f"{PREFETCH}.mode{{.hint}}  [map, c], offsets{{, policy}}; {COLUMNS} {SLOTS}")
def cp_async_bulk_prefetch_tensor_im2col(i, map, c, offsets, policy, mem):
    """Ask for the columns of an image that a convolution needs to be brought into the L2 cache; in ptxvm without effect."""
    mem.prefetch(Space.GLOBAL, map, level="L2")


# ── tensor maps ─────────────────────────────────────────────────────────────────────────

REPLACE = "tensormap.replace.tile.field{.ss}.b1024.type"
REPLACE_SLOTS = ".ss = { .global, .shared::cta };"
ORDINALS = {"global_stride": 3}  # the others have one for each of five dimensions
VALUES = {"elemtype": 15, "interleave_layout": 2, "swizzle_mode": 4, "swizzle_atomicity": 3, "fill_mode": 1}
replacing = partial(
    instruction,
    section="9.7.9.28",
    types="a: u64, ordinal: u32 imm, value: type plain",
    needs={"": "PTX 8.3, sm_90a sm_100f sm_110f sm_120f", ".swizzle_atomicity": "PTX 8.6, sm_100f sm_110f sm_120f"},
    fixed="replace",
)


def replaced(i, a, ordinal, value, mem):
    """Store a field of a tensor map."""
    field = FIELDS[i.field]
    mem.store(window(i), field.type, a + field.at(ordinal), [value.view(value.type.as_unsigned).to(field.type)], **WEAK)


@has(addresses(a=space_of), of_a_word("a"))
@replacing(
    f"{REPLACE}  [a], value; .field = {{ .global_address, .rank }}; .type = {{ .b32, .b64 }}; {REPLACE_SLOTS}",
)
def tensormap_replace(i, a, value, mem):
    """Change the address or the rank in a tensor map."""
    replaced(i, a, 0, value, mem)


@has(addresses(a=space_of), of_a_word("a"))
@replacing(
    f"""
    {REPLACE}  [a], ordinal, value;
    .field = {{ .box_dim, .global_dim, .global_stride, .element_stride }};
    .type  = {{ .b32, .b64 }};
    {REPLACE_SLOTS}
    """
)
def tensormap_replace_dimension(i, a, ordinal, value, mem):
    """Change what a tensor map has for one dimension."""
    replaced(i, a, i.value("ordinal"), value, mem)


@has(addresses(a=space_of), of_a_word("a"))
@replacing(
    f"""
    {REPLACE}  [a], value;
    .field = {{ .elemtype, .interleave_layout, .swizzle_mode, .swizzle_atomicity, .fill_mode }};
    .type  = {{ .b32, .b64 }};
    {REPLACE_SLOTS}
    """,
    types="a: u64, value: b32 imm",
)
def tensormap_replace_property(i, a, value, mem):
    """Change the type of the elements or how they lie in a tensor map."""
    replaced(i, a, 0, value, mem)


@tensormap_replace.rule("P3406")
@tensormap_replace_dimension.rule("P3406")
@tensormap_replace_property.rule("P3406")
def type_of_a_field(i):
    """The address and the strides are of .b64, all else of .b32."""
    if (i.type.bits == 64) == (i.field in ("global_address", "global_stride")):
        return None
    return f"Illegal modifier '.{i.field}' for instruction '{i.opcode}' with type '{i.type}'"


@tensormap_replace_dimension.rule("P3411")
def integer_of_a_dimension(i):
    """A size or a step is an integer; a stride may be in any register of 64 bits."""
    value = i.shape("value")
    if i.type.bits == 64 or (value.kind != "float" and value.type is not f32):
        return None
    return Problem("P3411", "an integer is needed", operand="value", ptxas="Arguments mismatch for instruction 'sub'")


@tensormap_replace_dimension.rule("P3407")
def ordinal_of_a_dimension(i):
    """There are five dimensions, and four strides."""
    ordinal, most = i.value("ordinal"), ORDINALS.get(i.field, 4)
    if ordinal is None or 0 <= ordinal <= most:
        return None
    said = f"value '{ordinal}' expected to be in range [0..{most}] when .{i.field} modifier is used."
    return f"Argument 1 of instruction '{i.opcode}': {said}"


@tensormap_replace_property.rule("P3408")
def value_of_a_property(i):
    """A property of a tensor map has so many values (PTX 9.7.9.28, table 33)."""
    value, most = i.value("value"), VALUES[i.field]
    if value is None or 0 <= value <= most:
        return None
    said = f"value '{value}' expected to be in range [0..{most}] when .{i.field} modifier is used."
    return f"Argument 1 of instruction '{i.opcode}': {said}"


@has(addresses(a=Space.GLOBAL, b=Space.SHARED))
@instruction(
    """
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.scope.sync.aligned  [a], [b], size;
    .scope = { .cta, .cluster, .gpu, .sys };
    """,
    section="9.7.13.16",
    types="a b: u64, size: u32 imm",
    needs={"": "PTX 8.3, sm_90"},
    fixed="cp_fenceproxy",
)
def tensormap_cp_fenceproxy(i, a, b, size, mem, warp):
    """Copy a tensor map from shared to global memory, and order that before its use by others.

    It is one copy, in which all lanes of a warp take part: their stores of the same bytes are no race.
    """
    yield warp.converge(all_lanes(warp))
    together = {"order": Order.RELAXED, "scope": Scope(i.scope)}
    for at in range(0, SIZE, 16):
        mem.store(Space.GLOBAL, b64, a + at, mem.load(Space.SHARED, b64, b + at, 2, **WEAK), **together)
    mem.fence(Order.RELEASE, Scope(i.scope))


@tensormap_cp_fenceproxy.rule("P3409")
def bytes_of_a_tensor_map(i):
    """A tensor map has 128 bytes."""
    size = i.value("size")
    if size in (None, 128):
        return None
    return f"Argument 2 of instruction '{i.opcode}': unexpected value '{size}', expected to be 128"

"""Surface instructions (PTX 9.7.11)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ptxvm.algebra.ports import Textures
from ptxvm.algebra.types import Type
from ptxvm.algebra.value import Value
from ptxvm.isa.access import Trait, as_list, count, elements, has, result_vector, vector_of_sinks
from ptxvm.isa.model import Decoded, Problem, instruction
from ptxvm.isa.opaque import HANDLE, VECTOR_SIZES, size_problem
from ptxvm.isa.operand_types import Shape

# ── geometries ──────────────────────────────────────────────────────────────────────────

COORDINATES = {"1d": 1, "2d": 2, "3d": 4, "a1d": 2, "a2d": 4}
"""How many elements the vector of coordinates has, at least."""

SURFACE_SLOTS = """
    .geom  = { .1d, .2d, .3d, .a1d, .a2d };
    .vec   = { .v2, .v4 };
    .dtype = { .b8, .b16, .b32, .b64 };
    .clamp = { .trap, .clamp, .zero };
    """


def size_of_coordinates(i: Decoded) -> Problem | None:
    """The coordinates have as many elements as the geometry, or more that are ignored: 1, 2 or 4."""
    return size_problem(i, "P2901", "b", COORDINATES[i.geom], opcode(i))


def opcode(i: Decoded) -> str:
    """The opcode with its first word, as ptxas names it."""
    return f"{i.form.opcode}.{i.by}"


def clamping_modes(i: Decoded) -> bool:
    """Does it clamp, or read zero, outside of the surface?"""
    return bool(i.clamp != "trap")


def cache_operations(i: Decoded) -> bool:
    """Has it a cache operator?"""
    return i.cop is not None


def surface_arrays_and_volumes(i: Decoded) -> bool:
    """Has the surface layers, or a depth?"""
    return i.geom not in ("1d", "2d")


ACCESS = Trait(
    rules=[*HANDLE("surfref").rules, ("P2901", size_of_coordinates)],
    needs=[
        *HANDLE("surfref").needs,
        ("PTX 2.0", clamping_modes),
        ("PTX 3.0, sm_20", surface_arrays_and_volumes),
    ],
)
CACHED = Trait(rules=[], needs=[("PTX 2.0, sm_20", cache_operations)])

# ── values ──────────────────────────────────────────────────────────────────────────────


def vector_too_large(i: Decoded) -> str | None:
    """An access has 128 bits at most."""
    return "Vector type too large, exceeds 128 bit limit" if count(i) * i.dtype.bits > 128 else None


def parts(i: Decoded, operand: str) -> tuple[Type, ...]:
    """The types of the registers that hold one value together, `{%h1, %h2}`; none where it is in one operand."""
    shape = i.shape(operand)
    if shape is None or shape.kind != "vector":
        return ()
    known = [item.type for item in shape.items if item.kind == "register"]
    return tuple(item.type or (known[0] if known else i.dtype) for item in shape.items)


def value_in_parts(operand: str) -> Callable[[Decoded], Problem | None]:
    """The rule on one value that stands in braces."""

    def too_narrow(i: Decoded) -> Problem | None:
        """One value in several registers, {low, high}, has room in them."""
        shape: Shape = i.shape(operand)
        if shape.kind != "vector":
            return None
        if said := vector_of_sinks(i, operand):
            return Problem("P2902", said, operand=operand)
        if len(shape.items) not in VECTOR_SIZES:
            return Problem("P2902", f"there are 1, 2 or 4 registers in braces, not {len(shape.items)}", operand=operand,
                           ptxas=f"Illegal vector size: {len(shape.items)}")  # fmt: skip
        held = all(item.kind in ("register", "sink", "integer") for item in shape.items)
        if held and sum(type.bits for type in parts(i, operand)) >= i.dtype.bits:
            return None
        return Problem("P2902", f"the registers in braces hold one {i.dtype} together", operand=operand,
                       ptxas=f"Arguments mismatch for instruction '{opcode(i)}'")  # fmt: skip

    return too_narrow


def discarded(i: Decoded) -> str | None:
    """What is loaded needs a register."""
    return f"Result discard mode is not allowed for instruction '{opcode(i)}'" if i.shape("d").kind == "sink" else None


def stored_operand(i: Decoded) -> Problem | None:
    """What is stored is in registers, or constant: no special register, no address without an offset, no `_`."""
    shape = i.shape("c")
    if any(item.kind == "sink" for item in (shape, *shape.items)):
        return Problem("P2903", "'_' is for results only", operand="c", ptxas="Sink '_' not allowed as a source operand")
    if shape.kind == "special":
        return Problem("P2903", "a special register cannot be stored", operand="c", help="move it to a register first",
                       ptxas=f"Special register argument not allowed for instruction '{opcode(i)}'")  # fmt: skip
    if shape.kind == "variable" and shape.detail != "offset":
        return Problem("P2903", "the address of a variable cannot be stored", operand="c",
                       help="move it to a register first",
                       ptxas=f"Argument 2 of instruction '{opcode(i)}': must be register")  # fmt: skip
    return None


def stored_vector(i: Decoded) -> Problem | None:
    """A vector that is stored has as many elements as .vec says; one register or constant stands for all of them."""
    shape = i.shape("c")
    is_vector = shape.kind == "vector" or (shape.kind == "register" and isinstance(shape.detail, int))
    if not is_vector or elements(shape) == count(i):
        return None
    return Problem("P2904", f"{count(i)} elements expected, not {elements(shape)}", operand="c",
                   ptxas=f"Argument vector size mismatch for instruction '{opcode(i)}'")  # fmt: skip


def split(value: Value, types: tuple[Type, ...]) -> list[Value]:
    """A value laid over registers, the low bits first."""
    found, at = [], 0
    for type in types:
        part = (value >> at).to(type.as_unsigned) if at < value.type.bits else value.lift(0).to(type.as_unsigned)
        found.append(part.view(type.as_bits))
        at += type.bits
    return found


# ── suld ────────────────────────────────────────────────────────────────────────────────


SULD = """
    suld.by.geom{.cop}%s.dtype.clamp  d, [a, b];
    .by  = { .b };
    .cop = { .ca, .cg, .cs, .cv };
    """ + SURFACE_SLOTS  # fmt: skip
loading = partial(instruction, section="9.7.11.1", needs={"": "PTX 1.5"}, fixed=1)


@has(ACCESS, CACHED, Trait(rules=[("P2902", value_in_parts("d")), ("P2905", discarded)]))
@loading(SULD % "", types="d: dtype wide packed, a: u64, b: s32 coordinates")
def suld(i, a, b, tex):
    """Load from a surface, as bytes: the first coordinate counts bytes."""
    (value,) = tex.load(i.geom, i.dtype, 1, a, as_list(b), clamp=i.clamp)
    types = parts(i, "d")
    return split(value.view(i.dtype.as_unsigned), types) if types else value


@has(ACCESS, CACHED, result_vector("d"), Trait(rules=[("P2906", vector_too_large)]))
@loading(SULD % ".vec", types="d: dtype wide, a: u64, b: s32 coordinates")
def suld_vector(i, a, b, tex):
    """Load two or four values from a surface, as bytes: the first coordinate counts bytes."""
    return tex.load(i.geom, i.dtype, count(i), a, as_list(b), clamp=i.clamp)


# ── sust ────────────────────────────────────────────────────────────────────────────────

STORE = Trait(rules=[("P2903", stored_operand)])
FORMATTED = """
    .by    = { .p };
    .geom  = { .1d, .2d, .3d, .a1d, .a2d };
    .cop   = { .wb, .cg, .cs, .wt };
    .vec   = { .v2, .v4 };
    .dtype = { .b32 };
    .clamp = { .trap, .clamp, .zero };
    """


def formatted_store(i: Decoded) -> bool:
    """Is it in the format of the surface?"""
    return bool(i.by == "p")


def formatted_store_to_layers(i: Decoded) -> bool:
    """Is it in the format of the surface, and has that layers?"""
    return bool(i.by == "p" and i.geom in ("a1d", "a2d"))


FORMATTED_NEEDS = Trait(rules=[], needs=[("PTX 2.0, sm_20", formatted_store), ("PTX 4.1, sm_30", formatted_store_to_layers)])


def put(i: Decoded, a: Value, b: Value | list[Value], values: list[Value], tex: Textures) -> None:
    """Store values, as bytes or in the format of the surface."""
    tex.store(i.geom, i.dtype, a, as_list(b), values, clamp=i.clamp, formatted=i.by == "p")


SUST = """
    sust.by.geom{.cop}%s.dtype.clamp  [a, b], c;
    .by  = { .b };
    .cop = { .wb, .cg, .cs, .wt };
    """ + SURFACE_SLOTS  # fmt: skip
SUST_P = "sust.by.geom{.cop}%s.dtype.clamp  [a, b], c;" + FORMATTED
storing = partial(instruction, section="9.7.11.2", fixed=1)


def in_one(i: Decoded, c: Value | list[Value]) -> Value:
    """One value that is stored: an operand, or the registers that hold it together, the low bits first."""
    values: list[Value] = as_list(c)
    if not isinstance(c, list):
        return values[0]
    whole, at = values[0].view(i.dtype.as_unsigned), 0
    for part, type in zip(values, parts(i, "c"), strict=True):
        if 0 < at < i.dtype.bits:
            whole = whole | part.view(i.dtype.as_unsigned) << at
        at += type.bits
    return whole.view(i.dtype)


def in_all(i: Decoded, c: Value | list[Value]) -> list[Value]:
    """The values that are stored: a vector, or one operand that stands for all of them."""
    return list(c) if isinstance(c, list) else [c] * count(i)


@has(ACCESS, CACHED, STORE, Trait(rules=[("P2902", value_in_parts("c"))]))
@storing(SUST % "", types="a: u64, b: s32 coordinates, c: dtype wide packed", needs={"": "PTX 1.5"})
def sust(i, a, b, c, tex):
    """Store to a surface, as bytes: the first coordinate counts bytes."""
    put(i, a, b, [in_one(i, c)], tex)


@has(ACCESS, CACHED, STORE, Trait(rules=[("P2904", stored_vector), ("P2906", vector_too_large)]))
@storing(SUST % ".vec", types="a: u64, b: s32 coordinates, c: dtype wide", needs={"": "PTX 1.5"})
def sust_vector(i, a, b, c, tex):
    """Store two or four values to a surface, as bytes: the first coordinate counts bytes."""
    put(i, a, b, in_all(i, c), tex)


@has(ACCESS, CACHED, STORE, FORMATTED_NEEDS, Trait(rules=[("P2902", value_in_parts("c"))]))
@storing(SUST_P % "", types="a: u64, b: s32 coordinates, c: dtype wide packed", needs={"": "PTX 2.0, sm_20"})
def sust_formatted(i, a, b, c, tex):
    """Store the first component of an element of a surface, converted to its format."""
    put(i, a, b, [in_one(i, c)], tex)


@has(ACCESS, CACHED, STORE, FORMATTED_NEEDS, Trait(rules=[("P2904", stored_vector)]))
@storing(SUST_P % ".vec", types="a: u64, b: s32 coordinates, c: dtype wide", needs={"": "PTX 2.0, sm_20"})
def sust_formatted_vector(i, a, b, c, tex):
    """Store the components of an element of a surface, converted to its format."""
    put(i, a, b, in_all(i, c), tex)


# ── sured ───────────────────────────────────────────────────────────────────────────────

REDUCTIONS = {
    "add": "u32 s32 u64",
    "min": "u32 s32 u64 s64",
    "max": "u32 s32 u64 s64",
    "and": "b32",
    "or": "b32",
}
"""The types of each operation of sured.b."""

FORMATTED_REDUCTIONS = {"add": "b32", "min": "b32 b64", "max": "b32 b64", "and": "b32", "or": "b32"}
"""The types of each operation of sured.p."""


def wrong_reduction(i: Decoded) -> Problem | None:
    """Each operation has its types: numbers for add, min and max, bits for and, or."""
    types = (REDUCTIONS if i.by == "b" else FORMATTED_REDUCTIONS)[i.op].split()
    if i.ctype.name in types:
        return None
    wanted = " or ".join(f".{t}" for t in types)
    return Problem("P2907", f"'.{i.op}' works on {wanted}, not on {i.ctype}", word=i.ctype.name,
                   ptxas=f"Operation .{i.op} requires {wanted} type for instruction '{opcode(i)}'")  # fmt: skip


def extremes_of_64_bits(i: Decoded) -> bool:
    """Is it a minimum or maximum of 64 bits?"""
    return bool(i.op in ("min", "max") and i.ctype.bits == 64)


REDUCTION = Trait(rules=[("P2907", wrong_reduction)], needs=[("PTX 8.1, sm_50", extremes_of_64_bits)])


SURED = """
    sured.by.op.geom.ctype.clamp  [a, b], c;
    .by    = { .%s };
    .op    = { .add, .min, .max, .and, .or };
    .geom  = { .1d, .2d, .3d };
    .ctype = { %s };
    .clamp = { .trap, .clamp, .zero };
    """
reducing = partial(
    instruction,
    section="9.7.11.3",
    types="a: u64, b: s32 coordinates, c: ctype wide plain",
    needs={"": "PTX 2.0, sm_20"},
    fixed=1,
)


@has(ACCESS, REDUCTION)
@reducing(SURED % ("b", ".u32, .u64, .s32, .s64, .b32"))
def sured(i, a, b, c, tex):
    """Replace a value of a surface by the outcome of an operation with it; the first coordinate counts bytes."""
    tex.reduce(i.op, i.geom, i.ctype, a, as_list(b), c, clamp=i.clamp)


@has(ACCESS, REDUCTION)
@reducing(SURED % ("p", ".b32, .b64"))
def sured_formatted(i, a, b, c, tex):
    """Replace an element of a surface by the outcome of an operation with it, signed or not as the surface is."""
    tex.reduce(i.op, i.geom, i.ctype, a, as_list(b), c, clamp=i.clamp, formatted=True)


# ── suq ─────────────────────────────────────────────────────────────────────────────────


@has(HANDLE("surfref"))
@instruction(
    """
    suq.query.b32  d, [a];
    .query = { .width, .height, .depth, .channel_data_type, .channel_order, .array_size, .memory_layout };
    """,
    section="9.7.11.4",
    types="d: type plain, a: u64",
    needs={
        "": "PTX 1.5",
        ".channel_data_type .channel_order": "PTX 2.1",
        ".array_size": "PTX 4.1",
        ".memory_layout": "PTX 4.2",
    },
)
def suq(i, a, tex):
    """Query a surface: its size and its format."""
    return tex.query("surface", i.query, a)

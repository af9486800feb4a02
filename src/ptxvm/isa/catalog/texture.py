"""Texture instructions (PTX 9.7.10)."""

from __future__ import annotations

from ptxvm.algebra.derived.packed import pack
from ptxvm.algebra.types import f16, f32
from ptxvm.algebra.value import Value
from ptxvm.isa.access import as_list, before_hopper, elements, has, result_vector
from ptxvm.isa.exactness import FILTERED, MOVED
from ptxvm.isa.model import Decoded, Problem, instruction
from ptxvm.isa.opaque import HANDLE, is_handle, is_independent, size_problem
from ptxvm.isa.operand_types import Shape, disparity, in_words, is_float
from ptxvm.named_tuple import NamedTuple

# ── geometries ──────────────────────────────────────────────────────────────────────────


class Geometry(NamedTuple):
    """How many elements the vectors of a geometry have; None where it takes no such vector."""

    coordinates: int
    gradient: int | None
    offset: int | None
    ctype: str = "s32 f32"
    is_array: bool = False


GEOMETRY = {
    "1d": Geometry(1, 1, 1),
    "2d": Geometry(2, 2, 2),
    "3d": Geometry(4, 4, 4),
    "a1d": Geometry(2, 1, 1, is_array=True),
    "a2d": Geometry(4, 2, 2, is_array=True),
    "cube": Geometry(4, 4, None, "f32"),
    "acube": Geometry(4, 4, None, "f32", is_array=True),
    "2dms": Geometry(4, None, 2, "s32"),
    "a2dms": Geometry(4, None, 2, "s32", is_array=True),
}
VOLUME = GEOMETRY["3d"]
ANY_SIZE = ("cube", "acube")  # whose gradients ptxas lets have any size


def counted(i: Decoded) -> list[tuple[str, Shape]]:
    """The operands behind the texture, by name, as ptxas counts them for the rules on their sizes.

    It counts the sampler only in a module of independent mode.  In unified mode an explicit sampler takes the place of
    the coordinates, they that of the next operand, and so on: `[tex, sampler, {x, y}]` has an offset {x, y} for it.
    """
    names = ("c", "lod", "dPdx", "dPdy", "e", "f")
    ordered = names if is_independent(i) else ("b", *names)
    return [(name, i.shape(name)) for name in ordered if i.shape(name) is not None]


def arguments(i: Decoded) -> tuple[tuple[str, Shape], list[tuple[str, Shape]], list[tuple[str, Shape]]]:
    """What ptxas takes for the coordinates, for what picks the level, and for offset and depth."""
    first, *others = counted(i)
    levels = sum(i.shape(name) is not None for name in ("lod", "dPdx", "dPdy"))
    return first, others[:levels], others[levels:]


def is_vector(shape: Shape) -> bool:
    """Is it a vector in braces, or a vector register?"""
    return shape.kind == "vector" or (shape.kind == "register" and isinstance(shape.detail, int))


def may_be_depth(shape: Shape) -> bool:
    """May it be the depth to compare with: one f32?"""
    if is_vector(shape):
        return False
    return shape.kind == "float" or (shape.kind == "register" and shape.type in (f32, f32.as_bits))


# ── rules of tex and tld4 ───────────────────────────────────────────────────────────────


def wrong_coordinate_type(i: Decoded) -> Problem | None:
    """Cubes have .f32 coordinates, and multi-sample textures .s32."""
    wanted = GEOMETRY[i.geom].ctype.split()
    if i.ctype.name in wanted:
        return None
    return Problem("P2801", f"'.{i.geom}' has .{wanted[0]} coordinates", word=i.ctype.name,
                   ptxas=f"Illegal modifier '.{i.ctype.name}' for instruction '{i.form.opcode}'")  # fmt: skip


def wrong_vector(i: Decoded) -> str | None:
    """.f16x2 comes as .v2, any other type as .v4."""
    wanted = "v2" if i.dtype.is_packed else "v4"
    return None if i.vec == wanted else f"Instruction '{i.form.opcode}.{i.dtype.name}' requires .{wanted} type"


def samples_have_no_levels(i: Decoded) -> Problem | None:
    """A multi-sample texture has one level: no .level and no .grad."""
    if GEOMETRY[i.geom].gradient is None and (i.level or i.grad):
        return Problem("P2803", f"'.{i.geom}' has no levels of detail", word=i.geom,
                       ptxas=f"Illegal modifier 'Multi-sample geometry' for instruction '{opcode(i)}'")  # fmt: skip
    return None


def opcode(i: Decoded) -> str:
    """The opcode with the mode, as ptxas names it."""
    mode = next((m for m in ("base", "level", "grad") if m in i.of.modifiers and getattr(i, m)), "")
    return f"{i.form.opcode}.{mode}" if mode else str(i.form.opcode)


def wrong_sampler(i: Decoded) -> Problem | None:
    """In independent mode a sampler is named beside the texture, by its variable or a 64-bit register."""
    shape = i.shape("b")
    wanted = "samplerref" if is_independent(i) else "texref"
    if is_handle(shape, wanted) if shape is not None else not is_independent(i):
        return None
    return Problem("P2804", "a sampler is needed: a .samplerref variable or a 64-bit register",
                   operand="a" if shape is None else "b",
                   help="write [texture, sampler, coordinates]",
                   ptxas=f"Argument 2 of instruction '{i.form.opcode}': .samplerref or .u64 register expected")  # fmt: skip


def size_of_coordinates(i: Decoded) -> Problem | None:
    """The coordinates have as many elements as the geometry, or more that are ignored: 1, 2 or 4."""
    (name, shape), _, _ = arguments(i)
    wrong = size_problem(i, "P2805", name, GEOMETRY[i.geom].coordinates, opcode(i), shape)
    return wrong or size_problem(i, "P2805", "c", 0, opcode(i))


def mixed_coordinates(i: Decoded) -> Problem | None:
    """Beside the index of a layer, the coordinates have the type .ctype all."""
    c = i.shape("c")
    mixed = c.kind == "vector" and disparity(c.items) and not any(item.type is i.ctype.as_bits for item in c.items)
    if not mixed or (GEOMETRY[i.geom].is_array and arguments(i)[0][0] == "c"):
        return None
    return Problem("P2806", f"the coordinates of '.{i.geom}' are all {i.ctype} here", operand="c",
                   ptxas=f"Vector with elements of different types are not allowed in {opcode(i)} instruction")  # fmt: skip


def float_index(i: Decoded) -> Problem | None:
    """The first coordinate of an array is an integer, the index of the layer."""
    (name, shape), _, _ = arguments(i)
    if shape.kind == "vector" and GEOMETRY[i.geom].is_array and is_float(shape.items[0]):
        return Problem("P2807", "the index of a layer is a .u32", operand=name,
                       ptxas=f"Array index in the '{i.form.opcode}' instruction has unexpected type. Expecting type .u32",
                      )  # fmt: skip
    return None


def size_of_gradients(i: Decoded) -> Problem | None:
    """The gradients have an element for each direction."""
    _, gradients, _ = arguments(i)
    wanted = GEOMETRY[i.geom].gradient
    if not i.grad or wanted is None:
        return None
    for name, shape in gradients:
        if not is_vector(shape):
            return Problem("P2808", "a gradient is a vector in braces", operand=name,
                           ptxas="Vector expected for argument 3")  # fmt: skip
        if elements(shape) != wanted and i.geom not in ANY_SIZE:
            return Problem("P2808", f"a gradient of '.{i.geom}' has {wanted} elements, not {elements(shape)}", operand=name,
                           ptxas=f"Operand vector size doesn't match geometry for instruction '{opcode(i)}'")  # fmt: skip
    return None


MOVED_KINDS = {
    "special": "Special register argument not allowed for instruction 'mov'",
    "component": "Video selector is not allowed on source operand for instruction 'mov'",
}
"""What ptxas says of elements that it cannot move."""


def moved_gradients(i: Decoded) -> Problem | None:
    """With gradients of three directions coordinates and gradients are whole registers from sm_90 on: ptxas moves them."""
    first, gradients, _ = arguments(i)
    if not i.grad or GEOMETRY[i.geom].gradient != VOLUME.gradient or before_hopper(i):
        return None
    for name, shape in (first, *gradients):
        for item in shape.items:
            if item.kind in MOVED_KINDS:
                return Problem("P2818", f"{in_words(item)} stands where a whole register is needed", operand=name,
                               ptxas=MOVED_KINDS[item.kind])  # fmt: skip
    return None


def size_of_offset(i: Decoded) -> Problem | None:
    """An offset has an element for each direction of the geometry; cubes have none."""
    _, _, rest = arguments(i)
    if not rest or not is_vector(rest[0][1]):
        return None
    name, shape = rest[0]
    wanted = GEOMETRY[i.geom].offset
    if wanted is None:
        return Problem("P2809", f"'.{i.geom}' takes no offset", operand=name,
                       ptxas=f"Illegal modifier '.{i.geom}' for instruction '{opcode(i)}'")  # fmt: skip
    return size_problem(i, "P2809", name, wanted, opcode(i), shape)


def depth_of_volume(i: Decoded) -> Problem | None:
    """A 3d texture has no depth to compare with."""
    _, _, rest = arguments(i)
    found = [name for name, shape in rest if may_be_depth(shape)]
    if i.geom == "3d" and found:
        return Problem("P2810", "a 3d texture has no depth to compare with", operand=found[0],
                       ptxas=f"Illegal modifier '.3d' for instruction '{opcode(i)}'")  # fmt: skip
    return None


def offset_before_depth(i: Decoded) -> Problem | None:
    """The offset stands before the depth to compare with."""
    _, _, rest = arguments(i)
    if rest and may_be_depth(rest[0][1]) and any(not may_be_depth(shape) for _, shape in rest[1:]):
        return Problem("P2812", "an offset stands before the depth to compare with", operand="e",
                       ptxas=f"Arguments mismatch for instruction '{opcode(i)}'")  # fmt: skip
    return None


def discarded_pair(i: Decoded) -> str | None:
    """Every .f16x2 of a result needs a register."""
    shape = i.shape("d")
    if i.dtype.is_packed and shape.kind == "vector" and any(item.kind == "sink" for item in shape.items):
        return "Result discard mode is not allowed for instruction 'mov'"
    return None


def outside_of_registers(i: Decoded) -> Problem | None:
    """A level and an offset are in registers or constant: no special register, no address of a variable."""
    for name in ("lod", "e"):
        shape = i.shape(name)
        if shape is not None and (shape.kind == "special" or (shape.kind == "variable" and shape.detail != "offset")):
            return Problem("P2816", f"{in_words(shape)} stands where a register is needed", operand=name,
                           ptxas=f"Arguments mismatch for instruction '{opcode(i)}'")  # fmt: skip
    return None


def sampler_of_volume_gradients(i: Decoded) -> Problem | None:
    """In unified mode gradients of a 3d texture go without a sampler from sm_90 on: their second one would be the offset."""
    if i.geom != "3d" or not i.grad or i.shape("b") is None or is_independent(i) or before_hopper(i):
        return None
    return Problem("P2817", "a sampler stands beside a texture with its own", operand="b", help="write [texture, coordinates]",
                   ptxas="Arguments mismatch for instruction 'mov'")  # fmt: skip


def depth_with_integers(i: Decoded) -> Problem | None:
    """A depth is compared where the coordinates are .f32."""
    if i.shape("f") is not None and i.ctype is not f32:
        return Problem("P2811", "a depth to compare with needs .f32 coordinates", operand="f",
                       ptxas=f"Arguments mismatch for instruction '{opcode(i)}'")  # fmt: skip
    return None


def mipmaps_of_cubes_by_gradient(i: Decoded) -> bool:
    """Are the levels of a cube picked by gradients?"""
    return bool(i.grad and i.geom in ("cube", "acube"))


def offset_or_depth(i: Decoded) -> bool:
    """Has it an offset or a depth to compare with?"""
    _, _, rest = arguments(i)
    return any(is_vector(shape) or shape.kind in ("register", "float") for _, shape in rest)


def optional_predicate_result(i: Decoded) -> bool:
    """Tells it whether the texels are resident?"""
    return i.shape("p") is not None


RULES = {
    "P2801": wrong_coordinate_type,
    "P2802": wrong_vector,
    "P2803": samples_have_no_levels,
    "P2804": wrong_sampler,
    "P2805": size_of_coordinates,
    "P2806": mixed_coordinates,
    "P2807": float_index,
    "P2808": size_of_gradients,
    "P2809": size_of_offset,
    "P2810": depth_of_volume,
    "P2811": depth_with_integers,
    "P2812": offset_before_depth,
    "P2813": discarded_pair,
    "P2816": outside_of_registers,
    "P2817": sampler_of_volume_gradients,
    "P2818": moved_gradients,
}


# ── tex ─────────────────────────────────────────────────────────────────────────────────


@has(HANDLE("texref"), result_vector("d"))
@instruction(
    """
    tex.geom{.uni}.vec.dtype.ctype        d{|p}, [a{, b}, c]{, e};
    tex.geom{.uni}.vec.dtype.ctype        d{|p}, [a{, b}, c]{, e}, f;
    tex.base.geom{.uni}.vec.dtype.ctype   d{|p}, [a{, b}, c]{, e};
    tex.base.geom{.uni}.vec.dtype.ctype   d{|p}, [a{, b}, c]{, e}, f;
    tex.level.geom{.uni}.vec.dtype.ctype  d{|p}, [a{, b}, c], lod{, e};
    tex.level.geom{.uni}.vec.dtype.ctype  d{|p}, [a{, b}, c], lod{, e}, f;
    tex.grad.geom{.uni}.vec.dtype.ctype   d{|p}, [a{, b}, c], dPdx, dPdy{, e};
    tex.grad.geom{.uni}.vec.dtype.ctype   d{|p}, [a{, b}, c], dPdx, dPdy{, e}, f;
    .geom  = { .1d, .2d, .3d, .a1d, .a2d, .cube, .acube, .2dms, .a2dms };
    .vec   = { .v4, .v2 };
    .dtype = { .u32, .s32, .f16, .f16x2, .f32 };
    .ctype = { .s32, .f32 };
    """,
    section="9.7.10.3",
    types="d: dtype, p: pred plain, a b: u64, c: ctype coordinates, lod: ctype, dPdx dPdy: f32 strict, e: s32, f: f32 plain",
    needs={
        "": "PTX 1.0",
        ".a1d .a2d": "PTX 2.3",
        ".cube": "PTX 3.0",
        ".acube": "PTX 3.0, sm_20",
        ".2dms .a2dms": "PTX 3.2, sm_30",
        ".base .level .grad": "PTX 3.1, sm_20",
        ".f16 .f16x2": "PTX 4.2, sm_53",
        ".uni": "PTX 3.2, sm_20",
    },
    fixed="base level grad",
    exact=FILTERED,
)
def tex(i, a, b, c, lod, dPdx, dPdy, e, f, tex):  # noqa: N803 - the manual's names
    """Look up a texture: the element nearest to the coordinates, or the elements around them, filtered.

    The texture says how coordinates outside of it are meant, and how elements become numbers.
    """
    texel, resident = tex.fetch(
        i.geom,
        a,
        as_list(c),
        integers=i.ctype is not f32,
        sampler=b,
        lod=one(lod),
        gradients=None if dPdx is None else (as_list(dPdx), as_list(dPdy)),
        offset=None if e is None else as_list(e),
        compare=f,
    )
    return typed(i, texel), resident


def one(value: Value | list[Value] | None) -> Value | None:
    """The value of an operand that may stand in braces."""
    return value[0] if isinstance(value, list) else value


def typed(i: Decoded, texel: list[Value]) -> list[Value]:
    """Four components, which are u32 or the bits of f32, as the type of the result."""
    if i.dtype.element is not f16:
        return [component.view(i.dtype) for component in texel]
    halves = [component.view(f32).to(f16) for component in texel]
    if not i.dtype.is_packed:
        return halves
    return [pack(pair, i.dtype) for pair in (halves[:2], halves[2:])]


for _code, _rule in RULES.items():
    tex.rule(_code)(_rule)
tex.needs_when("PTX 4.3, sm_20")(mipmaps_of_cubes_by_gradient)
tex.needs_when("PTX 4.3, sm_30")(offset_or_depth)
tex.needs_when("PTX 7.1, sm_60")(optional_predicate_result)


# ── tld4 ────────────────────────────────────────────────────────────────────────────────


@has(HANDLE("texref"), result_vector("d"))
@instruction(
    """
    tld4.comp.geom{.uni}.vec.dtype.ctype  d{|p}, [a{, b}, c]{, e};
    tld4.comp.geom{.uni}.vec.dtype.ctype  d{|p}, [a{, b}, c]{, e}, f;
    .comp  = { .r, .g, .b, .a };
    .geom  = { .2d, .a2d, .cube, .acube };
    .vec   = { .v4 };
    .dtype = { .u32, .s32, .f32 };
    .ctype = { .f32 };
    """,
    section="9.7.10.4",
    types="d: dtype, p: pred plain, a b: u64, c: ctype coordinates, e: s32, f: f32 plain",
    needs={"": "PTX 2.2, sm_20", ".a2d .cube .acube": "PTX 4.3, sm_30", ".uni": "PTX 3.2, sm_20"},
    exact=MOVED,
)
def tld4(i, a, b, c, e, f, tex):
    """Fetch one component of the four elements around a point, counter-clockwise from the lower left."""
    texel, resident = tex.fetch(
        i.geom,
        a,
        as_list(c),
        sampler=b,
        offset=None if e is None else as_list(e),
        compare=f,
        component="rgba".index(i.comp),
    )
    return typed(i, texel), resident


for _code in ("P2804", "P2805", "P2806", "P2807", "P2809", "P2816"):
    tld4.rule(_code)(RULES[_code])
tld4.needs_when("PTX 4.3, sm_30")(offset_or_depth)
tld4.needs_when("PTX 7.1, sm_60")(optional_predicate_result)


# ── queries ─────────────────────────────────────────────────────────────────────────────

OF_SAMPLERS = ("force_unnormalized_coords", "filter_mode", "addr_mode_0", "addr_mode_1", "addr_mode_2")


@instruction(
    """
    txq.query.b32  d, [a];
    .query = { .width, .height, .depth, .channel_data_type, .channel_order, .normalized_coords, .array_size,
               .num_mipmap_levels, .num_samples, .memory_layout,
               .force_unnormalized_coords, .filter_mode, .addr_mode_0, .addr_mode_1, .addr_mode_2 };
    """,
    section="9.7.10.5",
    types="d: type plain, a: u64",
    needs={
        "": "PTX 1.5",
        ".channel_data_type .channel_order": "PTX 2.1",
        ".force_unnormalized_coords": "PTX 2.2",
        ".array_size": "PTX 4.1",
        ".num_mipmap_levels": "PTX 4.1, sm_20",
        ".num_samples": "PTX 4.1, sm_30",
        ".memory_layout": "PTX 4.2",
    },
)
def txq(i, a, tex):
    """Query a texture or a sampler: its size, its format, how it is addressed and filtered."""
    return tex.query("sampler" if i.query in OF_SAMPLERS else "texture", i.query, a)


@txq.rule("P2814")
def sampler_in_unified_mode(i):
    """.force_unnormalized_coords is of samplers, which exist in independent mode only."""
    if i.query == "force_unnormalized_coords" and not is_independent(i):
        return f"Illegal modifier '.{i.query}' for instruction 'txq'"
    return None


has(HANDLE("texref", lambda i: "samplerref" if i.query in OF_SAMPLERS and is_independent(i) else "texref"))(txq)


@has(HANDLE("texref"))
@instruction(
    """
    txq.level.query.b32  d, [a], lod;
    .query = { .width, .height, .depth };
    """,
    section="9.7.10.5",
    types="d: type plain, a: u64, lod: u32",
    needs={"": "PTX 4.3, sm_30"},
    fixed=1,
)
def txq_level(i, a, lod, tex):
    """Query the size of a level of a texture."""
    return tex.query("texture", i.query, a, one(lod))


@txq_level.rule("P2816")
def level_outside_of_registers(i):
    """A level is in a register or constant: no special register, no address of a variable."""
    return outside_of_registers(i)


@instruction(
    """
    istypep.type  p, a;
    .type = { .texref, .samplerref, .surfref };
    """,
    section="9.7.10.6",
    types="p: pred plain, a: u64 plain",
    needs={"": "PTX 4.0, sm_30"},
)
def istypep(i, a, tex):
    """Tell whether a pointer is one to an opaque variable of a type."""
    return tex.is_a(i.type, a)


@istypep.rule("P2815")
def address_of_variable(i):
    """The pointer is in a register, or a constant."""
    if i.shape("a").kind == "variable":
        return "Arguments mismatch for instruction 'istypep'"
    return None

"""Atomic operations on memory (PTX 9.7.13.5 and 9.7.13.6)."""

from __future__ import annotations

from ptxvm.algebra.memory_order import Order, Scope
from ptxvm.algebra.ports import AccessAttributes, Memory
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import f32, f64
from ptxvm.algebra.value import Value, select
from ptxvm.isa.access import (
    ADDRESS,
    HINT,
    NEEDS,
    SCOPE_NEEDS,
    Trait,
    combined,
    count,
    has,
    result_vector,
    source_vector,
    space_of,
    window,
)
from ptxvm.isa.exactness import IN_TURN
from ptxvm.isa.model import Condition, Decoded, Problem, instruction
from ptxvm.isa.updates import INTEGERS, floating

# ── what the operations do ──────────────────────────────────────────────────────────────


def operation(i: Decoded, old: Value, b: Value) -> Value:
    """The outcome; f32 is added without subnormal numbers, except in shared memory (PTX 9.7.13.5).

    NaN is the one that the same operation gives on registers.
    """
    if not i.type.is_float:
        return INTEGERS[i.op](old, b)
    return floating(i.op, old, b, flushes=i.type is f32 and not i.noftz and space_of(i) != Space.SHARED)


def update(i: Decoded, a: Value, b: Value | list[Value], mem: Memory) -> list[Value]:
    """Apply the operation to each element, and return what was there."""
    how: AccessAttributes = {
        "operation": i.op if i.type.is_int or i.type in (f32, f64) else None,  # which an engine may have ready-made
        "order": Order(i.order or "relaxed"),
        "scope": Scope(i.scope or "gpu"),
    }
    return combined(i, a, b, lambda old, x: operation(i, old, x), mem, how)


# ── atom, red ───────────────────────────────────────────────────────────────────────────

HALVES = "f16 f16x2 bf16 bf16x2"

TYPES = {
    "and": "b32 b64",
    "or": "b32 b64",
    "xor": "b32 b64",
    "exch": "b32 b64 b128",
    "cas": "b16 b32 b64 b128",
    "inc": "u32",
    "dec": "u32",
    "add": f"u32 s32 u64 f32 f64 {HALVES}",
    "min": f"u32 s32 u64 s64 {HALVES}",
    "max": f"u32 s32 u64 s64 {HALVES}",
}

ADDED = ".u32 or .s32 or .u64 or .f64 or f16 or f16x2 or .f32 or .bf16 or .bf16x2"
"""How ptxas lists the types that are added."""

# What an operation on a type, in a space, needs.
OPERATION_NEEDS = (
    ("add exch cas", "u64 b64", None, "PTX 1.2, sm_12"),
    ("add exch cas", "u64 b64", Space.SHARED, "PTX 2.0, sm_20"),
    ("and or xor min max", "b64 u64 s64", None, "PTX 3.1, sm_32"),
    ("add", "f32", None, "PTX 2.0, sm_20"),
    ("add", "f64", None, "PTX 5.0, sm_60"),
    ("add", "f16x2", None, "PTX 6.2, sm_60"),
    ("add", "f16", None, "PTX 6.3, sm_70"),
    ("cas", "b16", None, "PTX 6.3, sm_70"),
    ("add", "bf16 bf16x2", None, "PTX 7.8, sm_90"),
    ("min max", HALVES, None, "PTX 8.1, sm_90"),
    ("exch cas", "b128", None, "PTX 8.3, sm_90"),
)


def condition(operations: str, types: str, space: Space | None) -> Condition:
    """Is it one of the operations, on one of the types, in the space, or in any?"""

    def holds(i: Decoded) -> bool:
        fits = i.op in operations.split() and i.type.name in types.split()
        return fits and space in (None, space_of(i))

    holds.__name__ = f"{operations.replace(' ', '/')} of {types.replace(' ', '/')}"
    return holds


def wrong_type(i: Decoded) -> Problem | None:
    """Each operation has its types: bits for logic, unsigned for inc and dec, numbers for add, min and max."""
    types = TYPES[i.op].split()
    if i.type.name in types:
        return None
    wanted = " or ".join(f".{t}" for t in types)
    told = ADDED if i.op == "add" else wanted
    return Problem("P1901", f"'.{i.op}' works on {wanted}, not on {i.type}", word=i.type.name,
                   ptxas=f"Operation .{i.op} requires {told} type for instruction '{i.form.opcode}'")  # fmt: skip


def missing_noftz(i: Decoded) -> str | None:
    """Half-precision types need .noftz, since their subnormal numbers are kept."""
    if i.type.name in HALVES.split() and not i.noftz:
        return f"'.noftz' modifier required for instruction '{i.form.opcode}' with type '{i.type}'"
    return None


def needless_noftz(i: Decoded) -> str | None:
    """.noftz is for the addition of floating-point numbers of 16 and 32 bits."""
    if i.noftz and i.type.name not in ("f32", *HALVES.split()):
        return f"Illegal modifier '.noftz' for instruction '{i.form.opcode}'"
    return None


def vector_of_integers(i: Decoded) -> str | None:
    """Vectors are for additions of f32, and for additions, minima and maxima of half precision."""
    if i.vec and i.type.name not in ("f32", *HALVES.split()):
        return f"Vector qualifier is not allowed for instruction '{i.form.opcode}'"
    return None


def long_vector(i: Decoded) -> str | None:
    """A vector has 128 bits at most."""
    if i.vec and count(i) * i.type.bits > 128:
        return (
            f"Only .v2 or .v4 vector modifier supported with type {i.type} on .{i.op} operation "
            f"for {i.form.opcode} instruction with vector types"
        )
    return None


def vector_outside_global(i: Decoded) -> str | None:
    """A vector is in .global or at a generic address."""
    if i.vec and space_of(i) not in (Space.GENERIC, Space.GLOBAL):
        return f"State space incorrect for feature '{i.form.opcode} instruction with vector types'"
    return None


def scalar_extreme(i: Decoded) -> str | None:
    """Minimum and maximum of half precision exist for vectors only."""
    if i.op in ("min", "max") and i.type.name in HALVES.split() and not i.vec:
        space = f".{i.ss}" if i.ss else ""
        return f"Vector modifier required for instruction '{i.form.opcode}.{i.op}.{i.type.name}{space}'"
    return None


def scopes_on_atomic_operations(i: Decoded) -> bool:
    """Has it a scope?"""
    return i.scope is not None


def atomic_operation_on_shared_memory(i: Decoded) -> bool:
    """Is it in shared memory?"""
    return space_of(i) == Space.SHARED


def vector_types(i: Decoded) -> bool:
    """Is it on a vector?"""
    return i.vec is not None


def noftz_with_f32(i: Decoded) -> bool:
    """Does an addition of f32 keep subnormal numbers?"""
    return i.noftz and i.type is f32


ATOMIC = Trait(
    rules=[("P1901", wrong_type)],
    needs=[
        *((need, condition(operations, types, space)) for operations, types, space, need in OPERATION_NEEDS),
        *SCOPE_NEEDS,
        ("PTX 5.0, sm_60", scopes_on_atomic_operations),
        ("PTX 1.2, sm_12", atomic_operation_on_shared_memory),
    ],
)
OPTIONS = Trait(
    rules=[
        ("P1902", missing_noftz),
        ("P1903", needless_noftz),
        ("P1904", vector_of_integers),
        ("P1905", long_vector),
        ("P1906", vector_outside_global),
        ("P1907", scalar_extreme),
    ],
    needs=[("PTX 8.1, sm_90", vector_types), ("PTX 9.4, sm_90", noftz_with_f32)],
)

SLOTS = """
    .order = { .relaxed, .acquire, .release, .acq_rel };
    .scope = { .cta, .cluster, .gpu, .sys };
    .ss    = { .global, .shared, .shared::cta, .shared::cluster };
    .hint  = { .L2::cache_hint };
    .vec   = { .v2, .v4, .v8 };
    .type  = { .b32, .b64, .b128, .u32, .u64, .s32, .s64, .f16, .f16x2, .bf16, .bf16x2, .f32, .f64 };
    """


@has(ADDRESS, ATOMIC, OPTIONS, HINT, result_vector("d", sink=True), source_vector("b"))
@instruction(
    """
    atom{.order}{.scope}{.ss}.op{.noftz}{.hint}{.vec}.type  d, [a], b{, policy};
    .op = { .and, .or, .xor, .exch, .add, .inc, .dec, .min, .max };
    """
    + SLOTS,
    section="9.7.13.5",
    types="*: type, a: u64, policy: u64 plain numeric",
    needs={"": "PTX 1.0, sm_11", **NEEDS},
    exact=IN_TURN,
)
def atom(i, a, b, policy, mem):
    """Replace what is in memory by the outcome of an operation with it, in one step, and give what was there."""
    old = update(i, a, b, mem)
    return old if i.vec else old[0]


@has(ADDRESS, ATOMIC)
@instruction(
    """
    atom{.order}{.scope}{.ss}.op.type  d, [a], b, c;
    .order = { .relaxed, .acquire, .release, .acq_rel };
    .scope = { .cta, .cluster, .gpu, .sys };
    .ss    = { .global, .shared, .shared::cta, .shared::cluster };
    .op    = { .cas };
    .type  = { .b16, .b32, .b64, .b128 };
    """,
    section="9.7.13.5",
    types="*: type plain, d: type plain sink, a: u64",
    needs={"": "PTX 1.0, sm_11", **NEEDS},
    exact=IN_TURN,
)
def atom_cas(i, a, b, c, mem):
    """Compare what is in memory with `b`, put `c` there where they are equal, and give what was there."""
    return mem.atomic(
        window(i),
        i.type,
        a,
        lambda old, b, c: select(old.eq(b), c, old),
        [b, c],
        operation="cas",
        order=Order(i.order or "relaxed"),
        scope=Scope(i.scope or "gpu"),
    )


@has(ADDRESS, ATOMIC, OPTIONS, HINT, source_vector("b"))
@instruction(
    """
    red{.order}{.scope}{.ss}.op{.noftz}{.hint}{.vec}.type  [a], b{, policy};
    .op    = { .and, .or, .xor, .add, .inc, .dec, .min, .max };
    """
    + SLOTS.replace(".relaxed, .acquire, .release, .acq_rel", ".relaxed, .release"),
    section="9.7.13.6",
    types="*: type, a: u64, policy: u64 plain numeric",
    needs={"": "PTX 1.2, sm_11", **NEEDS},
    exact=IN_TURN,
)
def red(i, a, b, policy, mem):
    """Replace what is in memory by the outcome of an operation with it, in one step."""
    update(i, a, b, mem)

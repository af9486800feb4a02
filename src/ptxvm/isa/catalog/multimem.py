"""Multimem instructions, on memory of several devices under one address (PTX 9.7.9.14)."""

from __future__ import annotations

import operator
from functools import partial, reduce

from ptxvm.algebra.derived.floats import canonical_nan
from ptxvm.algebra.derived.packed import each
from ptxvm.algebra.derived.rounding import arithmetic
from ptxvm.algebra.memory_order import Order, Scope
from ptxvm.algebra.ports import AccessAttributes
from ptxvm.algebra.types import f32
from ptxvm.algebra.value import select
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.isa.access import (
    Trait,
    addresses,
    as_list,
    combined,
    count,
    has,
    of_a_word,
    result_vector,
    source_vector,
    space_of,
    window,
)
from ptxvm.isa.model import Problem, instruction
from ptxvm.isa.updates import INTEGERS, floating

FP8 = ".e5m2, .e5m2x2, .e5m2x4, .e4m3, .e4m3x2, .e4m3x4"
FP8_TARGETS = "PTX 8.6, sm_100f sm_110f sm_120a sm_121a"
NEEDS = {"": "PTX 8.1, sm_90", ".acc::f32": "PTX 8.2", ".acc::f16": "PTX 8.6"}
INTEGER_SLOTS = """
    .scope = { .cta, .cluster, .gpu, .sys };
    .ss    = { .global };
    .type  = { .b32, .b64, .u32, .u64, .s32, .s64 };
    """
FLOAT_SLOTS = INTEGER_SLOTS.replace(".b32, .b64, .u32, .u64, .s32, .s64", ".f16, .f16x2, .bf16, .bf16x2, .f32, .f64")
FLOAT_SLOTS += ".vec = { .v2, .v4, .v8 };"
FP8_SLOTS = FLOAT_SLOTS.replace(".f16, .f16x2, .bf16, .bf16x2, .f32, .f64", FP8)
LOADS = ".order = { .weak, .relaxed, .acquire };"
STORES = ".order = { .weak, .relaxed, .release };"
UPDATES = ".order = { .relaxed, .release };"


def order_and_scope(i):
    """A scope and an order other than .weak need each other."""
    if i.scope and i.order == "weak":
        return f"Modifier '.weak' cannot be combined with modifier '.{i.scope}'"
    if i.scope and not i.order:
        return f"Modifier '.{i.scope}' requires order with '{i.opcode}' instruction"
    if i.order not in (None, "weak") and not i.scope:
        return f"Modifier '.{i.order}' requires scope with '{i.opcode}' instruction"
    return None


def size_of_an_access(i):
    """An access of floats has 32, 64 or 128 bits, and .f64 is no vector."""
    bits = count(i) * i.type.bits
    if bits in (32, 64, 128) and not (i.type.bits == 64 and i.vec):
        return None
    if not i.vec:
        return f"Unexpected instruction types specified for '{i.opcode}'"
    return f"Inconsistent type '{i.type}' with vector .{i.vec} for '{i.opcode}'"


ACCESS = Trait(rules=[("P3101", order_and_scope), *addresses(a=space_of).rules])
WIDE = of_a_word("a", least=64)
VECTOR = Trait(rules=[("P3102", size_of_an_access)])

WORDS = {"and": "b32 b64", "or": "b32 b64", "xor": "b32 b64", "add": "u32 s32 u64 f16 f16x2 bf16 bf16x2 f32 f64"}
ORDERED = "u32 s32 u64 s64 f16 f16x2 bf16 bf16x2"


def operation_of_a_type(i):
    """.and, .or and .xor are for bits, .add for numbers, .min and .max for integers and for floats of 16 bits."""
    if i.type.name in WORDS.get(i.op, ORDERED).split():
        return None
    ptxas = f"Incorrect type '{i.type}' for operation '.{i.op}' in instruction '{i.opcode}'"
    return Problem("P3103", f"there is no '.{i.op}' of {i.type} here", word=i.op, ptxas=ptxas)


def precision_of_sums(i):
    """.acc::f32 is for sums of 16-bit floats, .acc::f16 for those of 8-bit floats."""
    if not i.acc:
        return None
    if i.op != "add":
        return f"Illegal reduction operation for instruction '{i.opcode}.{i.acc}'"
    if i.type.element.bits != (16 if i.acc == "acc::f32" else 8):
        return f"Illegal modifier '.{i.acc}' for instruction '{i.opcode}' with type '{i.type}'"
    return None


OPERATION = Trait(rules=[("P3103", operation_of_a_type)])
PRECISION = Trait(rules=[("P3104", precision_of_sums)])
D, B = result_vector("d"), source_vector("b")

SIGNS = {16: 0x8000, 32: 0x8000_8000}
"""The bits of negative zeros, which change no sum."""

loading = partial(instruction, section="9.7.9.14", needs=NEEDS, fixed="ld_reduce")
storing = partial(instruction, section="9.7.9.14", needs=NEEDS, fixed="st")
updating = partial(instruction, section="9.7.9.14", needs=NEEDS, fixed="red")


def ordered(i):
    """Order and scope of an access."""
    return {"order": Order(i.order or "weak"), "scope": Scope(i.scope) if i.scope else None}


def loaded(i, a, number, mem, combine):
    """So many elements, each combined of those in all memories."""

    def load(address):
        found = mem.load(window(i), i.type.as_bits, address, number, **ordered(i))
        return [each.view(i.type) for each in found]

    found = load(a)
    others = [(there, load(address)) for there, address in mem.replicas(a)]
    if others:
        found = [combine(i, first, [(there, more[n]) for there, more in others]) for n, first in enumerate(found)]
    return found if number > 1 else found[0]


def one_by_one(i, first, others):
    """An element combined with those of other memories, where there are some; each step has the precision of the type."""
    total = first
    for there, other in others:
        total = select(there, updating_by(i)(total, other), total)
    return total


def unknown(i, first, others):
    """No sum of 8-bit floats: PTX does not say what one that is too large becomes."""
    raise Unsupported(f"'{i.mnemonic}' over several devices", "it runs where the driver has one device")


def summed_precisely(i, first, others):
    """The sum of floats of 16 bits that is rounded once, of sums in f32."""
    nothing = first.view(i.type.as_bits).lift(SIGNS[i.type.bits])
    present = [select(there, other.view(i.type.as_bits), nothing).view(i.type) for there, other in others]

    def total(*elements):
        found = reduce(partial(arithmetic, "add", "rn"), [one.to(f32) for one in elements])
        return canonical_nan(found.to(i.type.element))

    any_there = reduce(operator.or_, (there for there, _ in others))
    return select(any_there, each(total, first, *present), first)


def updating_by(i):
    """What the operation does to two elements."""

    def update(old, x):
        return floating(i.op, old, x, flushes=i.type is f32) if i.type.is_float else INTEGERS[i.op](old, x)

    return update


def everywhere(a, mem):
    """The address in each memory; the accesses to each have the lanes that have it as their guard."""
    yield a
    for _, address in mem.replicas(a):
        yield address


def stored(i, a, b, mem):
    """Store to all memories."""
    values = [each.view(i.type.as_bits) for each in as_list(b)]
    for address in everywhere(a, mem):
        mem.store(window(i), i.type.as_bits, address, values, **ordered(i))


def updated(i, a, b, mem):
    """Combine with what lies in all memories, element by element."""
    how: AccessAttributes = {"order": Order(i.order or "relaxed"), "scope": Scope(i.scope or "gpu")}
    for address in everywhere(a, mem):
        combined(i, address, b, updating_by(i), mem, how)


FP8_NEEDS = {**NEEDS, "": "PTX 8.1, sm_90", "type": FP8_TARGETS}


@has(ACCESS, OPERATION)
@loading(
    f"""
    multimem.ld_reduce{{.order}}{{.scope}}{{.ss}}.op.type  d, [a];
    .op = {{ .min, .max, .add, .and, .or, .xor }};
    {LOADS} {INTEGER_SLOTS}
    """,
    types="d: type plain, a: u64",
)
def multimem_ld_reduce(i, a, mem):
    """Load an integer from every memory that a multimem address stands for, and combine them."""
    return loaded(i, a, 1, mem, one_by_one)


@has(ACCESS, OPERATION, VECTOR, PRECISION, D)
@loading(
    f"""
    multimem.ld_reduce{{.order}}{{.scope}}{{.ss}}.op{{.acc}}{{.vec}}.type  d, [a];
    .op  = {{ .min, .max, .add, .and, .or, .xor }};
    .acc = {{ .acc::f32, .acc::f16 }};
    {LOADS} {FLOAT_SLOTS}
    """,
    types="d: type bf16=b16 bf16x2=u32, a: u64",
)
def multimem_ld_reduce_float(i, a, mem):
    """Load floats from every memory that a multimem address stands for, and combine them."""
    return loaded(i, a, count(i), mem, summed_precisely if i.acc else one_by_one)


@has(ACCESS, VECTOR, PRECISION, D)
@loading(
    f"""
    multimem.ld_reduce{{.order}}{{.scope}}{{.ss}}.op{{.acc}}{{.vec}}.type  d, [a];
    .op  = {{ .min, .max, .add }};
    .acc = {{ .acc::f32, .acc::f16 }};
    {LOADS} {FP8_SLOTS}
    """,
    types="d: type bits, a: u64",
    needs=FP8_NEEDS,
)
def multimem_ld_reduce_fp8(i, a, mem):
    """Load 8-bit floats from every memory that a multimem address stands for, and combine them."""
    return loaded(i, a, count(i), mem, unknown)


@has(ACCESS)
@storing(
    f"multimem.st{{.order}}{{.scope}}{{.ss}}.type  [a], b; {STORES} {INTEGER_SLOTS}",
    types="a: u64, b: type plain",
)
def multimem_st(i, a, b, mem):
    """Store an integer to every memory that a multimem address stands for."""
    stored(i, a, b, mem)


@has(ACCESS, VECTOR, B)
@storing(
    f"multimem.st{{.order}}{{.scope}}{{.ss}}{{.vec}}.type  [a], b; {STORES} {FLOAT_SLOTS}",
    types="a: u64, b: type bf16=b16 bf16x2=u32",
)
def multimem_st_float(i, a, b, mem):
    """Store floats to every memory that a multimem address stands for."""
    stored(i, a, b, mem)


@has(ACCESS, VECTOR, B)
@storing(
    f"multimem.st{{.order}}{{.scope}}{{.ss}}{{.vec}}.type  [a], b; {STORES} {FP8_SLOTS}",
    types="a: u64, b: type bits",
    needs=FP8_NEEDS,
)
def multimem_st_fp8(i, a, b, mem):
    """Store 8-bit floats to every memory that a multimem address stands for."""
    stored(i, a, b, mem)


@has(ACCESS, OPERATION, WIDE)
@updating(
    f"""
    multimem.red{{.order}}{{.scope}}{{.ss}}.op.type  [a], b;
    .op = {{ .min, .max, .add, .and, .or, .xor }};
    {UPDATES} {INTEGER_SLOTS}
    """,
    types="a: u64, b: type plain",
)
def multimem_red(i, a, b, mem):
    """Combine an integer with what lies in every memory that a multimem address stands for."""
    updated(i, a, b, mem)


@has(ACCESS, OPERATION, VECTOR, B, WIDE)
@updating(
    f"""
    multimem.red{{.order}}{{.scope}}{{.ss}}.op{{.vec}}.type  [a], b;
    .op = {{ .min, .max, .add, .and, .or, .xor }};
    {UPDATES} {FLOAT_SLOTS}
    """,
    types="a: u64, b: type",
)
def multimem_red_float(i, a, b, mem):
    """Combine floats with what lies in every memory that a multimem address stands for."""
    updated(i, a, b, mem)


@multimem_red_float.rule("P3105")
def least_or_greatest_of_one(i):
    """.min and .max of floats are for vectors."""
    if i.op in ("min", "max") and not i.vec:
        return f"Incorrect type '{i.type}' for operation '.{i.op}' in instruction '{i.opcode}'"
    return None


# ── without waiting ─────────────────────────────────────────────────────────────────────

ASYNC_NEEDS = {"": "PTX 9.3, sm_100"}
ASYNC_SLOTS = ".scope = { .gpu, .sys }; .ss = { .global };"


@has(addresses(a=space_of))
@instruction(
    f"""
    multimem.st.async.release.scope{{.ss}}.type  [a], b;
    .type = {{ .b8, .b16, .b32, .b64, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f32, .f64 }};
    {ASYNC_SLOTS}
    """,
    section="9.7.9.14",
    types="a: u64, b: type plain wide",
    needs=ASYNC_NEEDS,
    fixed="st async",
)
def multimem_st_async(i, a, b, mem):
    """Store a value to every memory that a multimem address stands for, in order after what precedes."""
    how = {"order": Order.RELEASE, "scope": Scope(i.scope)}
    for address in everywhere(a, mem):
        mem.store(window(i), i.type.as_bits, address, [b.view(i.type.as_bits)], **how)


@has(addresses(a=space_of))
@instruction(
    f"""
    multimem.red.async.release.scope{{.ss}}.add.type  [a], b;
    .type = {{ .u32, .s32, .u64, .s64 }};
    {ASYNC_SLOTS}
    """,
    section="9.7.9.14",
    types="a: u64, b: type plain",
    needs=ASYNC_NEEDS,
    fixed="red async",
)
def multimem_red_async(i, a, b, mem):
    """Add a value to what lies in every memory that a multimem address stands for, in order after what precedes."""
    how = {"operation": "add", "order": Order.RELEASE, "scope": Scope(i.scope)}
    for address in everywhere(a, mem):
        mem.atomic(window(i), i.type, address, INTEGERS["add"], [b], **how)

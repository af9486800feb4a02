"""Asynchronous stores and reductions (PTX 9.7.9.12, 9.7.9.13, 9.7.13.7)."""

from __future__ import annotations

from functools import partial

from ptxvm.algebra.memory_order import Order, Scope
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import b128
from ptxvm.isa.access import (
    Trait,
    addresses,
    as_list,
    base_of,
    count,
    generic_addressing,
    has,
    no_address,
    of_a_word,
    space_of,
    window,
)
from ptxvm.isa.mbarrier import completed
from ptxvm.isa.model import Problem, instruction
from ptxvm.isa.transfers import Pattern, Transfer
from ptxvm.isa.updates import INTEGERS

NEEDS = {"": "PTX 8.1, sm_90", ".shared::cta": "PTX 7.8"}
COMPLETION = "mbarrier_complete_tx_bytes"


def tells_an_mbarrier(i):
    """.cluster and the parts of .shared need an mbarrier that is told of the end; memory in .global has none."""
    counted = COMPLETION in i.bound
    if counted and (i.ss == Space.GLOBAL or i.order == "release"):
        return f"Illegal modifier '.mbarrier::complete_tx::bytes' for instruction '{i.opcode}' with '.{i.ss or i.order}'"
    if counted:
        return None
    word = i.scope if i.scope == "cluster" else i.ss if i.ss in (Space.SHARED_CLUSTER, Space.SHARED_CTA) else None
    if word:
        return f"Modifier '.{word}' requires modifier '.completion_mechanism' for instruction '{i.opcode}'"
    if i.shape("bar") is not None:
        return Problem("P3201", "the mbarrier needs '.mbarrier::complete_tx::bytes'", operand="bar",
                       ptxas=f"Arguments mismatch for instruction '{i.opcode}'")  # fmt: skip
    return None


def order_of_an_asynchronous_access(i):
    """.release has the scope .gpu or .sys, .relaxed the scope .cluster; .mmio is a release to the system."""
    if i.mmio and i.order != "release":
        return f"Modifier '.mmio' requires modifier '.release' for instruction '{i.opcode}'"
    if i.mmio and i.scope != "sys":
        return f"Illegal modifier '.{i.scope}' for instruction '{i.opcode}' with '.mmio'"
    if i.scope and i.order in (None, "weak"):
        return f"Modifier '.{i.scope}' requires memory order with '{i.opcode}' instruction"
    if i.order in ("release", "relaxed") and not i.scope:
        return f"Modifier '.{i.order}' requires scope with '{i.opcode}' instruction"
    if i.scope and (i.order == "relaxed") != (i.scope == "cluster"):
        return f"Modifier '.{i.order}' cannot be combined with modifier '.{i.scope}'"
    if i.order == "release" and i.ss not in (None, Space.GLOBAL):
        return f"Modifier '.release' requires '.global' space for instruction '{i.opcode}'"
    if i.scope == "cluster" and i.ss not in (None, Space.SHARED_CLUSTER):
        return f"Modifier '.cluster' requires '.shared::cluster' space for instruction '{i.opcode}'"
    return None


def is_release(i):
    """Is it a release?"""
    return i.order == "release"


def release_or_global(i):
    """Is it a release, or an access to `.global`?"""
    return i.order == "release" or i.ss == Space.GLOBAL


ASYNC = Trait(
    rules=[
        ("P3201", tells_an_mbarrier),
        ("P3202", order_of_an_asynchronous_access),
        *addresses(a=space_of, bar=space_of).rules,
        *of_a_word("a").rules,
        *of_a_word("bar", when=generic_addressing).rules,
    ],
    needs=[("PTX 8.7, sm_100", release_or_global)],
)


STORE = """
    st.async{.mmio}{.order}{.scope}{.ss}COMPLETION{.vec}.type  [a], b{, [bar]};
    .order = { .weak, .relaxed, .release };
    .scope = { .cluster, .gpu, .sys };
    .ss    = { .global, .shared, .shared::cta, .shared::cluster };
    .vec   = { .v2, .v4, .v8 };
    .type  = { .b8, .b16, .b32, .b64, .b128, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f32, .f64 };
    """
COUNTED = ".mbarrier::complete_tx::bytes"
storing = partial(instruction, section="9.7.9.12", types="a bar: u64, b: type", needs=NEEDS, fixed="async")


@has(ASYNC)
@storing(STORE.replace("COMPLETION", COUNTED))
def st_async(i, a, b, bar, tasks):
    """Start to store to the shared memory of the cluster; at the end the bytes are counted by an mbarrier."""
    values = [each.view(i.type.as_bits) for each in as_list(b)]
    kind = Transfer(Pattern.VALUES, Space.SHARED_CLUSTER, mbarrier=bar is not None, type=i.type)
    tasks.transfer(kind, completed, a=a, b=values, bar=bar)


@has(ASYNC, no_address("b", when=is_release))
@storing(STORE.replace("COMPLETION", ""))
def st_async_release(i, a, b, bar, mem):
    """Store to global memory, with .release in order after what precedes."""
    values = [each.view(i.type.as_bits) for each in as_list(b)]
    order, scope = Order(i.order or "weak"), Scope(i.scope) if i.scope else None
    mem.store(window(i), i.type.as_bits, a, values, order=order, scope=scope)


@st_async.rule("P3203")
@st_async_release.rule("P3203")
def vector_of_an_asynchronous_store(i):
    """Only a store that tells an mbarrier is of a vector, of 128 bits at most, or has 128 bits at all.

    ptxas does not hold the elements in braces against .vec where one of the two is missing.
    """
    b, bits = i.shape("b"), count(i) * i.type.bits
    if (i.vec or bits > 64) and i.shape("bar") is None:
        return f"Vector qualifier is not allowed for instruction '{i.opcode}'"
    if bits > 128:
        return "Vector type too large, exceeds 128 bit limit"
    if b.kind == "vector" and (i.shape("bar") is None or (i.vec and len(b.items) != count(i))):
        return f"Argument vector size mismatch for instruction '{i.opcode}'"
    return None


def bits_in_braces(shape):
    """The bits of the registers in braces; None where constants are among them."""
    bits = [item.type and item.type.bits for item in shape.items]
    return None if None in bits else sum(bits)


@st_async.rule("P3209")
@st_async_release.rule("P3209")
def bits_without_vector(i):
    """Without .vec the registers in braces hold the bits of one value of a .b type; ptxas does not count those of others."""
    b = i.shape("b")
    if i.vec or b.kind != "vector" or i.type.kind != "b" or bits_in_braces(b) in (None, i.type.bits):
        return None
    said, help = f"the registers in braces do not make up one {i.type}", "write `.v2` or `.v4` in the instruction"
    return Problem("P3209", said, operand="b", help=help, ptxas=f"Arguments mismatch for instruction '{i.opcode}'")


@st_async.rule("P3210")
@st_async_release.rule("P3210")
def source_of_an_asynchronous_store(i):
    """What is stored is in registers or constant: no special register, no address of a variable."""
    b = i.shape("b")
    if b.kind == "special":
        return f"Special register argument not allowed for instruction '{i.opcode}'"
    if b.kind == "variable" and b.detail != "offset":
        return Problem("P3210", "the address of a variable stands where a register is needed", operand="b",
                       ptxas=f"Argument 1 of instruction '{i.opcode}': must be register")  # fmt: skip
    return None


@st_async.rule("P3204")
@st_async_release.rule("P3204")
def relaxed_store(i):
    """An asynchronous store is .weak or .release."""
    return f"Illegal modifier '.relaxed' for instruction '{i.opcode}'" if i.order == "relaxed" else None


@st_async.needs_when("PTX 9.2")
@st_async_release.needs_when("PTX 9.2")
def store_of_128_bits(i):
    return i.type is b128


UPDATE = """
    red.async{.mmio}.order.scope{.ss}COMPLETION.op.type  [a], b{, [bar]};
    .order = { .relaxed, .release };
    .scope = { .cluster, .gpu, .sys };
    .ss    = { .global, .shared, .shared::cta, .shared::cluster };
    .op    = { .inc, .dec, .min, .max, .and, .or, .xor, .add };
    .type  = { .u32, .s32, .b32, .u64, .s64, .b64 };
    """
updating = partial(instruction, section="9.7.13.7", types="a bar: u64, b: type plain", needs=NEEDS, fixed="async")


@has(ASYNC)
@updating(UPDATE.replace("COMPLETION", COUNTED))
def red_async(i, a, b, bar, tasks):
    """Start to combine a value with one in the shared memory of the cluster; at the end an mbarrier counts the bytes."""
    kind = Transfer(Pattern.VALUES, Space.SHARED_CLUSTER, mbarrier=bar is not None, operation=i.op, type=i.type)
    tasks.transfer(kind, completed, a=a, b=[b.view(i.type.as_bits)], bar=bar)


@has(ASYNC, no_address("b", when=is_release))
@updating(UPDATE.replace("COMPLETION", ""))
def red_async_release(i, a, b, bar, mem):
    """Combine a value with one in global memory, in order after what precedes."""
    mem.atomic(window(i), i.type, a, INTEGERS[i.op], [b], operation=i.op, order=Order(i.order), scope=Scope(i.scope))


TYPES = {"inc": "u32", "dec": "u32", "and": "b32", "or": "b32", "xor": "b32", "add": "u32 s32 u64 s64"}


@red_async.rule("P3205")
@red_async_release.rule("P3205")
def operation_of_a_type(i):
    """.inc and .dec are for .u32, .and, .or and .xor for .b32, .min and .max for .u32 and .s32, .add for all integers."""
    if i.type.name in TYPES.get(i.op, "u32 s32").split():
        return None
    ptxas = f"Incorrect type '{i.type}' for operation '.{i.op}' in instruction 'red.async'"
    return Problem("P3205", f"there is no '.{i.op}' of {i.type} here", word=i.op, ptxas=ptxas)


# ── st.bulk ─────────────────────────────────────────────────────────────────────────────

MOST = 16_777_216


SYNTAX = "st.bulk{.weak}{.ss}  [a], size, value; .ss = { .shared::cta };"
filling = partial(instruction, SYNTAX, section="9.7.9.13", fixed="bulk")


@has(addresses(a=space_of), of_a_word("a"))
@filling(types="a: u64, size: u64 plain, value: u32 imm", needs={"": "PTX 8.6, sm_100"})
def st_bulk(i, a, size, value, tasks):
    """Fill bytes of shared memory with zeros."""
    tasks.transfer(Transfer(Pattern.ZEROS, window(i)), completed, a=a, size=size)


@has(addresses(a=space_of), of_a_word("a"))
@filling(types="a: u64, size: u32 plain reg, value: u32 imm", needs={"": "PTX 9.0, sm_100"})
def st_bulk_narrow(i, a, size, value, tasks):
    """Fill bytes of shared memory with zeros; the size is in a register of 32 bits."""
    tasks.transfer(Transfer(Pattern.ZEROS, window(i)), completed, a=a, size=size)


def size_of_a_fill(i):
    """The size is a multiple of 8 bytes, up to 16,777,216."""
    size = i.value("size")
    if size is None or (0 <= size <= MOST and size % 8 == 0):
        return None
    if size % 8:
        return f"Argument 1 of instruction 'st.bulk': unexpected value '{size}', expected to be multiple of 8"
    return f"Argument 1 of instruction 'st.bulk': value '{size}' out of range, expected to be in range [0..{MOST}]"


def address_of_a_fill(i):
    """The address is in a register, or generic: no variable or special register stands where .shared::cta is named."""
    said = IN_NO_ADD.get(base_of(i.shape("a")).kind)
    if said is None or generic_addressing(i):
        return None
    return Problem("P3208", "the address is in a register of the program here", operand="a", ptxas=said)


IN_NO_ADD = {
    "variable": "Argument 1 of instruction 'add': must be register",
    "special": "Special register argument not allowed for instruction 'add'",
}
"""What ptxas says of an address that it adds the start of the window to."""


def value_of_a_fill(i):
    """The value is 0."""
    value = i.value("value")
    if value:
        return f"Argument 2 of instruction 'st.bulk': unexpected value '{value}', expected to be zero"
    return None


for each in (st_bulk, st_bulk_narrow):
    has(Trait(rules=[("P3206", size_of_a_fill), ("P3207", value_of_a_fill), ("P3208", address_of_a_fill)]))(each)

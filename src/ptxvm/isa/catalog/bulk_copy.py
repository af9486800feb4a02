"""Bulk asynchronous copies (PTX 9.7.9.25.4)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ptxvm.algebra.asynchronous import AsyncKind
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import f32, u32
from ptxvm.isa.access import TO_SEVERAL, Trait, addresses, base_of, has, no_constant_address, policy_without_hint, special_added
from ptxvm.isa.mbarrier import completed
from ptxvm.isa.model import Decoded, Problem, checked, instruction
from ptxvm.isa.transfers import Pattern, Transfer

MASK = 16  # bits of a mask of CTAs or of bytes
MOST = 1_048_560  # what an mbarrier can count, in units of 16 bytes


def size_of_a_bulk_copy(i: Decoded) -> Problem | None:
    """A bulk copy is of a multiple of 16 bytes, up to 1,048,560."""
    size = i.value("size")
    if size is None or (size % 16 == 0 and 0 <= size <= MOST):
        return None
    said = f"Argument 2 of instruction 'cp.async.bulk': unexpected value '{size}', expected to be multiple of 16"
    return Problem("P2611", f"a bulk copy is of a multiple of 16 bytes, not {size}", operand="size", ptxas=said)


def spaces_of_a_bulk_copy(i: Decoded) -> Problem | None:
    """The destination, the source and the mbarrier of a bulk copy lie in the spaces that it names."""
    source, target = (
        Space.SHARED if "shared_cta" in i.bound else Space.GLOBAL,
        Space.GLOBAL if "bulk_group" in i.bound else Space.SHARED,
    )
    for operand, space in (("a", target), ("b", source), ("bar", Space.SHARED)):
        shape = i.shape(operand)
        base = base_of(shape) if shape is not None else None
        if base is not None and base.kind == "integer":
            return no_constant_address(space, operand)
        if base is not None and base.kind == "variable" and base.space.window is not space:
            said = f"the variable lies in .{base.space}, and .{space} is needed"
            ptxas = "State space mismatch between instruction and address in instruction 'cp.async.bulk'"
            return Problem("P2612", said, operand=operand, ptxas=ptxas)
    return None


def bulk_copy_to_shared_cta(i: Decoded) -> bool:
    """Is the destination in .shared::cta?"""
    return i.bound.get("dst") == Space.SHARED_CTA


def goes_to_the_cluster(i: Decoded) -> bool:
    """Is it a copy from .global to .shared::cluster on sm_120 or later, which have the addresses in registers first?"""
    return i.target.number >= 120 and Space.SHARED_CLUSTER in i.bound.values() and Space.SHARED_CTA not in i.bound.values()


def copied_addresses(i: Decoded) -> Problem | None:
    """sm_120 and later have the addresses of a copy from .global to .shared::cluster in registers of 32 or 64 bits, b in 64.

    To those of shared memory ptxas adds something, which no special register takes.
    """
    if not goes_to_the_cluster(i):
        return None
    for operand, least in (("a", 32), ("b", 64), ("bar", 32)):
        base = base_of(i.shape(operand)) if i.shape(operand) is not None else None
        if base is not None and base.kind == "special" and operand != "b":
            return special_added("P2617", operand)
        if base is not None and base.kind == "register" and base.type is not None and base.type.bits < least:
            said = f"the address is in a {base.type} register, and {i.target} takes {least} bits"
            return Problem("P2617", said, operand=operand, ptxas=f"Arguments mismatch for instruction '{i.opcode}'")
    return None


def mbarrier_in_half_a_word(i: Decoded) -> Problem | None:
    """Without a cache policy the address of the mbarrier is in no register of 16 bits, which would be a mask."""
    base = base_of(i.shape("bar"))
    if i.hint or base.type is None or base.kind != "register" or base.type.bits != MASK:
        return None
    return Problem("P2618", f"the address is in a {base.type} register: it needs 32 or 64 bits", operand="bar",
                   ptxas=f"Argument 3 of instruction '{i.opcode}': must be register")  # fmt: skip


def without_mbarrier_on_new_targets(i: Decoded) -> Problem | None:
    """sm_120 and later take no mask for the mbarrier of a copy from .global to .shared::cluster."""
    if not goes_to_the_cluster(i):
        return None
    return Problem("P2617", "an mbarrier is needed", operand="mask", ptxas=f"Arguments mismatch for instruction '{i.opcode}'")


BYTES = Trait(
    rules=[("P2611", size_of_a_bulk_copy), ("P2612", spaces_of_a_bulk_copy)],
    needs=[("PTX 8.6", bulk_copy_to_shared_cta)],
)
BULK = Trait(rules=[*BYTES.rules, ("P1811", policy_without_hint)], needs=BYTES.needs)
TO_CLUSTER = Trait(rules=[("P2617", copied_addresses)])
NEEDS = {"": "PTX 8.0, sm_90"}
TYPES = "a b bar: u64, size: u32 plain, policy: u64 plain numeric"


def load_of(i: Decoded) -> Transfer:
    """The transfer of a copy to shared memory."""
    to = Space.SHARED if i.bound.get("dst") == Space.SHARED_CTA else Space.SHARED_CLUSTER
    return Transfer(Pattern.BYTES, to, Space.SHARED if "shared_cta" in i.bound else Space.GLOBAL, mbarrier=True)


@has(BULK, TO_CLUSTER, Trait(rules=[("P2618", mbarrier_in_half_a_word)]))
@instruction(
    """
    cp.async.bulk.dst.global.mbarrier::complete_tx::bytes{.hint}            [a], [b], size, [bar]{, policy};
    cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes  [a], [b], size, [bar];
    .dst  = { .shared::cta, .shared::cluster };
    .hint = { .L2::cache_hint };
    """,
    section="9.7.9.25.4.1",
    types=TYPES,
    needs=NEEDS,
    fixed="async bulk dst shared_cluster",
)
def cp_async_bulk(i, a, b, size, bar, policy, tasks):
    """Start to copy bytes to shared memory; at the end they are counted as transactions of an mbarrier."""
    tasks.transfer(load_of(i), completed, a=a, b=b, size=size, bar=bar)


# ptxas takes a mask or a cache policy in the place of the mbarrier; what such a copy does is not said.


@has(BYTES, Trait(rules=[("P2617", without_mbarrier_on_new_targets)]))
@checked(
    """
    cp.async.bulk.dst.global.mbarrier::complete_tx::bytes                   [a], [b], size, mask;
    cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes  [a], [b], size, mask;
    .dst = { .shared::cta, .shared::cluster };
    """,
    section="9.7.9.25.4.1",
    types=f"{TYPES}, mask: u16 plain numeric",
    needs=NEEDS,
    fixed="async bulk dst shared_cluster",
)
def cp_async_bulk_mask_for_mbarrier(i, a, b, size, mask):
    """Copy bytes to shared memory, with a mask in the place of the mbarrier."""


@has(BYTES)
@checked(
    """
    cp.async.bulk.dst.global.mbarrier::complete_tx::bytes                   [a], [b], size, policy;
    cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes  [a], [b], size, policy;
    .dst = { .shared::cta, .shared::cluster };
    """,
    section="9.7.9.25.4.1",
    types=TYPES,
    needs=NEEDS,
    fixed="async bulk dst shared_cluster",
)
def cp_async_bulk_policy_for_mbarrier(i, a, b, size, policy):
    """Copy bytes to shared memory, with a cache policy in the place of the mbarrier."""


@has(BULK)
@instruction(
    """
    cp.async.bulk.global.shared::cta.bulk_group{.hint}  [a], [b], size{, policy};
    .hint = { .L2::cache_hint };
    """,
    section="9.7.9.25.4.1",
    types=TYPES,
    needs=NEEDS,
    fixed="async bulk global",
)
def cp_async_bulk_store(i, a, b, size, policy, tasks):
    """Start to copy bytes from shared to global memory, as one of the next bulk group."""
    tasks.transfer(Transfer(Pattern.BYTES, Space.GLOBAL, Space.SHARED), completed, a=a, b=b, size=size)


@has(BULK, TO_SEVERAL, TO_CLUSTER)
@instruction(
    """
    cp.async.bulk.shared::cluster.global.completion.multicast{.hint}{.b128}  [a], [b], size, [bar], mask{, policy};
    .completion = { .mbarrier::complete_tx::bytes };
    .multicast = { .multicast::cluster, .multicast::cluster::16b };
    .hint      = { .L2::cache_hint };
    """,
    section="9.7.9.25.4.1",
    types=f"{TYPES}, mask: u16 plain numeric",
    needs={**NEEDS, ".multicast::cluster::16b": "PTX 9.4"},
    fixed="async bulk shared_cluster",
)
def cp_async_bulk_multicast(i, a, b, size, bar, mask, policy, tasks):
    """Start to copy bytes to the shared memory of several CTAs of the cluster."""
    kind = Transfer(Pattern.BYTES, Space.SHARED_CLUSTER, Space.GLOBAL, mbarrier=True, multicast=True)
    tasks.transfer(kind, completed, a=a, b=b, size=size, bar=bar, mask=mask.to(u32))


@has(BULK)
@instruction(
    """
    cp.async.bulk.global.shared::cta.bulk_group{.hint}.cp_mask  [a], [b], size, mask;
    cp.async.bulk.global.shared::cta.bulk_group{.hint}.cp_mask  [a], [b], size, policy, mask;
    .hint = { .L2::cache_hint };
    """,
    section="9.7.9.25.4.1",
    types=f"{TYPES}, mask: u16 plain numeric",
    needs={"": "PTX 8.6, sm_100"},
    fixed="async bulk global",
)
def cp_async_bulk_masked(i, a, b, size, policy, mask, tasks):
    """Start to copy from shared to global memory those bytes of each 16 that a mask names."""
    kind = Transfer(Pattern.MASKED, Space.GLOBAL, Space.SHARED)
    tasks.transfer(kind, completed, a=a, b=b, size=size, bytes=mask.to(u32))


# What came after PTX 9.1 has no public text but its syntax: `.weak` names the order that bulk copies have (9.7.9.25.4.1), and
# `.b128` the unit in which they go.
LATER_NEEDS = {**NEEDS, ".weak .relaxed .ignore_oob": "PTX 9.3"}
declared_later = partial(instruction, section="9.7.9.25.4.1", needs=LATER_NEEDS, fixed="async bulk")


@has(BYTES)
@declared_later(
    """
    cp.async.bulk.global.shared::cta.bulk_group.b128  [a], [b], size;
    cp.async.bulk.weak.global.shared::cta.bulk_group  [a], [b], size;
    """,
    types=TYPES,
)
def cp_async_bulk_store_weak(i, a, b, size, tasks):
    """Start to copy bytes from shared to global memory, in an order or in units that are named."""
    tasks.transfer(Transfer(Pattern.BYTES, Space.GLOBAL, Space.SHARED), completed, a=a, b=b, size=size)


@has(BYTES)
@declared_later(
    """
    cp.async.bulk.dst.global.mbarrier::complete_tx::bytes.b128                   [a], [b], size, [bar];
    cp.async.bulk.weak.dst.global.mbarrier::complete_tx::bytes                   [a], [b], size, [bar];
    cp.async.bulk.weak.shared::cluster.shared::cta.mbarrier::complete_tx::bytes  [a], [b], size, [bar];
    .dst = { .shared::cta, .shared::cluster };
    """,
    types=TYPES,
)
def cp_async_bulk_weak(i, a, b, size, bar, tasks):
    """Start to copy bytes to shared memory, in an order or in units that are named."""
    tasks.transfer(load_of(i), completed, a=a, b=b, size=size, bar=bar)


@has(BYTES)
@declared_later(
    """
    cp.async.bulk{.weak}.dst.global.mbarrier::complete_tx::bytes.ignore_oob  [a], [b], size, left, right, [bar];
    .dst = { .shared::cta, .shared::cluster };
    """,
    types=f"{TYPES}, left right: u32 plain",
)
def cp_async_bulk_inside(i, a, b, size, left, right, bar, tasks):
    """Start to copy bytes to shared memory, without some at both ends, which may be out of bounds; all count as copied."""
    kind = replace(load_of(i), pattern=Pattern.INSIDE)
    tasks.transfer(kind, completed, a=a, b=b, size=size, left=left, right=right, bar=bar)


@has(BYTES)
@checked(
    """
    cp.async.bulk.relaxed.scope.global.shared::cta.bulk_group.b128  [a], [b], size;
    .scope = { .cta, .cluster, .gpu, .sys };
    """,
    section="9.7.9.25.4.1",
    types=TYPES,
    needs=LATER_NEEDS,
    fixed="async bulk",
)
def cp_async_bulk_relaxed(i, a, b, size):
    """Start to copy bytes from shared to global memory, each 16 of them by a strong access."""


# ── reductions ──────────────────────────────────────────────────────────────────────────

OPERATIONS = """
    .op   = { .and, .or, .xor, .add, .inc, .dec, .min, .max };
    .type = { .b32, .b64, .u32, .s32, .u64, .s64, .f16, .bf16, .f32, .f64 };
    """
TO_GLOBAL = {
    "and or xor": "b32 b64",
    "inc dec": "u32",
    "min max": "u32 s32 u64 s64 f16 bf16",
    "add": "u32 s32 u64 f16 bf16 f32 f64",
}
TO_SHARED = {"and or xor": "b32", "inc dec": "u32", "min max": "u32 s32", "add": "u32 s32 u64"}


def reduces(table: dict[str, str]) -> Trait:
    """The operation is one that the type has."""

    def operation_of_a_type(i: Decoded) -> Problem | None:
        """The operation is one that the type of the elements has."""
        if i.type.name in next(types for words, types in table.items() if i.op in words.split()).split():
            return None
        ptxas = f"Incorrect type '{i.type}' for operation '.{i.op}' in instruction '{i.opcode}'"
        return Problem("P2614", f"there is no '.{i.op}' of {i.type} here", word=i.op, ptxas=ptxas)

    return Trait(rules=[("P2614", operation_of_a_type)])


def sums_without_ftz(i: Decoded) -> str | None:
    """Sums of 16-bit floats need .noftz, and those of .f32 may have it."""
    if i.type.name in ("f16", "bf16") and i.op == "add" and not i.noftz:
        return f"Modifier '.noftz' required for instruction '{i.opcode}' with type '{i.type}' and operation '.add'"
    if i.noftz and (i.op != "add" or i.type.name not in ("f16", "bf16", "f32")):
        return f"Illegal modifier '.noftz' for instruction '{i.opcode}'"
    return None


def sums_of_f32_without_ftz(i: Decoded) -> bool:
    """Is it a sum of `.f32` with `.noftz`?"""
    return bool(i.noftz and i.type.name == "f32")


SUMS = Trait(rules=[("P2615", sums_without_ftz)], needs=[("PTX 9.4", sums_of_f32_without_ftz)])


@has(BULK, reduces(TO_GLOBAL), SUMS)
@instruction(
    f"""
    cp.reduce.async.bulk.global.shared::cta.bulk_group{{.hint}}.op{{.noftz}}.type                [a], [b], size{{, policy}};
    cp.reduce.async.bulk.relaxed.scope.global.shared::cta.bulk_group{{.hint}}.op{{.noftz}}.type  [a], [b], size{{, policy}};
    .hint  = {{ .L2::cache_hint }};
    .scope = {{ .cluster, .gpu, .sys }};
    {OPERATIONS}
    """,
    section="9.7.9.25.4.2",
    types=TYPES,
    needs={**NEEDS, ".relaxed": "PTX 9.3"},
    fixed="reduce async bulk",
)
def cp_reduce_async_bulk(i, a, b, size, policy, tasks):
    """Start to combine what lies in shared memory with what lies in global memory, and leave the results there."""
    kind = Transfer(
        Pattern.BYTES, Space.GLOBAL, Space.SHARED, operation=i.op, type=i.type, flushes=i.type is f32 and not i.noftz
    )  # fmt: skip
    tasks.transfer(kind, completed, a=a, b=b, size=size)


@has(BYTES, reduces(TO_SHARED))
@instruction(
    f"""
    cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.op.type  [a], [b], size, [bar];
    {OPERATIONS}
    """,
    section="9.7.9.25.4.2",
    types=TYPES,
    needs=NEEDS,
    fixed="reduce async bulk shared_cluster",
)
def cp_reduce_async_bulk_shared(i, a, b, size, bar, tasks):
    """Start to combine what lies in shared memory with what lies in that of another CTA, and leave the results there."""
    kind = Transfer(Pattern.BYTES, Space.SHARED_CLUSTER, Space.SHARED, mbarrier=True, operation=i.op, type=i.type)
    tasks.transfer(kind, completed, a=a, b=b, size=size, bar=bar)


@has(BYTES, reduces(TO_SHARED))
@checked(
    f"""
    cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.op.type  [a], [b], size, policy;
    {OPERATIONS}
    """,
    section="9.7.9.25.4.2",
    types=TYPES,
    needs=NEEDS,
    fixed="reduce async bulk shared_cluster",
)
def cp_reduce_async_bulk_policy_for_mbarrier(i, a, b, size, policy):
    """Combine what lies in shared memory with that of another CTA, with a cache policy in the place of the mbarrier."""


@has(BYTES)
@instruction(
    "multimem.cp.async.bulk.global.shared::cta.bulk_group{.cp_mask}  [a], [b], size{, mask};",
    section="9.7.9.26",
    types=f"{TYPES}, mask: u16 plain numeric",
    needs={"": "PTX 9.1, sm_90", ".cp_mask": "sm_100"},
    fixed="cp async bulk global",
)
def multimem_cp_async_bulk(i, a, b, size, mask, tasks):
    """Start to copy bytes from shared memory to every memory that a multimem address stands for."""
    pattern = Pattern.BYTES if mask is None else Pattern.MASKED
    kind = Transfer(pattern, Space.GLOBAL, Space.SHARED, multimem=True)
    tasks.transfer(kind, completed, a=a, b=b, size=size, bytes=mask if mask is None else mask.to(u32))


@multimem_cp_async_bulk.rule("P2616")
def mask_without_its_word(i):
    """The mask and .cp_mask go together."""
    if i.cp_mask == (i.shape("mask") is not None):
        return None
    return f"Arguments mismatch for instruction '{i.opcode}'"


@has(BYTES, reduces({**TO_GLOBAL, "add": f"{TO_GLOBAL['add']} s64"}), SUMS)
@instruction(
    f"multimem.cp.reduce.async.bulk.global.shared::cta.bulk_group.op{{.noftz}}.type  [a], [b], size; {OPERATIONS}",
    section="9.7.9.27",
    types=TYPES,
    needs={"": "PTX 9.1, sm_90"},
    fixed="cp reduce async bulk global",
)
def multimem_cp_reduce_async_bulk(i, a, b, size, tasks):
    """Start to combine what lies in shared memory with every memory that a multimem address stands for."""
    kind = Transfer(
        Pattern.BYTES, Space.GLOBAL, Space.SHARED, multimem=True, operation=i.op, type=i.type,
        flushes=i.type is f32 and not i.noftz,
    )  # fmt: skip
    tasks.transfer(kind, completed, a=a, b=b, size=size)


# ── groups ──────────────────────────────────────────────────────────────────────────────


@instruction("cp.async.bulk.commit_group;", section="9.7.9.25.5.1", needs=NEEDS, fixed="async bulk commit_group")
def cp_async_bulk_commit_group(i, tasks):
    """Make a group of the bulk copies that this thread has started since it made the last one."""
    tasks.commit(AsyncKind.BULK)


@instruction(
    "cp.async.bulk.wait_group{.read} n;",
    section="9.7.9.25.5.2",
    types="n: u32 imm",
    needs=NEEDS,
    fixed="async bulk wait_group",
)
def cp_async_bulk_wait_group(i, n, tasks):
    """Wait until at most the `n` latest bulk groups of this thread go on; with .read, until they have read their sources."""
    tasks.wait(n, AsyncKind.BULK, reading=i.read)


@has(addresses(a=Space.GLOBAL), Trait(rules=[("P1811", policy_without_hint)]))
@instruction(
    "cp.async.bulk.prefetch.L2.global{.hint}  [a], size{, policy}; .hint = { .L2::cache_hint };",
    section="9.7.9.25.4.3",
    types="a: u64, size: u32 plain, policy: u64 plain numeric",
    needs=NEEDS,
    fixed="async bulk prefetch",
)
def cp_async_bulk_prefetch(i, a, size, policy, mem):
    """Ask for bytes to be brought into the L2 cache; in ptxvm without effect."""
    mem.prefetch(Space.GLOBAL, a, level="L2")


@cp_async_bulk_prefetch.rule("P2613")
def size_of_a_prefetch(i):
    """A bulk prefetch is of a multiple of 16 bytes."""
    size = i.value("size")
    if size is None or (size % 16 == 0 and 0 <= size <= MOST):
        return None
    return f"Argument 1 of instruction 'cp.async.bulk.prefetch': unexpected value '{size}', expected to be multiple of 16"

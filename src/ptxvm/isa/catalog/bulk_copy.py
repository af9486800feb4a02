"""Copies of many bytes that go on beside the thread (PTX 9.7.9.25.4)."""

from __future__ import annotations

from typing import Any

from ptxvm.isa.access import Trait, base_of, has, policy_without_hint
from ptxvm.isa.mbarrier import completed
from ptxvm.isa.model import Problem, instruction

MOST = 1_048_560  # what an mbarrier can count, in units of 16 bytes


def size_of_a_bulk_copy(i: Any) -> Problem | None:
    """A bulk copy is of a multiple of 16 bytes, up to 1,048,560."""
    size = i.value("size")
    if size is None or (size % 16 == 0 and 0 <= size <= MOST):
        return None
    said = f"Argument 2 of instruction 'cp.async.bulk': unexpected value '{size}', expected to be multiple of 16"
    return Problem("P2611", f"a bulk copy is of a multiple of 16 bytes, not {size}", operand="size", ptxas=said)


def places_of_a_bulk_copy(i: Any) -> Problem | None:
    """The destination, the source and the mbarrier of a bulk copy lie in the spaces that it names."""
    source, target = "shared" if "shared_cta" in i.bound else "global", "global" if "bulk_group" in i.bound else "shared"
    for operand, space in (("a", target), ("b", source), ("bar", "shared")):
        shape = i.shape(operand)
        base = base_of(shape) if shape is not None else None
        if base is not None and base.kind == "variable" and base.space.partition("::")[0] != space:
            said = f"the variable lies in .{base.space}, and .{space} is needed"
            ptxas = "State space mismatch between instruction and address in instruction 'cp.async.bulk'"
            return Problem("P2612", said, operand=operand, ptxas=ptxas)
    return None


def copy_to_the_own_cta(i: Any) -> bool:
    """Is the destination in .shared::cta?"""
    return i.bound.get("dst") == "shared::cta"


BULK = Trait(
    rules=[("P2611", size_of_a_bulk_copy), ("P2612", places_of_a_bulk_copy), ("P1811", policy_without_hint)],
    needs=[("PTX 8.6", copy_to_the_own_cta)],
)
NEEDS = {"": "PTX 8.0, sm_90"}
TYPES = "a b bar: u64, size: u32 plain, policy: b64 plain"


@has(BULK)
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
    source = "shared" if i.shared_cta else "global"
    tasks.copy_bulk("shared", a, source, b, size, bar, completed)


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
    tasks.copy_bulk("global", a, "shared", b, size, None, None)


@instruction("cp.async.bulk.commit_group;", section="9.7.9.25.5.1", needs=NEEDS, fixed="async bulk commit_group")
def cp_async_bulk_commit_group(i, tasks):
    """Make a group of the bulk copies that this thread has started since it made the last one."""
    tasks.commit(kind="bulk")


@instruction(
    "cp.async.bulk.wait_group{.read} n;",
    section="9.7.9.25.5.2",
    types="n: u32 imm",
    needs=NEEDS,
    fixed="async bulk wait_group",
)
def cp_async_bulk_wait_group(i, n, tasks):
    """Wait until at most the `n` latest bulk groups of this thread go on; with .read, until they have read their sources."""
    tasks.wait(n, kind="bulk", reading=i.read)


@has(Trait(rules=[("P1811", policy_without_hint)]))
@instruction(
    "cp.async.bulk.prefetch.L2.global{.hint}  [a], size{, policy}; .hint = { .L2::cache_hint };",
    section="9.7.9.25.4.3",
    types="a: u64, size: u32 plain, policy: b64 plain",
    needs=NEEDS,
    fixed="async bulk prefetch",
)
def cp_async_bulk_prefetch(i, a, size, policy, mem):
    """Ask for bytes to be brought into the L2 cache."""
    mem.prefetch("global", a, level="L2")


@cp_async_bulk_prefetch.rule("P2613")
def size_of_a_prefetch(i):
    """A bulk prefetch is of a multiple of 16 bytes."""
    size = i.value("size")
    if size is None or (size % 16 == 0 and 0 <= size <= MOST):
        return None
    return f"Argument 1 of instruction 'cp.async.bulk.prefetch': unexpected value '{size}', expected to be multiple of 16"

"""Asynchronous copies (PTX 9.7.9.25.3)."""

from __future__ import annotations

from functools import partial

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.value import select
from ptxvm.isa.access import (
    ADDRESS,
    NEEDS,
    Trait,
    base_of,
    generic_addressing,
    has,
    no_constant_address,
    of_a_word,
    policy_without_hint,
    window,
)
from ptxvm.isa.mbarrier import arrived, postponed
from ptxvm.isa.model import Decoded, Problem, instruction

# ── cp.async ────────────────────────────────────────────────────────────────────────────

HEAD = "cp.async.cop.ss.global{.hint}{.prefetch}"
SLOTS = """
    .cop      = { .ca, .cg };
    .ss       = { .shared, .shared::cta };
    .hint     = { .L2::cache_hint };
    .prefetch = { .L2::64B, .L2::128B, .L2::256B };
    """
SIZES = {"ca": (4, 8, 16), "cg": (16,)}


def size_of_a_copy(i: Decoded) -> Problem | None:
    """A copy is of 4, 8 or 16 bytes; of 16 where it is not cached in L1 (.cg)."""
    size, sizes = i.value("size"), SIZES[i.cop]
    if size is None or size in sizes:
        return None
    wanted = " or ".join(map(str, sizes))
    said = f"Argument 2 of instruction 'cp.async': unexpected value '{size}', expected to be {wanted}"
    return Problem("P2601", f"a copy with .{i.cop} is of {wanted} bytes, not {size}", operand="size", ptxas=said)


def more_than_is_copied(i: Decoded) -> Problem | None:
    """What is there of the source is at most the size of the copy."""
    size, source_size = i.value("size"), i.value("source_size")
    if size is None or source_size is None or 0 <= source_size <= size:
        return None
    said = f"Argument 3 of instruction 'cp.async': value '{source_size}' out of range, expected to be in range [0..{size}]"
    return Problem("P2602", f"of {size} bytes 0 to {size} are there, not {source_size}", operand="source_size", ptxas=said)


def source_outside_global(i: Decoded) -> Problem | None:
    """A copy comes from .global."""
    base = base_of(i.shape("b"))
    if base.kind == "integer":
        return no_constant_address(Space.GLOBAL, "b")
    if base.kind != "variable" or base.space.window is Space.GLOBAL:
        return None
    return Problem("P2603", f"the variable lies in .{base.space}, and a copy comes from .global", operand="b",
                   ptxas="State space mismatch between instruction and address in instruction 'cp.async'")  # fmt: skip


def ignored_source(i: Decoded) -> bool:
    """Does a predicate say whether the source counts?"""
    return i.shape("ignore") is not None


COPY = Trait(
    rules=[
        ("P2601", size_of_a_copy),
        ("P2602", more_than_is_copied),
        ("P2603", source_outside_global),
        ("P1811", policy_without_hint),
    ],
    needs=[("PTX 7.5", ignored_source)],
)
COPY_NEEDS = {"": "PTX 7.0, sm_80", **{words: need for words, need in NEEDS.items() if ".L2::" in words}}
copying = partial(
    instruction,
    section="9.7.9.25.3.1",
    types="a b: u64, size: u32 imm, source_size: u32 plain, ignore: pred plain reg, policy: u64 plain numeric",
    needs=COPY_NEEDS,
    fixed="async",
)


@has(ADDRESS, COPY)
@copying(
    f"""
    {HEAD}  [a], [b], size{{, source_size}};
    {HEAD}  [a], [b], size, source_size, policy;
    {SLOTS}
    """,
)
def cp_async(i, a, b, size, source_size, policy, tasks):
    """Start to copy 4, 8 or 16 bytes from global to shared memory.

    Only `source_size` bytes of the source are read, where the operand is there; the others are zeros.
    """
    tasks.copy(a, b, size, source_size)


@has(ADDRESS, COPY)
@copying(f"{HEAD}  [a], [b], size, policy; {SLOTS}")
def cp_async_by_policy(i, a, b, size, policy, tasks):
    """Start to copy 4, 8 or 16 bytes from global to shared memory, with a cache policy."""
    tasks.copy(a, b, size, None)


@has(ADDRESS, COPY)
@copying(f"{HEAD}  [a], [b], size, {{!}}ignore{{, policy}}; {SLOTS}")
def cp_async_ignoring(i, a, b, size, ignore, policy, tasks):
    """Start to copy 4, 8 or 16 bytes from global to shared memory; zeros where the source is to be ignored."""
    tasks.copy(a, b, size, select(ignore, size.lift(0), size))


# ── groups of copies ────────────────────────────────────────────────────────────────────


@instruction("cp.async.commit_group;", section="9.7.9.25.3.2", needs={"": "PTX 7.0, sm_80"}, fixed="async commit_group")
def cp_async_commit_group(i, tasks):
    """Make a group of the copies that this thread has started since it made the last one."""
    tasks.commit()


@instruction(
    "cp.async.wait_group n;",
    section="9.7.9.25.3.3",
    types="n: u32 imm",
    needs={"": "PTX 7.0, sm_80"},
    fixed="async wait_group",
)
def cp_async_wait_group(i, n, tasks):
    """Wait until at most the `n` latest groups of this thread are still being copied."""
    tasks.wait(n)


@instruction("cp.async.wait_all;", section="9.7.9.25.3.3", needs={"": "PTX 7.0, sm_80"}, fixed="async wait_all")
def cp_async_wait_all(i, tasks):
    """Wait for all copies of this thread."""
    tasks.commit()
    tasks.wait(None)


# ── mbarriers that count the end of copies ──────────────────────────────────────────────


@has(ADDRESS, of_a_word("a", when=generic_addressing))
@instruction(
    """
    cp.async.mbarrier.arrive{.noinc}{.ss}.b64  [a];
    .ss = { .shared, .shared::cta };
    """,
    section="9.7.13.15.15",
    types="a: u64",
    needs={"": "PTX 7.0, sm_80", ".shared::cta": "PTX 7.8"},
    fixed="async mbarrier arrive",
)
def cp_async_mbarrier_arrive(i, a, tasks):
    """Arrive at an mbarrier when all copies that this thread has started are done.

    Without .noinc the mbarrier waits for this arrival beside those that it was made for.
    """
    tasks.arrive(window(i), a, arrived, None if i.noinc else postponed)

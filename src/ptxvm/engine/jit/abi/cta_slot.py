"""The layout of a CTA's slot: votes at barriers and warp states, of a CTA that is resident beside others.

A resident CTA has a slot if its kernel has spin loops, and all of its barriers are for the whole CTA.  The words of 32 bits:

    cta (2)                                    the number of the CTA; -1 in a free slot
    barriers                                   a bit for each barrier at which warps wait
    ayes, voters, ayes_then, voters_then       the votes so far, and when a barrier opened last
    opened                                     warps that wait at a barrier may go on
    arrived (2), met                           of the checks: the threads at the barrier, and when the CTA met last
    state                                      of each warp
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxvm.engine.jit.abi.launch_record import offset

VOTES = ("barriers", "ayes", "voters", "ayes_then", "voters_then")  # fields of the launch record, while the CTA runs
KEPT, OPENED, ARRIVED, MET, STATES = 2, 7, 8, 10, 16  # offsets of words


def copied(field: str, llvm: str, word: int, *, restored: bool) -> Iterator[str]:
    """Lines that copy a field of the launch record from a word of the slot of a CTA, or to it."""
    name = f"%{field}.{'restored' if restored else 'kept'}"
    yield f"  {name}.slot = getelementptr i32, ptr %m, i64 {word}"
    yield f"  {name}.field = getelementptr i8, ptr %ctx, i64 {offset(field)}"
    source, target = (f"{name}.slot", f"{name}.field") if restored else (f"{name}.field", f"{name}.slot")
    yield f"  {name} = load {llvm}, ptr {source}, align 4"
    yield f"  store {llvm} {name}, ptr {target}, align 4"


def size(warps: int) -> int:
    """Bytes of a slot, a multiple of 64."""
    return -(-4 * (STATES + warps) // 64) * 64

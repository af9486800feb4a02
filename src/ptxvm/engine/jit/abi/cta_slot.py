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

VOTES = ("barriers", "ayes", "voters", "ayes_then", "voters_then")  # fields of the launch record, while the CTA runs
KEPT, OPENED, ARRIVED, MET, STATES = 2, 7, 8, 10, 16  # offsets of words


def size(warps: int) -> int:
    """Bytes of a slot, a multiple of 64."""
    return -(-4 * (STATES + warps) // 64) * 64

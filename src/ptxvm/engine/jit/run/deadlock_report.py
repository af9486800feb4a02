"""Deadlock reports: the instructions at which lanes wait, read from the records of suspended warps."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from functools import partial

from ptxvm.engine.faults import Count, Waiting
from ptxvm.engine.jit.abi.cta_barriers import BARRIERS, CtaBarriers
from ptxvm.engine.jit.abi.launch_record import AT, HEADER, Record, cta as number_of
from ptxvm.engine.jit.abi.metadata import Facts
from ptxvm.engine.jit.abi.states import GENERAL, RUNNABLE
from ptxvm.isa.effects import Collective
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.image import Image

NODE = (1 << 16) - 1  # of a state: the node at which the warp waits
PARTLY = 1 << 16  # of a state: only some lanes of the warp wait
ALL_THREADS = (1 << 32) - 1  # of the count of a barrier: it expects the whole CTA
NO_CTA = 1 << 63  # from here on a number says that the slot is free


def waiting(facts: Facts, image: Image, record: Record) -> Iterator[Waiting]:
    """The waiting threads, by instruction."""
    records, standing, layout = int(record[AT["records"]]), facts.suspended, CtaBarriers(facts.warps)
    independent = standing.most_in_step > 1  # no CTA waits for another: only the one that runs can be stuck
    slotted = bool(record[AT["in_step"]]) if independent else bool(standing.states)
    for slot in range(int(record[AT["resident"]])) if slotted and not independent else [int(record[AT["slot"]])]:
        start = records + slot * standing.cta_size
        cta, states, barriers = number_of(record), int(record[AT["states"]]), 0
        if slotted:
            number = start + facts.warps * facts.record_size
            cta, states = _word(number, 8), number + standing.states
            barriers = number if standing.states == 4 * layout.of_warp("state") else 0
        for warp in range(facts.warps) if cta < NO_CTA else ():
            counts = partial(_counts, barriers, layout, warp)
            yield from _of_warp(facts, image, cta, warp, _word(states + 4 * warp), start + warp * facts.record_size, counts)


def _of_warp(
    facts: Facts, image: Image, cta: int, warp: int, state: int, record: int, counts: Callable[[int], dict[int, Count]]
) -> Iterator[Waiting]:
    if state >> 31 or (state & RUNNABLE and not state & GENERAL):  # it has ended, or only lets others catch up
        return
    for number, mask in _standing(facts, record, state):
        instruction, barrier = facts.suspended.waits[number]
        lanes = [n for n in range(WARP) if mask >> n & 1 and n + warp * WARP < facts.suspended.threads]
        masks = [] if barrier else [_word(record + facts.suspended.masks + 4 * n) for n in lanes]
        bound = facts.bound(image, instruction)
        come = counts(mask) if barrier and bound.summary.collective is Collective.BARRIER else {}
        yield Waiting(cta, bound, [n + warp * WARP for n in lanes], masks, come)


def _standing(facts: Facts, record: int, state: int) -> Iterator[tuple[int, int]]:
    """The nodes at which lanes of a warp wait, each with the mask of these lanes."""
    if not state & GENERAL:
        yield state & NODE, _word(record) if state & PARTLY else (1 << WARP) - 1
        return
    for number in facts.suspended.waits:
        if mask := _word(record + HEADER + 4 * number):
            yield number, mask


def _counts(barriers: int, layout: CtaBarriers, warp: int, mask: int) -> dict[int, Count]:
    """How many threads have come to the barriers at which lanes of a warp wait, and how many each expects.

    `barriers` is the address of the record; it is 0 where all barriers are for the whole CTA.
    """
    found = {}
    for number in range(BARRIERS) if barriers else ():
        at = number * layout.warps
        if not _word(barriers + 4 * (layout.of_lanes("waiting") + at + warp)) & mask:
            continue
        expected = _word(barriers + 4 * (layout.of_barrier("expected") + number))
        if expected not in (ALL_THREADS, layout.warps * WARP):
            arrived = [_word(barriers + 4 * (layout.of_lanes("arrived") + at + each)) for each in range(layout.warps)]
            found[number] = (sum(each.bit_count() for each in arrived), expected)
    return found


def _word(address: int, size: int = 4) -> int:
    return int.from_bytes(ctypes.string_at(address, size), "little")

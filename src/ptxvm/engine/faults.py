"""The messages of faults and deadlocks: the same words on every engine, with the place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ptxvm.analysis.program import Bound
from ptxvm.diagnostics.diagnostic import Span
from ptxvm.diagnostics.errors import Place
from ptxvm.isa.effects import Collective
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.faults import plural
from ptxvm.named_tuple import NamedTuple

Extent = tuple[int, int, int]
Count = tuple[int, int]  # of threads: those that have come, and those that are expected


class Waiting(NamedTuple):
    """Threads of a CTA that wait at an instruction, by their numbers in the CTA; and their masks at a collective.

    At barriers that expect some number of threads, `counts` has how many have come to each, by its number, and how many
    it expects; not where that is the whole CTA.
    """

    cta: int
    bound: Bound
    threads: list[int]
    masks: Sequence[int] = ()
    counts: dict[int, Count] = {}  # noqa: RUF012 - never changed


def place(kernel: str, bound: Bound, cta: Extent, thread: Extent) -> Place:
    """The place of an instruction, and the thread that ran it."""
    file, line, text = locate(bound)
    function, span = bound.function, Span(bound.node.start, bound.node.end)
    return Place(kernel, line, text, cta, thread, function.name if function is not None else "", file, bound.origin, span)


def locate(bound: Bound) -> tuple[str, int, str]:
    """The file, line and text of an instruction."""
    program = bound.program
    if program is None:
        return "", 0, bound.node.head
    return program.source.name, bound.line, bound.text.rstrip(";")


def unfold(number: int, extent: Extent) -> Extent:
    """A number as coordinates (x, y, z)."""
    return number % extent[0], number // extent[0] % extent[1], number // (extent[0] * extent[1])


def deadlock(found: Iterable[Waiting]) -> tuple[str, Waiting]:
    """The message for a CTA whose threads all wait, and its first waiting threads in the order of the code."""
    everyone = list(found)
    cta = min(each.cta for each in everyone)
    groups: dict[int, Waiting] = {}
    for each in everyone:
        if each.cta == cta:
            known = groups.setdefault(id(each.bound), Waiting(cta, each.bound, [], (), {}))
            known.threads.extend(each.threads)
            known.counts.update(each.counts)
    ordered = sorted(groups.values(), key=lambda group: locate(group.bound))
    parts = []
    for group in ordered[:4]:
        _, line, text = locate(group.bound)
        come = "".join(f", where {came} of {all} have come to barrier {n}" for n, (came, all) in sorted(group.counts.items()))
        parts.append(
            f"{plural(len(group.threads), 'thread')} wait{'s' * (len(group.threads) == 1)} at line {line} ({text}){come}"
        )
    if missing := listed(_missing([each for each in everyone if each.cta == cta and each.masks])):
        parts.append(f"{missing} of a warp never came, but the others name {'them' if 'lanes' in missing else 'it'}")
    if any(group.bound.summary.collective is Collective.WARPGROUP for group in ordered):
        parts.append("all four warps of a warpgroup wait for its products")
    if any(group.bound.summary.collective is Collective.COLUMNS for group in ordered):
        parts.append("too few columns of tensor memory are free, and none are given back")
    return "no thread can go on: " + "; ".join(parts), ordered[0]


def _missing(collectives: list[Waiting]) -> int:
    """The lanes that are named by the first waiting warp and have not arrived."""
    pairs = [pair for each in collectives for pair in zip(each.threads, each.masks, strict=True)]
    warp = min((thread // WARP for thread, _ in pairs), default=0)
    wanted = came = 0
    for thread, mask in pairs:
        if thread // WARP == warp:
            wanted |= mask
            came |= 1 << thread % WARP
    return wanted & ~came


def listed(mask: int) -> str:
    """`lane 3`, `lanes 3, 4 and 9`: the lanes of a mask; empty where there is none."""
    numbers = [str(n) for n in range(WARP) if mask >> n & 1]
    if len(numbers) < 2:
        return "".join(f"lane {n}" for n in numbers)
    return f"lanes {', '.join(numbers[:-1])} and {numbers[-1]}"

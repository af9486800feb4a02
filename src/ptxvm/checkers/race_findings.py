"""Races as findings: of two launches, and on tensor memory; and fences that are missing."""

from __future__ import annotations

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.program import Bound
from ptxvm.checkers.launches import LaunchRace
from ptxvm.checkers.missed_phases import MissedPhase
from ptxvm.checkers.race_pair import HAZARDS
from ptxvm.checkers.tensor_order import TensorRace
from ptxvm.diagnostics.diagnostic import Span
from ptxvm.machine.events import Finding, Party, Scenes


def both(later: Party, earlier: Party) -> str:
    """Two unordered accesses in words; they may be one instruction that two threads execute."""
    if later.line != earlier.line:
        return f"the {later.operation} at line {later.line} and the {earlier.operation} at line {earlier.line}"
    if later.operation != earlier.operation:
        return f"the {later.operation} and the {earlier.operation} at line {later.line}"
    return f"two executions of the {later.operation} at line {later.line}"


def tensor_race(race: TensorRace, scenes: Scenes) -> Finding:
    """The finding of two unordered accesses to tensor memory, and the synchronisation that they lack."""
    uses = race.earlier, race.later
    earlier, later = (Party(use.operation, scenes.place(use.bound, int(use.threads[0]))) for use in uses)
    block = race.later.block
    said = (
        f"{race.hazard} race on tensor memory, columns {block.first} to {block.end - 1}: {both(later, earlier)} are not ordered"
    )
    first, second = (use.bound for use in uses)
    return Finding(
        "race", said, (earlier, later), race.hazard, "tensor", race.missing, span=span(second), related=span(first),
        column=column(second),
    )  # fmt: skip


def launch_race(clash: LaunchRace) -> Finding:
    """The finding of two launches that touch the same bytes without an order."""
    earlier, later = (
        Party(
            site.described, footprint.scenes.place(site.bound, thread), clash.address, clash.address - clash.accesses.start,
            site.size, clash.accesses.where, site.strength, footprint.launch.number,
        )
        for site, thread, footprint in zip(clash.sites, clash.threads, clash.footprints, strict=True)
    )  # fmt: skip
    first, second = (footprint.launch for footprint in clash.footprints)
    hazard = HAZARDS[clash.sites[0].writes, clash.sites[1].writes]
    touching = f"the {later.operation} at line {later.line} touches what the {earlier.operation} at line {earlier.line} does"
    if (earlier.operation, earlier.line, earlier.place.file) == (later.operation, later.line, later.place.file):
        touching = f"the {later.operation} at line {later.line} touches the same bytes in both"
    said = f"{hazard} race on .global memory: {second} and {first} are not ordered, and {touching}"
    missing = (
        f"an event that {first.stream} records after its launch and {second.stream} waits for, or one stream for both, "
        "or release and acquire at .gpu scope between the two"
    )
    if first.stream == second.stream:
        missing = "griddepcontrol.wait before the access"
    if first.device != second.device:
        strong = all(site.scope for site in clash.sites)
        waits = "waiting for the first launch before the second, or release and acquire at .sys scope between the two"
        missing = "a scope of .sys: others end at the device" if strong else waits
    theirs, ours = (site.bound for site in clash.sites)
    related = span(theirs) if earlier.place.file == later.place.file else Span(0, 0)
    return Finding(
        "race", said, (earlier, later), hazard, Space.GLOBAL, missing, clash.sites[0].size != clash.sites[1].size,
        span=span(ours), related=related, column=column(ours),
    )  # fmt: skip


def missed_phase(missed: MissedPhase, scenes: Scenes) -> Finding:
    """The finding of a test that may come after the end of the next phase."""
    first, second = missed.test.bound, missed.end.bound
    test, end = Party("test", scenes.place(first, missed.thread)), Party("arrival", scenes.place(second, missed.other))
    said = (
        f"the test of an mbarrier at line {test.line} may miss its phase: nothing orders it before the end of the next phase, "
        f"at line {end.line}, and after that it waits for one phase more"
    )
    missing = "an arrival in each phase behind the test: of its thread, or of one that meets it"
    return Finding(
        "missed-phase", said, (test, end), missing=missing, span=span(second), related=span(first), column=column(second)
    )  # fmt: skip


def missing_fence(bound: Bound, thread: int, said: str, other: Bound | None, scenes: Scenes) -> Finding:
    """The finding of a product without a fence, after another instruction that used its registers."""
    missing = "wgmma.fence before the product"
    if other is not None:
        return of_two("missing-fence", said, ("access", other), ("product", bound), thread, scenes, missing)
    party = Party("product", scenes.place(bound, thread))
    return Finding("missing-fence", said, (party,), missing=missing, span=span(bound), column=column(bound))


def of_two(
    kind: str, said: str, earlier: tuple[str, Bound], later: tuple[str, Bound], thread: int, scenes: Scenes, missing: str = ""
) -> Finding:  # fmt: skip
    """The finding of two instructions of one thread, each with a name for its part."""
    parties = tuple(Party(what, scenes.place(bound, thread)) for what, bound in (earlier, later))
    first, second = earlier[1], later[1]
    return Finding(
        kind, said, parties, missing=missing, span=span(second), related=span(first), column=column(second)
    )  # fmt: skip


def span(bound: Bound) -> Span:
    """The span of an instruction in the source."""
    return Span(bound.node.start, bound.node.end)


def column(bound: Bound) -> int:
    """The column at which an instruction begins."""
    program = bound.program
    return program.source.location(bound.node.start)[1] if program is not None else 1

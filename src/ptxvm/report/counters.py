"""The counters of a report: what a launch did, what the best would be, and what the difference means."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ptxvm.dataclass import dataclass
from ptxvm.driver.models import Model
from ptxvm.driver.occupancy import multiprocessor
from ptxvm.isa.special_registers import WARP
from ptxvm.profile.metrics import METRICS, Number
from ptxvm.profile.occupancy import occupancy_limits
from ptxvm.profile.profile import Profile


@dataclass(frozen=True)
class Count:
    """A counter with its ideal; `part` is how near it comes, from 0 to 1."""

    title: str
    metric: str
    value: Number
    ideal: Number
    unit: str
    part: float
    sentence: str


def counts(profile: Profile, card: Model) -> list[Count]:
    """The counters of the work that there was."""
    return [*lanes(profile), *memory(profile), *atomics(profile), occupancy(profile, card)]


def count(title: str, profile: Profile, metric: str, ideal: Number, sentence: str, *, less: bool) -> Count:
    """A counter of a profile; `less` is better, or more."""
    value = profile[metric]
    over, under = (ideal, value) if less else (value, ideal)
    part = min((over or 0) / under, 1.0) if under else 1.0
    return Count(title, metric, value, ideal, METRICS[metric].unit, part, sentence)


def lanes(profile: Profile) -> Iterator[Count]:
    """How many lanes take part."""
    active, on = profile["threads_per_inst"] or 0, profile["threads_true_per_inst"] or 0
    yield count(
        "Active lanes", profile, "threads_per_inst", WARP,
        "All lanes of a warp execute each instruction." if active == WARP else
        f"On average {WARP - active:.1f} of {WARP} lanes sit idle: they diverged, have returned, or the block is no multiple "
        f"of {WARP}.", less=False,
    )  # fmt: skip
    if on < active:
        said = f"A guard predicate switches off {active - on:.1f} of the active lanes on average."
        yield count("Lanes with a true guard", profile, "threads_true_per_inst", WARP, said, less=False)
    if profile["branches"]:
        parted = profile["divergent_branches"]
        said = "After each branch the lanes of a warp are at one place." if not parted else (
            f"After {parted:,} of {profile['branches']:,} branches the lanes of a warp went on at several places, one after "
            "the other."
        )  # fmt: skip
        yield count("Uniform branches", profile, "branch_uniform_pct", 100, said, less=False)


def memory(profile: Profile) -> Iterator[Count]:
    """What is asked of memory."""
    if profile["global_sectors"]:
        more = profile["global_sectors_excessive"] or 0
        said = "Each sector of 32 bytes that a warp touches is wanted whole." if more <= 0 else (
            f"{more:,} sectors are read or written for bytes that the warp does not ask for: its lanes are far apart."
        )  # fmt: skip
        yield count("Sectors of global memory", profile, "global_sectors", profile["global_sectors_ideal"], said, less=True)
    if profile["shared_wavefronts"]:
        more = profile["shared_bank_conflicts"] or 0
        said = "No bank of shared memory is asked for two words at once." if not more else (
            f"{more:,} wavefronts are bank conflicts: lanes ask one bank for different words, and take turns."
        )  # fmt: skip
        ideal = profile["shared_wavefronts_ideal"]
        yield count("Wavefronts of shared memory", profile, "shared_wavefronts", ideal, said, less=True)
    if profile["local_bytes"]:
        said = "Arrays with computed indices and values without a register lie in local memory, which is device memory."
        yield count("Bytes of local memory", profile, "local_bytes", 0, said, less=True)


def atomics(profile: Profile) -> Iterator[Count]:
    """How atomics compete."""
    if profile["atomic_operations"]:
        requests = sum(profile[f"{space}_atomic_requests"] or 0 for space in ("global", "shared"))
        said = "The lanes of a warp update different addresses." if profile["atomic_steps"] == requests else (
            f"{profile['atomic_contention']:.1f} lanes of a warp update one address on average: one after the other."
        )  # fmt: skip
        yield count("Steps of atomics", profile, "atomic_steps", requests, said, less=True)


def occupancy(profile: Profile, card: Model) -> Count:
    """How many warps a multiprocessor of a card holds at most."""
    holds = multiprocessor(card.attributes().__getitem__)
    limits = occupancy_limits(holds, prod(profile.block), profile.shared_bytes)
    warps, most = min(limits.values()) * -(-prod(profile.block) // WARP), holds.threads // WARP
    named = {"blocks": "the number of CTAs", "warps": "the number of warps", "shared_mem": "shared memory"}
    by = next(named[name] for name, limit in limits.items() if limit == min(limits.values()))
    said = (
        f"A multiprocessor of {card.name} holds so many of its warps at once, limited by {by}; "
        "PTX does not say how many registers a thread has."
    )
    return Count("Resident warps", "", warps, most, "warp", warps / most, said)


__all__ = ["Count", "counts"]

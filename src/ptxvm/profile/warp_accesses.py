"""What one instruction of some warps asks of memory: sectors and lines, wavefronts over banks, contention.

Each function takes the warp and the address of every active lane.  Accesses of PTX are aligned to their size, so two of one
instruction touch the same bytes or none in common.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ptxvm.algebra.state_space import Space
from ptxvm.isa.effects import Verb
from ptxvm.isa.special_registers import WARP
from ptxvm.named_tuple import NamedTuple

Ints = npt.NDArray[np.int64]

SECTOR, LINE = 32, 128  # bytes (CUDA C++ Programming Guide, "Global Memory")
BANKS, WORD = 32, 4  # a bank has words of 4 bytes ("Shared Memory")
PAIRED = (8, 16)  # bytes of loads that may be served in pairs of lanes
PARTNERS = (1, 2)  # lanes n and n ^ 1, or n and n ^ 2
ADDRESS = 48  # bits of an address in a key; the warp is above


class GlobalTraffic(NamedTuple):
    """Sectors and lines that are touched, and the fewest sectors that hold as many bytes."""

    sectors: int
    ideal: int
    lines: int


class SharedTraffic(NamedTuple):
    """Passes over the banks, and how many there would be without conflicts."""

    wavefronts: int
    ideal: int


class Contention(NamedTuple):
    """Addresses, and the steps in which the most wanted address of each warp is updated."""

    addresses: int
    steps: int


def distinct(values: Ints) -> Ints:
    """The different ones, in order; most are in order already."""
    ordered = values if (values[1:] >= values[:-1]).all() else np.sort(values)
    return ordered[begins(ordered)]


def keys_of(warps: Ints, addresses: Ints) -> Ints:
    """A warp, or a pass of one, above an address; numbers of warps have 32 bits on WebAssembly."""
    return warps.astype(np.int64) << ADDRESS | addresses


def begins(ordered: Ints) -> npt.NDArray[np.bool_]:
    """Where a value differs from the one before it."""
    found = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=found[1:])
    return found


def requests(warps: Ints) -> int:
    """How many warps take part."""
    return len(distinct(warps))


def global_traffic(warps: Ints, addresses: Ints, size: int) -> GlobalTraffic:
    """The sectors and lines of accesses of `size` bytes; addresses count from a multiple of 128."""
    places = distinct(keys_of(warps, addresses))
    owners, within = places >> ADDRESS, places & (1 << ADDRESS) - 1
    held = np.bincount(owners.astype(np.intp)) * size
    # An access of up to 32 bytes lies in one sector; a larger one is several.
    first, last = within // SECTOR, (within + size - 1) // SECTOR
    pieces = [owners << ADDRESS | first + n for n in range(int((last - first).max(initial=0)) + 1)]
    sectors = distinct(np.concatenate(pieces))
    per_line = LINE // SECTOR
    lines = distinct(sectors >> ADDRESS << ADDRESS | (sectors & (1 << ADDRESS) - 1) // per_line)
    return GlobalTraffic(len(sectors), int(-(-held // SECTOR).sum()), len(lines))


def shared_traffic(warps: Ints, lanes: Ints, addresses: Ints, verb: Verb, size: int) -> SharedTraffic:
    """The wavefronts of accesses of `size` bytes: lanes that ask a bank for different words take turns.

    A pass serves 128 bytes, so accesses of 8 bytes go half a warp at a time, and those of 16 bytes a quarter; loads of pairs
    of lanes twice as many (`may_pair`).
    """
    together = BANKS * WORD // max(size, WORD)  # lanes of a pass
    twice = in_pairs(warps, lanes, addresses) if may_pair(Space.SHARED, verb, size) else 0
    passes = warps * (BANKS // together) + (lanes // together >> twice)
    words = [keys_of(passes, addresses // WORD + n) for n in range(max(size // WORD, 1))]
    asked = distinct(np.concatenate(words))
    number = np.cumsum(begins(asked >> ADDRESS)) - 1
    count = int(number[-1]) + 1
    bank = (number * BANKS + asked % BANKS).astype(np.intp)
    turns = np.bincount(bank, minlength=count * BANKS).reshape(count, BANKS)
    return SharedTraffic(int(turns.max(axis=1).sum()), count)


def may_pair(space: Space, verb: Verb, size: int) -> bool:
    """May a pass serve twice as many lanes, where pairs of them have one address?

    So it is for loads of 8 and 16 bytes from shared memory: what they return has two registers of two lanes in the room of one
    (NVIDIA's developer forum, thread 77228, for compute capability 7.0 to 7.5; thread 373160 has counts of 8.6 and 9.0).
    """
    return space is Space.SHARED and verb is Verb.READ and size in PAIRED


def in_pairs(warps: Ints, lanes: Ints, addresses: Ints) -> npt.NDArray[np.bool_]:
    """Of each active lane: has its warp the same address in all lanes n and n ^ 1, or in all n and n ^ 2, that are active?"""
    different, warp = np.unique(warps, return_inverse=True)
    of_lane = np.full((len(different), WARP), -1)
    of_lane[warp, lanes] = addresses
    found = np.zeros(len(different), np.bool_)
    for apart in PARTNERS:
        partner = of_lane[:, np.arange(WARP) ^ apart]
        found |= ((of_lane == partner) | (of_lane < 0) | (partner < 0)).all(axis=1)
    return found[warp]


def contention(warps: Ints, addresses: Ints) -> Contention:
    """How atomics of lanes compete for addresses."""
    keys, wanted = np.unique(keys_of(warps, addresses), return_counts=True)
    most = np.zeros(int(warps.max()) + 1, np.int64)
    np.maximum.at(most, keys >> ADDRESS, wanted)
    return Contention(len(keys), int(most.sum()))


__all__ = [
    "Contention",
    "GlobalTraffic",
    "SharedTraffic",
    "contention",
    "distinct",
    "global_traffic",
    "may_pair",
    "requests",
    "shared_traffic",
]

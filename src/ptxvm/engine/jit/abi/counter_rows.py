"""Rows of counters: what compiled code counts of the accesses of one instruction, eight words of 64 bits at a time."""

from __future__ import annotations

from collections.abc import Iterator

from ptxvm.algebra.state_space import Space
from ptxvm.isa.effects import Verb
from ptxvm.profile.metrics import COUNTED, WORDS
from ptxvm.profile.warp_accesses import WORD as BANK_WORD

WORD = 8  # bytes
REQUESTS, LANES, UNITS, IDEAL, LINES, ADDRESSES, STEPS = range(7)
ROW = 8  # words of a row: those above, and one that stays 0
CLASSES = (Space.GLOBAL, Space.SHARED, Space.LOCAL, Space.CONST, Space.PARAM)
"""The spaces that a generic address may be in: it has a row for each."""

# A place is where an allocation lies for the counters: its first address and its length, what is added to an address, and
# its class.  The place that an access met last stands before the patterns that it remembers.
START, LENGTH, MOVED, CLASS = range(4)
PLACE = 4  # words

# A remembered pattern of an affine access: two scalars of its address; the least address of its first lane for which all lanes
# are in one allocation, and for how many bytes from there they are; the class of the allocation; and then a row.
SCALARS = 2
LOW, ROOM, OF_CLASS = range(SCALARS, SCALARS + 3)
PATTERN = 16  # words

MOST_WORDS = 1 << 21  # that the versions of a kernel may count in

# Requests whose lanes have any addresses are counted in batches.  A request of a batch has a key for each lane: the number of
# its element, or NO_KEY if the lane is not active.
KEY_WORDS = 16  # words of the keys of a request
NO_KEY = (1 << 32) - 1
FIRST_KEYS = MOST_WORDS  # the word from which on the keys stand
MOST_KEYS = 1 << 22  # words of keys of all versions of a kernel
BATCHED = (Space.GLOBAL, Space.SHARED)
"""The spaces whose requests are counted in batches."""


def element(space: Space, size: int, *, atomic: bool) -> int:
    """The bytes that a key of a request stands for: of shared memory that is at least a word, unless lanes compete for it."""
    return size if space is Space.GLOBAL or atomic else max(size, BANK_WORD)


def row_weights(space: Space, verb: Verb, size: int) -> Iterator[tuple[int, str, int]]:
    """The metrics that a row counts for accesses of `size` bytes: each with its word and a factor."""
    name = f"{space}_{WORDS[verb]}"
    found = [(REQUESTS, f"{name}_requests", 1), (LANES, f"{name}_bytes", size)]
    if space is Space.GLOBAL:
        found += [(UNITS, f"{name}_sectors", 1), (IDEAL, f"{name}_sectors_ideal", 1), (LINES, f"{name}_lines", 1)]
    if space is Space.SHARED:
        found += [(UNITS, f"{name}_wavefronts", 1), (IDEAL, f"{name}_wavefronts_ideal", 1)]
    if verb is Verb.UPDATE:
        found += [(LANES, "atomic_operations", 1), (ADDRESSES, "atomic_addresses", 1), (STEPS, "atomic_steps", 1)]
    return (each for each in found if each[1] in COUNTED)  # nothing is stored to .const

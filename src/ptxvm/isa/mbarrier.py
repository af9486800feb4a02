"""The contents of an mbarrier, as operations on values (PTX 9.7.13.15.2 to 9.7.13.15.7).

The manual leaves them open.  Here an mbarrier is one word of 64 bits, so that each operation is one atomic update of it, and
the state that an arrival gives is the word itself:

    63      62 … 43     42 … 22        21 … 2              1   0
    phase   pending     transactions   expected arrivals   0   1 (there is an mbarrier)
"""

from __future__ import annotations

from ptxvm.algebra.types import b64, u64
from ptxvm.algebra.value import Value, select
from ptxvm.isa.model import Decoded

PHASE, PENDING, TRANSACTIONS, EXPECTED = 63, 43, 22, 2
COUNT = (1 << 20) - 1  # the most of every count
TRANSACTION_BITS = (1 << 21) - 1
VALID, MADE = 1, 3  # the value and the mask of the bits that say that there is an mbarrier
BYTES = 8


def must_not_complete(i: Decoded) -> bool:
    """Does an arrival rule out that it ends the phase (`.noComplete`)?"""
    return bool(getattr(i, "noComplete", False))


def field(word: Value, shift: int, mask: int) -> Value:
    """A count of the word."""
    return (word.view(u64) >> shift) & mask


def phase(word: Value) -> Value:
    """0 in the even phases, 1 in the odd ones."""
    return word.view(u64) >> PHASE


def fresh(count: Value) -> Value:
    """An mbarrier in phase 0 for so many arrivals; for none where the count is out of its range."""
    counted = select(count.to(u64) > COUNT, count.to(u64).lift(0), count.to(u64))
    return ((counted << PENDING) | (counted << EXPECTED) | VALID).view(b64)


def signalled(word: Value, arrivals: Value, *, transactions: Value | int = 0, dropped: bool = False) -> Value:
    """The word after some arrivals and a change of the number of transactions; where nothing is awaited, in the next phase."""
    pending = (field(word, PENDING, COUNT) - arrivals) & COUNT
    awaited = (field(word, TRANSACTIONS, TRANSACTION_BITS) + transactions) & TRANSACTION_BITS
    expected = field(word, EXPECTED, COUNT)
    if dropped:
        expected = (expected - arrivals) & COUNT
    complete = pending.eq(0) & awaited.eq(0)
    turned = select(complete, phase(word) ^ 1, phase(word))
    left = select(complete, expected, pending)
    made = (turned << PHASE) | (left << PENDING) | (awaited << TRANSACTIONS) | (expected << EXPECTED) | (word.view(u64) & VALID)
    return made.view(b64)


def expecting(word: Value, transactions: Value) -> Value:
    """The word with more transactions awaited."""
    awaited = (field(word, TRANSACTIONS, TRANSACTION_BITS) + transactions) & TRANSACTION_BITS
    rest = word.view(u64) & ((1 << 64) - 1 - (TRANSACTION_BITS << TRANSACTIONS))
    return (rest | (awaited << TRANSACTIONS)).view(b64)


def postponed(word: Value) -> Value:
    """The word with one more arrival pending in this phase."""
    rest = word.view(u64) & ((1 << 64) - 1 - (COUNT << PENDING))
    return (rest | (((field(word, PENDING, COUNT) + 1) & COUNT) << PENDING)).view(b64)


def arrived(word: Value) -> Value:
    """The word after one arrival."""
    return signalled(word, word.view(u64).lift(1))


def dropped(word: Value, arrivals: Value) -> Value:
    """The word after some arrivals that later phases do without."""
    return signalled(word, arrivals, dropped=True)


def expect_and_arrive(word: Value, transactions: Value) -> Value:
    """The word with more transactions awaited, after one arrival."""
    return signalled(word, transactions.lift(1), transactions=transactions)


def expect_and_drop(word: Value, transactions: Value) -> Value:
    """The same with an arrival that later phases do without."""
    return signalled(word, transactions.lift(1), transactions=transactions, dropped=True)


def completed(word: Value, transactions: Value) -> Value:
    """The word after the end of some transactions."""
    return signalled(word, transactions.lift(0), transactions=-transactions)


def pending(word: Value) -> Value:
    """How many arrivals the phase waits for."""
    return field(word, PENDING, COUNT)

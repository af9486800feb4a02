"""Did you mean: the known word that a misspelt one was meant to be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache, reduce

_LONGEST = 64
_MANY = 100  # names that may be near: of more, only those are looked at that are one slip away


def closest(word: str, known: Iterable[str]) -> str:
    """The known word that is the smallest edit distance from `word`; empty where none is near.

    A slip leaves out, adds or changes a character, or swaps two; there may be one for every three characters.
    Of two as near, the one with the same letters is meant; else the first, which of a set is that of the alphabet.
    """
    if not 2 <= len(word) <= _LONGEST:
        return ""
    return _closest(word, known if isinstance(known, frozenset) else tuple(sorted(known) if isinstance(known, set) else known))


@lru_cache(maxsize=256)  # a module repeats its mistakes; each set of names may be large
def _closest(word: str, known: frozenset[str] | tuple[str, ...]) -> str:
    limit = max(1, len(word) // 3)
    folded, letters, length = word.lower(), _letters(word.lower()), len(word)
    near = [
        (each, other)
        for each in known
        if -limit <= len(each) - length <= limit and (letters ^ _letters(other := each.lower())).bit_count() <= 2 * limit
    ]
    if len(near) > _MANY:
        near = [(each, other) for each, other in near if _one_slip(folded, other)]
    if isinstance(known, frozenset):  # whose order differs from process to process
        near.sort()
    best, fewest = "", (limit + 1, False, False)
    for each, other in near:
        rank = _edit_distance(folded, other), letters != _letters(other), other[0] != folded[0]
        if rank < fewest:
            best, fewest = each, rank
    return best


@lru_cache(maxsize=10_000)
def _letters(word: str) -> int:
    """The letters of a word, as bits; some that are not of ASCII share one."""
    return reduce(int.__or__, (1 << ord(letter) % 128 for letter in word), 0)


def _one_slip(one: str, other: str) -> bool:
    """Is the edit distance of two words one, or none?"""
    if abs(len(one) - len(other)) > 1:
        return False
    n = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    swapped = one[n : n + 2] == other[n : n + 2][::-1] and one[n + 2 :] == other[n + 2 :]
    return swapped or one[n + 1 :] in (other[n:], other[n + 1 :]) or one[n:] == other[n + 1 :]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``did you mean `x`?`` for a `help` field, or nothing."""
    guess = closest(word, known)
    return f"did you mean `{guess}`?" if guess else ""


@lru_cache(maxsize=10_000)  # a module repeats its mistakes, and the words of an opcode are few
def _edit_distance(one: str, other: str) -> int:
    """The distance of Damerau and Levenshtein, where a swapped pair is not changed again."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, a in enumerate(one, start=1):
        row = [i]
        for j, b in enumerate(other, start=1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and b == one[i - 2]:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, last = last, row
    return last[-1]


def edit_distance(one: str, other: str) -> int:
    """The edit distance of two words, in either case of their letters; a transposition counts once."""
    return _edit_distance(one.lower(), other.lower())


def listed(words: Sequence[str], last: str = "or") -> str:
    """`a`, `a or b`, `a, b or c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}" if words else ""

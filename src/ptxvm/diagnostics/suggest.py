"""Did you mean: the known word that a misspelt one was meant to be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

_LONGEST = 64


def closest(word: str, known: Iterable[str]) -> str:
    """The known word that is the smallest edit distance from `word`; empty where none is near.

    A slip leaves out, adds or changes a character, or swaps two; there may be one for every three characters.
    Of two as near, the one with the same letters is meant.
    """
    if not 2 <= len(word) <= _LONGEST:
        return ""
    limit = max(1, len(word) // 3)
    folded, letters = word.lower(), set(word.lower())
    best, fewest = "", (limit + 1, True, True)
    for candidate in known:
        other = candidate.lower()
        if abs(len(other) - len(word)) > limit or len(letters.symmetric_difference(other)) > 2 * limit:
            continue
        rank = _edit_distance(folded, other), letters != set(other), other[0] != folded[0]
        if rank < fewest:
            best, fewest = candidate, rank
    return best


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

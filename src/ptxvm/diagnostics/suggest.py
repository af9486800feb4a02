"""Did you mean: the known word that a misspelt one was meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LONGEST = 64


def closest(word: str, known: Iterable[str]) -> str:
    """The known word that is most like `word`; empty where none is near."""
    if len(word) > _LONGEST:
        return ""
    candidates = list(known)
    folded = {candidate.lower(): candidate for candidate in reversed(candidates)}
    if word.lower() in folded:
        return folded[word.lower()]
    near = difflib.get_close_matches(word, candidates, n=1, cutoff=0.7)
    return near[0] if near else ""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``did you mean `x`?`` for a `help` field, or nothing."""
    guess = closest(word, known)
    return f"did you mean `{guess}`?" if guess else ""

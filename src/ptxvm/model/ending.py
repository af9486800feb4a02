"""Termination of a litmus test: the answer to whether it comes to its end."""

from __future__ import annotations

from ptxvm.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Ending:
    """The answer: `terminates`, `may_hang` or `unknown`, and the reason."""

    answer: str
    why: tuple[str, ...] = ()

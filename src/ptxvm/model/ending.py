"""Termination of a litmus test: the answer to whether it comes to its end."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ending:
    """`terminates`, `may_hang`, or `unknown`, and why."""

    answer: str
    why: tuple[str, ...] = ()

"""The errors of the runtime (`cudaError`): their names, and what they are in words."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ptxvm.driver import results as driver

DESCRIPTIONS = dict(driver.DESCRIPTIONS) | {
    9: "invalid configuration argument", 12: "invalid pitch argument", 13: "invalid device symbol",
    20: "invalid channel descriptor", 21: "invalid copy direction for memcpy",
    26: "linear filtering not supported for non-float type", 98: "invalid device function",
}  # fmt: skip
UNKNOWN = "unrecognized error code"


@cache
def names() -> dict[int, str]:
    """The names of the errors."""
    lines = Path(__file__).with_name("runtime_errors.txt").read_text(encoding="ascii").splitlines()
    return {int(number): name for number, name in (line.split() for line in lines)}


def name(code: int) -> str:
    """The name of an error."""
    return names().get(code, UNKNOWN)


def description(code: int) -> str:
    """A description of an error; of a rare one the words of its name."""
    return DESCRIPTIONS.get(code) or (in_words(names()[code]) if code in names() else UNKNOWN)


def in_words(name: str) -> str:
    """A name as words: `cudaErrorInvalidSource` is "invalid source"."""
    return "".join(f" {each.lower()}" if each.isupper() else each for each in name.removeprefix("cudaError")).strip()


__all__ = ["DESCRIPTIONS", "UNKNOWN", "description", "name", "names"]

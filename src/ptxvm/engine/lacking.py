"""What the JIT leaves to the interpreter: kernels that need one of these run there with `engine="auto"`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lacking:
    """A feature: what `Unsupported.feature` begins with, and what the user should know."""

    feature: str
    why: str

    def is_meant(self, feature: str) -> bool:
        """Is it this one that an engine has named?"""
        return feature.startswith(self.feature)


LACKING = (
    Lacking(
        "a processor without f16 conversions in the JIT",
        "An x86 processor without F16C, older than 2012, has no instructions for f16.",
    ),
    Lacking(
        "more accesses of memory than",
        "Each access remembers the allocation that it met last; a kernel with more accesses than the table has room for,"
        " after its calls have been put in place, is not compiled.",
    ),
    Lacking("a register with that many parts", "The values that a warp keeps across a barrier have a place of bounded size."),
)


def lacking(feature: str) -> Lacking | None:
    """The entry for a feature that the JIT has refused."""
    return next((each for each in LACKING if each.is_meant(feature)), None)

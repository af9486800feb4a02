"""PTX versions and targets, and how one demands another (PTX 11.1)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

Version = tuple[int, int]


@dataclass(frozen=True, order=True)
class Target:
    """A `.target` architecture: `sm_90a` has number 90 and suffix `a`."""

    number: int
    suffix: str = ""

    def __str__(self) -> str:
        return f"sm_{self.number}{self.suffix}"

    def provides(self, other: Target) -> bool:
        """Has this target what `other` names?  Suffixed features stay in their family (`f`) or on their chip (`a`)."""
        if other.suffix == "a":
            return self == other
        if other.suffix == "f":
            return bool(self.suffix) and self.number // 10 == other.number // 10 and self.number >= other.number
        return self.number >= other.number


@dataclass(frozen=True)
class Need:
    """What a feature needs: at least this version, and one of these targets or a later one."""

    version: Version = (1, 0)
    targets: tuple[Target, ...] = ()

    def met_by(self, target: Target) -> bool:
        """Does the target have the feature?"""
        return not self.targets or any(target.provides(t) for t in self.targets)


@lru_cache(maxsize=None)
def parse_version(text: str) -> Version:
    """`6.4` as (6, 4)."""
    major, _, minor = text.partition(".")
    return int(major), int(minor)


@lru_cache(maxsize=None)
def parse_target(text: str) -> Target:
    """`sm_90a`, and `compute_90` too."""
    m = re.fullmatch(r"(?:sm|compute)_0*(\d+)([afAF]?)", text)
    if not m:
        raise ValueError(f"no target is called '{text}'")
    return Target(int(m[1]), m[2].lower())


@lru_cache(maxsize=None)
def parse_need(text: str) -> Need:
    """`PTX 6.0, sm_70` or `sm_90a sm_100f`: a version, and targets of which one is enough."""
    version = re.search(r"PTX (\d+\.\d+)", text)
    targets = tuple(parse_target(t) for t in re.findall(r"sm_\d+[af]?", text))
    return Need(parse_version(version[1]) if version else (1, 0), targets)

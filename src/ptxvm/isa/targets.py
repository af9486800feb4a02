"""PTX versions and targets, and the versions that targets need (PTX 11.1)."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from ptxvm.dataclass import dataclass

Version = tuple[int, int]

VERSIONS = tuple(
    (major, minor)
    for major, minors in {1: 6, 2: 4, 3: 3, 4: 4, 5: 2, 6: 6, 7: 9, 8: 9, 9: 6}.items()
    for minor in range(minors)
)
"""Every version of PTX there is, 1.0 to 9.5: ptxas 13.5 refuses those between, such as 3.3, 7.9 and 8.9."""

MOST_WRITTEN = 1024
"""The versions and targets that are remembered as they were written: a wrong one may be any number."""


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


def gives(version: Version, wanted: Version) -> bool:
    """Has this version what `wanted` brought?  ptxas takes 5.1 for the 6.0 that it became."""
    return version >= wanted or (version == (5, 1) and wanted == (6, 0))


@lru_cache(maxsize=MOST_WRITTEN)
def parse_version(text: str) -> Version:
    """`6.4` as (6, 4)."""
    major, _, minor = text.partition(".")
    return int(major), int(minor)


@lru_cache(maxsize=MOST_WRITTEN)
def parse_target(text: str) -> Target:
    """`sm_90a`, and `compute_90` too."""
    m = re.fullmatch(r"(?:sm|compute)_0*(\d+)([afAF]?)", text)
    if not m:
        raise ValueError(f"no target is called '{text}'")
    return Target(int(m[1]), m[2].lower())


@cache
def parse_need(text: str) -> Need:
    """`PTX 6.0, sm_70` or `sm_90a sm_100f`: a version, and targets of which one is enough."""
    version = re.search(r"PTX (\d+\.\d+)", text)
    targets = tuple(parse_target(t) for t in re.findall(r"sm_\d+[af]?", text))
    return Need(parse_version(version[1]) if version else (1, 0), targets)


LOWEST = {
    parse_target(name): parse_version(version)
    for version, names in {
        "1.0": "sm_10 sm_11",
        "1.2": "sm_12 sm_13",
        "2.0": "sm_20 sm_21",
        "3.0": "sm_30",
        "3.1": "sm_35",
        "4.0": "sm_32 sm_50",
        "4.1": "sm_37 sm_52",
        "4.2": "sm_53",
        "5.0": "sm_60 sm_61 sm_62",
        "5.1": "sm_70",
        "6.1": "sm_72",
        "6.3": "sm_75",
        "7.0": "sm_80",
        "7.1": "sm_86",
        "7.4": "sm_87",
        "7.8": "sm_89 sm_90",
        "8.0": "sm_90a",
        "8.6": "sm_100 sm_100a sm_101 sm_101a",
        "8.7": "sm_120 sm_120a",
        "8.8": "sm_100f sm_101f sm_103 sm_103f sm_103a sm_120f sm_121 sm_121f sm_121a",
        "9.0": "sm_88 sm_110 sm_110f sm_110a",
        "9.4": "sm_107 sm_107f sm_107a",
    }.items()
    for name in names.split()
}
"""Every target, with the lowest version that has it (ptxas 13.5; the manual gives sm_70 to 6.0, PTX 11.1.2).

sm_101 is the name that sm_110 had before 9.0."""


def device_target(text: str) -> Target:
    """The target to compile for; ValueError where there is none of that name."""
    found = parse_target(text)
    if found not in LOWEST:
        raise ValueError(f"there is no target '{text}'")
    return found

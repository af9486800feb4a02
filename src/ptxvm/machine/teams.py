"""Teams of devices: a multimem address stands for memory of each device of a team (PTX 9.7.9.14).

At the address itself is the memory of the first device.  That of each further one lies at an address which no kernel is told,
and which is equally far away for all addresses of a team.
"""

from __future__ import annotations

import numpy as np

from ptxvm.machine.per_lane import Addresses
from ptxvm.named_tuple import NamedTuple


class Team(NamedTuple):
    """Multimem addresses, and the distances from them to the memory of each further device, modulo 2^64."""

    start: int
    end: int
    distances: tuple[int, ...]


class Teams:
    """The teams of a process, by their first addresses; a launch sees those that there are when it asks."""

    def __init__(self) -> None:
        self._teams: dict[int, Team] = {}

    def enter(self, team: Team) -> None:
        """Add a team."""
        self._teams = {**self._teams, team.start: team}

    def remove(self, start: int, end: int) -> None:
        """Forget the teams of some addresses."""
        self._teams = {first: each for first, each in self._teams.items() if not start <= first < end}

    def distances(self, number: int, addresses: Addresses) -> Addresses:
        """From each address to the memory of a further device, counted from 0; 0 where its team has no such device."""
        found = np.zeros(len(addresses), np.uint64)
        for each in self._teams.values():
            if number < len(each.distances):
                found[(addresses >= each.start) & (addresses < each.end)] = each.distances[number]
        return found

    def all_distances(self, address: int) -> tuple[int, ...]:
        """From an address to the memory of each further device."""
        return next((each.distances for each in self._teams.values() if each.start <= address < each.end), ())


TEAMS = Teams()

__all__ = ["TEAMS", "Team", "Teams"]

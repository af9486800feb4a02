"""The worklist of the fixed point: the nodes to write, in order of rank."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable

User = tuple[int, bool]  # the number of a node, and whether whole warps run it


class Worklist:
    """A set of nodes; those for whole warps come first, in order of rank."""

    def __init__(self, rank: Callable[[int], int]) -> None:
        self._rank = rank
        self._waiting: set[User] = set()
        self._order: list[tuple[bool, int, User]] = []  # with nodes that were discarded

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, user: User) -> None:
        """Add a node."""
        if user not in self._waiting:
            self._waiting.add(user)
            heapq.heappush(self._order, (not user[1], self._rank(user[0]), user))

    def update(self, users: Iterable[User]) -> None:
        """Add some nodes."""
        for user in users:
            self.add(user)

    def discard(self, user: User) -> None:
        """Remove a node, if it is in."""
        self._waiting.discard(user)

    def pop(self) -> User:
        """Remove and return the first node."""
        while True:
            user = heapq.heappop(self._order)[2]
            if user in self._waiting:
                self._waiting.remove(user)
                return user

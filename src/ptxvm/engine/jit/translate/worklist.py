"""What is to be written next, while the shapes of a kernel's registers are being found."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable

User = tuple[int, bool]  # the number of a node, and whether whole warps run it


class Worklist:
    """Nodes, each once; those for whole warps come first, and of these the one of the lowest rank."""

    def __init__(self, rank: Callable[[int], int]) -> None:
        self._rank = rank
        self._waiting: set[User] = set()
        self._order: list[tuple[bool, int, User]] = []  # of these, and of some that have left

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, user: User) -> None:
        """One more."""
        if user not in self._waiting:
            self._waiting.add(user)
            heapq.heappush(self._order, (not user[1], self._rank(user[0]), user))

    def update(self, users: Iterable[User]) -> None:
        """Some more."""
        for user in users:
            self.add(user)

    def discard(self, user: User) -> None:
        """One less, if it is here."""
        self._waiting.discard(user)

    def pop(self) -> User:
        """The first one, which leaves."""
        while True:
            user = heapq.heappop(self._order)[2]
            if user in self._waiting:
                self._waiting.remove(user)
                return user

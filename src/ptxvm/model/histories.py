"""Coherent histories: the values that a thread may still read at a location.

Where all that is done to a location is strong, and in scope of each other, its writes have one order (PTX 8.9.6), and a
thread goes through it forwards: after a value it finds one that atomic operations of others make of it, or that one stores.
Both versions of the model say so: anything else breaks Causality, SC per Location or the atomicity of atomic operations.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ptxvm.model.path_run import Before, Link, Written
from ptxvm.model.program import Thread

MANY = 500
"""In so many ways the atomic operations of others are followed one after the other."""


@dataclass(slots=True)
class History:
    """All that some way of some thread writes to one location."""

    threads: dict[str, Thread] = field(default_factory=dict)
    scopes: set[tuple[str, str]] = field(default_factory=set)
    """Whose writes have which scopes."""
    steps: dict[int, set[tuple[Link, int]]] = field(default_factory=dict)
    """Of each value, the atomic operations that find it, and what they leave."""
    stores: set[tuple[str, int, Link]] = field(default_factory=set)
    made: set[Link] = field(default_factory=set)
    """The stores that make an mbarrier: what finds one comes after."""

    def add(self, written: Written) -> bool:
        """Remember a write; is it new?"""
        name, size = written.thread.name, self._size
        self.threads[name] = written.thread
        if written.makes:
            self.made.add(written.link)
        else:
            self.scopes.add((name, written.scope))
        if written.found is None:
            self.stores.add((name, written.value, written.link))
        else:
            self.steps.setdefault(written.found, set()).add((written.link, written.value))
        return self._size != size

    @property
    def _size(self) -> int:
        return len(self.scopes) + len(self.stores) + sum(map(len, self.steps.values()))

    @property
    def has_one_order(self) -> bool:
        """Are all writes morally strong, but for those that make an mbarrier?"""
        return all(self.is_strong_with(self.threads[name], scope) for name, scope in self.scopes)

    def is_strong_with(self, thread: Thread, scope: str) -> bool:
        """Is an access of a thread with a scope morally strong with all writes here?"""
        return bool(scope) and all(
            wide and self.threads[name].within(wide, thread) and thread.within(scope, self.threads[name])
            for name, wide in self.scopes
        )

    def after(self, before: Before, initial: int) -> set[int] | None:
        """What the thread may find now; None where nothing is ruled out."""
        if not all(self.is_strong_with(before.thread, scope) for scope in before.scopes):
            return None
        name = before.thread.name
        last = initial if before.value is None else before.value
        used = self.made if len(self.stores) == 1 and before.value is not None else set()
        found = {last, *(value for other, value, link in self.stores if other != name and link not in used)}
        return self._onward(found, name)

    def _onward(self, found: set[int], name: str) -> set[int]:
        """What the atomic operations of others make of some values, each of them at most once."""
        seen: set[tuple[int, frozenset[Link]]] = set()
        left = [(value, frozenset[Link]()) for value in found]
        while left:
            value, used = state = left.pop()
            if state in seen:
                continue
            seen.add(state)
            if len(seen) > MANY:
                used = frozenset()  # no longer counted, so more is found than there is
            found.add(value)
            more = ((new, used | {link}) for link, new in self.steps.get(value, ()) if link.thread != name and link not in used)
            left += [(new, frozenset() if len(seen) > MANY else links) for new, links in more]
        return found

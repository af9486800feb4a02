"""Coherent histories: the values that a thread may still read at a location.

If all accesses to a location are strong and in scope of each other, its writes have one order (PTX 8.9.6).  A thread moves
forwards through this order: after a value, it finds a value that atomic operations of other threads make of it, or a value
that another thread stores.  Both versions of the model require this: anything else breaks Causality, SC per Location or the
atomicity of atomic operations.
"""

from __future__ import annotations

from dataclasses import field

from ptxvm.algebra.memory_order import Scope
from ptxvm.dataclass import dataclass
from ptxvm.model.litmus_program import Thread
from ptxvm.model.path_run import EarlierAccesses, PathWrite, WriteInstance

MANY = 500
"""After this many combinations of atomic operations, their uses are no longer counted."""


@dataclass(slots=True)
class History:
    """All writes to one location, by any path of any thread."""

    threads: dict[str, Thread] = field(default_factory=dict)
    scopes: set[tuple[str, Scope | None]] = field(default_factory=set)
    """Pairs of a thread and the scope of one of its writes."""
    steps: dict[int, set[tuple[WriteInstance, int]]] = field(default_factory=dict)
    """For each value, the atomic operations that find it, and the values that they leave."""
    stores: set[tuple[str, int, WriteInstance]] = field(default_factory=set)
    made: set[WriteInstance] = field(default_factory=set)
    """The stores that initialise an mbarrier: every access that finds one comes after it."""

    def add(self, written: PathWrite) -> bool:
        """Record a write; returns whether it is new."""
        name, size = written.thread.name, self._size
        self.threads[name] = written.thread
        if written.initialises:
            self.made.add(written.instance)
        else:
            self.scopes.add((name, written.scope))
        if written.found is None:
            self.stores.add((name, written.value, written.instance))
        else:
            self.steps.setdefault(written.found, set()).add((written.instance, written.value))
        return self._size != size

    @property
    def _size(self) -> int:
        return len(self.scopes) + len(self.stores) + sum(map(len, self.steps.values()))

    @property
    def has_one_order(self) -> bool:
        """Are all writes morally strong with each other?  A write that initialises an mbarrier need not be."""
        return all(self.is_strong_with(self.threads[name], scope) for name, scope in self.scopes)

    def is_strong_with(self, thread: Thread, scope: Scope | None) -> bool:
        """Is an access of a thread with this scope morally strong with all writes here?"""
        return scope is not None and all(
            self.threads[name].within(wide, thread) and thread.within(scope, self.threads[name]) for name, wide in self.scopes
        )

    def after(self, before: EarlierAccesses, initial: int) -> set[int] | None:
        """The values that the thread may find next; None if the history rules out nothing."""
        if not all(self.is_strong_with(before.thread, scope) for scope in before.scopes):
            return None
        name = before.thread.name
        last = initial if before.value is None else before.value
        used = self.made if len(self.stores) == 1 and before.value is not None else set()
        found = {last, *(value for other, value, link in self.stores if other != name and link not in used)}
        return self._onward(found, name)

    def _onward(self, found: set[int], name: str) -> set[int]:
        """The values that atomic operations of other threads make of some values; each operation is used at most once."""
        seen: set[tuple[int, frozenset[WriteInstance]]] = set()
        left = [(value, frozenset[WriteInstance]()) for value in found]
        while left:
            value, used = state = left.pop()
            if state in seen:
                continue
            seen.add(state)
            if len(seen) > MANY:
                used = frozenset()  # no longer counted: the result may have too many values, never too few
            found.add(value)
            more = ((new, used | {link}) for link, new in self.steps.get(value, ()) if link.thread != name and link not in used)
            left += [(new, frozenset() if len(seen) > MANY else links) for new, links in more]
        return found

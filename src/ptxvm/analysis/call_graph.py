"""The call graph: its functions in topological order, callees first."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def callees_first(roots: Iterable[T], callees: Callable[[T], Iterable[T]]) -> list[T] | None:
    """The functions that the roots reach, each after all functions that it calls; None if a function calls itself.

    The search is depth first, with the path in a list: a program has chains of calls of any length.
    """
    order: list[T] = []
    finished: set[T] = set()
    on_path: set[T] = set()
    for root in roots:
        work = [] if root in finished else [(root, iter(callees(root)))]
        on_path.update(each for each, _ in work)
        while work:
            caller, rest = work[-1]
            callee = next(rest, None)
            if callee is None:
                work.pop()
                on_path.discard(caller)
                finished.add(caller)
                order.append(caller)
            elif callee in on_path:
                return None
            elif callee not in finished:
                on_path.add(callee)
                work.append((callee, iter(callees(callee))))
    return order

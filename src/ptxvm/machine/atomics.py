"""Atomic updates of many lanes: as if the lanes came one after the other, in their order (PTX 9.7.13).

Lanes with different addresses are a gather, an update and a scatter.  For lanes with equal addresses the integer operations
have closed forms over groups; any other operation goes in rounds, the k-th lane of every address in round k.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ptxvm.machine.events import Flags
from ptxvm.machine.per_lane import Addresses, Array, PerLane
from ptxvm.named_tuple import NamedTuple

Update = Callable[..., PerLane]


class Exchange(Protocol):
    """Compare and exchange."""

    def __call__(self, addresses: Addresses, expected: Array, desired: Array) -> Flags:
        """Give each word the desired value where it is what was expected, in one step; tells which were."""


LONG = 24  # a group with more lanes than this is worth its own pass


class Groups(NamedTuple):
    """Lanes with equal addresses: `order` sorts the lanes by address, stably; `start` and `length` delimit the groups."""

    order: npt.NDArray[np.intp]
    start: npt.NDArray[np.intp]
    length: npt.NDArray[np.intp]


def apply(
    view: Array, index: PerLane, operation: str, operands: Sequence[PerLane], update: Update | None = None, *, old: bool = True
) -> PerLane:
    """Replace `view[index]` by `update(what is there, *operands)` for one lane after the other.

    Returns what was there before each.  `operation` names the update: add, and, or, xor, min, max, inc, dec, exch and
    cas have it ready-made.  For any other, and for floating-point additions in which a NaN or a subnormal f32 takes
    part (of which the instruction says more), `update` is called.  Operands are arrays like `index`, or scalars.
    """
    with np.errstate(all="ignore"):
        if isinstance(index, int):
            lanes = max((len(each) for each in operands if np.ndim(each)), default=0)
            result = apply(view, np.full(lanes or 1, index), operation, operands, update, old=old)
            return result if lanes or result is None else result[0]
        full = [np.broadcast_to(np.asarray(each, view.dtype), index.shape) for each in operands]
        if update is not None and (view.dtype.kind not in "iu" or operation not in UPDATES):
            ready = operation == "add" and view.dtype.kind == "f"
            return _float_add(view, index, full, update) if ready else _rounds(view, index, full, update)
        if not old and operation in ACCUMULATED:
            ACCUMULATED[operation].at(view, index, full[0])
            return None
        return _ready_made(view, index, operation, full)


def apply_beside(
    exchange: Exchange, view: Array, index: PerLane, operation: str, operands: Sequence[PerLane], update: Update | None = None
) -> PerLane:
    """The same as `apply`, where compiled code may update the same words meanwhile.

    Lanes of one address are updated together: those whose word has changed meanwhile are updated again.
    """
    lanes = np.atleast_1d(np.asarray(index))
    count = max((len(lanes), *(len(each) for each in operands if np.ndim(each))))
    lanes = np.broadcast_to(lanes, count)
    full = [np.broadcast_to(np.asarray(each, view.dtype), count) for each in operands]
    found, left = np.empty(count, view.dtype), np.arange(count)
    while len(left):
        words, own = np.unique(lanes[left], return_inverse=True)
        before = view[words]
        after = before.copy()
        found[left] = apply(after, own, operation, [each[left] for each in full], update)
        addresses = (view.ctypes.data + words * view.itemsize).astype(np.uint64)
        left = left[~exchange(addresses, before, after)[own]]
    return found if np.ndim(index) or count > 1 else found[0]


def _ready_made(view: Array, index: Array, operation: str, operands: list[Array]) -> Array:
    """An operation that is known by name."""
    before = view.take(index)
    groups = meetings(index)
    if groups is None:
        view[index] = UPDATES[operation](before, *operands)
        return before
    closed = CLOSED.get(operation) or _replay(operation)
    old, final = closed(before[groups.order], [each[groups.order] for each in operands], groups)
    view[index[groups.order[groups.start]]] = final
    before[groups.order] = old
    return before


def meetings(index: npt.NDArray[np.int64]) -> Groups | None:
    """The groups of lanes with equal addresses; None where every lane has its own address."""
    count = len(index)
    if count < 2:
        return None
    low = index.min()
    span = int(index.max() - low)
    if span == 0:
        return Groups(np.arange(count), np.zeros(1, np.intp), np.array([count]))
    # NumPy sorts 16-bit integers by radix, five times as fast
    key = (index - low).astype(np.uint16) if span < 1 << 16 else index
    order = np.argsort(key, kind="stable")
    key = key[order]
    first = np.empty(count, np.bool_)
    first[0] = True
    np.not_equal(key[1:], key[:-1], out=first[1:])
    start = np.flatnonzero(first)
    if len(start) == count:
        return None
    return Groups(order, start, np.diff(start, append=count))


# ── updates, elementwise ────────────────────────────────────────────────────────────────


def _inc(old: Array, limit: Array) -> PerLane:
    return np.where(old >= limit, old.dtype.type(0), old + old.dtype.type(1))


def _dec(old: Array, limit: Array) -> PerLane:
    return np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1))


# Those that NumPy can do for lanes that meet.
ACCUMULATED: dict[str, np.ufunc] = {
    "add": np.add,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "min": np.minimum,
    "max": np.maximum,
}
UPDATES: dict[str, Update] = {
    **ACCUMULATED,
    "inc": _inc,
    "dec": _dec,
    "exch": lambda old, new: new,  # noqa: ARG005
    "cas": lambda old, compare, new: np.where(old == compare, new, old),
}

# ── groups at once ──────────────────────────────────────────────────────────────────────
#
# From the old values and the operands, both sorted by group: the value that each lane finds, and the last value of each group.

Closed = Callable[[Array, list[Array], Groups], tuple[Array, Array]]


def _running_sum(before: Array, operands: list[Array], groups: Groups) -> tuple[Array, Array]:
    """Add and xor have inverses: one running total over all lanes, less its value where the group begins."""
    sums = np.cumsum(operands[0], dtype=before.dtype)
    excluding = sums - operands[0]
    old = before + excluding - np.repeat(excluding[groups.start], groups.length)
    last = groups.start + groups.length - 1
    return old, old[last] + operands[0][last]


def _running_xor(before: Array, operands: list[Array], groups: Groups) -> tuple[Array, Array]:
    excluding = np.bitwise_xor.accumulate(operands[0]) ^ operands[0]
    old = before ^ excluding ^ np.repeat(excluding[groups.start], groups.length)
    last = groups.start + groups.length - 1
    return old, old[last] ^ operands[0][last]


def _exchange(before: Array, operands: list[Array], groups: Groups) -> tuple[Array, Array]:
    """Each lane finds the value of the lane before it."""
    old = np.concatenate([before[:1], operands[0][:-1]])
    old[groups.start] = before[groups.start]
    return old, operands[0][groups.start + groups.length - 1]


def _accumulate(ufunc: np.ufunc) -> Closed:
    """In order within each group: a pass for each long group, and one for the k-th lanes of all the short ones."""

    def run(before: Array, operands: list[Array], groups: Groups) -> tuple[Array, Array]:
        values, old = operands[0], before.copy()
        final = np.empty(len(groups.start), before.dtype)
        for group in np.flatnonzero(groups.length > LONG).tolist():
            lanes = slice(groups.start[group], groups.start[group] + groups.length[group])
            steps = ufunc.accumulate(np.concatenate([before[lanes][:1], values[lanes]]), dtype=before.dtype)
            old[lanes], final[group] = steps[:-1], steps[-1]
        short = np.flatnonzero(groups.length <= LONG)
        current = before[groups.start[short]]
        for step in range(LONG):
            here = groups.length[short] > step
            short, current = np.compress(here, short), np.compress(here, current)
            if not len(short):
                break
            lane = groups.start[short] + step
            old[lane] = current
            final[short] = current = ufunc(current, values[lane])
        return old, final

    return run


def _compare_and_swap(before: Array, operands: list[Array], groups: Groups) -> tuple[Array, Array]:
    """Where all lanes of a group compare with one value and swap in another, the first lane decides."""
    compare, new = operands
    first = groups.start
    uniform = (compare == np.repeat(compare[first], groups.length)) & (new == np.repeat(new[first], groups.length))
    if not uniform.all():
        return _replay("cas")(before, operands, groups)
    final = np.where(before[first] == compare[first], new[first], before[first])
    old = np.repeat(final, groups.length)
    old[first] = before[first]
    return old, final


def _replay(operation: str) -> Closed:
    """Update lane after lane in Python integers, for operations without a closed form."""
    step = REPLAYED[operation]

    def run(before: Array, operands: list[Array], groups: Groups) -> tuple[Array, Array]:
        columns = [each.tolist() for each in operands]
        old, final = before.tolist(), []
        for start, count in zip(groups.start.tolist(), groups.length.tolist(), strict=True):
            current = old[start]
            for lane in range(start, start + count):
                old[lane] = current
                current = step(current, *[column[lane] for column in columns])
            final.append(current)
        return np.array(old, before.dtype), np.array(final, before.dtype)

    return run


REPLAYED: dict[str, Callable[..., int]] = {
    "inc": lambda old, limit: 0 if old >= limit else old + 1,
    "dec": lambda old, limit: limit if old == 0 or old > limit else old - 1,
    "cas": lambda old, compare, new: new if old == compare else old,
}

CLOSED: dict[str, Closed] = {
    "add": _running_sum,
    "xor": _running_xor,
    "and": _accumulate(np.bitwise_and),
    "or": _accumulate(np.bitwise_or),
    "min": _accumulate(np.minimum),
    "max": _accumulate(np.maximum),
    "exch": _exchange,
    "cas": _compare_and_swap,
}

# ── floating point, and updates by call ─────────────────────────────────────────────────


def _float_add(view: Array, index: Array, operands: list[Array], update: Update) -> Array:
    """Add in order, every step rounded; in closed form where all numbers are ordinary (no NaN, no subnormal)."""
    before = view.take(index)
    groups = meetings(index) or Groups(np.arange(len(index)), np.arange(len(index)), np.ones(len(index), np.intp))
    values = operands[0][groups.order]
    old, final = _accumulate(np.add)(before[groups.order], [values], groups)
    if not (_ordinary(old) and _ordinary(values) and _ordinary(final)):
        return _rounds(view, index, operands, update)
    view[index[groups.order[groups.start]]] = final
    before[groups.order] = old
    return before


def _ordinary(values: Array) -> bool:
    """Is no number NaN, and none a subnormal f32 (the only type whose subnormals an atomic flushes)?"""
    strange = np.isnan(values)
    if values.dtype.itemsize == 4:
        size = np.abs(values)
        strange |= (size < np.finfo(values.dtype).smallest_normal) & (size != 0)
    return not strange.any()


def _rounds(view: Array, index: Array, operands: list[Array], update: Update) -> Array:
    """Update the first lane of every address, then the second of each address that has one, and so on."""
    before = view.take(index)
    groups = meetings(index)
    if groups is None:
        view[index] = update(before, *operands)
        return before
    start, length = groups.start, groups.length
    for step in range(int(length.max())):
        lanes = groups.order[start[length > step] + step]
        before[lanes] = found = view.take(index[lanes])
        view[index[lanes]] = update(found, *[each[lanes] for each in operands])
    return before

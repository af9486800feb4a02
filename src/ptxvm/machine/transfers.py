"""Asynchronous transfers: the pieces of one, the same on every engine (PTX 9.7.9.25)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.isa.transfers import Pattern, Transfer
from ptxvm.machine.cluster_queue import ClusterQueue
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.memory import Memory
from ptxvm.machine.teams import TEAMS
from ptxvm.machine.transfer_pieces import Operands, Pieces
from ptxvm.machine.window import MASKED_RANKS, RANK, WITHIN

CHUNK = 16  # bytes: sizes and addresses of bulk copies are multiples of it
WORD = 8  # bytes: those of fills
MOST = WITHIN + 1  # bytes: one end of a bulk copy, or of a fill, lies in the shared memory of a CTA, which has fewer


def pieces(kind: Transfer, memory: Memory, clusters: ClusterQueue, operands: Operands) -> Pieces:
    """The pieces of the transfer of one thread; AccessFault where its operands are wrong.

    `clusters` are those of the grid that have not begun.
    """
    match kind.pattern:
        case Pattern.BYTES | Pattern.MASKED | Pattern.INSIDE:
            made = _bytes(kind, operands)
        case Pattern.VALUES:
            made = _values(kind, operands["a"], operands["b"])
        case Pattern.CANCELLATION:
            made = _values(kind, operands["a"], clusters.cancel())
        case Pattern.ZEROS:
            made = _zeros(operands)
        case Pattern.TENSOR:
            from ptxvm.machine import tensor_tiles  # noqa: PLC0415 - few kernels have tensors, and it imports much

            made = tensor_tiles.pieces(kind, memory, operands)
    return _in_ctas(kind, made, operands)


def _bytes(kind: Transfer, operands: Operands) -> Pieces:
    (size,), (a,), (b,) = operands["size"], operands["a"], operands["b"]
    if size % CHUNK:
        raise AccessFault("misaligned", f"a bulk copy is of a multiple of {CHUNK} bytes, not {size}")
    reached = min(size, MOST)  # a longer copy goes wrong among these
    if kind.pattern is Pattern.BYTES:
        at = np.arange(0, reached, CHUNK, dtype=np.uint64)
        element = kind.type.name if kind.type is not None else ""
        return Pieces(CHUNK, at + np.uint64(a), at + np.uint64(b), amount=size, element=element)
    for address in (a, b):
        if address % CHUNK:
            raise AccessFault("misaligned", f"the address {address:#x} of a bulk copy is no multiple of {CHUNK}")
    each = np.arange(reached, dtype=np.uint64)
    if kind.pattern is Pattern.INSIDE:
        (left,), (right,) = operands["left"], operands["right"]
        if max(left, right) >= CHUNK:
            raise AccessFault("misaligned", f"a bulk copy ignores up to {CHUNK - 1} bytes at an end, not {max(left, right)}")
        at = each[left : max(size - right, 0)]
    else:
        at = each[operands["bytes"][0] >> (each % np.uint64(CHUNK)).astype(np.int64) & 1 == 1]
    return Pieces(1, at + np.uint64(a), at + np.uint64(b), amount=size)


def _values(kind: Transfer, target: Sequence[int], values: Sequence[int]) -> Pieces:
    assert kind.type is not None  # noqa: S101 - values have a type
    size = kind.type.bytes
    words = b"".join((value % (1 << 8 * size)).to_bytes(size, "little") for value in values)
    unit = len(words) if not kind.operation else size
    data = np.frombuffer(words, np.uint8).reshape(-1, unit)
    return Pieces(unit, np.array(target, np.uint64), data=data, amount=len(words), element=kind.type.name)


def _zeros(operands: Operands) -> Pieces:
    (size,), (a,) = operands["size"], operands["a"]
    if size % WORD:
        raise AccessFault("misaligned", f"a fill is of a multiple of {WORD} bytes, not {size}")
    at = np.arange(0, min(size, MOST), WORD, dtype=np.uint64)
    return Pieces(WORD, at + np.uint64(a), data=np.zeros((len(at), WORD), np.uint8))


def _in_ctas(kind: Transfer, made: Pieces, operands: Operands) -> Pieces:
    """The pieces in all CTAs that they go to, with the mbarriers that count their bytes."""
    if kind.multimem:
        return _in_memories(made)
    if not kind.mbarrier:
        return made
    (bar,) = operands["bar"]
    if not kind.multicast:
        _check_barrier(kind, operands["a"][0], bar)
        made.barriers = (bar,) if made.amount else ()
        return made
    ranks = [rank for rank in MASKED_RANKS if operands["mask"][0] >> rank & 1]
    one, target, source = np.uint64(WITHIN), made.target, made.source
    made.target = np.concatenate([target & one | np.uint64(rank << RANK) for rank in ranks] or [target[:0]])
    made.source = None if source is None else np.tile(source, len(ranks))
    made.data = None if made.data is None else np.tile(made.data, (len(ranks), 1))
    made.present = None if made.present is None else np.tile(made.present, len(ranks))
    made.barriers = tuple(barrier_of(bar, rank, pair=kind.pair) for rank in ranks) if made.amount else ()
    return made


def _check_barrier(kind: Transfer, target: int, bar: int) -> None:
    """Refuse an mbarrier that lies in another CTA than what it counts (PTX 9.7.9.12, 9.7.9.27.1.2, 9.7.13.7).

    With `.cta_group::2` it may lie in the other CTA of the pair.
    """
    if kind.to is not Space.SHARED_CLUSTER or kind.pattern not in (Pattern.VALUES, Pattern.TENSOR):
        return
    if (target ^ bar) >> RANK + kind.pair:
        said = f"the mbarrier lies in CTA {bar >> RANK} of the cluster, and what it counts goes to CTA {target >> RANK}"
        raise AccessFault("invalid-mbarrier", said, bar)


def _in_memories(made: Pieces) -> Pieces:
    """The pieces in all memories that the multimem addresses stand for."""
    distances = TEAMS.all_distances(int(made.target[0])) if len(made.target) else ()
    if distances:
        made.target = np.concatenate([made.target, *(made.target + np.uint64(each) for each in distances)])
        times = 1 + len(distances)
        made.source = None if made.source is None else np.tile(made.source, times)
        made.present = None if made.present is None else np.tile(made.present, times)
    return made


def barrier_of(bar: int, rank: int, *, pair: bool) -> int:
    """The mbarrier that counts the bytes of a copy to the CTA of a rank: its own, or in a pair that of the parity of `bar`."""
    meant = rank & ~1 | bar >> RANK & 1 if pair else rank
    return bar & WITHIN | meant << RANK

"""Requests that are left when a launch ends: fewer than a batch, which the host counts as the interpreter does."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ptxvm.algebra.state_space import Space
from ptxvm.engine.jit.abi.counter_rows import (
    ADDRESSES,
    IDEAL,
    LANES,
    LINES,
    NO_KEY,
    REQUESTS,
    STEPS,
    UNITS,
    element,
)
from ptxvm.engine.jit.abi.metadata import Batch
from ptxvm.isa.effects import Verb
from ptxvm.profile.warp_accesses import contention, global_traffic, shared_traffic


def row(batch: Batch, keys: npt.NDArray[np.uint32]) -> dict[int, int]:
    """The row of some requests, of which each has a row of keys."""
    atomic = batch.verb is Verb.UPDATE
    warps, lanes = np.nonzero(keys != NO_KEY)
    addresses = keys[warps, lanes].astype(np.int64) * element(batch.space, batch.size, atomic=atomic)
    counts = {REQUESTS: len(keys), LANES: len(lanes)}  # each has an active lane
    if batch.space is Space.GLOBAL:
        traffic = global_traffic(warps, addresses, batch.size)
        counts |= {UNITS: traffic.sectors, IDEAL: traffic.ideal, LINES: traffic.lines}
    else:
        passes = shared_traffic(warps, lanes, addresses, batch.verb, batch.size)
        counts |= {UNITS: passes.wavefronts, IDEAL: passes.ideal}
    if atomic:
        rivals = contention(warps, addresses)
        counts |= {ADDRESSES: rivals.addresses, STEPS: rivals.steps}
    return counts

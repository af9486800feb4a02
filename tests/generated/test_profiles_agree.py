"""Compiled code and the interpreter count the same of random kernels, line by line.

None of these kernels has a lane that waits for what another one writes, though many loops look so: how often such a loop goes
round is chance.  So the engines are told that there are none.
"""

from __future__ import annotations

import os
from unittest import mock

import numpy as np
from hypothesis import HealthCheck, assume, given, settings

import ptxvm
from ptxvm.campaign.fuzz.engines import words
from ptxvm.campaign.random_kernels.kernels import SIZE, STRIDE, RandomKernel, kernels
from ptxvm.campaign.random_kernels.memory import INPUT
from ptxvm.engine import spin_loops
from ptxvm.engine.jit.cfg.uncounted import Uncounted
from ptxvm.machine.options import EngineName

# `--hypothesis-profile=long` runs many.
KERNELS = int(os.environ.get("PTXVM_RANDOM_KERNELS", settings().max_examples // 25))


def lines(engine: EngineName, random: RandomKernel, kernel: ptxvm.Kernel) -> dict[int, dict[str, int]]:
    """What an engine counts, by line."""
    threads = random.ctas * random.threads
    inputs, work = words(random.seed, INPUT // 4), words(random.seed + 1, threads * STRIDE // 4)
    args = [inputs, work, np.zeros(17, np.uint64), np.zeros(threads * SIZE, np.uint8)]
    done = kernel.launch(random.grid, random.shape, args, shared=random.shared, engine=engine, profile=True)
    assert done.profile is not None
    assert done.profile.engine == engine
    return {line.number: {name: count for name, count in line.counts.items() if count} for line in done.profile.lines}


@settings(
    max_examples=KERNELS, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
)
@given(random=kernels())
def test_random_kernel(random: RandomKernel) -> None:
    assume(not random.locks)
    kernel = ptxvm.load(random.text).kernel()
    with mock.patch.object(spin_loops, "spins", return_value=frozenset()):
        try:
            found = lines("jit", random, kernel)
        except Uncounted:
            assume(False)
        assert found == lines("interp", random, kernel)

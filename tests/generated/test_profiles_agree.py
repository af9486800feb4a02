"""Compiled code and the interpreter count the same of random kernels, line by line.

None of these kernels has a lane that waits for what another one writes, though many loops look so: how often such a loop goes
round is chance.  So the engines are told that there are none.
"""

from __future__ import annotations

import os
from unittest import mock

from hypothesis import assume, given, settings, strategies as st

import ptxvm
from ptxvm.campaign.fuzz.engines import counts_of
from ptxvm.campaign.random_kernels.kernels import RandomKernel, random_kernel
from ptxvm.engine import spin_loops
from ptxvm.engine.jit.cfg.uncounted import Uncounted

# `--hypothesis-profile=long` runs many.
KERNELS = int(os.environ.get("PTXVM_RANDOM_KERNELS", settings().max_examples // 12))


@settings(max_examples=KERNELS)
@given(random=st.integers(0, 2**40).map(random_kernel))
def test_random_kernel(random: RandomKernel) -> None:
    assume(not random.locks and not random.stray)  # a wrong access is a fault, and has no counts
    kernel, launch = ptxvm.load(random.text).kernel(), random.launches[0]
    with mock.patch.object(spin_loops, "spins", return_value=frozenset()):
        try:
            found = counts_of(kernel, random, launch, "jit")
        except Uncounted:
            assume(False)
        assert found == counts_of(kernel, random, launch, "interp")

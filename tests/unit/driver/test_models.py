"""The card that code for a target is shown for."""

from __future__ import annotations

import pytest

from ptxvm.driver.attributes import Attribute
from ptxvm.driver.models import MODELS, model_of
from ptxvm.isa.targets import Target


@pytest.mark.parametrize(
    ("target", "model"),
    [
        (Target(50), "sm_75"),  # the oldest that there is
        (Target(75), "sm_75"),
        (Target(87), "sm_86"),
        (Target(90, "a"), "sm_90"),
        (Target(103, "f"), "sm_100"),
        (Target(121), "sm_120"),
    ],
)
def test_the_card_of_a_target_is_the_last_that_is_not_above_it(target, model):
    assert model_of(target) == model


TABLE = {
    Attribute.MAX_THREADS_PER_MULTIPROCESSOR: (1024, 2048, 1536, 1536, 2048, 2048, 1536),
    Attribute.MAX_BLOCKS_PER_MULTIPROCESSOR: (16, 32, 16, 24, 32, 32, 24),
    Attribute.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: tuple(n << 10 for n in (64, 164, 100, 100, 228, 228, 100)),
    Attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: tuple(n << 10 for n in (64, 163, 99, 99, 227, 227, 99)),
    Attribute.SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO: (32, 2, 64, 64, 2, 2, 64),
    Attribute.CLUSTER_LAUNCH: (0, 0, 0, 0, 1, 1, 1),
    Attribute.MEM_SYNC_DOMAIN_COUNT: (1, 1, 1, 1, 4, 4, 4),  # one before Hopper
}


@pytest.mark.parametrize("which", TABLE, ids=lambda each: each.name.lower())
def test_the_limits_of_the_cards_are_those_of_their_compute_capability(which):
    """CUDA C++ Programming Guide, "Compute Capabilities" and "Memory Synchronization Domains"."""
    assert tuple(card.attributes()[which] for card in MODELS.values()) == TABLE[which]

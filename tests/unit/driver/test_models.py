"""The card that code for a target is shown for."""

from __future__ import annotations

import pytest

from ptxvm.driver.models import model_of
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

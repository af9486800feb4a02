"""Peak figures against the counts and clocks of the same cards."""

from __future__ import annotations

import pytest

from ptxvm.driver.models import MODELS
from ptxvm.driver.peaks import PEAKS

# Results of .f32 and .f64 fused multiply-adds for each clock and multiprocessor (CUDA C++ Programming Guide, "Arithmetic
# Instructions"), and of .f16 matrices what the white papers of the architectures say.
A_CLOCK = {
    "sm_75": (64, 2, 512), "sm_80": (64, 32, 1024), "sm_86": (128, 2, 512), "sm_89": (128, 2, 512), "sm_90": (128, 64, 2048),
    "sm_100": (128, 64, 4096), "sm_120": (128, 2, 256),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_peaks_are_what_units_and_clocks_give(name):
    """Sheets round, and clocks under load differ: 15 % either way."""
    card, peaks = MODELS[name], PEAKS[name]
    rate = 2 * card.multiprocessors * card.clock * 1e3 / 1e12
    fp32, fp64, tensor = A_CLOCK[name]
    assert peaks.fp32 == pytest.approx(fp32 * rate, rel=0.15)
    assert peaks.fp64 == pytest.approx(fp64 * rate, rel=0.15)
    assert peaks.tensor == pytest.approx(tensor * rate, rel=0.15)
    assert peaks.memory == pytest.approx(2 * card.memory_clock * 1e3 * card.bus / 8 / 1e12, rel=0.15)


def test_every_card_has_its_peaks():
    assert PEAKS.keys() == MODELS.keys()

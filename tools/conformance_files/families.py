"""Which cases stand in which file."""

from __future__ import annotations

import numpy as np
import test_compare_exact
import test_integer_exact
import test_logic_exact
import test_video_exact
from one_instruction import Case

from conformance_files import FIDELITY
from conformance_files.atomics import atomic_cases
from conformance_files.comparisons import float_comparisons, integer_comparisons
from conformance_files.control import control_cases
from conformance_files.conversions import float_conversions, integer_conversions
from conformance_files.extended import chain_cases
from conformance_files.floats import approximations, float_cases, half_cases, sign_cases
from conformance_files.memory import memory_cases
from conformance_files.small_conversions import small_conversions
from conformance_files.warps import warp_cases, wmma_cases


def families() -> dict[tuple[str, str, str], list[Case]]:
    """The cases of each file, and where their definitions are."""
    drawn = test_video_exact
    found = {
        ("integer", "integers", "integers by the manual's definition, PTX 9.7.1"): [
            *test_integer_exact.integer_cases(), *test_integer_exact.packed_cases(),
        ],
        ("integer", "bits", "integers by the manual's definition, PTX 9.7.1.14 to 9.7.1.24"): [*test_integer_exact.bit_cases()],
        ("extended", "chains", "integers by the manual's definition, PTX 9.7.2"): [
            *test_integer_exact.extended_cases(), *chain_cases(),
        ],
        ("logic", "logic", "integers by the manual's definition, PTX 9.7.8, 9.7.9.7"): [*test_logic_exact.logic_cases()],
        ("compare", "integers", "integers by the manual's definition, PTX 9.7.6"): [
            *test_logic_exact.compare_cases(), *integer_comparisons(),
        ],
        ("compare", "floats", "the tables 23 to 25 of PTX 9.3.1"): [*test_compare_exact.cases(), *float_comparisons()],
        ("video", "scalar", "integers by the manual's definition, PTX 9.7.18.1"): [
            *drawn.video_cases(np.random.default_rng(1)), *drawn.vmad_cases(np.random.default_rng(2)),
        ],
        ("video", "simd", "integers by the manual's definition, PTX 9.7.18.2"): [*drawn.simd_cases(np.random.default_rng(3))],
        ("float", "arithmetic", "exact rationals, PTX 9.7.3"): [*float_cases()],
        ("float", "signs", "exact rationals, PTX 9.7.3"): [*sign_cases()],
        ("half", "arithmetic", "exact rationals, PTX 9.7.4"): [*half_cases()],
        ("convert", "integers", "integers by the manual's definition, PTX 9.7.9.21"): [*integer_conversions()],
        ("convert", "floats", "exact rationals, PTX 9.7.9.21"): [*float_conversions()],
    }  # fmt: skip
    found["convert", "small", "ml_dtypes and exact rationals, PTX 9.7.9.21"] = [*small_conversions()]
    found["memory", "cells", "integers by the manual's definition, PTX 9.7.9"] = [*memory_cases()]
    found["atomic", "orders", "integers by the manual's definition, PTX 9.7.13.5, 9.7.13.7"] = [*atomic_cases()]
    found["control", "calls", "integers by the manual's definition, PTX 9.7.12"] = [*control_cases()]
    found["barrier", "warp", "integers by the manual's definition, PTX 9.7.13, all lanes alike"] = [*warp_cases()]
    found["wmma", "alike", "integers: where all lanes hold the same words, PTX 9.7.14.4"] = [*wmma_cases()]
    if FIDELITY.is_dir():
        found["float", "approx", "silicon, fidelity/sfu_random.npz, PTX 9.7.3"] = [*approximations()]
    return found

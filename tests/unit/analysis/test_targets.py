"""Compiling for another target than that of the module: verdicts and words of ptxas 13.5 (`-arch`)."""

import pytest

import ptxvm
from ptxvm.analysis.check import analyse
from ptxvm.isa.targets import Target
from ptxvm.syntax.source import Source

OLDER = "SM version specified by .target is higher than default SM version assumed"
CASES = {
    ("sm_90", "sm_90"): [],
    ("sm_90", "sm_100"): [],
    ("sm_90", "sm_90a"): [],
    ("sm_80", "sm_100f"): [],
    ("sm_90", "sm_80"): [OLDER],
    ("sm_100", "sm_90a"): [OLDER],
    ("sm_103", "sm_100f"): [OLDER],
    ("sm_90a", "sm_90a"): [],
    ("sm_90a", "sm_90"): ["PTX with .target 'sm_90a' cannot be compiled for architecture 'sm_90'"],
    ("sm_90a", "sm_100"): ["Program with .target 'sm_90a' cannot be compiled to future architecture"],
    ("sm_100a", "sm_103a"): ["Program with .target 'sm_100a' cannot be compiled to future architecture"],
    ("sm_100f", "sm_100"): [],
    ("sm_100f", "sm_103"): [],
    ("sm_100f", "sm_103a"): [],
    ("sm_100f", "sm_120a"): ["Program with .target 'sm_100f' cannot be compiled to different SM-family architecture"],
    ("sm_103f", "sm_100f"): [OLDER],
}


def module(target, body="ret;"):
    return f".version 9.0\n.target {target}\n.address_size 64\n.visible .entry k() {{ {body} }}"


@pytest.mark.parametrize(("own", "wanted"), CASES)
def test_targets(own, wanted):
    found = ptxvm.check(module(own), target=wanted)
    assert [(each.code, each.line, each.ptxas) for each in found] == [("P0509", 2, said) for said in CASES[own, wanted]]


def test_a_family_keeps_its_features():
    program, _ = analyse(Source(module("sm_100f")), "sm_103")
    assert program.target == Target(103, "f")


@pytest.mark.parametrize("name", ["sm_999", "sm_91", "sm_90f", "sm_80a", "turing"])
def test_targets_that_there_are_not(name):
    for ask in (ptxvm.check, ptxvm.load):
        with pytest.raises(ValueError, match=f"target.* '{name}'"):
            ask(module("sm_50"), target=name)

"""The environment variables of the driver."""

from __future__ import annotations

import pytest

from ptxvm.driver.environment import WrongVariable, read
from ptxvm.driver.models import MODELS


def test_what_holds_without_variables():
    found = read({})
    assert (found.model, found.devices) == (MODELS["sm_89"], 1)
    assert (found.checks, found.allowed, found.suppressions.rules, found.completion) == (None, frozenset(), [], ("", 0))


def test_what_they_ask_for(tmp_path):
    (known := tmp_path / "known.txt").write_text("race k:3\n")
    found = read({
        "PTXVM_DEVICE": "sm_90", "PTXVM_DEVICES": "4", "PTXVM_CHECK": "memory, race", "PTXVM_ALLOW": "leak,race",
        "PTXVM_SUPPRESS": str(known), "PTXVM_ASYNC": "random", "PTXVM_SEED": "7",
    })  # fmt: skip
    assert (found.model, found.devices) == (MODELS["sm_90"], 4)
    assert (found.checks, found.allowed) == ({"memory", "race"}, {"leak", "race"})
    assert [(rule.code, rule.pattern, rule.line) for rule in found.suppressions.rules] == [("race", "k", 3)]
    assert found.completion == ("random", 7)


@pytest.mark.parametrize("checks", ["memory", "race"])
def test_a_seed_is_for_random_times(checks):
    assert read({"PTXVM_CHECK": checks, "PTXVM_ASYNC": "late", "PTXVM_SEED": "7"}).completion == ("late", 0)


WRONG = [
    ("PTXVM_DEVICE", "sm_99", "PTXVM_DEVICE: there is no device 'sm_99'; did you mean .sm_[0-9]+.[?]"),
    ("PTXVM_DEVICE", "x", "PTXVM_DEVICE: there is no device 'x'; there are sm_75, .*, sm_120"),
    ("PTXVM_DEVICES", "65", "PTXVM_DEVICES: there are 0 to 64 devices, not '65'"),
    ("PTXVM_DEVICES", "-1", "PTXVM_DEVICES: there are 0 to 64 devices, not '-1'"),
    ("PTXVM_CHECK", "memry", "PTXVM_CHECK: there is no check 'memry'; there are memory, init, sync, race"),
    ("PTXVM_ALLOW", "races", "PTXVM_ALLOW: there is no finding 'races'; did you mean .race.[?]"),
    ("PTXVM_SUPPRESS", "/is/not", "PTXVM_SUPPRESS: cannot read '/is/not': No such file or directory"),
    ("PTXVM_ASYNC", "soon", "PTXVM_ASYNC: asynchronous work does not end 'soon'; there are early, late, random"),
    ("PTXVM_SEED", "x", "PTXVM_SEED is a number, not 'x'"),
]


@pytest.mark.parametrize(("name", "value", "said"), WRONG)
def test_a_wrong_value_is_told_with_the_variable(name, value, said):
    with pytest.raises(WrongVariable, match=said):
        read({name: value})


def test_variables_of_launches_are_checked_too(monkeypatch):
    monkeypatch.setenv("PTXVM_THREADS", "0")
    with pytest.raises(WrongVariable, match="PTXVM_THREADS is a number of threads, not '0'"):
        read({})

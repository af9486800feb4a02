"""Functions of the runtime take what their C signatures say, and those of the driver under other names have its parameters."""

from __future__ import annotations

import inspect

import pytest

from ptxvm.libcuda import calls as driver_calls, session, signatures as driver
from ptxvm.libcuda.toolkit import MAJORS
from ptxvm.libcudart import calls
from ptxvm.libcudart.calls.same import ANY_STATE, SAME, STATELESS
from ptxvm.libcudart.runtime_state import FUNCTIONS
from ptxvm.libcudart.signatures import signatures

driver_calls.load_functions()
calls.load_functions()


@pytest.mark.parametrize("major", MAJORS)
def test_functions_take_their_parameters(major):
    for name, signature in signatures(major).items():
        base = driver.base_of(name)
        if (entry := FUNCTIONS.get(f"{base}@{major}") or FUNCTIONS.get(base)) is not None:
            inspect.signature(entry.implementation).bind(*signature.parameters)


@pytest.mark.parametrize("major", MAJORS)
def test_functions_that_are_the_drivers_have_its_parameters(major):
    for own, theirs in (SAME | ANY_STATE | STATELESS).items():
        assert theirs in session.FUNCTIONS, own
        name, _, only = own.partition("@")
        if only in ("", major) and name in signatures(major):
            mine = signatures(major)[name].parameters
            assert mine.replace("Q", "p") == driver.signatures()[theirs].replace("Q", "p"), own

"""The question of the tests of checks on the JIT: was a launch cleared by compiled code alone?"""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.fixture
def quick(caplog: pytest.LogCaptureFixture) -> Callable[[], bool]:
    """Was nothing left to the exact checker since the last question?"""
    caplog.set_level("INFO", "ptxvm.jit")

    def answer() -> bool:
        cleared = not caplog.records
        caplog.clear()
        return cleared

    return answer

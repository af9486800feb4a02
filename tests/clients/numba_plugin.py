"""A plugin of pytest for numba-cuda's tests where they lie in site-packages, without the `conftest.py` of its repository."""

from __future__ import annotations

import pytest


@pytest.fixture
def initialize_from_pytest_config(request: pytest.FixtureRequest) -> None:
    """Say that the text of failed FileCheck tests is not kept, as the repository's option does."""
    request.instance._dump_failed_filechecks = False

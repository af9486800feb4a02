"""A device of cuda.core and a stream on it, for the tests that ask for them; others run without cuda.core."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest


@pytest.fixture
def device() -> Any:
    device = import_module("cuda.core").Device()
    device.set_current()
    return device


@pytest.fixture
def stream(device: Any) -> Iterator[Any]:
    stream = device.create_stream()
    yield stream
    stream.close()

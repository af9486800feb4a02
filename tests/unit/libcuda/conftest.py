"""A driver for the tests of its C interface."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from stream_driver import Driver

from ptxvm.driver.models import MODELS
from ptxvm.libcuda.session import session


@pytest.fixture
def cuda() -> Iterator[Driver]:
    """A driver with a context, a kernel's flag and a cell of memory; nothing of it is left afterwards."""
    driver = Driver()
    yield driver
    driver.flag.value = 1  # nothing waits any more
    driver.library.cuDevicePrimaryCtxReset_v2(0)
    session().driver.blocks.free(driver.memory.value)
    session().stack.clear()


@pytest.fixture
def hopper(cuda: Driver, monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    """The driver with a device that has multicast."""
    device = session().driver.device(0)
    monkeypatch.setattr(device, "model", MODELS["sm_90"])
    monkeypatch.delitem(vars(device), "attributes", raising=False)
    yield cuda
    vars(device).pop("attributes", None)

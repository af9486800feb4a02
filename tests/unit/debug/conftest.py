"""Sessions over small kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from ring_kernel import KERNEL, session_of

from ptxvm.debug.session import Session


@pytest.fixture
def debugged() -> Iterator[Callable[..., Session]]:
    """Makes sessions, and closes them."""
    made: list[Session] = []

    def make(text: str, grid: int, block: int, args: list[object]) -> Session:
        made.append(session_of(text, grid, block, args))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def out() -> np.ndarray:
    """What the kernel stores."""
    return np.zeros(64, np.uint32)


@pytest.fixture
def turn(debugged, out) -> Session:
    """A session over two warps of one block."""
    return debugged(KERNEL, 1, 64, [out, 64])

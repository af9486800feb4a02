"""A client of the driver as it ships: tinygrad, whose wheel needs no toolkit and no other package.

`make clients` runs all of its tests, and those of the other clients.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CLIENTS = Path(__file__).parents[1] / "clients"


def test_a_network_of_tinygrad_learns_through_its_own_ptx():
    pytest.importorskip("tinygrad")
    options = ["-q", "-c", str(CLIENTS / "pytest.ini"), "--ptxvm", "-k", "network and PTX"]
    command = [sys.executable, "-m", "pytest", *options, str(CLIENTS / "test_tinygrad.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout + done.stderr

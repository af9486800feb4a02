"""Several devices of the driver ("Peer Context Memory Access", "Stream Ordered Memory Allocator", "Library Management")."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_devices_have_memory_of_their_own_and_peers():
    program, environment = Path(__file__).with_name("two_devices.py"), os.environ | {"PTXVM_DEVICES": "2"}
    done = subprocess.run([sys.executable, str(program)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

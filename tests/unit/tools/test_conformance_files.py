"""The conformance files that `tools/conformance.py` writes are those that it would write now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.long
def test_generated_files_are_fresh() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools/conformance.py", "--check"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, f"run tools/conformance.py:\n{done.stdout}{done.stderr}"

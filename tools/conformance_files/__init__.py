"""The cases of the conformance files that `tools/conformance.py` writes, by chapters, and how they become text."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "conformance"
FIDELITY = ROOT.parent / "shared" / "fidelity"
sys.path.append(str(ROOT / "tests" / "oracle"))  # the definitions, which the modules here import

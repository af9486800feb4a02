"""What a checkout of the repository has beside the package, and an installed package has not."""

from __future__ import annotations

from pathlib import Path

BENCHMARKS = Path(__file__).parents[3] / "benchmarks" / "suite.py"

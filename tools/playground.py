"""Builds the static playground: `make playground`, or with `PYODIDE=FOLDER` the one that loads nothing from elsewhere."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from flit_core import buildapi  # type: ignore[import-untyped]  # it has none

from ptxvm.playground.site import CORE, WHEELS, write_site

ROOT = Path(__file__).parents[1]
SITE = ROOT / "build" / "playground"


def main(pyodide: str) -> int:
    """Build the wheel of this checkout, and write the page."""
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory() as folder:
        wheel = Path(folder) / buildapi.build_wheel(folder)
        write_site(SITE, wheel, Path(pyodide) if pyodide else None)
    print(f"build/playground/index.html, for any server of files; Python comes from {pyodide or CORE}")
    if pyodide and (
        missing := [name for name in WHEELS if not any((SITE / "pyodide").glob(f"{name.replace('-', '_')}-*.whl"))]
    ):
        print(f"{pyodide} has no {' and no '.join(missing)}: the page checks and judges, and runs no kernel")
    return 0


if __name__ == "__main__":
    sys.exit(main(os.environ.get("PYODIDE", "")))

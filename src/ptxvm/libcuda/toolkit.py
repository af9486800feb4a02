"""Libraries of an installed CUDA toolkit that need no device: its compiler and its linker of intermediate code."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

MAJORS = ("12", "13")
"""The major versions of CUDA whose libraries have a stand-in."""


def installed(library: str, package: str, major: str) -> Iterator[Path]:
    """The paths of a library of a major version of CUDA.

    It may be in packages of Python, in $CUDA_HOME and $CUDA_PATH, and in /usr/local/cuda.  `package` is the folder of CUDA 12's
    package; later ones share a folder.
    """
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    folders = [Path(each, "nvidia", part, "lib") for each in sys.path for part in (f"cu{major}", package)]
    folders += [Path(each, part) for each in (*homes, "/usr/local/cuda") for part in ("lib64", "lib")]
    return (path for folder in folders if (path := folder / f"{library}.so.{major}").is_file())


__all__ = ["MAJORS", "installed"]

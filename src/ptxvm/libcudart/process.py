"""The environment of client processes: files in a folder, and variables that name them.

Each client looks for the driver in its own way: by soname (`LD_LIBRARY_PATH`), in files of a folder (tinygrad), or with a
linker (Triton).  Triton also calls an assembler for machine code; here that is a script which passes the PTX on.  It finds
its backends by entry points on `sys.path`, the last of a name: the folder has one.  Python processes fill the
library's functions when they start, by a `sitecustomize` module.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ptxvm.libcuda.jitlink import write_linker
from ptxvm.libcuda.library import Libraries, write_driver
from ptxvm.libcuda.nvrtc import write_compilers
from ptxvm.libcuda.toolkit import MAJORS
from ptxvm.libcudart.library import install, write_runtime

PACKAGES = Path(__file__).parents[2]  # the folder of the package ptxvm

PTXAS = """\
#!/bin/sh
# Stands for ptxas where a compiler wants machine code: the driver of ptxvm takes PTX as it is.
case "$1" in
--version)
    echo "ptxvm, in place of ptxas"
    echo "Cuda compilation tools, release 13.0, V13.0.0"
    exit 0
    ;;
esac
while [ $# -gt 0 ]; do
    case "$1" in
    -o)
        output=$2
        shift
        ;;
    *.ptx) input=$1 ;;
    esac
    shift
done
exec cp "$input" "$output"
"""
STARTUP = """\
# Makes ptxvm the CUDA driver of this process, then runs the sitecustomize that it stands before.
import importlib.machinery
import importlib.util
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
from ptxvm.libcudart.library import install

install()
sys.path.append(os.path.join(here, "plugins"))  # behind the packages that it replaces entry points of
spec = importlib.machinery.PathFinder.find_spec("sitecustomize", [p for p in sys.path if os.path.abspath(p) != here])
if spec is not None and spec.loader is not None:
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
"""

TRITON = """\
[triton.backends]
nvidia = ptxvm.triton_backend
"""
METADATA = """\
Metadata-Version: 2.1
Name: ptxvm-triton
Version: 0
"""


def prepare(folder: Path) -> dict[str, str]:
    """Write the files into a folder; the variables that a process and its children need."""
    write_driver(folder)
    write_runtime(folder)
    write_compilers(folder)
    for major in MAJORS:
        write_linker(folder, major)
    ptxas = folder / "ptxas"
    ptxas.write_text(PTXAS, encoding="ascii")
    ptxas.chmod(0o755)
    (folder / "sitecustomize.py").write_text(STARTUP, encoding="ascii")
    plugin = folder / "plugins" / "ptxvm_triton-0.dist-info"
    plugin.mkdir(parents=True, exist_ok=True)
    (plugin / "METADATA").write_text(METADATA, encoding="ascii")
    (plugin / "entry_points.txt").write_text(TRITON, encoding="ascii")
    return {
        "PTXVM_LIBCUDA": str(folder),
        "LD_LIBRARY_PATH": before("LD_LIBRARY_PATH", folder),
        "LIBRARY_PATH": before("LIBRARY_PATH", folder),  # where compilers look for what -lcuda and -lcudart name
        "PYTHONPATH": before("PYTHONPATH", folder, PACKAGES),
        "TRITON_LIBCUDA_PATH": str(folder),
        "TRITON_PTXAS_PATH": str(ptxas),
        "TRITON_PTXAS_BLACKWELL_PATH": str(ptxas),
        "TRITON_DEFAULT_BACKEND": "nvidia",
        "TRITON_CACHE_DIR": os.environ.get("TRITON_CACHE_DIR", str(folder / "triton")),
    }


def enter() -> Libraries:
    """Make ptxvm the driver of this process and of its later children, once."""
    libraries = install()
    if os.environ.get("PTXVM_LIBCUDA") != str(libraries.folder):
        os.environ.update(prepare(libraries.folder))
        sys.path.append(str(libraries.folder / "plugins"))
    return libraries


def before(name: str, *folders: Path | str) -> str:
    """A list of folders with others in front."""
    return os.pathsep.join([*map(str, folders), *filter(None, [os.environ.get(name, "")])])


__all__ = ["enter", "prepare"]

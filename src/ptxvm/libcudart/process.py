"""The environment of client processes: files in a folder, and variables that name them.

Each client looks for the driver in its own way: by soname (`LD_LIBRARY_PATH`), in files of a folder (tinygrad), or with a
linker (Triton).  Triton also calls an assembler for machine code; here that is a script which passes the PTX on.  PyCUDA asks
nvcc for it; a script that stands before nvcc makes PTX.  Triton finds its backends by entry points on `sys.path`, the last of
a name: the folder has one.  Python processes fill the library's functions when they start, by a `sitecustomize` module.
The folder has the package ptxvm itself, and nothing else of the Python that it is of: a client's Python has its own packages.
"""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from ptxvm.libcuda.jitlink import write_linker
from ptxvm.libcuda.library import Libraries, write_driver
from ptxvm.libcuda.nvrtc import write_compilers
from ptxvm.libcuda.toolkit import MAJORS
from ptxvm.libcudart.library import install, write_runtime

PACKAGE = Path(__file__).resolve().parents[1]  # the package ptxvm

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
NVCC = """\
#!/bin/sh
# Stands before nvcc: a client that asks for machine code (-cubin) gets PTX under the same name.
cubin= named= input=
for word; do
    case "$word" in
    -cubin | --cubin) cubin=yes ;;
    -o* | --output-file*) named=yes ;;
    *.cu) input=${word##*/} ;;
    esac
done
if [ -n "$cubin" ]; then
    [ -n "$named" ] || set -- "$@" -o "${input%.cu}.cubin"
    count=$#
    while [ "$count" -gt 0 ]; do
        word=$1
        shift
        case "$word" in
        -cubin | --cubin) word=-ptx ;;
        esac
        set -- "$@" "$word"
        count=$((count - 1))
    done
fi
exec "NVCC" "$@"
"""
STARTUP = """\
# Makes ptxvm the CUDA driver of this process, then runs the sitecustomize that it stands before.
import importlib.machinery
import importlib.util
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
said = ""
try:
    if sys.version_info < (3, 11):
        raise ImportError("Python 3.11")
    try:
        from ptxvm.libcudart.library import install
    except ImportError:
        if importlib.machinery.EXTENSION_SUFFIXES[0] != "TAG":  # of the Python of `ptxvm exec`
            raise
        import pathlib
        from ptxvm.libcudart.lent_packages import lend
        sys.path.append(str(lend(pathlib.Path(here), PLACES)))
        from ptxvm.libcudart.library import install
except ImportError as wrong:
    said = "lacks a module of ptxvm: %s; `pip install ptxvm` there" % wrong
    if sys.version_info < (3, 11):
        said = "is Python %d.%d, and ptxvm is for 3.11 or later" % sys.version_info[:2]
    sys.stderr.write("ptxvm: %s %s\\n" % (sys.executable, said))
else:
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
    (folder / "sitecustomize.py").write_text(startup(), encoding="utf-8")
    with suppress(FileExistsError):
        (folder / PACKAGE.name).symlink_to(PACKAGE)
    compilers = write_nvcc(folder)
    plugin = folder / "plugins" / "ptxvm_triton-0.dist-info"
    plugin.mkdir(parents=True, exist_ok=True)
    (plugin / "METADATA").write_text(METADATA, encoding="ascii")
    (plugin / "entry_points.txt").write_text(TRITON, encoding="ascii")
    return {
        "PTXVM_LIBCUDA": str(folder),
        "LD_LIBRARY_PATH": before("LD_LIBRARY_PATH", folder),
        "LIBRARY_PATH": before("LIBRARY_PATH", folder),  # where compilers look for what -lcuda and -lcudart name
        "PATH": before("PATH", *compilers),
        "PYTHONPATH": before("PYTHONPATH", folder),
        "TRITON_LIBCUDA_PATH": str(folder),
        "TRITON_PTXAS_PATH": str(ptxas),
        "TRITON_PTXAS_BLACKWELL_PATH": str(ptxas),
        "TRITON_DEFAULT_BACKEND": "nvidia",
        "TRITON_CACHE_DIR": os.environ.get("TRITON_CACHE_DIR", str(folder / "triton")),
    }


def startup() -> str:
    """What Python processes run when they start."""
    places = [place for place in sys.path if Path(place).is_dir()]
    return STARTUP.replace("TAG", EXTENSION_SUFFIXES[0]).replace("PLACES", repr(places))


def write_nvcc(folder: Path) -> list[Path]:
    """Write what stands before the nvcc of the path, if there is one, and the folder for the path.

    The other folders of the toolkit are beside it, where clients look for its libraries.
    """
    if (found := shutil.which("nvcc")) is None or (programs := folder / "toolkit" / "bin") == Path(found).parent:
        return []
    programs.mkdir(parents=True, exist_ok=True)
    script = programs / "nvcc"
    script.write_text(NVCC.replace("NVCC", found), encoding="utf-8")
    script.chmod(0o755)
    for each in Path(found).resolve().parents[1].iterdir():
        if each.is_dir() and not (link := folder / "toolkit" / each.name).exists():
            link.symlink_to(each)
    return [programs]


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

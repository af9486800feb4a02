"""Writes `src/ptxvm/libcuda/functions.txt`, the C signatures of the CUDA driver API, from the headers of a toolkit.

    python tools/driver_functions.py INCLUDE

INCLUDE has `cuda.h`, `cudaTypedefs.h` and `cudaProfilerTypedefs.h`, and the same two of EGL, GL and VDPAU.  `gcc`
preprocesses the first of each, with the few types of these interfaces that they name.  A line of the file is a symbol, the
kinds of its parameters (`ptxvm.libcuda.signatures` names them), and, where `cuGetProcAddress` knows the symbol, the name that
it is asked for and the version of CUDA since which that name means this symbol.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

OUT = Path(__file__).parent.parent / "src" / "ptxvm" / "libcuda" / "functions.txt"
HEADERS = ("cuda.h", "cudaEGL.h", "cudaGL.h", "cudaVDPAU.h")
TYPES = ("cudaTypedefs.h", "cudaProfilerTypedefs.h", "cudaEGLTypedefs.h", "cudaGLTypedefs.h", "cudaVDPAUTypedefs.h")
OF_INTERFACES = {
    "EGL/egl.h": "typedef void *EGLImageKHR, *EGLStreamKHR, *EGLSyncKHR; typedef int EGLint;",
    "EGL/eglext.h": "",
    "GL/gl.h": "typedef unsigned int GLuint, GLenum;",
    "vdpau/vdpau.h": "typedef unsigned int VdpDevice, VdpVideoSurface, VdpOutputSurface; typedef void VdpGetProcAddress;",
}
"""What their headers, which need not be there, say of the types in signatures."""
VIEWS = ("", "-DCUDA_API_PER_THREAD_DEFAULT_STREAM", "-D__CUDA_API_VERSION_INTERNAL")
PROTOTYPE = re.compile(r"CUresult\s+(cu\w+)\s*\(([^;{}]*?)\)\s*;", re.DOTALL)
POINTER_TYPE = re.compile(r"typedef CUresult\s*\(CUDAAPI \*PFN_(cu\w+?)_v(\d+)(_ptds|_ptsz)?\)\((.*?)\);", re.DOTALL)
ENUM = re.compile(r"typedef\s+enum\s*\w*\s*\{[^}]*\}\s*(\w+)\s*;")
ALIAS = re.compile(r"typedef\s+(\w+)\s+(\w+)\s*;")
SUFFIX = re.compile(r"(cu\w+?)((?:_v\d+)?)((?:_ptds|_ptsz)?)")
KINDS = {
    "float": "f", "double": "d", "char": "i", "short": "i", "int": "i", "CUdevice": "i", "CUdevice_v1": "i", "GLint": "i",
    "cuuint32_t": "I", "GLuint": "I", "GLenum": "I", "CUlogIterator": "I", "CUdeviceptr_v1": "I", "VdpDevice": "I",
    "size_t": "Q", "long": "Q", "CUdeviceptr": "Q", "CUdeviceptr_v2": "Q", "cuuint64_t": "Q", "CUtexObject": "Q",
    "CUtexObject_v1": "Q", "CUsurfObject": "Q", "CUsurfObject_v1": "Q", "CUmemGenericAllocationHandle": "Q",
    "CUmemGenericAllocationHandle_v1": "Q", "CUgraphConditionalHandle": "Q", "CUmemLocation": "Q", "CUmemLocation_v1": "Q",
    "CUoutput_mode": "i", "EGLint": "i", "VdpVideoSurface": "I", "VdpOutputSurface": "I", "CUeglFrame": "S",
    "CUipcMemHandle": "S", "CUipcMemHandle_v1": "S", "CUipcEventHandle": "S", "CUipcEventHandle_v1": "S",
}  # fmt: skip


def main(include: str) -> None:
    """Write the file."""
    types = "".join(Path(include, name).read_text(encoding="utf-8") for name in TYPES)
    types = re.sub(r"#if(def|[ ]defined)[^\n]*_WIN32.*?#endif", "", types, flags=re.DOTALL)
    views = [preprocessed(Path(include), view) for view in VIEWS]
    enums = {name for text in views for name in ENUM.findall(text)}
    enums |= {alias for text in views for name, alias in ALIAS.findall(text) if name in enums}
    symbols: dict[str, str] = {}
    for text in views:
        for name, parameters in PROTOTYPE.findall(text):
            symbols.setdefault(name, signature(parameters, enums))
    since: dict[str, list[int]] = {}
    for base, version, stream, parameters in POINTER_TYPE.findall(re.sub(r"/\*.*?\*/", "", types, flags=re.DOTALL)):
        symbols.setdefault(base, signature(parameters, enums))
        if stream and not any(each.startswith(base) and each.endswith(stream) for each in symbols):
            symbols.setdefault(base + stream, signature(parameters, enums))
        since.setdefault(base + stream, []).append(int(version))
    asked = {
        symbol: row for name, versions in since.items() for symbol, row in by_version(name, sorted(set(versions)), symbols)
    }
    lines = [" ".join([name, kinds or "-", *asked.get(name, ())]) for name, kinds in sorted(symbols.items())]
    OUT.write_text("\n".join([*lines, ""]), encoding="ascii")
    print(f"{OUT}: {len(lines)} functions, {len(asked)} of them by version")


def preprocessed(include: Path, define: str) -> str:
    """The declarations that a program sees."""
    text = "".join(f'#include "{name}"\n' for name in HEADERS)
    with TemporaryDirectory() as folder:
        for name, types in OF_INTERFACES.items():
            header = Path(folder, name)
            header.parent.mkdir(exist_ok=True)
            header.write_text(types, encoding="ascii")
        command = ["gcc", "-E", "-P", "-I", str(include), "-I", folder, *([define] if define else []), "-x", "c", "-"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)  # noqa: S603
    return re.sub(r"__attribute__\s*\(\(.*?\)\)", "", done.stdout)


def signature(parameters: str, enums: set[str]) -> str:
    """The kinds of some parameters, a letter each."""
    return "".join(kind(each.strip(), enums) for each in parameters.split(",") if each.strip() not in ("", "void"))


def kind(parameter: str, enums: set[str]) -> str:
    """The kind of a parameter by its type; ValueError for a type that is not known."""
    if "*" in parameter or "[" in parameter:
        return "p"
    words = [word for word in re.findall(r"\w+", parameter) if word not in ("const", "struct", "enum")]
    if words[0] == "unsigned":
        return {"long": "Q"}.get(words[1], "I")
    if words[0] in enums or words[0].removesuffix("_v1") in enums:
        return "i"
    if words[0] in KINDS:
        return KINDS[words[0]]
    if words[0].startswith(("CU", "EGL")):
        return "p"  # a handle or a callback
    raise ValueError(f"the type of the parameter '{parameter}' is not known")


def by_version(name: str, versions: list[int], symbols: dict[str, str]) -> list[tuple[str, tuple[str, str]]]:
    """The symbols of a name with the version since which it means each: the newest symbol has the newest version."""
    matched = SUFFIX.fullmatch(name)
    if matched is None:
        raise ValueError(f"{name} is no name of a function")
    base, _, stream = matched.groups()
    found = [each for n in ("", *(f"_v{k}" for k in range(2, 9))) if (each := f"{base}{n}{stream}") in symbols]
    count = min(len(found), len(versions))
    return [(symbol, (name, str(version))) for symbol, version in zip(found[-count:], versions[-count:], strict=True)]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])

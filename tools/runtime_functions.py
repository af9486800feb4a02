"""Writes what `ptxvm.libcudart` knows of the CUDA runtime API from the headers of two toolkits.

`functions.txt` has the C signatures, and `runtime_errors.txt` the numbers and names of errors.

    python tools/runtime_functions.py INCLUDE12 INCLUDE13

Each folder has the `cuda_runtime_api.h` of a major version, 12 and 13; `gcc` preprocesses it.  A line of `functions.txt` is the
major versions that have a function so, its symbol, the kind of its result and those of its parameters
(`ptxvm.libcudart.signatures` names them).  Errors are those of version 13.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from driver_functions import ENUM, VIEWS, preprocessed

SOURCE = Path(__file__).parent.parent / "src" / "ptxvm"
OUT, ERRORS = SOURCE / "libcudart" / "functions.txt", SOURCE / "driver" / "runtime_errors.txt"
PROTOTYPE = re.compile(r"extern\s+([\w\s]+?[\s*]+)(cuda\w+)\s*\(([^;{}]*?)\)\s*;", re.DOTALL)
REGISTRATION = {  # of the code that nvcc writes (`crt/host_runtime.h`)
    "__cudaRegisterFatBinary": "p p",
    "__cudaRegisterFatBinaryEnd": "v p",
    "__cudaUnregisterFatBinary": "v p",
    "__cudaRegisterFunction": "v ppppippppp",
    "__cudaRegisterVar": "v ppppiQii",
    "__cudaRegisterManagedVar": "v ppppiQii",
    "__cudaRegisterHostVar": "v ppiQ",
    "__cudaRegisterTexture": "v ppppiii",
    "__cudaRegisterSurface": "v ppppii",
    "__cudaInitModule": "i p",
    "cudaProfilerStart": "i",
    "cudaProfilerStop": "i",
    "__cudaPushCallConfiguration": "i DDQp",
    "__cudaPopCallConfiguration": "i pppp",
    "__cudaGetKernel": "i pp",
    "__cudaLaunchKernel": "i pDDpQp",
    "__cudaLaunchKernel_ptsz": "i pDDpQp",
}
KINDS = {
    "float": "f", "double": "d", "int": "i", "char": "i", "size_t": "Q", "cudaTextureObject_t": "Q", "cudaSurfaceObject_t": "Q",
    "cudaGraphConditionalHandle": "Q", "dim3": "D", "cudaExtent": "E", "cudaPitchedPtr": "P", "cudaMemLocation": "L",
    "cudaChannelFormatDesc": "C", "cudaIpcMemHandle_t": "S", "cudaIpcEventHandle_t": "S", "void": "v", "cudaLogIterator": "I",
    "GLuint": "I", "GLenum": "I", "cudaDevResource": "p",
}  # fmt: skip
HANDLES = ("cuda", "CU")  # how the names of handles and callbacks begin


def main(*includes: str) -> None:
    """Write the file."""
    found: dict[tuple[str, str], list[str]] = {}
    for major, include in zip(("12", "13"), includes, strict=True):
        for name, signature in functions(Path(include)).items():
            found.setdefault((name, signature), []).append(major)
    lines = [f"{','.join(majors)} {name} {signature}".rstrip() for (name, signature), majors in sorted(found.items())]
    OUT.write_text("\n".join([*lines, ""]), encoding="ascii")
    types = Path(includes[1], "driver_types.h").read_text(encoding="utf-8")
    errors = re.findall(r"(cuda(?:Success|Error\w+))\s*=\s*(\d+)", types)
    ERRORS.write_text("".join(f"{number} {name}\n" for name, number in errors), encoding="ascii")
    print(f"{OUT}: {len(lines)} functions, {len(errors)} errors")


def functions(include: Path) -> dict[str, str]:
    """The functions of one version of the headers, with their signatures."""
    views = [preprocessed(include / "cuda_runtime_api.h", view) for view in VIEWS]
    enums = {name for text in views for name in [*ENUM.findall(text), *re.findall(r"enum\s+(\w+)\s*\{", text)]}
    made = dict(REGISTRATION)
    for text in views:
        for result, name, parameters in PROTOTYPE.findall(text):
            made.setdefault(name, f"{kind(result, enums)} {signature(parameters, enums)}")
    return made


def signature(parameters: str, enums: set[str]) -> str:
    """The kinds of some parameters, a letter each."""
    return "".join(kind(each.strip(), enums) for each in parameters.split(",") if each.strip() not in ("", "void"))


def kind(parameter: str, enums: set[str]) -> str:
    """The kind of a parameter by its type; ValueError for a type that is not known."""
    if "*" in parameter or "[" in parameter:
        return "p"
    words = [word for word in re.findall(r"\w+", parameter) if word not in ("const", "struct", "enum", "extern")]
    if words[0] == "unsigned":
        return "Q" if words[1:2] == ["long"] else "I"
    if words[0] == "long":
        return "Q"
    if words[0] in enums or words[0] == "cudaError_t":
        return "i"
    if words[0] in KINDS:
        return KINDS[words[0]]
    if words[0].startswith(HANDLES):
        return "p"
    raise ValueError(f"the type of the parameter '{parameter}' is not known")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])

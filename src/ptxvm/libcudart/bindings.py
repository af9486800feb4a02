"""The runtime library of the package cuda-bindings: its Python modules call ours instead of the one that they contain.

`cuda.bindings.runtime` has NVIDIA's library linked into an extension module, which works on NVIDIA's driver alone.  Other
extension modules get the functions of that module from a dictionary of capsules, `__pyx_capi__` (Cython manual, "Using C
functions from another module").  Between its import and theirs, each capsule is replaced by one for our function of the
same name.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ExtensionFileLoader, ModuleSpec, PathFinder
from types import ModuleType
from typing import ClassVar, TypeAlias

from ptxvm.libcuda.library import lacking
from ptxvm.libcuda.shared_library import CFunction, SharedLibrary

Capsules: TypeAlias = dict[str, object]
API = "__pyx_capi__"
PER_THREAD = ("_ptds", "_ptsz")  # the ends of names of functions on each thread's own default stream
MODULES: Mapping[str, tuple[str, ...]] = {  # and the ends of names to look for first
    "cuda.bindings._internal.runtime": (),  # cuda-bindings 13
    "cuda.bindings._internal.runtime_ptds": PER_THREAD,
    "cuda.bindings._bindings.cyruntime": (),  # cuda-bindings 12
    "cuda.bindings._bindings.cyruntime_ptds": PER_THREAD,
}
NOT_EXPORTED = {"getLocalRuntimeVersion": "cudaRuntimeGetVersion"}  # a name of cuda-bindings' own

CREATE, NAME = ctypes.pythonapi.PyCapsule_New, ctypes.pythonapi.PyCapsule_GetName
CREATE.restype, CREATE.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
NAME.restype, NAME.argtypes = ctypes.c_void_p, (ctypes.py_object,)


class BindingsFinder(MetaPathFinder):
    """Finds the modules of cuda-bindings that contain a runtime library; `libraries` are ours, by CUDA's major version."""

    def __init__(self, libraries: Mapping[str, SharedLibrary]) -> None:
        self.libraries = libraries

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The module as Python finds it, with a loader that replaces its functions."""
        if fullname not in MODULES:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or not isinstance(spec.loader, ExtensionFileLoader):
            return spec
        spec.loader = Loader(fullname, spec.loader.path, self.libraries)
        return spec


class Loader(ExtensionFileLoader):
    """Loads an extension module of cuda-bindings, and replaces the functions that it offers to others."""

    def __init__(self, name: str, path: str, libraries: Mapping[str, SharedLibrary]) -> None:
        super().__init__(name, path)
        self.libraries = libraries

    def exec_module(self, module: ModuleType) -> None:
        """Initialise the module; its functions stay NVIDIA's where there is no library of its version."""
        super().exec_module(module)
        library = self.libraries.get(major_version())
        if library is not None:
            replace(getattr(module, API), library, MODULES[self.name])


def major_version() -> str:
    """The major version of CUDA that the installed cuda-bindings is for."""
    version: str = sys.modules["cuda.bindings"].__version__
    return version.partition(".")[0]


def replace(capsules: Capsules, library: SharedLibrary, ends: Sequence[str]) -> None:
    """Replace the capsules of runtime functions; functions of the module itself, such as conversions, stay."""
    for name, capsule in capsules.items():
        if name.startswith("_"):
            function = NOT_EXPORTED.get(name[1:], name[1:])
            exported = [each for each in (*(function + end for end in ends), function) if each in library.functions]
            address = library.address(exported[0]) if exported else missing(function)
            capsules[name] = CREATE(address, NAME(capsule), None)  # the extension holds the name


@cache
def missing(name: str) -> int:
    """The address of a function that is not there: it returns cudaErrorNotSupported."""
    Missing.functions.append(Missing.PROTOTYPE(lacking(name)))
    return ctypes.cast(Missing.functions[-1], ctypes.c_void_p).value or 0


class Missing:
    """The C functions in place of missing ones, which ctypes would free."""

    PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int)
    functions: ClassVar[list[CFunction]] = []


__all__ = ["BindingsFinder"]

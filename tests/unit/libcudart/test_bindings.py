"""The capsules of extension modules, replaced by those of our functions; Python's own functions read them."""

from __future__ import annotations

import ctypes
import sys

from ptxvm.libcudart import bindings
from ptxvm.libcudart.bindings import BindingsFinder, replace

POINTER = ctypes.pythonapi.PyCapsule_GetPointer
POINTER.restype, POINTER.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
SIGNATURE = ctypes.create_string_buffer(b"cudaError_t (int)")  # which stays, as a capsule holds no copy
THEIRS = 0x1000
NOT_SUPPORTED = 801


class Library:
    """A library with functions at addresses."""

    def __init__(self, *names: str) -> None:
        self.functions = {name: 0x2000 + number for number, name in enumerate(names)}

    def address(self, name: str) -> int:
        return self.functions[name]


def addresses(names, library, ends=()):
    """What capsules of some names point to after replacement."""
    capsules = {name: bindings.CREATE(THEIRS, ctypes.addressof(SIGNATURE), None) for name in names}
    replace(capsules, library, ends)
    return {name: POINTER(capsule, SIGNATURE.value) for name, capsule in capsules.items()}


def test_functions_are_replaced_under_their_signature():
    library = Library("cudaFree", "cudaMalloc")
    assert addresses(["_cudaMalloc", "_cudaFree"], library) == {"_cudaMalloc": 0x2001, "_cudaFree": 0x2000}


def test_functions_on_the_stream_of_a_thread_come_first():
    library = Library("cudaMemcpy", "cudaMemcpy_ptds", "cudaFree")
    found = addresses(["_cudaMemcpy", "_cudaFree"], library, bindings.PER_THREAD)
    assert found == {"_cudaMemcpy": 0x2001, "_cudaFree": 0x2002}


def test_functions_of_the_module_itself_stay():
    assert addresses(["getDriverEglFrame"], Library()) == {"getDriverEglFrame": THEIRS}


def test_a_missing_function_returns_not_supported(caplog):
    found = addresses(["_cudaNeverHeardOf"], Library())
    assert ctypes.CFUNCTYPE(ctypes.c_int)(found["_cudaNeverHeardOf"])() == NOT_SUPPORTED
    assert "cudaNeverHeardOf is not supported yet" in caplog.text


def test_other_modules_are_left_to_python():
    assert BindingsFinder({}).find_spec("json", None) is None


def test_a_module_that_is_not_installed_is_not_found(monkeypatch):
    monkeypatch.setattr(sys, "path", [])
    assert BindingsFinder({}).find_spec("cuda.bindings._internal.runtime", []) is None

"""A program of nvcc for the tests of the runtime library."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_size_t, c_void_p
from struct import pack

import pytest
from scale_kernel import scale

from ptxvm.driver.code_images import FATBIN, WRAPPER
from ptxvm.libcuda.session import session
from ptxvm.libcudart.library import install, soname
from ptxvm.libcudart.structures import ThreeSizes

HEAD = """
.version 7.8
.target sm_80
.address_size 64
.const .f32 factor = 0f40000000;
.global .u32 counter = 5;
"""
PTX = (HEAD + scale("ld.const.f32 %f1, [factor];")).encode()


def fatbin(ptx: bytes, architecture: int = 80) -> bytes:
    """A fatbin with one entry of PTX that is not compressed."""
    head = pack("<HHIQIIIHHIIQQQ", 1, 0x101, 64, len(ptx), 0, 0, 0, 0, 0, architecture, 0, 0x11, 0, 0)
    entry = head[:64].ljust(64, b"\0") + ptx
    return pack("<IHHQ", FATBIN, 1, 16, len(entry)) + entry


class Program:
    """A program that has registered a kernel and two variables."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library, self.ptx = library, PTX
        self.image = ctypes.create_string_buffer(fatbin(PTX))
        self.wrapper = ctypes.create_string_buffer(pack("<IIQQ", WRAPPER, 1, ctypes.addressof(self.image), 0))
        self.scale, self.factor, self.counter = (ctypes.create_string_buffer(8) for _ in range(3))
        register = library["__cudaRegisterFatBinary"]
        register.restype = c_void_p
        handle = c_void_p(register(self.wrapper))
        library["__cudaRegisterFunction"](handle, self.scale, self.scale, b"scale", -1, None, None, None, None, None)
        for shadow, name in ((self.factor, b"factor"), (self.counter, b"counter")):
            library["__cudaRegisterVar"](handle, shadow, shadow, name, 0, c_size_t(4), 0, 0)
        library["__cudaRegisterFatBinaryEnd"](handle)
        self.handle = handle

    def __getattr__(self, name):
        return self.library[name]

    def launch(self, grid, block, *arguments):
        """`scale<<<grid, block>>>(arguments)`."""
        self["__cudaPushCallConfiguration"](ThreeSizes(grid, 1, 1), ThreeSizes(block, 1, 1), c_size_t(0), None)
        g, b, shared, stream = ThreeSizes(), ThreeSizes(), c_size_t(), c_void_p()
        assert self["__cudaPopCallConfiguration"](byref(g), byref(b), byref(shared), byref(stream)) == 0
        pointers = (c_void_p * len(arguments))(*(ctypes.addressof(each) for each in arguments))
        return self.cudaLaunchKernel(self.scale, g, b, pointers, shared, stream)

    def __getitem__(self, name):
        return self.library[name]


@pytest.fixture(params=["12", "13"])
def program(request):
    library = ctypes.CDLL(str(install().folder / soname(request.param)))
    program = Program(library)
    yield program
    program["__cudaUnregisterFatBinary"](program.handle)
    program.cudaDeviceReset()
    program.cudaGetLastError()
    session().stack.clear()

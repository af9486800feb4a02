"""LTO-IR goes to the toolkit's nvJitLink; a library of ours stands for it, and tests/clients links with the real one."""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_int, c_size_t, c_void_p

import pytest

from ptxvm.driver.results import DriverError, Result
from ptxvm.libcuda import link_time
from ptxvm.libcuda.link_time import LinkInput, linked_ptx, toolkit_linker
from ptxvm.libcuda.shared_library import SharedLibrary, write

BAD_OPTION, BAD_MODULE = b"-bad", b"bad"


class Standing:
    """A library with the functions of nvJitLink: its PTX is the options and the modules; it fails where it is told to."""

    def __init__(self, folder, fails_at_the_end=False):
        self.parts, self.ended, self.fails = [], 0, fails_at_the_end
        kinds = {
            "nvJitLinkCreate": ((c_void_p, c_int, ctypes.POINTER(c_char_p)), self.create),
            "nvJitLinkAddData": ((c_void_p, c_int, c_char_p, c_size_t, c_char_p), self.add),
            "nvJitLinkComplete": ((c_void_p,), lambda _: 6 if self.fails else 0),
            "nvJitLinkDestroy": ((c_void_p,), self.destroy),
            "nvJitLinkGetLinkedPtxSize": ((c_void_p, ctypes.POINTER(c_size_t)), self.size),
            "nvJitLinkGetLinkedPtx": ((c_void_p, c_void_p), self.text),
            "nvJitLinkGetErrorLogSize": ((c_void_p, ctypes.POINTER(c_size_t)), self.size),
            "nvJitLinkGetErrorLog": ((c_void_p, c_void_p), self.text),
        }
        path = write(folder, "libnvJitLink.so.99", tuple(kinds), 6, 6)
        self.library = SharedLibrary(path, {name: ctypes.CFUNCTYPE(c_int, *k)(f) for name, (k, f) in kinds.items()})
        self.path = path

    def create(self, handle, count, options):
        self.parts = options[:count]
        return int(BAD_OPTION in self.parts)

    def add(self, handle, kind, data, size, name):
        self.parts.append(b"%d:%s=%s" % (kind, name, data[:size]))
        return 3 if data == BAD_MODULE else 0

    def destroy(self, handle):
        self.ended += 1
        return 0

    def size(self, handle, out):
        out[0] = len(b" ".join(self.parts)) + 1
        return 0

    def text(self, handle, out):
        ctypes.memmove(out, b" ".join(self.parts) + b"\0", len(b" ".join(self.parts)) + 1)
        return 0


MODULES = [LinkInput(b"one", "a"), LinkInput(b"two", "b")]


def test_modules_become_ptx_with_the_options_of_the_client(tmp_path):
    toolkit = Standing(tmp_path)
    found = linked_ptx(toolkit.path, MODULES, ["-arch=sm_90", "-lto"])
    assert found == b"-lto -ptx -arch=sm_90 3:a=one 3:b=two"
    assert toolkit.ended == 1


def test_refused_options_are_named(tmp_path):
    with pytest.raises(DriverError, match=r"nvJitLink refuses the options -lto -ptx -bad"):
        linked_ptx(Standing(tmp_path).path, MODULES, ["-bad"])


def test_a_module_that_is_refused_is_named_with_the_log(tmp_path):
    toolkit = Standing(tmp_path)
    with pytest.raises(DriverError, match=r"^CUDA_ERROR_INVALID_IMAGE: c: -lto -ptx 3:c=bad"):
        linked_ptx(toolkit.path, [LinkInput(BAD_MODULE, "c")], [])
    assert toolkit.ended == 1


def test_a_link_that_fails_has_the_log(tmp_path):
    toolkit = Standing(tmp_path, fails_at_the_end=True)
    with pytest.raises(DriverError, match="3:b=two"):
        linked_ptx(toolkit.path, MODULES, [])
    assert toolkit.ended == 1


def test_without_a_toolkit_the_package_is_named(monkeypatch):
    monkeypatch.setattr(link_time, "installed", lambda *_: iter(()))
    with pytest.raises(DriverError, match="pip install nvidia-nvjitlink") as raised:
        toolkit_linker()
    assert raised.value.result is Result.NOT_SUPPORTED

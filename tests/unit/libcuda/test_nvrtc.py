"""NVRTC as clients get it: the toolkit's, whose machine code is PTX."""

from __future__ import annotations

import ctypes

import pytest

from ptxvm.libcuda import nvrtc
from ptxvm.libcuda.nvrtc import Compiler
from ptxvm.libcuda.shared_library import SharedLibrary, write

PAIR = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_size_t, ctypes.c_size_t)


@pytest.fixture
def toolkit(tmp_path):
    """A library that stands for the toolkit's: each function returns a number of its own, plus its arguments."""
    folder = tmp_path / "toolkit"
    folder.mkdir()
    answers = {"nvrtcVersion": 100, "nvrtcGetPTX": 200, "nvrtcGetPTXSize": 300, "nvrtcGetCUBIN": 400, "nvrtcGetCUBINSize": 500}
    path = write(folder, "libnvrtc.so.13", tuple(answers), 11, 11)
    made = {name: PAIR(lambda a, b, answer=answer: answer + 10 * a + b) for name, answer in answers.items()}
    return SharedLibrary(path, made)


def test_a_program_has_ptx_where_a_client_asks_for_a_cubin(tmp_path, toolkit):
    loaded = Compiler(tmp_path, "13", toolkit.path).library.loaded
    assert loaded.nvrtcGetCUBINSize(1, 2) == 312  # the call that loads the real one
    assert (loaded.nvrtcGetCUBIN(1, 2), loaded.nvrtcGetPTX(3, 4), loaded.nvrtcVersion(5, 6)) == (212, 234, 156)
    assert loaded.nvrtcGetTileIR(0, 0) == nvrtc.INTERNAL_ERROR  # which that toolkit has not


def test_a_toolkit_that_cannot_be_loaded_is_an_error_of_every_call(tmp_path, caplog):
    (tmp_path / "broken.so").write_bytes(b"no library")
    loaded = Compiler(tmp_path, "13", tmp_path / "broken.so").library.loaded
    assert loaded.nvrtcVersion(0, 0) == nvrtc.INTERNAL_ERROR
    assert "broken.so cannot be loaded" in caplog.text


def test_programs_find_the_compiler_that_the_environment_of_the_command_has(tmp_path, toolkit, monkeypatch):
    """The loader looks for it before Python starts, and the Python of the program may have other packages."""
    monkeypatch.setattr(nvrtc, "installed", lambda _, __, major: iter([toolkit.path] if major == "13" else []))
    nvrtc.write_compilers(tmp_path)
    assert [each.name for each in tmp_path.glob("libnvrtc.so.*")] == ["libnvrtc.so.13"]
    monkeypatch.setattr(nvrtc, "installed", lambda *_: iter([]))
    (made,) = nvrtc.compilers(tmp_path)
    assert made.library.loaded.nvrtcVersion(5, 6) == 156

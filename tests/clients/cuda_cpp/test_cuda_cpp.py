"""Programs that nvcc compiles, on ptxvm: two of those that `make clients` runs."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

from ptxvm.libcuda.embedded import library_of_python

spec = importlib.util.spec_from_file_location("cuda_cpp_programs", Path(__file__).with_name("run.py"))
programs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(programs)

NVCC = programs.compiler()
FEW = ("printing", "threads")


@pytest.mark.skipif(NVCC is None, reason="there is no nvcc: set NVCC, or install nvidia-cuda-nvcc and nvidia-cuda-runtime")
@pytest.mark.skipif(not library_of_python(), reason="this Python has no shared library, which programs could load")
@pytest.mark.skipif(shutil.which("g++") is None, reason="nvcc needs g++")
@pytest.mark.parametrize("name", FEW)
def test_a_program_checks_its_own_results(name):
    assert programs.verdict(name, programs.run(name, NVCC)) == ""

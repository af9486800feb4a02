"""The environment of client processes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from ptxvm.libcuda.embedded import library_of_python
from ptxvm.libcudart.lent_packages import lend
from ptxvm.libcudart.process import prepare

SAYS = """\
#!/bin/sh
for word; do echo "$word"; done
"""


@pytest.fixture
def toolkit(tmp_path, monkeypatch):
    """A toolkit whose nvcc says what it is called with; it is the only program on the path besides those of the system."""
    root = tmp_path / "a toolkit"
    for name in ("bin", "lib64", "include"):
        (root / name).mkdir(parents=True)
    nvcc = root / "bin" / "nvcc"
    nvcc.write_text(SAYS)
    nvcc.chmod(0o755)
    monkeypatch.setenv("PATH", f"{nvcc.parent}:/usr/bin:/bin")
    return root


def called(variables, *words):
    """The words with which nvcc is called where a client calls it with some."""
    environment = os.environ | variables
    done = subprocess.run(["nvcc", *words], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize("option", ["-cubin", "--cubin"])
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((), ("-o", "kernel.cubin")),
        (("-o", "x"), ("-o", "x")),
        (("-ox",), ("-ox",)),
        (("--output-file=x",), ("--output-file=x",)),
        (("-D", "A=two words", "*"), ("-D", "A=two words", "*", "-o", "kernel.cubin")),
    ],
)
def test_a_client_that_asks_nvcc_for_machine_code_gets_ptx(toolkit, tmp_path, option, given, expected):
    """Under the name of the machine code (CUDA Compiler Driver NVCC, "File and Path Specifications")."""
    variables = prepare(tmp_path)
    found = called(variables, option, "-arch", "sm_80", "folder/kernel.cu", *given)
    assert found == ["-ptx", "-arch", "sm_80", "folder/kernel.cu", *expected]


def test_other_calls_of_nvcc_are_as_they_were(toolkit, tmp_path):
    words = ["-fatbin", "a.cu", "-Xptxas", "-v -O3", ""]
    assert called(prepare(tmp_path), *words) == words


def test_the_toolkit_is_where_its_nvcc_seems_to_be(toolkit, tmp_path):
    programs = Path(prepare(tmp_path)["PATH"].split(":")[0])
    assert (programs.parent / "lib64").samefile(toolkit / "lib64")
    assert (programs.parent / "include").samefile(toolkit / "include")
    assert prepare(tmp_path)["PATH"].split(":")[0] == str(programs)  # for a second process in the same folder, too


def test_a_python_without_what_ptxvm_needs_is_told_so(tmp_path):
    """Its program runs, since it may not be the one that uses a GPU."""
    (tmp_path / "ml_dtypes.py").write_text("raise ImportError(\"No module named 'ml_dtypes'\")\n")
    program = f"""PYTHONPATH="{tmp_path}:$PYTHONPATH" exec {sys.executable} -c 'print("ran")'"""
    command = [sys.executable, "-m", "ptxvm", "exec", "--", "sh", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "ran\n")
    lacking = "lacks a module of ptxvm: No module named 'ml_dtypes'"
    assert done.stderr == f"ptxvm: {sys.executable} {lacking}; `pip install ptxvm` there\n"


DEVICES = """
import ctypes
import importlib.util
count = ctypes.c_int()
cuda = ctypes.CDLL("libcuda.so.1")
print(cuda.cuInit(0), cuda.cuDeviceGetCount(ctypes.byref(count)), count.value)
import beside
print([name for name in ("numpy", "pytest") if importlib.util.find_spec(name)])
"""


def run_beside(tmp_path, *python):
    """Run a program that asks for devices, and then imports what is beside it."""
    (tmp_path / "app.py").write_text(DEVICES)
    (tmp_path / "beside.py").touch()
    command = [sys.executable, "-m", "ptxvm", "exec", "--", *python, str(tmp_path / "app.py")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_python_without_packages_gets_those_that_ptxvm_needs_and_no_others(tmp_path):
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    done = run_beside(tmp_path, tmp_path / "bare" / "bin" / "python")
    assert (done.stdout, done.stderr) == ("0 0 1\n['numpy']\n", "")


@pytest.mark.skipif(not library_of_python(), reason="this Python has no shared library")
def test_a_python_that_leaves_the_environment_keeps_its_path(tmp_path):
    """Without its `sitecustomize` the library starts at the first call, in the Python that is there."""
    done = run_beside(tmp_path, sys.executable, "-E")
    assert (done.stdout, done.stderr) == ("0 0 1\n['numpy', 'pytest']\n", "")


def test_packages_are_lent_with_what_they_require(tmp_path):
    places = tmp_path / "site-packages"
    for name, requires in {
        "ptxvm": ["One_Name>=2"],
        "one_name": ["two; extra == 'more'", "three"],
        "two": [],
        "three": [],
    }.items():
        info = places / f"{name}-1.dist-info"
        info.mkdir(parents=True)
        lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1", *(f"Requires-Dist: {each}" for each in requires)]
        (info / "METADATA").write_text("\n".join(lines))
        files = [f"{name}/__init__.py", f"{name}.libs/lib.so", f"{name}-1.dist-info/METADATA", "../../bin/x", f"{name}.pth"]
        (info / "RECORD").write_text("".join(f"{each},,\n" for each in files))
    lent = lend(tmp_path, [str(places)])
    assert {each.name: each.readlink() for each in lent.iterdir()} == {
        name: places / name for name in ("one_name", "one_name.libs", "three", "three.libs")
    }
    assert lend(tmp_path, [str(places)]) == lent  # a second process


def test_without_nvcc_the_path_is_as_it_was(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert prepare(tmp_path)["PATH"] == str(tmp_path)


FORKS = """
#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    void *runtime = dlopen("libcudart.so.13", RTLD_NOW);
    int status, (*free)(void *) = (int (*)(void *))dlsym(runtime, "cudaFree");
    const char *(*text)(int) = (const char *(*)(int))dlsym(runtime, "cudaGetErrorString");
    const char *(*name)(int) = (const char *(*)(int))dlsym(runtime, "cudaGetErrorName");
    printf("%s\\n", text(free(0)));
    fflush(stdout);
    if (!fork()) {
        int error = free(0);
        printf("%s %s\\n", text(error), name(error));
        fflush(stdout);
        _exit(0);
    }
    wait(&status);
    return status;
}
"""


@pytest.mark.skipif(not (library_of_python() and shutil.which("cc")), reason="it needs cc and a shared library of Python")
def test_a_child_of_a_program_is_told_the_error_in_words(tmp_path):
    (tmp_path / "main.c").write_text(FORKS)
    subprocess.run(["cc", "-w", "main.c", "-ldl", "-o", "main"], cwd=tmp_path, check=True, capture_output=True)
    command = [sys.executable, "-m", "ptxvm", "exec", "--", str(tmp_path / "main")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "no error\ninitialization error cudaErrorInitializationError\n"), done.stderr


LEAVES = """
import os
import threading
import time
from llvmlite.binding import ffi
from ptxvm.libcuda import embedded

events, inside, leaves, left = [], threading.Event(), threading.Event(), threading.Event()
def compile():
    with ffi.lib._lock:
        inside.set()
        leaves.wait()
        time.sleep(0.2)
        events.append("compiled")
    left.wait()
    ffi.lib.LLVMPY_GetVersionInfo()
    events.append("compiled again")
thread = threading.Thread(target=compile)
thread.start()
inside.wait()
leaves.set()
embedded.leave(None)
events.append("left")
left.set()
thread.join(0.5)
print(*events, sep=", ", flush=True)
os._exit(0)
"""


def test_llvm_is_left_before_its_destructors_run():
    """A program that ended while its code was still compiled had a damaged heap: some 5 of 100 runs on a busy machine."""
    done = subprocess.run([sys.executable, "-c", LEAVES], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "compiled, left\n"), done.stderr

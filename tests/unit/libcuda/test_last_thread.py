"""A program whose main thread calls pthread_exit ends with its last thread, as if by exit(0) (POSIX, `pthread_exit`)."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from ptxvm.libcuda import last_thread
from ptxvm.libcuda.embedded import library_of_python
from ptxvm.libcuda.last_thread import is_at_work

PROGRAM = """
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *runtime;
static int (*create)(void **), (*call)(void *, void (*)(void *), void *), (*finish)(void *);
static void print(void *text) { fputs(text, stdout); }
static void *work(void *unused) {
    void *stream;
    usleep(300000);
    printf("%d", create(&stream) || call(stream, print, "w") || finish(stream));
    return 0;
}
static void leave(void) { puts(" left"); }
int main(void) {
    pthread_t thread;
    void *stream;
    runtime = dlopen("libcudart.so.13", RTLD_NOW);
    create = dlsym(runtime, "cudaStreamCreate"), finish = dlsym(runtime, "cudaStreamSynchronize");
    call = dlsym(runtime, "cudaLaunchHostFunc");
    printf("%d", create(&stream) || call(stream, print, "m") || finish(stream));
    atexit(leave);
    pthread_create(&thread, 0, work, 0);
    pthread_detach(thread);
    pthread_exit(0);
}
"""


@pytest.mark.skipif(not (library_of_python() and shutil.which("cc")), reason="it needs cc and a shared library of Python")
def test_the_last_thread_of_a_program_ends_it(tmp_path):
    (tmp_path / "main.c").write_text(PROGRAM)
    command = ["cc", "-w", "main.c", "-ldl", "-lpthread", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    command = [sys.executable, "-m", "ptxvm", "exec", "--", str(tmp_path / "main")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert (done.returncode, done.stdout) == (0, "m0w0 left\n"), done.stderr


def test_work_of_the_program(monkeypatch, tmp_path):
    """A thread that Python has not started, unless it waits for another one without a limit of time; and work of streams."""
    begun, end = threading.Event(), threading.Event()

    class Worker(threading.Thread):
        def run(self) -> None:
            begun.set()
            end.wait()

    ours = Worker()
    ours.start()
    begun.wait()
    monkeypatch.setattr(last_thread, "TASKS", tmp_path)
    monkeypatch.setattr(last_thread, "STREAMS", streams := [])
    for number in (threading.main_thread().native_id, ours.native_id, 12_345_678):
        (tmp_path / str(number)).mkdir()
    for said, expected in (
        ("running\n", True),
        ("202 0x7fb1391e5ae0 0x189 0x0 0x0 0x0 0xffffffff 0x7fb1331fedb0 0x7fb144fbbf16\n", False),
        ("202 0x7fb1391e5ae0 0x189 0x0 0x7fb1331f0000 0x0 0xffffffff 0x7fb1331fedb0 0x7fb144fbbf16\n", True),
        ("230 0x1 0x1 0x7fb12ce11ab0 0x0 0x0 0x0 0x7fb12ce11a70 0x7fb145005545\n", True),  # clock_nanosleep
    ):
        (tmp_path / "12345678" / "syscall").write_text(said)
        assert is_at_work() is expected, said
    (tmp_path / "12345678" / "syscall").unlink()
    assert not is_at_work()  # it has ended
    (tmp_path / "12345678" / "syscall").mkdir()
    assert is_at_work()  # what the system does not tell
    (tmp_path / "12345678" / "syscall").rmdir()
    streams.append(SimpleNamespace(queue=SimpleNamespace(is_idle=False)))
    assert is_at_work()
    streams.clear()
    end.set()
    ours.join()
    (tmp_path / str(ours.native_id) / "syscall").write_text("running\n")
    assert is_at_work()

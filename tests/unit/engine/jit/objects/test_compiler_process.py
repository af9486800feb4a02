"""Compilation in a process of its own: the same code, errors by their reason, and an end with Ctrl-C."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ptxvm.diagnostics.errors import Crash
from ptxvm.engine.jit.abi.specialisation import Tier
from ptxvm.engine.jit.objects import code_cache, codegen, compiler_process

FORTY_TWO = "define i32 @grid() {\n  ret i32 42\n}\n"


def interrupt() -> None:
    """Press Ctrl-C."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt, which may be ignored where the tests run."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_the_code_is_that_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(compiler_process.LONG, Tier.QUICK, 1)
    assert compiler_process.is_long(FORTY_TWO, Tier.QUICK)
    made = compiler_process.object_code(FORTY_TWO, Tier.QUICK, background=True)
    assert made == codegen.object_code(FORTY_TWO, Tier.QUICK)


@pytest.mark.parametrize("tier", [Tier.QUICK, Tier.BEST])
def test_only_the_best_code_takes_the_register_allocator_long(monkeypatch: pytest.MonkeyPatch, tier: Tier) -> None:
    asked: list[bool] = []

    def object_code(_text: str, _tier: Tier, *, patient: bool) -> bytes:
        asked.append(patient)
        return b"object"

    stdout = io.TextIOWrapper(written := io.BytesIO())
    monkeypatch.setattr(codegen, "object_code", object_code)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(FORTY_TWO.encode())))
    monkeypatch.setattr(sys, "stdout", stdout)
    compiler_process.serve(int(tier), 0)
    monkeypatch.undo()
    assert (asked, written.getvalue()) == ([tier is Tier.BEST], b"object")


def test_what_llvm_refuses_is_an_error_of_this_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # where the text is kept
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setitem(compiler_process.LONG, Tier.QUICK, 0)
    assert compiler_process.object_code("define\n", Tier.QUICK, background=False) is None
    with pytest.raises(Crash, match="LLVM refuses a module"):
        code_cache.object_code("define\n", Tier.QUICK, background=False)


@pytest.mark.skipif(not compiler_process.OF_SESSION.exists(), reason="processors are not shared among sessions here")
@pytest.mark.parametrize(("inherited", "expected"), [(0, 7), (9, 9)])
def test_a_session_of_its_own_gives_way(inherited: int, expected: int) -> None:
    """Where sessions have equal parts of a processor, the niceness of a process in one counts for nothing beside the others."""
    script = (
        f"import os; from ptxvm.engine.jit.objects import compiler_process as c; "
        f"os.setpriority(os.PRIO_PROCESS, 0, {inherited}); c.lower_session(7); "
        "print(os.nice(0), c.OF_SESSION.read_text())"
    )
    said = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, start_new_session=True)
    niceness, _, session = said.stdout.strip().partition(" ")
    assert int(niceness) == expected
    assert session.endswith(f"nice {expected}")


def test_without_python_nothing_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(compiler_process.LONG, Tier.QUICK, 0)
    for executable in ("", "/usr/bin/another"):
        monkeypatch.setattr(sys, "executable", executable)
        assert not compiler_process.is_long(FORTY_TWO, Tier.QUICK)
    monkeypatch.setattr(sys, "executable", "/nowhere/python3")
    assert code_cache.object_code(FORTY_TWO, Tier.QUICK, background=False) == codegen.object_code(FORTY_TWO, Tier.QUICK)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_the_process_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    usual = subprocess.Popen

    def sleeping(words: list[str], **options: object) -> subprocess.Popen[bytes]:
        started.append(usual([words[0], "-c", "import time; time.sleep(20)"], **options))  # type: ignore[call-overload]
        threading.Timer(0.1, interrupt).start()
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", sleeping)
    with pytest.raises(KeyboardInterrupt):
        compiler_process.object_code(FORTY_TWO, Tier.QUICK, background=False)
    assert started[0].returncode is not None


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_while_llvm_works_leaves_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    # the module is parsed and freed by another thread, which what the handler raises does not reach
    entered, leave, ended = threading.Event(), threading.Event(), threading.Event()

    def slow(_text: str, _tier: Tier) -> bytes:
        entered.set()
        leave.wait(20)
        ended.set()
        return b""

    monkeypatch.setattr(codegen, "object_code", slow)
    threading.Thread(target=lambda: entered.wait() and interrupt()).start()
    with pytest.raises(KeyboardInterrupt):
        code_cache.object_code(FORTY_TWO, Tier.QUICK, background=False)
    assert not ended.is_set()
    leave.set()
    assert ended.wait(10)

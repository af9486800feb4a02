"""The sign that long work is under way: on a terminal, and none in pipes."""

from __future__ import annotations

import io
import os
import pty
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import ptxvm
from ptxvm.cli import check, litmus, main, progress_bar, terminal
from ptxvm.engine.jit.run import cta_distribution

EMPTY = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k() { .reg .u32 %r<2>; mov.u32 %r1, %ctaid.x; ret; }
"""
LONG = """.version 8.0
.target sm_80
.address_size 64
.visible .entry forever() { L: bra L; }
"""
CASES = Path(__file__).parents[2] / "litmus" / "cases"


@pytest.fixture
def screen(monkeypatch):
    """Does something with a terminal on the standard error, and gives what was shown there."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(terminal, "PATIENCE", 0.05)

    def shown(work: Callable[[], object]) -> str:
        master, slave = pty.openpty()
        with os.fdopen(slave, "w", buffering=1) as stream, monkeypatch.context() as patched:
            patched.setattr(sys, "stderr", stream)
            work()
        found = b""
        try:
            while piece := os.read(master, 1 << 16):
                found += piece
        except OSError:  # that is how a terminal ends
            pass
        os.close(master)
        return found.decode()

    return shown


def count_sheep(seconds: float) -> None:
    with terminal.working("counting sheep"):
        time.sleep(seconds)


def test_long_work_shows_itself_on_a_terminal_and_is_gone_at_the_end(screen):
    shown = screen(lambda: count_sheep(0.4))
    assert "counting sheep" in shown
    assert shown.rstrip().endswith("\x1b[2K")  # the line is erased


def test_short_work_shows_nothing(screen, monkeypatch):
    monkeypatch.setattr(terminal, "PATIENCE", 5.0)
    assert screen(lambda: count_sheep(0)) == ""


def test_a_pipe_gets_nothing(monkeypatch):
    monkeypatch.setattr(terminal, "PATIENCE", 0.01)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    count_sheep(0.1)
    assert sys.stderr.getvalue() == ""


def test_a_command_that_runs_long_says_what_it_does(screen, tmp_path):
    module = tmp_path / "long.ptx"
    module.write_text(LONG)
    words = ["run", str(module), "--grid", "2", "--block", "32", "--timeout", "0.5", "--engine", "interp"]
    shown = screen(lambda: main(words))
    assert "running forever on 64 threads" in shown
    assert "timeout" in shown


def test_many_short_files_are_long_work(screen, monkeypatch, tmp_path):
    """None of them takes as long as the patience, but all together do."""
    monkeypatch.setattr(terminal, "PATIENCE", 0.2)
    usual = check.analyse

    def slow(*words):
        time.sleep(0.1)
        return usual(*words)

    monkeypatch.setattr(check, "analyse", slow)
    for n in range(5):
        (tmp_path / f"{n}.ptx").write_text(LONG)
    shown = screen(lambda: main(["check", str(tmp_path)]))
    assert "4.ptx (5 of 5)" in shown
    assert max(map(len, re.sub(r"\x1b\[[^A-Za-z]*[A-Za-z]", "", shown).split("\r"))) <= 80


def test_many_short_litmus_tests_are_long_work(screen, monkeypatch):
    monkeypatch.setattr(terminal, "PATIENCE", 0.2)
    usual = litmus.judge

    def slow(*words, **options):
        time.sleep(0.1)
        return usual(*words, **options)

    monkeypatch.setattr(litmus, "judge", slow)
    case = str(next(CASES.glob("*.litmus")))
    shown = screen(lambda: main(["litmus", *[case] * 5]))
    assert ", 5 of 5" in shown
    assert "running" not in shown  # --runs was not asked for


def test_a_bar_is_as_full_as_the_work_is_done(screen):
    def half() -> None:
        with terminal.working("half of it", lambda: 0.5):
            time.sleep(0.3)

    shown = screen(half)
    assert f" \x1b[91m{'━' * (progress_bar.WIDTH // 2)}" in shown


def test_compiled_code_knows_how_far_it_is():
    """The part of the CTAs that have begun, while a grid runs; nothing before and behind it."""
    module = ptxvm.load(EMPTY)
    seen: list[float | None] = []
    usual = cta_distribution.Progress.remaining.fget
    assert usual is not None
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cta_distribution.Progress, "remaining", property(lambda self: seen.append(module.share) or usual(self)))
        module.kernel().launch(64, 32, engine="jit", threads=2)
    assert seen == sorted(seen)
    assert seen
    assert all(0 <= share <= 1 for share in seen)
    assert module.share is None


def test_litmus_tests_are_counted(screen, monkeypatch):
    files = [str(CASES / f"message-passing{each}.litmus") for each in ("", "-cta")]
    usual = litmus.judged

    def slow(*words, **how):
        time.sleep(0.3)
        return usual(*words, **how)

    monkeypatch.setattr(litmus, "judged", slow)
    shown = screen(lambda: main(["litmus", *files]))
    assert ", 1 of 2" in shown
    assert ", 2 of 2" in shown

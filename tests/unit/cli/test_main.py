"""The command line as a whole: help, wrong calls, our own bugs, interruptions."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from ptxvm.cli import check

LOOP = ".version 6.4\n.target sm_75\n.address_size 64\n.entry k()\n{\nL: bra L;\n}\n"


def python(*words: str, **how):
    command = [sys.executable, "-c", "import sys; from ptxvm.cli import main; sys.exit(main())", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how)


def test_without_a_command_it_shows_help(ptxvm):
    done = ptxvm()
    assert done.code == 0
    assert [line.split()[0] for line in done.out.partition("Commands:\n")[2].splitlines()] == [
        "check", "run", "explain", "isa", "litmus", "bench",
    ]  # fmt: skip
    assert "..." not in done.out.partition("Commands:\n")[2]  # each fits its line


@pytest.mark.parametrize("command", ["check", "run", "explain", "isa", "litmus", "bench"])
def test_each_command_has_help(ptxvm, command):
    for option in ("--help", "-h"):
        done = ptxvm(command, option)
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith(f"Usage: ptxvm {command} [OPTIONS]")
        assert max(map(len, done.out.splitlines())) <= 80


def test_version(ptxvm):
    assert ptxvm("--version").out == "ptxvm 0.1.0\n"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["chek"], "ptxvm: no such command 'chek'. Did you mean 'check'?; see 'ptxvm --help'"),
        (["--versoin"], "ptxvm: no such option: --versoin (Possible options: --version); see 'ptxvm --help'"),
        (["check"], "ptxvm check: missing argument 'FILE"),
        (["run", "--shared", "x", "f"], "ptxvm run: invalid value for '--shared': "),
        (["check", "--format"], "ptxvm check: option '--format' requires an argument; see 'ptxvm check --help'"),
        (["bench", "--repeat", "0"], "ptxvm bench: invalid value for '--repeat': "),
    ],
)
def test_a_wrong_call_gets_one_line(ptxvm, words, line):
    done = ptxvm(*words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(line)
    assert done.err.endswith("--help'\n")
    assert done.err.count("\n") == 1


@pytest.fixture
def bug(monkeypatch):
    def fail(*_):
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(check, "analyse", fail)


@pytest.mark.usefixtures("bug")
def test_our_bug_is_one_line_and_exit_3(ptxvm, module):
    done = ptxvm("check", module("x"))
    assert done.code == 3
    line = "Crash: RuntimeError: two lines: a bug of ptxvm, please report it; PTXVM_TRACEBACK=1 shows where\n"
    assert done.err == line


@pytest.mark.usefixtures("bug")
@pytest.mark.parametrize("how", ["option", "environment"])
def test_a_traceback_is_shown_on_demand(ptxvm, module, monkeypatch, how):
    if how == "environment":
        monkeypatch.setenv("PTXVM_TRACEBACK", "1")
    done = ptxvm("check", module("x"), *(["--traceback"] if how == "option" else []))
    assert done.code == 3
    assert "Traceback (most recent call last):" in done.err
    assert done.err.endswith("Crash: RuntimeError: two lines: a bug of ptxvm, please report it\n")


def test_help_needs_no_engine_and_no_colours():
    loaded = "import sys; from ptxvm.cli import main; main(['--help']); print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", loaded], check=True, capture_output=True, text=True).stdout
    modules = set(out.splitlines()[-1].split())
    assert not modules & {"numpy", "rich.console", "ptxvm.engine.interp.engine", "ptxvm.isa.catalog.logic"}


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal of POSIX")
def test_an_interruption_is_quiet(tmp_path):
    (tmp_path / "loop.ptx").write_text(LOOP)
    running = python("run", "loop.ptx", "--grid", "1", "--block", "1", cwd=tmp_path)
    time.sleep(1.5)  # it never ends by itself
    assert running.poll() is None
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=20)
    assert (running.returncode, out, err) == (130, "", "")


def test_a_reader_who_has_seen_enough_hears_no_complaint():
    running = python("isa")
    assert running.stdout.readline().startswith("Integer arithmetic")
    running.stdout.close()
    err = running.stderr.read()
    running.stderr.close()
    running.wait(20)
    assert err == ""


def test_a_terminal_without_a_character_gets_another():
    running = python("isa", "lop3", env=os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    out, err = running.communicate(timeout=60)
    assert (running.returncode, err) == (0, "")
    assert out.startswith("lop3, PTX ISA 9.7.8.6\n")

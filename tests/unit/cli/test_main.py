"""The command line as a whole: help, wrong calls, our own bugs, interruptions."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ptxvm.cli import check

LOOP = ".version 6.4\n.target sm_75\n.address_size 64\n.entry k()\n{\nL: bra L;\n}\n"

TELLS = """.version 6.4
.target sm_75
.address_size 64
.extern .func (.param .b32 status) vprintf (.param .b64 format, .param .b64 values);
.global .align 1 .b8 text[4] = {104, 105, 10, 0};
.entry k()
{
    .reg .b64 %t;
    .param .b64 a; .param .b64 b; .param .b32 c;
    mov.u64 %t, text;
    cvta.global.u64 %t, %t;
    st.param.b64 [a], %t;
    st.param.b64 [b], 0;
    call (c), vprintf, (a, b);
L:  bra L;
}
"""


PATIENCE = 600  # seconds: a command that ends does so at once, but on a machine that is busy

# Ctrl-C is heard, although the tests may run where it is ignored.
START = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); from ptxvm.cli import main;"


def python(*words: str, **how):
    command = [sys.executable, "-c", f"{START} sys.exit(main())", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how)


def test_without_a_command_it_shows_help(ptxvm):
    done = ptxvm()
    assert done.code == 0
    assert [line.split()[0] for line in done.out.partition("Commands:\n")[2].splitlines()] == [
        "check", "run", "profile", "trace", "debug", "diff", "explain", "isa", "examples", "exec", "litmus", "lsp", "bench",
        "campaign", "play",
    ]  # fmt: skip
    assert "..." not in done.out.partition("Commands:\n")[2]  # each fits its line


def test_exec_refuses_options_that_it_does_not_have(ptxvm):
    done = ptxvm("exec", "--chek", "memory", "--", "true")
    assert done.code == 2
    assert "no such option '--chek'" in done.err
    assert "'--check'" in done.err


@pytest.mark.parametrize(
    "command",
    [
        "check",
        "run",
        "profile",
        "trace",
        "debug",
        "diff",
        "explain",
        "isa",
        "exec",
        "litmus",
        "lsp",
        "bench",
        "campaign",
        "play",
    ],
)
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
        (["--versoin"], "ptxvm: no such option '--versoin'. Did you mean '--version'?; see 'ptxvm --help'"),
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


@pytest.mark.parametrize("words", [["explain", "P0305"], ["isa", "add"]])
def test_pages_need_no_numpy(words):
    loaded = f"import sys; from ptxvm.cli import main; main({words}); print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", loaded], check=True, capture_output=True, text=True).stdout
    assert not set(out.splitlines()[-1].split()) & {"numpy", "ptxvm.api", "ptxvm.analysis.check"}


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal of POSIX")
def test_an_interruption_is_quiet(tmp_path):
    (tmp_path / "loop.ptx").write_text(TELLS)
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    running = python("run", "loop.ptx", "--grid", "1", "--block", "1", cwd=tmp_path, env=environment)
    assert running.stdout.readline() == "hi\n"  # it never ends by itself
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=PATIENCE)
    assert (running.returncode, out, err) == (130, "", "")


@pytest.mark.sampled(2)
@pytest.mark.skipif(sys.platform == "win32", reason="sends signals of POSIX")
@pytest.mark.parametrize("ends", ["SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_where_interruptions_are_ignored_other_signals_end_a_kernel(tmp_path, ends, engine):
    """As `nohup` and a shell in the background start it; what is ignored when Python starts stays so."""
    (tmp_path / "loop.ptx").write_text(TELLS)
    code = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN);"
        f"signal.signal(signal.{ends}, signal.SIG_DFL);"  # which may be ignored where the tests run
        "os.execv(sys.executable, [sys.executable, '-m', 'ptxvm', *sys.argv[1:]])"
    )
    words = ["run", "loop.ptx", "--grid", "1", "--block", "1", "--engine", engine]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": os.environ | {"PYTHONUNBUFFERED": "1"}}
    with subprocess.Popen([sys.executable, "-c", code, *words], cwd=tmp_path, **pipes) as running:
        assert running.stdout.readline() == b"hi\n"  # it never ends by itself
        running.send_signal(signal.SIGINT)
        time.sleep(0.3)
        assert running.poll() is None
        running.send_signal(getattr(signal, ends))
        try:
            assert running.wait(PATIENCE) == -getattr(signal, ends)
        finally:
            running.kill()


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_a_timeout_ends_a_kernel(tmp_path, engine):
    (tmp_path / "loop.ptx").write_text(LOOP)
    words = ["run", "loop.ptx", "--grid", "1", "--block", "1", "--timeout", "0.3", "--engine", engine]
    with python(*words, cwd=tmp_path) as running:
        _, err = running.communicate(timeout=PATIENCE)
    assert running.returncode == 1
    assert err.startswith("error[timeout]: the grid did not end within 0.3 seconds\n --> loop.ptx:")


def test_a_timeout_is_above_zero(ptxvm, tmp_path):
    (tmp_path / "loop.ptx").write_text(LOOP)
    done = ptxvm("run", str(tmp_path / "loop.ptx"), "--grid", "1", "--block", "1", "--timeout", "0")
    assert done.code == 2
    assert "--timeout takes a number of seconds above 0, not 0" in done.err


def test_a_reader_who_has_seen_enough_hears_no_complaint():
    running = python("isa")
    assert running.stdout.readline().startswith("Integer arithmetic")
    running.stdout.close()
    err = running.stderr.read()
    running.stderr.close()
    running.wait(PATIENCE)
    assert err == ""


def test_a_terminal_without_a_character_gets_another():
    running = python("isa", "lop3", env=os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    out, err = running.communicate(timeout=PATIENCE)
    assert (running.returncode, err) == (0, "")
    assert out.startswith("lop3, PTX ISA 9.7.8.6\n")


FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
WORDS = {
    "text": ["check", "{good}"],
    "findings": ["check", "{bad}"],
    "json": ["check", "{bad}", "--format", "json"],
    "sarif": ["check", "{bad}", "--format", "sarif"],
    "run": ["run", "{good}", "--grid", "1", "--block", "1", "--format", "json"],
    "explain": ["explain", "add"],
    "isa": ["isa"],
    "help": ["check", "--help"],
    "version": ["--version"],
}


@pytest.mark.sampled(2)
@FULL
@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("which", WORDS)
def test_a_full_disk_is_no_bug(tmp_path, which, unbuffered):
    for name, text in {"good": LOOP.replace("L: bra L;", "ret;"), "bad": LOOP.replace("L: bra L;", "ret, ret;")}.items():
        (tmp_path / name).write_text(text)
    words = [word.format(good=tmp_path / "good", bad=tmp_path / "bad") for word in WORDS[which]]
    command = [sys.executable, "-m", "ptxvm", *words]
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment, check=False)
    name = "ptxvm" if which == "version" else f"ptxvm {words[0]}"
    assert (done.returncode, done.stderr) == (2, f"{name}: cannot write the output: No space left on device\n")


@FULL
@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("command", ["isa", "--version"])
def test_a_full_disk_for_the_error_too_is_no_bug(command, unbuffered):
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    with Path("/dev/full").open("w") as full:
        silent = subprocess.run(
            [sys.executable, "-m", "ptxvm", command], stdout=full, stderr=full, env=environment, check=False
        )
    assert silent.returncode == 2


@FULL
def test_the_exit_code_is_that_of_the_failure_where_nobody_can_be_told(tmp_path):
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "ptxvm", "check", str(tmp_path / "none.ptx")]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=full, check=False)
    assert (done.returncode, done.stdout) == (2, b"")


def test_closed_streams_take_what_is_written(tmp_path):
    (tmp_path / "bad").write_text(LOOP.replace("L: bra L;", "ret, ret;"))
    command = f"{sys.executable} -m ptxvm check {tmp_path / 'bad'} >&- 2>&-"
    assert subprocess.run(["sh", "-c", command], check=False).returncode == 1

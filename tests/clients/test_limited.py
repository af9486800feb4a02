"""What the runner of a client's suite ends, and what it lets go on."""

from __future__ import annotations

import importlib.util
import sys
import time
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location("limited", Path(__file__).with_name("limited.py"))
limited = importlib.util.module_from_spec(spec)
spec.loader.exec_module(limited)

SPIN = "import time\nwhile time.process_time() < 60: pass\n"
SPIN_IN_A_CHILD = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {SPIN!r}])\n"
WAIT = "import time\ntime.sleep(60)\n"


def run(text: str, *, seconds: float = 30, idle: float = 30):
    return limited.run([sys.executable, "-c", text], seconds=seconds, idle=idle, cwd=".", poll=0.05)


def test_a_command_that_ends_tells_its_status_and_errors():
    ended = run("import sys\nprint('said')\nsys.exit('not so')")
    assert (ended.status, ended.errors, ended.limit) == (1, "not so\n", "")


@pytest.mark.parametrize("text", [SPIN, SPIN_IN_A_CHILD])
def test_processor_time_is_limited_that_of_children_too(text):
    assert run(text, seconds=0.5).limit == "ended after 0.5 s of processor time"


def test_waiting_is_no_processor_time():
    begun = time.monotonic()
    ended = run("import time\ntime.sleep(1.5)\n", seconds=1)
    assert ended.limit == ""
    assert 0 < ended.seconds < 1
    assert time.monotonic() - begun > 1.4


def test_a_command_that_waits_for_ever_is_ended():
    assert run(WAIT, idle=0.5).limit == "ended after 0.5 s without processor time"

"""`ptxvm debug --exec`: the launches of a program that knows nothing of ptxvm are debugged in its own process."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

from driver_program import FIVE, PROGRAM


def debugged(*options: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    """Debug the program."""
    command = [sys.executable, "-m", "ptxvm", "debug", "--exec", *options, "--", sys.executable, "-c"]
    program = PROGRAM.replace("PTX", repr(FIVE))
    return subprocess.run([*command, program], input=typed, capture_output=True, text=True, check=False, timeout=60)


def test_what_is_changed_in_a_launch_is_what_the_program_reads():
    commands = ("break opcode st.global*", "continue", "print %r", "set %r = 77")
    done = debugged("--batch", *(word for each in commands for word in ("-ex", each)))
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.count("five<<<(1,1,1),(1,1,1)>>> begins.") == 2
    assert done.stdout.count("%r = 0x00000005\n") == 2
    assert "stored 77\n" in done.stdout


def test_quit_ends_the_program():
    done = debugged(typed="print %tid.x\nquit\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("%tid.x = 0\n(ptxvm) quit\n")
    assert "stored" not in done.stdout


GUEST = """
import readline, sys
from ptxvm.libcuda.embedded import started
started()
readline.set_completer(lambda text, state: [f"{text}d", None][state])
readline.parse_and_bind("tab: complete")
print(sys.stdout.isatty(), input("> ") == "word")
sys.stdout.flush()
"""


def test_the_terminal_of_a_program_edits_lines():
    """Python is a guest in the process of a C program, whose standard output it uses: there too a tabulator completes."""
    main, terminal = pty.openpty()
    os.write(main, b"wor\t\n")
    subprocess.run([sys.executable, "-c", GUEST], stdin=terminal, stdout=terminal, check=True, timeout=60)
    assert os.read(main, 4096).decode().split()[-2:] == ["True", "True"]
    os.close(terminal)
    os.close(main)
    done = subprocess.run([sys.executable, "-c", GUEST], input="word\n", capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "> False True\n"

"""`ptxvm debug` in pipes: what it prints follows from the kernel."""

from __future__ import annotations

import io
import itertools
import os
import pty
import re
import subprocess
import sys

import pytest
from ring_kernel import KERNEL, LINES

from ptxvm.debug.dap.framing import Decoder, encode

LAUNCH = ["--grid", "1", "--block", "64", "u32[64]", "64"]
STORE = LINES["st.global.u32 [%rd3], %r6;"]


@pytest.fixture
def ring(module):
    return module(KERNEL, "ring.ptx")


def carried_out(*commands):
    """The options for some commands."""
    return [word for each in commands for word in ("-ex", each)] + ["--batch"]


def test_commands_are_echoed_with_what_they_say(ptxvm, ring):
    done = ptxvm("debug", ring, *LAUNCH, *carried_out(f"b {STORE} if %r1 == 33", "r", "p/d %r6", "p ring[33]@3", "delete", "c"))
    assert (done.code, done.err) == (0, "")
    name = re.escape(str(ring))
    assert re.fullmatch(
        rf"""\(ptxvm\) b {STORE} if %r1 == 33
Breakpoint 1 at {name}:{STORE}
\(ptxvm\) r
Breakpoint 1, turn<<<\(1,1,1\),\(64,1,1\)>>>
\[Focus: kernel 0, block \(0,0,0\), thread \(33,0,0\), warp 1, lane 1\]
{name}:{STORE} +st.global.u32 \[%rd3\], %r6;  \(ring.cu:17\)
\(ptxvm\) p/d %r6
%r6 = 134
\(ptxvm\) p ring\[33\]@3
ring\[33\] = {{33, 34, 35}}
\(ptxvm\) delete
\(ptxvm\) c
\[turn<<<\(1,1,1\),\(64,1,1\)>>> has ended after \d+ instructions\]
""",
        done.out,
    ), done.out


def test_lines_fit_a_terminal(ptxvm, ring, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    looks = ("info b", "info cuda lanes %r* %tid.x", "info cuda threads", "info cuda", "list", "info time", "p %tid.x")
    done = ptxvm("debug", ring, *LAUNCH, *carried_out(f"b {STORE} if %r1 == 33 && %tid.x != 4 && %ctaid.x < 99", "r", *looks))
    lines = [line for line in done.out.splitlines() if not line.startswith("(ptxvm)")]
    assert max(map(len, lines)) <= 80
    assert [line.split() for line in lines if line.startswith("   Ln")][1][0] == "Ln"  # a second part of the table
    assert lines[-1] == "%tid.x = 33"


def test_a_failed_command_fails_a_batch(ptxvm, ring):
    done = ptxvm("debug", ring, *LAUNCH, *carried_out("frobnicate"))
    assert (done.code, done.out) == (2, "(ptxvm) frobnicate\nthere is no command 'frobnicate'; `help` lists the commands\n")


def test_a_fault_is_reported_as_by_run(ptxvm, module):
    faulty = module(KERNEL.replace("[%rd3], %r6", "[%rd2], %r6"), "faulty.ptx")
    done = ptxvm("debug", faulty, *LAUNCH, *carried_out("run", "info cuda threads"))
    assert done.code == 1
    assert "null-pointer: writing 4 bytes" in done.out
    assert f"faulty.ptx:{STORE} " in done.out


STATICS = """
    .version 8.0
    .target sm_80
    .address_size 64
    .const .u32 fixed[2] = {40, 41};
    .global .u32 changing = 1;
    .visible .entry sum(.param .u64 out) {
        .reg .b32 %r<4>; .reg .b64 %d;
        ld.param.u64 %d, [out];
        ld.const.u32 %r1, [fixed+4];
        ld.global.u32 %r2, [changing];
        add.u32 %r3, %r1, %r2;
        st.global.u32 [%d], %r3;
        ret;
    }
    """


def test_variables_of_the_module_are_there_as_long_as_the_session(ptxvm, module):
    commands = carried_out("b opcode st.global*", "r", "p fixed", "p changing", "si", "p out[0]", "c")
    done = ptxvm("debug", module(STATICS), "--grid", "1", "--block", "1", "u32[1]", *commands)
    assert (done.code, done.err) == (0, "")
    said = [line for line in done.out.splitlines() if " = " in line]
    assert said == ["fixed = {40, 41}", "changing = 1", "out[0] = 42"]


def test_commands_come_from_the_standard_input_and_from_files(ptxvm, ring, tmp_path, monkeypatch):
    script = tmp_path / "commands"
    script.write_text("# a comment\nstart\n")
    monkeypatch.setattr("sys.stdin", io.StringIO("p %tid.x\nq\np 1\n"))
    done = ptxvm("debug", ring, *LAUNCH, "-x", str(script))
    assert done.out.endswith("(ptxvm) p %tid.x\n%tid.x = 0\n(ptxvm) q\n")


@pytest.mark.parametrize("word", ["--grid", "--block"])
def test_a_launch_that_cannot_be_is_refused_as_by_run(ptxvm, ring, word):
    done = ptxvm("debug", ring, *LAUNCH, word, "0", "--batch")
    assert (done.code, done.out) == (2, "")
    assert f"{word} takes X" in done.err


@pytest.mark.parametrize("program", [["app.py"], ["-m", "app"], ["--exec", "./app"]])
@pytest.mark.parametrize("option", [["--grid", "4"], ["--seed", "5"]])
def test_a_program_takes_no_options_of_a_launch(ptxvm, program, option):
    done = ptxvm("debug", *program, *option, "--batch")
    assert (done.code, done.out) == (2, "")
    assert f"a program launches its kernels itself, and {option[0]} says nothing of them" in done.err


def test_it_speaks_the_protocol_on_the_standard_streams(tmp_path):
    """What the kernel prints does not come between the messages."""
    (tmp_path / "ring.ptx").write_text(KERNEL)
    launch = {"program": "ring.ptx", "cwd": str(tmp_path), "grid": 1, "block": [64], "args": ["u32[64]", 64]}
    requests = [("initialize", {"adapterID": "ptxvm"}), ("launch", launch), ("configurationDone", {}), ("disconnect", {})]
    sent = [
        encode({"seq": n, "type": "request", "command": name, "arguments": arguments})
        for n, (name, arguments) in enumerate(requests, 1)
    ]
    command = [sys.executable, "-m", "ptxvm", "debug", "--dap"]
    done = subprocess.run(command, input=b"".join(sent), capture_output=True, check=True, timeout=60)
    messages = Decoder().feed(done.stdout)
    assert [each["success"] for each in messages if each["type"] == "response"] == [True] * len(requests)
    assert {"initialized"} <= {each["event"] for each in messages if each["type"] == "event"}


ENDLESS = """.version 8.0
.target sm_80
.address_size 64
.visible .entry endless() {
    .reg .b32 %r;
    mov.u32 %r, 0;
LOOP:
    add.u32 %r, %r, 1;
    bra LOOP;
}
"""


def test_requests_are_answered_while_a_kernel_runs(tmp_path):
    """`pause` has its response before the event (DAP: Pause Request); breakpoints may be set at any time."""
    (tmp_path / "endless.ptx").write_text(ENDLESS)
    command = [sys.executable, "-m", "ptxvm", "debug", "--dap"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as adapter:
        decoder, numbers, got = Decoder(), itertools.count(1), []

        def send(name, **arguments):
            adapter.stdin.write(encode({"seq": next(numbers), "type": "request", "command": name, "arguments": arguments}))
            adapter.stdin.flush()

        def receive(*wanted):
            """The names of the responses and events up to those that are wanted."""
            while not set(wanted) <= set(got):
                got.extend(each.get("command") or each["event"] for each in decoder.feed(adapter.stdout.read1()))
            found, got[:] = [each for each in got if each in wanted], []
            return found

        send("initialize", adapterID="ptxvm")
        send("launch", program="endless.ptx", cwd=str(tmp_path), block=32)
        send("configurationDone")
        receive("configurationDone")
        send("pause", threadId=1)
        assert receive("pause", "stopped") == ["pause", "stopped"]
        send("continue", threadId=1)
        receive("continue")
        send("threads")
        assert receive("threads") == ["threads"]
        send("setBreakpoints", source={"path": str(tmp_path / "endless.ptx")}, breakpoints=[{"line": 8}])
        assert receive("setBreakpoints", "stopped") == ["setBreakpoints", "stopped"]
        send("disconnect")
        receive("disconnect")


def test_it_wants_a_file_or_the_protocol(ptxvm):
    done = ptxvm("debug")
    assert (done.code, done.out) == (2, "")
    assert "FILE" in done.err


SCRIPT = """
import sys
import numpy as np
import ptxvm

kernel = ptxvm.load("ring.ptx").kernel()
for n in range(2):
    out = np.zeros(64, np.uint32)
    kernel.launch(1, 64, [out, 64])
    print("sum", out.sum(), *sys.argv[1:])
"""


def test_each_launch_of_a_script_is_debugged(ptxvm, ring, tmp_path):
    """The numbers 0 to 63 are doubled, or 100 is added: 2 * (1 + 3 + ... + 63) + (2 + 4 + ... + 62) + 32 * 100."""
    total = 2 * sum(range(1, 64, 2)) + sum(range(2, 64, 2)) + 3200
    (tmp_path / "app.py").write_text(SCRIPT)
    done = ptxvm("debug", "app.py", "word", "-ex", "break hundred", "-ex", "continue", "-ex", "print %in", "--batch")
    assert (done.code, done.err) == (0, "")
    assert done.out.count("turn<<<(1,1,1),(64,1,1)>>> begins.") == 2
    assert done.out.count("%in = 2\n") == 2
    assert done.out.count(f"sum {total} word\n") == 2


def test_commands_of_a_file_are_carried_out_in_each_launch_of_a_script(ptxvm, ring, tmp_path):
    (tmp_path / "app.py").write_text(SCRIPT)
    (tmp_path / "commands").write_text("break hundred\ncontinue\n")
    done = ptxvm("debug", "app.py", "-x", str(tmp_path / "commands"), "-ex", "print %in", "--batch")
    assert (done.code, done.err) == (0, "")
    assert done.out.count("%in = 2\n") == 2


def test_a_step_at_the_end_of_a_kernel_says_how_to_go_on(ptxvm, ring):
    done = ptxvm("debug", ring, *LAUNCH, *carried_out("run", "step"))
    assert done.out.endswith("the thread in focus has ended, as the kernel has: go back a step, and its values are there\n")


def test_launches_run_to_breakpoints_that_last_where_they_are_no_reason_to_stop(ptxvm, ring, tmp_path, monkeypatch):
    (tmp_path / "app.py").write_text(SCRIPT)
    words = ("-ex", "set cuda break_on_launch none", "-ex", "break hundred")
    monkeypatch.setattr(sys, "stdin", io.StringIO("continue\n" * 2 + "print %in\ncontinue\n"))
    done = ptxvm("debug", "app.py", *words)
    assert (done.code, done.err) == (0, "")
    assert done.out.count("turn<<<(1,1,1),(64,1,1)>>> begins.") == 1
    assert done.out.count("Breakpoint 1, turn<<<") == 2
    assert done.out.count("%in = 2\n") == 1


ONE_AFTER_ANOTHER = """
import numpy as np
import ptxvm

for name in ("first", "second"):
    head = ".version 8.0\\n.target sm_80\\n.address_size 64\\n"
    ptxvm.load(f"{head}.visible .entry {name}() {{\\nret;\\n}}").kernel().launch(1, 1, [])
"""


def test_a_breakpoint_in_a_later_kernel_waits_for_its_launch(ptxvm, tmp_path, monkeypatch):
    (tmp_path / "app.py").write_text(ONE_AFTER_ANOTHER)
    commands = [
        "set cuda break_on_launch none",
        "break second",
        "break *9",
        "until second",
        "continue",
        "info breakpoints",
        "continue",
    ]
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{each}\n" for each in commands)))
    done = ptxvm("debug", str(tmp_path / "app.py"))
    assert (done.code, done.err) == (0, "")
    refused = "there is no function or label 'second'; see info functions"
    assert (
        f"{refused}; the breakpoint waits for a launch that has it\nBreakpoint 1 at second, which no launch has had yet\n"
        in done.out
    )
    assert done.out.count(refused) == 2  # `until` is about this launch
    assert "'first' has the instructions *0 to *0\n" in done.out
    assert "Breakpoint 1, second<<<(1,1,1),(1,1,1)>>>\n" in done.out
    assert "1    breakpoint  keep  y    second at <second>:5, hit 1 time\n" in done.out


def test_a_kernel_alone_has_no_launch_to_wait_for(ptxvm, ring):
    done = ptxvm("debug", ring, *LAUNCH, *carried_out("break nothing", "info breakpoints"))
    assert "there is no function or label 'nothing'" in done.out + done.err
    assert "waits for a launch" not in done.out


def test_a_fault_goes_on_to_the_script(ptxvm, module, tmp_path):
    module(KERNEL.replace("[%rd3], %r6", "[%rd2], %r6"), "ring.ptx")
    (tmp_path / "app.py").write_text(SCRIPT.replace("    kernel.launch(1, 64, [out, 64])", """
    try:
        kernel.launch(1, 64, [out, 64])
    except ptxvm.Fault as fault:
        print("caught", fault.kind)"""))  # fmt: skip
    done = ptxvm("debug", "app.py", "--batch")
    assert done.out.count("caught null-pointer\n") == 2


def test_what_a_program_lets_pass_is_its_own_error(ptxvm, tmp_path):
    (tmp_path / "app.py").write_text("import no_such_module\n")
    done = ptxvm("debug", "app.py", "--batch")
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines()[1:] == [
        '  File "app.py", line 1, in <module>', "    import no_such_module",
        "ModuleNotFoundError: No module named 'no_such_module'",
    ]  # fmt: skip


def test_a_program_that_has_other_streams_is_debugged_at_those_of_the_user(ring, tmp_path):
    """As pytest has them in each test: the input is closed, and the output goes to a file."""
    redirected = "import os\nfor n, flag in enumerate((os.O_RDONLY, os.O_WRONLY)):\n    os.dup2(os.open(os.devnull, flag), n)\n"
    (tmp_path / "app.py").write_text(redirected + SCRIPT)
    command = [sys.executable, "-m", "ptxvm", "debug", "app.py"]
    typed = "print %tid.x\ncontinue\n" * 2
    done = subprocess.run(command, input=typed, capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("(ptxvm) print %tid.x\n%tid.x = 0\n") == 2


def test_quit_ends_pytest_with_all_of_its_tests(ring, tmp_path):
    """Pytest catches SystemExit, and would go on to the next test."""
    (tmp_path / "test_ring.py").write_text("import numpy as np\nimport ptxvm\n" + "".join(f"""
def test_{n}():
    ptxvm.load("ring.ptx").kernel().launch(1, 64, [np.zeros(64, np.uint32), 64])
""" for n in range(3)))  # fmt: skip
    words = ["debug", "-m", "pytest", "--", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", ".", "test_ring.py"]
    command = [sys.executable, "-m", "ptxvm", *words]
    done = subprocess.run(command, input="quit\n", capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path)
    assert done.stdout.count("turn<<<(1,1,1),(64,1,1)>>> begins.") == 1
    assert "Traceback" not in done.stdout + done.stderr
    assert done.returncode == 2  # pytest was interrupted


def test_the_end_of_the_input_at_a_terminal_leaves_the_debugger(ring, tmp_path):
    """As Ctrl-D does in other debuggers; the script launches twice."""
    (tmp_path / "app.py").write_text(SCRIPT)
    master, terminal = pty.openpty()
    os.write(master, b"\x04")
    command = [sys.executable, "-m", "ptxvm", "debug", "app.py"]
    environment = os.environ | {"XDG_STATE_HOME": str(tmp_path)}
    done = subprocess.run(
        command, stdin=terminal, stdout=subprocess.PIPE, text=True, check=True, timeout=60, cwd=tmp_path, env=environment
    )
    os.close(terminal)
    os.close(master)
    assert done.stdout.count("begins.") == 1


def test_a_program_that_is_not_there_is_refused(ptxvm):
    for words in (["no.py"], ["-m", "no_such_module"]):
        done = ptxvm("debug", *words, "--batch")
        assert (done.code, done.out) == (2, "")
        assert "cannot run" in done.err

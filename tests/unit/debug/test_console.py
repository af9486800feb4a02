"""The console: whatever is typed, whenever, it answers; and it says what it should."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from ring_kernel import KERNEL, LINES

from ptxvm.debug.commands.command import COMMANDS
from ptxvm.debug.console import Console

WORDS = (
    "", "0", "-1", "1", "99999999999999999999", "x", "%r1", "%tid.x", "ring", "ring[3]", "ring[-1]", "turn_param_0",
    "ODD", "1 = 2", "%r1 = 1.5", "ring = 3", "%p = 1", "opcode [", "opcode *", "ring.cu:12", "*5", "*turn+3",
    "*turn+99", "(1,2,3)", "(0,", "block 0 thread 1", "warp", "if", "1 if", "1 if %r1 +", "nan", "race", "%r1 @ 4",
    "/x", "/99999999999xg ring", "/t %r1", "/c %r1", "/fb ring", "1 << 70", "1 % 0", "~1.5", ".shared.f32[",
    ".shared.pred[0]", ".nowhere.u32[0]", "&ring + 1", "*%rd1", "((((((((((1))))))))))", "(" * 5000, "- " * 5000 + "1",
    "%r1 == 1 ? 2 : 3", "'", "§", "%%", "0x", "1e999", "0f3F800000",
)  # fmt: skip


@pytest.fixture
def console(turn) -> Console:
    """A console whose commands end: the kernel is short."""
    return Console(turn)


@pytest.mark.parametrize("state", ["before", "begun", "within", "ended"])
def test_no_command_crashes(console, rng, state):
    """Commands with arguments by chance, before the kernel is started, at its beginning, within a function, and at its end."""
    ways = {"before": [], "begun": ["start"], "within": ["break hundred", "run"], "ended": ["run"]}
    for _ in range(60):
        name, word = list(COMMANDS.all)[rng.integers(len(COMMANDS.all))], WORDS[rng.integers(len(WORDS))]
        console.session.delete()
        for line in (*ways[state], f"{name} {word}"):
            assert all(isinstance(each.text, str) for each in console.execute(line)), line


def said(console, *commands) -> list[str]:
    """What the last of some commands says."""
    for each in commands:
        found = [line.text for line in console.execute(each)]
    return found


def test_commands_may_be_shortened_where_they_mean_one(console):
    assert said(console, "b hundred", "r")[0].startswith("Breakpoint 1, turn<<<")
    assert said(console, "reverse-s")[0].startswith("'reverse-s' is the beginning of reverse-step")
    assert said(console, "p/x %in") == ["%in = 0x00000002"]
    assert said(console, "bt") == [
        f"#0  hundred at <turn>:{LINES['add.u32 %out, %in, 100;']} (ring.cu:30)",
        f"#1  turn at <turn>:{LINES['call (%r6), hundred, (%r6);']} (ring.cu:16)",
    ]
    assert said(console, "up", "p %tid.x") == ["%tid.x = 1"]


def test_each_command_has_help(console):
    listed = said(console, "help")
    for command in COMMANDS.all.values():
        assert command.help.endswith("."), command.name
        assert any(line.split()[: len(command.name.split())] == command.name.split() for line in listed)
        assert max(map(len, listed)) <= 80
        assert said(console, f"help {command.name}")[0].startswith(command.name)


def test_an_empty_line_repeats_the_last_command(console):
    said(console, "start", "stepi")
    assert said(console, "") != said(console, "")
    assert console.session.time == 3


def test_lines_are_completed(console):
    assert console.complete("info cuda b") == ["info cuda blocks", "info cuda barriers"]
    assert console.complete("print rin") == ["print ring"]
    assert console.complete("print ring[%ti") == ["print ring[%tid.x", "print ring[%tid.y", "print ring[%tid.z"]
    assert console.complete("break 5 if %lanei") == ["break 5 if %laneid"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        # As C computes: 32 bits unless an operand has more; a comparison is 0 or 1; precedence (C17 6.5).
        ("1 + 2 * 3", "7"), ("(1 + 2) * 3", "9"), ("-7 / 2", "-3"), ("-7 % 3", "-1"), ("7 & 3 | 8", "11"), ("1 << 4 >> 2", "4"),
        ("2147483647 + 1", "-2147483648"), ("4294967295 + 1", "4294967296"), ("0xffffffffU + 1", "0"), ("-1 < 0U", "0"),
        ("1.5 * 2", "3.0"), ("!0 && 3", "1"), ("~0", "-1"), ("1 == 1.0", "1"), ("0f3F800000 + 1", "2.0"), ("- - 3", "3"),
        # Shifts and divisions that C leaves open are the machine's (PTX 9.7.8.7 to 9.7.8.9, 9.7.1.8).
        ("1 << 32", "0"), ("-1 >> 40", "-1"), ("5 / 0", "-1"),
        ("%tid.x == 0 && %ntid.x == 64", "1"), ("%laneid + WARP", None),
    ],
)  # fmt: skip
def test_expressions_are_those_of_c(console, text, shown):
    found = said(console, "start", f"print {text}")
    assert found == ([f"{text} = {shown}"] if shown is not None else found)
    assert console.failed == (shown is None)


def test_the_address_of_a_variable_is_in_its_state_space(console):
    at_barrier = ("break ODD", "run")
    assert said(console, *at_barrier, "x/4xw &ring") == said(console, "x/4xw ring")
    assert said(console, "x/2xw &ring[1]")[0].startswith("0x4:\t")
    for beyond in ("&ring + 4", "ring + 1", "4 + &ring"):
        assert said(console, f"x/2xw {beyond}") == said(console, "x/2xw &ring[1]")
    assert said(console, "print &ring[1]") == ["&ring[1] = 0x0000000000000004"]


def test_a_table_of_lanes_says_why_an_expression_has_no_value(console):
    assert said(console, "start", "info cuda lanes %r1 no_such") == [
        "there is no 'no_such' here; see info locals, info registers and info variables"
    ]


def test_a_thread_is_named_as_cuda_gdb_names_it(console):
    said(console, "start")
    focus = "[Focus: kernel 0, block (0,0,0), thread (40,0,0), warp 1, lane 8]"
    for named in ("kernel 0 block 0 thread 40", "grid 1, block (0,0,0), thread (40,0,0)", "device 0 sm 0 warp 1 lane 8"):
        assert said(console, "thread 0", f"cuda {named}")[0] == focus, named
    assert said(console, "cuda grid warp lane") == ["grid 1, warp 1, lane 8"]
    assert said(console, "cuda kernel 7 block 0") == ["kernel 7 does not run: there is kernel 0"]
    assert said(console, "cuda block 0 thread") == ["the number of the thread is missing"]


def test_a_step_that_leaves_another_thread_in_focus_names_it(console):
    assert said(console, "start", "issue warp 1")[0].endswith("warp 1, lane 0]")
    assert len(said(console, "stepwarp")) == 1  # the same thread: nothing is said of it


PARTED = Path(__file__).parents[3] / "docs/parted.ptx"


@pytest.mark.parametrize("step", ["stepwarp", "stepi", "step"])
def test_a_step_that_ends_its_warp_stops_at_the_breakpoint_of_the_next(debugged, step):
    console = Console(debugged(PARTED.read_text(), 1, 64, [np.zeros(64, np.uint32)]))
    assert said(console, "break TRIPLE", "run", f"{step} 4")[-1].endswith("ret;")
    assert said(console, step)[:2] == [
        "Breakpoint 1, parted<<<(1,1,1),(64,1,1)>>>",
        "[Focus: kernel 0, block (0,0,0), thread (33,0,0), warp 1, lane 1]",
    ]
    assert "mul.wide.u32" in said(console, step)[-1]  # the breakpoint has stopped it once


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("x/3i %r1", "there is no format /i: there are /x /d /u /o /t /c /f"), ("print/xz %r1", "there is no format /xz: "),
        ("print %ctaid", "'%ctaid' is a vector: name an element, such as %ctaid.x"),
        ("print 0x1ffffffffffffffff", "'0x1ffffffffffffffff' has more than 64 bits"),
        ("stepi 0", "the count is 1 or more, not 0"), ("continue -1", "the count is 1 or more, not -1"),
        ("up", "there is no frame 1: `backtrace` lists 0 to 0"), ("break ODD if", "the condition behind `if` is missing"),
        ("info cuda", "there is no command 'info cuda'; there are info cuda devices, info cuda kernels, "),
        ("info cuda wraps", "there is no command 'info cuda wraps'; there are info cuda devices, "),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_command_is_said(console, command, answer):
    (found,) = said(console, "start", command)
    assert found.startswith(answer)
    assert console.failed


def test_until_stops_there_or_before_and_leaves_no_breakpoint(console):
    barrier, focus, there = LINES["bar.sync 0;"], "[Focus: ", f"<turn>:{LINES['bar.sync 0;']}"
    first, second = said(console, "start", f"until {barrier}")[-2:]
    assert first.startswith(focus)
    assert second.startswith(there)
    assert said(console, "info breakpoints") == ["there are no breakpoints"]
    stopped = said(console, "start", "break *turn+1", f"until {barrier}")
    assert any(each.startswith("Breakpoint 2, ") for each in stopped)
    assert len(said(console, "info breakpoints")) == 2


def test_a_breakpoint_may_be_named_as_its_help_says(console):
    assert "*function+12" in " ".join(said(console, "help break"))
    assert said(console, "break *turn+7") == [f"Breakpoint 1 at <turn>:{LINES['bar.sync 0;']}"]
    assert said(console, "tbreak *hundred") == [f"Temporary breakpoint 2 at <turn>:{LINES['add.u32 %out, %in, 100;']}"]
    said(console, "delete 2")
    assert said(console, f"tbreak {LINES['bar.sync 0;']}", "run", "continue 3")[-1].endswith("instructions]")


def test_a_function_is_named_as_in_cpp(debugged, out):
    """Itanium C++ ABI 5.1; a name is that of all functions that C++ calls so."""
    text = KERNEL.replace("hundred(.reg", "_ZN4math7hundredEj(.reg").replace(", hundred,", ", _ZN4math7hundredEj,")
    text = text.replace(".visible .entry", ".func _ZL7hundredIfEvv()\n{\n    ret;\n}\n\n.visible .entry")
    console = Console(debugged(text, 1, 64, [out, 64]))
    assert said(console, "break hundred")[0].startswith("Breakpoint 1 at 2 instructions")
    (found,) = said(console, "break math::hundred")
    assert found.startswith("Breakpoint 2 at <turn>:")
    assert said(console, "break *hundred+1") == ["'hundred' is several functions: _ZN4math7hundredEj, _ZL7hundredIfEvv"]
    assert said(console, "break undred")[0].startswith("there is no function or label 'undred'")
    assert said(console, "run")[0].startswith("Breakpoint 1, 2, turn")


def test_registers_are_shown_by_a_pattern(console):
    """As `info cuda lanes %rd*` shows them."""
    shown = [line.split()[0] for line in said(console, "start", "info registers %rd* %p")[1:]]
    assert shown == ["%rd1", "%rd2", "%rd3", "%p"]
    assert said(console, "info registers %f*") == ["the function has no register %f*"]


def test_a_variable_in_the_brackets_of_an_address_is_its_address(console):
    """As `[ring+8]` in PTX; elsewhere an array is a pointer to its first element (C17 6.3.2.1)."""
    at_barrier = (f"break {LINES['bar.sync 0;']}", "run", "stepi")
    assert said(console, *at_barrier, "print .shared.u32[ring + 8]") == [".shared.u32[ring + 8] = 2"]
    assert said(console, "print .shared.u32[4 + ring]") == [".shared.u32[4 + ring] = 1"]
    assert said(console, "print .shared.u32[ring[2] * 4 + 8]") == [".shared.u32[ring[2] * 4 + 8] = 4"]
    assert said(console, "print *(ring + 5)") == ["*(ring + 5) = 5"]
    assert said(console, "watch .shared.u32[ring + 12]") == ["Watchpoint 2: .shared.u32[ring + 12]"]


def test_help_of_a_first_word_lists_its_commands(console):
    assert [line.split()[:3] for line in said(console, "help info cuda")][:2] == [
        ["info", "cuda", "devices"],
        ["info", "cuda", "kernels"],
    ]
    assert said(console, "help cuda")[0].startswith("cuda [kernel K]")
    assert said(console, "help set")[0] == "set PLACE = EXPRESSION"


def test_time_is_told(console):
    assert said(console, "start", "info time")[0].startswith("0 instructions issued; the run is known to 0; 1 checkpoint, ")

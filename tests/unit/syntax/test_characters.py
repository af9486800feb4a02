"""Characters with a use of their own: what ptxas 13.5 takes and where its parser stops."""

import pytest

from ptxvm.syntax.parser import parse

HEAD = ".version 9.0\n.target sm_75\n"


def said(text):
    return [found.ptxas for found in parse(HEAD + text)[1] if found.severity == "error"]


def near(text):
    return [f"Parsing error near '{text}': syntax error"]


@pytest.mark.parametrize("code", [r"\ ret;", r"\ret;", r"@%p \ ret;", r"L: \ ret;", "\\\nret;"])
def test_a_backslash_stands_before_an_opcode(code):
    assert said(f".entry k() {{ .reg .pred %p; {code} }}") == []


def test_it_changes_nothing():
    with_one, without = (parse(HEAD + f".entry k() {{ {code} }}")[0] for code in (r"\ ret;", "ret;"))
    assert with_one == without


@pytest.mark.parametrize(
    ("code", "stop"),
    [
        (r"\ \ ret;", "\\"),
        (r"\ ;", ";"),
        (r"\ }", "}"),
        (r"\ { ret; }", "{"),
        (r"\ L: ret;", ":"),
        (r"\ @%p ret;", "@"),
        (r"\ .reg .b32 a;", ".reg"),
        (r"ret \;", "\\"),
        ("` ret;", "`"),
        ("ret; `", "`"),
        ("' ret;", "'"),
        ("? ret;", "?"),
    ],
)
def test_others_stop_the_parser(code, stop):
    assert said(f".entry k() {{ .reg .pred %p; {code} }}")[:1] == near(stop)


@pytest.mark.parametrize("text", [r"\ .entry k() { ret; }", r".entry k() { ret; } \ "])
def test_a_backslash_has_no_place_in_a_module(text):
    assert said(text)[:1] == near("\\")


def test_control_z_is_a_blank():
    assert said("\x1a.entry\x1ak()\x1a{ ret\x1a; }\x1a") == []
    assert said(".global .u32 a\x1ab;") == near("b")


@pytest.mark.parametrize("line", ['# 1 "a"', '#1 "a"', '# line 3 "a"', '  # 1 "a" 2 3', '#\t1\t"a"'])
def test_lines_of_the_preprocessor_are_skipped(line):
    assert said(f"{line}\n.entry k() {{ ret; }}") == []
    assert said(f".entry k() {{\n{line}\nret; }}") == []


@pytest.mark.parametrize("line", ['# 1"a"', '# 1 "a" garbage {', "# 1", "#define x", '# 1 "a" .visible'])
def test_other_lines_are_not(line):
    assert said(f"{line}\n.entry k() {{ ret; }}")[:1] == near("#")

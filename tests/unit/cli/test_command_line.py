"""Commands of a program of their own: what words mean for the parameters of a function.  Expectations follow POSIX's habits."""

from __future__ import annotations

from typing import Annotated

import pytest

from ptxvm.cli.command_line import Argument, Commands, Misused, Option

Files = Annotated[list[str], Argument("FILE")]
Word = Annotated[str | None, Argument("WORD")]
Count = Annotated[int, Option(metavar="N", least=1, help="How many.")]
Seconds = Annotated[float | None, Option("--for", metavar="S", help="How long.")]
Names = Annotated[list[str] | None, Option("--name", metavar="NAME", help="One of them.")]
Loud = Annotated[bool, Option(help="With noise.")]

program = Commands("prog", "Does things.", {"--version": "Show the version."})
called: list[dict[str, object]] = []


@program.command()
def many(files: Files, *, count: Count = 3, seconds: Seconds = None, names: Names = None, loud: Loud = False) -> int:
    """Do many.

    \b
    many  lines
      stay
    """  # noqa: D301
    called.append({"files": files, "count": count, "seconds": seconds, "names": names, "loud": loud})
    return 7


@program.command("one", passes_unknown=True)
def single(word: Word = None, loud: Loud = False) -> int:
    """Do one."""
    called.append({"word": word, "loud": loud})
    return 0


@program.command(passes_unknown=True, ends_at_argument=True)
def start(words: Annotated[list[str], Argument("WORD")], loud: Loud = False) -> int:
    """Start one."""
    called.append({"words": words, "loud": loud})
    return 0


USUAL = {"count": 3, "seconds": None, "names": None, "loud": False}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("many a b", USUAL | {"files": ["a", "b"]}),
        ("many a --count 5 b", USUAL | {"files": ["a", "b"], "count": 5}),
        ("many --count=5 --loud -- --count", USUAL | {"files": ["--count"], "count": 5, "loud": True}),
        ("many - --for .5", USUAL | {"files": ["-"], "seconds": 0.5}),
        ("many a --name x --name y=z", USUAL | {"files": ["a"], "names": ["x", "y=z"]}),
        ("many a --name=", USUAL | {"files": ["a"], "names": [""]}),
        ("many a --count 1 --count 2", USUAL | {"files": ["a"], "count": 2}),
        ("one", {"word": None, "loud": False}),
        ("one -3", {"word": "-3", "loud": False}),
        ("one --quiet --loud", {"word": "--quiet", "loud": True}),
        ("start --loud a --loud -x -- b", {"words": ["a", "--loud", "-x", "--", "b"], "loud": True}),
        ("start -- --loud", {"words": ["--loud"], "loud": False}),
    ],
)
def test_what_words_mean(words, expected):
    called.clear()
    assert program.run(words.split()) == (7 if words.startswith("many") else 0)
    assert called == [expected]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("many", "missing argument 'FILE'; see 'prog many --help'"),
        ("many a --count", "option '--count' requires an argument; see 'prog many --help'"),
        ("many a --count x", "invalid value for '--count': 'x' is not an integer; see 'prog many --help'"),
        ("many a --count 0", "invalid value for '--count': 0 is not at least 1; see 'prog many --help'"),
        ("many a --for x", "invalid value for '--for': 'x' is not a number; see 'prog many --help'"),
        ("many a --loud=1", "option '--loud' does not take a value; see 'prog many --help'"),
        ("many a --laud", "no such option: --laud (Possible options: --loud); see 'prog many --help'"),
        ("many a -l", "no such option: -l; see 'prog many --help'"),
        ("one a b c", "got unexpected extra arguments (b c); see 'prog one --help'"),
        ("man", "no such command 'man'. Did you mean 'many'?; see 'prog --help'"),
        ("x", "no such command 'x'; see 'prog --help'"),
        ("--verison", "no such option: --verison (Possible options: --version); see 'prog --help'"),
        ("-v", "no such option: -v; see 'prog --help'"),
    ],
)
def test_what_is_misused(words, said):
    with pytest.raises(Misused) as wrong:
        program.run(words.split())
    assert str(wrong.value) == said
    assert wrong.value.command == said.rpartition("see '")[2].removesuffix(" --help'")


def test_flags_of_the_program_come_before_a_command():
    assert program.run(["--version", "many"]) == "--version"


@pytest.mark.parametrize("words", [["-h"], ["--help", "many"], []])
def test_the_help_of_the_program(capsys, words):
    assert program.run(words) == 0
    assert capsys.readouterr().out == (
        "Usage: prog [OPTIONS] COMMAND [ARGS]...\n\n  Does things.\n\n"
        "Options:\n  --version   Show the version.\n  -h, --help  Show this message and exit.\n\n"
        "Commands:\n  many   Do many.\n  one    Do one.\n  start  Start one.\n"
    )


def test_the_help_of_a_command(capsys):
    assert program.run(["many", "--help", "--count", "2"]) == 0
    assert capsys.readouterr().out == (
        "Usage: prog many [OPTIONS] FILE...\n\n  Do many.\n\n  many  lines\n    stay\n\n"
        "Options:\n  --count N    How many.  [default: 3; x>=1]\n  --for S      How long.\n  --name NAME  One of them.\n"
        "  --loud       With noise.\n  -h, --help   Show this message and exit.\n"
    )


def test_long_terms_and_texts_have_lines_of_their_own(monkeypatch):
    from ptxvm.cli.help import page

    monkeypatch.setenv("COLUMNS", "60")
    shown = page("x", "word " * 20, {"Options": [("--long " + "L" * 30, "said " * 15), ("-s", "")]})
    assert max(map(len, shown.splitlines())) <= 58
    assert f"  --long {'L' * 30}\n{' ' * 34}said said said" in shown
    assert shown.endswith("\n  -s\n")

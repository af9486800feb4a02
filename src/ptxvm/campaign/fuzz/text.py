"""Mutated modules: the reader never raises and never hangs, and what it understood is printed and read back.

A text has some of its tokens deleted, doubled, swapped, replaced or joined with those of another text, opcodes with other
modifiers, or what no author writes: numbers of thousands of digits, thousands of brackets, half of a token where the text
ends, marks of Unicode.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from itertools import pairwise, zip_longest
from random import Random

from ptxvm.analysis.check import analyse, check_tree
from ptxvm.analysis.incremental import IncrementalChecker
from ptxvm.campaign.fuzz.constants import another
from ptxvm.diagnostics import FORMATS, Diagnostic, render
from ptxvm.syntax import parse, print_module
from ptxvm.syntax.lexer import END, Tokens
from ptxvm.syntax.source import Source
from ptxvm.syntax.tree import Module

PUNCTUATION = "; , { } [ ] ( ) @ ! | : < > = + - * / % ? . # & ~ ^ \" ' ` _ $ \\ /* */ // \n \r \t \0 é"
WORDS = """5 0x 0f3F80000 08 1.0e "s" .reg .b32 .global .entry .func .visible .align .v2 .loc .pragma .section .version
    @@DWARF %r1 %tid.x WARP_SZ ld.global.u32 call"""
PIECES = PUNCTUATION.split(" ") + WORDS.split()
NUMBERS = f"""{"9" * 30} {"9" * 400} {"1" * 5000} 0x1{"f" * 20} 0b{"1" * 70} {1 << 64} 077777 -010 5U 1. 1e999 0f123
    0d{"F" * 17} 0f7F800001""".split()
"""Numbers that are too large, too long, broken off, or written in a rare way."""
NESTED = [("(", ")"), ("{", "}"), ("[", "]"), ("((.u64) ", ")"), ("-", ""), ("~", "")]
DEPTHS = (2,) * 8 + (30,) * 4 + (400, 2000)
"""How often a bracket is doubled: many times seldom, which takes as long as ten other cases."""
MARKS = "\u202e\ufeff\x85\u2028\x0b\xa0\u00b2\u0661\u212a\U0001d54f"
"""Ends of lines, blanks, digits and letters of Unicode, which are none of PTX."""
WEIGHTS = (7, 2, 1, 1)  # of usual changes, of unusual ones, and of those of modifiers and of numbers
MISPLACED = "P0105"  # a directive in a wrong place is understood nevertheless
CHANGES = (1, 1, 1, 2, 2, 3, 4, 6)
LONGEST = 30_000  # characters of a text
IN_ANOTHER_WAY = 8  # one text of so many is read in another way, too


def mutated(text: str, other: str, random: Random) -> str:
    """The text with one to six changes of its tokens; `other` is what some come from.

    Few changes are more likely than many: what is nearly right is understood further than what has no syntax.
    """
    pieces: Sequence[str] = tokens(text)
    foreign = tokens(other)
    for _ in range(random.choice(CHANGES)):
        if pieces:
            (change,) = random.choices([changed, unusual, crossed, renumbered], WEIGHTS)
            pieces = change(pieces, foreign, random)
    return "".join(pieces)[:LONGEST]


def changed(pieces: Sequence[str], foreign: Sequence[str], random: Random) -> list[str]:
    """The tokens with one change; `foreign` are those of another text."""
    at, there = random.randrange(len(pieces)), random.randrange(len(foreign) + 1)
    before, piece, behind = [*pieces[:at]], pieces[at], [*pieces[at:]]
    match random.randrange(14):
        case 0:
            return before + behind[random.randint(1, 4) :]
        case 1:
            return before + behind[: random.randint(1, 20)] + behind
        case 2:
            return [*before, random.choice(pieces), *behind[1:]]
        case 3:
            return [*before, f"{random.choice(PIECES)} ", *behind[1:]]
        case 4:
            return [*before, random.choice(PIECES), *behind]
        case 5:
            return before if random.random() < 0.2 else behind
        case 6:
            return [*before, *foreign[there : there + random.randint(1, 40)], *behind]
        case 7 | 8:
            end = statement_end(pieces, at)
            return [*pieces[:end], *foreign[statement_end(foreign, there) : statement_end(foreign, there + 20)], *pieces[end:]]
        case 9:
            start = statement_end(pieces, at)
            return [*pieces[:start], *pieces[statement_end(pieces, start) :]]
    alike = [each for each in random.choice([pieces, foreign]) if each[:1] == piece[:1]]
    return [*before, random.choice(alike or [""]), *behind[1:]]


def crossed(pieces: Sequence[str], foreign: Sequence[str], random: Random) -> list[str]:
    """The tokens with one modifier of an opcode less, more, of another opcode, or in another place."""
    opcodes = [n for n, each in enumerate(pieces) if each[:1].isalpha() and "." in each]
    others = [word for each in (*pieces, *foreign) if each[:1].isalpha() for word in each.rstrip().split(".")[1:]]
    if not opcodes:
        return [*pieces]
    at = random.choice(opcodes)
    words = pieces[at].rstrip().split(".")
    place, there = (random.randrange(1, len(words)) for _ in range(2))
    match random.randrange(4):
        case 0:
            del words[place]
        case 1:
            words[place] = random.choice(others)
        case 2:
            words.insert(place, random.choice(others))
        case _:
            words[place], words[there] = words[there], words[place]
    return [*pieces[:at], f"{'.'.join(words)} ", *pieces[at + 1 :]]


def unusual(pieces: Sequence[str], _: Sequence[str], random: Random) -> list[str]:
    """The tokens with one change to what no author writes."""
    at = random.randrange(len(pieces))
    before, piece, behind = [*pieces[:at]], pieces[at], [*pieces[at + 1 :]]
    match random.randrange(4):
        case 0:
            return [*before, piece[: random.randint(0, len(piece))]]
        case 1:
            (opens, closes), depth = random.choice(NESTED), random.choice(DEPTHS)
            return [*before, opens * depth, piece, closes * random.randint(depth - 1, depth), *behind]
        case 2:
            return [*before, random.choice(MARKS), piece, *behind]
    number = next((n for n in range(at, len(pieces)) if pieces[n][:1].isdigit()), at)
    return [*pieces[:number], f"{random.choice(NUMBERS)} ", *pieces[number + 1 :]]


def renumbered(pieces: Sequence[str], _: Sequence[str], random: Random) -> list[str]:
    """The tokens with another number, or one in place of a register where there is none."""
    names = [n for n, each in enumerate(pieces) if each.startswith("%")]
    places = [n for n, each in enumerate(pieces) if each[:1].isdigit()] or names
    return replaced(pieces, random.choice(places), another, random) if places else [*pieces]


def renamed(pieces: Sequence[str], foreign: Sequence[str], random: Random) -> list[str]:
    """The tokens with another register, of any type."""
    names = [each.rstrip() for each in (*pieces, *foreign) if each.startswith("%")]
    places = [n for n, each in enumerate(pieces) if each.startswith("%")]
    return replaced(pieces, random.choice(places), lambda _, random: random.choice(names), random) if places else [*pieces]


def replaced(pieces: Sequence[str], at: int, new: Callable[[str, Random], str], random: Random) -> list[str]:
    """The tokens with another one in a place, and the same blanks behind it."""
    word = pieces[at].rstrip()
    return [*pieces[:at], new(word, random) + pieces[at][len(word) :], *pieces[at + 1 :]]


def statement_end(pieces: Sequence[str], at: int) -> int:
    """The first place behind the next `;`, or the end."""
    return next((n + 1 for n in range(at, len(pieces)) if pieces[n].startswith(";")), len(pieces))


@lru_cache(maxsize=1024)
def tokens(text: str) -> tuple[str, ...]:
    """The tokens, each with the blanks behind it; those of a corpus are asked for again and again."""
    found = Tokens(Source(text))
    starts = found.starts[: found.texts.index(END) + 1]
    return tuple(text[start:end] for start, end in pairwise(starts))


Way = Callable[[Source, Module, Sequence[Diagnostic]], None]
"""Something else that is done with a text that was read, its tree and its diagnostics."""


def survive(text: str | bytes, ways: Sequence[Way] | None = None) -> Sequence[Diagnostic]:
    """Read and check a text; AssertionError where something is wrong with the reader.  Gives what it found.

    Without `ways` it is read in all of `WAYS`, each of which takes as long as reading or longer.
    """
    source = Source(text, "fuzz.ptx")
    module, found = parse(source)
    assert_placed(source, found)
    report = check_tree(source, module, list(found))
    assert_placed(source, report.diagnostics)
    for way in WAYS if ways is None else ways:
        way(source, module, report.diagnostics)
    return report.diagnostics


def ways_of(number: int) -> Sequence[Way]:
    """How the text of a case is read besides: in one way of `WAYS`, or, of most, in none."""
    turn, rest = divmod(number, IN_ANOTHER_WAY)
    return () if rest else (WAYS[turn % len(WAYS)],)


def assert_read_back(_: Source, module: Module, __: Sequence[Diagnostic]) -> None:
    """AssertionError where what is printed of a module is read back as another one."""
    again, errors = parse(print_module(module))
    if not {each.code for each in errors} <= {MISPLACED}:
        raise AssertionError(f"what was printed is not read back: {errors[0].message}")
    if again != module:
        raise AssertionError("what was printed is read back as another module")


def assert_read_in_parts(source: Source, _: Module, whole: Sequence[Diagnostic]) -> None:
    """AssertionError where a module of which parts are read on demand has other diagnostics."""
    assert_as("read in parts", analyse(source)[1].diagnostics, whole)


def assert_edited(source: Source, _: Module, whole: Sequence[Diagnostic]) -> None:
    """AssertionError where an editor, which remembers the bodies that it saw in other texts, shows other diagnostics."""
    assert_as("checked after others", editor().check(source), whole)


def assert_rendered(source: Source, _: Module, whole: Sequence[Diagnostic]) -> None:
    """Renders the diagnostics in one of the formats."""
    render([(source, whole)], FORMATS[len(source.text) % len(FORMATS)])


WAYS: Sequence[Way] = (assert_read_back, assert_read_in_parts, assert_edited, assert_rendered)
LEARNING: Sequence[Way] = (assert_read_in_parts, assert_edited)
"""Those in which the reader uses what it has learned of other statements."""


@cache
def editor() -> IncrementalChecker:
    """What has checked texts of this process before."""
    return IncrementalChecker()


def assert_as(how: str, found: Sequence[Diagnostic], whole: Sequence[Diagnostic]) -> None:
    """AssertionError where the diagnostics of a text differ from those of the whole text."""
    other, known = [each.message for each in found], [each.message for each in whole]
    if other != known:
        differing = next(pair for pair in zip_longest(other, known) if pair[0] != pair[1])
        raise AssertionError(f"what is {how} has other diagnostics: {differing[0]!r} for {differing[1]!r}")


def assert_placed(source: Source, found: Sequence[Diagnostic]) -> None:
    """AssertionError where a diagnostic lies outside of the text, or says nothing."""
    for each in found:
        if not 0 <= each.span.start <= each.span.end <= len(source.text):
            raise AssertionError(f"the span of {each.code} lies outside of the text: {each.span}")
        if each.line < 1 or each.column < 1 or not each.message:
            raise AssertionError(f"{each.code} has no place or no message")


__all__ = ["PIECES", "mutated", "survive", "ways_of"]

"""Statements that resemble right ones: what the reader has learned from those must not let these pass.

A module has a kernel of statements that are right, and then kernels of one statement each: one of the first with another
number, register or modifier.  Beside other errors it would be read in full, and nothing that was learned would be asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from random import Random

from ptxvm.analysis.check import check_tree
from ptxvm.campaign.fuzz.seeds import LETTERS, any_statement, statement
from ptxvm.campaign.fuzz.statements import DECLARED, GENERATION, STATEMENTS, ends, setting
from ptxvm.campaign.fuzz.text import crossed, renamed, renumbered, tokens
from ptxvm.campaign.random_kernels.variants import instructions, variants_of
from ptxvm.syntax import parse
from ptxvm.syntax.source import Source

TRIED = 320  # statements of any form, and as many with another number; those that are right begin the modules of a generation
VALID = 64  # instructions that are right on some target
HEAD = ".version {version}\n.target {target}\n.global .align 8 .b8 a[64];\n"
KERNEL = ".entry k{number}(.param .u64 p, .param .align 8 .b8 s[16])\n{{\n{registers}\n{statements}\n}}\n"


def module(number: int, seed: int) -> str:
    """The module of a number."""
    random = Random(f"echoes {seed} {number}")  # noqa: S311 - no secret
    known = right(seed, number // GENERATION)
    first = random.sample(known, min(len(known), STATEMENTS))
    return written(["\n".join(first), *(echo(first, random) for _ in range(STATEMENTS))], seed, number // GENERATION)


def written(bodies: Sequence[str], seed: int, generation: int) -> str:
    """A module with a kernel for each body."""
    version, target = setting(seed, generation)
    kernels = (KERNEL.format(number=n, registers=DECLARED, statements=each) for n, each in enumerate(bodies))
    return HEAD.format(version=version, target=target) + "".join(kernels)


@lru_cache(maxsize=2)
def right(seed: int, generation: int) -> list[str]:
    """Statements without an error, for the version and target of a generation."""
    random = Random(f"right {seed} {generation}")  # noqa: S311 - no secret
    known = instructions(LETTERS, carry=True)
    made = [any_statement(random).strip() for _ in range(TRIED)]
    made += [statement(random.choice(variants_of(random.choice(known), LETTERS)), random).strip() for _ in range(VALID)]
    made += [echo([each], random, [renumbered]) for each in made if any(map(is_number, tokens(each)))]
    source = Source(written(made, seed, generation), "right.ptx")
    tree, found = parse(source)
    wrong = {each.line for each in check_tree(source, tree, list(found)).diagnostics}
    begin, lines = HEAD.count("\n") + 1, KERNEL.count("\n") + DECLARED.count("\n")
    return [each for n, each in enumerate(made) if wrong.isdisjoint(range(begin + n * lines, begin + (n + 1) * lines))]


# ── what resembles a statement ──────────────────────────────────────────────────────────

Change = Callable[[Sequence[str], Sequence[str], Random], list[str]]
CHANGES: Sequence[Change] = (renumbered, renumbered, renamed, crossed)


def echo(statements: Sequence[str], random: Random, changes: Sequence[Change] = CHANGES) -> str:
    """A statement that differs from one of some in a token."""
    change = random.choice(changes)
    while True:
        pieces, foreign = tokens(random.choice(statements)), tokens(random.choice(statements))
        made = "".join(change(pieces, foreign, random)).strip()
        if ends(made) and "\n" not in made:
            return made


def is_number(piece: str) -> bool:
    """Is a token a number?"""
    return piece[:1].isdigit()


__all__ = ["module"]

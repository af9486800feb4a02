"""Mutated statements: a module has a kernel of 64, each of which is a case.

A body is read statement by statement, and an error in one ends there.  So 64 statements of one kernel are tried in a fifth of
the time that 64 modules take.  A statement in which the reader finds no end would take the next ones with it: a module has one
at most, as its last.
"""

from __future__ import annotations

import re
from functools import lru_cache
from random import Random

from ptxvm.campaign.fuzz.seeds import DIRECTIVES, LETTERS, REGISTERS, WHOLE, any_statement, statement
from ptxvm.campaign.fuzz.text import mutated
from ptxvm.campaign.random_kernels.variants import HELD, instructions, variants_of
from ptxvm.isa.targets import LOWEST, VERSIONS, Target, Version

STATEMENTS = 64  # of a module
GENERATION = 1024  # modules, for one version and target, whose statements are made of the same
SEEDS = 256  # those statements
LONGEST = 2_000  # characters of a statement
LATEST = 0.5  # share of the generations that are for the newest version and a target with all instructions
VALID = 0.5  # share of the seeds that are valid instructions
MODULE = """\
.version {version}
.target {target}
.global .align 8 .b8 a[64];
.extern .func (.param .b32 r) f(.param .b32 q);
.visible .entry k(.param .u64 p, .param .align 8 .b8 s[16])
{{
{registers}
    .shared .align 16 .b8 shared[64];
    proto: .callprototype (.param .b32 _) _ (.param .b32 _);
L:
{statements}
}}
"""
DECLARED = "\n".join(f"    .reg .{held} %{letter}<{REGISTERS}>;" for letter, held in HELD.items())


def module(number: int, seed: int) -> str:
    """The module of a number: its statements are mutated ones of those that the modules of a generation begin with."""
    random = Random(f"statements {seed} {number}")  # noqa: S311 - no secret
    known = seed_statements(seed, number // GENERATION)
    closed, last = list[str](), ""
    while len(closed) + bool(last) < STATEMENTS:
        made = mutated(random.choice(known), random.choice(known), random)[:LONGEST]
        if ends(made):
            closed.append(f"    {made}")
        else:
            last = last or f"    {made}"
    version, target = setting(seed, number // GENERATION)
    return MODULE.format(version=version, target=target, registers=DECLARED, statements="\n".join([*closed, last]))


def ends(text: str) -> bool:
    """Does a statement end where its text does?"""
    opened = 0
    for brace in re.findall(r"[{}]", text):
        opened += 1 if brace == "{" else -1
        if opened < 0:
            return False
    return not opened and text.rstrip().endswith((";", "}")) and "/*" not in text and "\0" not in text


def setting(seed: int, generation: int) -> tuple[str, Target]:
    """The version and target of the modules of a generation."""
    random = Random(f"setting {seed} {generation}")  # noqa: S311 - no secret
    if random.random() < LATEST:
        return written(VERSIONS[-1]), Target(100, "a")
    target, lowest = random.choice([*LOWEST.items()])
    return written(random.choice([each for each in VERSIONS if each >= lowest])), target


def written(version: Version) -> str:
    """A version as `.version` has it."""
    return "{}.{}".format(*version)


@lru_cache(maxsize=2)
def seed_statements(seed: int, generation: int) -> list[str]:
    """The statements that some modules begin with: of any form, valid ones, and those of the texts that have all kinds."""
    random = Random(f"statements {seed} {generation}")  # noqa: S311 - no secret
    known = instructions(LETTERS, carry=True)
    made = [
        statement(random.choice(variants_of(random.choice(known), LETTERS)), random)
        if random.random() < VALID
        else any_statement(random)
        for _ in range(SEEDS)
    ]
    written = (line.strip() for text in (WHOLE, DIRECTIVES) for line in text.splitlines() if line.startswith("    "))
    return [each.strip() for each in made] + [each for each in written if ends(each)]

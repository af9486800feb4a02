"""Operands of every sort against a real ptxas, where one is on the PATH: `make verdicts` asks thousands at random.

A case is an instruction that ptxas 13.5 takes, in which one operand has registers of another type of the same size, or is
a constant, or in which a special register stands for one of its registers.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from ptxas import disagreement, errors, script

VERSION = "9.0"  # the last one that ptxas 13.0 knows
TARGETS = ["sm_90a", "sm_100a", "sm_103a", "sm_120a"]
SORTS = {
    16: {"xb16": "b16", "xu16": "u16", "xs16": "s16", "xf16": "f16"},
    32: {"xb32": "b32", "xu32": "u32", "xs32": "s32", "xf32": "f32", "xf16x2": "f16x2"},
    64: {"xb64": "b64", "xu64": "u64", "xs64": "s64", "xf64": "f64"},
}
SIZES = {"h": 16, "r": 32, "f": 32, "ur": 32, "sr": 32, "d": 64, "fd": 64, "ud": 64}
"""The bits of a register of the table, by the letters of its name."""
SPECIAL = {16: ["%laneid"], 32: ["%laneid", "%ctaid.y", "%tid", "%clock64"], 64: ["%clock64", "%gridid", "%laneid"]}
"""Special registers that stand for a register of some bits; `%tid` is a vector."""
DECLARATIONS = " ".join(f".reg .{type} %{name}<300>;" for sorts in SORTS.values() for name, type in sorts.items())
REGISTER = re.compile(r"%([a-z]+)(\d+)\b")
VERDICT = re.compile("error   :|fatal   : (?!.*32-Bit ABI)")
"""What ptxas prints where it refuses an instruction: not where it dies, nor where it compiles for 64 bits only."""
IN_PASSING = 40
RANDOM = 3000
FLOOR = 0.99


@pytest.fixture(scope="module")
def table(shared):
    if shutil.which("ptxas") is None:
        pytest.skip("no ptxas on the PATH")
    path = shared / "isa" / "variants.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"the instructions are missing: {path}")
    return script(shared).Table(path)


def taken(table: Any, target: str) -> dict[str, list[dict[str, Any]]]:
    """The rows that ptxas takes at a target, by opcode."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in table.rows:
        if table.accepted(row, VERSION, target) and not row["text"].startswith("@"):
            found.setdefault(row["opcode"], []).append(row)
    return found


def operands(text: str) -> list[str]:
    """The operands of an instruction, brackets and braces whole."""
    return re.findall(r"(?:\[[^]]*\]|\{[^}]*\}|[^,\[{])+", text)


def others(text: str) -> Iterator[str]:
    """The instruction with one operand of another sort."""
    head, _, rest = text.rstrip("; ").partition(" ")
    parts = operands(rest)
    for n, part in enumerate(parts):
        names = {found[1] for found in REGISTER.finditer(part)}
        if len(names) != 1 or not names <= SIZES.keys():
            continue
        for sort in SORTS[SIZES[names.pop()]]:
            changed = REGISTER.sub(rf"%{sort}\2", part)
            yield f"{head} {','.join([*parts[:n], changed, *parts[n + 1 :]])};"
        yield f"{head} {','.join([*parts[:n], REGISTER.sub('1', part), *parts[n + 1 :]])};"
        for found in REGISTER.finditer(part):
            for special in SPECIAL[SIZES[found[1]]]:
                changed = part[: found.start()] + special + part[found.end() :]
                yield f"{head} {','.join([*parts[:n], changed, *parts[n + 1 :]])};"


def cases(table: Any, target: str, random: np.random.Generator, count: int) -> Iterator[tuple[str, str, str]]:
    """So many instructions, of opcodes that are drawn alike: the module as it was, the changed one, and its instruction."""
    rows = taken(table, target)
    opcodes = sorted(rows)
    while count:
        chosen = rows[opcodes[random.integers(len(opcodes))]]
        row = chosen[random.integers(len(chosen))]
        if texts := list(others(row["text"])):
            text = texts[random.integers(len(texts))]
            changed = table.module({**row, "text": f"{DECLARATIONS} {text}"}, VERSION, target)
            yield table.module(row, VERSION, target), changed, text
            count -= 1


def verdict(source: str, target: str, folder: Any) -> bool | None:
    """Does ptxas take it?  None where it does not say."""
    path = folder / "case.ptx"
    path.write_text(source)
    command = ["ptxas", "-O0", f"-arch={target}", str(path), "-o", str(folder / "case.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return True
    return False if VERDICT.search(done.stdout + done.stderr) else None


def compare(table: Any, target: str, random: np.random.Generator, count: int, folder: Any) -> list[str]:
    """The cases where ptxas and ptxvm disagree, of instructions that this version of ptxas takes, too."""
    wrong = []
    for original, source, text in cases(table, target, random, count):
        ptxas, found = verdict(source, target, folder), errors(source)
        if ptxas is not None and ptxas == bool(found) and verdict(original, target, folder):
            wrong.append(f"{text}  ptxas {'takes' if ptxas else 'refuses'} it, ptxvm: {[each.message for each in found]}")
    return wrong


@pytest.mark.parametrize("target", TARGETS)
def test_the_same_cases_each_time(table, target, tmp_path):
    wrong = compare(table, target, np.random.default_rng(0), IN_PASSING, tmp_path)
    assert not wrong, disagreement(wrong, IN_PASSING)


@pytest.mark.long
@pytest.mark.parametrize("target", TARGETS)
def test_cases_at_random(table, target, rng, tmp_path):
    wrong = compare(table, target, rng, RANDOM, tmp_path)
    assert len(wrong) <= (1 - FLOOR) * RANDOM, disagreement(wrong, RANDOM)

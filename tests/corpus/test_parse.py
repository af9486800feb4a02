"""Real modules: nvcc, Triton, Numba, clang, NVRTC, CuPy and tinygrad printed them; and every text that ptxas was asked.

The default run takes a sample of the modules; `pytest -m long` takes all.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from collections.abc import Iterable

import pytest

from ptxvm.diagnostics import Severity
from ptxvm.syntax import Source, parse, print_module, tree

SAMPLE = 18
"""The default run reads one module in so many back."""


def instructions(statements: Iterable[tree.Statement]) -> int:
    """How many instructions there are."""
    count = 0
    for statement in statements:
        if isinstance(statement, tree.Instruction):
            count += 1
        elif isinstance(statement, tree.Block):
            count += instructions(statement.statements)
        elif isinstance(statement, tree.Function) and statement.body is not None:
            count += instructions(statement.body.statements)
    return count


def check(source: Source, entry: dict) -> None:
    """The module has no errors, the instructions that the index counts, and survives printing."""
    module, found = parse(source)
    assert found == [], source.name
    assert instructions(module.statements) == entry["instructions"], source.name
    assert parse(print_module(module)) == (module, []), source.name


def test_a_sample(corpus):
    for source, entry in corpus[::SAMPLE]:
        check(source, entry)


@pytest.mark.long
def test_all(corpus):
    for source, entry in corpus:
        check(source, entry)


@pytest.mark.long
def test_speed(corpus):
    """50,000 instructions a second on a developer's machine; less here, for machines that are busy."""
    source, entry = max(corpus, key=lambda pair: pair[1]["instructions"])
    best = 0.0
    for _ in range(3):
        start = time.process_time()
        parse(source)
        best = max(best, entry["instructions"] / (time.process_time() - start))
    assert best > 20_000


# ── what ptxas reads and what it does not (../shared/isa) ───────────────────────────────


def refused(text: str) -> bool:
    return any(found.severity is Severity.ERROR for found in parse(text)[1])


@pytest.fixture(scope="session")
def variants(shared):
    """The text of a module for every variant of an instruction, and its row."""
    folder = shared / "isa"
    if not (folder / "variants.jsonl.gz").is_file():
        pytest.skip(f"the verdicts of ptxas are missing: no {folder / 'variants.jsonl.gz'}")
    sys.path.insert(0, str(folder))
    import score

    table = score.Table(folder / "variants.jsonl.gz")
    return [(table.module(row, "9.5", "sm_100a"), row) for row in table.rows]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("part", range(3))
def test_nothing_is_refused_that_the_parser_of_ptxas_takes(variants, part):
    wrong = [row["text"] for text, row in variants[part::3] if row.get("error_class") != "syntax" and refused(text)]
    assert wrong == []


def test_what_the_parser_of_ptxas_refuses(variants):
    """The rest needs to know instructions: `ld.reg`, `shf.left`, a symbol where one opcode wants a register."""
    syntax = [(text, row) for text, row in variants if row.get("error_class") == "syntax"]
    rows = [(text, row) for text, row in syntax if any("Parsing error" in said for said in row["errors"] or [row["error"]])]
    missed = [row["text"] for text, row in rows if not refused(text)]
    assert len(missed) <= 0.06 * len(rows), missed


def test_module_level_cases(shared):
    """All of them: of 2,773 none is read otherwise than by ptxas."""
    path = shared / "isa" / "directives.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"the verdicts of ptxas are missing: no {path}")
    wrong = []
    with gzip.open(path, "rt") as file:
        for row in map(json.loads, file):
            target = row["arch"].replace("compute", "sm")
            head = "" if row["own_header"] else f".version 9.5\n.target {target}\n.address_size 64\n"
            parsing_error = any("Parsing error" in error["msg"] for error in row["errors"])
            if (row["accepted_parse"] or parsing_error) and refused(head + row["text"]) != parsing_error:
                wrong.append(row["text"])
    assert wrong == []

"""The `.test` files of NVlabs/mixedproxy: one program, or a template with a row for each test below `$$`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from ptxvm.algebra.asynchronous import Proxy
from ptxvm.model.conditions import NotALitmusTest, condition
from ptxvm.model.litmus_program import Alias
from ptxvm.model.litmus_syntax import thread
from ptxvm.model.litmus_test import Test

VARIABLE = re.compile(r"\.(global|shared|texref|surfref|constref)\s+(\w+)(?:\s+(?:physic|virtu)ally\s+aliases\s+(\w+))?\s*;")
THREAD = re.compile(r"d(\d+)\.b(\d+)\.t(\d+)\s*\{(.*?)\}", re.DOTALL)
QUESTION = re.compile(r"\b(permit|assert)\s*\((.*?)\)\s*as\s+(\w+)\s*;", re.DOTALL)
EXPECTED = re.compile(r"(.*\s(\S+),\s*\[.*\])\s*==\s*(\d+)")
PROXIES = {"texref": Proxy.TEXTURE, "surfref": Proxy.SURFACE, "constref": Proxy.CONSTANT}


def read_template(text: str, name: str) -> list[Test]:
    """Read all tests of a file; the tests of a template are named `name#row`."""
    template, _, table = re.sub(r"//[^\n]*", "", text).partition("$$")
    rows = [[cell.strip() for cell in line.split("|")] for line in table.splitlines() if line.strip()]
    if not rows:
        return list(_tests(template, name))
    return [test for n, row in enumerate(rows) for test in _tests(_filled(template, row), f"{name}#{n}")]


def _filled(template: str, row: list[str]) -> str:
    try:
        return re.sub(r"\$(\d+)", lambda match: row[int(match[1])], template)
    except IndexError as wrong:
        raise NotALitmusTest(f"the row `{' | '.join(row)}` has too few cells") from wrong


def _tests(text: str, name: str) -> Iterator[Test]:
    """One test for each question."""
    variables, aliases = {}, {}
    for kind, variable, of in VARIABLE.findall(text):
        if of:
            aliases[variable] = Alias(PROXIES.get(kind, Proxy.GENERIC), of)
        else:
            variables[variable] = 0
    threads, filters, registers = [], [], {}
    for number, (device, block, _, body) in enumerate(THREAD.findall(text)):
        lines = []
        for line in filter(None, (" ".join(part.split()) for part in body.split(";"))):
            if match := EXPECTED.fullmatch(line):
                filters.append(f"P{number}:{match[2]} == {match[3]}")
            lines.append(_in_order(match[1] if match else line))
            registers.update(dict.fromkeys(re.findall(r"\br\d+\b", line), number))
        threads.append(thread(f"P{number}", (int(device), int(block), int(block)), lines))

    def placed(match: re.Match[str]) -> str:
        return f"P{registers.get(match[0], 0)}:{match[0]}"

    for kind, asked, _ in QUESTION.findall(text):
        quantifier: Literal["exists", "forall"] = "exists" if kind == "permit" else "forall"
        question = condition(re.sub(r"\br\d+\b", placed, asked))
        only = condition(" /\\ ".join(filters)) if filters else None
        yield Test(name, tuple(threads), variables, aliases, quantifier, question, only)


def _in_order(line: str) -> str:
    """Add `.weak` to an `ld` or `st` without an order; otherwise a bare `ld r, 1` would be read as a move."""
    return re.sub(r"^(\w+) ", r"\1.weak ", line) if re.match(r"(t|su)?ld |(su)?st |ldc ", line) else line

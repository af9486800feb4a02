"""The syntax of `.litmus` files, as Dat3M has it: a header, initial values, a column of code for each thread, a question."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal

from ptxvm.algebra.asynchronous import Proxy
from ptxvm.model.conditions import NotALitmusTest, condition
from ptxvm.model.litmus_instructions import instruction
from ptxvm.model.litmus_program import Alias, Branch, LitmusInstruction, Thread
from ptxvm.model.litmus_test import Test
from ptxvm.model.names import register_names, variables_of

THREAD = re.compile(r"P(\d+)\s*@\s*cta\s+(\d+)\s*(?:,\s*cluster\s+(\d+)\s*)?,\s*gpu\s+(\d+)")
QUESTION = re.compile(r"^\s*(filter|exists|~\s*exists|not\s+exists|forall|locations)\b", re.MULTILINE)
QUANTIFIER = r"(~\s*exists|not\s+exists|exists|forall)\b"
ALIAS = re.compile(r"(\w+)\s*@\s*(\w+)\s+aliases\s+(\w+)")
TYPED = re.compile(r"\.?[bus](\d+)\s+(.*)", re.DOTALL)

Quantifier = Literal["exists", "not_exists", "forall"]


def read_litmus(text: str) -> Test:
    """Read a test."""
    text = re.sub(r"\(\*.*?\*\)", "", text, flags=re.DOTALL)
    opening = re.search(r"^\s*\{", text, re.MULTILINE)  # the comment above may have braces, but no line that starts so
    question = QUESTION.search(text)
    if not (opening and question):
        raise NotALitmusTest("a litmus test has a name, `{` initial values `}`, threads, and a question such as `exists`")
    first = text[: opening.start()].strip().split("\n")[0].split(None, 1)
    start, _, body = text[opening.end() : question.start()].partition("}")
    memory, registers, sizes, aliases = initial_values(start)
    quantifier, asked, filtered = read_question(text[question.start() :])
    test = Test(
        name=first[1].strip() if first[1:] else "",
        threads=tuple(read_threads(body, registers)),
        variables=memory,
        aliases=aliases,
        quantifier=quantifier,
        condition=condition(asked),
        filter=condition(filtered) if filtered else None,
        sizes=sizes,
    )
    return asks_for_what_is_there(test)


def initial_values(
    text: str,
) -> tuple[dict[str, int], dict[str, dict[str, int]], dict[str, int], dict[str, Alias]]:
    """Read `x = 0; b32 y = 1; P0:r0 = 0; s @ surface aliases x;`: memory, registers by thread, sizes and aliases."""
    memory: dict[str, int] = {}
    registers: dict[str, dict[str, int]] = {}
    sizes: dict[str, int] = {}
    aliases: dict[str, Alias] = {}
    for line in filter(None, (part.strip() for part in text.split(";"))):
        if match := ALIAS.fullmatch(line):
            aliases[match[1]] = Alias(Proxy(match[2]), match[3])
            continue
        bits, declared = (int(match[1]), match[2]) if (match := TYPED.fullmatch(line)) else (0, line)
        name, _, value = (part.strip() for part in declared.partition("="))
        number = first_value(line, value, memory)
        thread, _, register = name.partition(":")
        if register:
            registers.setdefault(thread, {})[register] = number
            continue
        memory[name] = number
        if bits:
            sizes[name] = bits // 8
    return memory, registers, sizes, aliases


def first_value(line: str, value: str, memory: Mapping[str, int]) -> int:
    """A number, or the value of an earlier variable; 0 by default."""
    if re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)", value):
        return int(value, 0)
    if value and value.lstrip("&") not in memory:
        raise NotALitmusTest(f"`{line}` has no number as the first value")
    return memory.get(value.lstrip("&"), 0)


def asks_for_what_is_there(test: Test) -> Test:
    """Return the test if it has all registers and variables that its question names."""
    registers = {f"{thread.name}:{name}" for thread in test.threads for name in thread.registers}
    registers.update(name for thread in test.threads for name in register_names(thread))
    variables = [*test.variables, *test.aliases, *variables_of(test)]
    for name in sorted(test.condition.names | (test.filter.names if test.filter else set())):
        if name not in registers and name not in variables:
            there = ", ".join([*dict.fromkeys(variables), *sorted(registers)])
            raise NotALitmusTest(f"the question asks for `{name}`; there is {there}")
    return test


def read_threads(text: str, registers: Mapping[str, Mapping[str, int]]) -> Iterable[Thread]:
    """Read the table of the program: a column for each thread."""
    head, *rows = [row.strip("\n").split("|") for row in text.split(";") if row.strip()]
    for column, title in enumerate(head):
        match = THREAD.fullmatch(title.strip())
        if not match:
            raise NotALitmusTest(f"`{title.strip()}` does not place a thread; write `P0@cta 0,gpu 0`")
        name, cta, cluster, gpu = f"P{match[1]}", int(match[2]), match[3], int(match[4])
        cells = [row[column].strip() for row in rows if column < len(row)]
        position = (gpu, cta if cluster is None else int(cluster), cta)
        yield thread(name, position, filter(None, cells), registers.get(name, {}))


def thread(
    name: str, position: tuple[int, int, int], lines: Iterable[str], registers: Mapping[str, int] | None = None
) -> Thread:
    """A thread, from the text of its instructions and labels."""
    code: list[LitmusInstruction] = []
    labels: dict[str, int] = {}
    for line in lines:
        for item in instruction(line):
            if isinstance(item, str):
                labels[item] = len(code)
            else:
                code.append(item)
    for branch in code:
        if isinstance(branch, Branch) and branch.label not in labels:
            raise NotALitmusTest(f"`{branch.text}` goes to a label that {name} does not have")
    return Thread(name, position, tuple(code), labels, dict(registers or {}))


def read_question(text: str) -> tuple[Quantifier, str, str]:
    """Read the quantifier, its condition, and the condition of a `filter` before it."""
    text = re.sub(r"^\s*locations\s*\[.*?\]\s*", "", text, flags=re.DOTALL)
    before, *rest = re.split(QUANTIFIER, text, maxsplit=1)
    if not rest:
        raise NotALitmusTest("the question has no `exists`, `~exists` or `forall`")
    filtered = before.replace("filter", "", 1).strip().rstrip(";")
    kinds: dict[str, Quantifier] = {"e": "exists", "~": "not_exists", "n": "not_exists", "f": "forall"}
    return kinds[rest[0][0]], rest[1].strip().rstrip(";").strip(), filtered

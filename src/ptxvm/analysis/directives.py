"""What directives and declarations must hold to (PTX 5.4, 11)."""

from __future__ import annotations

import re

from ptxvm.analysis.program import Function, Program
from ptxvm.analysis.report import Report
from ptxvm.isa.targets import parse_target, parse_version
from ptxvm.syntax import tree

TARGET_OPTIONS = {"texmode_unified", "texmode_independent", "debug", "map_f64_to_f32"}


def header(program: Program, report: Report) -> None:
    """`.version`, `.target`, `.address_size` (PTX 11.1)."""
    seen: dict[str, tree.Directive] = {}
    for statement in program.tree.statements:
        if isinstance(statement, tree.Directive) and statement.name in ("version", "target", "address_size"):
            seen.setdefault(statement.name, statement)
    if "version" not in seen:
        report.error("P0501", "the module does not start with .version", help="the first line is `.version 6.4` or so")
    else:
        _version(program, seen["version"], report)
    if "target" not in seen:
        report.error("P0502", "the module has no .target", help="the second line is `.target sm_75` or so")
    else:
        _target(program, seen["target"], report)
    if size := seen.get("address_size"):
        value = size.arguments[0] if size.arguments else None
        program.address_size = value.value if isinstance(value, tree.Integer) else 0
        if program.address_size not in (32, 64):
            report.error("P0503", "the address size is 32 or 64", size)


def _version(program: Program, node: tree.Directive, report: Report) -> None:
    text = node.arguments[0].text if node.arguments and isinstance(node.arguments[0], tree.Float | tree.Integer) else ""
    if not re.fullmatch(r"\d+\.\d+", text):
        report.error("P0501", "a version is written as `6.4`", node)
        return
    program.version = parse_version(text)


def _target(program: Program, node: tree.Directive, report: Report) -> None:
    words = [a.text for a in node.arguments if isinstance(a, tree.Name)]
    targets = []
    for word, place in zip(words, node.arguments, strict=False):
        if word in TARGET_OPTIONS:
            continue
        try:
            targets.append(parse_target(word))
        except ValueError as wrong:
            report.error("P0502", str(wrong), place)
    program.target_options = tuple(w for w in words if w in TARGET_OPTIONS)
    if targets:
        program.target = max(targets)


def alias(program: Program, node: tree.Directive, report: Report) -> None:
    """`.alias a, b;` (PTX 5.4.8): `a` becomes another name of the function `b`."""
    names = [a.text for a in node.arguments if isinstance(a, tree.Name)]
    if len(names) != 2:  # noqa: PLR2004
        report.error("P0504", ".alias takes two names of functions", node)
        return
    name, target = names
    program.aliases[name] = target
    seen, at = {name}, target
    while at in program.aliases:
        if at in seen:
            report.error("P0505", f"the alias '{name}' leads back to itself", node)
            del program.aliases[name]
            return
        seen.add(at)
        at = program.aliases[at]


def file(program: Program, node: tree.Directive) -> None:
    """`.file 1 "a.cu"`."""
    if len(node.arguments) > 1:
        number, name = node.arguments[:2]
        if isinstance(number, tree.Integer) and isinstance(name, tree.String):
            program.files[number.value] = name.text


def module_level(program: Program, node: tree.Statement, report: Report) -> None:
    """Any other statement of the module."""


def module_variable(program: Program, node: tree.Variable, report: Report) -> None:
    """A variable of the module."""


def function(program: Program, function: Function, known: Function | None, report: Report) -> None:
    """A function against an earlier declaration of it."""
    if known is not None and known.defined and function.node.body is not None:
        report.error("P0202", f"'{function.name}' is defined twice", function.node)


def function_variable(program: Program, function: Function, node: tree.Variable, report: Report) -> None:
    """A variable of a function."""


def in_body(program: Program, function: Function, node: tree.Statement, report: Report) -> None:
    """A directive within a body."""


def finish(program: Program, report: Report) -> None:
    """What only the whole module shows."""

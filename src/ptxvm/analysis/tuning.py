"""Performance and cluster directives, and pragmas (PTX 11.4, 11.7, 11.8, 12)."""

from __future__ import annotations

from collections.abc import Sequence

from ptxvm.analysis import codes
from ptxvm.analysis.checks import Checks
from ptxvm.isa.directives import DEMANDED, EXCLUSIVE, LAST_LANGUAGE, MOST, OF_MODULES, POSITIVE, PRAGMAS, USELESS_ALONE
from ptxvm.syntax import tree

OVERFLOW = 1 << 32


def tuning(checks: Checks, directives: Sequence[tree.Directive]) -> None:
    """The directives between the parameters and the body of a kernel or function."""
    present = {d.name for d in directives}
    for node in directives:
        if node.name == "pragma":
            pragma(checks, node, where="")
            continue
        checks.needs(f".{node.name}", node)
        numbers(checks, node)
        excluded_or_missing(checks, node, present)


def numbers(checks: Checks, node: tree.Directive) -> None:
    """`.maxntid 16, 16`"""
    for argument in node.arguments:
        value = argument.value if isinstance(argument, tree.Integer) else 0
        if value >= OVERFLOW:
            checks.error(codes.NOT_POSITIVE, f"{value} is too large for .{node.name}", argument, ptxas="Constant overflow")
        elif node.name == "language" and value > LAST_LANGUAGE:
            checks.error(
                codes.NOT_POSITIVE,
                f"a .language is a number up to {LAST_LANGUAGE}",
                argument,
                ptxas=f"Value '{value}' for 'directive .language' out of range, expected to be in range [0..{LAST_LANGUAGE}]",
            )
        elif value > MOST.get(node.name, value):
            checks.error(
                codes.NOT_POSITIVE,
                f"{value} is too large for .{node.name}, whose limit is {MOST[node.name]}",
                argument,
                ptxas=f".{node.name} {value} is invalid for {str(checks.program.target).replace('sm', 'compute')}",
            )
        elif not value and node.name in POSITIVE:
            checks.error(
                codes.NOT_POSITIVE,
                f"a .{node.name} of 0 lets no thread run",
                argument,
                ptxas=f"Positive non-zero value expected for {node.name}",
            )


def excluded_or_missing(checks: Checks, node: tree.Directive, present: set[str]) -> None:
    """What excludes a directive, and what it needs beside it."""
    for pair in EXCLUSIVE:
        if node.name == pair[1] and pair[0] in present:
            checks.error(
                codes.EXCLUSIVE,
                f".{pair[0]} and .{pair[1]} exclude each other",
                node,
                ptxas=f"Conflicting directives: .{pair[0]} and .{pair[1]} cannot both be specified",
            )
    if not present.issuperset(DEMANDED.get(node.name, ())):
        wanted = " and ".join(f".{name}" for name in DEMANDED[node.name])
        checks.error(
            codes.EXCLUSIVE,
            f".{node.name} needs {wanted}",
            node,
            ptxas=f"{wanted} directive(s) required for directive '.{node.name}'",
        )
    helpers = USELESS_ALONE.get(node.name, ())
    if helpers and present.isdisjoint(helpers):
        wanted = " or ".join(f".{name}" for name in helpers)
        checks.warning(
            codes.IGNORED,
            f".{node.name} has no effect without {wanted}",
            node,
            ptxas=".minnctapersm is ignored when neither .maxntid nor .reqntid is specified.",  # whichever it is
        )


def used_bytes(node: tree.Directive) -> int | None:
    """The mask of `.pragma "used_bytes_mask 0x7";`: which bytes of the load that follows are used (PTX 12.2)."""
    for string in node.arguments if node.name == "pragma" else ():
        word, _, argument = string.text.partition(" ") if isinstance(string, tree.String) else ("", "", "")
        if word == "used_bytes_mask":
            try:
                return int(argument, 0)
            except ValueError:
                return None
    return None


def module_pragma(checks: Checks, node: tree.Directive) -> None:
    """A `.pragma` of the module: its strings are known ones, while functions may have any."""
    pragma(checks, node, where="")
    for string in node.arguments:
        text = string.text if isinstance(string, tree.String) else ""
        if text != OF_MODULES and text.partition(" ")[0] not in PRAGMAS:
            checks.error(
                codes.BAD_PRAGMA,
                f"a module has no pragma '{text}'",
                string,
                help=f'`.pragma "{OF_MODULES}";` is the only one; within a function any string may stand',
                ptxas=f"Pragma '{text}' not supported",
            )


def pragma(checks: Checks, node: tree.Directive, where: str) -> None:
    """`.pragma "nounroll";`: `where` is `entry` or `func` within a body, or empty."""
    checks.needs(".pragma", node)
    for string in node.arguments:
        text = string.text if isinstance(string, tree.String) else ""
        word, _, argument = text.partition(" ")
        if word not in PRAGMAS:
            continue
        if not where:
            checks.error(
                codes.BAD_PRAGMA,
                f"the pragma '{word}' stands within a function",
                string,
                ptxas=f"Pragma '{text}' is allowed only within function scope",
            )
            continue
        checks.needs(word, string)
        if word == "enable_smem_spilling" and where == "func":
            checks.error(
                codes.BAD_PRAGMA,
                f"the pragma '{word}' is for kernels",
                string,
                ptxas=f"Pragma '{text}' cannot be specified for device functions",
            )
        if word == "frequency" and not (argument.isdigit() and argument.strip("0")):
            checks.error(
                codes.BAD_PRAGMA,
                "a frequency is a positive number",
                string,
                ptxas=f"Invalid value '{argument}' specified for .pragma '{text}'",
            )

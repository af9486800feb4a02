"""Expressions of the parameters, in braces: `{cdiv(n, 256)}`.

They are arithmetic and comparisons of numbers and texts, `X if C else Y`, and the functions below, as Python computes them;
they reach nothing else.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import CodeType

BRACES = re.compile(r"\{([^{}]*)\}")
ALLOWED = (
    ast.Expression, ast.Constant, ast.Name, ast.Load, ast.UnaryOp, ast.UAdd, ast.USub, ast.Not, ast.BinOp, ast.Add, ast.Sub,
    ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.BoolOp, ast.And, ast.Or, ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE,
    ast.Gt, ast.GtE, ast.IfExp, ast.Call,
)  # fmt: skip
LONGEST = 200  # characters


def cdiv(dividend: int, divisor: int) -> int:
    """The quotient, rounded up: how many CTAs of a size cover so many elements."""
    return -(-dividend // divisor)


FUNCTIONS: dict[str, Callable[..., object]] = {"cdiv": cdiv, "max": max, "min": min}


def substituted(value: object, parameters: Mapping[str, object]) -> object:
    """A value with its expressions computed, also within lists; a text that is one expression becomes its value."""
    if isinstance(value, list):
        return [_text(each, parameters) if isinstance(each, str) else each for each in value]
    return _text(value, parameters) if isinstance(value, str) else value


def _text(text: str, parameters: Mapping[str, object]) -> object:
    if whole := BRACES.fullmatch(text):
        return evaluated(whole[1], parameters)
    return BRACES.sub(lambda found: str(evaluated(found[1], parameters)), text)


def evaluated(expression: str, parameters: Mapping[str, object]) -> object:
    """The value of an expression; ValueError where it has none."""
    code = compiled(expression)
    try:
        return eval(code, {"__builtins__": {}}, {**FUNCTIONS, **parameters})  # noqa: S307 - of allowed nodes only
    except (ArithmeticError, LookupError, NameError, TypeError, ValueError) as wrong:
        raise ValueError(f"{{{expression}}}: {wrong}") from None


@lru_cache(maxsize=1000)
def compiled(expression: str) -> CodeType:
    """The code of an expression, which has nothing but what is allowed."""
    try:
        parsed = ast.parse(expression[: LONGEST + 1].strip(), mode="eval") if len(expression) <= LONGEST else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        parsed = None
    if parsed is None:
        raise ValueError(f"{{{expression}}} is no expression")
    for node in ast.walk(parsed):
        if not isinstance(node, ALLOWED) or (isinstance(node, ast.Call) and not _is_known(node)):
            raise ValueError(f"{{{expression}}}: an expression has numbers, parameters, arithmetic and {', '.join(FUNCTIONS)}")
    return compile(parsed, "<expression>", "eval")


def _is_known(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id in FUNCTIONS and not call.keywords


__all__ = ["BRACES", "FUNCTIONS", "evaluated", "substituted"]

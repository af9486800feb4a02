"""Constant expressions as ptxas checks them, in initialisers and operands (PTX 4.5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from ptxvm.analysis import codes
from ptxvm.analysis.checks import Checks
from ptxvm.analysis.constants import ConstantError, Lookup, SymbolAddress, evaluate
from ptxvm.analysis.scope import NameScope
from ptxvm.analysis.symbols import Register, Variable
from ptxvm.syntax import tree

BITS = (1 << 64) - 1
EXPONENT = 0x7FF << 52
DIGITS = "0123456789abcdef"

PTXAS_WORDS = {
    "division by zero": "Constant expression has division by zero",
    "integers and floating-point numbers do not mix": "Constant expression type mismatch",
}
"""What ptxas says; of all else it says that it expects an integer."""

EXPRESSIONS = (tree.Unary, tree.Binary, tree.Conditional, tree.Cast)


def value_of(checks: Checks, node: tree.Operand, lookup: Lookup) -> int | float | SymbolAddress | None:
    """The value of a constant expression; None where it has none, which is reported."""
    before = len(checks.report.diagnostics)
    literals(checks, node)
    if len(checks.report.diagnostics) > before:
        return None
    try:
        strict(node, lookup)
        return evaluate(node, lookup)
    except ConstantError as wrong:
        said = PTXAS_WORDS.get(str(wrong), "Integer constant expression expected")
        checks.error(codes.BAD_CONSTANT, str(wrong), wrong.node, ptxas=said)
        return None


def strict(node: tree.Operand, lookup: Lookup) -> None:
    """What ptxas refuses and has a value: a choice between floats, and x / 0.0."""
    for part in parts(node):
        if isinstance(part, tree.Conditional):
            for side in (part.condition, part.yes, part.no):
                if not isinstance(evaluate(side, lookup), int):
                    raise ConstantError("an integer is needed here", side)
        elif isinstance(part, tree.Binary) and part.op == "/" and evaluate(part.right, lookup) == 0:
            raise ConstantError("division by zero", part.right)


def parts(node: tree.Operand) -> Iterator[tree.Operand]:
    """A node and all that it consists of."""
    waiting: list[tree.Operand] = [node]
    while waiting:
        part = waiting.pop()
        yield part
        match part:
            case tree.Unary() | tree.Cast():
                waiting.append(part.operand)
            case tree.Binary():
                waiting += (part.right, part.left)
            case tree.Conditional():
                waiting += (part.no, part.yes, part.condition)
            case tree.Call():
                waiting.append(part.argument)
            case tree.Index():
                waiting += (part.index, part.name)
            case tree.Address() | tree.Vector() | tree.Group():
                waiting += reversed(part.items)
            case tree.Pair():
                waiting += (part.second, part.first)


# ── literals (PTX 4.5.1, 4.5.2) ─────────────────────────────────────────────────────────


def literals(checks: Checks, node: tree.Operand) -> None:
    """Does every literal in an expression fit?"""
    for part in parts(node):
        literal(checks, part)


def literal(checks: Checks, node: tree.Operand) -> None:
    """One literal: 64 bits for an integer, the normal range of f64 for a decimal float."""
    if isinstance(node, tree.Integer):
        if node.value > BITS and overflows(node.text):
            checks.error(codes.BAD_CONSTANT, f"{node.text} does not fit into 64 bits", node, ptxas="Constant overflow")
    elif isinstance(node, tree.Float) and node.width == 64 and node.text[1:2] not in ("d", "D") and out_of_range(node):
        large = node.bits & EXPONENT == EXPONENT
        said = "is too large for" if large else "is below the normal range of"
        checks.error(
            codes.BAD_CONSTANT,
            f"{node.text} {said} .f64",
            node,
            help="" if large else "write its bits, as in 0d0000000000000001",
            ptxas="Constant overflow",
        )


@lru_cache(maxsize=256)
def overflows(text: str) -> bool:
    """Does ptxas see that an integer literal has more than 64 bits?

    It does where a digit more makes the number modulo 2^64 no greater, 0 excepted: 18446744073709551616 passes as 0.
    """
    text = text.lower().removesuffix("u")
    base = 16 if text[:2] == "0x" else 2 if text[:2] == "0b" else 8 if text[0] == "0" else 10
    value = 0
    for digit in text[2:] if base in (2, 16) else text:
        before, value = value, (value * base + DIGITS.index(digit)) & BITS
        if 0 < value <= before:
            return True
    return False


def out_of_range(node: tree.Float) -> bool:
    """Is a decimal literal infinite as an f64, or not zero and below the normal numbers?"""
    exponent = node.bits & EXPONENT
    if exponent:
        return exponent == EXPONENT
    mantissa = node.text.lower().partition("e")[0]
    return any(digit in "123456789" for digit in mantissa)


# ── operands of instructions ────────────────────────────────────────────────────────────


def operands(checks: Checks, node: tree.Instruction, scope: NameScope) -> None:
    """The constants among the operands of an instruction."""
    for operand in node.operands:
        if isinstance(operand, tree.Binary) and isinstance(operand.left, tree.Name):
            integer_base(checks, operand.left, scope)
        elif isinstance(operand, tree.Index):
            element(checks, operand, scope)
        elif isinstance(operand, tree.Vector):
            no_arrays(checks, operand, scope)
        check = OPERANDS.get(type(operand))
        if check is not None:
            check(checks, operand)


def element(checks: Checks, node: tree.Index, scope: NameScope) -> None:
    """`a[1]` is the address of an element of an array."""
    symbol = scope.find(node.name.text)
    if isinstance(symbol, Variable) and not symbol.dimensions:
        checks.error(
            codes.NO_ARRAY,
            f"'{symbol.name}' is no array",
            node.name,
            help=f"`{symbol.name}+4` is the address four bytes behind it",
            ptxas="Array indexing on non-array",
        )


def no_arrays(checks: Checks, node: tree.Vector, scope: NameScope) -> None:
    """The elements of a vector operand are registers and constants; the address of an array or a vector is none."""
    for item in node.items:
        symbol = scope.find(item.text) if isinstance(item, tree.Name) else None
        if isinstance(symbol, Variable) and (symbol.dimensions or symbol.vector > 1):
            said, help = f"'{symbol.name}' is no scalar, and no element of a vector", "move its address to a register first"
            checks.error(codes.NO_ARRAY, said, item, help=help, ptxas=f"Illegal expression '{symbol.name}'")


def integer_base(checks: Checks, node: tree.Name, scope: NameScope) -> None:
    """`%f1+4` is not said to be wrong by ptxas, which does not survive it."""
    symbol = scope.find(node.text)
    if isinstance(symbol, Register) and symbol.type.is_float:
        said = f"an offset is added to integers, and '{node.text}' is .{symbol.type.name}"
        checks.error(codes.BAD_CONSTANT, said, node, help="add.f32 adds numbers")


def address(checks: Checks, node: tree.Address) -> None:
    """`[gv+4]`, `[tex, {x, y}]`"""
    for item in node.items:
        expression(checks, item)


def expression(checks: Checks, node: tree.Operand) -> None:
    """An operand that may be a constant expression, or hold one behind a base."""
    if isinstance(node, tree.Binary) and isinstance(node.left, tree.Name) and node.left.text != "WARP_SZ":
        offset = value_of(checks, node.right, nothing)
        if offset is not None and not isinstance(offset, int):
            said = "Integer constant expression expected"
            checks.error(codes.BAD_CONSTANT, "an offset is an integer", node.right, ptxas=said)
    elif isinstance(node, EXPRESSIONS) and not any(isinstance(p, tree.Name) and p.text != "WARP_SZ" for p in parts(node)):
        value_of(checks, node, nothing)


def nothing(name: str) -> None:
    """The lookup of expressions that name no symbol."""


OPERANDS: Mapping[type, Callable[..., None]] = {
    tree.Integer: literal,
    tree.Float: literal,
    tree.Address: address,
    **dict.fromkeys(EXPRESSIONS, expression),
}
"""Where an operand may be wrong as a constant, by its node; names, vectors and the arguments of calls are not."""

"""The shape of every operand: what a check needs to know of it."""

from __future__ import annotations

import re
from collections.abc import Callable

from ptxvm.analysis.constants import COMPARISONS, ConstantError, evaluate, float_value
from ptxvm.analysis.scope import NameScope, special
from ptxvm.analysis.symbols import Register
from ptxvm.isa.operand_types import SINK, UNKNOWN, Shape, ShapeKind
from ptxvm.syntax import tree
from ptxvm.syntax.tables import Constants

INTEGER = Shape("integer")
STRING = Shape("string")
VECTOR_PARTS = {c: n for parts in ("xyzw", "rgba") for n, c in enumerate(parts)}
SIGN = 1 << 63
REGISTER_PARTS = re.compile("[bh][0-9]{1,4}")  # selectors of video instructions


def shape_of(node: tree.Operand, scope: NameScope) -> Shape:
    """The shape of an operand; `unknown` where a name in it is not declared."""
    return SHAPES[type(node)](node, scope)


def _name(node: tree.Name, scope: NameScope) -> Shape:
    if node.component is not None:
        return _component(node, scope)
    text = node.text
    symbol = scope.found.get(text) or scope.find(text)
    if symbol is not None:
        shape: Shape = symbol.shape
        return shape
    if text == "_":
        return SINK
    if text == "WARP_SZ":
        return INTEGER
    found = special(text, None)
    return found.shape if found else UNKNOWN


def _component(node: tree.Name, scope: NameScope) -> Shape:
    symbol = scope.find(node.text)
    part = node.component or ""
    if symbol is None:
        found = special(node.text, part)
        return found.shape if found else UNKNOWN
    if isinstance(symbol, Register) and symbol.count > 1 and VECTOR_PARTS.get(part, 9) < symbol.count:
        return Shape("register", symbol.type)
    if isinstance(symbol, Register) and REGISTER_PARTS.fullmatch(part):
        return Shape("component", None, (symbol.shape,), detail=part)
    return UNKNOWN


def _integer(node: tree.Integer, scope: NameScope) -> Shape:
    return INTEGER


def _float(node: tree.Float, scope: NameScope) -> Shape:
    return Shape("float", detail=node.width)


def _unary(node: tree.Unary, scope: NameScope) -> Shape:
    inner = shape_of(node.operand, scope)
    if inner.kind in ("integer", "float", "unknown"):
        return inner
    return Shape("not" if node.op == "!" else "negative", items=(inner,))


def _binary(node: tree.Binary, scope: NameScope) -> Shape:
    first, chain = tree.chain(node)
    shape = shape_of(first, scope)
    for each in chain:
        shape = _combined(each, shape, shape_of(each.right, scope))
    return shape


def _combined(node: tree.Binary, left: Shape, right: Shape) -> Shape:
    if UNKNOWN in (left, right):
        return UNKNOWN
    if node.op in COMPARISONS:
        return INTEGER
    if left.kind == "integer" and right.kind != "integer":
        left, right = right, left
    if left.kind == "register" and left.detail is None:
        return left._replace(items=(right,))
    return left._replace(detail="offset") if left.kind in ("variable", "label", "function") else left


def _conditional(node: tree.Conditional, scope: NameScope) -> Shape:
    return shape_of(node.yes, scope)


def _cast(node: tree.Cast, scope: NameScope) -> Shape:
    return shape_of(node.operand, scope)


def _call(node: tree.Call, scope: NameScope) -> Shape:
    return shape_of(node.argument, scope)


def _index(node: tree.Index, scope: NameScope) -> Shape:
    named = shape_of(node.name, scope)
    return named._replace(detail="element") if named.kind == "variable" else named


def _address(node: tree.Address, scope: NameScope) -> Shape:
    items = []
    for item in node.items:
        if isinstance(item, tree.Binary):
            items.append(Shape("offset", items=(shape_of(item.left, scope), shape_of(item.right, scope))))
        else:
            items.append(shape_of(item, scope))
    return Shape("address", items=tuple(items), detail="unified" if node.unified else None)


def _several(kind: ShapeKind) -> Callable[[tree.Vector | tree.Group, NameScope], Shape]:
    def shape(node: tree.Vector | tree.Group, scope: NameScope) -> Shape:
        return Shape(kind, items=tuple(shape_of(item, scope) for item in node.items))

    return shape


def _pair(node: tree.Pair, scope: NameScope) -> Shape:
    return Shape("pair", items=(shape_of(node.first, scope), shape_of(node.second, scope)))


def _string(node: tree.String, scope: NameScope) -> Shape:
    return STRING


SHAPES: dict[type, Callable[..., Shape]] = {
    tree.Name: _name,
    tree.Integer: _integer,
    tree.Float: _float,
    tree.String: _string,
    tree.Unary: _unary,
    tree.Binary: _binary,
    tree.Conditional: _conditional,
    tree.Cast: _cast,
    tree.Call: _call,
    tree.Index: _index,
    tree.Address: _address,
    tree.Vector: _several("vector"),
    tree.Group: _several("group"),
    tree.Pair: _pair,
}


def names_in(node: tree.Operand) -> list[tree.Name]:
    """Every name that an operand mentions."""
    match node:
        case tree.Name():
            return [node]
        case tree.Unary() | tree.Cast():
            return names_in(node.operand)
        case tree.Binary():
            first, chain = tree.chain(node)
            return names_in(first) + [name for each in chain for name in names_in(each.right)]
        case tree.Conditional():
            return names_in(node.condition) + names_in(node.yes) + names_in(node.no)
        case tree.Call():
            return names_in(node.argument)
        case tree.Index():
            return [node.name, *names_in(node.index)]
        case tree.Vector() if isinstance(node.items, Constants):
            return []
        case tree.Address() | tree.Vector() | tree.Group():
            return [n for item in node.items for n in names_in(item)]
        case tree.Pair():
            return names_in(node.first) + names_in(node.second)
    return []


def constant(node: tree.Operand | None) -> int | float | None:
    """The value of an operand that is a constant, with its sign: ptxas reads `0xffffffffffffffff` as -1."""
    if isinstance(node, tree.Integer):
        return (node.value + SIGN) % (2 * SIGN) - SIGN
    if isinstance(node, tree.Float):
        return float_value(node)
    if isinstance(node, tree.Name) and node.text == "WARP_SZ":
        return 32
    if isinstance(node, tree.Unary) and node.op in "-~!":
        value = constant(node.operand)
        if value is None or node.op == "-":
            return value and -value
        if node.op == "!":
            return int(not value)
        return None if isinstance(value, float) else ~value
    if isinstance(node, tree.Binary | tree.Conditional | tree.Cast):
        return _expression(node)
    return None


def _expression(node: tree.Operand) -> int | None:
    """The value of a constant expression of integers; None for one with an address."""
    try:
        value = evaluate(node)
    except ConstantError:
        return None
    return value if isinstance(value, int) else None

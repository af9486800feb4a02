"""Checks of initial values against their variables (PTX 5.3, 5.4.4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ptxvm.algebra.types import Type, f16, f32, f64, u8, u32, u64
from ptxvm.analysis import codes
from ptxvm.analysis.checks import Checks
from ptxvm.analysis.constants import SymbolAddress
from ptxvm.analysis.expressions import BITS, value_of
from ptxvm.analysis.program import Function
from ptxvm.analysis.scope import NameScope
from ptxvm.analysis.symbols import Variable
from ptxvm.diagnostics import did_you_mean
from ptxvm.diagnostics.ptxas import NO_VALUE
from ptxvm.isa.directives import INITIALISABLE, OPAQUE_FIELDS, OPAQUE_VALUES
from ptxvm.syntax import tree
from ptxvm.syntax.tables import Constants

BYTES = {0xFF << 8 * n for n in range(8)}
MISMATCH = "Initial value type mismatch"


def initialiser(checks: Checks, variable: Variable, scope: NameScope) -> None:
    """The initial value of a variable in .global or .const; `scope` has the names that it may take addresses of."""
    node = variable.initial
    if node is None or variable.space not in INITIALISABLE or variable.linkage is tree.Linkage.EXTERN:
        return
    if variable.opaque:
        checks.needs("opaque initialiser", node)
        fields(checks, node, variable, in_array=bool(variable.dimensions))
        return
    elements(checks, node, variable, variable.dimensions, scope)


def mismatch(checks: Checks, message: str, node: tree.Node, help: str = "") -> None:
    """A value that is not of the variable's type."""
    checks.error(codes.BAD_INITIALISER, message, node, help=help, ptxas=MISMATCH)


def elements(
    checks: Checks, node: tree.Operand, variable: Variable, dimensions: Sequence[int | None], scope: NameScope
) -> None:
    """A value, or one for each element: each dimension has its braces, and the elements of a vector have."""
    if dimensions:
        if not isinstance(node, tree.Vector):
            mismatch(checks, f"'{variable.name}' is an array, and this is one value", node, "put the values in braces")
            return
        count = len(node.items) if dimensions[0] is None else dimensions[0]
        if len(node.items) > count:
            checks.error(
                codes.BAD_INITIALISER,
                f"{len(node.items)} values for {count} elements of '{variable.name}'",
                node.items[count],
                ptxas="Greater number of elements in array initializer",
            )
            return
        if len(dimensions) == 1 and variable.vector == 1 and is_table_of(variable.type, node.items):
            return
        until_wrong(checks, node.items, lambda item: elements(checks, item, variable, dimensions[1:], scope))
    elif variable.vector > 1:
        vector(checks, node, variable, scope)
    else:
        scalar(checks, node, variable, scope)


def is_table_of(type: Type, items: Sequence[tree.Operand]) -> bool:
    """Are the items a table of constants that a variable of the type can begin with?"""
    return isinstance(items, Constants) and (holds_floats(type) if items.are_floats else type.is_int)


def until_wrong(checks: Checks, items: Sequence[tree.Operand], check: Callable[[tree.Operand], None]) -> None:
    """Check the items of a list up to the first that is wrong: what is wrong with one is so mostly with all."""
    before = len(checks.report.diagnostics)
    for item in items:
        check(item)
        if len(checks.report.diagnostics) > before:
            return


def vector(checks: Checks, node: tree.Operand, variable: Variable, scope: NameScope) -> None:
    """`{1, 2}` for a .v2"""
    if not isinstance(node, tree.Vector):
        mismatch(checks, f"a .v{variable.vector} has {variable.vector} values in braces", node)
    elif len(node.items) != variable.vector:
        checks.error(
            codes.BAD_INITIALISER,
            f"a .v{variable.vector} has {variable.vector} values, not {len(node.items)}",
            node,
            ptxas="Incorrect number of elements in vector initializer",
        )
    else:
        until_wrong(checks, node.items, lambda item: scalar(checks, item, variable, scope))


def scalar(checks: Checks, node: tree.Operand, variable: Variable, scope: NameScope) -> None:
    """One value of the variable's type."""
    type = variable.type
    if isinstance(node, tree.Integer) and type.is_int and node.value <= BITS:
        return  # the usual element of a large table
    if isinstance(node, tree.Vector):
        mismatch(checks, f"a value of {type} has no braces", node)
    elif type is f16:
        checks.error(
            codes.NO_INITIALISER,
            "a variable of .f16 has no initial value",
            node,
            help="declare it as .b16, and give its bits",
            ptxas="No initial value is allowed for .f16 type",
        )
    elif unknown := symbol_of(node, scope):
        checks.error(
            codes.UNDECLARED,
            f"'{unknown.text}' is not declared",
            unknown,
            help=did_you_mean(unknown.text, scope.spellings()),
            ptxas=f"{NO_VALUE} '{unknown.text}'",
        )
    else:
        value = value_of(checks, node, scope.peek)
        if isinstance(value, SymbolAddress):
            address(checks, node, value, variable)
        elif isinstance(value, float) and not holds_floats(type):
            mismatch(checks, f"a variable of {type} cannot begin with a floating-point number", node)
        elif isinstance(value, int) and not type.is_int:
            mismatch(checks, f"a variable of {type} begins with a floating-point number", node, help_for(node))


def holds_floats(type: Type) -> bool:
    """Can a variable of the type begin with a floating-point number?"""
    return type in (f32, f64) or type.kind == "b"


def help_for(node: tree.Operand) -> str:
    """`1` should be `1.0`."""
    return f"write {node.value}.0" if isinstance(node, tree.Integer) and node.value <= BITS else ""


def symbol_of(node: tree.Operand, scope: NameScope) -> tree.Name | None:
    """The name in an initialiser that stands for nothing that has an address."""
    while not isinstance(node, tree.Name):
        match node:
            case tree.Call():
                node = node.argument
            case tree.Binary(op="+"):
                node = node.left
            case _:
                return None
    if node.text == "WARP_SZ" or isinstance(scope.peek(node.text), Variable | Function):
        return None
    return node


def address(checks: Checks, node: tree.Operand, value: SymbolAddress, variable: Variable) -> None:
    """The address of a variable or function, or some bits of it."""
    symbol, type = value.symbol, variable.type
    features(checks, node, value)
    if value.mask and value.mask not in BYTES:
        checks.error(
            codes.BAD_INITIALISER,
            f"the mask {value.mask:#x} is not one byte",
            node,
            help="as in 0xFF, 0xFF00 or 0xFF0000",
            ptxas=f"Invalid mask value '{value.mask:#x}' used in initializer",
        )
    elif isinstance(symbol, Variable) and symbol.space not in INITIALISABLE:
        checks.error(
            codes.BAD_INITIALISER,
            f"'{symbol.name}' is in .{symbol.space}, and has no address before the launch",
            node,
            ptxas="Variable used as initial value not in .global or .const state space",
        )
    elif isinstance(symbol, Function) and (value.generic or value.offset):
        checks.error(
            codes.BAD_INITIALISER,
            "the address of a function has no offset, and no generic()",
            node,
            ptxas="Invalid initial value expression" if value.generic else MISMATCH,
        )
    elif type not in ((u8, u32, u64) if value.mask else (u32, u64)):
        wanted = "a byte of an address is .u8, .u32 or .u64" if value.mask else "an address is .u32 or .u64"
        mismatch(checks, f"{wanted}, not {type}", node)


def features(checks: Checks, node: tree.Operand, value: SymbolAddress) -> None:
    """What addresses as values need of the version."""
    checks.needs("function as value" if isinstance(value.symbol, Function) else "address as value", node)
    if value.generic:
        checks.needs("generic()", node)
    if value.mask:
        checks.needs("mask", node)


# ── textures, samplers and surfaces (PTX 5.3) ───────────────────────────────────────────


def fields(checks: Checks, node: tree.Operand, variable: Variable, *, in_array: bool) -> None:
    """`{width = 8, filter_mode = nearest}`, or a list of such for an array."""
    if not isinstance(node, tree.Vector):
        mismatch(checks, f"a .{variable.opaque} is initialised by fields in braces", node, "as in {width = 8}")
        return
    for item in node.items:
        if in_array and isinstance(item, tree.Vector):
            fields(checks, item, variable, in_array=True)
        elif isinstance(item, tree.Binary) and item.op == "=" and isinstance(item.left, tree.Name):
            field(checks, item.left, item.right, variable.opaque)
        else:
            checks.error(
                codes.BAD_FIELD,
                "a field has a name",
                item,
                help="as in {width = 8}",
                ptxas="Opaque structure initializer requires named fields",
            )


def field(checks: Checks, name: tree.Name, value: tree.Operand, opaque: str) -> None:
    """`width = 8`"""
    if name.text in ("channel_data_type", "channel_order"):
        checks.needs(name.text, name)
    if isinstance(value, tree.Name) and value.text != "WARP_SZ":
        if value.text not in OPAQUE_VALUES:
            checks.error(
                codes.BAD_FIELD,
                f"'{value.text}' is not the value of a field",
                value,
                help=did_you_mean(value.text, OPAQUE_VALUES),
                ptxas=f"Unrecognized initial value symbol '{value.text}'",
            )
    else:
        value_of(checks, value, lambda _: None)
    if name.text not in OPAQUE_FIELDS[opaque]:
        checks.error(
            codes.BAD_FIELD,
            f"a .{opaque} has no field '{name.text}'",
            name,
            help=did_you_mean(name.text, OPAQUE_FIELDS[opaque]),
            ptxas=f"Unrecognized field name '{name.text}' in opaque struct initializer",
        )

"""The symbols of a module: declared once, or in agreement, and defined where they must be (PTX 11.2.3, 11.6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ptxvm.algebra.state_space import Space
from ptxvm.analysis import codes
from ptxvm.analysis.checks import Checks, Place
from ptxvm.analysis.program import Function, Program
from ptxvm.analysis.signatures import disagreement, name_of
from ptxvm.analysis.symbols import Variable
from ptxvm.diagnostics import did_you_mean
from ptxvm.isa import special_registers
from ptxvm.isa.directives import CONSTANT_BANK, SYSTEM_FUNCTIONS
from ptxvm.named_tuple import NamedTuple
from ptxvm.syntax import tree


def reserved(checks: Checks, name: str, place: Place) -> None:
    """No symbol of a module has the name of a special register (PTX 10)."""
    if name.startswith("%") and special_registers.lookup(name) is not None:
        checks.error(
            codes.RESERVED,
            f"'{name}' is a special register",
            place,
            help="choose another name",
            ptxas=f"Inconsistent redefinition of variable '{name}'",
        )


def variable(checks: Checks, found: Variable, known: Variable, place: Place) -> bool:
    """A variable that is declared again; tells whether this declaration takes the place of the earlier."""
    help = f"the first declaration is on line {checks.line(known.node or tree.Node())}"
    twice = "extern" not in (found.linkage, known.linkage)
    duplicate = f"Duplicate definition of variable '{found.name}'"
    if not same_type(found, known):
        checks.error(
            codes.CONFLICTING,
            f"the declarations of '{found.name}' differ in their type",
            place,
            help=help,
            ptxas=f"Inconsistent redefinition of variable '{found.name}'",
            consequences=duplicate if twice else "",
        )
        return False
    if twice:
        checks.error(
            codes.DUPLICATE,
            f"'{found.name}' is declared already",
            place,
            help=help,
            ptxas=duplicate,
        )
        return False
    if known.linkage is tree.Linkage.EXTERN and found.linkage is None:
        checks.error(
            codes.CONFLICTING,
            f"'{found.name}' was declared .extern, and this definition is not visible outside",
            place,
            help="write `.visible` before it",
            ptxas=f"'.extern' variable '{found.name}' cannot be resolved by a '.static'",
        )
    return found.linkage is not tree.Linkage.EXTERN


def same_type(one: Variable, other: Variable) -> bool:
    """Same type and dimensions, where an open first one fits any."""
    if (one.type, one.vector, one.opaque, len(one.dimensions)) != (
        other.type,
        other.vector,
        other.opaque,
        len(other.dimensions),
    ):
        return False
    pairs = list(zip(one.dimensions, other.dimensions, strict=True))
    return all(a == b for a, b in pairs[1:]) and all(None in (a, b) or a == b for a, b in pairs[:1])


def two_kinds(checks: Checks, name: str, place: Place) -> None:
    """A variable and a function of one name."""
    checks.error(
        codes.CONFLICTING,
        f"'{name}' is a variable and a function",
        place,
        ptxas=f"Inconsistent redefinition of variable '{name}'",
    )


# ── aliases (PTX 11.2.3) ────────────────────────────────────────────────────────────────


class Refusal(NamedTuple):
    """What is wrong with an alias: in our words, in those of ptxas, and at which of its two names."""

    message: str
    ptxas: str
    at: tree.Name


def alias(checks: Checks, node: tree.Directive) -> None:
    """`.alias f, g;`: `f` becomes another name of `g`."""
    checks.needs(".alias", node)
    new, old = (name for name in node.arguments if isinstance(name, tree.Name))
    function, target = aliased(checks, new), aliased(checks, old)
    if function is None or target is None:
        return
    refused = refusal(checks, new, function, old, target)
    if refused is None:
        checks.program.aliases[new.text] = old.text
    else:
        checks.error(codes.ALIAS, refused.message, refused.at, ptxas=refused.ptxas)


def aliased(checks: Checks, name: tree.Name) -> Function | None:
    """The function that a name in `.alias` stands for."""
    symbol = checks.program.scope.peek(name.text)
    if isinstance(symbol, Function):
        return symbol
    if isinstance(symbol, Variable):
        checks.error(
            codes.ALIAS,
            f"'{name.text}' is a variable, and aliases are of functions",
            name,
            ptxas=f"Cannot define alias to variable object '{name.text}'",
        )
        return None
    near = did_you_mean(name.text, checks.program.functions)
    checks.error(
        codes.UNDECLARED,
        f"'{name.text}' is not declared",
        name,
        help=near or "declare it above, as `.func` without a body",
        ptxas=f"Unknown symbol '{name.text}'",
    )
    return None


def refusal(checks: Checks, new: tree.Name, function: Function, old: tree.Name, target: Function) -> Refusal | None:
    """Why a name cannot be the alias of another."""
    a, b, aliases = new.text, old.text, checks.program.aliases
    for name, found in ((new, function), (old, target)):
        if found.entry:
            said = f"'{name.text}' is a kernel, and aliases are of functions"
            return Refusal(said, f"Cannot define alias to entry function '{name.text}'", name)
    if a in aliases:
        said = f"'{a}' is an alias of '{aliases[a]}' already"
        return Refusal(said, f"'{a}' is already aliased to '{aliases[a]}' and cannot be redefined", new)
    if function.defined:
        return Refusal(f"'{a}' is defined, so it is no alias", f"Illegal redefinition of function '{a}' as alias", new)
    if last(aliases, b) == a:
        return Refusal(f"the alias '{a}' leads back to itself", "Cannot alias a function to itself", old)
    if target.linkage in (tree.Linkage.EXTERN, tree.Linkage.WEAK):
        said = f"'{b}' is .{target.linkage}, and an alias is of a function that this module defines"
        return Refusal(said, f"Function '{b}' with .{target.linkage} scope cannot be aliased", old)
    if differ := disagreement(function.signature, target.signature):
        ptxas = f"Mismatch in prototype of alias '{a}' and aliasee '{b}'. {differ}(s)"
        return Refusal(f"'{a}' and '{b}' are not of one type: {differ}", ptxas, new)
    return None


def last(aliases: Mapping[str, str], name: str) -> str:
    """The function at the end of a chain of aliases, which has no circle."""
    while name in aliases:
        name = aliases[name]
    return name


# ── at the end of the module ────────────────────────────────────────────────────────────


def finish(checks: Checks) -> None:
    """The checks that need the whole module: aliases, undefined functions, the size of constant memory."""
    resolve_aliases(checks)
    check_undefined(checks)
    constant_bytes(checks)


def resolve_aliases(checks: Checks) -> None:
    """Each alias names a function with a body, whatever lies between, and its name stands for that function."""
    program = checks.program
    ends = {name: last(program.aliases, name) for name in program.aliases}
    program.aliases.update(ends)
    for name, end in ends.items():
        program.scope.names[name] = program.made_function(end)


def check_undefined(checks: Checks) -> None:
    """Report the functions that are declared without `.extern`, and not defined (PTX 11.6.1)."""
    for function in undefined(checks.program):
        kind = ".entry" if function.entry else ".func"
        checks.error(
            codes.UNDEFINED,
            f"'{function.name}' is declared, and not defined",
            name_of(function.node),
            help=f"write `.extern {kind}` where another module defines it",
            ptxas=f"Unresolved extern function '{function.name}'",
        )


def undefined(program: Program) -> Iterator[Function]:
    """The functions that a module declares without `.extern`, and does not define."""
    for name, function in program.made_functions.items():  # others are defined, or .extern
        known = function.defined or function.linkage is tree.Linkage.EXTERN or name in SYSTEM_FUNCTIONS
        if not known and name not in program.aliases:
            yield function


def constant_bytes(checks: Checks) -> None:
    """Do the constants of the module fit into their bank (PTX 5.1.3)?"""
    program, size = checks.program, 0
    local = [v for function in program.made_functions.values() for v in function.statics]
    for found in (*program.made_variables.values(), *local):  # others are no constants
        if found.space is not Space.CONST or found.linkage is tree.Linkage.EXTERN or found.bank:
            continue
        fitted, size = size <= CONSTANT_BANK, size + found.size
        if fitted and size > CONSTANT_BANK:
            checks.error(
                codes.CONSTANT_BANK,
                f"with '{found.name}' the .const variables take {size} bytes, and {CONSTANT_BANK} is the limit",
                found.node or program.tree,
                help="move large tables to .global",
                ptxas=f"File uses too much global constant data (0x{size:x} bytes, 0x{CONSTANT_BANK:x} max)",
            )

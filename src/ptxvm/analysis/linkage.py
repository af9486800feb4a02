"""The symbols of a module: declared once, or in agreement, and defined where they must be (PTX 11.2.3, 11.6)."""

from __future__ import annotations

from ptxvm.analysis import codes
from ptxvm.analysis.checks import Checks, Place
from ptxvm.analysis.program import Function
from ptxvm.analysis.signatures import disagreement, name_of
from ptxvm.analysis.symbols import Variable
from ptxvm.diagnostics import Span, did_you_mean
from ptxvm.isa import special_registers
from ptxvm.isa.directives import CONSTANT_BANK
from ptxvm.syntax import tree


def reserved(checks: Checks, name: str, place: Place) -> None:
    """No symbol of a module has the name of a special register (PTX 10)."""
    if name.startswith("%") and special_registers.lookup(name) is not None:
        checks.error(codes.RESERVED, f"'{name}' is a special register", place, help="choose another name",
                     ptxas=f"Inconsistent redefinition of variable '{name}'")  # fmt: skip


def variable(checks: Checks, found: Variable, known: Variable, place: Place) -> bool:
    """A variable that is declared again; tells whether this declaration takes the place of the earlier."""
    help = f"the first declaration is on line {checks.line(known.node or tree.Node())}"
    if not same_type(found, known):
        checks.error(codes.CONFLICTING, f"the declarations of '{found.name}' differ in their type", place, help=help,
                     ptxas=f"Inconsistent redefinition of variable '{found.name}'")  # fmt: skip
        return False
    if "extern" not in (found.linkage, known.linkage):
        checks.error(codes.DUPLICATE, f"'{found.name}' is declared already", place, help=help,
                     ptxas=f"Duplicate definition of variable '{found.name}'")  # fmt: skip
        return False
    if known.linkage == "extern" and found.linkage is None:
        checks.error(codes.CONFLICTING, f"'{found.name}' was declared .extern, and this definition is not visible outside", place,
                     help="write `.visible` before it",
                     ptxas=f"'.extern' variable '{found.name}' cannot be resolved by a '.static'")  # fmt: skip
    return found.linkage != "extern"


def same_type(one: Variable, other: Variable) -> bool:
    """Same type and dimensions, where an open first one fits any."""
    if (one.type, one.vector, one.opaque, len(one.dimensions)) != (other.type, other.vector, other.opaque, len(other.dimensions)):
        return False
    pairs = list(zip(one.dimensions, other.dimensions, strict=True))
    return all(a == b for a, b in pairs[1:]) and all(None in (a, b) or a == b for a, b in pairs[:1])


def two_kinds(checks: Checks, name: str, place: Place) -> None:
    """A variable and a function of one name."""
    checks.error(codes.CONFLICTING, f"'{name}' is a variable and a function", place,
                 ptxas=f"Inconsistent redefinition of variable '{name}'")  # fmt: skip


# ── aliases (PTX 11.2.3) ────────────────────────────────────────────────────────────────


def alias(checks: Checks, node: tree.Directive) -> None:
    """`.alias f, g;`: `f` becomes another name of `g`."""
    program = checks.program
    checks.needs(".alias", node)
    names = [a for a in node.arguments if isinstance(a, tree.Name)]
    found = [aliased(checks, name) for name in names]
    if None in found:
        return
    (new, old), (place, target) = found, names
    wrong = wrong_alias(checks, new, old)
    if wrong:
        said, ptxas, at = wrong[0], wrong[1], place if wrong[2] else target
        checks.error(codes.ALIAS, said, at, ptxas=ptxas)
        return
    program.aliases[place.text] = target.text


def aliased(checks: Checks, name: tree.Name) -> Function | None:
    """The function that a name in `.alias` stands for."""
    scope = checks.program.scope
    symbol = scope.find(name.text)
    if isinstance(symbol, Function):
        return symbol
    if isinstance(symbol, Variable):
        checks.error(codes.ALIAS, f"'{name.text}' is a variable, and aliases are of functions", name,
                     ptxas=f"Cannot define alias to variable object '{name.text}'")  # fmt: skip
        return None
    checks.error(codes.UNDECLARED, f"'{name.text}' is not declared", name,
                 help=did_you_mean(name.text, checks.program.functions) or "declare it above, as `.func` without a body",
                 ptxas=f"Unknown symbol '{name.text}'")  # fmt: skip
    return None


def wrong_alias(checks: Checks, new: Function | None, old: Function | None) -> tuple[str, str, bool] | None:
    """What is wrong with an alias: in our words, in those of ptxas, and whether it is about the new name."""
    if new is None or old is None:
        return None
    a, b = new.name, old.name
    for function, is_new in ((new, True), (old, False)):
        if function.entry:
            return f"'{function.name}' is a kernel, and aliases are of functions", f"Cannot define alias to entry function '{function.name}'", is_new
    if a in checks.program.aliases:
        other = checks.program.aliases[a]
        return f"'{a}' is an alias of '{other}' already", f"'{a}' is already aliased to '{other}' and cannot be redefined", True
    if new.defined:
        return f"'{a}' is defined, so it is no alias", f"Illegal redefinition of function '{a}' as alias", True
    if leads_to(checks, b, a):
        return f"the alias '{a}' leads back to itself", "Cannot alias a function to itself", False
    if old.linkage in ("extern", "weak"):
        return f"'{b}' is .{old.linkage}, and an alias is of a function that this module defines", f"Function '{b}' with .{old.linkage} scope cannot be aliased", False  # fmt: skip
    said = disagreement(new.signature, old.signature)
    if not said and new.signature.noreturn != old.signature.noreturn:
        said = ".noreturn directive differ"
    if said:
        return f"'{a}' and '{b}' are not of one type: {said}", f"Mismatch in prototype of alias '{a}' and aliasee '{b}'. {said}(s)", True
    return None


def leads_to(checks: Checks, start: str, end: str) -> bool:
    """Do the aliases lead from one name to another?"""
    return last(checks, start, end) == end


def last(checks: Checks, name: str, stop: str = "") -> str:
    """Where a chain of aliases ends."""
    while name != stop and name in checks.program.aliases:
        name = checks.program.aliases[name]
    return name


# ── at the end of the module ────────────────────────────────────────────────────────────


def finish(checks: Checks) -> None:
    """What only the whole module shows."""
    resolve_aliases(checks)
    undefined(checks)
    constant_bytes(checks)


def resolve_aliases(checks: Checks) -> None:
    """Each alias names a function with a body, whatever lies between, and its name stands for that function."""
    program = checks.program
    ends = {name: last(checks, name) for name in program.aliases}
    program.aliases.update(ends)
    for name, end in ends.items():
        program.scope.names[name] = program.functions[end]


def undefined(checks: Checks) -> None:
    """Functions that are declared without `.extern`, and not defined (PTX 11.6.1)."""
    for name, function in checks.program.functions.items():
        if not function.defined and function.linkage != "extern" and name not in checks.program.aliases:
            kind = ".entry" if function.entry else ".func"
            checks.error(codes.UNDEFINED, f"'{name}' is declared, and not defined", name_of(function.node),
                         help=f"write `.extern {kind}` where another module defines it",
                         ptxas=f"Unresolved extern function '{name}'")  # fmt: skip


def constant_bytes(checks: Checks) -> None:
    """Do the constants of the module fit into their bank (PTX 5.1.3)?"""
    size, place = 0, Span(0, 0)
    for found in checks.program.variables.values():
        if found.space == "const" and found.linkage != "extern" and not found.bank:
            size = -(-size // found.alignment) * found.alignment + found.size
            if size > CONSTANT_BANK and place == Span(0, 0):
                place = Span(found.node.start, found.node.end) if found.node else place
    if size > CONSTANT_BANK:
        checks.error(codes.CONSTANT_BANK, f"the .const variables take {size} bytes, and {CONSTANT_BANK} is the limit", place,
                     help="move large tables to .global",
                     ptxas=f"File uses too much global constant data (0x{size:x} bytes, 0x{CONSTANT_BANK:x} max)")  # fmt: skip

"""Kernels and functions as declared: parameters, results, agreement of declarations (PTX 5.1.6, 7.1, 7.2, 11.2)."""

from __future__ import annotations

from collections.abc import Sequence

from ptxvm.algebra.state_space import Space
from ptxvm.analysis import codes
from ptxvm.analysis.checks import Checks
from ptxvm.analysis.declarations import attributes, declaration
from ptxvm.analysis.program import Function
from ptxvm.analysis.spaces import DeclarationContext, is_open
from ptxvm.analysis.symbols import Register, Signature, Variable
from ptxvm.diagnostics import Span
from ptxvm.isa.directives import MOST_PARAMETER_BYTES, OPAQUE, PARAMETER_BYTES
from ptxvm.syntax import tree

Formal = Register | Variable


def function_head(checks: Checks, node: tree.Function) -> None:
    """Check the declaration of a kernel or function, except its names and its directives."""
    kernel = node.kind == "entry"
    if node.linkage is tree.Linkage.WEAK:
        checks.needs(".weak", checks.word(node, ".weak"))
    if node.linkage is tree.Linkage.EXTERN and node.body is not None:
        checks.error(
            codes.CONFLICTING,
            f"'{node.name}' is defined here, and .extern says elsewhere",
            checks.word(node, ".extern"),
            help="write `.visible`",
            ptxas=f"Function definition conflicts with '.extern' declaration for function '{node.name}'",
        )
    if kernel and node.body is None:
        checks.needs("kernel prototype", name_of(node))
    if kernel and node.parameters:
        checks.needs("kernel parameters", node.parameters[0])
    attributes(checks, node)
    where = DeclarationContext.KERNEL if kernel else DeclarationContext.FUNCTION
    formals(checks, node.results, node.parameters, where)
    if not kernel:
        for formal in (*node.results, *node.parameters):
            if formal.declarators[0].name == "_":
                checks.error(
                    codes.NAMELESS,
                    "a parameter of a function needs a name",
                    formal.declarators[0],
                    ptxas="Illegal parameter name '_'",
                )
    noreturn(checks, node.results, node.directives, node.name)


def prototype(checks: Checks, node: tree.Prototype) -> None:
    """A `.callprototype` (PTX 11.3.3)."""
    checks.needs(".callprototype", checks.word(node, ".callprototype"))
    formals(checks, node.results, node.parameters, DeclarationContext.PROTOTYPE)
    noreturn(checks, node.results, node.directives, "protoype with return parameters")  # so ptxas spells it


def noreturn(checks: Checks, results: Sequence[tree.Variable], directives: Sequence[tree.Directive], name: str) -> None:
    """`.noreturn` excludes results (PTX 11.4.6)."""
    for directive in directives:
        if directive.name == "noreturn" and results:
            checks.error(
                codes.BAD_NORETURN,
                "a function that does not return has no results",
                directive,
                ptxas=f"Invalid directive '.noreturn' for function '{name}'",
            )


# ── parameters and results ──────────────────────────────────────────────────────────────


def formals(
    checks: Checks, results: Sequence[tree.Variable], parameters: Sequence[tree.Variable], where: DeclarationContext
) -> None:
    """Check each parameter and result, then all of them together."""
    for node in (*results, *parameters):
        declaration(checks, node, where)
        if node.pointer is not None:
            checks.needs(".ptr", node.pointer)
            if node.pointer.space in OPAQUE:
                checks.needs(".ptr to opaque", node.pointer)
        if where is DeclarationContext.FUNCTION:
            no_kernel_attributes(checks, node)
    if len(results) > 1 and any(r.space != Space.REG for r in results):
        place = next(r for r in results if r.space != Space.REG)
        checks.error(
            codes.BAD_RESULT,
            "several results are registers; in .param there is one at most",
            place,
            help="return a .param array that holds them all",
            ptxas="Multiple return parameters require .register state space",
        )
    for node in results:
        if is_open(node.declarators[0]):
            checks.error(
                codes.INCOMPLETE, "a result needs a size", node, ptxas="Output parameter cannot be an incomplete array."
            )
    open_parameters(checks, parameters, where)


def open_parameters(checks: Checks, parameters: Sequence[tree.Variable], where: DeclarationContext) -> None:
    """An array without a size is the last parameter of a variadic function (PTX 7.2)."""
    for place, node in enumerate(parameters, start=1):
        if not is_open(node.declarators[0]):
            continue
        if place < len(parameters):
            checks.error(
                codes.INCOMPLETE,
                "only the last parameter may be an array without a size",
                node,
                ptxas="Only the last input parameter can be an incomplete array.",
            )
        if where is DeclarationContext.KERNEL:
            checks.error(
                codes.INCOMPLETE,
                "a parameter of a kernel has a size",
                node,
                ptxas="Parameter to entry function cannot be an incomplete array.",
            )
        elif node.space != Space.PARAM:
            checks.error(
                codes.INCOMPLETE,
                "an array without a size is in .param",
                node,
                ptxas="Incomplete array parameters must be in '.param' space",
            )
        else:
            checks.needs("unsized parameter", node)


def no_kernel_attributes(checks: Checks, node: tree.Variable) -> None:
    """`.ptr`, and `.align` behind the type, are for kernels (PTX 5.1.6.2)."""
    asked: tree.Node | None = node.pointer
    if asked is None and node.alignment is not None:
        text = checks.report.source.text
        asked = node.alignment if f".{node.type}" in text[node.start : node.alignment.start] else None
    if asked is not None:
        what = "'.ptr' is" if node.pointer else "'.align' behind the type is"
        checks.error(
            codes.KERNELS_ONLY,
            f"{what} for parameters of kernels",
            asked,
            help="in a function `.align` stands before the type",
            ptxas="Illegal placement of kernel parameter attribute",
        )


def parameter_bytes(checks: Checks, function: Function) -> None:
    """Report a kernel whose parameters take too many bytes (PTX 5.1.6.1)."""
    size = 0
    for formal in function.signature.parameters:
        if isinstance(formal, Variable) and formal.space is Space.PARAM and not (formal.opaque and not formal.dimensions):
            size = -(-size // formal.alignment) * formal.alignment + formal.size
    most = most_parameter_bytes(checks.program.version)
    place = name_of(function.node)
    if size > most:
        checks.error(
            codes.PARAMETER_SPACE,
            f"the parameters of '{function.name}' take {size} bytes, and {most} is the limit",
            place,
            help="pass a pointer to a larger structure",
            ptxas=f"Entry function '{function.name}' uses too much parameter space (0x{size:x} bytes, 0x{most:x} max).",
        )
    if size > PARAMETER_BYTES[-1][1]:
        checks.needs("large parameters", place)


def most_parameter_bytes(version: tuple[int, int]) -> int:
    """How many bytes the parameters of a kernel take at most, in a version."""
    return next((limit for before, limit in PARAMETER_BYTES if version < before), MOST_PARAMETER_BYTES)


# ── agreement (PTX 11.2.2, 11.6) ────────────────────────────────────────────────────────


def redeclaration(checks: Checks, function: Function, known: Function) -> None:
    """Compare a declaration or definition with an earlier one of the same name."""
    name, place = function.name, name_of(function.node)
    if function.entry == known.entry and known.defined:
        checks.error(
            codes.DUPLICATE,
            f"'{name}' is defined already",
            place,
            help=f"the definition is on line {checks.line(known.node)}; a declaration stands before it",
            ptxas=f"Duplicate definition of function '{name}'",
        )
    elif contradiction := difference(function, known):
        said, ptxas = contradiction
        help = f"the first declaration is on line {checks.line(known.node)}"
        checks.error(codes.CONFLICTING, said, place, help=help, ptxas=ptxas)


def difference(function: Function, known: Function) -> tuple[str, str] | None:
    """The contradiction between two declarations, in our words and in those of ptxas; None if they agree."""
    name, differ = function.name, f"the declarations of '{function.name}' differ"
    if function.entry != known.entry:
        return f"'{name}' is a kernel and a function", f"Inconsistent redefinition of '{name}' as entry and function"
    if said := disagreement(function.signature, known.signature):
        return f"{differ}: {said}", f"Inconsistent prototypes of '{name}', {said}"
    if preserved(function) != preserved(known):
        return (
            f"{differ} in .abi_preserve",
            f"Inconsistent prototypes of '{name}', number of parameter registers differ",
        )
    if not same_linkage(known.linkage, function.linkage):
        return f"{differ} in their linkage", f"Inconsistent redefinition of variable '{name}'"
    return None


def preserved(function: Function) -> dict[str, object]:
    """The arguments of `.abi_preserve` and `.abi_preserve_control` (PTX 11.4.8)."""
    return {name: node.arguments for name, node in function.directives.items() if name.startswith("abi_preserve")}


def same_linkage(first: tree.Linkage | None, second: tree.Linkage | None) -> bool:
    """A later declaration may leave `.visible` or `.weak` out."""
    return first is second or (second is None and first is not tree.Linkage.EXTERN)


def disagreement(one: Signature, other: Signature) -> str:
    """The difference of two signatures, in the words of ptxas; empty if there is none."""
    pairs = [*zip(one.results, other.results, strict=False), *zip(one.parameters, other.parameters, strict=False)]
    if (len(one.results), len(one.parameters)) != (len(other.results), len(other.parameters)):
        return "number of parameters differ"
    for aspect, of in (("state space", space_of), ("types", type_of), ("alignment", alignment_of)):
        if any(of(a) != of(b) for a, b in pairs):
            return f"parameter {aspect} differ"
    return "" if one.noreturn == other.noreturn else ".noreturn directive differ"


def space_of(formal: Formal) -> str:
    """`reg` or `param`."""
    return Space.REG if isinstance(formal, Register) else formal.space


def type_of(formal: Formal) -> object:
    """The type with its vector size and dimensions."""
    if isinstance(formal, Register):
        return formal.type, formal.count
    return formal.type, formal.vector, formal.opaque, formal.dimensions


def alignment_of(formal: Formal) -> int:
    """The alignment in memory."""
    return 0 if isinstance(formal, Register) else formal.alignment


def name_of(node: tree.Function) -> Span:
    """Where the name of a kernel or function stands."""
    return Span(node.name_start, node.name_end)

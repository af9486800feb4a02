"""Checks of declarations: state space, type, size and alignment (PTX 5.1 to 5.4)."""

from __future__ import annotations

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type
from ptxvm.analysis import codes
from ptxvm.analysis.checks import Checks, name_of
from ptxvm.analysis.spaces import PARAMETERS, DeclarationContext, first_name, is_open, size_of, space
from ptxvm.isa.directives import INITIALISABLE, OPAQUE, WIDEST_PARAMETER_ALIGNMENT, WIDEST_VECTOR
from ptxvm.syntax import tree

OVERFLOW = 1 << 32
SIGN = 1 << 63


def declaration(checks: Checks, node: tree.Variable, where: DeclarationContext, *, in_kernel: bool = False) -> None:
    """Check a declaration, except its names and its initial values; one of each sort that is right."""
    right, sort, before = checks.program.right_declarations, sort_of(node, where, in_kernel), len(checks.report.diagnostics)
    if sort in right:
        return
    check_declaration(checks, node, where, in_kernel=in_kernel)
    if len(checks.report.diagnostics) == before:
        right.add(sort)


def sort_of(node: tree.Variable, where: DeclarationContext, in_kernel: bool) -> tuple[object, ...]:  # noqa: FBT001
    """All of a declaration that its check looks at: declarations of one sort differ in their names and initial values."""
    pointer = node.pointer and (node.pointer.space, size_of(node.pointer.alignment))
    return (
        where, in_kernel, node.space, node.type, node.linkage, node.vector, pointer,
        node.alignment is None, size_of(node.alignment), *[each.name for each in node.attributes],
        *[
            (
                each.count is None, is_countable(each), each.initial is None, sized_by(each.initial),
                *[size_of(size) for size in each.dimensions],
            )
            for each in node.declarators
        ],
    )  # fmt: skip


def check_declaration(checks: Checks, node: tree.Variable, where: DeclarationContext, *, in_kernel: bool) -> None:
    """The same, whatever was checked before."""
    if node.declarators:
        space(checks, node, where, in_kernel=in_kernel)
    type_(checks, node)
    vector(checks, node)
    predicates(checks, node)
    alignment(checks, node, where)
    attributes(checks, node)
    linkage(checks, node)
    for declarator in node.declarators:
        dimensions(checks, node, declarator, where)
        if where is not DeclarationContext.PROTOTYPE:
            allocation(checks, node, declarator, where)
        initial(checks, node, declarator)


# ── types, vectors and arrays (PTX 5.2 to 5.4) ──────────────────────────────────────────


def type_(checks: Checks, node: tree.Variable) -> None:
    """The version and target that the type needs; for opaque types ptxas requires them of scalars only."""
    place = checks.word(node, f".{node.type}")
    if node.type in ("b128", "f16x2"):
        checks.needs(f".{node.type}", place)
    elif node.type in OPAQUE and any(not d.dimensions for d in node.declarators):
        checks.needs("opaque", place)


def count_of(declarator: tree.Declarator) -> int:
    """The n of `%r<n>`, and 0 without one.  ptxas reads it as a signed number of 64 bits."""
    return ((size_of(declarator.count) or 0) + SIGN) % (2 * SIGN) - SIGN


def is_countable(declarator: tree.Declarator) -> bool:
    """Does the n of `%r<n>`, where there is one, fit into 32 bits?"""
    return count_of(declarator) < OVERFLOW


def vector(checks: Checks, node: tree.Variable) -> None:
    """Check the element type and the size of a vector."""
    if node.vector is None:
        return
    place = checks.word(node, f".v{node.vector}")
    if node.type in OPAQUE:
        checks.error(
            codes.BAD_VECTOR,
            f"there are no vectors of .{node.type}",
            place,
            ptxas="Vector type only allowed over basic types",
        )
    elif node.type != "pred" and Type.named[node.type].bits * node.vector > WIDEST_VECTOR:
        bits = Type.named[node.type].bits * node.vector
        checks.error(
            codes.BAD_VECTOR,
            f".v{node.vector} .{node.type} has {bits} bits, and vectors {WIDEST_VECTOR} at most",
            place,
            ptxas="Vector type too large, exceeds 128 bit limit",
        )


def dimensions(checks: Checks, node: tree.Variable, declarator: tree.Declarator, where: DeclarationContext) -> None:
    """Check the sizes of the dimensions."""
    place = name_of(declarator)
    name = declarator.name
    if not is_countable(declarator):
        message = f"`<{size_of(declarator.count)}>` is no number of variables: it is below 2^32"
        checks.error(codes.BAD_CONSTANT, message, declarator, ptxas="Constant overflow")
    if any(not size_of(d) for d in declarator.dimensions[1:]):
        checks.error(codes.INCOMPLETE, f"the rows of '{name}' have no elements", declarator, ptxas="Array of incomplete type")
    if where in PARAMETERS:
        if any((size_of(d) or 0) >= OVERFLOW for d in declarator.dimensions):
            checks.error(codes.PARAMETER_SPACE, f"'{name}' is too large for a parameter", declarator, ptxas="Constant overflow")
    elif is_open(declarator) and node.linkage is not tree.Linkage.EXTERN and not sized_by(declarator.initial):
        checks.error(
            codes.INCOMPLETE,
            f"the array '{name}' has no size",
            place,
            help="give its size, or an initialiser, or make it .extern",
            ptxas=f"Non-external variable '{name}' has incomplete type",
        )


def sized_by(initial: tree.Operand | None) -> bool:
    """Does the initialiser determine the number of elements?"""
    return isinstance(initial, tree.Vector) and bool(initial.items)


def allocation(checks: Checks, node: tree.Variable, declarator: tree.Declarator, where: DeclarationContext) -> None:
    """Can the state space hold a variable of this type?"""
    name, place = declarator.name, name_of(declarator)
    if node.type == "pred":
        predicate(checks, node, declarator)
    elif node.type in OPAQUE:
        opaque(checks, node, declarator, where)
    elif node.space == Space.REG and declarator.dimensions:
        checks.error(
            codes.WRONG_TYPE,
            f"registers are no arrays: '{name}'",
            declarator,
            help=f"`{name}<4>` declares 4 of them",
            ptxas=f"Variable '{name}' cannot be allocated into a register",
        )
    elif node.space == Space.PARAM and not declarator.dimensions and (node.vector or node.type == "f16x2"):
        said = f".v{node.vector} .{node.type}" if node.vector else f".{node.type}"
        checks.error(
            codes.WRONG_TYPE,
            f"the .param variable '{name}' cannot be a {said}",
            place,
            help="pass an array of the same size, or .b32 for .f16x2",
            ptxas=f"Variable '{name}' cannot be allocated in .param state space",
        )


def predicates(checks: Checks, node: tree.Variable) -> None:
    """Predicates are scalars (PTX 5.1.1)."""
    if node.type == "pred" and (node.vector or any(d.dimensions for d in node.declarators)):
        checks.error(
            codes.WRONG_TYPE,
            "there are no vectors or arrays of predicates",
            node,
            ptxas="Predicate type can only be used to define scalar register variables",
        )


def predicate(checks: Checks, node: tree.Variable, declarator: tree.Declarator) -> None:
    """Predicates are registers (PTX 5.1.1)."""
    name = declarator.name
    if node.space != Space.REG and not node.vector and not declarator.dimensions:
        checks.error(
            codes.WRONG_TYPE,
            f"the predicate '{name}' is not a register",
            checks.word(node, f".{node.space}"),
            help="predicates live in .reg alone; keep 0 or 1 of a .b32 in memory",
            ptxas=f"Predicate variable '{name}' must be in register state space",
        )


def opaque(checks: Checks, node: tree.Variable, declarator: tree.Declarator, where: DeclarationContext) -> None:
    """Textures, samplers and surfaces (PTX 5.3); ptxas refuses arrays of them only in bodies and in registers."""
    name, place = declarator.name, name_of(declarator)
    if wrong := misplaced_opaque(node, declarator, where):
        said, ptxas = wrong
        at = checks.word(node, f".{node.space}") if node.space in (Space.CONST, Space.SHARED, Space.REG) else place
        checks.error(codes.WRONG_TYPE, f"'{name}' {said}", at, ptxas=ptxas)
    unified = "texmode_independent" not in checks.program.target_options
    if node.type == "samplerref" and unified and not declarator.dimensions:
        checks.error(
            codes.WRONG_TYPE,
            "there are no samplers in the unified texturing mode",
            place,
            help="add `texmode_independent` to .target",
            ptxas="Instruction or declaration violates .target texmode_unified setting",
        )


def misplaced_opaque(node: tree.Variable, declarator: tree.Declarator, where: DeclarationContext) -> tuple[str, str] | None:
    """The reason why an opaque variable cannot be declared there, in our words and in those of ptxas; None if it can."""
    name, kind = declarator.name, f"a .{node.type}"
    if where is DeclarationContext.BODY:
        said = f"is {kind}, which is declared at module level, or as a parameter of a kernel"
        return said, "Texture/surface variable must be at module or entry parameter scope"
    if node.space == Space.REG:
        return f"is {kind}, which is no register", f"Variable '{name}' cannot be allocated into a register"
    if where is DeclarationContext.MODULE and node.space != Space.GLOBAL and not declarator.dimensions:
        said = f"is {kind} in .{node.space}, and only .global holds those"
        return said, "Texture and surface variables must be declared in .global space"
    if where is DeclarationContext.FUNCTION and not declarator.dimensions:
        said = f"is {kind}, which is a parameter of kernels only"
        return said, f"Variable '{name}' cannot be allocated in .param state space"
    return None


# ── alignments, attributes, linkage, initial values ─────────────────────────────────────


def alignment(checks: Checks, node: tree.Variable, where: DeclarationContext) -> None:
    """A power of two; `.param` of functions and bodies has a limit (PTX 5.4.5, 5.1.6.4)."""
    pointed = node.pointer.alignment if node.pointer else None
    for asked in (node.alignment, pointed):
        value = size_of(asked)
        if asked is not None and (not value or value & (value - 1) or value >= OVERFLOW):
            checks.error(
                codes.BAD_ALIGNMENT,
                f"an alignment is a power of two below 2^32, not {value}",
                asked,
                ptxas="Alignment must be a power of two",
            )
            return
    value = size_of(node.alignment) or 1
    if (
        value > WIDEST_PARAMETER_ALIGNMENT
        and node.space == Space.PARAM
        and where in (DeclarationContext.FUNCTION, DeclarationContext.BODY)
    ):
        checks.error(
            codes.BAD_ALIGNMENT,
            f"parameters of functions are aligned to {WIDEST_PARAMETER_ALIGNMENT} bytes at most",
            node.alignment or node,
            ptxas=f"Parameter '{first_name(node)}' has illegal alignment (must be aligned to 1, 2, 4, 8, 16, 32, "
            "64, or 128 bytes)",
        )


def attributes(checks: Checks, node: tree.Variable | tree.Function) -> None:
    """`.attribute(.managed, .unified(1, 2))` (PTX 5.4.8)"""
    for attribute in node.attributes:
        checks.needs(".attribute", attribute)
        checks.needs(f".{attribute.name}", attribute)
        if attribute.name == "unified":
            checks.error(
                codes.BAD_ATTRIBUTE,
                "'.unified' is for modules that are compiled apart and linked later",
                attribute,
                ptxas="Feature 'unified Functions' requires command line option '--compile-only'.",
            )
        elif isinstance(node, tree.Function) or (node.declarators and node.space != Space.GLOBAL):
            name = node.name if isinstance(node, tree.Function) else first_name(node)
            checks.error(
                codes.BAD_ATTRIBUTE,
                f"'.{attribute.name}' is for variables in .global",
                attribute,
                ptxas=f"Illegal attribute '.{attribute.name}' for symbol '{name}'",
            )


def linkage(checks: Checks, node: tree.Variable) -> None:
    """`.weak` and `.common` (PTX 11.6); without names `.common` may have any state space."""
    if node.linkage in (tree.Linkage.WEAK, tree.Linkage.COMMON):
        checks.needs(f".{node.linkage}", checks.word(node, f".{node.linkage}"))
    if node.linkage is not tree.Linkage.COMMON or not node.declarators:
        return
    if node.space != Space.GLOBAL:
        checks.error(
            codes.BAD_LINKAGE,
            f".common variables are in .global, not in .{node.space}",
            node,
            ptxas=".common variables must be declared in .global space",
        )
    elif node.type in OPAQUE and any(not d.dimensions for d in node.declarators):
        checks.error(codes.BAD_LINKAGE, f"a .{node.type} cannot be .common", node, ptxas="Illegal type for .common symbol")


def initial(checks: Checks, node: tree.Variable, declarator: tree.Declarator) -> None:
    """Report an initial value where the declaration cannot have one."""
    if declarator.initial is None:
        return
    space, name = node.space.partition("[")[0], declarator.name
    if declarator.count is not None:
        checks.error(
            codes.NO_INITIALISER,
            f"'{name}<n>' declares several variables, which have no initial values",
            declarator.initial,
            ptxas="Parsing error near '=': syntax error",
        )
    elif space not in INITIALISABLE:
        checks.error(
            codes.NO_INITIALISER,
            f"'{name}' is in .{space}, whose variables have no initial values",
            declarator.initial,
            help="store the value in the code, or declare the variable in .global or .const",
            ptxas=f"No initial value is allowed for '{name}' in this state space",
        )
    elif node.linkage is tree.Linkage.EXTERN:
        checks.error(
            codes.NO_INITIALISER,
            f"'{name}' is defined elsewhere, and initialised there",
            declarator.initial,
            ptxas=f"No initial value is allowed for external symbol '{name}'",
        )

"""What a declaration must hold to: its state space, type, size and alignment (PTX 5.1 to 5.4)."""

from __future__ import annotations

from enum import Enum

from ptxvm.algebra.types import Type
from ptxvm.analysis import codes
from ptxvm.analysis.checks import Checks, name_of
from ptxvm.isa.directives import INITIALISABLE, LAST_BANK, OPAQUE, WIDEST_PARAMETER_ALIGNMENT, WIDEST_VECTOR
from ptxvm.syntax import tree

WARP_SIZE = 32
OVERFLOW = 1 << 32


class Where(Enum):
    """Where a declaration stands."""

    MODULE = "at module level"
    BODY = "in a function"
    KERNEL = "as a parameter of a kernel"
    FUNCTION = "as a parameter of a function"
    PROTOTYPE = "in a prototype"


PARAMETERS = (Where.KERNEL, Where.FUNCTION, Where.PROTOTYPE)


def declaration(checks: Checks, node: tree.Variable, where: Where, *, in_kernel: bool = False) -> None:
    """All of a declaration but its names and its initial values."""
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
        if where is not Where.PROTOTYPE:
            allocation(checks, node, declarator, where)
        initial(checks, node, declarator)


def size_of(node: tree.Operand | None) -> int | None:
    """A literal size, or WARP_SZ."""
    if isinstance(node, tree.Integer):
        return node.value
    return WARP_SIZE if isinstance(node, tree.Name) and node.text == "WARP_SZ" else None


def first_name(node: tree.Variable) -> str:
    """The name that a declaration declares first; it may declare none."""
    return node.declarators[0].name if node.declarators else ""


# ── state spaces (PTX 5.1) ──────────────────────────────────────────────────────────────


def space(checks: Checks, node: tree.Variable, where: Where, *, in_kernel: bool) -> None:
    """May it be declared here, in this version?"""
    name, _, bank = node.space.partition("[")
    place = checks.word(node, f".{name}")
    if where in PARAMETERS:
        parameter_space(checks, node, where)
    elif name == "param" and where is Where.MODULE:
        checks.error(
            codes.WRONG_SPACE,
            "parameters are declared with their function, not at module level",
            place,
            ptxas="Parameter variables may not be declared at module scope",
        )
    elif name == "param":
        body_parameter(checks, node, in_kernel=in_kernel)
    elif name in ("reg", "local") and where is Where.MODULE:
        module_registers(checks, node, name)
    elif name == "tex":
        texture_space(checks, node, where)
    elif bank:
        constant_bank(checks, node, int(bank.rstrip("]"), 0))
    elif name == "const" and node.linkage == "extern" and any(is_open(d) for d in node.declarators):
        checks.needs("extern const[]", node)


def parameter_space(checks: Checks, node: tree.Variable, where: Where) -> None:
    """`.param` for kernels, `.param` or `.reg` for functions."""
    name = first_name(node)
    if where is Where.KERNEL:
        if node.space != "param":
            found = f"in .{node.space}" if node.space else "in no state space"
            checks.error(
                codes.WRONG_SPACE,
                f"the parameter '{name}' of a kernel is {found}, not in .param",
                node,
                ptxas=f"Entry parameter '{name}' must have .param state space",
            )
    elif node.space not in ("param", "reg"):
        found = f"in .{node.space}" if node.space else "in no state space"
        checks.error(
            codes.WRONG_SPACE,
            f"the parameter '{name}' of a function is {found}, not in .param or .reg",
            node,
            ptxas=f"Function parameter '{name}' has illegal state space",
        )
    elif node.space == "param":
        checks.needs(".param of functions", node)


def body_parameter(checks: Checks, node: tree.Variable, *, in_kernel: bool) -> None:
    """`.param` in a body: for calls, from 2.0 on; up to 1.3 the parameters of the kernel (PTX 5.1.6.4, 7.1.1)."""
    version = checks.program.version
    if version >= (2, 0) or (version < (1, 4) and in_kernel):
        return
    checks.error(
        codes.WRONG_SPACE,
        "a body declares .param variables from PTX 2.0 on",
        node,
        ptxas="Parameter variables must be declared within .entry function",
    )


def module_registers(checks: Checks, node: tree.Variable, name: str) -> None:
    """Registers and local memory of a whole module, up to 2.3 (PTX 5.1.1, 5.1.5)."""
    feature = "registers of module" if name == "reg" else "locals of module"
    if checks.needs(feature, node):
        checks.error("P0309", f"'.{name}' at module level is not supported yet", node)


def texture_space(checks: Checks, node: tree.Variable, where: Where) -> None:
    """`.tex .u32 t;` (PTX 5.1.8)"""
    checks.needs(".tex", node)
    if where is Where.BODY:
        checks.error(
            codes.WRONG_SPACE,
            "textures are declared at module level",
            node,
            ptxas="Texture variables must be declared at module scope",
        )
    if node.type not in ("u32", "u64"):
        checks.error(
            codes.WRONG_TYPE,
            f"a .tex variable is of .u32 or .u64, not .{node.type}",
            node,
            ptxas=f"Variable '{first_name(node)}' must be type .u32 or .u64",
        )


def constant_bank(checks: Checks, node: tree.Variable, bank: int) -> None:
    """`.extern .const[3] .b32 a[];` (PTX 5.1.3)"""
    checks.needs("const[n]" if bank else "const[0]", node)
    if bank > LAST_BANK:
        checks.error(codes.WRONG_SPACE, f"the banks of .const are 0 to {LAST_BANK}", node, ptxas=f"Illegal bank number: {bank}")
    if bank and not (node.linkage == "extern" and all(is_open(d) for d in node.declarators)):
        checks.error(
            codes.WRONG_SPACE,
            f"the bank .const[{bank}] is for arrays that are .extern and have no size",
            node,
            ptxas="Constant banks 1..11 are reserved for external incomplete arrays",
        )


# ── types, vectors and arrays (PTX 5.2 to 5.4) ──────────────────────────────────────────


def type_(checks: Checks, node: tree.Variable) -> None:
    """What the type needs of the version and target; of opaque types ptxas asks it for scalars alone."""
    place = checks.word(node, f".{node.type}")
    if node.type in ("b128", "f16x2"):
        checks.needs(f".{node.type}", place)
    elif node.type in OPAQUE and any(not d.dimensions for d in node.declarators):
        checks.needs("opaque", place)


def vector(checks: Checks, node: tree.Variable) -> None:
    """Is it a vector that there is?"""
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


def is_open(declarator: tree.Declarator) -> bool:
    """Is its first dimension left open, or 0?"""
    return bool(declarator.dimensions) and not size_of(declarator.dimensions[0])


def dimensions(checks: Checks, node: tree.Variable, declarator: tree.Declarator, where: Where) -> None:
    """Has each dimension a size that it can have?"""
    place = name_of(declarator)
    name = declarator.name
    if any(not size_of(d) for d in declarator.dimensions[1:]):
        checks.error(codes.INCOMPLETE, f"the rows of '{name}' have no elements", declarator, ptxas="Array of incomplete type")
    if where in PARAMETERS:
        if any((size_of(d) or 0) >= OVERFLOW for d in declarator.dimensions):
            checks.error(codes.PARAMETER_SPACE, f"'{name}' is too large for a parameter", declarator, ptxas="Constant overflow")
    elif is_open(declarator) and node.linkage != "extern" and not sized_by(declarator.initial):
        checks.error(
            codes.INCOMPLETE,
            f"the array '{name}' has no size",
            place,
            help="give its size, or an initialiser, or make it .extern",
            ptxas=f"Non-external variable '{name}' has incomplete type",
        )


def sized_by(initial: tree.Operand | None) -> bool:
    """Does an initialiser tell how many elements there are?"""
    return isinstance(initial, tree.Vector) and bool(initial.items)


def allocation(checks: Checks, node: tree.Variable, declarator: tree.Declarator, where: Where) -> None:
    """Can the state space hold a variable of this type?"""
    name, place = declarator.name, name_of(declarator)
    if node.type == "pred":
        predicate(checks, node, declarator)
    elif node.type in OPAQUE:
        opaque(checks, node, declarator, where)
    elif node.space == "reg" and declarator.dimensions:
        checks.error(
            codes.WRONG_TYPE,
            f"registers are no arrays: '{name}'",
            declarator,
            help=f"`{name}<4>` declares 4 of them",
            ptxas=f"Variable '{name}' cannot be allocated into a register",
        )
    elif node.space == "param" and not declarator.dimensions and (node.vector or node.type == "f16x2"):
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
    if node.space != "reg" and not node.vector and not declarator.dimensions:
        checks.error(
            codes.WRONG_TYPE,
            f"the predicate '{name}' is not a register",
            checks.word(node, f".{node.space}"),
            help="predicates live in .reg alone; keep 0 or 1 of a .b32 in memory",
            ptxas=f"Predicate variable '{name}' must be in register state space",
        )


def opaque(checks: Checks, node: tree.Variable, declarator: tree.Declarator, where: Where) -> None:
    """Textures, samplers and surfaces (PTX 5.3); arrays of them ptxas refuses in bodies and registers alone."""
    name, place = declarator.name, name_of(declarator)
    if where is Where.BODY:
        checks.error(
            codes.WRONG_TYPE,
            f"'{name}': a .{node.type} is declared at module level, or as a parameter of a kernel",
            place,
            ptxas="Texture/surface variable must be at module or entry parameter scope",
        )
    elif node.space == "reg":
        checks.error(
            codes.WRONG_TYPE,
            f"a .{node.type} is no register",
            place,
            ptxas=f"Variable '{name}' cannot be allocated into a register",
        )
    elif declarator.dimensions:
        return
    elif where is Where.MODULE and node.space != "global":
        checks.error(
            codes.WRONG_TYPE,
            f"'{name}' is in .{node.space}, and a .{node.type} is in .global",
            checks.word(node, f".{node.space}"),
            ptxas="Texture and surface variables must be declared in .global space",
        )
    elif where is Where.FUNCTION:
        checks.error(
            codes.WRONG_TYPE,
            f"'{name}': a function has no parameters of .{node.type}; kernels have",
            place,
            ptxas=f"Variable '{name}' cannot be allocated in .param state space",
        )
    if node.type == "samplerref" and "texmode_independent" not in checks.program.target_options:
        checks.error(
            codes.WRONG_TYPE,
            "there are no samplers in the unified texturing mode",
            place,
            help="add `texmode_independent` to .target",
            ptxas="Instruction or declaration violates .target texmode_unified setting",
        )


# ── alignments, attributes, linkage, initial values ─────────────────────────────────────


def alignment(checks: Checks, node: tree.Variable, where: Where) -> None:
    """A power of two; `.param` of functions and bodies has a limit (PTX 5.4.5, 5.1.6.4)."""
    pointed = node.pointer.alignment if node.pointer else None
    for asked in (node.alignment, pointed):
        value = size_of(asked)
        if asked is not None and (not value or value & (value - 1)):
            checks.error(
                codes.BAD_ALIGNMENT,
                f"an alignment is a power of two, not {value}",
                asked,
                ptxas="Alignment must be a power of two",
            )
            return
    value = size_of(node.alignment) or 1
    if value > WIDEST_PARAMETER_ALIGNMENT and node.space == "param" and where in (Where.FUNCTION, Where.BODY):
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
        elif not (isinstance(node, tree.Variable) and node.space == "global"):
            name = node.name if isinstance(node, tree.Function) else first_name(node)
            checks.error(
                codes.BAD_ATTRIBUTE,
                f"'.{attribute.name}' is for variables in .global",
                attribute,
                ptxas=f"Illegal attribute '.{attribute.name}' for symbol '{name}'",
            )


def linkage(checks: Checks, node: tree.Variable) -> None:
    """`.weak` and `.common` (PTX 11.6)."""
    if node.linkage in ("weak", "common"):
        checks.needs(f".{node.linkage}", checks.word(node, f".{node.linkage}"))
    if node.linkage != "common":
        return
    if node.space != "global":
        checks.error(
            codes.BAD_LINKAGE,
            f".common variables are in .global, not in .{node.space}",
            node,
            ptxas=".common variables must be declared in .global space",
        )
    elif node.type in OPAQUE and any(not d.dimensions for d in node.declarators):
        checks.error(codes.BAD_LINKAGE, f"a .{node.type} cannot be .common", node, ptxas="Illegal type for .common symbol")


def initial(checks: Checks, node: tree.Variable, declarator: tree.Declarator) -> None:
    """May it have an initial value at all?"""
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
    elif node.linkage == "extern":
        checks.error(
            codes.NO_INITIALISER,
            f"'{name}' is defined elsewhere, and initialised there",
            declarator.initial,
            ptxas=f"No initial value is allowed for external symbol '{name}'",
        )

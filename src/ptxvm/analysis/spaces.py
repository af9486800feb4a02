"""State spaces by place: at module level, in a body, among parameters (PTX 5.1)."""

from __future__ import annotations

from enum import Enum

from ptxvm.algebra.state_space import Space
from ptxvm.analysis import codes
from ptxvm.analysis.checks import Checks
from ptxvm.isa.directives import LAST_BANK
from ptxvm.isa.special_registers import WARP
from ptxvm.syntax import tree
from ptxvm.syntax.lexer import integer


class DeclarationContext(Enum):
    """Where a declaration stands."""

    MODULE = "at module level"
    BODY = "in a function"
    KERNEL = "as a parameter of a kernel"
    FUNCTION = "as a parameter of a function"
    PROTOTYPE = "in a prototype"


PARAMETERS = (DeclarationContext.KERNEL, DeclarationContext.FUNCTION, DeclarationContext.PROTOTYPE)


def size_of(node: tree.Operand | None) -> int | None:
    """A literal size, or WARP_SZ."""
    if isinstance(node, tree.Integer):
        return node.value
    return WARP if isinstance(node, tree.Name) and node.text == "WARP_SZ" else None


def first_name(node: tree.Variable) -> str:
    """The name that a declaration declares first; it may declare none."""
    return node.declarators[0].name if node.declarators else ""


def is_open(declarator: tree.Declarator) -> bool:
    """Is its first dimension left open, or 0?"""
    return bool(declarator.dimensions) and not size_of(declarator.dimensions[0])


def bank_of(space: str) -> int:
    """The number in `const[3]`; 0 where there is none."""
    literal = integer(space.partition("[")[2].rstrip("]"))
    return literal[0] if literal else 0


def space(checks: Checks, node: tree.Variable, where: DeclarationContext, *, in_kernel: bool) -> None:
    """May it be declared here, in this version?"""
    name, _, bank = node.space.partition("[")
    place = checks.word(node, f".{name}")
    if where in PARAMETERS:
        parameter_space(checks, node, where)
    elif name == Space.PARAM and where is DeclarationContext.MODULE:
        checks.error(
            codes.WRONG_SPACE,
            "parameters are declared with their function, not at module level",
            place,
            ptxas="Parameter variables may not be declared at module scope",
        )
    elif name == Space.PARAM:
        body_parameter(checks, node, in_kernel=in_kernel)
    elif name in (Space.REG, Space.LOCAL) and where is DeclarationContext.MODULE:
        module_registers(checks, node, name)
    elif name == Space.TEX:
        texture_space(checks, node, where)
    elif bank:
        constant_bank(checks, node, bank_of(node.space))
    elif name == Space.CONST and node.linkage is tree.Linkage.EXTERN and any(is_open(d) for d in node.declarators):
        checks.needs("extern const[]", node)


def parameter_space(checks: Checks, node: tree.Variable, where: DeclarationContext) -> None:
    """`.param` for kernels, `.param` or `.reg` for functions."""
    name = first_name(node)
    if where is DeclarationContext.KERNEL:
        if node.space != Space.PARAM:
            found = f"in .{node.space}" if node.space else "in no state space"
            checks.error(
                codes.WRONG_SPACE,
                f"the parameter '{name}' of a kernel is {found}, not in .param",
                node,
                ptxas=f"Entry parameter '{name}' must have .param state space",
            )
    elif node.space not in (Space.PARAM, Space.REG):
        found = f"in .{node.space}" if node.space else "in no state space"
        checks.error(
            codes.WRONG_SPACE,
            f"the parameter '{name}' of a function is {found}, not in .param or .reg",
            node,
            ptxas=f"Function parameter '{name}' has illegal state space",
        )
    elif node.space == Space.PARAM:
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
    if checks.program.version < (3, 0):
        return
    checks.error(
        codes.GONE,
        f"variables in .{name} at module level ended with PTX 3.0",
        node,
        help="declare them in the function that uses them",
        ptxas=f"Module-scoped variables in .{name} state space are not allowed with ABI",
    )


def texture_space(checks: Checks, node: tree.Variable, where: DeclarationContext) -> None:
    """`.tex .u32 t;` (PTX 5.1.8)"""
    checks.needs(".tex", node)
    if where is DeclarationContext.BODY:
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
    if bank and not (node.linkage is tree.Linkage.EXTERN and all(is_open(d) for d in node.declarators)):
        checks.error(
            codes.WRONG_SPACE,
            f"the bank .const[{bank}] is for arrays that are .extern and have no size",
            node,
            ptxas="Constant banks 1..11 are reserved for external incomplete arrays",
        )

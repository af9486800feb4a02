"""The text of an LLVM module: what a unit has declared and defined, with the attributes and metadata that functions name."""

from __future__ import annotations

from ptxvm.engine.jit.ir.builder import PIECES, SELDOM, Unit

ATTRIBUTES = 'nounwind noredzone "prefer-vector-width"="512" "min-legal-vector-width"="512" }'
NAMED = (
    f"attributes #0 = {{ {ATTRIBUTES}",
    f"{PIECES}{ATTRIBUTES}",
    f"attributes #2 = {{ noinline {SELDOM} {ATTRIBUTES}",
    '!1 = !{!"branch_weights", i32 100000, i32 1}',
    '!2 = !{!"branch_weights", i32 1, i32 100000}',
    '!3 = !{!"branch_weights", i32 100000, i32 1, i32 1}',
    "!4 = !{i32 1}",
    "",
)
"""What the functions of every module may name."""


def module_text(unit: Unit, *functions: str) -> str:
    """The text of a module: what a unit has declared and defined, and further functions."""
    declarations = (_immediates(each) for each in unit.declarations.values())
    return "\n".join([*declarations, *unit.helpers.values(), *functions, *NAMED])


def _immediates(declaration: str) -> str:
    """Mark the arguments of intrinsics that must be literals."""
    for name in ("llvm.ctlz", "llvm.cttz"):
        if name in declaration:
            return declaration.replace("i1)", "i1 immarg)")
    return declaration

"""Undefined names: the message, and the name that was probably intended.

Each function of `WAYS_OUT` recognises one mistake; it returns the help for it, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache

from ptxvm.algebra.types import Type
from ptxvm.analysis.program import Bound
from ptxvm.analysis.report import Report
from ptxvm.analysis.scope import DIGITS, NameScope, special
from ptxvm.analysis.symbols import Register
from ptxvm.diagnostics import did_you_mean, habits
from ptxvm.isa.model import ISA
from ptxvm.isa.special_registers import SPECIAL, lookup
from ptxvm.named_tuple import NamedTuple
from ptxvm.syntax import tree

MOST_PARAMETERS = 6  # the most names in a help
AXES = "xyz"
SELECTORS = "xyzwrgba"


class Unknown(NamedTuple):
    """An undefined name, the instruction that uses it, and the text of the module."""

    name: tree.Name
    bound: Bound
    text: str

    @property
    def full(self) -> str:
        """The name with its component, as written."""
        return self.name.text + (f".{self.name.component}" if self.name.component else "")


def report_unknown(name: tree.Name, bound: Bound, report: Report, consequences: str = "") -> None:
    """Report a name, or a component of a name, that is not declared; `consequences` are what else ptxas says."""
    unknown = Unknown(name, bound, report.source.text)
    help = next((said for way in WAYS_OUT if (said := way(unknown))), "")
    if name.component is None:
        said = f"'{name.text}' is not declared"
        report.error("P0201", said, name, consequences=consequences, help=help, ptxas=unknown_symbol(name))
        return
    known = bound.scope.declares(name.text) or special(name.text, None) is not None
    said = f"'{name.text}' has no component '.{name.component}'" if known else f"'{unknown.full}' is not declared"
    ptxas, *besides = wrong_component(name, name.component, bound)
    report.error("P0201", said, name, help=help, ptxas=ptxas, consequences="\n".join(besides))


def wrong_component(name: tree.Name, component: str, bound: Bound) -> list[str]:
    """What ptxas says of a component, and then of the instruction: only video instructions take a part of a register."""
    said = strange_component(name.text, component, bound.scope)
    symbol = bound.scope.find(name.text)
    if not isinstance(symbol, Register) or symbol.count > 1:
        return [*said, *([unknown_symbol(name)] if symbol is None and lookup(name.text) is None else [])]
    opcode = bound.node.opcode
    if has_parts(symbol):
        place = "destination" if name is bound.node.operands[0] else "source operand"
        return [*said, f"Video selector is not allowed on {place} for instruction '{opcode}'"]
    return [*said, *([f"Arguments mismatch for instruction '{opcode}'"] if symbol.type.is_float else [])]


def strange_component(name: str, component: str, scope: NameScope) -> list[str]:
    """What ptxas says of a component: of a vector a selector, or several; of a register of 32 bits a part, else a field."""
    symbol, one = scope.find(name), lookup(name)
    if (isinstance(symbol, Register) and symbol.count > 1) or (symbol is None and one is not None and one.count > 1):
        wrong = [f"Unknown vector selector: '{each}'" for each in component if each not in SELECTORS][:1]
        if wrong or len(component) > 1:
            return wrong + ["Unimplemented feature: vector swizzle"] * (len(component) > 1)
    if isinstance(symbol, Register) and has_parts(symbol):
        return [f"Unknown video selector: '.{component}'"]
    return [f"Unknown field '.{component}'"]


def has_parts(register: Register) -> bool:
    """Is it a register of which ptxas takes a component for a part, and not for a field?"""
    return register.type.bits in (1, 32)


def unknown_symbol(name: tree.Name) -> str:
    """What ptxas says of each place of the name."""
    return f"Unknown symbol '{name.text}'"


# ── the intended name ───────────────────────────────────────────────────────────────────


def _declared_later(unknown: Unknown) -> str:
    later = unknown.bound.scope.declares_later(unknown.name.text)
    return "it is declared further down: a declaration stands above what uses it" if later else ""


def _component(unknown: Unknown) -> str:
    """`%laneid.x`, `%tid.q`, `%r1.x`: the register is there."""
    if unknown.name.component is None:
        return ""
    if (found := lookup(unknown.name.text)) is not None and unknown.name.text.startswith("%"):
        parts = ", ".join(f".{axis}" for axis in AXES)
        return f"its components are {parts}" if found.count > 1 else f"it is one number: write `{unknown.name.text}`"
    return f"it is no vector: write `{unknown.name.text}`" if unknown.bound.scope.declares(unknown.name.text) else ""


def _number(unknown: Unknown) -> str:
    """`%r9`, or `%r`, where `%r<8>` is declared."""
    stem = unknown.name.text.rstrip(DIGITS)
    family = unknown.bound.scope.family(stem)
    if family is None:
        return ""
    last = f"to `{stem}{family.count - 1}`" if family.count > 1 else "alone"
    return f"`{stem}<{family.count}>` declares `{stem}0` {last}"


def _mark(unknown: Unknown) -> str:
    """`r1` or `%R1` for `%r1`, `N` for `n`; `$5` and the like for a constant."""
    bare = unknown.name.text.lstrip("%$")
    if unknown.name.text.startswith("$") and bare.isdecimal():
        return f"a constant has no mark in front: `{bare}`"
    folded = bare.lower()
    for other in (f"%{bare}", bare, f"%{folded}", folded, f"${bare}"):
        if other != unknown.name.text and unknown.bound.scope.declares(other):
            return _meant(other)
    same = in_another_case(unknown.name.text, unknown.bound.scope.spellings())
    return _meant(same) if same else ""


@lru_cache(maxsize=256)  # a module repeats its mistakes; each set of names may be large
def in_another_case(name: str, known: frozenset[str]) -> str:
    """The first of the known names that has the same letters, large or small; empty where none has."""
    folded, length = name.lower(), len(name)
    return min((other for other in known if len(other) == length and other.lower() == folded), default="")


def _special(unknown: Unknown) -> str:
    """`%tidx`, `tid.x`, `threadIdx.x`: special registers under other names."""
    found = squeezed_names().get(squeezed(unknown.full)) or habits.register(unknown.name.text, unknown.name.component)
    return _meant(found) if found else ""


def _value(unknown: Unknown) -> str:
    """`inf`, `nan`, `true`: constants that have no name in PTX."""
    found = habits.VALUES.get(unknown.name.text.lower()) or habits.VALUES.get(unknown.name.text.lower().removesuffix("f"))
    if found is None:
        return ""
    narrow, wide = found
    return f"PTX has no name for it: write `{narrow}`" + (f", or as .f64 `{wide}`" if wide != narrow else "")


def _parameter(unknown: Unknown) -> str:
    """`ld.param` of a name that no parameter has."""
    function = unknown.bound.function
    if "param" not in unknown.bound.node.words or function is None:
        return ""
    names = [each.name for each in function.signature.parameters]
    near = did_you_mean(unknown.name.text, names)
    if near or not names:
        return near or f"'{function.name}' has no parameters"
    more = ", …" if len(names) > MOST_PARAMETERS else ""
    return f"the parameters of '{function.name}' are {', '.join(f'`{n}`' for n in names[:MOST_PARAMETERS])}{more}"


def _label(unknown: Unknown) -> str:
    """A branch to what is no label of the function."""
    function = unknown.bound.function
    if function is None or function.program is None or not goes(unknown.name, unknown.bound, "label"):
        return ""
    near = did_you_mean(unknown.name.text, function.labels)
    if near:
        return near
    name, node, text = unknown.name.text, function.node, function.program.source.text
    if text.find(name, 0, node.start) < 0 and text.find(name, node.end) < 0:
        return f"no label of '{function.name}' has this name"
    for other in function.program.functions.values():
        if name in other.label_names:
            return f"it is a label of '{other.name}': a branch stays within its function"
    return f"no label of '{function.name}' has this name"


def _function(unknown: Unknown) -> str:
    """A call of what no function is."""
    if not goes(unknown.name, unknown.bound, "function"):
        return ""
    near = did_you_mean(unknown.name.text, unknown.bound.scope.spellings())
    return near or f"a function of another module is declared above: `.extern .func {unknown.name.text};`"


def _opcode(unknown: Unknown) -> str:
    """The next instruction, behind a forgotten `;`."""
    before = unknown.text[unknown.bound.node.start : unknown.name.start].rstrip(" \t")
    known = unknown.name.text.partition(".")[0] in ISA.by_opcode
    return "is a `;` missing at the end of the line above?" if known and before.endswith("\n") else ""


def _misspelt(unknown: Unknown) -> str:
    names = unknown.bound.scope.spellings() | {"WARP_SZ"}
    return did_you_mean(unknown.name.text, names) or did_you_mean(unknown.name.text, special_names())


def _undeclared(unknown: Unknown) -> str:
    """A register of an instruction that is known: how it is declared."""
    if unknown.bound.decoded is None:
        return ""
    place = _place(unknown.name, unknown.bound)
    type = unknown.bound.decoded.type_of(place) if place else None
    if type is None or unknown.name.component is not None:
        return ""
    return f"PTX has no registers of its own: declare `.reg {_holder(type)} {unknown.name.text};` above"


WAYS_OUT: tuple[Callable[[Unknown], str], ...] = (
    _declared_later,
    _component,
    _number,
    _mark,
    _special,
    _value,
    _opcode,
    _parameter,
    _label,
    _function,
    _misspelt,
    _undeclared,
)


def _meant(name: str) -> str:
    return f"did you mean `{name}`?"


def goes(operand: tree.Operand, bound: Bound, mark: str) -> bool:
    """Does an operand stand where only a label or a function can?"""
    place, decoded = _place(operand, bound), bound.decoded
    return place is not None and decoded is not None and mark == decoded.operand_type(place).type


def _place(operand: tree.Operand, bound: Bound) -> str | None:
    """The name of an operand in the syntax line."""
    return next((key for key, node in bound.operands.items() if node is operand), None)


def _holder(type: Type) -> Type:
    """The type of a register that can hold values of another type."""
    return type if type.name in {"f32", "f64", "pred"} else type.as_bits


@cache
def squeezed_names() -> dict[str, str]:
    """The special registers, with their components, by their letters alone: `tidx` is `%tid.x`."""
    found = {}
    for name, register in SPECIAL.items():
        spelled = name if register.value is not None else f"%{name}"
        for axis in AXES if register.count > 1 else ("",):
            found[squeezed(name + axis)] = f"{spelled}.{axis}" if axis else spelled
    return found


@cache
def special_names() -> tuple[str, ...]:
    """The special registers, with their components."""
    return tuple(squeezed_names().values())


def squeezed(text: str) -> str:
    """The letters and digits of a name, in lower case."""
    return "".join(c for c in text.lower() if c.isalnum())


__all__ = ["goes", "report_unknown", "unknown_symbol"]

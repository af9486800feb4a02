"""Declarations for the names in a single instruction, inferred from a form that it may take.

`prmt.b32 %r1, %r2, %r3, 0x5250;` says nothing of `%r1`; its syntax line does.  Each operand has a place in the form,
and the form gives the place a type, or a mark such as `label`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type
from ptxvm.analysis.operand_matching import match_operands
from ptxvm.analysis.program import follow
from ptxvm.analysis.scope import NameScope, special
from ptxvm.analysis.shapes import VECTOR_PARTS, names_in, shape_of
from ptxvm.analysis.symbols import Variable
from ptxvm.dataclass import dataclass
from ptxvm.isa.model import Decoded, Problem
from ptxvm.isa.operand_types import Shape
from ptxvm.syntax import tree

REGISTERS = frozenset("pred b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f16 f16x2 f32 f64".split())
"""The types that a register may be declared with (PTX 5.2.2); others are held as bits (PTX 5.2.3)."""

OPAQUE = {"texture": "texref", "surface": "surfref"}
"""The type of what the operand `a` names, by the family of the instruction (PTX 5.3)."""

ANY, ADDRESS = Type.named["b32"], Type.named["u64"]


@dataclass(slots=True)
class Names:
    """What the names of an instruction stand for.

    Compilers write `%r1` for registers, so that a bare name is a variable; the manual writes `d` (`bare`).
    """

    bare: bool = field(default=False, kw_only=True)
    registers: dict[str, Type] = field(default_factory=dict)
    vectors: set[str] = field(default_factory=set)
    variables: dict[str, Space] = field(default_factory=dict)
    opaque: dict[str, str] = field(default_factory=dict)  # textures and surfaces, each with its type
    labels: list[str] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    prototypes: list[str] = field(default_factory=list)
    arguments: tuple[list[Type], list[Type]] = field(default_factory=lambda: ([], []))  # results and parameters of a call

    @property
    def code(self) -> dict[str, list[str]]:
        """The names that are not of values, by the mark of the operand where they stand; the first mark counts."""
        return {
            "label": self.labels,
            "prototype": self.prototypes,
            "table": self.tables,
            "function": self.functions,
        }

    def module_lines(self) -> Iterator[str]:
        """The declarations that stand before the kernel."""
        for name, space in self.variables.items():
            if space not in (Space.LOCAL, Space.PARAM):
                yield f".{space} .align 16 .b8 {name}[256];"
        for name, type in self.opaque.items():
            yield f".global .{type} {name};"
        for name in self.functions:
            yield f".extern .func {self._signature(name)};"

    def parameters(self) -> str:
        """Those of the kernel."""
        return ", ".join(f".param .align 16 .b8 {name}[256]" for name, space in self.variables.items() if space is Space.PARAM)

    def body_lines(self) -> Iterator[str]:
        """The declarations that stand in its body, before the instruction."""
        for name, type in self.registers.items():
            yield f".reg {'.v4 ' if name in self.vectors else ''}.{type.name} {name};"
        for name, space in self.variables.items():
            if space is Space.LOCAL:
                yield f".local .align 16 .b8 {name}[256];"
        for name in self.tables:
            yield f"{name}: .branchtargets {name}_target;"
        for name in self.prototypes:
            yield f"{name}: .callprototype {self._signature('_')};"

    def labels_after(self) -> Iterator[str]:
        """The labels, which stand behind the instruction."""
        yield from (f"{name}:" for name in self.labels)
        yield from (f"{name}_target:" for name in self.tables)

    def _signature(self, name: str) -> str:
        """A function with as many results and parameters as the call has."""
        results, parameters = (
            ", ".join(f".reg .{type.name} {kind}{n}" for n, type in enumerate(group))
            for kind, group in zip(("result", "parameter"), self.arguments, strict=True)
        )
        return f"{f'({results}) ' if results else ''}{name} ({parameters})"


def infer(node: tree.Instruction, decoded: Decoded) -> Names | None:
    """What the names stand for where the instruction takes this form; None where the operands do not fit it."""
    names = unknown(node)
    found = Names(vectors={n.text for n in names if n.component in VECTOR_PARTS})
    found.bare = not any(n.text.startswith("%") for n in names) and not any(isinstance(o, tree.Index) for o in node.operands)
    provisional = NameScope(registers=[])
    for name in names:
        provisional.declare(provisional.new_register(name.text, ANY))
    for indexed in (operand for operand in node.operands if isinstance(operand, tree.Index)):
        provisional.declare(Variable(indexed.name.text, Space.GLOBAL, ANY, shape=Shape("variable", ANY)))
    shapes = [shape_of(operand, provisional) for operand in node.operands]
    placed = match_operands(decoded.form, decoded.opcode, shapes, lambda: decoded.form.text)
    if isinstance(placed, Problem):
        return None
    for operand, path in placed.at.items():
        _operand(found, decoded, operand, follow(node.operands, path))
    if node.guard is not None:
        found.registers.setdefault(node.guard.name.text, Type.named["pred"])
    return found


def anything(node: tree.Instruction) -> Names:
    """Declarations for all names, where no form is known: the instruction is wrong, and not for lack of them."""
    guard = [node.guard.name.text] if node.guard is not None else []
    names = dict.fromkeys([n.text for n in unknown(node)], ANY)
    return Names(registers=names | dict.fromkeys(guard, Type.named["pred"]))


def unknown(node: tree.Instruction) -> list[tree.Name]:
    """The names in the operands that have to be declared."""
    names = (name for operand in node.operands for name in names_in(operand))
    return [name for name in names if not predefined(name)]


def predefined(name: tree.Name) -> bool:
    """Is it the sink, a special register or `WARP_SZ`, which are never declared?"""
    return name.text in ("_", "WARP_SZ") or special(name.text, name.component) is not None


def _operand(found: Names, decoded: Decoded, operand: str, node: tree.Operand) -> None:
    """Enter the names of one operand."""
    spec, type = decoded.operand_type(operand), decoded.type_of(operand)
    code = next((names for mark, names in found.code.items() if mark in spec.marks), None)
    if code is not None and type is None and isinstance(node, tree.Name):
        code.append(node.text)
        return
    if isinstance(node, tree.Group):
        _arguments(found, node, found.arguments[operand == "args"])
        return
    if "untyped" in spec.marks and type is not None:
        type = type.as_bits
    if isinstance(node, tree.Vector) and "split" in spec.marks and type is not None:
        type = Type.named.get(f"b{type.bits // len(node.items)}", type)
    address = isinstance(node, tree.Address)
    constant = isinstance(node, tree.Binary | tree.Call | tree.Index)
    may_be_variable = (
        not found.bare and (address or constant or "plain" not in spec.marks) and operand not in decoded.destinations()
    )
    for name in names_in(node):
        if predefined(name):
            continue
        if may_be_variable and not name.text.startswith("%") and operand == "a" and decoded.of.family in OPAQUE:
            found.opaque.setdefault(name.text, OPAQUE[decoded.of.family])
        elif may_be_variable and not name.text.startswith("%"):
            found.variables.setdefault(name.text, _space(decoded))
        else:
            found.registers.setdefault(name.text, _address(decoded) if address else register_type(type or ANY))


def _address(decoded: Decoded) -> Type:
    """The type of a register with an address: tensor memory has addresses of 32 bits (PTX 9.7.16.1)."""
    return ANY if "tmem" in decoded.of.effects else ADDRESS


def _arguments(found: Names, group: tree.Group, kinds: list[Type]) -> None:
    """The arguments or results of a call: their types are those that the function is given."""
    for item in group.items:
        if isinstance(item, tree.Name) and not predefined(item):
            found.registers.setdefault(item.text, ANY)
        kinds.append(ANY)


def register_type(type: Type) -> Type:
    """The type of a register that holds a value of this one."""
    if type.name in REGISTERS:
        return type
    return Type.named[f"b{max(8, type.bits)}"]


def _space(decoded: Decoded) -> Space:
    """The state space of a variable that the instruction names: its own, or `.global`."""
    space = Space(decoded.ss or Space.GLOBAL).window if "ss" in decoded.of.modifiers else Space.GLOBAL
    return space if space in (Space.GLOBAL, Space.SHARED, Space.LOCAL, Space.CONST, Space.PARAM) else Space.GLOBAL

"""The instructions of the catalog that are functions of registers, as a random kernel writes them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import isqrt

from ptxvm.algebra.types import Type
from ptxvm.dataclass import dataclass
from ptxvm.isa.catalog import load_catalog
from ptxvm.isa.model import ISA, Decoded, Instruction
from ptxvm.isa.notation import Form
from ptxvm.isa.operand_types import Shape
from ptxvm.isa.targets import Target, gives

load_catalog()

VERSION, TARGET = (9, 0), Target(100, "a")
HELD = {"r": "b32", "d": "b64", "f": "f32", "g": "f64", "h": "b16", "p": "pred"}  # what registers are declared as
OPEN = {"copysign"}  # shows the sign of a NaN of f64, which is open


@dataclass(frozen=True, eq=False)
class Variant:
    """A legal variant."""

    of: Decoded

    @property
    def form(self) -> Form:
        """Its syntax line."""
        return self.of.form

    @property
    def mnemonic(self) -> str:
        """The head."""
        return self.of.mnemonic

    @property
    def sources(self) -> tuple[str, ...]:
        """The operands that it reads."""
        return self.of.of.sources

    @cache  # noqa: B019 - of the cases that are kept anyway
    def letters(self, name: str) -> str:
        """The letters of the registers that may stand for an operand, one by one; none where no register may."""
        found, i = self.held(name), self.of
        if len(found) == 1 or not i.shapes:
            return found
        wider = {letter: {**i.shapes, name: Shape("register", Type.named[HELD[letter]])} for letter in found}
        return "".join(
            letter for letter in found if not Decoded(i.of, i.form, i.bound, wider[letter], i.version, i.target).problems()
        )

    def held(self, name: str) -> str:
        """The letters of the registers that hold its type, the narrowest first."""
        return letters_of(self.of.type_of(name), self.of.operand_type(name).marks)

    def constant(self, name: str) -> bool:
        """Is it a constant always?"""
        return "imm" in self.of.operand_type(name).marks

    def takes_constants(self, name: str) -> bool:
        """May a constant stand there?"""
        type, marks = self.of.type_of(name), self.of.operand_type(name).marks
        whole = type is not None and type.bits == 32 and not type.is_packed
        return whole and not marks & {"reg", "untyped", "wide"}

    def allows(self, constants: Mapping[str, int]) -> bool:
        """May these constants stand for operands?"""
        integers = {name: Shape("integer", value=value) for name, value in constants.items()}
        i = self.of
        return not Decoded(i.of, i.form, i.bound, {**i.shapes, **integers}, i.version, i.target).problems()

    def uses(self, letters: frozenset[str]) -> bool:
        """Can it be written with those registers?"""
        needed = [n for o in self.form.operands if not o.optional for n in o.names]
        return all(self.constant(n) or (self.letters(n) and set(self.letters(n)) <= letters) for n in needed)


def checkable(instruction: Instruction) -> bool:
    """Is it a function of single values (and the carry), with a meaning and a result?"""
    plain = all(not o.items and not o.address and not o.group for f in instruction.forms for o in f.operands)
    scalar = not any({"split", "any", "label"} & spec.marks for spec in instruction.types.values())
    results = {n for f in instruction.forms for o in f.operands for n in o.names} - {*instruction.sources}
    return instruction.executes and not instruction.effects - {"cc"} and plain and scalar and bool(results)


@cache
def letters_of(type: Type | None, marks: frozenset[str]) -> str:
    """The letters of the registers that hold a type, the narrowest first."""
    if type is None or type.bits > 64:
        return ""
    if type.kind == "p":
        return "p"
    if type.is_float and type.bits >= 32 and not type.is_packed:
        return "f" if type.bits == 32 else "g"
    if type.bits < 32 and "wide" in marks and type.is_int:
        return "hr" if type.bits <= 16 else "r"
    return {16: "h", 32: "r", 64: "d"}.get(type.bits, "")


@cache
def shape_of(type: Type | None, marks: frozenset[str]) -> Shape:
    """The narrowest register that holds a type."""
    letters = letters_of(type, marks)
    return Shape("register", Type.named[HELD[letters[0]]] if letters else type)


@cache
def legal(instruction: Instruction) -> list[Variant]:
    """The variants that the target has, with the registers that we have."""
    found = []
    for i in instruction.variants():
        names = [n for o in i.form.operands if not o.optional for n in o.names]
        shapes = {n: shape_of(i.type_of(n), i.operand_type(n).marks) for n in names}
        there = Decoded(i.of, i.form, i.bound, shapes, VERSION, TARGET)
        if not there.problems() and all(gives(VERSION, n.version) and n.met_by(TARGET) for _, n in there.requirements()):
            found.append(Variant(there))
    return found


@cache
def variants_of(instruction: Instruction, letters: frozenset[str]) -> list[Variant]:
    """Those that can be written with some registers."""
    return [each for each in legal(instruction) if each.uses(letters)]


@cache
def instructions(letters: frozenset[str], *, carry: bool) -> list[Instruction]:
    """The instructions that have such variants; those with the carry, which does not outlive a call, only where asked for."""
    some = [i for i in ISA.instructions if checkable(i) and i.name not in OPEN and (carry or "cc" not in i.effects)]
    return [i for i in some if any(each.uses(letters) for each in legal(i))]


@cache
def weighted(letters: frozenset[str], *, carry: bool) -> list[Instruction]:
    """The same, those with many variants several times: the types of a conversion are as many instructions."""
    return [each for each in instructions(letters, carry=carry) for _ in range(isqrt(len(variants_of(each, letters))))]

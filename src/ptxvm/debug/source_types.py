"""Types of a source language, as DWARF describes them: numbers, pointers, arrays and structures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TypeAlias

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type
from ptxvm.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Number:
    """An integer, a float or an enumeration: a type of PTX, and the names of the values of an enumeration."""

    type: Type
    names: Mapping[int, str] = field(default_factory=dict, compare=False)

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.type.bytes


@dataclass(frozen=True, slots=True)
class Pointer:
    """An address of something; `target` is None where that has no type, as of `void*`.

    It is a generic one, but for what `&` gives of a variable in another space.
    """

    target: SourceType | None
    size: int = 8
    is_reference: bool = False
    space: Space = Space.GENERIC


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """So many elements; 0 of an array without a bound."""

    element: SourceType
    count: int

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.count * self.element.size


@dataclass(slots=True)
class Structure:
    """A structure, a class or a union: its members, with their offsets in bytes; a pointer in it may lead back to it."""

    name: str
    size: int
    members: dict[str, tuple[int, SourceType]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BitField:
    """A member of `width` bits, of which the lowest is number `first` of an integer in memory, its `storage`."""

    number: Number
    storage: Type
    first: int
    width: int

    @property
    def size(self) -> int:
        """The bytes of its storage."""
        return self.storage.bytes


SourceType: TypeAlias = Number | Pointer | ArrayOf | Structure | BitField


def spelled(type: SourceType | None) -> str:
    """A type as C++ writes it, with the numbers of PTX: `.f32*`, `Point[4][2]`; None is `void`."""
    known, behind, dimensions = type, "", ""
    while isinstance(known, Pointer | ArrayOf):
        if isinstance(known, Pointer):
            behind, dimensions = f"{'&' if known.is_reference else '*'}{dimensions}{behind}", ""
            known = known.target
        else:
            dimensions += f"[{known.count or ''}]"
            known = known.element
    match known:
        case Number():
            name = str(known.type)
        case BitField():
            name = f"{known.number.type}:{known.width}"
        case Structure():
            name = known.name or "struct"
        case _:
            name = "void"
    return f"{name}{dimensions}{behind}"


@dataclass(frozen=True, slots=True)
class InRegister:
    """A variable is the value of a register of a name."""

    name: str


@dataclass(frozen=True, slots=True)
class InMemory:
    """A variable lies at an offset in bytes of a variable of the PTX."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class SourceVariable:
    """A variable of the source: its type, and where it is; None where it has been optimised away."""

    type: SourceType
    location: InRegister | InMemory | None
    is_local: bool = True


SourceVariables: TypeAlias = Mapping[str, SourceVariable]
"""The variables that are in sight at a place, by name."""

__all__ = [
    "ArrayOf", "BitField", "InMemory", "InRegister", "Number", "Pointer", "SourceType", "SourceVariable", "SourceVariables",
    "Structure", "spelled",
]  # fmt: skip

"""The port `tex` for every engine: each instruction is a request to the texture unit of the machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from ptxvm.algebra.ports import FetchOptions
from ptxvm.algebra.types import Type, pred, u32
from ptxvm.algebra.value import Value
from ptxvm.machine import texture_unit
from ptxvm.machine.texture_sampling import Fetch
from ptxvm.machine.texture_surface import SurfaceAccess


def as_list(value: Value | None) -> list[Value] | None:
    """A scalar operand as a list for the texture unit; None where the instruction does not have it."""
    return None if value is None else [value]


class Textures:
    """Texture instructions as requests; an engine supplies `ask` and the algebra."""

    alg: Any  # the engine's own

    def ask(self, work: texture_unit.Work, types: Sequence[Type], **operands: Sequence[Value] | None) -> list[Value]:
        """The results of the texture unit for some operands."""
        raise NotImplementedError

    def fetch(
        self, geometry: str, handle: Value, coordinates: Sequence[Value], **how: Unpack[FetchOptions]
    ) -> tuple[list[Value], Value]:
        """A look-up; all texels are resident."""
        kind = Fetch(geometry, bool(how.get("integers")), how.get("component"))
        first, second = how.get("gradients") or (None, None)
        texel = self.ask(
            texture_unit.LookUp(kind), [u32] * 4, handle=[handle], coordinates=coordinates, dPdx=first, dPdy=second,
            offset=how.get("offset"), sampler=as_list(how.get("sampler")), lod=as_list(how.get("lod")),
            compare=as_list(how.get("compare")),
        )  # fmt: skip
        return texel, Value(self.alg, pred, self.alg.const(pred, x=True))

    def query(self, kind: str, attribute: str, handle: Value, level: Value | None = None) -> Value:
        """An attribute of a texture, sampler or surface."""
        level_of = None if level is None else [level]
        return self.ask(texture_unit.query(kind, attribute), [u32], handle=[handle], level=level_of)[0]

    def is_a(self, kind: str, handle: Value) -> Value:
        """Is the handle of this kind?"""
        return self.ask(texture_unit.tell_kind(kind), [pred], handle=[handle])[0]

    def load(
        self, geometry: str, type: Type, count: int, handle: Value, coordinates: Sequence[Value], *, clamp: str
    ) -> list[Value]:
        """A gather from a surface."""
        work = texture_unit.load(SurfaceAccess(geometry, clamp, type, count))
        found = self.ask(work, [type.as_unsigned] * count, handle=[handle], coordinates=coordinates)
        return [value.view(type) for value in found]

    def store(
        self, geometry: str, type: Type, handle: Value, coordinates: Sequence[Value], values: Sequence[Value], *,
        clamp: str, formatted: bool = False,
    ) -> None:  # fmt: skip
        """A scatter to a surface."""
        work = texture_unit.store(SurfaceAccess(geometry, clamp, type, len(values), formatted))
        self.ask(work, [], handle=[handle], coordinates=coordinates, values=values)

    def reduce(
        self, operation: str, geometry: str, type: Type, handle: Value, coordinates: Sequence[Value], value: Value, *,
        clamp: str, formatted: bool = False,
    ) -> None:  # fmt: skip
        """An update of a surface."""
        work = texture_unit.reduce(operation, SurfaceAccess(geometry, clamp, type, 1, formatted))
        self.ask(work, [], handle=[handle], coordinates=coordinates, values=[value])

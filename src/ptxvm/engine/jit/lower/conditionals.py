"""Conditionals within a node: code under a condition that all lanes share, after which registers merge."""

from __future__ import annotations

from collections.abc import Callable

from ptxvm.algebra.types import Type, pred
from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound
from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.ir.lane_values import Affine, Raw, Varying, scalar_type, text
from ptxvm.engine.jit.node.operands import Operands
from ptxvm.engine.jit.node.register_shapes import CARRY, Key


@dataclass(frozen=True, slots=True)
class _Arm:
    """One arm of a conditional: its lines, the values that it shares (`outer`: those before it), and registers."""

    lines: list[str]
    memo: dict[str, str]
    outer: dict[str, str]
    current: dict[Key, Value]
    dirty: bool


def _same_terms(a: Raw, b: Raw) -> bool:
    """Do two values differ by a scalar?"""
    return isinstance(a, Affine) and isinstance(b, Affine) and a.terms == b.terms


class Conditionals(Operands):
    """A builder of a node that writes conditionals."""

    def guard_of(self, bound: Bound) -> Raw | None:
        """The lanes that run an instruction, of the active ones; None for all."""
        guard = bound.guard()
        if guard is None:
            return self.region_guard
        value = self.slot(self.key(guard[0]), pred)
        raw: Raw = (~value).raw if guard[1] else value.raw
        return raw if self.region_guard is None else self.alg.integer("and", pred, raw, self.region_guard)

    def conditional(
        self, condition: str, meaning: Callable[[], None], otherwise: Callable[[], None] = lambda: None, kept: int = -1
    ) -> None:
        """Write an effect under a uniform condition, and another where it is false.

        The registers `kept` merge after them; what the others hold is not read again.
        """
        code, before = self.code, dict(self.current)
        labels, merge = (code.label(), code.label()), code.label()
        code.branch(condition, *labels)
        arms = [self._arm(label, write, before) for label, write in zip(labels, (meaning, otherwise), strict=True)]
        self.dirty = any(arm.dirty for arm in arms)
        types = {
            k: v.type
            for arm in arms
            for k, v in arm.current.items()
            if k in self.written and before.get(k) is not v and (k == CARRY or self.kernel.is_mark(k) or kept >> k[0] & 1)
        }
        values = [{k: arm.current[k] if k in arm.current else self._load(k, t) for k, t in types.items()} for arm in arms]
        bases = {k for k in types if _same_terms(*(found[k].raw for found in values))}
        incoming: list[tuple[dict[Key, str], str]] = []
        for arm, found in zip(arms, values, strict=True):
            code.lines += arm.lines
            code.memo = arm.memo
            names = {k: self._single(v, scalar=k in bases) for k, v in found.items()}
            names |= {k: code.mask_bits(names[k]) for k in types if self._as_bits(k, types, bases)}
            done = code.label()
            code.jump(done)
            code.block(done)
            code.jump(merge)
            incoming.append((names, done))
        code.block(merge)
        code.memo, self.current = arms[0].outer, before
        merged = {}
        for key, type in types.items():
            llvm = scalar_type(type) if key in bases else self.alg.vector_type(type)
            llvm = f"i{code.width}" if self._as_bits(key, types, bases) else llvm
            ends = ", ".join(f"[ {names[key]}, %{done} ]" for names, done in incoming)
            merged[key] = code.emit(f"phi {llvm} {ends}", pure=False)
        for key, name in merged.items():
            first = values[0][key].raw
            raw: Raw = Affine(name, first.terms) if isinstance(first, Affine) and key in bases else Varying(name)
            if self._as_bits(key, types, bases):
                raw = Varying(code.all_lanes(name))
            self.current[key] = Value(self.alg, types[key], raw)

    @staticmethod
    def _as_bits(key: Key, types: dict[Key, Type], bases: set[Key]) -> bool:
        """Does a register merge as an integer?  LLVM takes predicates that cross blocks apart, lane by lane."""
        return types[key] is pred and key not in bases

    def _arm(self, label: str, write: Callable[[], None], before: dict[Key, Value]) -> _Arm:
        """Write one arm of a conditional, whose lines are taken out of the code."""
        code, start, outer = self.code, len(self.code.lines), self.code.memo
        nested, dirty = self.nested, self.dirty
        code.memo, self.current, self.nested = dict(outer), dict(before), True
        code.block(label)
        write()
        made = _Arm(code.lines[start:], code.memo, outer, self.current, self.dirty)
        del code.lines[start:]
        code.memo, self.nested, self.dirty = outer, nested, dirty
        return made

    def _single(self, value: Value, *, scalar: bool) -> str:
        raw = self.alg.tight(value.type, value.raw)
        if scalar and isinstance(raw, Affine):
            return text(scalar_type(value.type), raw.base)
        return self.alg.vector(value.type, raw)

"""Instrumentation: beside each value the algebra follows a mask of its undefined bits, and a tag for its provenance.

Both are arrays over lanes, or one scalar for all.  The rules follow the operations of a meaning, whatever the instruction.

**Tags.**  A tag is NUMBER (0), the number of the object that the value is an address of, or LOST for a value that was computed
from addresses and is none.  An address plus or minus a number is an address of the same object, the difference of two
addresses of one object is a number, and a product or a mixture of addresses is LOST.

**Undefined bits**, as in Valgrind's memcheck and LLVM's MemorySanitizer.  A mask is held as the bits of the value's type.
Moves (views, changes of size, shifts, selections) move the mask; `and` with a defined 0 and `or` with a defined 1 give a
defined bit; of sums, differences and products the bits from the lowest undefined one up are undefined; two integers of
which a defined bit differs are unequal.  Any other operation makes all bits undefined where any bit of an operand is.
Beside the mask goes the number of the value's origin (`origins`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from ptxvm.algebra.types import Type, pred
from ptxvm.algebra.value import Rounding, Value
from ptxvm.analysis.provenance import WORD
from ptxvm.dataclass import dataclass
from ptxvm.engine.interp import arrays, primitives
from ptxvm.engine.interp.trace import TraceAlgebra, TracedCode
from ptxvm.machine.per_lane import PerLane

NUMBER, LOST = np.int64(0), np.int64(-1)
NO_ORIGIN = np.int32(0)
JOINING = frozenset({"add", "and", "or"})
SHIFTS = frozenset({"shl", "shr"})
SIGNS = frozenset({"negate", "magnitude"})
CARRYING = frozenset({"add", "sub", "mul"})


# ── tags ────────────────────────────────────────────────────────────────────────────────


def joined(a: PerLane, b: PerLane) -> PerLane:
    """The tag of a sum: the tag of the address, where the other operand is a number."""
    return np.where(b == 0, a, np.where(a == 0, b, LOST))[()]


def apart(a: PerLane, b: PerLane) -> PerLane:
    """The tag of a difference."""
    return np.where(b == 0, a, np.where((a == b) & (a > 0), NUMBER, LOST))[()]


def lost(*tags: PerLane) -> PerLane:
    """The tag of a result that is no address, whatever its operands are."""
    found: PerLane = False
    for tag in tags:
        found = found | (tag != 0)
    return np.where(found, LOST, NUMBER)[()]


# ── masks of undefined bits ─────────────────────────────────────────────────────────────


def some(mask: PerLane) -> PerLane:
    """Is any bit undefined?"""
    if mask.dtype == arrays.B128:
        return (mask["lo"] | mask["hi"]) != 0
    return mask if mask.dtype == np.bool_ else mask != 0


def smeared(none: PerLane, every: PerLane, *masks: PerLane) -> PerLane:
    """The mask of a result all of whose bits depend on all bits of the operands."""
    found: PerLane = False
    for mask in masks:
        found = found | some(mask)
    made: PerLane = np.where(found, every, none)
    return made[()]


def first(mask: PerLane, origin: PerLane, other: PerLane) -> PerLane:
    """The origin of the first operand where it has undefined bits, else the other one."""
    made: PerLane = np.where(some(mask), origin, other)
    return made[()]


def upwards(mask: PerLane) -> PerLane:
    """The lowest undefined bit, and those above it: the ones that a carry can reach."""
    return mask | (~mask + mask.dtype.type(1))


def doubtful(mask: PerLane, difference: PerLane) -> PerLane:
    """Is it undefined whether two values are equal: is no defined bit different?"""
    return (mask != 0) & ((difference & ~mask) == 0)


@dataclass(frozen=True, slots=True)
class Undefined:
    """The undefined bits of a value: variables for the masks and origins of its sources.

    An `exact` one has one source, whose mask is the value's own; any other value is wholly undefined where a source has
    undefined bits.
    """

    sources: tuple[tuple[str, str], ...]
    exact: bool = True


# ── the algebra ─────────────────────────────────────────────────────────────────────────


class ShadowAlgebra(TraceAlgebra):
    """Writes code for the shadows beside the code for the values.

    `tags` and `unset` map variables of the code to their shadows; a variable in neither is a defined number.
    """

    def __init__(self, code: TracedCode) -> None:
        super().__init__(code)
        self.tags: dict[str, str] = {}
        self.unset: dict[str, Undefined] = {}
        self.constants: dict[str, object] = {}

    # ── what an operation makes of shadows ──────────────────────────────────────────────

    def tag(self, raw: str) -> str:
        """The variable for the tag of a value."""
        return self.tags.get(raw) or self.code.refer(NUMBER)

    def mask(self, type: Type, raw: str) -> str:
        """The variable for the undefined bits of a value of a type."""
        found = self.unset.get(raw)
        if found is None:
            return self.const(type.as_bits, 0)
        if not found.exact:
            none, every = self.const(type.as_bits, 0), self.const(type.as_bits, -1 if type is not pred else 1)
            made = self.apply(smeared, none, every, *(mask for mask, _ in found.sources))
            found = self.unset[raw] = Undefined(((made, self._origin_of(found.sources)),))
        return found.sources[0][0]

    def origin(self, raw: str) -> str:
        """The variable for the origin of the undefined bits of a value."""
        found = self.unset.get(raw)
        return self._origin_of(found.sources) if found is not None else self.code.refer(NO_ORIGIN)

    def _origin_of(self, sources: Iterable[tuple[str, str]]) -> str:
        made = ""
        for mask, origin in reversed(list(sources)):
            made = self.apply(first, mask, origin, made) if made and made != origin else origin
        return made

    def undefine(self, raw: str, mask: str, origin: str) -> None:
        """Give a value its undefined bits."""
        self.unset[raw] = Undefined(((mask, origin),))

    def combined(self, type: Type, raw: str, *args: str) -> str:
        """A result that is no address and whose bits depend on all bits of the operands."""
        self.smear(raw, *args)
        self.forget(type, raw, *args)
        return raw

    def smear(self, raw: str, *args: str) -> None:
        """All bits of a result are undefined where one of an operand is."""
        sources = {source: None for each in args if each in self.unset for source in self.unset[each].sources}
        if sources and raw not in args:
            self.unset[raw] = Undefined(tuple(sources), exact=False)

    def forget(self, type: Type, raw: str, *args: str) -> None:
        """A result that is an address of no known object."""
        found = [self.tags[each] for each in args if each in self.tags]
        if found and type is not pred and raw not in args:
            self.tags[raw] = self.apply(lost, *found)

    # ── the operations ──────────────────────────────────────────────────────────────────

    def integer(self, op: str, type: Type, a: str, b: str) -> str:
        """Operations on integers and predicates."""
        raw = super().integer(op, type, a, b)
        self._fold(raw, primitives.integer(op, type), a, b)
        if a in self.tags or b in self.tags:
            self._integer_tag(op, type, raw, a, b)
        if a in self.unset or b in self.unset:
            self._integer_unset(op, type, raw, a, b)
        return raw

    def _integer_tag(self, op: str, type: Type, raw: str, a: str, b: str) -> None:
        if type is pred:
            return
        here = [each for each in (a, b) if each in self.tags]
        if type.bits < WORD or not self._keeps(op, b, here, a):
            self.forget(type, raw, a, b)
        elif len(here) == 1:
            self.tags[raw] = self.tags[here[0]]
        else:
            self.tags[raw] = self.apply(joined if op in JOINING else apart, self.tags[a], self.tags[b])

    def _keeps(self, op: str, b: str, here: list[str], a: str) -> bool:
        """May the result be an address of the same object?"""
        if op in SHIFTS:
            return self.known(b) == 0
        return op in JOINING or (op == "sub" and a in here)

    def _integer_unset(self, op: str, type: Type, raw: str, a: str, b: str) -> None:
        """The undefined bits of a result; one bit is held exactly, a word only where the operands are."""
        if raw in (a, b) or (a == b and op in ("xor", "sub")):
            return
        exact = all(each not in self.unset or self.unset[each].exact for each in (a, b))
        if op in ("and", "or", "xor") and (exact or type is pred):
            made = self._logic(op, type, a, b)
        elif not exact or type is pred:
            made = ""
        elif op in CARRYING and type.as_bits.bits <= WORD:
            made = self.apply(upwards, self._either(type, a, b))
        elif op in SHIFTS and b not in self.unset:
            moved = super().integer(op, type, self._view(type.as_bits, type, self.mask(type, a)), b)
            made = self._view(type, type.as_bits, moved)
        else:
            made = ""
        if made:
            self.undefine(raw, made, self._origin_of(source for each in (a, b) for source in self._sources(each)))
        else:
            self.smear(raw, a, b)

    def _logic(self, op: str, type: Type, a: str, b: str) -> str:
        """A bit is defined where both are, and where one of them alone decides it."""
        bits, mine, theirs = type.as_bits, self.mask(type, a), self.mask(type, b)
        if op == "xor":
            return self._either(type, a, b)
        decides = [self._view(type, bits, each) for each in (a, b)]
        if op == "or":
            every = self.const(bits, 1 if bits is pred else -1)
            decides = [self._bits("xor", bits, each, every) for each in decides]
        if b not in self.unset:
            return self._bits("and", bits, mine, decides[1])
        if a not in self.unset:
            return self._bits("and", bits, theirs, decides[0])
        both = self._bits("and", bits, mine, self._bits("or", bits, theirs, decides[1]))
        return self._bits("or", bits, both, self._bits("and", bits, theirs, decides[0]))

    def _either(self, type: Type, a: str, b: str) -> str:
        """The bits that are undefined in one of two operands."""
        masks = [self.mask(type, each) for each in dict.fromkeys((a, b)) if each in self.unset]
        return masks[0] if len(masks) == 1 else self._bits("or", type.as_bits, *masks)

    def _bits(self, op: str, bits: Type, a: str, b: str) -> str:
        return super().integer(op, bits, a, b)

    def _view(self, source: Type, target: Type, a: str) -> str:
        """The same bits: a mask as a value of a type, or a value as its bits."""
        return super().cast("view", source, target, a, "rn") if source is not target else a

    def _sources(self, raw: str) -> tuple[tuple[str, str], ...]:
        found = self.unset.get(raw)
        return found.sources if found is not None else ()

    def _fold(self, raw: str, function: Callable[..., object] | None, *args: str) -> None:
        """Record a result that is computed from constants, as amounts of shifts are, as a constant."""
        values = [self.constant(each) for each in args]
        if function is not None and all(value is not None for value in values):
            with np.errstate(all="ignore"):
                self.constants[raw] = function(*values)

    def constant(self, raw: str) -> PerLane:
        """The value of a constant, as it is represented."""
        value = self.constants.get(raw)
        return self.code.names.get(raw) if value is None else value

    def known(self, raw: str) -> int | None:
        """The value of a constant integer or predicate."""
        value = self.constant(raw)
        if isinstance(value, np.void) and value.dtype == arrays.B128:
            return int(value["lo"]) | int(value["hi"]) << 64
        return int(value) if isinstance(value, np.integer | np.bool_) else None

    def select(self, type: Type, condition: str, a: str, b: str) -> str:
        """`a` where the condition holds, else `b`; so are the shadows."""
        if (decided := self.known(condition)) is not None:
            return a if decided else b
        raw = super().select(type, condition, a, b)
        if a in self.tags or b in self.tags:
            self.tags[raw] = self.apply(arrays.select, condition, self.tag(a), self.tag(b))
        if a in self.unset or b in self.unset or condition in self.unset:
            self._select_unset(type, raw, condition, a, b)
        return raw

    def _select_unset(self, type: Type, raw: str, condition: str, a: str, b: str) -> None:
        """The undefined bits of what is chosen; where the condition is undefined, those too in which the two differ."""
        if raw in (a, b):
            return
        chosen = self.apply(arrays.select, condition, self.mask(type, a), self.mask(type, b))
        origin = self.apply(arrays.select, condition, self.origin(a), self.origin(b))
        if condition in self.unset:
            bits, doubt = type.as_bits, self.mask(pred, condition)
            unlike = self._bits("xor", bits, self._view(type, bits, a), self._view(type, bits, b))
            if a in self.unset or b in self.unset:
                unlike = self._bits("or", bits, unlike, self._either(type, a, b))
            chosen = self.apply(arrays.select, doubt, unlike, chosen)
            origin = self.apply(arrays.select, doubt, self.origin(condition), origin)
        self.undefine(raw, chosen, origin)

    def cast(self, op: str, source: Type, target: Type, a: str, rounding: Rounding) -> str:
        """A view keeps the shadows; a resized value keeps the shadows of the bytes that stay."""
        raw = super().cast(op, source, target, a, rounding)
        self._fold(raw, primitives.cast(op, source, target, rounding), a)
        if raw == a or (a not in self.tags and a not in self.unset):
            return raw
        if op not in ("view", "resize"):
            return self.combined(target, raw, a)
        if a in self.tags:
            if target.bits >= WORD:
                self.tags[raw] = self.tags[a]
            else:
                self.forget(target, raw, a)
        if a in self.unset:
            self._cast_unset(op, source, target, raw, a)
        return raw

    def _cast_unset(self, op: str, source: Type, target: Type, raw: str, a: str) -> None:
        """A view keeps the undefined bits; a change of size truncates or extends their mask as it does the value."""
        if op == "view" or (not self.unset[a].exact and pred not in (source, target)):
            self.unset[raw] = self.unset[a]
            return
        mask = self._view(source.as_bits, source, self.mask(source, a))
        made = super().cast("resize", source, target, mask, "rn")
        self.undefine(raw, self._view(target, target.as_bits, made), self.origin(a))

    def bits(self, op: str, type: Type, a: str) -> str:
        """`popc clz reverse`."""
        raw = super().bits(op, type, a)
        if op == "reverse" and a in self.unset and self.unset[a].exact:
            mask = super().bits(op, type, self._view(type.as_bits, type, self.mask(type, a)))
            self.undefine(raw, self._view(type, type.as_bits, mask), self.origin(a))
            self.forget(type, raw, a)
            return raw
        return self.combined(type, raw, a)

    def floating(self, op: str, type: Type, rounding: Rounding, *args: str) -> str:
        """Correctly rounded arithmetic."""
        return self.combined(type, super().floating(op, type, rounding, *args), *args)

    def compare(self, op: str, type: Type, a: str, b: str) -> str:
        """A comparison; the result is a predicate."""
        raw = super().compare(op, type, a, b)
        self._fold(raw, primitives.compare(op, type), a, b)
        if a in self.unset or b in self.unset:
            self._compare_unset(op, type, raw, a, b)
        return raw

    def _compare_unset(self, op: str, type: Type, raw: str, a: str, b: str) -> None:
        exact = all(each not in self.unset or self.unset[each].exact for each in (a, b))
        whole = exact and not type.is_float and type is not pred and type.bits <= WORD
        if a == b and not type.is_float:
            return
        origin = self._origin_of(source for each in (a, b) for source in self._sources(each))
        if whole and op in ("eq", "ne"):
            bits = type.as_bits
            difference = self._bits("xor", bits, self._view(type, bits, a), self._view(type, bits, b))
            self.undefine(raw, self.apply(doubtful, self._either(type, a, b), difference), origin)
        elif whole and type.is_signed and op in ("lt", "ge") and self.known(b) == 0:
            sign = self._view(type.as_bits, type, self.mask(type, a))
            self.undefine(raw, super().compare("lt", type, sign, b), origin)
        else:
            self.combined(pred, raw, a, b)

    def derived(self, name: str, made: Value, a: Value) -> None:
        """The shadows of a derived operation: a change of the sign keeps the other bits."""
        if name in SIGNS and a.raw in self.unset:
            self.unset[made.raw] = self.unset[a.raw]
        else:
            self.combined(made.type, made.raw, a.raw)

    def round(self, mode: str, type: Type, a: str) -> str:
        """Round to an integral value."""
        return self.combined(type, super().round(mode, type, a), a)

    def lookup(self, type: Type, table: tuple[int, ...], index: str) -> str:
        """An entry of a table."""
        return self.combined(type, super().lookup(type, table, index), index)


def _followed(name: str) -> Callable[[Value], Value]:
    function = getattr(TraceAlgebra, f"derived_{name}")

    def call(a: Value) -> Value:
        alg, made = a.alg, function(a)
        if isinstance(alg, ShadowAlgebra):
            alg.derived(name, made, a)
        return made  # type: ignore[no-any-return]

    return call


for _name in primitives.DERIVED:
    setattr(ShadowAlgebra, f"derived_{_name}", staticmethod(_followed(_name)))

"""Registers that live across nodes, and their shapes: affine, uniform or varying.

They are stack slots (`alloca`) of the warp function, which LLVM promotes to SSA values.  A register has one shape in the
whole kernel, the join of the shapes of all its values, or two: where partial warps write a register that does not vary in
whole warps, they may have a copy of it (`split`), so that what they write does not widen its shape in whole warps.
"""

from __future__ import annotations

import enum
from dataclasses import field

from ptxvm.algebra.types import Type, pred
from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.ir.builder import Code
from ptxvm.engine.jit.ir.lane_values import (
    Affine,
    Pattern,
    Raw,
    Varying,
    from_lanes,
    known_lanes,
    scalar_type,
    text,
    trailing_zeros,
    vector_type,
)
from ptxvm.engine.jit.values.algebra import LlvmAlgebra

Key = tuple[int, int]  # the index of the register, and the element of a vector one
CARRY: Key = (-1, 0)
User = tuple[int, bool]
PARTIAL = 1 << 16  # added to the element in the key of the copy of a register for partial warps
TERMS = 16  # of an affine register: the record of a warp has room for no more than 31


class Urgency(enum.IntEnum):
    """When a stale node is written again: the lower, the sooner.

    SHAPE: an affine shape that the node reads has changed.  VARIES: a register that it reads turned out to vary; more of its
    registers may follow, so the node waits for them.  WRITES: it only writes the register, so its shapes stay the same.
    """

    SHAPE = 0
    VARIES = 1
    WRITES = 2


@dataclass(frozen=True, slots=True)
class RegisterShape:
    """The shape of a register: the constants of an affine value, with None for scalars of run time; or `varies`.

    A predicate whose lanes are known is affine, too, modulo 2: it has constants alone.
    """

    varies: bool = False
    base: int | None = None
    terms: tuple[tuple[Pattern, int | None], ...] = ()
    loose: bool = False
    bits: int = 0  # that the base may have

    @classmethod
    def of(cls, raw: Raw) -> RegisterShape:
        """The shape of a value."""
        if isinstance(raw, Varying):
            return cls(varies=True, loose=raw.loose)
        base = raw.base if isinstance(raw.base, int) else None
        terms = tuple((k, u if isinstance(u, int) else None) for k, u in raw.terms)
        return cls(base=base, terms=terms, loose=raw.loose, bits=raw.bits if base is None else base)

    def join(self, other: RegisterShape) -> RegisterShape:
        """The join: the least shape that covers both."""
        loose = self.loose and other.loose
        if self.varies or other.varies or [k for k, _ in self.terms] != [k for k, _ in other.terms]:
            return RegisterShape(varies=True, loose=loose)
        terms = tuple((k, u if u == v else None) for (k, u), (_, v) in zip(self.terms, other.terms, strict=True))
        base = self.base if self.base == other.base else None
        bits = self.bits
        if other.bits & ~bits:  # once only, since a loop may add bit after bit: from the lowest one upwards, any
            bits = -1 << trailing_zeros(bits | other.bits)
        return RegisterShape(base=base, terms=terms, loose=loose, bits=bits)


@dataclass(slots=True)
class Registers:
    """The shapes found so far, and the nodes that read and write each register.

    `stale` nodes must be written again, since a shape changed.  Without `affine` each register is uniform or varying.  With
    `recoverable` only such affine shapes are used whose scalars can be computed from the values of the lanes.  Partial warps
    may have copies of the registers in the mask `steady`; `copiers` are the nodes that copy registers to them where a warp
    diverges.
    """

    width: int
    affine: bool
    recoverable: bool
    steady: int = 0
    shapes: dict[Key, RegisterShape] = field(default_factory=dict)
    types: dict[Key, Type] = field(default_factory=dict)
    users: dict[Key, set[User]] = field(default_factory=dict)
    writers: dict[Key, set[User]] = field(default_factory=dict)
    blind: dict[Key, set[User]] = field(default_factory=dict)
    stale: list[tuple[User, Urgency]] = field(default_factory=list)
    split: set[Key] = field(default_factory=set)
    copiers: set[User] = field(default_factory=set)

    def load(self, key: Key, type: Type, into: list[str], code: Code, user: User) -> Raw:
        """Load a register, in lines of `into`."""
        key = self.own(key, full=user[1])
        self.users.setdefault(key, set()).add(user)
        self.types[key] = type
        shape = self.shapes.get(key)
        if shape is None:  # not written yet; the first write makes this node stale
            self.blind.setdefault(key, set()).add(user)
            return Affine(0)

        def read(llvm: str, part: str) -> str:
            name = code.name()
            into.append(f"  {name} = load {llvm}, ptr {slot_name(key, part)}, align {alignment(llvm)}")
            return name

        if shape.varies:
            return Varying(read(vector_type(type, self.width), "v"), loose=shape.loose)
        one = scalar_type(type)
        base = shape.base if shape.base is not None else read(one, "b")
        terms = tuple((k, u if u is not None else read(one, f"u{n}")) for n, (k, u) in enumerate(shape.terms))
        raw = Affine(base, terms, shape.loose, bits=shape.bits)
        return raw if type is not pred or not terms else from_lanes(pred, known_lanes(pred, raw, self.width) or ())

    def store(self, key: Key, type: Type, raw: Raw, alg: LlvmAlgebra, user: User) -> None:
        """Store a register, and widen its shape to that of the value."""
        if not user[1] and key != CARRY and self.steady >> key[0] & 1 and key not in self.split:
            self._split(key)
        self._store(self.own(key, full=user[1]), type, raw, alg, user)

    def _store(self, key: Key, type: Type, raw: Raw, alg: LlvmAlgebra, user: User) -> None:
        self.writers.setdefault(key, set()).add(user)
        self.types[key] = type
        raw = _as_affine(type, alg.lenient(type, raw))
        shape = self._widen(key, RegisterShape.of(raw), user)
        if raw.loose and not shape.loose:
            raw = alg.tight(type, raw)
        one = scalar_type(type)
        if shape.varies:
            llvm = vector_type(type, self.width)
            alg.code.run(f"store {llvm} {alg.vector(type, raw)}, ptr {slot_name(key, 'v')}, align {alignment(llvm)}")
            return
        if not isinstance(raw, Affine):
            raise TypeError(f"{raw} in a register of shape {shape}")
        if shape.base is None:
            alg.code.run(f"store {one} {text(one, raw.base)}, ptr {slot_name(key, 'b')}, align {alignment(one)}")
        for n, ((_, constant), (_, u)) in enumerate(zip(shape.terms, raw.terms, strict=True)):
            if constant is None:
                alg.code.run(f"store {one} {text(one, u)}, ptr {slot_name(key, f'u{n}')}, align {alignment(one)}")

    def _widen(self, key: Key, found: RegisterShape, user: User) -> RegisterShape:
        if found.terms and (
            not self.affine or len(found.terms) > TERMS or (self.recoverable and recoverable_lanes(found) is None)
        ):
            found = RegisterShape(varies=True, loose=found.loose)
        old = self.shapes.get(key)
        new = found if old is None else old.join(found)
        if self.types[key] is pred and new.terms and new.base is None:  # of predicates only constants are affine
            new = RegisterShape(varies=True)
        urgency = Urgency.VARIES if new.varies else Urgency.SHAPE
        for each in self.blind.pop(key, ()):
            self.stale.append((each, urgency))
        if new != old:
            self.shapes[key] = new
            if old is not None:
                for each in self.users.get(key, ()):
                    self.stale.append((each, urgency))
                for each in self.writers[key] - {user}:
                    self.stale.append((each, Urgency.WRITES))
        return new

    def initial(self, key: Key, type: Type) -> None:
        """A register that is read before it is written holds zero."""
        self.types[key] = type
        zero = RegisterShape(base=0)
        self.shapes[key] = self.shapes[key].join(zero) if key in self.shapes else zero

    @property
    def varying(self) -> int:
        """The registers that vary in whole warps, as far as is known, as a mask."""
        found = 0
        for key, shape in self.shapes.items():
            if shape.varies and key != CARRY and key == base_key(key):
                found |= 1 << key[0]
        return found

    # ── copies for partial warps ────────────────────────────────────────────────────────

    def own(self, key: Key, *, full: bool) -> Key:
        """The key of a register in whole warps, or in partial ones."""
        return (key[0], key[1] + PARTIAL) if not full and key in self.split else key

    def _split(self, key: Key) -> None:
        """Give partial warps a copy of a register, if it does not vary in whole ones."""
        if key not in self.shapes or self.shapes[key].varies:
            return
        self.split.add(key)
        copy = self.own(key, full=False)
        self.shapes[copy], self.types[copy] = self.shapes[key], self.types[key]
        for known in (self.users, self.writers):
            partial = {user for user in known.get(key, ()) if not user[1]}
            known[copy] = partial
            known.get(key, set()).difference_update(partial)
            self.stale += [(user, Urgency.SHAPE) for user in partial]
        self.stale += [(user, Urgency.WRITES) for user in self.copiers]

    def copy(self, needed: int, alg: LlvmAlgebra, user: User) -> None:
        """Copy the registers of a mask to those of partial warps, where a whole warp diverges."""
        self.copiers.add(user)
        for key in sorted(self.split):
            if needed >> key[0] & 1:
                type = self.types[key]
                raw = self.load(key, type, alg.code.lines, alg.code, user)
                self._store(self.own(key, full=False), type, raw, alg, user)

    def slots(self, *, full: bool | None = None) -> list[tuple[Key, str, str]]:
        """All stack slots, or those of whole or of partial warps: register, part and LLVM type."""
        found = []
        for key, shape in sorted(self.shapes.items()):
            if full is None or key == self.own(base_key(key), full=full):
                found += [(key, part, llvm) for part, llvm in self.parts(key, shape)]
        return found

    def parts(self, key: Key, shape: RegisterShape | None = None) -> list[tuple[str, str]]:
        """The stack slots of one register."""
        shape = shape or self.shapes[key]
        type = self.types[key]
        if shape.varies:
            return [("v", vector_type(type, self.width))]
        one = scalar_type(type)
        found = [("b", one)] if shape.base is None else []
        return found + [(f"u{n}", one) for n, (_, u) in enumerate(shape.terms) if u is None]

    def raw(self, key: Key, names: dict[str, str]) -> Raw:
        """The value of a register, of its loaded parts."""
        shape = self.shapes[key]
        if shape.varies:
            return Varying(names["v"], loose=shape.loose)
        base = shape.base if shape.base is not None else names["b"]
        terms = tuple((k, u if u is not None else names[f"u{n}"]) for n, (k, u) in enumerate(shape.terms))
        return Affine(base, terms, shape.loose)


def _as_affine(type: Type, raw: Raw) -> Raw:
    """A predicate whose lanes are known as an affine value modulo 2."""
    if type is not pred or not isinstance(raw, Varying) or raw.lanes is None:
        return raw
    first = raw.lanes[0]
    return Affine(first, ((tuple([n ^ first for n in raw.lanes]), 1),))


def base_key(key: Key) -> Key:
    """The key of the register that a copy for partial warps is of."""
    return key[0], key[1] % PARTIAL


def recoverable_lanes(shape: RegisterShape) -> list[int] | None:
    """For each term a lane where it has the factor 1 and all other terms 0, if lane 0 has the base; None if there is none."""
    patterns = [k for k, _ in shape.terms]
    if any(k[0] for k in patterns):
        return None
    found = []
    for own, pattern in enumerate(patterns):
        for lane in range(len(pattern)):
            if pattern[lane] == 1 and not any(k[lane] for n, k in enumerate(patterns) if n != own):
                found.append(lane)
                break
        else:
            return None
    return found


def slot_name(key: Key, part: str) -> str:
    """The name of a stack slot."""
    return f"%r{key[0] + 1}.{key[1]}.{part}"


def alignment(llvm: str) -> int:
    """The alignment of a slot."""
    return 64 if llvm.startswith("<") else 8


def size_of(llvm: str) -> int:
    """Bytes of a stack slot."""
    if llvm.startswith("<"):
        count, _, one = llvm[1:-1].partition(" x ")
        return int(count) * size_of(one) if one != "i1" else 64
    return {"float": 4, "double": 8}.get(llvm) or max(1, int(llvm[1:]) // 8)


def move_slot(code: Code, base: str, slot: str, llvm: str, at: int, *, save: bool) -> None:
    """Save a stack slot to the record, or restore it; predicates are stored as a mask."""
    where = code.emit(f"getelementptr i8, ptr {base}, i64 {at}")
    align = alignment(llvm)
    if save:
        value = code.emit(f"load {llvm}, ptr {slot}, align {align}", pure=False)
        if llvm == f"<{code.width} x i1>":
            code.run(f"store i{code.width} {code.mask_bits(value)}, ptr {where}, align 8")
        else:
            code.run(f"store {llvm} {value}, ptr {where}, align {align}")
    elif llvm == f"<{code.width} x i1>":
        bits = code.emit(f"load i{code.width}, ptr {where}, align 8", pure=False)
        code.run(f"store {llvm} {code.emit(f'bitcast i{code.width} {bits} to {llvm}')}, ptr {slot}, align {align}")
    else:
        value = code.emit(f"load {llvm}, ptr {where}, align {align}", pure=False)
        code.run(f"store {llvm} {value}, ptr {slot}, align {align}")

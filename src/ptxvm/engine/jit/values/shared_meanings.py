"""Instructions that are written out at length: what several of one form compute is a shared piece of code.

`prmt` with a selector in a register, or the upper half of a product, is dozens of lines of LLVM IR, and LLVM's instruction
selection looks through them from one instruction into the next: a hundred in a row would take it seconds.  Quick code calls
a function instead, which the best tier inlines.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import field, replace

from ptxvm.algebra.types import Type, pred
from ptxvm.algebra.value import Value
from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.ir.builder import MEANING, Code
from ptxvm.engine.jit.ir.lane_values import Affine, Raw, Varying, scalar_type, text
from ptxvm.engine.jit.values.algebra import LlvmAlgebra
from ptxvm.engine.operands import OperandValue
from ptxvm.named_tuple import NamedTuple

LINES = 10  # of LLVM IR from which an instruction is long ...
SEVERAL = 3  # ... and how many of a form stand in their places: a call would cost a short kernel more than it saves ...
MANY = 40  # ... but for those of so many lines, of which one does


class Given(NamedTuple):
    """An operand: its type, its value as a piece sees it, and the operand that the piece gets; None for a constant."""

    type: Type
    raw: Raw
    operand: str | None = None


class Result(NamedTuple):
    """A result: its type, whether it is a vector, or one value for all lanes, and whether a NaN of it may have any bits."""

    type: Type
    varies: bool
    loose: bool


@dataclass(slots=True)
class Form:
    """Instructions that differ in nothing but the names of their operands."""

    piece: str  # the name of theirs
    count: int = 0
    in_place: int = 0  # how many stand in their places
    results: list[Result] = field(default_factory=list)  # of the piece, where they are long
    single: bool = True  # they give a value, no tuple of values


class SharedMeanings:
    """The forms of the long instructions of a module that only compute."""

    def __init__(self) -> None:
        self.long: dict[Hashable, set[str]] = {}  # for a mnemonic, the kinds of operands with which an instruction was long
        self.forms: dict[tuple[object, ...], Form] = {}

    def result(
        self,
        alg: LlvmAlgebra,
        mnemonic: Hashable,
        meaning: Callable[..., OperandValue],
        operands: Sequence[OperandValue],
        pointers: Sequence[str] = (),
    ) -> OperandValue:
        """The result of a meaning for the operands, written in its place or as a shared piece of code.

        The mnemonic, or more than that, tells what the meaning does.  One that does more than compute has pointers of the
        function, as which the piece knows them, too.
        """
        form: Form | None = None
        long = self.long.get(mnemonic)
        if long and _kinds(operands) in long:
            form, given = self._form(alg, mnemonic, operands)
            if form is not None and form.results and form.count > form.in_place:
                return _called(alg, form, meaning, given, pointers)
        before = len(alg.code.lines)
        made = meaning(*operands)
        written = len(alg.code.lines) - before
        if written >= LINES and "v" in (kinds := _kinds(operands)):
            self.long.setdefault(mnemonic, set()).add(kinds)
            if form is None:
                form, _ = self._form(alg, mnemonic, operands)
            if form is not None and not form.results:
                _describe(form, made)
                form.in_place = 1 if written >= MANY else SEVERAL
        return made

    def _form(self, alg: LlvmAlgebra, mnemonic: Hashable, operands: Sequence[Value]) -> tuple[Form | None, list[Given]]:
        """The form of an instruction, which is one more of it, and the operands; no form where one cannot be given."""
        given = []
        for number, each in enumerate(operands):
            found = _given(alg, each.type, each.raw, f"%a{number}")
            if found is None:
                return None, []
            given.append(found)
        new = Form(f"{MEANING}{len(self.forms)}")
        form = self.forms.setdefault((mnemonic, *(each[:2] for each in given)), new)
        form.count += 1
        return form, given


def _describe(form: Form, made: OperandValue) -> None:
    """Let a form have a piece, if what an instruction of it has given are vectors, or scalars that are computed."""
    form.single = not isinstance(made, tuple)
    values = [made] if form.single else list(made)
    if all(isinstance(each, Value) and (isinstance(each.raw, Varying) or _computed(each.raw)) for each in values):
        form.results = [Result(each.type, isinstance(each.raw, Varying), each.raw.loose) for each in values]


def _computed(raw: Affine) -> bool:
    """Is a value one for all lanes, and not known?"""
    return isinstance(raw.base, str) and not raw.terms


def _kinds(operands: Sequence[OperandValue]) -> str:
    """For each operand whether it is a vector, a constant or else; nothing where one is no value."""
    found = ""
    for each in operands:
        if not isinstance(each, Value):
            return ""
        raw = each.raw
        found += "v" if isinstance(raw, Varying) else "c" if isinstance(raw.base, int) and not raw.terms else "u"
    return found


def _given(alg: LlvmAlgebra, type: Type, raw: Raw, name: str) -> Given | None:
    """An operand of a piece; None for an address in the parameter bank, whose accesses are told by it."""
    if alg.known(type, raw) is not None:
        return Given(type, raw)
    if isinstance(raw, Varying):
        return Given(type, Varying(name, loose=raw.loose), raw.name)
    if raw.bank is not None:
        return None
    if raw.terms:
        return Given(type, Varying(name), alg.vector(type, raw))
    return Given(type, replace(raw, base=name), str(raw.base))


def _called(
    alg: LlvmAlgebra, form: Form, meaning: Callable[..., OperandValue], operands: Sequence[Given], pointers: Sequence[str]
) -> OperandValue:
    """The results of a call of the piece, which is written where it is not there yet."""
    types = [_passed(alg, each.type) if each.varies else scalar_type(each.type) for each in form.results]
    together = f"{{ {', '.join(types)} }}"
    whole = types[0] if form.single else together
    parameters = [f"ptr {name}" for name in pointers]
    arguments = [("ptr", name) for name in pointers]
    for number, each in enumerate(operands):
        if each.operand is not None:
            varies = isinstance(each.raw, Varying)
            llvm = _passed(alg, each.type) if varies else scalar_type(each.type)
            parameters.append(f"{llvm} %a{number}")
            arguments.append((llvm, alg.code.mask_bits(each.operand) if varies and each.type is pred else each.operand))

    def write(code: Code) -> str:
        within = LlvmAlgebra(code, fast=alg.fast)
        made = meaning(*(Value(within, each.type, _within(within, each)) for each in operands))
        made = [made] if form.single else made
        values = [_returned(within, *each) for each in zip(form.results, made, strict=True)]
        return values[0] if form.single else code.structure(together, *zip(types, values, strict=True))

    piece = alg.code.unit.piece(form.piece, whole, ", ".join(parameters), write)
    made = alg.code.call(whole, piece, *arguments, pure=not pointers)
    values = []
    for number, result in enumerate(form.results):
        name = made if form.single else alg.code.emit(f"extractvalue {whole} {made}, {number}")
        name = alg.code.all_lanes(name) if result.varies and result.type is pred else name
        values.append(Value(alg, result.type, alg.result(result.varies, name, loose=result.loose)))
    return values[0] if form.single else tuple(values)


def _returned(alg: LlvmAlgebra, result: Result, value: Value) -> str:
    """A result of a piece, within it."""
    raw = value.raw if result.loose else alg.tight(result.type, value.raw)
    if isinstance(raw, Affine) and not result.varies:
        return text(scalar_type(result.type), raw.base)
    vector = alg.vector(result.type, raw)
    return alg.code.mask_bits(vector) if result.type is pred else vector


def _passed(alg: LlvmAlgebra, type: Type) -> str:
    """The LLVM type of a vector for a call: predicates go as bits, since LLVM cannot return them in mask registers."""
    return f"i{alg.width}" if type is pred else alg.vector_type(type)


def _within(alg: LlvmAlgebra, operand: Given) -> Raw:
    """An operand in the piece: a constant or a parameter, of which predicates come as bits."""
    raw = operand.raw
    if operand.type is pred and operand.operand is not None and isinstance(raw, Varying):
        return replace(raw, name=alg.code.all_lanes(raw.name))
    return raw

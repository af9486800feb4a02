"""Form matching: the form of an instruction, or the problems of an instruction that has none.

The verdict depends on the head and on the shapes of the operands only (and on constants, where a rule
asks for them), so it is cached: a module repeats few of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import count, takewhile
from typing import Any, ClassVar

from ptxvm.algebra.types import Type
from ptxvm.analysis import repairs
from ptxvm.analysis.operand_matching import match_operands
from ptxvm.analysis.operand_problems import (
    address_for_register,
    beside_mismatch,
    beside_operands,
    misplaced_unified,
    needs_of_registers,
    operand_problems,
)
from ptxvm.analysis.ptxas_missing import OPERATIONS, in_its_order, lines_of, missed_for_operands
from ptxvm.analysis.ptxas_modifiers import AT_ONCE, read_by_ptxas, unknown_words
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics import Severity
from ptxvm.isa.catalog import load_catalog
from ptxvm.isa.catalog.warp import removed_on_volta
from ptxvm.isa.model import ISA, Decoded, Problem, candidates
from ptxvm.isa.notation import Form
from ptxvm.isa.operand_types import Shape
from ptxvm.isa.targets import Need, Target, Version, gives

Words = tuple[str, ...]
Values = tuple[int | float | None, ...]
MOST_VERDICTS = 1 << 12
"""The verdicts that are kept, of all versions and targets together: a large module has some hundreds."""

UNFIT = frozenset({"P0302", "P0303", "P0304", "P0306", "P0307"})
"""The codes of problems with the operands, the version and the target: another modifier does not mend them."""

BANKS_SINCE, BANKS_UNTIL = (1, 5), (2, 2)
"""From the one version to before the other there were `.const[1]` to `.const[10]`, and always `.const[0]` (PTX 5.1.3)."""


@dataclass(frozen=True, slots=True)
class Recognition:
    """The verdict on an instruction: its decoded form, the place of each operand in the form, and its problems.

    `at` gives for each named operand the path to its node: the operand's number, then the number within a pair or address.
    `asked`: the verdict depends on the values of constants.  `undeclared`: an operand names something that is not declared.
    `unknown`: there is no such instruction.  `needs`: what a version and target need for the same verdict; None where that
    cannot be said, as a rule asks for them.  `doubts` are problems of a legal instruction.
    """

    decoded: Decoded | None
    at: dict[str, tuple[int, ...]] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    asks_for_value: bool = False
    undeclared: bool = False
    unknown: bool = False
    needs: tuple[Need, ...] | None = None
    doubts: tuple[Problem, ...] = ()


class Recogniser:
    """Recognises instructions for one version and target."""

    known: ClassVar[dict[object, Recognition]] = {}
    """The verdicts by the number of their recogniser and the instruction, with its constants where it depends on them."""

    numbers: ClassVar[Iterator[int]] = count()

    def __init__(self, version: Version, target: Target, options: tuple[str, ...] = ()) -> None:
        load_catalog()
        self.version, self.target, self.options = version, target, options
        self.number = next(self.numbers)

    def recognise(self, opcode: str, words: Words, shapes: tuple[Shape, ...], values: Values) -> Recognition:
        """The verdict on an instruction; `values` has the operands that are constants."""
        key = (self.number, opcode, words, shapes)
        verdict = self.known.get(key)
        if verdict is None:
            verdict = self.keep(key, self.judge(opcode, words, shapes, values))
            if verdict.asks_for_value:
                self.keep((key, values), verdict)
        elif verdict.asks_for_value:
            verdict = self.known.get((key, values))
            if verdict is None:
                verdict = self.keep((key, values), self.judge(opcode, words, shapes, values))
        return verdict

    def keep(self, key: object, verdict: Recognition) -> Recognition:
        """Keep a verdict; too many are forgotten together."""
        if len(self.known) >= MOST_VERDICTS:
            self.known.clear()
        self.known[key] = verdict
        return verdict

    def judge(self, opcode: str, words: Words, shapes: tuple[Shape, ...], values: Values) -> Recognition:
        """Compute the verdict."""
        verdict = self.best(opcode, words, shapes, values)
        if verdict.problems and (size := strange_size(opcode, shapes)):
            verdict = replace(verdict, problems=of_strange_size(verdict.problems, size))
        if any(mentions_unknown(shape) for shape in shapes):
            return replace(verdict, undeclared=True)
        if verdict.problems and verdict.decoded is not None:
            return replace(verdict, problems=self.advised(verdict.decoded, verdict.problems, words, shapes, values))
        return verdict

    def advised(
        self, decoded: Decoded, problems: tuple[Problem, ...], words: Words, shapes: tuple[Shape, ...], values: Values
    ) -> tuple[Problem, ...]:
        """The problems of an instruction with help; each mistake is reported once."""

        def accepts(other: Words, order: tuple[Shape, ...]) -> bool:
            return self.accepts(decoded.form.opcode, other, order, values)

        problems = self.of_missing_modifier(decoded, problems, words, lambda other: accepts(other, shapes))
        operands = [p for p in problems if p.code == "P0304"]
        if len(operands) > 1 or problems[0].code == "P0303":
            ways = (repairs.other_type, repairs.reordered) if operands else (repairs.reordered,)
            for way in ways:
                if (one := way(decoded, words, shapes, accepts)) is not None:
                    return (one, *(p for p in problems if p not in operands and p.code != "P0303"))
        return tuple(
            p if p.help or p.operand else replace(p, help=repairs.rule_help(p, decoded, words, shapes, accepts))
            for p in problems
        )

    def of_missing_modifier(
        self, decoded: Decoded, problems: tuple[Problem, ...], words: Words, accepts: Callable[[Words], bool]
    ) -> tuple[Problem, ...]:
        """The problems; of operands that another modifier brings, ptxas names the modifier."""
        opcode, first = decoded.form.opcode, problems[0]
        if first.code not in WRONG_OPERANDS or opcode not in OPERATIONS or not accepts((*words, OPERATIONS[opcode])):
            return problems
        here = Decoded(decoded.of, decoded.form, decoded.bound, version=self.version, target=self.target)
        said, *others = missed_for_operands(opcode, removed_on_volta(here) or "")
        return (replace(first, ptxas=said, consequence="\n".join(others)),)

    def misfit(self, opcode: str, words: Words, shapes: tuple[Shape, ...], values: Values) -> Problem:
        """The problem of modifiers that no form takes."""

        def accepts(other: Words, order: tuple[Shape, ...]) -> bool:
            return self.accepts(opcode, other, order, values)

        def takes(other: Words, order: tuple[Shape, ...]) -> bool:
            fitting = (self.fit(decoded, order, values) for decoded in candidates(opcode, other))
            return any(not any(p.code in UNFIT for p in verdict.problems) for verdict in fitting)

        found = repairs.misfit(opcode, words, shapes, accepts, takes)
        if found.code != REFUSED or found.word in Type.named or found.ptxas.startswith(ALONE) or found.word in AT_ONCE:
            return found
        if found.ptxas.startswith(WHILE_READING):
            return self.read_on(found, opcode, words, shapes, values)
        at = words.index(found.word)
        return self.beside(found, opcode, (*words[:at], *words[at + 1 :]), shapes, values)

    def beside(self, found: Problem, opcode: str, others: Words, shapes: tuple[Shape, ...], values: Values) -> Problem:
        """The problem of a modifier, with what ptxas says of the instruction without it; alone where it looks no further."""
        if not candidates(opcode, others):
            rest = lines_of(repairs.misfit(opcode, others, shapes, never, never))
        else:
            problems = self.least(opcode, others, shapes, values)
            if any(each.code in WRONG_OPERANDS for each in problems):
                nearest = candidates(opcode, others)[0]
                told = self.of_missing_modifier(
                    nearest, problems, others, lambda more: self.accepts(opcode, more, shapes, values)
                )
                if told is problems:
                    wrong = next(each.ptxas for each in problems if each.code in WRONG_OPERANDS)
                    return replace(found, ptxas=wrong, consequence="")
                rest = [line for each in told for line in lines_of(each)]
            else:
                rest = [line for each in problems if each.code not in UNFIT for line in lines_of(each)]
        if any(line.startswith(ALONE) for line in rest):
            return replace(found, ptxas=rest[0], consequence="\n".join(rest[1:]))
        said = lines_of(found)
        first, *more = in_its_order([*said, *(line for line in rest if line not in said)])
        return replace(found, ptxas=first, consequence="\n".join(more))

    def read_on(self, found: Problem, opcode: str, words: Words, shapes: tuple[Shape, ...], values: Values) -> Problem:
        """The problem of a modifier, with what ptxas says of the instruction when it has read on, a few modifiers far."""
        said, last = found.consequence.splitlines(), found
        for _ in range(READ_ON):
            words = read_by_ptxas(opcode, words, last.word)
            if candidates(opcode, words):
                said += [each for p in self.least(opcode, words, shapes, values) for each in lines_of(p)]
                break
            last = repairs.misfit(opcode, words, shapes, never, never)
            said += lines_of(last)
            if last.code != REFUSED or not last.ptxas.startswith(WHILE_READING):
                break
        return replace(found, consequence="\n".join(said))

    def least(self, opcode: str, words: Words, shapes: tuple[Shape, ...], values: Values) -> tuple[Problem, ...]:
        """The problems of the form that has the fewest of those that take the modifiers."""
        fitting = candidates(opcode, words)
        return min((self.fit(each, shapes, values).problems for each in fitting), key=weights, default=())

    def accepts(self, opcode: str, words: Words, shapes: tuple[Shape, ...], values: Values) -> bool:
        """Is there a form without problems?"""
        return any(not self.fit(decoded, shapes, values).problems for decoded in candidates(opcode, words))

    def best(self, opcode: str, words: Words, shapes: tuple[Shape, ...], values: Values) -> Recognition:
        """The verdict for the form with the fewest problems."""
        if opcode not in ISA.by_opcode:
            return Recognition(None, problems=(repairs.unknown_opcode(opcode, unknown_words(words)),), unknown=True)
        for bank in (word for word in words if word.startswith("const[")):
            if self.version >= BANKS_UNTIL:
                return Recognition(None, problems=(banks_are_gone(bank),))
            if self.version < BANKS_SINCE and bank != "const[0]":
                said = "Feature 'banked constants' requires PTX ISA .version 1.5 or later"
                return Recognition(None, problems=(Problem("P0306", said, word=bank),))
            words = tuple("const" if word == bank else word for word in words)  # the variable knows its bank
        fitting = candidates(opcode, words)
        if not fitting:
            return Recognition(None, problems=(self.misfit(opcode, words, shapes, values),))
        verdicts = [self.fit(decoded, shapes, values) for decoded in fitting]
        asked = any(v.asks_for_value for v in verdicts)
        best = min(verdicts, key=lambda v: weights(v.problems))
        needs = best.needs if all(is_wrong_anywhere(v) for v in takewhile(lambda v: v is not best, verdicts)) else None
        if (best.asks_for_value, best.needs) == (asked, needs):
            return best
        return replace(best, asks_for_value=asked, needs=needs)

    def fit(self, decoded: Decoded, shapes: tuple[Shape, ...], values: Values) -> Recognition:
        """The verdict for one form."""
        placed = match_operands(decoded.form, decoded.opcode, shapes, partial(repairs.written, decoded))
        if isinstance(placed, Problem):
            return Recognition(decoded, problems=(address_for_register(decoded, shapes, placed),), needs=())
        named, at = placed.named, placed.at
        bound = {**decoded.bound, **placed.marks}
        constants = {name: values[path[0]] for name, path in at.items() if len(path) == 1}
        judged = CheckedInstruction(decoded.of, decoded.form, bound, named, constants)
        judged.version, judged.target, judged.options = self.version, self.target, self.options
        of_registers, needs = needs_of_registers(named), judged.requirements()
        broken = judged.problems()
        errors, doubts = ([p for p in broken if (p.severity is Severity.ERROR) is wrong] for wrong in (True, False))
        problems = beside_operands([*operand_problems(judged, named, at), *misplaced_unified(judged, named, at)], errors)
        problems = [*self.demands(of_registers), *problems, *beside_mismatch(problems, self.demands(needs))]
        found = Decoded(decoded.of, decoded.form, bound, named, self.version, self.target)
        if judged.asks_for_value:  # a verdict for these values
            found.constants = constants
        all_needs = None if judged.asks_for_target else tuple(dict.fromkeys(need for _, need in (*of_registers, *needs)))
        return Recognition(found, at, tuple(problems), judged.asks_for_value, needs=all_needs, doubts=tuple(doubts))

    def demands(self, requirements: list[tuple[str, Need]]) -> list[Problem]:
        """The problems of requirements that version and target do not meet."""
        problems = []
        for name, need in requirements:
            if not gives(self.version, need.version):
                wanted = ".".join(map(str, need.version))
                said = f"Feature '{name}' requires PTX ISA .version {wanted} or later"
                problems.append(Problem("P0306", said, word=name, help=f"write `.version {wanted}`"))
            if not need.met_by(self.target):
                wanted = " or ".join(map(str, need.targets))
                said = f"Feature '{name}' requires .target {wanted}"
                said += "" if need.targets[0].suffix == "a" else " or higher"
                help = f"write `.target {need.targets[0]}`"
                problems.append(Problem("P0307", said, word=name, help=help, ptxas=self.lacking(name, need)))
        return problems

    def lacking(self, name: str, need: Need) -> str:
        """What ptxas says where the target lacks something, if that is of a chip or family alone; else it has our words."""
        if not need.targets[0].suffix:
            return f"Instruction '{name}' requires .target {need.targets[0]} or higher" if name in AS_INSTRUCTIONS else ""
        what = f"Feature '{name}'" if name.startswith(".") else f"Instruction '{name.partition('::')[0]}'"
        return f"{what} not supported on .target '{self.target}'"


class Asked:
    """A field of an instruction that notes that it was asked for."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = f"_{name}"

    def __get__(self, instruction: CheckedInstruction, owner: type) -> Any:  # noqa: ANN401 - of the type of the field
        instruction.asks_for_target = True
        return instruction.__dict__[self.name]

    def __set__(self, instruction: CheckedInstruction, value: object) -> None:
        instruction.__dict__[self.name] = value


class CheckedInstruction(Decoded):
    """A decoded instruction with its operands; it notes whether a rule asks for the value of a constant, or for the target."""

    version, target, options = Asked(), Asked(), Asked()

    def __init__(
        self, of: object, form: Form, bound: object, shapes: dict[str, Shape], constants: dict[str, int | float | None]
    ) -> None:
        super().__init__(of, form, bound, shapes)  # type: ignore[arg-type]
        self.constants, self.asks_for_value, self.asks_for_target = constants, False, False

    def value(self, operand: str) -> int | None:
        """The value of an operand that is an integer constant."""
        self.asks_for_value = True
        return super().value(operand)

    def real(self, operand: str) -> float | None:
        """The value of an operand that is a floating-point constant."""
        self.asks_for_value = True
        return super().real(operand)


def is_wrong_anywhere(verdict: Recognition) -> bool:
    """Has this form problems that no other version or target solves?"""
    return verdict.needs is not None and any(p.code not in ("P0306", "P0307") for p in verdict.problems)


def banks_are_gone(word: str) -> Problem:
    """The problem of `ld.const[2]` in a module of version 2.2 or later."""
    said = "explicit constant banks is not part of PTX since version 2.2"
    ptxas = "Deprecated feature: 'explicit constant banks' not supported as of PTX version 2.2"
    return Problem("P0508", said, word=word, ptxas=ptxas)


def mentions_unknown(shape: Shape) -> bool:
    """Does the operand name something that is not declared?"""
    return shape.kind == "unknown" or any(mentions_unknown(s) for s in shape.items)


REFUSED = "P0305"
"""The code of a modifier that does not fit; ptxas judges the operands as if it were not there."""
WRONG_OPERANDS = frozenset({"P0302", "P0303", "P0304"})
AS_INSTRUCTIONS = frozenset("bmsk dp2a.hi dp2a.lo dp4a griddepcontrol lop3 match nanosleep szext".split())
"""Instructions that it does not call features where the target lacks them."""
ALONE = ("Unexpected instruction types", "Not a name of any known instruction")
"""What ptxas says alone, whatever the other modifiers are."""
WHILE_READING = ("Unknown modifier", "Multiple ", "Duplicate ")
"""What ptxas says of a modifier before it looks at the operands; all else only where these are right."""


def strange_size(opcode: str, shapes: tuple[Shape, ...]) -> int:
    """The number of elements of an operand in braces that no vector has; 0 if there is none."""
    largest = MATRIX if opcode in WIDE else VECTOR
    sizes = (len(shape.items) for shape in shapes if shape.kind == "vector")
    return next((size for size in sizes if size > largest or size & (size - 1)), 0)


def of_strange_size(problems: tuple[Problem, ...], size: int) -> tuple[Problem, ...]:
    """The problems, of which ptxas tells the number of elements first."""
    said = f"Illegal vector size: {size}"
    if any(line == said for each in problems for line in lines_of(each)):
        return problems
    first = problems[0]
    return (replace(first, ptxas=said, consequence="\n".join(lines_of(first))), *problems[1:])


VECTOR, MATRIX = 4, 128
"""The elements of the largest vector of most instructions, and of the largest operand of those on matrices."""
WIDE = frozenset({"ld", "st", "mma", "wmma", "wgmma", "tcgen05"})
"""Opcodes whose operands may have more elements than a vector."""


def never(_: Words, __: tuple[Shape, ...]) -> bool:
    """No modifiers are looked for that would do."""
    return False


READ_ON = 8
"""Modifiers of which is told what ptxas says of each."""


def weights(problems: Sequence[Problem]) -> int:
    """The weight of the problems of a form."""
    return sum(weight(each) for each in problems)


def weight(p: Problem) -> int:
    """The weight of a problem in the choice of a form: a wrong operand weighs more than a missing version."""
    return {"P0302": 1000, "P0303": 100, "P0306": 1, "P0307": 1}.get(p.code, 10)

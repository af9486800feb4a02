"""Finds the form that an instruction takes, and what is wrong where it takes none.

The verdict depends on the head and on the shapes of the operands only (and on integer constants, where a rule
asks for them), so it is remembered: a module repeats few of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ptxvm.analysis.placement import place
from ptxvm.diagnostics import closest, did_you_mean
from ptxvm.isa.catalog import load_catalog
from ptxvm.isa.model import ISA, Decoded, Problem, candidates
from ptxvm.isa.notation import Form
from ptxvm.isa.operand_types import Shape, problem
from ptxvm.isa.targets import Target, Version, gives

BANKS_SINCE, BANKS_UNTIL = (1, 5), (2, 2)
"""From the one version to before the other there were `.const[1]` to `.const[10]`, and always `.const[0]` (PTX 5.1.3)."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known of an instruction: its decoded form, the place of each operand in the form, and its problems.

    `at` gives for each named operand the path to its node: the operand's number, then the number within a pair or
    address.  `asked` tells that the values of constants took part,
    `undeclared` that an operand names what is not declared.
    """

    decoded: Decoded | None
    at: dict[str, tuple[int, ...]] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    asked: bool = False
    undeclared: bool = False


class Recogniser:
    """Recognises instructions for one version and target."""

    def __init__(self, version: Version, target: Target, options: tuple[str, ...] = ()) -> None:
        load_catalog()
        self.version, self.target, self.options = version, target, options
        self.known: dict[object, Verdict] = {}

    def recognise(
        self, opcode: str, words: tuple[str, ...], shapes: tuple[Shape, ...], values: tuple[int | None, ...]
    ) -> Verdict:
        """The verdict on an instruction; `values` has the operands that are integer constants."""
        key = (opcode, words, shapes)
        verdict = self.known.get(key)
        if verdict is None:
            verdict = self.known[key] = self.judge(opcode, words, shapes, values)
            if verdict.asked:
                self.known[key, values] = verdict
        elif verdict.asked:
            verdict = self.known.get((key, values))
            if verdict is None:
                verdict = self.known[key, values] = self.judge(opcode, words, shapes, values)
        return verdict

    def judge(self, opcode: str, words: tuple[str, ...], shapes: tuple[Shape, ...], values: tuple[int | None, ...]) -> Verdict:
        """The verdict, worked out."""
        verdict = self.best(opcode, words, shapes, values)
        return replace(verdict, undeclared=True) if any(mentions_unknown(shape) for shape in shapes) else verdict

    def best(self, opcode: str, words: tuple[str, ...], shapes: tuple[Shape, ...], values: tuple[int | None, ...]) -> Verdict:
        """That of the form with the fewest problems."""
        if opcode not in ISA.by_opcode:
            return Verdict(None, problems=(unknown_opcode(opcode),))
        for bank in (word for word in words if word.startswith("const[")):
            if self.version >= BANKS_UNTIL:
                return Verdict(None, problems=(banks_are_gone(bank),))
            if self.version < BANKS_SINCE and bank != "const[0]":
                said = "Feature 'banked constants' requires PTX ISA .version 1.5 or later"
                return Verdict(None, problems=(Problem("P0306", said, word=bank),))
            words = tuple("const" if word == bank else word for word in words)  # the variable knows its bank
        fitting = candidates(opcode, words)
        if not fitting:
            return Verdict(None, problems=(misfit(opcode, words),))
        verdicts = [self.fit(decoded, shapes, values) for decoded in fitting]
        asked = any(v.asked for v in verdicts)
        best = min(verdicts, key=lambda v: sum(weight(p) for p in v.problems))
        return replace(best, asked=asked)

    def fit(self, decoded: Decoded, shapes: tuple[Shape, ...], values: tuple[int | None, ...]) -> Verdict:
        """How the operands fit one form."""
        placed = place(decoded.form, shapes)
        if isinstance(placed, Problem):
            return Verdict(decoded, problems=(placed,))
        named, at = placed.named, placed.at
        bound = {**decoded.bound, **placed.marks}
        constants = {name: values[path[0]] for name, path in at.items() if len(path) == 1}
        judged = Judged(decoded.of, decoded.form, bound, named, constants)
        judged.version, judged.target, judged.options = self.version, self.target, self.options
        problems = [*operand_problems(judged, named), *judged.problems(), *self.demands(judged)]
        found = Decoded(decoded.of, decoded.form, bound, named, self.version, self.target)
        return Verdict(found, at, tuple(problems), judged.asked)

    def demands(self, decoded: Decoded) -> list[Problem]:
        """The versions and targets that the instruction needs and the module does not have."""
        problems = []
        for name, need in decoded.unmet(self.version, self.target):
            if not gives(self.version, need.version):
                wanted = ".".join(map(str, need.version))
                said = f"Feature '{name}' requires PTX ISA .version {wanted} or later"
                problems.append(Problem("P0306", said, word=name, help=f"write `.version {wanted}`"))
            if not need.met_by(self.target):
                wanted = " or ".join(map(str, need.targets))
                said = f"Feature '{name}' requires .target {wanted}"
                said += "" if need.targets[0].suffix == "a" else " or higher"
                problems.append(Problem("P0307", said, word=name, help=f"write `.target {need.targets[0]}`"))
        return problems


class Judged(Decoded):
    """A decoded instruction whose operands are known, which remembers whether a rule asked for a constant."""

    def __init__(
        self, of: object, form: Form, bound: object, shapes: dict[str, Shape], constants: dict[str, int | None]
    ) -> None:
        super().__init__(of, form, bound, shapes)  # type: ignore[arg-type]
        self.constants, self.asked = constants, False

    def value(self, operand: str) -> int | None:
        """The value of an operand that is an integer constant."""
        self.asked = True
        return self.constants.get(operand)


def banks_are_gone(word: str) -> Problem:
    """`ld.const[2]` in a module of a later version."""
    said = "explicit constant banks is not part of PTX since version 2.2"
    ptxas = "Deprecated feature: 'explicit constant banks' not supported as of PTX version 2.2"
    return Problem("P0508", said, word=word, ptxas=ptxas)


def mentions_unknown(shape: Shape) -> bool:
    """Does the operand name something that is not declared?"""
    return shape.kind == "unknown" or any(mentions_unknown(s) for s in shape.items)


def weight(p: Problem) -> int:
    """How far a problem puts a form off: a wrong operand more than a missing version."""
    return {"P0302": 1000, "P0303": 100, "P0306": 1, "P0307": 1}.get(p.code, 10)


# ── operands ────────────────────────────────────────────────────────────────────────────


def operand_problems(decoded: Decoded, named: dict[str, Shape]) -> list[Problem]:
    """Each operand against its type."""
    problems = []
    destinations = decoded.destinations()
    for name, shape in named.items():
        said = problem(shape, decoded.type_of(name), decoded.operand_type(name), destination=name in destinations)
        if said:
            problems.append(
                Problem("P0304", said, operand=name, ptxas=f"Arguments mismatch for instruction '{decoded.form.opcode}'")
            )
    return problems


# ── heads ───────────────────────────────────────────────────────────────────────────────


def unknown_opcode(opcode: str) -> Problem:
    """No such instruction: misspelt, or one that PTX has and we lack."""
    from ptxvm.isa.opcodes import OPCODES  # noqa: PLC0415 - only on the way out

    if opcode in OPCODES:
        return Problem("P0309", f"'{opcode}' is not supported yet", help="ptxvm lacks this instruction of PTX")
    return Problem("P0301", f"unknown instruction '{opcode}'", help=did_you_mean(opcode, ISA.by_opcode),
                   ptxas=f"Not a name of any known instruction: '{opcode}'")  # fmt: skip


def misfit(opcode: str, words: tuple[str, ...]) -> Problem:
    """No form takes these modifiers: say which is too much, or which is missing."""
    from ptxvm.isa.opcodes import LACKING  # noqa: PLC0415 - only on the way out

    for word in words:
        if word in LACKING.get(opcode, ()):
            return Problem("P0309", f"'{opcode}.{word}' is not supported yet", word=word, help="ptxvm lacks this form of PTX")
    matches = [(form, form.match(words)) for _, form in ISA.by_opcode[opcode]]
    form, match = min(matches, key=lambda fm: (len(fm[1].extra) + len(fm[1].missing), len(fm[1].missing)))
    if match.extra:
        word = words[match.extra[0]]
        allowed = sorted({c for _, f in ISA.by_opcode[opcode] for s in f.slots for c in s.choices})
        near = closest(word, [a for a in allowed if a not in words])
        help = f"did you mean `.{near}`?" if near else f"the form nearest to this is `{form.text};`"
        said = f"'.{word}' does not fit here in '{opcode}'"
        return Problem("P0305", said, word=word, help=help, ptxas=f"Illegal modifier '.{word}' for instruction '{opcode}'")
    slot = match.missing[0]
    choices = ", ".join(f".{c}" for c in slot.order)
    return Problem("P0308", f"'{opcode}' lacks a modifier: one of {choices}", help=f"the form is `{form.text};`",
                   ptxas=f"Unexpected instruction types specified for '{opcode}'")  # fmt: skip

"""Breakpoints: places in the code, memory, and what may be found in a run; each with a condition and a count."""

from __future__ import annotations

import enum
import operator
import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import PurePath

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type
from ptxvm.dataclass import dataclass
from ptxvm.debug.expressions import Expression, parse
from ptxvm.debug.focus import NotInCode, NotThere
from ptxvm.debug.log_messages import LogMessage, log_message
from ptxvm.diagnostics import did_you_mean
from ptxvm.diagnostics.mangled import is_called
from ptxvm.engine.interp import value_text
from ptxvm.engine.interp.executable import Executable
from ptxvm.engine.interp.routine import Routine
from ptxvm.isa.effects import Verb

Site = tuple[int, int]
"""An instruction: its routine, and its number there."""
Content = bytes | None
"""What is in some bytes; None where there is no such memory."""

OPCODE = re.compile(r"(?:opcode|instruction)\s+(\S+)")
AT_LINE = re.compile(r"(?:(?P<file>.+):)?(?P<line>\d+)")
AT_INDEX = re.compile(r"\*(?:(?P<function>[A-Za-z_$%][\w$%:]*)(?:\s*\+\s*(?P<offset>\d+))?|(?P<index>\d+))")


class Caught(enum.StrEnum):
    """What may be found in a run, besides faults: those stop it always."""

    NAN = "nan"
    MEMORY = "memory"
    INIT = "init"
    SYNC = "sync"
    RACE = "race"

    @property
    def is_check(self) -> bool:
        """Does a checker find it, which follows the run from its beginning?"""
        return self is not Caught.NAN

    @staticmethod
    def by(kind: str) -> Caught:
        """What a finding of a kind is caught by: a fault that a check makes a finding of is one of memory."""
        return CAUGHT_BY.get(kind, Caught.MEMORY)


CAUGHT_BY = {
    **dict.fromkeys(("race", "register-in-use", "missing-fence", "freed-in-use", "ended-cta"), Caught.RACE),
    "uninitialised-read": Caught.INIT,
    **dict.fromkeys(
        ("barrier-divergence", "barrier-count", "ended-before-barrier", "invalid-mask", "undefined-lane", "invalid-mbarrier"),
        Caught.SYNC,
    ),
}  # fmt: skip
"""What catches the findings of a check that are no faults, by their kind."""


RELATIONS: dict[str, Callable[[int, int], bool]] = {
    ">=": operator.ge, "==": operator.eq, "<=": operator.le, ">": operator.gt, "<": operator.lt,
    "=": operator.eq, "%": lambda hits, count: hits % count == 0,
}  # fmt: skip
"""How the hits of a breakpoint may be compared with a number; the longer names first."""


@dataclass(frozen=True, slots=True)
class HitCondition:
    """Which hits of a breakpoint stop: those in a relation to a number; `%` are all multiples of it."""

    relation: str
    count: int

    def holds(self, hits: int) -> bool:
        """Does the hit of a number stop, from 1 on?"""
        return RELATIONS[self.relation](hits, self.count)


def hit_condition_of(text: str) -> HitCondition | None:
    """`3` and `>= 3` are the third hit and all after it, `== 3` is the third alone, `% 3` each third; None for no text."""
    text = text.strip()
    if not text:
        return None
    relation = next((each for each in RELATIONS if text.startswith(each)), "")
    number = text.removeprefix(relation).strip()
    if not number.isdecimal() or (relation == "%" and not int(number)):
        raise NotThere(f"a hit condition is a number of hits, such as 3, or a relation, such as == 3 or % 2, not '{text}'")
    return HitCondition(relation or ">=", int(number))


@dataclass(eq=False, slots=True)
class Breakpoint:
    """What breakpoints of all kinds have; `hits` counts the stops, of which `ignore` more are let pass.

    What lanes of several warps do in one instruction is one stop.  `trouble` says why the condition had no value when it was
    asked for last: the run stops there.
    """

    number: int
    subject: str
    condition: Expression | None = None
    ignore: int = 0
    hit_condition: HitCondition | None = None
    hits: int = 0
    enabled: bool = True
    temporary: bool = False
    trouble: str = ""

    def counted(self) -> bool:
        """Count a stop; False where it is let pass."""
        self.hits += 1
        if self.ignore:
            self.ignore -= 1
            return False
        return self.hit_condition is None or self.hit_condition.holds(self.hits)


@dataclass(eq=False, slots=True)
class CodeBreakpoint(Breakpoint):
    """Some instructions: before one of them is executed.  One with a message says that, and does not stop.

    `location` names the instructions in the code of any image; there are no `sites` where that has none, and `missing` says
    why the code had none when it was made.
    """

    sites: frozenset[Site] = frozenset()
    location: str = ""
    message: LogMessage | None = None
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Bytes:
    """Bytes of memory: their address for global and constant memory, else their offset in the piece of a CTA or a thread."""

    space: Space
    start: int
    size: int
    cta: int = 0
    thread: int = 0


@dataclass(eq=False, slots=True)
class Watchpoint(Breakpoint):
    """Some bytes: after an instruction that has accessed them in one of these ways, or changed them where none is a read."""

    bytes: Bytes = Bytes(Space.GLOBAL, 0, 0)
    type: Type = Type.named["b8"]
    verbs: frozenset[Verb] = frozenset()
    value: Content = None
    """What was there last."""

    def stops_at(self, old: Content, new: Content) -> bool:
        """Does an access stop that leaves these bytes where those were?"""
        return Verb.READ in self.verbs or old != new

    def text(self, held: Content, other: Content) -> str:
        """What is there, as text: of an array, the first element that is not that of the `other` bytes."""
        if held is None:
            return ""
        size, other = self.type.bytes, other or held
        first = next((at for at in range(0, len(held), size) if held[at : at + size] != other[at : at + size]), 0)
        return value_text.text(self.type, int.from_bytes(held[first : first + size], "little"))


@dataclass(eq=False, slots=True)
class Catchpoint(Breakpoint):
    """Something that is found: after the instruction that has done it."""

    caught: Caught = Caught.NAN


class Breakpoints:
    """All breakpoints, by number: of the code of one image, or of one after the other.

    Where `more` launches may come, a breakpoint may name what no code has yet.
    """

    def __init__(self, *, more: bool = False) -> None:
        self.more = more
        self._code: Executable | None = None
        self.all: dict[int, Breakpoint] = {}
        self._last = 0
        self._sites: dict[Site, list[CodeBreakpoint]] = {}

    @property
    def code(self) -> Executable:
        """The code; NotThere before there is any."""
        if self._code is None:
            raise NotThere("no kernel has been launched")
        return self._code

    def follow(self, code: Executable, kernel: Routine) -> None:
        """Be about the code of a launch: what it has not got waits for another one, and what is watched is gone."""
        self._code = code
        self.all = {number: each for number, each in self.all.items() if not isinstance(each, Watchpoint)}
        for each in self.all.values():
            if isinstance(each, CodeBreakpoint):
                each.sites = self.known_sites(each.location, kernel)
        self._sites = {}

    def next_number(self) -> int:
        """The number of a new breakpoint."""
        self._last += 1
        return self._last

    def break_at(
        self, text: str, here: Routine | None, condition: str = "", *, temporary: bool = False, message: str = "",
        waits: bool = False,
    ) -> CodeBreakpoint:  # fmt: skip
        """Stop before some instructions, or say a message there.

        One that `waits` may name anything; others are refused by NotThere, unless a launch to come may have what they name.
        """
        sites, missing = frozenset[Site](), ""
        try:
            sites = self.known_sites(text, here) if waits else self.sites(text, here)
        except NotInCode as reason:
            if not self.more:
                raise
            missing = str(reason)
        expression, said = condition_of(condition), log_message(message) if message else None
        made = CodeBreakpoint(
            self.next_number(),
            text,
            expression,
            temporary=temporary,
            sites=sites,
            location=absolute(text, here),
            message=said,
            missing=missing,
        )
        self.add(made)
        return made

    def catch(self, name: str, condition: str = "") -> Catchpoint:
        """Stop where something is found; see `Caught`."""
        known = [each.value for each in Caught]
        if not name:
            raise NotThere(f"name what is to be caught: {' '.join(known)}")
        if name not in known:
            raise NotThere(
                f"nothing is called '{name}' that may be caught; {did_you_mean(name, known) or 'there are ' + ' '.join(known)}"
            )
        expression = condition_of(condition)
        made = Catchpoint(self.next_number(), name, expression, caught=Caught(name))
        self.add(made)
        return made

    def add(self, breakpoint_: Breakpoint) -> Breakpoint:
        """Add one."""
        self.all[breakpoint_.number] = breakpoint_
        self._sites = {}
        return breakpoint_

    def clear(self) -> None:
        """Delete all."""
        self.all, self._sites = {}, {}

    def delete(self, number: int) -> None:
        """Delete one; NotThere where there is none of the number."""
        self.get(number)
        del self.all[number]
        self._sites = {}

    def discard(self, number: int) -> None:
        """Delete one, if it is still there."""
        if number in self.all:
            self.delete(number)

    def get(self, number: int) -> Breakpoint:
        """The breakpoint of a number; NotThere where there is none."""
        if number not in self.all:
            raise NotThere(f"there is no breakpoint {number}")
        return self.all[number]

    def at(self, site: Site) -> list[CodeBreakpoint]:
        """Those at an instruction."""
        if not self._sites:
            for each in self.all.values():
                for one in each.sites if isinstance(each, CodeBreakpoint) else ():
                    self._sites.setdefault(one, []).append(each)  # type: ignore[arg-type]
        return self._sites.get(site, [])

    def stopping_at(self, site: Site) -> list[CodeBreakpoint]:
        """Those at an instruction that stop there: logpoints go on."""
        return [each for each in self.at(site) if each.message is None]

    @property
    def watchpoints(self) -> list[Watchpoint]:
        """Those of memory that are enabled."""
        return [each for each in self.all.values() if isinstance(each, Watchpoint) and each.enabled]

    @property
    def catchpoints(self) -> list[Catchpoint]:
        """Those of findings that are enabled."""
        return [each for each in self.all.values() if isinstance(each, Catchpoint) and each.enabled]

    # ── places in the code ──────────────────────────────────────────────────────────────

    def known_sites(self, text: str, here: Routine | None) -> frozenset[Site]:
        """The instructions that a text names; none where there are none."""
        try:
            return self.sites(text, here)
        except NotThere:
            return frozenset()

    def sites(self, text: str, here: Routine | None) -> frozenset[Site]:
        """The instructions that a text names: `42`, `file.cu:10`, `opcode ld.global*`, `*12`, a function or a label.

        NotThere says what there is.
        """
        if found := OPCODE.fullmatch(text):
            return self._with_opcode(found[1])
        if here is None:
            raise NotThere("no kernel has been launched")
        if found := AT_LINE.fullmatch(text):
            return self._at_line(found["file"], int(found["line"]), here)
        if found := AT_INDEX.fullmatch(text):
            routine = self.function(found["function"]) if found["function"] else here
            index = int(found["index"] or found["offset"] or 0)
            if index >= routine.end:
                raise NotThere(f"'{routine.function.name}' has the instructions *0 to *{routine.end - 1}")
            return frozenset({(routine.number, index)})
        label = here.function.labels.get(text)
        if label is not None and label.index < here.end:
            return frozenset({(here.number, label.index)})
        return frozenset((routine.number, 0) for routine in self.functions(text))

    def functions(self, name: str) -> list[Routine]:
        """The code of a function; of all that C++ calls so, with other parameters or template arguments."""
        known = {routine.function.name: routine for routine in self.code.routines if routine.end}
        found = [known[name]] if name in known else [each for mangled, each in known.items() if is_called(mangled, name)]
        if not found:
            raise NotInCode(f"there is no function or label '{name}'; {did_you_mean(name, known) or 'see info functions'}")
        return found

    def function(self, name: str) -> Routine:
        """The code of the one function of a name."""
        found = self.functions(name)
        if len(found) > 1:
            raise NotThere(f"'{name}' is several functions: {', '.join(each.function.name for each in found)}")
        return found[0]

    def _with_opcode(self, pattern: str) -> frozenset[Site]:
        instructions = ((routine.function.instructions[n], site) for routine, n, site in self._instructions())
        found = frozenset(site for bound, site in instructions if fnmatchcase(bound.node.head, pattern))
        if not found:
            raise NotInCode(f"no instruction is a '{pattern}'; a pattern such as ld.global* finds all that begin so")
        return found

    def _instructions(self) -> Iterator[tuple[Routine, int, Site]]:
        for routine in self.code.routines:
            for n in range(routine.end):
                yield routine, n, (routine.number, n)

    def _at_line(self, file: str | None, line: int, here: Routine) -> frozenset[Site]:
        """The instructions at a line of the PTX, or of a source that `.loc` names; else of the next line that has some."""
        found: dict[int, set[Site]] = {}
        for routine, n, site in self._instructions():
            at = line_of(routine, n, file, here)
            if at is not None and at >= line and (n == 0 or line_of(routine, n - 1, file, here) != at):
                found.setdefault(at, set()).add(site)
        if not found:
            files = ", ".join(sorted(set(self.files())))
            raise NotInCode(
                f"there is no instruction at line {line} or below{f' of {file}; there are {files}' if file else ''}"
            )
        return frozenset(found[min(found)])

    def files(self) -> Iterator[str]:
        """The names of all files: of the PTX, and of what it was compiled from."""
        for program in self.code.image.programs:
            yield program.source.name
            yield from program.files.values()


def condition_of(text: str) -> Expression | None:
    """The condition that a text is; None for no text."""
    return parse(text) if text else None


def absolute(text: str, here: Routine | None) -> str:
    """A location that means the same wherever it is read: with the file of a line, and the function of an instruction."""
    if here is None:
        return text
    if (found := AT_LINE.fullmatch(text)) and not found["file"] and here.function.program is not None:
        return f"{here.function.program.source.name}:{found['line']}"
    if (found := AT_INDEX.fullmatch(text)) and not found["function"]:
        return f"*{here.function.name}+{found['index']}"
    return text


def line_of(routine: Routine, number: int, file: str | None, here: Routine) -> int | None:
    """The line of an instruction in a file: of its PTX, or of its source; None where it is in another file."""
    bound = routine.function.instructions[number]
    program = bound.program
    if program is None:
        return None
    if file is None:
        return bound.line if program is here.function.program else None
    if names(file, program.source.name):
        return bound.line
    location = bound.location
    return location.line if location is not None and names(file, program.files.get(location.file, "")) else None


def names(text: str, path: str) -> bool:
    """Does a text name a file: are its last parts the same, as far as both say them?"""
    wanted, parts = PurePath(text).parts, PurePath(path).parts
    count = min(len(wanted), len(parts))
    return bool(count) and parts[-count:] == wanted[-count:]


def numbers(breakpoints: Iterable[Breakpoint]) -> tuple[int, ...]:
    """Their numbers."""
    return tuple(each.number for each in breakpoints)


def troubles(breakpoints: Iterable[Breakpoint]) -> str:
    """Why conditions of some breakpoints had no value; empty where all had one."""
    return "; ".join(each.trouble for each in breakpoints if each.trouble)


__all__ = [
    "Breakpoint", "Breakpoints", "Bytes", "Catchpoint", "Caught", "CodeBreakpoint", "Site", "Watchpoint", "condition_of",
    "numbers", "troubles",
]  # fmt: skip
